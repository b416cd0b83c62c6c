"""The durable store of a project's sessions: open it, lease logs, annotate from outside, keep blobs."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from croze.store import blobs, names, rows, search
from croze.store.backup import BackupChild, is_due, newest_backup, stamp_of
from croze.store.db import DEFAULTS, Database, StoreSettings, open_database, transaction
from croze.store.failpoint import passes
from croze.store.files import Lease, storage_error
from croze.store.fold import fold
from croze.store.log import SessionLog
from croze.store.rows import StoredEvent
from croze.store.schema import migrate
from croze.types.conversation import ConversationSummary
from croze.types.errors import (
    SessionBusy,
    UsageError,
)
from croze.types.event import Annotated, Event, Notice, SessionOpened, body_version, encode_body
from croze.types.ids import Source


class Store:
    """One folder's sessions. Without a folder they live in memory only and are lost at the end."""

    def __init__(
        self,
        folder: Path | None,
        *,
        database: Database,
        source: Source,
        settings: StoreSettings,
        notices: list[Notice],
    ) -> None:
        self.folder = folder
        self.settings = settings
        self.notices = notices
        self.database = database
        self.source = source
        self._open: dict[str, SessionLog] = {}
        self._backup: BackupChild | None = None

    @classmethod
    def open(
        cls, folder: Path | None, *, source: Source, settings: StoreSettings = DEFAULTS
    ) -> "Store":
        """Open the store in `folder`, made (0700) where it is missing; None is a store in memory.

        A damaged file is set aside untouched and a fresh store opened; `notices` then says so and
        names the newest backup. Raises `StoreFull` where the folder can't be written, `LockTimeout`
        where another process keeps the store to itself, `StoreError` for a newer schema.
        """
        if folder is None:
            database = Database(None, settings, None)
            migrate(database.connection, "the unsaved session")
            unsaved = Notice(
                level="warning", code="store_unsaved", text="This session is not saved."
            )
            return cls(None, database=database, source=source, settings=settings, notices=[unsaved])
        database, aside = open_database(folder, settings, stamp_of(source.now()))
        notices = [] if aside is None else [_aside_notice(folder, *aside)]
        return cls(folder, database=database, source=source, settings=settings, notices=notices)

    async def create(
        self,
        *,
        name: str | None = None,
        description: str = "",
        namespace: str | None = None,
        project: str = "",
        metadata: dict[str, Any] | None = None,
        parent: str | None = None,
        forked_from: tuple[str, int] | None = None,
        session_id: str | None = None,
        version: str = "",
    ) -> SessionLog:
        """A new session, leased, with its `SessionOpened`. Raises `ConversationExists` for a chosen id
        that is taken, `ConversationNotFound` for an unknown parent."""
        session = session_id or self.source.uuid()
        body = SessionOpened(
            name=name or f"Conversation {session[:8]}",
            project=project,
            namespace=namespace or self.settings.default_namespace,
            description=description,
            metadata=metadata or {},
            parent=parent,
            forked_from=forked_from,
            version=version,
        )
        first = StoredEvent(1, self.source.now(), "SessionOpened", body_version(body), b"")
        return await self.create_from([first], opened=body, session=session)

    async def create_from(
        self,
        stored: Sequence[StoredEvent],
        *,
        session: str,
        opened: SessionOpened | None = None,
    ) -> SessionLog:
        """A new session, leased, that begins with `stored` events (seqs from 1), byte for byte.

        `opened`, where given, replaces the body of the first.
        """
        if await self.database.write(lambda connection: names.exists(connection, session)):
            raise names.taken(session)
        lease = self._lease(session)
        try:
            if opened is not None:
                try:
                    raw = encode_body(opened)
                except UnicodeEncodeError:
                    raw = encode_body(rows.clean(opened))
                stored = [stored[0]._replace(raw=raw), *stored[1:]]
            events = [
                rows.decode(session, (s.seq, s.at, s.type.encode(), s.v, 0, s.raw)) for s in stored
            ]
            summary = fold(events, session).summary()
            num = await self.database.write(
                lambda connection: self._insert_session(connection, summary, stored)
            )
        except BaseException:
            if lease is not None:
                lease.release()
            raise
        passes("create.after")
        return self._hand_out(session, num, lease, events)

    def _insert_session(
        self,
        connection: sqlite3.Connection,
        summary: ConversationSummary,
        stored: Sequence[StoredEvent],
    ) -> int:
        compress = self.settings.enable_compression
        with transaction(connection):
            if summary.parent is not None:
                names.number(connection, summary.parent)
            try:
                cursor = connection.execute(
                    """INSERT INTO sessions(
                       id, parent, namespace, created, updated, last_seq, summary)
                       VALUES(?, ?, ?, ?, ?, ?, ?)""",
                    (
                        summary.id,
                        summary.parent,
                        summary.namespace,
                        summary.created_at,
                        summary.updated_at,
                        summary.last_seq,
                        msgspec.json.encode(summary).decode(),
                    ),
                )
            except sqlite3.IntegrityError as error:
                raise names.taken(summary.id) from error
            num = cursor.lastrowid or 0
            base = rows.base_of(num)
            connection.executemany(
                "INSERT INTO events(id, at, type, v, body) VALUES(?, ?, ?, ?, ?)",
                (
                    (base + s.seq, s.at, s.type, s.v, rows.pack(s.raw, compress=compress))
                    for s in stored
                ),
            )
        return num

    async def open_log(self, session: str) -> SessionLog:
        """The leased log of a session, named by its id or a unique beginning of it.

        Raises `SessionBusy` with the process id while another process (or this one) runs it.
        """
        session = await self.resolve(session)
        lease = self._lease(session)
        try:
            num, events = await self.database.write(
                lambda connection: self._take_over(connection, session)
            )
        except BaseException:
            if lease is not None:
                lease.release()
            raise
        return self._hand_out(session, num, lease, events)

    def _take_over(self, connection: sqlite3.Connection, session: str) -> tuple[int, list[Event]]:
        num = names.number(connection, session)
        connection.execute("UPDATE sessions SET stale = 1 WHERE num = ? AND NOT stale", (num,))
        return num, self._events(connection, session, num)

    def _lease(self, session: str) -> Lease | None:
        if not names.SESSION_ID.fullmatch(session):
            raise UsageError(
                f"{session[:140]!r} can't be a session id",
                hint="Use letters, digits, '.', '_' and '-', at most 128 characters.",
                code="session_id",
            )
        if session in self._open:
            raise SessionBusy(f"Session {session} is already open in this process", pid=os.getpid())
        if self.folder is None:
            return None
        try:
            return Lease.take(self.folder / "locks" / session)
        except OSError as error:
            raise storage_error(error, self.folder) from error

    def _hand_out(
        self, session: str, num: int, lease: Lease | None, events: list[Event]
    ) -> SessionLog:
        log = SessionLog(
            session,
            num=num,
            database=self.database,
            source=self.source,
            lease=lease,
            events=events,
            on_close=self._forget,
        )
        self._open[session] = log
        self._start_backup()
        return log

    def _forget(self, log: SessionLog) -> None:
        if self._open.get(log.session) is log:
            del self._open[log.session]

    async def read(self, session: str) -> list[Event]:
        """All events of a session (an id or a unique beginning), without a lease."""
        session = await self.resolve(session)
        return await self.database.aside(
            lambda connection: self._events(connection, session, names.number(connection, session))
        )

    async def read_stored(self, session: str) -> list[StoredEvent]:
        """All events as they are stored, for an exact copy."""
        session = await self.resolve(session)
        return await self.database.aside(
            lambda connection: [
                rows.unpack(row)
                for row in rows.rows_after(connection, names.number(connection, session), 0)
            ]
        )

    def _events(self, connection: sqlite3.Connection, session: str, num: int) -> list[Event]:
        events = [rows.decode(session, row) for row in rows.rows_after(connection, num, 0)]
        lost = [event.seq for event in events if event.type == rows.DAMAGED]
        if lost:
            self.notices.append(
                Notice(
                    level="error",
                    code="events_damaged",
                    text=f"{len(lost)} damaged events of session {session} can't be read: "
                    f"{', '.join(map(str, lost[:10]))}{' …' if len(lost) > 10 else ''}",
                    params={"session": session, "seqs": lost},
                )
            )
        return events

    async def resolve(self, prefix: str) -> str:
        """The id of the one session whose id is or begins with `prefix`."""
        return await self.database.write(lambda connection: names.resolve(connection, prefix))

    async def annotate(self, session: str, body: Annotated) -> Event:
        """Append a late fact from outside, in a transaction of its own and without a lease; whoever
        runs the session reads it on."""
        session = await self.resolve(session)
        at = self.source.now()
        try:
            kind, v, text = rows.encode(body, compress=False)
        except UnicodeEncodeError:
            kind, v, text = rows.encode(rows.clean(body), compress=False)

        def insert(connection: sqlite3.Connection) -> int:
            with transaction(connection):
                num = names.number(connection, session)
                seq = rows.last_seq(connection, num) + 1
                connection.execute(
                    "INSERT INTO events(id, at, type, v, body) VALUES(?, ?, ?, ?, ?)",
                    (rows.base_of(num) + seq, at, kind, v, text),
                )
                connection.execute(
                    "UPDATE sessions SET stale = 1 WHERE num = ? AND NOT stale", (num,)
                )
            return seq

        seq = await self.database.write(insert)
        return Event(session=session, seq=seq, at=at, body=body, v=v)

    async def put_blob(self, data: bytes) -> str:
        """Keep `data` once and return its SHA-256 in hex."""
        return await blobs.put(self.database, data, now=self.source.now())

    async def blob(self, hash: str) -> bytes:
        """The bytes of a blob; `StoreError` where there are none or they are damaged."""
        return await blobs.get(self.database, hash)

    @contextmanager
    def hold(self, session: str) -> Iterator[None]:
        """Keep everybody else from running a session for a while. Raises `SessionBusy`."""
        lease = self._lease(session)
        try:
            yield
        finally:
            if lease is not None:
                lease.release()

    def _start_backup(self) -> None:
        settings = self.settings
        if self.folder is None or not settings.backup_enabled:
            return
        if self._backup is not None and not self._backup.reap():
            return
        now = self.source.now()
        try:
            row = self.database.connection.execute(
                "SELECT created FROM sessions ORDER BY num LIMIT 1"
            ).fetchone()
            since = int(row[0]) if row else None
            if not is_due(self.folder, interval=settings.backup_interval, now=now, since=since):
                return
            self._backup = BackupChild.start(
                self.folder, max_backups=settings.max_backups, stamp=stamp_of(now)
            )
        except (OSError, sqlite3.Error, ValueError) as error:
            self.notices.append(
                Notice(
                    level="warning",
                    code="backup_failed",
                    text=f"No backup of the sessions could be started: {error}",
                )
            )

    def close(self) -> None:
        """Give every lease back, index what is new (a bounded part), close the file."""
        for log in list(self._open.values()):
            log.close()
        if self.folder is not None:
            search.catch_up_at_close(self.database.connection)
        if self._backup is not None:
            self._backup.reap()
        self.database.close()


def _aside_notice(folder: Path, path: Path, problem: str) -> Notice:
    backup = newest_backup(folder)
    offer = (
        f" The newest backup is {backup.name}: `croze session restore {backup.name}`."
        if backup
        else " There is no backup."
    )
    return Notice(
        level="error",
        code="store_set_aside",
        text=f"{problem}. It was set aside untouched as {path}; a new store is in use.{offer}",
        params={"path": str(path), "backup": backup.name if backup else ""},
    )
