"""The project's files that a command names: they act with it, so they are held against the user's trust."""

import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from croze.app.config import read_project_file
from croze.types.errors import ConfigError

MOST_PROGRAM = 32 << 20
"""Bytes of a program: it is read each time before it is started."""

_ROOTS = tuple(
    f"{name}/"
    for agent in ("CROZE", "CLAUDE")
    for name in (f"${agent}_PROJECT_DIR", f"${{{agent}_PROJECT_DIR}}")
)
"""How a command may call the project's folder."""


def words_of(command: str) -> list[str]:
    """The words of a shell's command, as far as that is clear."""
    import shlex

    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def server_words(command: str, args: Sequence[str], cwd: str) -> list[str]:
    """The words of a server's command, those that are paths from its folder too."""
    words = [command, *args]
    return [*words, *(os.path.join(cwd, word) for word in words)] if cwd else words


def named_files(words: Sequence[str], root: Path) -> dict[str, bytes | None]:
    """The files of the project that stand among the words, or behind a `=` in them, with what is held
    against the trust: None for one that is too large, which nobody can trust."""
    found: dict[str, bytes | None] = {}
    values = [value for word in words if (value := word.partition("=")[2])]
    for word in (*words, *values):
        start = next((each for each in _ROOTS if word.startswith(each)), "")
        try:
            name = _below(word.removeprefix(start), root)
            if name and (root / name).is_file():
                found[name] = content_of(name, root)
        except ConfigError:
            found[name] = None
        except (ValueError, OSError):  # no path at all
            continue
    return found


def content_of(name: str, root: Path) -> bytes | None:
    """What stands for a file: its bytes, or where it leads for a link out of the project (a program of the
    system, mostly); None where there is none. Raises ConfigError where it can't be read."""
    real = os.path.realpath(root / name)
    if os.path.lexists(root / name) and not _is_below(real, root):
        return b"\0a link to " + os.fsencode(real)
    return read_project_file(root, name, MOST_PROGRAM)


def changed_file(pinned: Mapping[str, str], root: Path) -> str:
    """The file of the project that is no longer what was trusted; empty where all are."""
    for name, digest in pinned.items():
        try:
            data = content_of(name, root)
        except (ConfigError, OSError):
            return name
        if data is None or sha256(data).hexdigest() != digest:
            return name
    return ""


def _below(word: str, root: Path) -> str:
    """A word as a path below the root, as it is written where it has no `..`; empty where it is none."""
    path = os.path.join(root, word)
    if ".." in word.split("/") or not _is_below(os.path.normpath(path), root):
        path = os.path.realpath(path)
    path = os.path.normpath(path)
    return os.path.relpath(path, root) if _is_below(path, root) else ""


def _is_below(path: str, root: Path) -> bool:
    return path.startswith(os.path.join(root, ""))
