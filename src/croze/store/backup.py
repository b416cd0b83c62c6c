"""Online backups of a store, made by a child process, rotated, and brought back.

Run as `python -m croze.store.backup FOLDER MAX STAMP` it makes one backup.
"""

import fcntl
import os
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Self
from urllib.parse import quote

from msgspec import Struct

from croze.store.files import open_lock

FOLDER = "backups"
NICE = 10


class Backup(Struct, frozen=True):
    """A backup: file name, microseconds since the epoch (from the file's time), bytes."""

    name: str
    at: int
    size: int


def stamp_of(now: int) -> str:
    """Microseconds since the epoch as a name's sortable UTC stamp."""
    return datetime.fromtimestamp(now / 1e6, UTC).strftime("%Y%m%dT%H%M%S")


def list_backups(folder: Path) -> list[Backup]:
    """The store's backups, newest first."""
    found = []
    for path in (folder / FOLDER).glob("log-*.db"):
        stat = path.stat()
        found.append(Backup(name=path.name, at=stat.st_mtime_ns // 1000, size=stat.st_size))
    return sorted(found, key=lambda backup: (backup.at, backup.name), reverse=True)


def newest_backup(folder: Path) -> Backup | None:
    return next(iter(list_backups(folder)), None)


def is_due(folder: Path, *, interval: float, now: int, since: int | None) -> bool:
    """Whether the last backup (or, where there is none, the store's first session, made at `since`) is
    older than `interval` seconds and the store has changed after it. A backup from the future counts
    as none: the clock was set back."""
    newest = newest_backup(folder)
    last = since if newest is None or newest.at > now + 60_000_000 else newest.at
    if last is None or now - last < interval * 1e6:
        return False
    changed = max(
        path.stat().st_mtime_ns // 1000
        for suffix in ("", "-wal")
        if (path := folder / f"log.db{suffix}").exists()
    )
    return newest is None or changed > newest.at


class BackupChild:
    """A backup that runs in a process of its own, past our end if need be."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    @classmethod
    def start(cls, folder: Path, *, max_backups: int, stamp: str) -> Self:
        """Start the child, in its own session and without our terminal.

        It is started by `posix_spawn` (no copy of this process's memory, no locks inherited).
        """
        quiet = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        # -P: else Python would look for modules in the current folder, which may be anybody's
        arguments = [sys.executable, "-P", "-m", "croze.store.backup"]
        arguments += [str(folder.absolute()), str(max_backups), stamp]
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
        return cls(
            os.posix_spawn(sys.executable, arguments, environment, file_actions=quiet, setsid=True)
        )

    def reap(self) -> bool:
        """Take the child's exit status if it has ended; whether it has."""
        if self._pid:
            try:
                pid, _ = os.waitpid(self._pid, os.WNOHANG)
            except ChildProcessError:
                pid = self._pid
            if pid:
                self._pid = 0
        return not self._pid


def make_backup(folder: Path, *, max_backups: int, stamp: str) -> Path | None:
    """Copy the store as it stands, check the copy, put it among the backups, remove the oldest.

    Returns None where another process is at it. Raises `sqlite3.Error` or `OSError`; a copy that
    fails its check is removed.
    """
    target_folder = folder / FOLDER
    target_folder.mkdir(0o700, exist_ok=True)
    target_folder.chmod(0o700)
    lock = open_lock(folder / "locks" / ".backup")
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        partial = target_folder / "partial"
        partial.unlink(missing_ok=True)
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        partial.chmod(0o600)
        try:
            _copy(folder / "log.db", partial)
            target = target_folder / f"log-{stamp}.db"
            number = 0
            while target.exists():
                number += 1
                target = target_folder / f"log-{stamp}-{number}.db"
            partial.rename(target)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        for old in list_backups(folder)[max(1, max_backups) :]:
            (target_folder / old.name).unlink(missing_ok=True)
        return target
    finally:
        os.close(lock)


def _copy(source: Path, target: Path) -> None:
    uri = f"file:{quote(str(source))}?mode=ro"
    with (
        closing(sqlite3.connect(uri, uri=True, timeout=10)) as reader,
        closing(sqlite3.connect(target)) as writer,
    ):
        reader.backup(writer)
        writer.execute("PRAGMA journal_mode=DELETE")
        (found,) = writer.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(f"the copy is damaged: {found}")
    fd = os.open(target, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def main(arguments: Sequence[str]) -> int:
    folder, max_backups, stamp = arguments
    os.nice(NICE)
    try:
        make_backup(Path(folder), max_backups=int(max_backups), stamp=stamp)
    except (OSError, sqlite3.Error):
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
