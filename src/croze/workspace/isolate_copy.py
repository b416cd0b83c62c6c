"""A project's files copied as they stand, each named by the hash of exactly the bytes that were copied."""

import errno
import hashlib
import os
import posixpath
import stat
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from msgspec import Struct

from croze.types.errors import CrozeError
from croze.workspace.beneath import locate
from croze.workspace.paths import PathError

MOST_FILES = 200_000
MOST_BYTES = 4 << 30
"""What a work tree may hold."""

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_CHUNK = 8 << 20


class IsolationError(CrozeError):
    """No work tree could be made; nothing was left behind."""

    code = "no_worktree"


class Work(Struct, frozen=True):
    """What an agent has done to one file: bytes and `st_mode` before and after, None where there was or
    is none. `lost` says why one of them isn't known."""

    path: str
    base: bytes | None
    base_mode: int | None
    new: bytes | None
    mode: int | None
    lost: str = ""


class Copied(Struct, frozen=True):
    """One file (or link) of a work tree: the name of its content as git has it, and the copy's stat."""

    path: str
    blob: str
    mode: int
    size: int
    mtime: int
    ctime: int
    inode: int
    device: int

    def is_as(self, found: os.stat_result) -> bool:
        """Whether the copy is untouched, by its stat."""
        now = found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_mode
        return now == (self.mtime, self.ctime, self.size, self.inode, self.mode)


class Copy(Struct, frozen=True):
    """What was copied, and the paths that could not be (unreadable, special, behind a link)."""

    files: tuple[Copied, ...]
    left_out: tuple[str, ...]


def copy_files(
    source: Path,
    target: Path,
    paths: Iterable[str],
    keep: Callable[[str, bytes], None],
    form: str,
) -> Copy:
    """Copy these files of `source` into `target`, a new folder. `keep` gets each content with its name
    (`form` is the hash: sha1 or sha256). Links are copied as links and never followed."""
    copied: list[Copied] = []
    left_out: list[str] = []
    total = 0
    made: set[str] = {""}
    for folder, names in groupby(sorted(paths, key=_by_folder), key=posixpath.dirname):
        try:
            with locate(source, posixpath.join(folder, "x")) as place:
                if posixpath.dirname(place.path) != folder:
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
                for path in names:
                    if len(copied) >= MOST_FILES or total > MOST_BYTES:
                        raise _too_large(source)
                    found = _copy(place.folder, target, path, made, keep, form)
                    if isinstance(found, Copied):
                        copied.append(found)
                        total += found.size
                    elif found:
                        left_out.append(path)
        except FileNotFoundError:
            continue
        except (NotADirectoryError, PathError):
            left_out.append(folder)
    return Copy(tuple(copied), tuple(left_out))


def _by_folder(path: str) -> tuple[str, str]:
    return posixpath.dirname(path), path


def _copy(
    folder: int,
    target: Path,
    path: str,
    made: set[str],
    keep: Callable[[str, bytes], None],
    form: str,
) -> Copied | bool:
    """The copy; False where there is no such file any more, True where it can't be copied."""
    name = posixpath.basename(path)
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            data = os.readlink(os.fsencode(name), dir_fd=folder)
        elif stat.S_ISREG(found.st_mode):
            descriptor = os.open(name, _READ, dir_fd=folder)
            with os.fdopen(descriptor, "rb", buffering=0) as stream:
                found = os.fstat(descriptor)
                if found.st_size > MOST_BYTES:
                    return True
                data = stream.readall()
        else:
            return True
    except FileNotFoundError:
        return False
    except OSError:
        return True
    parent = posixpath.dirname(path)
    if parent not in made:
        if not make_folder(target, parent):
            return True
        made.add(parent)
    place = os.fsencode(f"{target}/{path}")
    if stat.S_ISLNK(found.st_mode):
        os.symlink(data, place)
        now = os.lstat(place)
    else:
        now = _write(place, data, stat.S_IMODE(found.st_mode) | 0o600)
    blob = named(data, form)
    keep(blob, data)
    return Copied(
        path=path,
        blob=blob,
        mode=now.st_mode,
        size=now.st_size,
        mtime=now.st_mtime_ns,
        ctime=now.st_ctime_ns,
        inode=now.st_ino,
        device=now.st_dev,
    )


def make_folder(root: Path, path: str) -> bool:
    """Make a folder below `root`, a real path; False where a link or a file stands on the way."""
    place = f"{root}/{path}"
    if os.path.realpath(place) != place:
        return False
    try:
        os.makedirs(place, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        return False
    return True


def _write(place: bytes, data: bytes, mode: int) -> os.stat_result:
    descriptor = os.open(place, _CREATE, mode & 0o777)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view[:_CHUNK]) :]
        now = os.fstat(descriptor)
        if stat.S_IMODE(now.st_mode) != mode & 0o777:
            os.fchmod(descriptor, mode & 0o777)
            now = os.fstat(descriptor)
        return now
    finally:
        os.close(descriptor)


def named(data: bytes, form: str) -> str:
    """The name that git gives these bytes."""
    head = b"blob %d\0" % len(data)
    if form == "sha256":
        return hashlib.sha256(head + data).hexdigest()
    return hashlib.sha1(head + data, usedforsecurity=False).hexdigest()


def keep_object(objects: Path, blob: str, data: bytes) -> None:
    """Write one loose object, if it isn't there."""
    folder = objects / blob[:2]
    folder.mkdir(exist_ok=True)
    with suppress(FileExistsError):
        head = b"blob %d\0" % len(data)
        _write(os.fsencode(folder / blob[2:]), zlib.compress(head + data, 1), 0o600)


def _too_large(source: Path) -> IsolationError:
    return IsolationError(
        f"{source} holds more than {MOST_FILES:,} files or {MOST_BYTES >> 30} GB that git doesn't ignore: "
        "too much for a work tree of its own.",
        hint="Let git ignore what isn't source, or use isolation: shared.",
        code="worktree_too_large",
        path=str(source),
    )
