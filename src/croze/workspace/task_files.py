"""A workspace's files for programs: each call gives a result as JSON values, and nothing raises for what a
model wrote."""

from typing import Any

import msgspec

from croze.workspace.measure import measure
from croze.workspace.paths import PathError
from croze.workspace.workspace import Workspace

NOT_ASSIGNED = "workspace_not_assigned"
_CODES = frozenset(
    {"path_traversal_blocked", "file_not_found", "permission_denied", "write_failed", "read_failed"}
)
_TYPES = {"folder": "directory"}

Result = dict[str, Any]


def write_file(workspace: Workspace | None, path: str, content: str) -> Result:
    """Write a text file as UTF-8, its folders made. Gives `{"ok": True}`, else `ok` False and `error`:
    workspace_not_assigned, path_traversal_blocked, permission_denied or write_failed."""
    if workspace is None:
        return {"ok": False, "error": NOT_ASSIGNED}
    try:
        data = content.encode()
    except (UnicodeEncodeError, AttributeError):
        data = None
    try:
        if data is None:
            workspace.files.stat(path)  # a path that leads out is told as that
            return {"ok": False, "error": "write_failed"}
        workspace.files.write(path, data)
    except PathError as error:
        code = _code(error, "write_failed")
        return {"ok": False, "error": "write_failed" if code == "file_not_found" else code}
    return {"ok": True}


def read_file(workspace: Workspace | None, path: str) -> Result:
    """Read a UTF-8 text file, exactly. Gives `{"content": text}`, else `error`: workspace_not_assigned,
    path_traversal_blocked, file_not_found, permission_denied or read_failed."""
    if workspace is None:
        return {"error": NOT_ASSIGNED}
    try:
        found = workspace.files.read(path)
        if not found.complete:
            return {"error": "read_failed"}
        return {"content": found.data.decode()}
    except UnicodeDecodeError:
        return {"error": "read_failed"}
    except PathError as error:
        return {"error": _code(error, "read_failed")}


def list_files(workspace: Workspace | None, path: str = ".") -> Result:
    """List a folder. Gives `files`, sorted, each with `name`, `type` (file, directory, link or other) and
    `size` in bytes; none where nothing was written yet. Else `error`, as for `read_file`."""
    if workspace is None:
        return {"error": NOT_ASSIGNED}
    try:
        names = workspace.files.details(path)
    except PathError as error:
        return {"error": _code(error, "read_failed")}
    return {
        "files": [
            {"name": _text(each.name), "type": _TYPES.get(each.kind, each.kind), "size": each.size}
            for each in names
        ]
    }


def workspace_info(workspace: Workspace | None) -> Result:
    """Count what is there. Gives `fileCount`, `dirCount`, `totalSize` (bytes) and `lastModified` (ISO 8601,
    None where nothing was written), else `error`."""
    if workspace is None:
        return {"error": NOT_ASSIGNED}
    try:
        measured = measure(workspace.files)
    except PathError as error:
        return {"error": _code(error, "read_failed")}
    if measured.problem is not None:
        return {"error": _code(measured.problem, "read_failed")}
    info: Result = msgspec.to_builtins(measured.info)
    return info


def _text(name: str) -> str:
    """A name as text: its bytes may be none."""
    return name.encode("utf-8", "replace").decode()


def _code(error: PathError, otherwise: str) -> str:
    return error.code if error.code in _CODES else otherwise
