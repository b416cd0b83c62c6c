"""What the agents of one run have listed and read, shared between them and held against the disk at each
use."""

import hashlib
import os
import sys
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from threading import Lock
from typing import Any, TypeVar

from msgspec import Struct

from croze.edit.source import Source, read_source
from croze.workspace.files import Change, Entry, FileData, Files, FileStat, Mark, mark_of
from croze.workspace.paths import PathError
from croze.workspace.sensitive import is_sensitive
from croze.workspace.snapshot import RACY_NS
from croze.workspace.tree import Tree, TreeOptions, scan

LIMIT = 16 << 20
"""Bytes of memory that the contents and listings take at most; the least recently used go first."""

LARGEST = 2 << 20
"""A larger file is read anew each time."""

WHOLE = 8 << 20
"""Above this size a file is not read whole."""

HOT = 3
"""A file that was read this many times in a run is hot."""

HEAD = 4096
"""Bytes that are kept of a file that is no text: by these its kind is told."""

MOST_PRELOADED = 16
_Kind = TypeVar("_Kind")
_COARSE_NS = 2_000_000_000
_ENTRY_BYTES = 150


class Document(Struct, frozen=True):
    """A file that was read whole. `source` is None where it is no text; then `head` is how it begins.
    `hit`: from the cache, by which the disk was asked for nothing but its stat."""

    stat: FileStat
    sha256: str
    source: Source | None
    head: bytes = b""
    hit: bool = False


class Visited(Struct, frozen=True):
    """A folder that was listed: its names (folders end in `/`), when, in nanoseconds since the epoch,
    and its stat then."""

    path: str
    items: tuple[str, ...]
    at: int
    mark: Mark


