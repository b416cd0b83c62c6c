"""Where a command would run, and which program a bare name means there: one that nobody but the user and
the system can replace."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

_OTHERS_WRITE = stat.S_IWOTH


class Place(Struct, frozen=True, kw_only=True):
    """Where a command would run: the workspace's root, PATH, and where paths really lead (relative to
    the root; None: out of it)."""

    root: Path
    search: str
    locate: Callable[[str], str | None]


def find_trusted(name: str, search: str, root: Path) -> str:
    """Why the shell would not run a program of the system for `name`; empty where it would.

    `search` is PATH. Entries that are relative, below the workspace `root`, or in folders that everybody
    may write are not trusted: if one of them comes first with a program of this name, that one would run.
    """
    if "/" in name:
        return "names its program by a path"
    for entry in search.split(":"):
        if not entry.startswith("/"):
            return f"would run {name} from a relative folder of PATH"
        if not _is_program(os.path.join(entry, name)):
            continue
        real = os.path.realpath(os.path.join(entry, name))
        for folder in {entry, os.path.realpath(entry), os.path.dirname(real)}:
            if _is_below(folder, root):
                return f"would run {name} from the workspace"
            if _is_open(folder):
                return f"would run {name} from {folder}, where others may write"
        if not _is_owned(real):
            return f"would run {name}, which belongs to another user"
        return ""
    return f"names {name}, which is not on PATH"


def _is_program(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) and os.access(path, os.X_OK)


def _is_below(folder: str, root: Path) -> bool:
    top = str(root)
    return folder == top or folder.startswith(top.rstrip("/") + "/")


def _is_open(folder: str) -> bool:
    """Whether everybody may put files into the folder, or into one above it."""
    while True:
        try:
            if os.stat(folder).st_mode & _OTHERS_WRITE:
                return True
        except OSError:
            return True
        above = os.path.dirname(folder)
        if above == folder:
            return False
        folder = above


def _is_owned(path: str) -> bool:
    try:
        return os.stat(path).st_uid in (0, os.getuid())
    except OSError:
        return False
