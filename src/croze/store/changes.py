"""What recorded changes of files mention: the contents that undo still needs, and the paths."""

import sqlite3
import zlib
from collections.abc import Iterable
from contextlib import suppress

from msgspec import json

from croze.store.blobs import mentioned
from croze.store.schema import SEQ_BITS

_QUERY = "SELECT body FROM events WHERE type IN ('FilesChanged', 'Undoing')"


def mentioned_contents(connection: sqlite3.Connection) -> set[str]:
    """SHA-256 in hex of everything that a recorded change or undo speaks of, over all sessions."""
    found: set[str] = set()
    for (body,) in connection.execute(_QUERY):
        with suppress(zlib.error):  # a damaged event mentions nothing any more
            raw = zlib.decompress(body) if isinstance(body, bytes) else body.encode()
            found |= {digest.hex() for digest in mentioned(raw)}
    return found


def sessions_changing(connection: sqlite3.Connection, paths: Iterable[str]) -> set[str]:
    """The ids of the sessions whose recorded changes or undos name one of these paths."""
    wanted = [json.encode(path) for path in paths]
    query = """SELECT events.body, sessions.id FROM events
               JOIN sessions ON sessions.num = events.id >> ?
               WHERE type IN ('FilesChanged', 'Undoing')"""
    found: set[str] = set()
    for body, session in connection.execute(query, (SEQ_BITS,)):
        if session in found:
            continue
        with suppress(zlib.error):
            raw = zlib.decompress(body) if isinstance(body, bytes) else body.encode()
            if any(path in raw for path in wanted):
                found.add(session)
    return found
