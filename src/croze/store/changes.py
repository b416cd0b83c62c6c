"""Which file contents the sessions still need for undo: the hashes that their events of changes mention."""

import sqlite3
import zlib
from contextlib import suppress

from croze.store.blobs import mentioned

_QUERY = "SELECT body FROM events WHERE type IN ('FilesChanged', 'Undoing')"


def mentioned_contents(connection: sqlite3.Connection) -> set[str]:
    """SHA-256 in hex of everything that a recorded change or undo speaks of, over all sessions."""
    found: set[str] = set()
    for (body,) in connection.execute(_QUERY):
        with suppress(zlib.error):  # a damaged event mentions nothing any more
            raw = zlib.decompress(body) if isinstance(body, bytes) else body.encode()
            found |= {digest.hex() for digest in mentioned(raw)}
    return found
