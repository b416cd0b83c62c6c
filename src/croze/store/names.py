"""How sessions are named: ids, unique beginnings of ids, and the numbers that stand for them inside."""

import re
import sqlite3

from croze.types.errors import ConversationExists, ConversationNotFound

SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def number(connection: sqlite3.Connection, session: str) -> int:
    row = connection.execute("SELECT num FROM sessions WHERE id = ?", (session,)).fetchone()
    if row is None:
        raise ConversationNotFound(f"There is no session {session}", session=session)
    return int(row[0])


def exists(connection: sqlite3.Connection, session: str) -> bool:
    query = "SELECT 1 FROM sessions WHERE id = ?"
    return connection.execute(query, (session,)).fetchone() is not None


def taken(session: str) -> ConversationExists:
    return ConversationExists(
        f"There already is a session {session}",
        hint="Choose another id, or leave it out.",
        session=session,
    )


def resolve(connection: sqlite3.Connection, prefix: str) -> str:
    found = connection.execute(
        "SELECT id FROM sessions WHERE id >= ?1 AND id < ?1 || char(1114111) ORDER BY id LIMIT 4",
        (prefix,),
    ).fetchall()
    ids = [row[0] for row in found]
    if prefix in ids or (len(ids) == 1 and prefix):
        return prefix if prefix in ids else str(ids[0])
    if not ids or not prefix:
        raise ConversationNotFound(
            f"There is no session {prefix!r}",
            hint="`croze session list` shows the sessions.",
            session=prefix,
        )
    raise ConversationNotFound(
        f"{prefix!r} stands for several sessions: {', '.join(ids[:3])}"
        f"{' …' if len(ids) > 3 else ''}",
        hint="Give more of the id.",
        session=prefix,
    )
