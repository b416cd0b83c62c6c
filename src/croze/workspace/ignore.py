"""What listings pass over: a fixed list of folders, `.env` files, and what `.gitignore` excludes."""

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from croze.workspace.files import Files
from croze.workspace.paths import PathError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

EXCLUDED_FOLDERS = frozenset(
    [
        "node_modules",
        ".git",
        "dist",
        "build",
        "coverage",
        ".next",
        ".nuxt",
        "out",
        "__pycache__",
        "venv",
        ".venv",
    ]
)
SHOWN_HIDDEN = frozenset({".github", ".aigne", ".croze"})

RULES_FILE = os.path.join(os.path.dirname(__file__), "excluded.ignore")
"""The fixed list as ripgrep reads it; the project's `.gitignore` goes before it."""

_GITIGNORE_LIMIT = 256 << 10


@dataclass(frozen=True, slots=True)
class _Rules:
    """One `.gitignore`. `maybe` matches whatever one of its patterns may match, in a single try."""

    spec: "GitIgnoreSpec"
    maybe: re.Pattern[str]

    def verdict(self, path: str) -> bool | None:
        return self.spec.check_file(path).include if self.maybe.match(path) else None


class Ignore:
    """The rules for what lies below a folder, read folder by folder as they are asked for.

    Where the folder is itself excluded only the rules below it count: whoever names such a folder
    wants to see what is in it.
    """

    def __init__(self, files: Files, start: str = ".") -> None:
        self._files = files
        self._specs: dict[str, _Rules | None] = {}
        self._chains: dict[str, list[tuple[int, _Rules]]] = {}
        self._first = 0
        parts = [] if start == "." else start.split("/")
        for depth in range(1, len(parts) + 1):
            if self._verdict("/".join(parts[:depth]) + "/"):
                self._first = len(parts)
                break
        self._chains.clear()

    def excludes(self, folder: str, name: str, *, is_folder: bool) -> bool:
        """Whether `name` in `folder` (a resolved path) is passed over."""
        if is_folder and (name in EXCLUDED_FOLDERS or _hidden(name)):
            return True
        if not is_folder and name.startswith(".env"):
            return True
        path = name if folder == "." else f"{folder}/{name}"
        return self._verdict(path + "/" if is_folder else path) is True

    def _verdict(self, path: str) -> bool | None:
        """By the deepest `.gitignore` that says anything of the path itself."""
        for start, rules in self._chain(path.rstrip("/").rpartition("/")[0]):
            said = rules.verdict(path[start:])
            if said is not None:
                return said
        return None

    def _chain(self, folder: str) -> list[tuple[int, _Rules]]:
        """The rules for what is in a folder, the deepest first, with where their paths begin."""
        chain = self._chains.get(folder)
        if chain is None:
            chain = []
            parts = folder.split("/") if folder else []
            for depth in range(len(parts), self._first - 1, -1):
                base = "/".join(parts[:depth])
                rules = self._spec(base or ".")
                if rules is not None:
                    chain.append((len(base) + 1 if base else 0, rules))
            self._chains[folder] = chain
        return chain

    def _spec(self, folder: str) -> _Rules | None:
        if folder not in self._specs:
            self._specs[folder] = self._load(folder)
        return self._specs[folder]

    def _load(self, folder: str) -> _Rules | None:
        lines = self._lines(f"{folder}/.gitignore")
        if folder == ".":
            lines = self._lines(".git/info/exclude") + lines
        if not any(line.strip() and not line.startswith("#") for line in lines):
            return None
        from pathspec import GitIgnoreSpec

        try:
            spec = GitIgnoreSpec.from_lines(lines)
        except ValueError:
            spec = GitIgnoreSpec.from_lines(line for line in lines if _is_valid(line))
        return _Rules(spec, _any_of(spec))

    def _lines(self, path: str) -> list[str]:
        try:
            data = self._files.read(path, _GITIGNORE_LIMIT).data
        except PathError:
            return []
        return data.decode("utf-8", "replace").splitlines()


def _any_of(spec: "GitIgnoreSpec") -> re.Pattern[str]:
    each = [
        re.sub(r"\(\?P<\w+>", "(?:", pattern.regex.pattern)
        for pattern in spec.patterns
        if pattern.include is not None and pattern.regex is not None
    ]
    return re.compile("|".join(f"(?:{one})" for one in each) or r"(?!)")


def _hidden(name: str) -> bool:
    return name.startswith(".") and name not in SHOWN_HIDDEN


def _is_valid(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
