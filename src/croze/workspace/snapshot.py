"""What stands in a project: one look at the stat of every file, and what differs between two looks.

Names are kept by folder: a folder whose time of change is the same holds the same names, so a later
look only asks for the files' stats.
"""

import os
import stat
import time
from pathlib import Path

from msgspec import Struct, field

from croze.workspace.files import Files, is_temporary
from croze.workspace.ignore import Ignore
from croze.workspace.paths import PROTECTED

Entry = tuple[int, int, int, int]
"""A file's mtime in nanoseconds, size, inode and mode."""

RACY_NS = 50_000_000
"""A file that was changed less than this before a look may change again without another mtime: file
systems count time in ticks."""

MOST_FILES = 200_000
"""Above this many files nothing is looked at: the folder is hardly one project."""

_EXCLUDE = ".git/info/exclude"


class Scan(Struct, frozen=True):
    """One look: entries by path, when it began (nanoseconds since the epoch) and how long it took."""

    entries: dict[str, Entry]
    at: int
    seconds: float
    folders: frozenset[str] = frozenset()

    def racy(self) -> list[str]:
        """Files that may have changed after the look without another stat."""
        limit = self.at - RACY_NS
        return [path for path, entry in self.entries.items() if entry[0] >= limit]


class Difference(Struct, frozen=True):
    """Paths by what their stats say. `suspect` ones have the same stat and may have changed all the
    same."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    gone: tuple[str, ...]
    suspect: tuple[str, ...]


class TooManyFiles(Exception):
    """The folder holds more files than are looked at."""


class _Folder(Struct):
    mtime: int
    files: list[str]
    folders: list[str]


class Scanner(Struct):
    """Looks at one project. Left out is what listings pass over, and what no tool may write."""

    files: Files
    root: Path
    _known: dict[str, _Folder] = field(default_factory=dict)
    _rules: dict[str, Entry] = field(default_factory=dict)
    _ignore: Ignore | None = None

    def scan(self) -> Scan:
        """Raises `TooManyFiles`. A folder or file that vanishes meanwhile, or can't be read, is not
        there."""
        began, at = time.perf_counter(), time.time_ns()
        entries = self._look(at)
        rules = self._rules_of(entries)
        if rules != self._rules:
            if self._known and self._rules:
                self._known.clear()
                self._ignore = None
                entries = self._look(at)
            self._rules = rules
        return Scan(entries, at, time.perf_counter() - began, frozenset(self._known))

    def _look(self, at: int) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        top = f"{self.root}/"
        lstat = os.lstat
        known: dict[str, _Folder] = {}
        stack = [""]
        while stack:
            path = stack.pop()
            try:
                mtime = lstat(top + path).st_mtime_ns
                folder = self._known.get(path)
                if folder is None or folder.mtime != mtime or mtime >= at - RACY_NS:
                    folder = self._list(path, mtime)
            except OSError:
                continue
            known[path] = folder
            for name in folder.files:
                try:
                    found = lstat(top + name)
                except OSError:
                    continue
                mode = found.st_mode
                if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
                    entries[name] = (found.st_mtime_ns, found.st_size, found.st_ino, mode)
            if len(entries) > MOST_FILES:
                raise TooManyFiles
            stack += folder.folders
        self._known = known
        return entries

    def _list(self, path: str, mtime: int) -> _Folder:
        if self._ignore is None:
            self._ignore = Ignore(self.files)
        excludes = self._ignore.excludes
        where = path.rstrip("/") or "."
        files: list[str] = []
        folders: list[str] = []
        with os.scandir(f"{self.root}/{path}") as found:
            for entry in found:
                name = entry.name
                is_folder = entry.is_dir(follow_symlinks=False)
                if name in PROTECTED or is_temporary(name) or not _is_text(name):
                    continue
                if excludes(where, name, is_folder=is_folder):
                    continue
                if is_folder:
                    folders.append(f"{path}{name}/")
                else:
                    files.append(path + name)
        return _Folder(mtime, files, folders)

    def _rules_of(self, entries: dict[str, Entry]) -> dict[str, Entry]:
        """The stats of everything that says what is ignored."""
        rules = {}
        for path in self._known:
            entry = entries.get(f"{path}.gitignore")
            if entry is not None:
                rules[path] = entry
        try:
            found = os.lstat(self.root / _EXCLUDE)
            rules[_EXCLUDE] = (found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode)
        except OSError:
            pass
        return rules

    def entry(self, path: str) -> Entry | None:
        """The stat of one file as a look gives it."""
        try:
            found = os.lstat(self.root / path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode


def compare(old: Scan, new: Scan) -> Difference:
    """What happened between two looks, each path sorted into one kind."""
    before, after = old.entries, new.entries
    if before.keys() == after.keys():
        added, gone = set[str](), set[str]()
    else:
        added, gone = after.keys() - before.keys(), before.keys() - after.keys()
    changed = [path for path, entry in after.items() if before.get(path, entry) != entry]
    suspect = [path for path in old.racy() if after.get(path) == before[path]]
    return Difference(
        tuple(sorted(added)), tuple(sorted(changed)), tuple(sorted(gone)), tuple(sorted(suspect))
    )


def _is_text(name: str) -> bool:
    """Whether a name can stand in the log: bytes that are no text can't."""
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
