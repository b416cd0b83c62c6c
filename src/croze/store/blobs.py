"""Large bytes by their hash: put, get, and purge of what no session mentions any more."""

import asyncio
import hashlib
import re
import sqlite3
import zlib
from collections.abc import Iterable

from croze.store import rows
from croze.store.db import Database, transaction
from croze.types.errors import StoreError

ASIDE = 65_536
"""Blobs of more bytes than this are hashed and written in a thread."""
HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def mentioned(raw: bytes) -> set[bytes]:
    """Everything in a stored body that may be a blob's hash."""
    return {bytes.fromhex(found.decode()) for found in HASH.findall(raw)}


async def put(database: Database, data: bytes, *, now: int) -> str:
    """Keep `data`, once; gives its SHA-256 in hex. `now` is in microseconds."""
    compress = database.settings.enable_compression

    def pack() -> tuple[bytes, bytes, bool]:
        small = zlib.compress(data, 6) if compress and len(data) >= rows.COMPRESS_FROM else data
        packed = len(small) * 10 < len(data) * 9
        return hashlib.sha256(data).digest(), small if packed else data, packed

    def insert(connection: sqlite3.Connection) -> None:
        connection.execute(
            """INSERT INTO blobs(hash, touched, packed, data) VALUES(?, ?, ?, ?)
               ON CONFLICT(hash) DO UPDATE SET touched = excluded.touched""",
            (digest, now, packed, stored),
        )

    if len(data) > ASIDE:
        digest, stored, packed = await asyncio.to_thread(pack)
        await database.aside(insert)
    else:
        digest, stored, packed = pack()
        await database.write(insert)
    return digest.hex()


async def get(database: Database, hash: str) -> bytes:
    """The bytes of a blob; `StoreError` where there are none or they are not what the hash says."""
    digest = bytes.fromhex(hash) if HASH.fullmatch(hash.encode()) else b""
    row = await database.aside(
        lambda connection: connection.execute(
            "SELECT packed, data FROM blobs WHERE hash = ?", (digest,)
        ).fetchone()
    )
    if row is None:
        raise StoreError(f"There is no blob {hash}", code="blob_not_found", hash=hash)
    packed, data = row
    try:
        data = zlib.decompress(data) if packed else data
    except (zlib.error, TypeError):
        data = None
    if not isinstance(data, bytes) or hashlib.sha256(data).digest() != digest:
        raise StoreError(f"Blob {hash} is damaged", code="blob_damaged", hash=hash)
    return data


def purge(connection: sqlite3.Connection, candidates: Iterable[bytes], *, before: int) -> int:
    """Remove those of the `candidates` that no event mentions and nobody has put since `before`
    (microseconds); gives how many."""
    left = {
        digest
        for digest in candidates
        if connection.execute(
            "SELECT 1 FROM blobs WHERE hash = ? AND touched < ?", (digest, before)
        ).fetchone()
    }
    if left:
        for num, body in connection.execute("SELECT id, body FROM events"):
            raw = rows.unpack((num, 0, b"", 1, isinstance(body, bytes), _bytes(body))).raw
            left -= mentioned(raw)
            if not left:
                break
    with transaction(connection):
        for digest in left:
            connection.execute("DELETE FROM blobs WHERE hash = ? AND touched < ?", (digest, before))
    return len(left)


def _bytes(body: str | bytes) -> bytes:
    return body.encode() if isinstance(body, str) else body
