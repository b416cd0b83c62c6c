"""How much a workspace holds: files, folders, bytes, and when it was changed last."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from croze.workspace.files import Details, Files
from croze.workspace.paths import PathError

if TYPE_CHECKING:
    from croze.workspace.ignore import Ignore

MOST_ENTRIES = 200_000
"""Files and folders of a project that are counted, at most."""

_GONE = ("file_not_found", "not_a_folder")
"""What has happened to a folder that vanished while others were counted."""


class WorkspaceInfo(Struct, frozen=True, rename="camel"):
    """Regular files, folders (without the root), the files' bytes, and the newest time of change of any of
    them (ISO 8601, UTC). All zero and None where nothing was written."""

    file_count: int = 0
    dir_count: int = 0
    total_size: int = 0
    last_modified: str | None = None


class Measured(Struct, frozen=True):
    """`problem` is the error that kept something from being counted; `cut` says that there is more."""

    info: WorkspaceInfo
    problem: PathError | None = None
    cut: bool = False


def measure(files: Files, *, ignore: "Ignore | None" = None, most: int | None = None) -> Measured:
    """Count everything below the root by looking at each name, at most so many; what `ignore` excludes is
    left out. Links are not followed and don't count. Raises `PathError` where the root can't be read."""
    top = files.stat(".")
    if top is None:
        return Measured(WorkspaceInfo())
    problems: list[PathError] = []
    counted = folders = size = 0
    newest, cut = top.mark[3], False
    for each in _below(files, ignore, problems):
        if most is not None and counted + folders >= most:
            cut = True
            break
        newest = max(newest, each.modified)
        counted += each.kind == "file"
        folders += each.kind == "folder"
        size += each.size
    info = WorkspaceInfo(counted, folders, size, _iso(newest))
    return Measured(info, problems[0] if problems else None, cut)


def _below(files: Files, ignore: "Ignore | None", problems: list[PathError]) -> Iterator[Details]:
    waiting = ["."]
    while waiting:
        folder = waiting.pop()
        try:
            names = files.details(folder)
        except PathError as error:
            if error.code not in _GONE:
                problems.append(error)
            continue
        for each in names:
            is_folder = each.kind == "folder"
            if not is_folder and each.kind != "file":
                continue
            if ignore is not None and ignore.excludes(folder, each.name, is_folder=is_folder):
                continue
            if is_folder:
                waiting.append(each.name if folder == "." else f"{folder}/{each.name}")
            yield each


def _iso(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds / 1e9, tz=UTC).isoformat(timespec="milliseconds")
