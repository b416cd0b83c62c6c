"""Moving a file within a workspace: the new name is complete before the old one goes."""

import os
import stat as modes

from croze.workspace.beneath import locate
from croze.workspace.paths import PathError, failure, normalise, refuse_protected
from croze.workspace.workspace import Workspace


def move(workspace: Workspace, source: str, destination: str, *, expect: str) -> str:
    """Give the file at `source`, whose content has the SHA-256 `expect`, the name `destination`; gives
    that as resolved. Content and mode stay. Raises `PathError` where there is a file of that name."""
    files = workspace.files
    data = files.read(source)
    if not data.complete:
        raise PathError(
            "write_failed", source, f"{source} has {data.stat.size:,} bytes: too large to move.",
            hint="Move it with a command.",
        )  # fmt: skip
    if files.stat(destination) is not None:
        raise PathError(
            "file_exists", destination, f"{destination} is already there; nothing was moved.",
            hint="Choose another name, or delete that file first.",
        )  # fmt: skip
    mode = _mode(workspace, source)
    refuse_protected(data.stat.path)
    written = files.write(destination, data.data, expect="")
    _set_mode(workspace, written.path, mode)
    files.remove(source, expect=expect)
    return written.path


def _mode(workspace: Workspace, path: str) -> int:
    relative = normalise(path, root=workspace.root, kind=workspace.kind)
    with locate(workspace.root, relative) as place:
        return 0o644 if place.stat is None else modes.S_IMODE(place.stat.st_mode)


def _set_mode(workspace: Workspace, path: str, mode: int) -> None:
    try:
        with locate(workspace.root, path) as place:
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(place.name, flags, dir_fd=place.folder)
            try:
                os.fchmod(descriptor, mode)
            finally:
                os.close(descriptor)
    except OSError as error:
        raise failure(error, path, "write") from error
