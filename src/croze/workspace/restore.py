"""Putting files back as they were: bytes, kind and mode, one path at a time, never through a link."""

import errno
import os
import posixpath
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from croze.store.failpoint import passes
from croze.workspace.beneath import Place, locate
from croze.workspace.files import REWRITE_LIMIT, sha256, sync_folder
from croze.workspace.paths import PathError

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | getattr(os, "O_NOCTTY", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class Present(Struct, frozen=True):
    """What stands at a path: `mode` is its `st_mode`, `data` a file's bytes or a link's target.

    `data` is None for folders and special files, and for files above the limit.
    """

    mode: int
    data: bytes | None
    size: int = 0

    @property
    def digest(self) -> str | None:
        return None if self.data is None else sha256(self.data)

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)


def look(root: Path, path: str, limit: int = REWRITE_LIMIT) -> Present | None:
    """What stands at `path`, a path free of links below `root`; None where nothing does, or where a
    folder on the way has become something else."""
    try:
        with _beside(root, path) as place:
            name = posixpath.basename(path)
            found = os.stat(name, dir_fd=place.folder, follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                target = os.readlink(os.fsencode(name), dir_fd=place.folder)
                return Present(found.st_mode, target, len(target))
            if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
                return Present(found.st_mode, None, found.st_size)
            try:
                descriptor = os.open(name, _READ, dir_fd=place.folder)
            except PermissionError:
                return Present(found.st_mode, None, found.st_size)
            with os.fdopen(descriptor, "rb") as stream:
                mode = os.fstat(descriptor).st_mode
                data = stream.read(limit + 1) if stat.S_ISREG(mode) else b""
                whole = stat.S_ISREG(mode) and len(data) <= limit
                return Present(mode, data if whole else None, len(data))
    except (OSError, PathError):
        return None


def put_back(root: Path, path: str, data: bytes, mode: int) -> None:
    """Make `path` a file or link with this content and mode, in one step: what stood there before, or
    this. Missing folders are made. Raises `OSError`."""
    with _beside(root, path, make=True) as place:
        temporary, name = place.name, posixpath.basename(path)
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=place.folder)
        try:
            if stat.S_ISLNK(mode):
                os.symlink(data, os.fsencode(temporary), dir_fd=place.folder)
            else:
                _write(temporary, place.folder, data, mode)
            passes("undo.rename")
            os.rename(temporary, name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=place.folder)
            raise
        sync_folder(place.folder)


def take_away(root: Path, path: str) -> None:
    """Remove the file or link at `path`; nothing where there is none. Raises `OSError`."""
    with suppress(FileNotFoundError, NotADirectoryError), _beside(root, path) as place:
        os.unlink(posixpath.basename(path), dir_fd=place.folder)
        sync_folder(place.folder)


def remove_if_empty(root: Path, folder: str) -> None:
    """Remove a folder that has nothing in it any more."""
    with suppress(OSError), _beside(root, folder) as place:
        os.rmdir(posixpath.basename(folder), dir_fd=place.folder)


def _write(name: str, folder: int, data: bytes, mode: int) -> None:
    descriptor = os.open(name, _CREATE, 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fchmod(descriptor, stat.S_IMODE(mode))
        os.fsync(descriptor)


def temporary_name(path: str) -> str:
    """What a new version of `path` is called on its way: the same name each time, so that what a crash
    has left is found and replaced."""
    return f".croze-{sha256(os.fsencode(path))[:16]}.tmp"


@contextmanager
def _beside(root: Path, path: str, *, make: bool = False) -> Iterator[Place]:
    """Hold the folder of `path`, as the place of a new name in it: so the last component is never
    followed. A path that passes links now is refused as not there."""
    folder = posixpath.dirname(path)
    with locate(root, posixpath.join(folder, temporary_name(path)), make=make) as place:
        if posixpath.dirname(place.path) != folder:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        yield place
