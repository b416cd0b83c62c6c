"""Events as rows of the `events` table: encode, decode, read; a damaged record costs only itself."""

import sqlite3
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from croze.store.schema import SEQ_BITS
from croze.types.event import Body, Event, Unknown, body_version, decode_body, encode_body

SEQ_MASK = (1 << SEQ_BITS) - 1
COMPRESS_FROM = 512
DAMAGED = "Damaged"
"""The type under which an event that can't be read appears."""
MISSES = 4096
"""How many seqs in a row may be unreadable before a damaged session counts as ended."""

_COLUMNS = "id & 4294967295, at, CAST(type AS BLOB), v, typeof(body) = 'blob', CAST(body AS BLOB)"

Row = tuple[int, Any, Any, Any, Any, Any]
"""seq, at, type, v, whether the body is deflated, body; in a damaged file they may be anything."""


class StoredEvent(NamedTuple):
    """An event as it lies in the store: `raw` is the body's JSON, byte for byte."""

    seq: int
    at: int
    type: str
    v: int
    raw: bytes


def base_of(num: int) -> int:
    """The id before a session's first event."""
    return num << SEQ_BITS


def encode(body: Body, *, compress: bool) -> tuple[str, int, str | bytes]:
    """The columns type, v and body."""
    raw = encode_body(body)
    kind = body.type if isinstance(body, Unknown) else type(body).__name__
    return kind, body_version(body), pack(raw, compress=compress)


def pack(raw: bytes, *, compress: bool) -> str | bytes:
    """TEXT for plain JSON, BLOB for deflated JSON (where it saves a tenth)."""
    if compress and len(raw) >= COMPRESS_FROM:
        small = zlib.compress(raw, 6)
        if len(small) * 10 <= len(raw) * 9:
            return small
    return raw.decode()


def clean(body: Body) -> Body:
    """The body with every lone surrogate (a file name that is not UTF-8) made a replacement
    character, since JSON text can't hold one."""
    if isinstance(body, Unknown):
        return Unknown(type=body.type, v=body.v, raw=_clean(body.raw))
    return msgspec.convert(_clean(msgspec.to_builtins(body)), type(body))


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_clean(k): _clean(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(v) for v in value]
    return value


def decode(session: str, row: Row) -> Event:
    stored = unpack(row)
    body = decode_body(stored.type, stored.v, stored.raw)
    return Event(session=session, seq=stored.seq, at=stored.at, body=body, v=stored.v)


def unpack(row: Row) -> StoredEvent:
    """Whatever the columns hold becomes an event that can be read, if only as `Unknown`."""
    seq, at, kind, v, packed, raw = row
    if packed:
        try:
            raw = zlib.decompress(raw)
        except (zlib.error, TypeError):
            kind, raw = DAMAGED.encode(), b""
    if not isinstance(at, int) or not isinstance(v, int) or raw is None or kind is None:
        at, kind, v, raw = 0, DAMAGED.encode(), 1, b""
    return StoredEvent(seq, at, kind.decode("utf-8", "replace"), v, raw)


def rows_after(connection: sqlite3.Connection, num: int, seq: int) -> Iterator[Row]:
    """The session's rows after `seq`, in order. Placeholders stand for what can't be read."""
    base = base_of(num)
    expected = seq + 1
    query = f"SELECT {_COLUMNS} FROM events WHERE id > ? AND id <= ? ORDER BY id"  # noqa: S608
    try:
        for row in connection.execute(query, (base + seq, base | SEQ_MASK)):
            if row[0] - expected > MISSES:
                return
            for gap in range(expected, row[0]):
                yield damaged(gap)
            yield row
            expected = row[0] + 1
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        yield from _salvage(connection, num, expected)


def damaged(seq: int) -> Row:
    return seq, 0, DAMAGED.encode(), 1, 0, b""


def _salvage(connection: sqlite3.Connection, num: int, seq: int) -> Iterator[Row]:
    """Row by row, since a bad page stops a scan but not the way to the pages behind it."""
    query = f"SELECT {_COLUMNS} FROM events WHERE id = ?"  # noqa: S608
    missing: list[Row] = []
    while len(missing) < MISSES:
        try:
            row = connection.execute(query, (base_of(num) + seq,)).fetchone()
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            row = None
        if row is None:
            missing.append(damaged(seq))
        else:
            yield from missing
            missing.clear()
            yield row
        seq += 1


def last_seq(connection: sqlite3.Connection, num: int) -> int:
    """The seq of the session's newest event; 0 where it has none."""
    base = base_of(num)
    (top,) = connection.execute(
        "SELECT max(id) FROM events WHERE id > ? AND id <= ?", (base, base | SEQ_MASK)
    ).fetchone()
    return 0 if top is None else top & SEQ_MASK
