"""AC modules: folders that say in `.ac.mod.md` what they are for and how they are used."""

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import unquote

from croze.workspace.files import Files
from croze.workspace.paths import PathError

NAME = ".ac.mod.md"
MOST_BYTES = 256_000
_MOST_SHOWN = 160
_FENCED = r"(?ms)^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)"
_CODE = r"`[^`\n]*`"
_LINK = (
    r"(?m)!?\[[^\]\n]*\]\(\s*(?:<([^>\n]+)>|([^)\s]+))[^)\n]*\)"
    r"|^ {0,3}\[[^\]\n]+\]:\s*(?:<([^>\n]+)>|(\S+))\s*$"
)
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*:"
"""Patterns that are compiled when they are first needed: most projects have no modules."""


def module_file(path: str) -> str:
    """Where a folder's module file lies; a path that names it already stays."""
    tidied = posixpath.normpath(path.strip() or ".")
    if posixpath.basename(tidied) == NAME:
        return tidied
    return NAME if tidied == "." else f"{tidied}/{NAME}"


def folder_of(file: str) -> str:
    """The folder that a module file describes; the root's is `.`."""
    return posixpath.dirname(file) or "."


def folders_above(path: str) -> Iterator[str]:
    """The folders that a path lies in, the nearest first, the root (`.`) last."""
    folder = posixpath.dirname(posixpath.normpath(path))
    while folder and folder not in ("..", "/"):
        yield folder
        folder = posixpath.dirname(folder)
    if not path.startswith(("/", "../")):
        yield "."


class Noticed:
    """Which folders the sessions of a run have looked at for a module: each is looked at once a session."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()

    def fresh(self, session: str, files: Files, path: str) -> list[str]:
        """The modules that a path lies in and that the session hasn't come across, the nearest first."""
        if posixpath.basename(path) == NAME:
            return []
        found = []
        for folder in folders_above(path):
            if (session, folder) in self._seen:
                continue
            self._seen.add((session, folder))
            try:
                stat = files.stat(module_file(folder))
            except PathError:
                continue
            if stat is not None and stat.kind == "file":
                found.append(folder)
        return found


def about(text: str) -> str:
    """What a module is in a line: its title, and how its first paragraph begins."""
    title, words = "", ""
    for line in re.sub(_FENCED, "", text).split("\n"):
        line = line.strip()
        if line.startswith("#"):
            title = title or line.lstrip("#").strip()
        elif line and not words:
            words = line
        if title and words:
            break
    shown = ": ".join(filter(None, [title, words]))
    return shown if len(shown) <= _MOST_SHOWN else f"{shown[: _MOST_SHOWN - 1]}…"


def broken_links(files: Files, file: str, text: str) -> list[str]:
    """The relative links of a module file that lead nowhere in the project."""
    prose = re.sub(_CODE, "", re.sub(_FENCED, "", text))
    broken: dict[str, None] = {}
    for match in re.finditer(_LINK, prose):
        target = next(filter(None, match.groups()))
        path = unquote(target.partition("#")[0].partition("?")[0])
        if not path or re.match(_SCHEME, target) or target.startswith("//"):
            continue
        try:
            found = files.stat(posixpath.normpath(posixpath.join(folder_of(file), path)))
        except PathError:
            found = None
        if found is None:
            broken[target] = None
    return list(broken)