@dataclass(slots=True)
class CacheStats:
    """What was asked of the cache. `accesses` counts by path; `shared` how often a tree was handed to an
    agent without a scan."""

    scans: int = 0
    shared: int = 0
    hits: int = 0
    misses: int = 0
    accesses: Counter[str] = field(default_factory=Counter)

    @property
    def hit_rate(self) -> float | None:
        """The share of hits, None where nothing was asked."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else None


class _Held(Struct, frozen=True):
    mark: Mark
    size: int
    value: Document | tuple[Entry, ...]


_Key = tuple[str, str, str]
"""Root, `read` or `list`, and path."""


class RunCache:
    """The cache of one run, passed to every agent of it. Safe to use from several threads.

    Nothing is taken from it whose stat has changed, or had changed so shortly before it was read that
    another change would leave the same stat. Sensitive files never enter.
    """

    def __init__(self, *, limit: int = LIMIT, clock: Callable[[], int] = time.time_ns) -> None:
        self._limit = limit
        self._clock = clock
        self._lock = Lock()
        self._held: OrderedDict[_Key, _Held] = OrderedDict()
        self._visits: dict[tuple[str, str], Visited] = {}
        self._trees: dict[tuple[str, TreeOptions], Tree] = {}
        self._scanning: dict[tuple[str, TreeOptions], Lock] = {}
        self._bytes = 0
        self._beside: dict[Any, Any] = {}
        self.stats = CacheStats()

    @property
    def bytes(self) -> int:
        """What the contents and listings take."""
        return self._bytes

    def beside(self, kind: type[_Kind]) -> _Kind:
        """What else is known for as long as the run: one of each kind, made when first asked for."""
        with self._lock:
            if kind not in self._beside:
                self._beside[kind] = kind()
            found: _Kind = self._beside[kind]
            return found

    def watch(self, files: Files) -> None:
        """Forget what is written through `files`, and the listings of the folders that it lies in."""
        root = str(files.root)

        def forget(change: Change) -> None:
            self.forget(root, change.path, *change.made)

        files.watch(forget)

    def forget(self, root: str, *paths: str) -> None:
        """Whatever is known of these paths, and the listings of the folders that hold them."""
        with self._lock:
            for path in paths:
                folder = path.rpartition("/")[0] or "."
                self._drop((root, "read", path))
                self._drop((root, "list", path))
                self._drop((root, "list", folder))

    def tree(self, files: Files, options: TreeOptions, *, fresh: bool = False) -> tuple[Tree, bool]:
        """The project's tree, and whether it was scanned for this: that is done once a run, for whoever
        asks first; the others wait and share it. `fresh`: scanned again. Takes as long as the scan does:
        not for the event loop's own thread."""
        key = str(files.root), options
        with self._lock:
            turn = self._scanning.setdefault(key, Lock())
        with turn:
            known = None if fresh else self._trees.get(key)
            if known is not None:
                self.stats.shared += 1
                return known, False
            self.stats.scans += 1
            self._trees[key] = scan(files, options)
            return self._trees[key], True

    def known_tree(self, files: Files) -> Tree | None:
        """The tree that the run has scanned, whatever it was to be; None where there was no scan."""
        root = str(files.root)
        return next((tree for (top, _), tree in self._trees.items() if top == root), None)

    def document(self, files: Files, path: str) -> Document | None:
        """A file read whole, from here where it is the same; None for one too large for that. Raises
        `PathError`."""
        found = files.stat(path)
        if found is not None:
            held = self._get(files, "read", found)
            if isinstance(held, Document):
                self._count(found.path, hit=True)
                return Document(found, held.sha256, held.source, held.head, hit=True)
            if found.size > WHOLE:
                return None
        read = self._read(files, path)
        if read is not None:
            self._count(read.stat.path, hit=False)
        return read

    def _read(self, files: Files, path: str) -> Document | None:
        began = self._clock()
        with files.open(path) as (stat, stream):
            data = stream.read(WHOLE + 1)
            after = mark_of(os.fstat(stream.fileno()))
        if len(data) > WHOLE:
            return None
        source = read_source(data)
        head = data[:HEAD] if source is None else b""
        document = Document(stat, hashlib.sha256(data).hexdigest(), source, head)
        if after == stat.mark and len(data) == stat.size <= LARGEST:
            size = sys.getsizeof(head if source is None else source.text)
            self._put(files, "read", stat, _Held(stat.mark, size, document), began)
        return document

    def preload(self, files: Files, paths: Iterable[str]) -> int:
        """Read files before anybody asks for them, such as hot ones; gives how many are held now. What
        can't be read is passed over."""
        held = 0
        for path in islice(paths, MOST_PRELOADED):
            try:
                found = files.stat(path)
                if found is None or found.kind != "file" or found.size > LARGEST:
                    continue
                if self._get(files, "read", found) is None:
                    self._read(files, path)
                held += self._get(files, "read", found) is not None
            except PathError:
                continue
        return held

    def entries(self, files: Files, path: str) -> tuple[list[Entry], bool]:
        """The names in a folder but for `.env` and its like, and whether they were known. Raises
        `PathError`."""
        found = files.stat(path)
        if found is not None:
            held = self._get(files, "list", found)
            if isinstance(held, tuple):
                self._count(f"{found.path}/", hit=True)
                return list(held), True
        began = self._clock()
        entries = [entry for entry in files.list(path) if not entry.name.startswith(".env")]
        if found is None or found.kind != "folder":
            return entries, False
        self._count(f"{found.path}/", hit=False)
        after = files.stat(path)
        same = after is not None and after.mark == found.mark
        if same and not any(is_sensitive(entry.name) for entry in entries):
            size = sum(_ENTRY_BYTES + len(entry.name) for entry in entries)
            self._put(files, "list", found, _Held(found.mark, size, tuple(entries)), began)
        return entries, False

    def visit(self, files: Files, contents: Mapping[str, Sequence[str]]) -> None:
        """An agent has listed these folders and seen these names in them (folders end in `/`)."""
        at = self._clock()
        for path, items in contents.items():
            try:
                found = files.stat(path)
            except PathError:
                continue
            if found is not None:
                shown = tuple(item for item in items if not is_sensitive(item.rstrip("/")))
                visited = Visited(found.path, shown, at, found.mark)
                with self._lock:
                    self._visits[str(files.root), found.path] = visited

    def visited(self, files: Files) -> list[Visited]:
        """The folders below a root that agents of this run have listed and that are as they were, by
        path."""
        root = str(files.root)
        with self._lock:
            known = [each for (top, _), each in self._visits.items() if top == root]
        standing = []
        for each in sorted(known, key=lambda each: each.path):
            try:
                found = files.stat(each.path)
            except PathError:
                continue
            if found is not None and found.mark == each.mark:
                standing.append(each)
        return standing

    def hot(self, most: int = 10) -> list[str]:
        """The files that were read most often in this run, `HOT` times at least."""
        with self._lock:
            counted = self.stats.accesses.most_common()
        return [p for p, times in counted if times >= HOT and not p.endswith("/")][:most]

    def record(self, files: Files, options: TreeOptions) -> dict[str, Any]:
        """What is cached of a root, as JSON values: `tree`, `dynamic` (the folders visited) and
        `metadata`. Times are ISO 8601, UTC."""
        tree = self._trees.get((str(files.root), options))
        dynamic = {
            each.path: {"items": list(each.items), "cached_at": iso(each.at)}
            for each in self.visited(files)
        }
        metadata = {} if tree is None else metadata_of(tree)
        return {"tree": tree.text if tree else "", "dynamic": dynamic, "metadata": metadata}

    def _count(self, path: str, *, hit: bool) -> None:
        with self._lock:
            self.stats.hits += hit
            self.stats.misses += not hit
            if not is_sensitive(path):
                self.stats.accesses[path] += 1

    def _get(self, files: Files, kind: str, found: FileStat) -> Document | tuple[Entry, ...] | None:
        key = str(files.root), kind, found.path
        with self._lock:
            held = self._held.get(key)
            if held is None:
                return None
            if held.mark != found.mark:
                self._drop(key)
                return None
            self._held.move_to_end(key)
            return held.value

    def _put(self, files: Files, kind: str, stat: FileStat, held: _Held, began: int) -> None:
        """Hold what was read since `began`, unless it may have changed in the same tick of the clock."""
        if is_sensitive(stat.path) or _racy(stat.mark, began) or held.size > self._limit:
            return
        key = str(files.root), kind, stat.path
        with self._lock:
            self._drop(key)
            self._held[key] = held
            self._bytes += held.size
            while self._bytes > self._limit:
                self._drop(next(iter(self._held)))

    def _drop(self, key: _Key) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._bytes -= held.size


