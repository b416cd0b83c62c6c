"""The folder of a session's long outputs: it goes when the session ends, or is found when it was killed."""

import fcntl
import os
import secrets
import shutil
import stat
from contextlib import suppress
from pathlib import Path

PREFIX = "croze-out-"
_MOST_LOOKED_AT = 20_000


class Outputs:
    """Makes the folder in `temporary` when it is asked for. Its lock is held until `close`, or until this
    process ends, however that comes about."""

    def __init__(self, temporary: Path) -> None:
        self._temporary = Path(os.path.realpath(temporary))
        self._folder: Path | None = None
        self._lock: int | None = None

    def folder(self) -> Path:
        """The folder, which only this user can look into; made anew where somebody has removed it. Where
        it can't be made it is not there."""
        if self._folder is None:
            remove_stale(self._temporary)
        if self._folder is None or not self._is_there(self._folder):
            self._unlock()
            self._folder = self._temporary / f"{PREFIX}{secrets.token_hex(8)}"
            with suppress(OSError):
                os.mkdir(self._folder, 0o700)
                self._lock = _locked(self._folder)
        return self._folder

    @property
    def made(self) -> Path | None:
        """The folder, where there is one."""
        return self._folder if self._folder is not None and self._folder.is_dir() else None

    def close(self) -> None:
        """Remove the folder and what is in it."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None
        self._unlock()

    def _is_there(self, folder: Path) -> bool:
        if self._lock is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._lock), os.lstat(folder))
        except OSError:
            return False

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_stale(temporary: Path) -> None:
    """Remove this user's folders whose process has gone: their locks are free. One that is being made at
    this moment may be among them; it is made anew when it is needed."""
    with suppress(OSError), os.scandir(temporary) as entries:
        for number, entry in enumerate(entries):
            if number >= _MOST_LOOKED_AT:
                break
            if entry.name.startswith(PREFIX):
                with suppress(OSError):
                    _remove_where_free(entry.path)


def _remove_where_free(path: str) -> None:
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return
    lock = _locked(Path(path))
    try:
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)


def _locked(folder: Path) -> int:
    """Raises OSError where another process holds the lock."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
