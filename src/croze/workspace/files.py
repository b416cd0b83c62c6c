"""The files of a workspace: the only module that opens its paths."""

import errno
import hashlib
import os
import secrets
import stat as modes
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Literal, TypeVar

from msgspec import Struct

from croze.store.failpoint import passes
from croze.store.files import private_folder
from croze.workspace.beneath import Place, locate
from croze.workspace.paths import PathError, WorkspaceKind, failure, normalise, refuse_protected

Kind = Literal["file", "folder", "link", "other"]
Mark = tuple[int, int, int, int, int, int]
"""Device, inode, size, mtime and ctime in nanoseconds, and mode of a file or folder."""

REWRITE_LIMIT = 64 << 20
"""Bytes; a larger file is not rewritten, because its old content could not be kept."""

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | getattr(os, "O_NOCTTY", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_TEMPORARY = ".croze-", ".tmp"


@dataclass(frozen=True, slots=True)
class FileStat:
    """`path` is resolved and relative, `size` in bytes. `mark` changes with whatever is written."""

    path: str
    kind: Kind
    size: int
    mark: "Mark" = field(default=(0,) * 6, compare=False)


class Entry(Struct, frozen=True):
    """One name of a folder; a link is not followed."""

    name: str
    kind: Kind


class Details(Entry, frozen=True):
    """One name with its size in bytes (0 for what is no file) and its mtime in nanoseconds."""

    size: int
    modified: int


_Named = TypeVar("_Named", bound=Entry)


class FileData(Struct, frozen=True):
    """Bytes of a file, `complete` unless it is longer than the limit."""

    stat: FileStat
    data: bytes
    complete: bool

    @property
    def sha256(self) -> str:
        """Of `data`: the file's hash only where `complete`."""
        return sha256(self.data)


class Written(Struct, frozen=True):
    """What a write did: the resolved path, and the bytes before (None: there was no file)."""

    path: str
    before: bytes | None


class Change(Struct, frozen=True):
    """What is about to happen to a file. `mode` is its `st_mode` (None: there is no file), `after` is
    None where it is removed, `made` names the folders that have been made for it, `temporary` the file
    in the same folder that is going to take its place."""

    path: str
    before: bytes | None
    after: bytes | None
    mode: int | None
    made: tuple[str, ...] = ()
    temporary: str = ""


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Files:
    """File operations below a root. Every path is one that a model wrote; every error a `PathError`."""

    __slots__ = ("_before_change", "_kind", "_root")

    def __init__(self, root: Path, *, kind: WorkspaceKind) -> None:
        self._root = root
        self._kind = kind
        self._before_change: tuple[Callable[[Change], None], ...] = ()

    @property
    def root(self) -> Path:
        return self._root

    def watch(self, before_change: Callable[[Change], None]) -> None:
        """Call this too before each change of a file, when nothing has happened to it yet: what it
        raises stops the change."""
        self._before_change += (before_change,)

    def stat(self, path: str) -> FileStat | None:
        """What `path` is, links followed; None where there is nothing."""
        try:
            with self._at(path, "read") as place:
                return None if place.stat is None else _file_stat(place.path, place.stat)
        except PathError as error:
            if error.code == "file_not_found":
                return None
            raise

    @contextmanager
    def open(self, path: str) -> Iterator[tuple[FileStat, BufferedReader]]:
        """A regular file for reading, from its start."""
        with self._at(path, "read") as place:
            descriptor, found = _open_regular(place, path)
            with os.fdopen(descriptor, "rb") as stream:
                yield _file_stat(place.path, found), stream

    def read(self, path: str, limit: int = REWRITE_LIMIT) -> FileData:
        """At most `limit` bytes of a regular file."""
        with self.open(path) as (found, stream):
            data = stream.read(limit + 1)
            return FileData(found, data[:limit], complete=len(data) <= limit)

    def list(self, path: str = ".") -> list[Entry]:
        """The names in a folder, sorted; none for a workspace that has not been written yet."""
        return [*self._names(path, lambda entry: Entry(entry.name, _entry_kind(entry)))]

    def details(self, path: str = ".") -> tuple[Details, ...]:
        """The same with sizes and times."""
        return self._names(path, _details)

    def _names(self, path: str, of: "Callable[[os.DirEntry[str]], _Named]") -> tuple[_Named, ...]:
        try:
            with (
                self._at(path, "read") as place,
                _opened_folder(place, path) as descriptor,
                os.scandir(descriptor) as entries,
            ):
                found = []
                for entry in entries:
                    with suppress(FileNotFoundError):  # it has just gone
                        if not is_temporary(entry.name):
                            found.append(of(entry))
        except PathError as error:
            if error.code == "file_not_found" and not self._root.exists():
                return ()
            raise
        return tuple(sorted(found, key=lambda entry: entry.name))

    @contextmanager
    def folder(self, path: str = ".") -> Iterator[tuple[str, str]]:
        """Hold a folder: its resolved path, and a name by which a program can be started in it even
        where its path is meanwhile made to lead elsewhere (Linux)."""
        with self._at(path, "read") as place, _opened_folder(place, path) as descriptor:
            handle = f"/proc/self/fd/{descriptor}"
            yield place.path, handle if os.path.isdir(handle) else str(self._root / place.path)

    def write(self, path: str, data: bytes, *, expect: str | None = None) -> Written:
        """Replace or make a file in one step: old or new bytes, never mixed, also after a crash.

        Mode and owner stay, missing folders are made, a link is written through. `expect` is the
        SHA-256 that the present content must have ("": there must be no file), else `file_changed`.
        """
        with self._at(path, "write") as place:
            if not place.name:
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
            before = _present(place, path)
            _check(expect, before, path)
            temporary = secrets.token_hex(8).join(_TEMPORARY)
            self._announce(place, before, data, temporary)
            _replace(place, data, temporary)
            return Written(place.path, before)

    def remove(self, path: str, *, expect: str | None = None) -> Written:
        """Remove a regular file (through a link: the file it leads to); gives its last bytes."""
        with self._at(path, "remove") as place:
            before = _present(place, path)
            if before is None:
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
            _check(expect, before, path)
            self._announce(place, before, None)
            os.unlink(place.name, dir_fd=place.folder)
            passes("files.changed")
            sync_folder(place.folder)
            return Written(place.path, before)

    def _announce(
        self, place: Place, before: bytes | None, after: bytes | None, temporary: str = ""
    ) -> None:
        if self._before_change:
            mode = None if place.stat is None else place.stat.st_mode
            self.announce(Change(place.path, before, after, mode, place.made, temporary))

    def announce(self, change: Change) -> None:
        """Tell those who watch of a change that is about to be made, by other means than these too."""
        for before_change in self._before_change:
            before_change(change)
        passes("files.announced")

    @contextmanager
    def _at(self, path: str, doing: Literal["read", "write", "remove"]) -> Iterator[Place]:
        relative = normalise(path, root=self._root, kind=self._kind)
        if doing != "read":
            refuse_protected(relative)
        try:
            if doing == "write" and self._kind == "task":
                private_folder(self._root)
            with locate(self._root, relative, make=doing == "write") as place:
                if doing != "read":
                    refuse_protected(place.path)
                yield place
        except OSError as error:
            raise failure(error, path, "read" if doing == "read" else "write") from error


def _check(expect: str | None, before: bytes | None, path: str) -> None:
    if expect is not None and expect != ("" if before is None else sha256(before)):
        raise PathError(
            "file_changed", path, f"{path} has changed meanwhile; nothing was written.",
            hint="Read it again, then repeat the change.",
        )  # fmt: skip


def _open_regular(place: Place, path: str) -> tuple[int, os.stat_result]:
    if place.stat is None:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    if not place.name or modes.S_ISDIR(place.stat.st_mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    # Looked at before it is opened, because opening a device may already do something.
    if modes.S_ISREG(place.stat.st_mode):
        descriptor = os.open(place.name, _READ, dir_fd=place.folder)
        found = os.fstat(descriptor)
        if modes.S_ISREG(found.st_mode):
            return descriptor, found
        os.close(descriptor)
    raise PathError("not_a_file", path, f"{path} is {_special(place.stat)}, not a regular file.")


def _present(place: Place, path: str) -> bytes | None:
    if place.stat is None:
        return None
    descriptor, found = _open_regular(place, path)
    with os.fdopen(descriptor, "rb") as stream:
        if found.st_size > REWRITE_LIMIT:
            raise PathError(
                "write_failed", path, f"{path} has {found.st_size:,} bytes: too large to rewrite.",
                hint="Change it with a command.",
            )  # fmt: skip
        return stream.read()


def _replace(place: Place, data: bytes, temporary: str) -> None:
    descriptor = os.open(temporary, _CREATE, 0o666, dir_fd=place.folder)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if place.stat is not None:
                _keep_owner(descriptor, place.stat)
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
        passes("files.before")
        os.rename(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        passes("files.changed")
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=place.folder)
        raise
    sync_folder(place.folder)


def _keep_owner(descriptor: int, old: os.stat_result) -> None:
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (old.st_uid, old.st_gid):
        with suppress(PermissionError):
            os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, modes.S_IMODE(old.st_mode))


def sync_folder(folder: int) -> None:
    """Make new and renamed names of a held folder survive a power loss."""
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network and FUSE file systems can't sync a folder; the rename itself has succeeded.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(descriptor)


@contextmanager
def _opened_folder(place: Place, path: str) -> Iterator[int]:
    if place.stat is None:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    if not modes.S_ISDIR(place.stat.st_mode):
        raise PathError("not_a_folder", path, f"{path} is a file, not a folder.")
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(place.name or ".", flags, dir_fd=place.folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _file_stat(path: str, found: os.stat_result) -> FileStat:
    mode = found.st_mode
    if modes.S_ISREG(mode):
        kind: Kind = "file"
    else:
        kind = "folder" if modes.S_ISDIR(mode) else "other"
    return FileStat(path, kind, found.st_size, mark_of(found))


def mark_of(found: os.stat_result) -> Mark:
    return (
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
        found.st_mode,
    )


def _entry_kind(entry: "os.DirEntry[str]") -> Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _details(entry: "os.DirEntry[str]") -> Details:
    kind = _entry_kind(entry)
    found = entry.stat(follow_symlinks=False)
    return Details(entry.name, kind, found.st_size if kind == "file" else 0, found.st_mtime_ns)


def is_temporary(name: str) -> bool:
    """Whether a file is a write's own, on its way to its place."""
    return name.startswith(_TEMPORARY[0]) and name.endswith(_TEMPORARY[1])


def _special(found: os.stat_result) -> str:
    mode = found.st_mode
    if modes.S_ISFIFO(mode):
        return "a named pipe"
    if modes.S_ISSOCK(mode):
        return "a socket"
    return "a device" if modes.S_ISCHR(mode) or modes.S_ISBLK(mode) else "something special"
