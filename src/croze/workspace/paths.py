"""What a model may write as a path, and the error that every refused or failed path becomes."""

import errno
import os
import re
from pathlib import Path
from typing import Any, Literal

from croze.types.errors import CrozeError

WorkspaceKind = Literal["project", "task"]

PROTECTED = frozenset({".git", ".croze"})
"""Folders (at any depth) that no tool writes into: git runs what stands in the one, croze in the other."""

_LONGEST = 4_000
"""Bytes; programs can't open what is longer than PATH_MAX (4,096 on Linux) by its name."""

_DRIVE = re.compile(r"[A-Za-z]:")
_IGNORABLE = dict.fromkeys([*range(0x200B, 0x2010), *range(0x202A, 0x202F), 0x206A, 0xFEFF])

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}


class PathError(CrozeError):
    """A path that is refused, or an operation on it that failed.

    Codes: `path_traversal_blocked`, `invalid_path`, `file_not_found`, `permission_denied`,
    `read_failed`, `write_failed`, `not_a_file`, `not_a_folder`, `file_changed`. `path` is as the
    model wrote it.
    """

    code = "path"

    def __init__(self, code: str, path: str, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint, code=code, path=path)


def normalise(path: Any, *, root: Path, kind: WorkspaceKind) -> str:
    """`path` as a relative POSIX path below `root`, not yet resolved (it may pass links, and in a
    project contain `..`). Raises `PathError` where it can't be one."""
    if not isinstance(path, str) or not path.strip():
        raise PathError(
            "invalid_path", str(path), "The path is empty; `.` is the workspace itself."
        )
    shown = path.encode("utf-8", "replace").decode()
    if kind == "task":
        _refuse_traversal(path, shown.replace("\0", "�")[:200])
    if "\0" in path:
        raise PathError("invalid_path", shown.replace("\0", "�"), "The path contains a NUL byte.")
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        raise PathError("invalid_path", shown, "The path is not valid Unicode text.") from None
    if size > _LONGEST:
        raise PathError("invalid_path", f"{shown[:200]}…", f"The path is too long: {size:,} bytes.")
    if kind == "task" or not path.startswith("/"):
        return path
    inside = below(path, root)
    if inside is None:
        raise PathError(
            "path_traversal_blocked", path, f"{path} is outside the workspace.",
            hint="Use a path relative to the workspace's root.",
        )  # fmt: skip
    return inside


def below(absolute: str, root: Path) -> str | None:
    """The part of an absolute path under `root`, by its text or else by where it really leads;
    None where it leads elsewhere. A hint only: whoever uses it walks it again below the root."""
    top = str(root)
    for candidate in (absolute, os.path.realpath(absolute)):
        if candidate == top:
            return "."
        if candidate.startswith(top.rstrip("/") + "/"):
            return candidate[len(top.rstrip("/")) + 1 :].lstrip("/") or "."
    return None


def refuse_protected(path: str) -> None:
    """Raise where a component of `path` is one that no tool may write into. Compared as the laxest file
    systems do: by case folding, without trailing dots or invisible characters."""
    for part in path.split("/"):
        plain = part.translate(_IGNORABLE).rstrip(". ").casefold()
        if plain in PROTECTED or plain == "git~1":
            raise PathError(
                "permission_denied", path, f"{path}: tools never write into {part}.",
                hint="Use git commands for the repository; the user changes croze's own files.",
            )  # fmt: skip


def failure(error: OSError, path: str, doing: Literal["read", "write"]) -> PathError:
    """The `PathError` that an operating system's error means for the model."""
    number = error.errno
    if number == errno.ENOENT:
        return PathError("file_not_found", path, f"{path} does not exist.")
    if number == errno.ENOTDIR:
        return PathError("file_not_found", path, f"{path}: a part of this path is not a folder.")
    if number == errno.EISDIR:
        return PathError("not_a_file", path, f"{path} is a folder.")
    if number in _DENIED:
        what = "is on a read-only file system" if number == errno.EROFS else "may not be accessed"
        return PathError("permission_denied", path, f"{path} {what}.")
    if number in _NO_SPACE:
        return PathError(
            "write_failed", path, f"{path} was not written: no space is left; nothing was changed.",
            hint="Free some space, then try again.",
        )  # fmt: skip
    reason = error.strerror or type(error).__name__
    return PathError(f"{doing}_failed", path, f"{path} could not be {_DONE[doing]}: {reason}.")


_DONE = {"read": "read", "write": "written"}


def _refuse_traversal(path: str, shown: str) -> None:
    if ".." in re.split(r"[/\\]", path):
        reason = "leads out with '..'"
    elif path.startswith(("/", "\\")):
        reason = "is absolute"
    elif _DRIVE.match(path):
        reason = "names a drive"
    else:
        return
    raise PathError(
        "path_traversal_blocked", shown, f"The path {reason}.",
        hint="Use a path relative to the workspace's root.",
    )  # fmt: skip
