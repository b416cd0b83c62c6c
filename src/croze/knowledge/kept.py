"""What was read out of files of knowledge, kept in the user's cache from one session to the next."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct, field

from croze.knowledge.find import Found
from croze.workspace.files import Mark

KEPT = 500
"""Contents and files that are kept; the oldest go."""
_VERSION = 1

T = TypeVar("T")


class _Seen(Struct, frozen=True):
    mark: Mark
    sha256: str


class _File(Struct, Generic[T]):
    version: int = _VERSION
    seen: dict[str, _Seen] = field(default_factory=dict)
    values: dict[str, T] = field(default_factory=dict)


def key_of(found: Found) -> str:
    """What a value is kept under: another content, or another name, may give another."""
    return f"{found.sha256} {'/'.join(found.path.split('/')[-2:])}"


class Kept(Generic[T]):
    """Values by content, and the hashes of files that have not changed. A file of them that is damaged or
    can't be written is done without."""

    def __init__(self, path: Path, kind: type[T]) -> None:
        self._path = path
        self._kind = kind
        self._file: _File[T] | None = None
        self._changed = False

    def get(self, found: Found) -> T | None:
        return self._load().values.get(key_of(found))

    def put(self, found: Found, value: T) -> None:
        values = self._load().values
        values.pop(key_of(found), None)
        values[key_of(found)] = value
        self._changed = True

    def digest(self, found: Found) -> str:
        """The SHA-256 of a file that has not changed since it was read; empty where that isn't known."""
        seen = self._load().seen.get(found.path)
        return seen.sha256 if seen is not None and seen.mark == found.mark else ""

    def remember(self, found: Found) -> None:
        """Keep the hash of a file that was read just now."""
        seen = self._load().seen
        seen.pop(found.path, None)
        seen[found.path] = _Seen(found.mark, found.sha256)
        self._changed = True

    def save(self) -> None:
        if self._file is None or not self._changed:
            return
        self._changed = False
        for table in (self._file.values, self._file.seen):
            for key in list(table)[:-KEPT]:
                del table[key]
        draft = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
            with os.fdopen(os.open(draft, flags, 0o600), "wb") as stream:
                stream.write(msgspec.json.encode(self._file))
            os.replace(draft, self._path)

    def _load(self) -> _File[T]:
        if self._file is None:
            self._file = _File()
            with suppress(OSError, msgspec.DecodeError):
                kept = msgspec.json.decode(self._path.read_bytes(), type=_File[self._kind])  # type: ignore[name-defined]  # known at run time only
                if kept.version == _VERSION:
                    self._file = kept
        return self._file
