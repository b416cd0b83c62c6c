"""The store's private files: folders 0700, files 0600 whatever the umask, and locks that die with
their holder."""

import contextlib
import errno
import fcntl
import os
import time
from pathlib import Path
from typing import Self

from croze.types.errors import LockTimeout, SessionBusy, StoreError, StoreFull

_UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG}


def storage_error(error: OSError, path: Path) -> StoreError:
    """What the user is told of a failed file operation below `path`."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    kind = StoreFull if error.errno in _UNWRITABLE else StoreError
    hint = (
        "Free space there, then go on: what was saved is kept."
        if full
        else "Choose a folder that you can write to with CROZE_STORE__STORAGE_PATH."
    )
    reason = os.strerror(error.errno) if error.errno else str(error)
    return kind(f"The session store can't write in {path}: {reason}", hint=hint, path=str(path))


def private_folder(folder: Path) -> None:
    """Make `folder` and what is missing above it, each 0700. Existing folders stay as they are."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        with contextlib.suppress(FileExistsError):
            path.mkdir(0o700)
            path.chmod(0o700)


def private_file(path: Path) -> None:
    """Make an empty file 0600 where none is; an existing one is made 0600."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        if path.stat().st_mode & 0o777 != 0o600:
            path.chmod(0o600)
        return
    os.fchmod(fd, 0o600)
    os.close(fd)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make new and renamed entries of `folder` survive a power loss."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def open_lock(path: Path) -> int:
    """A descriptor of a lock file, made 0600 where it is missing; no program inherits it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(path, flags, 0o600)
    os.fchmod(fd, 0o600)
    return fd


class Lease:
    """The right to run one session: a `flock` on its file, given back by `release` or by death."""

    __slots__ = ("_fd", "_path")

    def __init__(self, path: Path, fd: int) -> None:
        self._path = path
        self._fd = fd

    @classmethod
    def take(cls, path: Path) -> Self:
        """Raises `SessionBusy` with the holder's process id where another one has it."""
        while True:
            fd = open_lock(path)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pid = os.pread(fd, 20, 0).decode("ascii", "replace").strip() or "unknown"
                os.close(fd)
                raise SessionBusy(
                    f"Session {path.name} is being run by process {pid}",
                    hint="Wait until it is done, or fork the session to go on from its state.",
                    pid=pid,
                    session=path.name,
                ) from None
            if os.fstat(fd).st_nlink:
                break
            os.close(fd)  # its last holder took the file away between our open and our lock
        with contextlib.suppress(OSError):  # on a full disk the lock holds all the same
            os.ftruncate(fd, 0)
            os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        return cls(path, fd)

    def release(self) -> None:
        if self._fd >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1


class StoreLock:
    """Who uses the store: shared by all that have it open, whole for the one that opens it first.

    Only the holder of the whole lock may check, migrate, replace or set aside the database file. The
    lock file also says whether the last user left properly.
    """

    __slots__ = ("_fd", "clean", "whole")

    def __init__(self, path: Path, *, timeout: float) -> None:
        self._fd = open_lock(path)
        self.whole = False
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.whole = True
                break
            except BlockingIOError:
                pass
            try:
                fcntl.flock(self._fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    os.close(self._fd)
                    raise LockTimeout(
                        f"Another process keeps {path.parent.parent} to itself",
                        hint="It is checking or restoring the store; try again when it is done.",
                    ) from None
            time.sleep(0.005)
        self.clean = os.pread(self._fd, 8, 0) != b"open"

    def share(self) -> None:
        """Let others in; from here until `close` the store counts as in use."""
        if self.whole:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, 0)
                os.pwrite(self._fd, b"open", 0)
            fcntl.flock(self._fd, fcntl.LOCK_SH)
            self.whole = False

    def close(self) -> None:
        """Leave; the last one to leave notes that nothing is left open."""
        if self._fd < 0:
            return
        with contextlib.suppress(OSError):
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._fd, 0)
        os.close(self._fd)
        self._fd = -1