class CachedFiles:
    """A workspace's files as listings see them, through the cache. `hit` stays true while every folder
    that was asked for was known."""

    def __init__(self, cache: RunCache, files: Files) -> None:
        self._cache = cache
        self._files = files
        self.hit = True

    def stat(self, path: str) -> FileStat | None:
        return self._files.stat(path)

    def list(self, path: str = ".") -> list[Entry]:
        entries, hit = self._cache.entries(self._files, path)
        self.hit = self.hit and hit
        return entries

    def read(self, path: str, limit: int) -> FileData:
        return self._files.read(path, limit)


def metadata_of(tree: Tree) -> dict[str, Any]:
    """What is recorded of a scan; `size` in characters, `seconds` what it took."""
    found: dict[str, Any] = {
        "cached_at": iso(tree.at),
        "size": len(tree.text),
        "max_depth": tree.depth,
        "entries": tree.entries,
        "left_out": tree.left_out,
        "complete": tree.complete,
        "seconds": round(tree.seconds, 6),
        "error": tree.error or None,
    }
    return found


def iso(at: int) -> str:
    """A time in nanoseconds since the epoch as ISO 8601, UTC, in milliseconds."""
    moment = datetime.fromtimestamp(at / 1e9, tz=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _racy(mark: Mark, began: int) -> bool:
    """Whether a file was changed so shortly before (or after) `began` that it may change again without
    another stat. File systems that keep whole seconds only are given two of them."""
    _, _, _, mtime, ctime, _ = mark
    tick = _COARSE_NS if mtime % 1_000_000_000 == 0 else RACY_NS
    return max(mtime, ctime) > began - tick
