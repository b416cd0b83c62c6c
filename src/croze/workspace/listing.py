"""What is in a folder: a drawn tree of it, and the files below it."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from croze.workspace.files import Entry
from croze.workspace.ignore import GITIGNORE, Ignore, Reader
from croze.workspace.paths import PathError

MAX_DEPTH = 64


class Listing(Struct, frozen=True):
    """A drawn tree. `left_out` counts the names that were seen but had no room; `contents` gives the
    names of each folder that has all of them in it."""

    path: str
    tree: str
    files: int
    folders: int
    left_out: int
    contents: Mapping[str, tuple[str, ...]]


@dataclass(slots=True)
class _Folder:
    path: str
    depth: int
    rows: list[tuple[str, "_Folder | None"]] = field(default_factory=list)


def draw_tree(files: Reader, path: str, *, depth: int, limit: int) -> Listing:
    """The tree of a folder to a depth (1: its own names), at most `limit` names, the upper ones first.

    Folders end in `/`. Raises `PathError`.
    """
    found = files.stat(path)
    start = "." if found is None else found.path
    names = files.list(path)
    ignore = Ignore(files, start)
    top = _Folder(start, 1)
    waiting = deque([(top, names)])
    contents: dict[str, tuple[str, ...]] = {}
    seen_files = seen_folders = left_out = 0
    while waiting:
        folder, names = waiting.popleft()
        entries = kept(names, folder.path, ignore)
        room = max(0, limit - seen_files - seen_folders)
        for entry in entries[:room]:
            if entry.kind != "folder":
                seen_files += 1
                folder.rows.append((label(entry), None))
                continue
            seen_folders += 1
            child = _Folder(_join(folder.path, entry.name), folder.depth + 1)
            folder.rows.append((label(entry), child))
            if child.depth <= depth and seen_files + seen_folders < limit:
                waiting.append((child, _names(files, child.path)))
        if len(entries) > room:
            left_out += len(entries) - room
            folder.rows.append((f"… {len(entries) - room} more", None))
        else:
            contents[folder.path] = tuple(label for label, _ in folder.rows)
    tree = "\n".join([f"{'' if start == '.' else start}/".lstrip("/") or "./", *_drawn(top, "")])
    return Listing(start, tree, seen_files, seen_folders, left_out, contents)


def files_below(files: Reader, start: str) -> Iterator[str]:
    """The resolved paths of all regular files below a folder that are not passed over, sorted."""
    ignore = Ignore(files, start)
    stack = [start]
    while stack:
        folder = stack.pop()
        folders = []
        for entry in _names(files, folder):
            if entry.kind not in ("file", "folder"):
                continue
            is_folder = entry.kind == "folder"
            if ignore.excludes(folder, entry.name, is_folder=is_folder):
                continue
            path = _join(folder, entry.name)
            if is_folder:
                folders.append(path)
            else:
                yield path
        stack.extend(reversed(folders))


def kept(names: list[Entry], folder: str, ignore: Ignore) -> list[Entry]:
    """What is not passed over of a folder's names: its folders, then the rest, sorted."""
    if not any(entry.name == GITIGNORE for entry in names):
        ignore.has_none(folder)
    found = [e for e in names if not ignore.excludes(folder, e.name, is_folder=e.kind == "folder")]
    return sorted(found, key=lambda entry: (entry.kind != "folder", entry.name))


def _names(files: Reader, folder: str) -> list[Entry]:
    try:
        return files.list(folder)
    except PathError:
        return []


def _join(folder: str, name: str) -> str:
    return name if folder == "." else f"{folder}/{name}"


def label(entry: Entry) -> str:
    """A name as it is drawn: folders end in `/`, what can't be printed is replaced."""
    name = entry.name
    if not name.isprintable():
        name = "".join(c if c.isprintable() else "�" for c in name)
    ending = {"folder": "/", "link": " (link)", "other": " (special)", "file": ""}[entry.kind]
    return name + ending


def _drawn(folder: _Folder, indent: str) -> Iterator[str]:
    for at, (label, child) in enumerate(folder.rows):
        last = at == len(folder.rows) - 1
        yield f"{indent}{'└── ' if last else '├── '}{label}"
        if child is not None:
            yield from _drawn(child, indent + ("    " if last else "│   "))
