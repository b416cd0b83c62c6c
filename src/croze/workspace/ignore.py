"""What listings pass over: a fixed list of folders, `.env` files, and what `.gitignore` excludes."""

import os
from typing import Protocol

from croze.workspace.files import Entry, FileData, FileStat
from croze.workspace.gitignore import Patterns
from croze.workspace.paths import PathError

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

GITIGNORE = ".gitignore"

RULES_FILE = os.path.join(os.path.dirname(__file__), "excluded.ignore")
"""The fixed list as ripgrep reads it; the project's `.gitignore` goes before it."""

_GITIGNORE_LIMIT = 256 << 10


class Reader(Protocol):
    """What listings need of a workspace's files: `Files`, or the same through a cache."""

    def stat(self, path: str) -> FileStat | None: ...

    def list(self, path: str = ".") -> list[Entry]: ...

    def read(self, path: str, limit: int) -> FileData: ...


class Ignore:
    """The rules for what lies below a folder, read folder by folder as they are asked for.

    Where the folder is itself excluded only the rules below it count: whoever names such a folder
    wants to see what is in it.
    """

    def __init__(self, files: Reader, start: str = ".") -> None:
        self._files = files
        self._specs: dict[str, Patterns | None] = {}
        self._chains: dict[str, list[tuple[int, Patterns]]] = {}
        self._first = 0
        parts = [] if start == "." else start.split("/")
        for depth in range(1, len(parts) + 1):
            if self._verdict("/".join(parts[:depth]) + "/", "/".join(parts[: depth - 1])):
                self._first = len(parts)
                break
        self._chains.clear()

    def has_none(self, folder: str) -> None:
        """Nothing of the name `.gitignore` is in a folder: it need not be looked for."""
        if folder != ".":
            self._specs.setdefault(folder, None)

    def excludes(self, folder: str, name: str, *, is_folder: bool) -> bool:
        """Whether `name` in `folder` (a resolved path) is passed over."""
        if is_folder and (name in EXCLUDED_FOLDERS or _hidden(name)):
            return True
        if not is_folder and name.startswith(".env"):
            return True
        if folder == ".":
            folder, path = "", name
        else:
            path = f"{folder}/{name}"
        return self._verdict(path + "/" if is_folder else path, folder) is True

    def _verdict(self, path: str, folder: str) -> bool | None:
        """By the deepest `.gitignore` that says anything of the path itself, which is in `folder`."""
        for start, rules in self._chain(folder):
            said = rules.verdict(path[start:])
            if said is not None:
                return said
        return None

    def _chain(self, folder: str) -> list[tuple[int, Patterns]]:
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

    def _spec(self, folder: str) -> Patterns | None:
        if folder not in self._specs:
            self._specs[folder] = self._load(folder)
        return self._specs[folder]

    def _load(self, folder: str) -> Patterns | None:
        lines = self._lines(f"{folder}/{GITIGNORE}")
        if folder == ".":
            lines = self._lines(".git/info/exclude") + lines
        return Patterns.of(lines)

    def _lines(self, path: str) -> list[str]:
        try:
            data = self._files.read(path, _GITIGNORE_LIMIT).data
        except PathError:
            return []
        return data.decode("utf-8", "replace").splitlines()


def _hidden(name: str) -> bool:
    return name.startswith(".") and name not in SHOWN_HIDDEN
