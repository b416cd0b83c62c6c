"""The project's tree as an agent is told it: one scan from the root down, cut to a number of characters."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from croze.workspace.files import Entry, Files
from croze.workspace.ignore import Ignore
from croze.workspace.listing import kept, label
from croze.workspace.paths import PathError
from croze.workspace.sensitive import is_sensitive

DEPTH = 3
SMALL, MEDIUM = 20, 100
"""Roots with fewer entries are scanned one level deeper than `DEPTH`, larger ones than these less."""

DEEPER = frozenset({"src", "docs", "examples", "packages", "lib", "app"})
"""What lies below folders of these names is scanned one level deeper."""

CHARACTERS = 3_000
SHARED_CHARACTERS = 10_000
"""Characters of a tree for one agent, and where several share it (teams, `croze docs`)."""

MOST_ENTRIES = 200_000
MOST_SECONDS = 3.0
"""A scan ends where it has met so many entries or taken so long: the folder is hardly a project."""

_ROOM_FOR_MARKER = 90
_LEAST_ROW = 6
_MORE = "… {count:,} more"


class TreeOptions(Struct, frozen=True):
    """`depth` is 2 to 4, None for what fits the root's size; `characters` bound the drawn tree."""

    depth: int | None = None
    characters: int = CHARACTERS


_OPTIONS = TreeOptions()


class Tree(Struct, frozen=True):
    """A drawn tree. `entries` counts all that was found within `depth`, `left_out` those of them that
    have no row; not `complete`: the scan ended early. `whole` has the folders of which every entry has a
    row, with these entries. `at` is nanoseconds since the epoch, `seconds` what the scan took; `error` says why there is
    none."""

    text: str
    depth: int
    entries: int
    left_out: int
    complete: bool
    at: int
    seconds: float
    whole: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    error: str = ""


class _Node(Struct):
    """A name in the tree; `path` only of folders. `level` counts from 1 as the depth does, but not again what is below a folder
    of `DEEPER`."""

    label: str
    path: str
    depth: int
    level: int
    favoured: bool
    children: "list[_Node]" = field(default_factory=list)


