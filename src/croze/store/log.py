"""One session's log in the hands of the process that runs it: append, read on, give back."""

import sqlite3
from collections.abc import Callable, Sequence

import msgspec

from croze.store import rows
from croze.store.db import Database, is_busy, transaction
from croze.store.failpoint import passes
from croze.store.files import Lease
from croze.store.fold import fold
from croze.types.conversation import ConversationSummary
from croze.types.errors import StoreCorrupt, StoreError
from croze.types.event import Body, Event
from croze.types.ids import Source

_INSERT = "INSERT INTO events(id, at, type, v, body) VALUES(?, ?, ?, ?, ?)"
_Columns = tuple[str, int, str | bytes]


class SessionLog:
    """The leased log. `events` holds all of it in order; it only ever grows.

    Other processes may add annotations in between: `append` and `refresh` read them on.
    """

    def __init__(
        self,
        session: str,
        *,
        num: int,
        database: Database,
        source: Source,
        lease: Lease | None,
        events: list[Event],
        on_close: Callable[["SessionLog"], None],
    ) -> None:
        self.session = session
        self.events = events
        self._base = rows.base_of(num)
        self._num = num
        self._database = database
        self._source = source
        self._lease = lease
        self._on_close = on_close
        self._closed = False

    async def append(self, *bodies: Body, durable: bool = False) -> tuple[Event, ...]:
        """Add events in one transaction; when this returns they survive the death of the process.

        With `durable` they survive a power loss too. Returns the new events, whose seqs follow each
        other. Raises `StoreFull`, `LockTimeout` or `StoreCorrupt`; then nothing was added, save that
        after a failed flush (`StoreFull` with `durable`) the events are in the log all the same.
        """
        if self._closed:
            raise StoreError(f"Session {self.session} is closed", session=self.session)
        passes("append.before")
        compress = self._database.settings.enable_compression
        columns: list[_Columns] = []
        kept: list[Body] = []
        for body in bodies:
            try:
                columns.append(rows.encode(body, compress=compress))
            except UnicodeEncodeError:
                body = rows.clean(body)
                columns.append(rows.encode(body, compress=compress))
            kept.append(body)
        at = self._source.now()
        added = await self._database.write(
            lambda connection: self._insert(connection, at, kept, columns)
        )
        passes("append.after")
        if durable:
            await self._database.sync()
            passes("sync.after")
        return added

    def _insert(
        self,
        connection: sqlite3.Connection,
        at: int,
        bodies: Sequence[Body],
        columns: Sequence[_Columns],
    ) -> tuple[Event, ...]:
        while True:
            first = len(self.events) + 1
            values = [
                (self._base + seq, at, kind, v, body)
                for seq, (kind, v, body) in enumerate(columns, start=first)
            ]
            try:
                if len(values) == 1:
                    connection.execute(_INSERT, values[0])
                else:
                    with transaction(connection):
                        connection.executemany(_INSERT, values)
                break
            except sqlite3.IntegrityError as error:
                if not self._catch_up(connection):
                    raise StoreCorrupt(
                        f"Session {self.session} can't go on after event {first - 1}: {error}",
                        hint="Fork it to go on from what can be read.",
                    ) from error
        added = tuple(
            Event(session=self.session, seq=seq, at=at, body=body, v=v)
            for seq, (body, (_, v, _)) in enumerate(zip(bodies, columns, strict=True), start=first)
        )
        self.events.extend(added)
        return added

    async def refresh(self) -> tuple[Event, ...]:
        """Read what others have added since; returns those events."""
        return await self._database.write(self._catch_up)

    def _catch_up(self, connection: sqlite3.Connection) -> tuple[Event, ...]:
        news = tuple(
            rows.decode(self.session, row)
            for row in rows.rows_after(connection, self._num, len(self.events))
        )
        self.events.extend(news)
        return news

    def close(self) -> None:
        """Give the lease back and bring the session's row up to date."""
        if self._closed:
            return
        self._closed = True
        try:
            save_summary(self._database, self._num, fold(self.events).summary(), settled=True)
        finally:
            if self._lease is not None:
                self._lease.release()
            self._on_close(self)


def save_summary(
    database: Database, num: int, summary: ConversationSummary, *, settled: bool
) -> None:
    """Cache a fold in the session's row, unless it holds a later one; on a busy or full store it
    stays as it is, since readers fold again.

    `settled` also says that nobody runs the session; with newer events in the log it stays stale.
    """
    with database.errors():
        try:
            store_summary(database.connection, num, summary, settled=settled)
        except sqlite3.OperationalError as error:
            full = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)
            if not is_busy(error) and error.sqlite_errorcode & 0xFF not in full:
                raise


def store_summary(
    connection: sqlite3.Connection, num: int, summary: ConversationSummary, *, settled: bool
) -> None:
    base = rows.base_of(num)
    connection.execute(
        """UPDATE sessions SET namespace = ?1, updated = ?2, last_seq = ?3, summary = ?4,
           stale = CASE WHEN ?5 AND NOT EXISTS (
               SELECT 1 FROM events WHERE id > ?6 AND id <= ?7) THEN 0 ELSE stale END
           WHERE num = ?8 AND last_seq <= ?3""",
        (
            summary.namespace,
            summary.updated_at,
            summary.last_seq,
            msgspec.json.encode(summary).decode(),
            settled,
            base + summary.last_seq,
            base | rows.SEQ_MASK,
            num,
        ),
    )
