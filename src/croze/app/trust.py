"""Which files of a project may act or instruct: an exact list of hashes in the user's state folder.

`trusted.json`: {"version": 1, "projects": {"<root>": {"files": {"<path below it>": "<SHA-256>"}, "declined":
"<digest>"}}}. The contents that were trusted lie beside it in `trusted/`, so that a change can be shown.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from croze.types.errors import ConfigError

VERSION = 1
_MOST = 64 << 20
_CONTENTS = "trusted"
MOST_KEPT = 1_000_000
"""Bytes of a content that is kept so that a change can be shown."""


class Trusted(Struct, frozen=True):
    """What is kept of one project: its trusted files with their hashes, and the digest of those that the
    user was asked about and didn't trust."""

    files: Mapping[str, str] = {}
    declined: str = ""


class Trust(Struct, frozen=True):
    """What the user trusts of the project at `root`. `once` is trusted too, for this run only."""

    listed: Path
    root: Path
    once: Mapping[str, str] = field(default_factory=dict)

    @property
    def kept(self) -> Trusted:
        """What the list has of this project. Raises ConfigError where it can't be read."""
        return projects(self.listed).get(str(self.root), Trusted())

    def holds(self, name: str, data: bytes | None) -> bool:
        """Whether exactly this content of the file may act; one that couldn't be read never may. Raises
        ConfigError where the list can't be read."""
        known = self.once.get(name), self.kept.files.get(name)
        return data is not None and any(known) and sha256(data).hexdigest() in known

    def names(self, name: str) -> bool:
        """Whether any content of the file is trusted."""
        return name in self.once or name in self.kept.files

    def add(self, files: Mapping[str, bytes | str], *, whole: bool = False) -> None:
        """Trust these contents (or SHA-256s) from now on; `whole`: these and nothing else of the project."""
        hashes = {
            name: data if isinstance(data, str) else sha256(data).hexdigest()
            for name, data in files.items()
        }
        contents = [data for data in files.values() if isinstance(data, bytes)]

        def change(kept: dict[str, Trusted]) -> None:
            before = {} if whole else kept.get(str(self.root), Trusted()).files
            kept[str(self.root)] = Trusted({**before, **hashes})

        self._write(change, [data for data in contents if len(data) <= MOST_KEPT])

    def decline(self, digest: str) -> None:
        """Remember that the user was asked about what has this digest, and didn't trust it."""

        def change(kept: dict[str, Trusted]) -> None:
            before = kept.get(str(self.root), Trusted())
            kept[str(self.root)] = Trusted(before.files, digest)

        self._write(change)

    def forget(self) -> bool:
        """Trust nothing of the project any more; False where nothing of it was kept."""
        there = str(self.root) in projects(self.listed)
        if there:
            self._write(lambda kept: kept.pop(str(self.root), None))
        return there

    def content(self, name: str) -> bytes | None:
        """The content of a file that was trusted; None where there is none, or it isn't what it was."""
        digest = self.kept.files.get(name, "")
        try:
            data = (self.listed.parent / _CONTENTS / digest).read_bytes() if digest else None
        except OSError:
            return None
        return data if data is not None and sha256(data).hexdigest() == digest else None

    def _write(
        self, change: Callable[[dict[str, Trusted]], Any], contents: Sequence[bytes] = ()
    ) -> None:
        folder = self.listed.parent / _CONTENTS
        try:
            with _locked(self.listed):
                kept = dict(projects(self.listed))
                change(kept)
                folder.mkdir(mode=0o700, exist_ok=True)
                for data in contents:
                    path = folder / sha256(data).hexdigest()
                    if not path.exists():
                        _replace(path, data, sync=False)
                values = {
                    root: {"files": dict(each.files), "declined": each.declined}
                    for root, each in sorted(kept.items())
                }
                document = {"version": VERSION, "projects": values}
                _replace(self.listed, json.dumps(document, indent=1).encode() + b"\n")
                wanted = {digest for each in kept.values() for digest in each.files.values()}
                for entry in os.scandir(folder):
                    if entry.name not in wanted:
                        os.unlink(entry.path)
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise ConfigError(
                f"the list of trusted projects can't be written: {self.listed}: {reason}",
                hint=f"make {self.listed.parent} a folder that you may write to",
                code="trust_unwritable",
                path=str(self.listed),
                folder=str(self.listed.parent),
                reason=reason,
            ) from error


def projects(listed: Path) -> Mapping[str, Trusted]:
    """All projects of the list, by their roots. Raises ConfigError where it can't be read."""
    try:
        found = listed.stat()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise _unreadable(listed, os.strerror(error.errno or 0)) from error
    return _read(listed, (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino))


@lru_cache(maxsize=4)
def _read(listed: Path, _mark: tuple[int, int, int, int]) -> Mapping[str, Trusted]:
    """The list as it is while its mark is the same."""
    try:
        with listed.open("rb") as file:
            data = file.read(_MOST + 1)
        document = json.loads(data)
        if not isinstance(document, dict):
            raise TypeError
        version = document.get("version", 0)
        if version not in (0, VERSION):
            reason = f"a newer croze has written it (version {version!r})"
            raise _unreadable(listed, reason)
        # Before it had a version the list was only the files of each root.
        rows = document["projects"] if version else {r: {"files": f} for r, f in document.items()}
        return {root: _trusted(row) for root, row in rows.items()}
    except OSError as error:
        raise _unreadable(listed, os.strerror(error.errno or 0)) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _unreadable(listed, "not a list of projects with their files") from error


def _trusted(row: Any) -> Trusted:
    files, declined = row["files"], row.get("declined", "")
    if not all(isinstance(each, str) for each in (declined, *files.keys(), *files.values())):
        raise TypeError
    return Trusted(files, declined)


def _replace(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Write a file for the user's eyes only: old or new, never half."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with suppress(FileNotFoundError):
        draft.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(draft, flags, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with suppress(FileNotFoundError):
            draft.unlink()
        raise
    if not sync:
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def _locked(listed: Path) -> Iterator[None]:
    """One writer at a time, of all processes; the lock dies with its holder."""
    listed.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = listed.with_name(f"{listed.name}.lock")
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _unreadable(path: Path, reason: str) -> ConfigError:
    return ConfigError(
        f"the list of trusted projects can't be read: {path}: {reason}",
        hint=f"repair or remove {path}",
        code="trust_unreadable",
        path=str(path),
        reason=reason,
    )