def scan(
    files: Files,
    options: TreeOptions = _OPTIONS,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> Tree:
    """Scan and draw the tree of the root. A folder that can't be read has no rows; where that is the
    root itself, the tree is empty and says why. Never raises for what it finds."""
    began, at = clock(), time.time_ns()
    root = _Node("", ".", 0, 0, False)
    try:
        names = files.list(".")
    except PathError as error:
        depth = options.depth or DEPTH
        return Tree("", depth, 0, 0, True, at, clock() - began, error=error.message)
    walk = _Walk(files, Ignore(files), clock, began + MOST_SECONDS)
    first = walk.children(root, names)
    depth = options.depth or fitting_depth(len(root.children))
    complete = walk.below(first, depth)
    text, shown, whole = _drawn(root, walk.entries, options.characters, complete=complete)
    left_out, taken = walk.entries - shown, clock() - began
    return Tree(text, depth, walk.entries, left_out, complete, at, taken, whole)


def fitting_depth(entries: int) -> int:
    """How deep a project is scanned whose root has so many entries."""
    if entries < SMALL:
        return DEPTH + 1
    return DEPTH if entries < MEDIUM else DEPTH - 1


class _Walk(Struct):
    files: Files
    ignore: Ignore
    clock: Callable[[], float]
    deadline: float
    entries: int = 0

    def children(self, folder: _Node, names: Sequence[Entry]) -> list[_Node]:
        """The rows of a folder; gives those that are folders themselves and may hold more."""
        found = [e for e in kept(list(names), folder.path, self.ignore) if not is_sensitive(e.name)]
        deeper = folder.favoured
        level = folder.level + 1
        if not deeper and folder.path.rpartition("/")[2] in DEEPER:
            deeper, level = True, folder.level
        top = "" if folder.path == "." else f"{folder.path}/"
        depth = folder.depth + 1
        rows = [
            _Node(label(e), top + e.name if e.kind == "folder" else "", depth, level, deeper)
            for e in found
        ]
        folder.children = rows
        self.entries += len(rows)
        return [row for row, e in zip(rows, found, strict=True) if e.kind == "folder"]

    def below(self, first: list[_Node], depth: int) -> bool:
        """Scan on, the upper folders first; False where it had to end early."""
        waiting = deque(first)
        while waiting:
            folder = waiting.popleft()
            level = folder.level
            if folder.favoured or folder.path.rpartition("/")[2] not in DEEPER:
                level += 1
            if level > depth:
                continue
            if self.entries > MOST_ENTRIES or self.clock() > self.deadline:
                return False
            try:
                names = self.files.list(folder.path)
            except PathError:
                continue
            waiting.extend(self.children(folder, names))
        return True


def _drawn(
    root: _Node, entries: int, room: int, *, complete: bool
) -> tuple[str, int, dict[str, tuple[str, ...]]]:
    """The tree within `room` characters, how many entries have a row in it, and which folders are whole.

    From above, stage by stage: one that doesn't fit whole gives each of its folders the same number of
    rows, and is the last.
    """
    stages = _stages(root)
    size = sum(_size(folder, len(folder.children)) for stage in stages for folder in stage)
    if complete and size <= room + 1:
        every = [folder for stage in stages for folder in stage]
        return "\n".join(_rows(root, {}, "")), entries, _contents(every)
    left = room - _ROOM_FOR_MARKER
    caps: dict[str, int] = {}
    standing = {root.path}
    whole: list[_Node] = []
    shown = 0
    for stage in stages:
        folders = [folder for folder in stage if folder.path in standing]
        cap, size = _cap(folders, left)
        for folder in folders if cap else ():
            caps[folder.path] = min(cap, len(folder.children))
            shown += caps[folder.path]
            if caps[folder.path] == len(folder.children):
                whole.append(folder)
            standing.update(node.path for node in folder.children[:cap] if node.path)
        left -= size
        if any(caps.get(folder.path, 0) < len(folder.children) for folder in folders):
            break
    marker = f"… {entries - shown:,} of {entries:,} entries left out"
    if not complete:
        marker = f"… {entries - shown:,} of at least {entries:,} entries left out: too many to scan"
    return "\n".join([*_rows(root, caps, ""), marker]), shown, _contents(whole)


def _contents(folders: Iterable[_Node]) -> dict[str, tuple[str, ...]]:
    return {each.path: tuple(node.label for node in each.children) for each in folders}


def _stages(root: _Node) -> list[list[_Node]]:
    """The folders that have rows, in groups: by the level of their rows, then by their depth."""
    groups: dict[tuple[int, int], list[_Node]] = {}
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        if folder.children:
            row = folder.children[0]
            groups.setdefault((row.level, row.depth), []).append(folder)
            waiting += [child for child in folder.children if child.children]
    return [groups[key] for key in sorted(groups)]


def _cap(folders: Sequence[_Node], room: int) -> tuple[int, int]:
    """The largest number of rows a folder for which these fit, and their size; 0 where one is too many."""
    counts = [len(folder.children) for folder in folders]
    low, size, high = 0, 0, max(counts, default=0)
    tried = high  # all of them is the cheapest guess, and more often right than any other
    while low < high:
        needed = room + 1
        if _LEAST_ROW * sum(min(count, tried) for count in counts) <= room:
            needed = sum(_size(folder, tried) for folder in folders)
        if needed <= room:
            low, size = tried, needed
        else:
            high = tried - 1
        tried = (low + high + 1) // 2
    return low, size


def _size(folder: _Node, cap: int) -> int:
    """Characters of a folder's first rows, with the row that counts the others."""
    indent = 4 * (folder.depth + 1) + 1
    size = sum(indent + len(node.label) for node in folder.children[:cap])
    if cap < len(folder.children):
        size += indent + len(_MORE.format(count=len(folder.children) - cap))
    return size


def _rows(folder: _Node, caps: dict[str, int], indent: str) -> Iterator[str]:
    """The drawn rows; without `caps` all of them, else of each folder as many as it says."""
    rows: list[tuple[str, _Node | None]] = [(node.label, node) for node in folder.children]
    if caps:
        cap = caps.get(folder.path, 0)
        left_out = len(rows) - cap
        rows = rows[:cap]
        if left_out and cap:
            rows.append((_MORE.format(count=left_out), None))
    for at, (text, node) in enumerate(rows):
        last = at == len(rows) - 1
        yield f"{indent}{'└── ' if last else '├── '}{text}"
        if node is not None and node.children:
            yield from _rows(node, caps, indent + ("    " if last else "│   "))
