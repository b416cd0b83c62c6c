"""The database file: opening and checking it, its two connections, waiting for locks, flushing."""

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from msgspec import Struct

from croze.store.files import StoreLock, private_file, private_folder, storage_error
from croze.store.schema import APPLICATION_ID, MIGRATIONS, PAGE_SIZE, migrate
from croze.types.errors import LockTimeout, StoreCorrupt, StoreError, StoreFull

T = TypeVar("T")
CHECKPOINT_PAGES = 4 * 1024 * 1024 // PAGE_SIZE
CHECK_SECONDS = 2.0
QUICK_FLUSH = 0.001
"""Seconds that a flush may take to be done on the loop's thread the next time."""
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_UNWRITABLE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
_UNREADABLE = {sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class StoreSettings(Struct, frozen=True):
    """Times are in seconds. `max_cache_size` counts conversations (of messages ten times as many are
    kept); `cache_ttl` only frees memory; `lock_timeout` bounds every wait for another process."""

    max_cache_size: int = 100
    cache_ttl: float = 300.0
    lock_timeout: float = 10.0
    backup_enabled: bool = True
    backup_interval: float = 3600.0
    max_backups: int = 10
    enable_compression: bool = False
    default_namespace: str = "default"


DEFAULTS = StoreSettings()

ENGINE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite's calls raise; the second where a damaged file makes it quote bytes that are no text."""


def is_busy(error: Exception) -> bool:
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _BUSY


def translate(error: sqlite3.Error | UnicodeDecodeError, path: Path | None) -> StoreError:
    """SQLite's error as one that says which file, what, and the next step."""
    code = getattr(error, "sqlite_errorcode", 0) or 0
    if isinstance(error, UnicodeDecodeError) or "malformed" in str(error):
        code = sqlite3.SQLITE_CORRUPT
    primary = code & 0xFF
    where = str(path or "the unsaved session")
    if primary in _BUSY:
        return LockTimeout(
            f"Another process is writing {where}",
            hint="Try again; if it stays so, see which croze processes are running.",
            path=where,
        )
    if primary in _UNWRITABLE or (primary == sqlite3.SQLITE_IOERR and code not in _UNREADABLE):
        return StoreFull(
            f"The session store {where} can't be written: {error}",
            hint="Free space there or make the folder writable; what was saved is kept.",
            path=where,
        )
    if primary in _CORRUPT or primary == sqlite3.SQLITE_IOERR:
        return StoreCorrupt(
            f"The session store {where} is damaged: {error}",
            hint="`croze session restore` brings back the newest good backup.",
            path=where,
        )
    return StoreError(f"The session store {where} failed: {error}", path=where)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of the block or none; the write lock is taken at once."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def connect(path: Path | None, *, timeout: float) -> sqlite3.Connection:
    """A connection in autocommit mode. `timeout` (seconds) is SQLite's own wait for locks."""
    connection = sqlite3.connect(
        path or ":memory:", timeout=timeout, isolation_level=None, check_same_thread=False
    )
    try:
        for pragma in (
            f"page_size={PAGE_SIZE}",
            "journal_mode=WAL",
            "synchronous=NORMAL",
            f"wal_autocheckpoint={CHECKPOINT_PAGES}",
            "cache_size=-4096",
            "secure_delete=ON",
            "cell_size_check=ON",
            "trusted_schema=OFF",
        ):
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def examine(path: Path, *, thorough: bool) -> None:
    """Raise `StoreCorrupt` if the file can't be read as a store, without changing a byte of it.

    A read-only connection neither checkpoints nor removes the write-ahead log. `thorough` adds
    SQLite's `quick_check`, for at most two seconds: what it finds within them counts.
    """
    uri = f"file:{quote(str(path))}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, timeout=1.0, isolation_level=None)
    try:
        (mark,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if tables and (mark != APPLICATION_ID or version < 1):
            raise StoreCorrupt(f"{path} is no session store of croze")
        if version == len(MIGRATIONS):
            connection.execute("SELECT num, id, summary FROM sessions LIMIT 1").fetchone()
            connection.execute("SELECT id, body FROM events LIMIT 1").fetchone()
        if thorough:
            deadline = time.monotonic() + CHECK_SECONDS
            connection.set_progress_handler(lambda: time.monotonic() > deadline, 100_000)
            try:
                (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                    raise
                found = "ok"
            if found != "ok":
                raise StoreCorrupt(f"{path} is damaged: {found}")
    finally:
        connection.close()


def set_aside(path: Path, label: str, stamp: str) -> Path:
    """Rename the database and its side files, bytes untouched, to a name that is free."""
    number = 0
    while True:
        target = path.with_name(f"{path.stem}-{label}-{stamp}{f'-{number}' if number else ''}.db")
        if not target.exists() and not Path(f"{target}-wal").exists():
            break
        number += 1
    for suffix in ("-shm", "-wal", ""):
        source = Path(f"{path}{suffix}")
        if source.exists():
            source.rename(f"{target}{suffix}")
    return target


class Database:
    """One store's file: a connection for the loop's thread that never waits inside SQLite, and one for
    long work in a thread."""

    def __init__(self, path: Path | None, settings: StoreSettings, lock: StoreLock | None) -> None:
        self.path = path
        self.settings = settings
        self._lock = lock
        self.connection = connect(path, timeout=settings.lock_timeout)
        self.connection.execute("PRAGMA busy_timeout=0")
        self._turn = asyncio.Lock()
        self._aside: sqlite3.Connection | None = None
        self._aside_lock = threading.Lock()
        self._wal = -1
        self._flight: asyncio.Future[None] | None = None
        self._asked = 0
        self._flushed = 0
        self._quick = False

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` (one transaction) on the loop's thread, in the order of the calls.

        While another process writes it is tried again for up to `lock_timeout` seconds, then
        `LockTimeout`. Leaving the wait leaves nothing half done.
        """
        async with self._turn:
            delay, deadline = 0.001, 0.0
            while True:
                try:
                    return work(self.connection)
                except ENGINE_ERRORS as error:
                    now = time.monotonic()
                    deadline = deadline or now + self.settings.lock_timeout
                    if not is_busy(error) or now >= deadline:
                        raise translate(error, self.path) from error
                await asyncio.sleep(delay)
                delay = min(delay * 2, 0.05)

    async def aside(
        self, work: Callable[[sqlite3.Connection], T], *, wait: float | None = None
    ) -> T:
        """Run `work` in a thread on a connection of its own; `wait` (seconds) bounds its waits for
        locks, `lock_timeout` where it is None. An unsaved store does it on the spot."""
        if self.path is None:
            with self.errors():
                return work(self.connection)
        patience = self.settings.lock_timeout if wait is None else wait

        def run() -> T:
            with self._aside_lock, self.errors():
                if self._aside is None:
                    self._aside = connect(self.path, timeout=patience)
                self._aside.execute(f"PRAGMA busy_timeout={int(patience * 1000)}")
                return work(self._aside)

        return await asyncio.to_thread(run)

    @contextmanager
    def errors(self) -> Iterator[None]:
        try:
            yield
        except ENGINE_ERRORS as error:
            raise translate(error, self.path) from error

    async def sync(self) -> None:
        """Return when everything committed before this call survives a power loss.

        `fdatasync` of the write-ahead log after a NORMAL commit is what synchronous=FULL does; all
        that wait together share one. SQLite's locks lie on the database and -shm files, so opening
        and closing the -wal file does not drop them. While the disk is quick this thread flushes by
        itself, since a hop to another one would take longer; a slow flush is the last one here.
        """
        if self.path is None:
            return
        if self._quick and self._flight is None:
            began = time.perf_counter()
            try:
                self._flush()
            except OSError as error:
                raise storage_error(error, self.path) from error
            self._quick = time.perf_counter() - began < QUICK_FLUSH
            return
        self._asked += 1
        ticket = self._asked
        while self._flushed < ticket:
            if self._flight is None or self._flight.done():
                self._flight = self._take_off()
            try:
                await asyncio.shield(self._flight)
            except OSError as error:
                raise storage_error(error, self.path) from error

    def _take_off(self) -> asyncio.Future[None]:
        target = self._asked

        def landed(flight: asyncio.Future[None]) -> None:
            if self._flight is flight:
                self._flight = None
            if not flight.cancelled() and flight.exception() is None:
                self._flushed = target

        flight = asyncio.ensure_future(asyncio.to_thread(self._timed_flush))
        flight.add_done_callback(landed)
        return flight

    def _timed_flush(self) -> None:
        began = time.perf_counter()
        self._flush()
        self._quick = time.perf_counter() - began < QUICK_FLUSH

    def _flush(self) -> None:
        path = f"{self.path}-wal"
        if self._wal < 0 or os.fstat(self._wal).st_ino != os.stat(path).st_ino:
            if self._wal >= 0:
                os.close(self._wal)
            self._wal = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        os.fdatasync(self._wal)

    def size(self) -> int:
        """Bytes on disk of the database and its write-ahead log."""
        if self.path is None:
            return 0
        total = 0
        for suffix in ("", "-wal"):
            try:
                total += os.stat(f"{self.path}{suffix}").st_size
            except FileNotFoundError:
                continue
        return total

    def close(self) -> None:
        """Close both connections; the last process to do so folds the write-ahead log in."""
        with self._aside_lock:
            if self._aside is not None:
                self._aside.close()
                self._aside = None
        self.connection.close()
        if self._wal >= 0:
            os.close(self._wal)
            self._wal = -1
        if self._lock is not None:
            self._lock.close()


def lock_store(folder: Path, settings: StoreSettings) -> StoreLock:
    """Make the store's folders and take its lock."""
    try:
        private_folder(folder / "locks")
        return StoreLock(folder / "locks" / ".store", timeout=settings.lock_timeout)
    except OSError as error:
        raise storage_error(error, folder) from error


def open_database(
    folder: Path, settings: StoreSettings, stamp: str
) -> tuple[Database, tuple[Path, str] | None]:
    """Open `folder`/log.db, made where it is missing.

    A file that is damaged is set aside first; then the second value says where it lies and why.
    """
    lock = lock_store(folder, settings)
    path = folder / "log.db"
    aside: tuple[Path, str] | None = None
    try:
        if lock.whole:
            aside = _prepare(path, thorough=not lock.clean, stamp=stamp)
        database = Database(path, settings, lock)
        try:
            if lock.whole:
                _set_up(database.connection, path)
        except BaseException:
            database.connection.close()
            raise
        lock.share()
        return database, aside
    except ENGINE_ERRORS as error:
        lock.close()
        raise translate(error, path) from error
    except OSError as error:
        lock.close()
        raise storage_error(error, folder) from error
    except BaseException:
        lock.close()
        raise


def _prepare(path: Path, *, thorough: bool, stamp: str) -> tuple[Path, str] | None:
    aside = None
    size = path.stat().st_size if path.exists() else 0
    wal = Path(f"{path}-wal")
    problem = ""
    if size:
        try:
            examine(path, thorough=thorough)
        except StoreCorrupt as error:
            problem = error.message
        except ENGINE_ERRORS as error:
            found = translate(error, path)
            if not isinstance(found, StoreCorrupt):
                raise
            problem = found.message
    elif wal.exists() and wal.stat().st_size:
        problem = f"{path} is missing or empty, but its write-ahead log is not"
    if problem:
        aside = set_aside(path, "damaged", stamp), problem
    private_file(path)
    return aside


def _set_up(connection: sqlite3.Connection, path: Path) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != len(MIGRATIONS):
        if not version:
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        migrate(connection, str(path))
