"""Full-text search over sessions: an index without text, filled in batches behind the log."""

import re
import sqlite3
from collections.abc import Iterable

from msgspec import Struct

from croze.store import rows
from croze.store.db import ENGINE_ERRORS, transaction
from croze.store.fold import content_of, text_of
from croze.text.regex import Regex
from croze.types.conversation import SearchHit
from croze.types.event import (
    Annotated,
    Body,
    Event,
    ModelSaid,
    SessionOpened,
    ToolReturned,
    UserSaid,
)
from croze.types.parts import Text, ToolCall

BATCH = 200
AT_CLOSE = 400
"""Events that are indexed at most when a store is closed; the rest waits for the next search."""
RESULT_LENGTH = 2_000
"""Characters of a tool's result that are indexed."""
SNIPPET = 80

_CJK = Regex(
    "([\u2e80-\u2fdf\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff])"
)
_INSERT = "INSERT INTO search(rowid, text) VALUES(?, ?)"
_DELETE = "INSERT INTO search(search, rowid, text) VALUES('delete', ?, ?)"


class Found(Struct, frozen=True):
    """The words of an event and whose they are."""

    role: str
    message_id: str
    text: str


def words_of(body: Body) -> Found | None:
    """What of an event can be found. The index can only be undone with the very same text: whoever
    changes this adds a migration that empties the index and sets `sessions.indexed` to 0."""
    match body:
        case SessionOpened(name=name, description=description):
            return Found("session", "", f"{name}\n{description}")
        case UserSaid(message_id=message_id, parts=parts):
            return Found("user", message_id, text_of(content_of(parts)))
        case ModelSaid(message_id=message_id, parts=parts):
            texts = [
                part.text if isinstance(part, Text) else part.raw
                for part in parts
                if isinstance(part, Text | ToolCall)
            ]
            return Found("assistant", message_id, "\n".join(texts))
        case ToolReturned(call_id=call_id, message=message, text=text):
            return Found("tool", call_id, f"{message}\n{text[:RESULT_LENGTH]}")
        case Annotated(target=target):
            texts = [body.name or "", body.description or "", body.content or ""]
            return Found("message" if target else "session", target or "", "\n".join(texts))
        case _:
            return None


def segmented(text: str) -> str:
    """The text with every character of scripts without spaces as a word of its own, so a phrase of
    them is found wherever it stands."""
    return _CJK.sub(r" \1 ", text)


def query_of(words: str) -> str:
    """An FTS5 query for all of the words, each as a phrase and as the beginning of a longer word."""
    phrases = []
    for word in words.split():
        phrase = segmented(word).replace('"', " ").replace("\0", " ").strip()
        if any(char.isalnum() for char in phrase):
            phrases.append(f'"{phrase}" *')
    return " ".join(phrases)


def catch_up(connection: sqlite3.Connection, *, limit: int | None = None) -> int:
    """Index what has been appended since the last time, at most `limit` events, in transactions of
    `BATCH`; gives how many events were read."""
    behind = connection.execute(
        "SELECT num, id FROM sessions WHERE stale OR indexed < last_seq ORDER BY num"
    ).fetchall()
    total = 0
    for num, session in behind:
        while limit is None or total < limit:
            with transaction(connection):
                row = connection.execute(
                    "SELECT indexed FROM sessions WHERE num = ?", (num,)
                ).fetchone()
                if row is None or rows.last_seq(connection, num) <= row[0]:
                    break
                batch = []
                for stored in rows.rows_after(connection, num, row[0]):
                    batch.append(rows.decode(session, stored))
                    if len(batch) == BATCH:
                        break
                if not batch:
                    break
                connection.executemany(_INSERT, _entries(num, batch))
                connection.execute(
                    "UPDATE sessions SET indexed = ? WHERE num = ?", (batch[-1].seq, num)
                )
            total += len(batch)
    return total


def catch_up_at_close(connection: sqlite3.Connection) -> None:
    """Index a bounded part of what is new; a busy, full or damaged store is left as it is."""
    try:
        catch_up(connection, limit=AT_CLOSE)
    except ENGINE_ERRORS:
        return


def _entries(num: int, events: Iterable[Event]) -> Iterable[tuple[int, str]]:
    for event in events:
        found = words_of(event.body)
        if found is not None and found.text.strip():
            yield rows.base_of(num) + event.seq, segmented(found.text)


def forget(connection: sqlite3.Connection, session: str, num: int) -> None:
    """Take a session out of the index, inside the caller's transaction; its events must still be
    there."""
    (indexed,) = connection.execute("SELECT indexed FROM sessions WHERE num = ?", (num,)).fetchone()
    events = (
        rows.decode(session, row)
        for row in rows.rows_after(connection, num, 0)
        if row[0] <= indexed
    )
    for rowid, text in _entries(num, events):
        connection.execute(_DELETE, (rowid, text))


def compact(connection: sqlite3.Connection) -> None:
    """Rewrite the index, so that it no longer holds the words of what was taken out."""
    connection.execute("INSERT INTO search(search) VALUES('optimize')")


def find(
    connection: sqlite3.Connection, words: str, *, limit: int, include_children: bool
) -> list[tuple[int, str, int]]:
    """The best matches as (session number, session id, seq)."""
    query = query_of(words)
    if not query:
        return []
    found = connection.execute(
        """SELECT s.num, s.id, search.rowid & 4294967295 FROM search
           JOIN sessions s ON s.num = search.rowid >> 32
           WHERE search MATCH ? AND (? OR s.parent IS NULL)
           ORDER BY search.rank, search.rowid DESC LIMIT ?""",
        (query, include_children, limit),
    )
    return found.fetchall()


def hit(
    connection: sqlite3.Connection, num: int, session: str, seq: int, words: str
) -> SearchHit | None:
    """A match with the text around it; None where a damaged index names an event that is not there."""
    row = next(rows.rows_after(connection, num, seq - 1), None)
    if row is None:
        return None
    event = rows.decode(session, row)
    found = words_of(event.body) or Found("", "", "")
    return SearchHit(
        session=session,
        name="",
        seq=seq,
        role=found.role,
        message_id=found.message_id,
        at=event.at,
        snippet=snippet(found.text, words),
    )


def snippet(text: str, words: str) -> str:
    """One line of about 160 characters around the first place where one of the words stands."""
    places = [
        match.start()
        for word in words.split()
        if (match := re.search(re.escape(word), text, re.IGNORECASE))
    ]
    middle = min(places, default=0)
    start, end = max(0, middle - SNIPPET), middle + SNIPPET
    line = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{line}{'…' if end < len(text) else ''}"
