"""Instruction files that stand alone: AGENTS.md and CLAUDE.md, and those of other agents at known places."""

import posixpath
import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from itertools import islice

from croze.knowledge.find import Folder, Found, Kind, Loaded
from croze.workspace.files import Files
from croze.workspace.listing import files_below
from croze.workspace.paths import PathError

NESTED = ("AGENTS.md", "CLAUDE.md")
LAW = Kind("law", (Folder("project", ".", only=("code_law.md", "AGENTS.md")),))
"""Those of the root that are told by themselves; what only repeats them is not told again."""
ROOT = Kind(
    "rules",
    (
        Folder("project", ".", only=("CLAUDE.md",)),
        Folder("project", ".github", only=("copilot-instructions.md",)),
    ),
)
MOST_LOOKED_AT = 200_000
MOST_HOPS = 5
MOST_IMPORTS = 50
"""Of one CLAUDE.md: how deep imports lead on to others, and how many files they name."""

_CODE = r"(?ms)^[ ]{0,3}(`{3,}|~{3,}).*?(?:^[ ]{0,3}\1[`~]*[ \t]*$|\Z)|`[^`\n]+`"
_IMPORT = r"(?m)(?:^|(?<=\s))@((?:\\ |[^\s`\"'<>()\[\]{},;])+)"


def nested(folder: str) -> Kind:
    """The instruction files of one folder below the root."""
    return Kind("rules", (Folder("project", folder, only=NESTED),))


def single(path: str) -> Kind:
    return Kind(
        "rules", (Folder("project", folder_of(path) or ".", only=(posixpath.basename(path),)),)
    )


def folder_of(path: str) -> str:
    """The folder of a path, empty for the root."""
    return posixpath.dirname(path)


def instructed(files: Files) -> list[str]:
    """The folders below the root that have instruction files of their own, but for ignored ones; of very
    large projects those that come first."""
    with suppress(PathError):
        paths = islice(files_below(files, "."), MOST_LOOKED_AT)
        names = (path.rpartition("/") for path in paths)
        return sorted({folder for folder, _slash, name in names if folder and name in NESTED})
    return []


def imports(path: str, text: str, take: Callable[[str], Loaded | None]) -> list[Loaded]:
    """The files that a text imports, and those that these import, each once; not what stands in code. One
    that leads out of the project, or that is too many, is told as broken. A name that is no file is
    taken for what it is: a word with an @."""
    met = {path}
    told: list[Loaded] = []
    waiting = [(path, text, 0)]
    while waiting:
        where, words, hops = waiting.pop(0)
        for name in _named(words):
            target = posixpath.normpath(posixpath.join(folder_of(where), name))
            if target in met:
                continue
            met.add(target)
            outside = name.startswith(("~", "/")) or target == ".." or target.startswith("../")
            problem = f"{where} imports it, and it lies outside of the project" if outside else ""
            if not problem and (hops >= MOST_HOPS or len(told) >= MOST_IMPORTS):
                problem = f"{where} imports it, and imports go no further"
            if problem:
                shown = name if outside else target
                if "/" in name or "." in name:
                    told.append(Loaded(_broken(shown, problem)))
                if len(told) > MOST_IMPORTS:
                    return told
                continue
            found = take(target)
            if found is None:
                continue
            told.append(found)
            if found.text:
                waiting.append((target, found.text, hops + 1))
    return told


@lru_cache(maxsize=64)
def _named(text: str) -> tuple[str, ...]:
    names = [
        match[1].replace("\\ ", " ").rstrip(".:!?")
        for match in re.finditer(_IMPORT, re.sub(_CODE, " ", text))
    ]
    return tuple(name for name in names if name and "\0" not in name and len(name) < 1_000)


def _broken(path: str, reason: str) -> Found:
    return Found(
        kind="rules",
        name=posixpath.basename(path),
        path=path,
        source="project",
        state="broken",
        reason=reason,
        folder=folder_of(path),
    )
