"""The database's tables, as a list of forward-only migrations."""

import sqlite3
from collections.abc import Callable, Sequence

from croze.types.errors import StoreError

PAGE_SIZE = 1024
"""Bytes. An append writes whole pages, so small ones write least: for 1 kB bodies 4 times the payload
(6 with five sessions at once) against 7 (15) with SQLite's usual 4096 (bench/append.py)."""

APPLICATION_ID = 0x43524F5A

SEQ_BITS = 32
"""An event's id is its session's number shifted by this, plus its seq: one b-tree, in which a session's
events lie side by side."""

Migration = Callable[[sqlite3.Connection], None]


def first_tables(connection: sqlite3.Connection) -> None:
    """Version 1.

    `events.body` is TEXT (the JSON) or BLOB (the JSON, deflated). `sessions.summary` is a cache of
    the fold up to `last_seq`; `stale` says that there may be more; `indexed` is the last seq in the
    full-text index. `search` holds no text of its own.
    """
    for statement in (
        """CREATE TABLE sessions(
            num INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            parent TEXT,
            namespace TEXT NOT NULL,
            created INTEGER NOT NULL,
            updated INTEGER NOT NULL,
            last_seq INTEGER NOT NULL DEFAULT 0,
            indexed INTEGER NOT NULL DEFAULT 0,
            stale INTEGER NOT NULL DEFAULT 1,
            summary TEXT NOT NULL)""",
        "CREATE INDEX sessions_updated ON sessions(updated)",
        "CREATE INDEX sessions_parent ON sessions(parent) WHERE parent IS NOT NULL",
        "CREATE INDEX sessions_stale ON sessions(num) WHERE stale",
        """CREATE TABLE events(
            id INTEGER PRIMARY KEY,
            at INTEGER NOT NULL,
            type TEXT NOT NULL,
            v INTEGER NOT NULL,
            body NOT NULL)""",
        """CREATE TABLE blobs(
            hash BLOB PRIMARY KEY,
            touched INTEGER NOT NULL,
            packed INTEGER NOT NULL,
            data BLOB NOT NULL)""",
        "CREATE TABLE namespaces(name TEXT PRIMARY KEY, session TEXT NOT NULL)",
        "CREATE VIRTUAL TABLE search USING fts5(text, content='', tokenize='unicode61')",
    ):
        connection.execute(statement)


MIGRATIONS: tuple[Migration, ...] = (first_tables,)
"""Version n is reached by the n-th of these. Never change one that was released: add another."""


def migrate(
    connection: sqlite3.Connection, path: str, migrations: Sequence[Migration] = MIGRATIONS
) -> None:
    """Bring the schema up to date, each step in a transaction of its own.

    Raises `StoreError` for a file that a newer croze has written.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(migrations):
        raise StoreError(
            f"{path} was written by a newer croze (schema {version}, this one knows "
            f"{len(migrations)})",
            hint="Update croze, or choose another folder with CROZE_STORE__STORAGE_PATH.",
            code="store_newer",
        )
    for number, step in enumerate(migrations[version:], start=version + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            step(connection)
            connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
