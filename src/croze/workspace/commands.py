"""What a command changes: the project is looked at before it runs and after it has ended.

The old bytes of what it changed come from the journal, else from git's objects where the file was
clean, else from copies of dirty and untracked files that were made before. What none of them has is
recorded as lost.
"""

import asyncio
import os
import stat
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field

from croze.types.errors import StoreError
from croze.workspace.changes import NOTHING, Side
from croze.workspace.files import sha256
from croze.workspace.git import Git, GitError
from croze.workspace.git_index import Indexed
from croze.workspace.journal import Journal
from croze.workspace.restore import look
from croze.workspace.snapshot import RACY_NS, Entry, Scan, Scanner, compare

SNAPSHOT_BYTES = 50_000_000
"""Of files that git has no clean copy of, so much is copied before commands, in all; and of what each
command leaves behind."""

_ASIDE_SECONDS = 0.005
_ASIDE_FILES = 20
"""What takes longer, or reads more files, is done in a thread."""

T = TypeVar("T")


class Aftermath(Struct):
    """Files that a command changed, before and after; and the folders made for new ones."""

    sides: dict[str, tuple[Side, Side]]
    made: dict[str, tuple[str, ...]]


class CommandWatch(Struct):
    """Looks at one project round the commands of one session. `before` and `after` may raise
    `TooManyFiles`."""

    root: Path
    journal: Journal
    git: Git | None
    scanner: Scanner
    _scan: Scan | None = None
    _clean: Mapping[str, Indexed] = field(default_factory=dict)
    _kept: dict[str, tuple[Entry, str]] = field(default_factory=dict)
    _budget: int = SNAPSHOT_BYTES
    _slow: bool = True

    def wrote(self, path: str, data: bytes | None) -> int | None:
        """A file tool has written (None: removed) a file, whose bytes are in the journal; gives its
        mode now."""
        entry = self.scanner.entry(path)
        if self._scan is not None:
            self._scan.entries.pop(path, None)
            if entry is not None:
                self._scan.entries[path] = entry
        if entry is None or data is None:
            self._kept.pop(path, None)
            return None
        self._kept[path] = entry, sha256(data)
        return entry[3]

    async def before(self) -> None:
        """Look at the project as the command will find it; copy what nothing else has."""
        scan = await self._look()
        if self.git is not None:
            self._clean = await self._do(self.git.index)
        fresh: Iterable[str] = scan.entries
        if self._scan is not None:
            found = compare(self._scan, scan)
            fresh = (*found.added, *found.changed, *found.suspect)
        self._scan = scan
        unkept = [path for path in fresh if not self._has_copy(path, scan)]
        if unkept:
            await self._do(lambda: self._copy(unkept, scan), many=len(unkept) > _ASIDE_FILES)

    async def after(self) -> Aftermath:
        """Look again; what differs is what the command changed."""
        old = self._scan
        assert old is not None, "before() comes before after()"
        new = await self._look()
        self._scan = new
        found = compare(old, new)
        added = [path for path in found.added if not self._was_there(path, old)]
        gone = [path for path in found.gone if not self._is_still_there(path)]
        touched = [*found.changed, *(path for path in found.suspect if path in self._kept)]
        olds = [*touched, *gone]
        many = len(added) + len(olds) > _ASIDE_FILES
        was = await self._do(lambda: self._old_from_journal(olds, old), many=many)
        was |= await self._old_from_git([path for path in olds if path not in was], old)
        now = await self._do(lambda: self._read([*added, *touched], new), many=many)
        sides = {path: (NOTHING, now.get(path, NOTHING)) for path in added}
        for path in olds:
            before = was.get(path) or Side(None, old.entries[path][3])
            sides[path] = before, now.get(path, NOTHING)
        fresh = new.folders - old.folders
        made = {path: _parents(path, fresh) for path in added} if fresh else {}
        return Aftermath(sides, made)

    async def _look(self) -> Scan:
        scan = await asyncio.to_thread(self.scanner.scan) if self._slow else self.scanner.scan()
        self._slow = scan.seconds > _ASIDE_SECONDS
        return scan

    async def _do(self, work: Callable[[], T], *, many: bool = False) -> T:
        return await asyncio.to_thread(work) if many or self._slow else work()

    def _has_copy(self, path: str, scan: Scan) -> bool:
        entry = scan.entries[path]
        kept = self._kept.get(path)
        if kept is not None and kept[0] == entry and entry[0] < scan.at - RACY_NS:
            return True
        indexed = self._clean.get(path)
        return indexed is not None and indexed.is_clean(entry)

    def _copy(self, paths: Iterable[str], scan: Scan) -> None:
        """Keep these files' bytes, small ones first, as far as the budget goes."""
        for path in sorted(paths, key=lambda path: scan.entries[path][1]):
            size = scan.entries[path][1]
            if size > self._budget:
                break
            kept = self._kept.get(path)
            present = look(self.root, path)
            if present is None or present.data is None:
                continue
            if kept is None or kept[1] != present.digest:
                self._budget -= size
                try:
                    digest = self.journal.put(present.data, durable=False)
                except StoreError:
                    return  # no space: then the old bytes of these files are not known
                self._kept[path] = scan.entries[path], digest
            else:
                self._kept[path] = scan.entries[path], kept[1]

    def _was_there(self, path: str, old: Scan) -> bool:
        """Whether a file that is new to us is older than the command: it was ignored until now."""
        try:
            return os.lstat(self.root / path).st_ctime_ns < old.at - RACY_NS
        except OSError:
            return True

    def _is_still_there(self, path: str) -> bool:
        """Whether a file that is no longer seen is ignored from now on."""
        entry = self.scanner.entry(path)
        return entry is not None and not stat.S_ISDIR(entry[3])

    def _read(self, paths: Iterable[str], scan: Scan) -> dict[str, Side]:
        """What the command has left, with copies of it as far as a command's share goes."""
        found: dict[str, Side] = {}
        share = SNAPSHOT_BYTES
        for path in paths:
            present = look(self.root, path)
            if present is None or present.is_folder:
                continue
            found[path] = Side(present.data, present.mode)
            if present.data is None or len(present.data) > share:
                continue
            share -= len(present.data)
            try:
                digest = self.journal.put(present.data, durable=False)
            except StoreError:
                share = 0
                continue
            if path in scan.entries:
                self._kept[path] = scan.entries[path], digest
        return found

    def _old_from_journal(self, paths: Iterable[str], old: Scan) -> dict[str, Side]:
        found = {}
        for path in paths:
            kept = self._kept.get(path)
            if kept is not None and kept[0] == old.entries[path]:
                data = self.journal.get(kept[1])
                if data is not None:
                    found[path] = Side(data, old.entries[path][3])
        return found

    async def _old_from_git(self, paths: Iterable[str], old: Scan) -> dict[str, Side]:
        """What git has of files that were clean; none of those that a filter program writes."""
        clean: dict[str, Indexed] = {}
        for path in paths:
            indexed = self._clean.get(path)
            if indexed is not None and indexed.is_clean(old.entries[path]):
                clean[path] = indexed
        if self.git is None or not clean:
            return {}
        try:
            for path in await self.git.filtered(list(clean)):
                clean.pop(path, None)
            blobs = await self.git.blobs({one.blob: one.size for one in clean.values()})
        except GitError:
            return {}
        found = {}
        for path, indexed in clean.items():
            data = blobs.get(indexed.blob)
            if data is not None and len(data) == indexed.size:
                with suppress(StoreError):
                    self.journal.put(data, durable=False)
                found[path] = Side(data, old.entries[path][3])
        return found


def _parents(path: str, folders: Container[str]) -> tuple[str, ...]:
    """Those of the folders that the path lies in, the outer ones first."""
    parts = path.split("/")[:-1]
    every = ("/".join(parts[: depth + 1]) for depth in range(len(parts)))
    return tuple(folder for folder in every if f"{folder}/" in folders)
