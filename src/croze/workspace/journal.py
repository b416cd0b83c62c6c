"""The journal: old and new bytes of changed files by their hash, outside of the project and its `.git`.

An object is a file `<aa>/<sha256>` of deflated bytes, 0600. `pending/<session>` tells which files a
session is about to change: what stands there after a crash says what to look at.
"""

import hashlib
import os
import secrets
import time
import zlib
from collections.abc import Iterator, Set
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec import Struct

from croze.store.failpoint import passes
from croze.store.files import private_folder, storage_error, sync_folder
from croze.types.errors import StoreError

DEFAULT_QUOTA = 1 << 30
KEPT = 24 * 3600.0
"""Seconds for which an object stays although no session mentions it: one that is running may soon."""

_LEVEL = 1
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class Intent(Struct, frozen=True, omit_defaults=True):
    """A file that a call is about to change: hashes as in `FileChange`, `temporary` as in `Change`."""

    call_id: str
    path: str
    before: str | None
    after: str | None
    mode: int | None = None
    made: tuple[str, ...] = ()
    temporary: str = ""


class Trimmed(Struct, frozen=True):
    """What a clean-up took away; `wanted` of the objects are mentioned by some session."""

    objects: int
    bytes: int
    wanted: int


@dataclass(slots=True)
class Journal:
    """The objects of one project, shared by its sessions and processes. `quota` is in bytes on disk.

    `added` counts the bytes on disk that this process has added.
    """

    folder: Path
    quota: int = DEFAULT_QUOTA
    added: int = 0
    _folders: set[str] = field(default_factory=set)

    def put(self, data: bytes, *, durable: bool = True) -> str:
        """Keep `data`, once; gives its SHA-256. With `durable` it survives a power loss, too, from the
        moment this returns. Raises `StoreError` where it can't be written."""
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(digest)
        try:
            os.utime(path)
            return digest
        except OSError:
            pass
        try:
            self._write(path, zlib.compress(data, _LEVEL), durable=durable)
        except OSError as error:
            raise storage_error(error, self.folder) from error
        return digest

    def get(self, digest: str) -> bytes | None:
        """The bytes with this hash; None where they are not here, or no longer what the hash says."""
        try:
            data = zlib.decompress(self._path(digest).read_bytes())
        except (OSError, zlib.error, ValueError):
            return None
        return data if hashlib.sha256(data).hexdigest() == digest else None

    def _path(self, digest: str) -> Path:
        if len(digest) != 64 or not digest.isalnum():
            raise ValueError(f"{digest!r} is no SHA-256")
        return self.folder / digest[:2] / digest

    def _write(self, path: Path, data: bytes, *, durable: bool) -> None:
        name = path.parent.name
        if name not in self._folders:
            if not path.parent.is_dir():
                private_folder(path.parent)
                if durable:
                    sync_folder(self.folder)
            self._folders.add(name)
        temporary = path.parent / f".{secrets.token_hex(8)}.tmp"
        try:
            descriptor = os.open(temporary, _FLAGS, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                if durable:
                    os.fsync(descriptor)
            passes("journal.object")
            os.rename(temporary, path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        if durable:
            sync_folder(path.parent)
        self.added += len(data)

    def intents(self, session: str) -> "Intents":
        """The session's list of changes that it is about to make."""
        return Intents(self.folder / "pending" / session)

    def settle(self) -> None:
        """Note what this process has added to the size, which is not measured each time."""
        if not self.added:
            return
        total = self._noted_size() + self.added
        self.added = 0
        self._note_size(total)

    def is_over_quota(self) -> bool:
        """By what the sessions have noted since the last clean-up."""
        return self._noted_size() > self.quota

    def _noted_size(self) -> int:
        try:
            return int((self.folder / "size").read_text())
        except (OSError, ValueError):
            return 0

    def _note_size(self, total: int) -> None:
        with suppress(OSError):
            private_folder(self.folder)
            temporary = self.folder / f"size.{os.getpid()}"
            temporary.write_text(str(total))
            temporary.chmod(0o600)
            temporary.replace(self.folder / "size")

    def trim(self, wanted: Set[str], *, now: float | None = None, target: float = 0.8) -> Trimmed:
        """Where the objects are larger than the quota together, remove down to `target` of it: first
        what no session mentions and has lain for a day, then what is `wanted` by one, each the least
        recently used first. `now` is in seconds since the epoch."""
        objects = list(self._objects())
        size = sum(stat.st_size for _, stat in objects)
        if size <= self.quota:
            self._note_size(size)
            return Trimmed(0, 0, 0)
        now = time.time() if now is None else now
        objects.sort(key=lambda found: (found[0].name in wanted, found[1].st_mtime))
        removed = freed = lost = 0
        for path, stat in objects:
            if size - freed <= self.quota * target:
                break
            if path.name not in wanted and now - stat.st_mtime < KEPT:
                continue
            with suppress(FileNotFoundError):
                path.unlink()
            removed += 1
            freed += stat.st_size
            lost += path.name in wanted
        self._note_size(size - freed)
        return Trimmed(removed, freed, lost)

    def _objects(self) -> Iterator[tuple[Path, os.stat_result]]:
        """Every object; half-written ones of processes that have died go on the way."""
        old = time.time() - 3600
        for folder in self.folder.glob("[0-9a-f][0-9a-f]"):
            with os.scandir(folder) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        stat = entry.stat(follow_symlinks=False)
                        if len(entry.name) == 64:
                            yield Path(entry.path), stat
                        elif entry.name.endswith(".tmp") and stat.st_mtime < old:
                            os.unlink(entry.path)


class Intents:
    """The changes that a session is about to make, in a file that is emptied when they are recorded."""

    __slots__ = ("_fd", "_path", "_used")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._used = False

    def add(self, intent: Intent) -> None:
        """Durable when it returns. Raises `StoreError`."""
        try:
            if self._fd < 0:
                private_folder(self._path.parent)
                self._fd = os.open(self._path, _APPEND, 0o600)
                sync_folder(self._path.parent)
            os.write(self._fd, msgspec.json.encode(intent) + b"\n")
            os.fdatasync(self._fd)
        except OSError as error:
            raise storage_error(error, self._path) from error
        self._used = True
        passes("journal.intent")

    def settle(self) -> None:
        """What was about to be changed stands in the log now."""
        if self._used:
            os.ftruncate(self._fd, 0)
            self._used = False

    def read(self) -> list[Intent]:
        """What a process that died has left; a torn last line doesn't count."""
        try:
            lines = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"{self._path} can't be read: {error.strerror}") from error
        found = []
        for line in lines:
            with suppress(msgspec.DecodeError):
                found.append(msgspec.json.decode(line, type=Intent))
        return found

    def close(self, *, remove: bool = True) -> None:
        """Give the file back; with `remove` it goes, since everything in it is recorded."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if remove:
            self._path.unlink(missing_ok=True)
