"""Finding the files of a kind of knowledge: one finder of folders by priority, for all kinds.

A kind's folders are searched in this order: the project's (croze's own, then those of other agents), the
user's, and `repos/<project>` below each of the user's. Where two files have one name the higher counts.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from croze.edit.source import read_source
from croze.text.redact import redact
from croze.text.tokens import estimate
from croze.workspace.files import Files, Mark, mark_of
from croze.workspace.paths import PathError

State = Literal["loaded", "cut", "shadowed", "untrusted", "broken"]
Source = Literal["project", "user", "repos"]
Trusts = Callable[[Path, bytes], bool]
"""Whether the user lets a file of the project act that has exactly these bytes."""

MOST_FILES = 1_000
"""Files of one folder that are looked at; what comes behind them is told as one finding."""
MOST_BYTES = 256_000
UNTRUSTED = "the user doesn't trust this content of it"


class Folder(Struct, frozen=True):
    """A place where a kind may lie: `path` below the project, the user's home, or croze's configuration
    folder. Where the kind's suffixes don't hold, `suffixes` says which do, or `only` which names."""

    base: Literal["project", "home", "config"]
    path: str
    suffixes: tuple[str, ...] = ()
    only: tuple[str, ...] = ()


class Kind(Struct, frozen=True):
    """What is looked for, as data.

    A file counts where its name ends in one of `suffixes` ("" is a name without any; none: every name). With
    `inside`, a folder counts that has a file of this name. `strategy` takes the files of all folders, of
    the first that has any, or of the project's first and all of the user's. `acts` says that one of the
    project needs the user's trust; the others only tell the model something. `most` is in bytes. Of
    `programs` a name without suffix counts where it is executable, and folders don't.
    """

    name: str
    folders: tuple[Folder, ...]
    suffixes: tuple[str, ...] = (".md",)
    inside: str = ""
    strategy: Literal["all", "first", "first-of-project"] = "all"
    acts: bool = True
    most: int = MOST_BYTES
    programs: bool = False


class Found(Struct, frozen=True, kw_only=True):
    """One file, and what became of it. `name` is what overriding goes by, at first the file's without
    its suffix; `path` is below the project, or absolute; `size` is in bytes. `mark` changes with the
    file; `folder` is where it was found, as `path` is."""

    kind: str
    name: str
    path: str
    source: Source
    state: State = "loaded"
    reason: str = ""
    size: int = 0
    tokens: int = 0
    sha256: str = ""
    folder: str = ""
    mark: Mark = (0,) * 6

    @property
    def acts(self) -> bool:
        return self.state in ("loaded", "cut")


class Loaded(Struct, frozen=True):
    """A file with its text: LF line ends, no BOM, secrets replaced. The text of one that doesn't act
    is there to be shown only."""

    found: Found
    text: str = ""


class Places(Struct, frozen=True):
    """Where a project and its user keep things; all of them absolute."""

    root: Path
    home: Path
    config: Path

    def base(self, folder: Folder) -> Path:
        return {"project": self.root, "home": self.home, "config": self.config}[folder.base]


class Finder:
    """Finds and reads. Nothing of what lies in the folders is kept, and nothing raises for what lies in
    the folders: it is told as a finding that is broken."""

    def __init__(self, places: Places, trusts: Trusts) -> None:
        self.places = places
        self._trusts = trusts
        self._project = _Project(Path(os.path.realpath(places.root)))
        self._users: dict[Kind, list[tuple[Source, Folder]]] = {}
        self._paths: dict[Kind, list[str]] = {}

    def find(self, kind: Kind, *, project_only: bool = False) -> list[Found]:
        """The files of a kind, the highest first, unread: names, sizes and what keeps them from being
        used as far as that can be seen from outside. One real file counts once."""
        found: list[Found] = []
        met: dict[tuple[int, int], str] = {}
        first = ""
        for source, folder, reader in self._folders(kind):
            if project_only and source != "project":
                break
            rival = first if kind.strategy == "first" or source == "project" else ""
            for each in _files(kind, folder, source, reader):
                if each.acts:
                    before = met.setdefault(each.mark[:2], each.path)
                    if before != each.path:
                        each = _shadowed(each, f"it is the same file as {before}")
                    elif rival:
                        each = _shadowed(each, f"{rival} is used instead of {each.folder}")
                    elif kind.strategy != "all":
                        first = first or each.folder
                found.append(each)
        return found

    def is_there(self, kind: Kind) -> bool:
        """Whether any folder of a kind is there, with or without files."""
        paths = self._paths.get(kind)
        if paths is None:
            found = [str(self.places.base(folder) / folder.path) for folder in kind.folders]
            paths = self._paths[kind] = found
        return any(map(os.path.isdir, paths))

    def read(self, found: Found, most: int = MOST_BYTES, *, acts: bool = True) -> Loaded:
        """A file with its text, hash, tokens, and whether the user trusts it where it `acts`. One that
        can't be used already stays as it is, unread."""
        found, data = self.fetch(found, most, acts=acts)
        if data is None:
            return Loaded(found)
        source = read_source(data)
        if source is None:
            return Loaded(_broken(found, "it is binary, not text"))
        text = redact(source.text)[0]
        return Loaded(msgspec.structs.replace(found, tokens=estimate(text)), text)

    def fetch(
        self, found: Found, most: int = MOST_BYTES, *, acts: bool = True
    ) -> tuple[Found, bytes | None]:
        """The same with the bytes as they are, whatever they are; None where the file can't be used."""
        if not found.acts:
            return found, None
        if found.size > most:
            return _broken(found, f"it has {found.size:,} bytes, more than {most:,}"), None
        reader = self._project if found.source == "project" else _USER
        try:
            data = reader.read(found.path, most)
        except OSError as error:
            return _broken(found, _reason(error)), None
        except PathError as error:
            return _broken(found, error.message.rstrip(".")), None
        if data is None:
            return _broken(found, f"it has more than {most:,} bytes"), None
        digest = hashlib.sha256(data).hexdigest()
        found = msgspec.structs.replace(found, size=len(data), sha256=digest)
        if acts and found.source == "project" and not self._trusts(self.path(found), data):
            found = msgspec.structs.replace(found, state="untrusted", reason=UNTRUSTED)
        return found, data

    def load(self, kind: Kind) -> list[Loaded]:
        """`find` and `read`; what a higher file of the same name shadows is left unread."""
        names: dict[str, str] = {}
        loaded = []
        for found in self.find(kind):
            if found.acts and found.name in names:
                found = _shadowed(found, f"{names[found.name]} has the same name")
            each = self.read(found, kind.most, acts=kind.acts)
            if each.found.acts:
                names[found.name] = found.path
            loaded.append(each)
        return loaded

    def path(self, found: Found) -> Path:
        """Where the file lies."""
        return self.places.root / found.path

    def _folders(self, kind: Kind) -> Iterator[tuple[Source, Folder, "_Reader"]]:
        """Each folder with its source, the higher first. One that is the user's own counts as that
        where the project holds it too (a home that is kept in git)."""
        places = self.places
        users = [folder for folder in kind.folders if folder.base != "project"]
        owned: set[str] | None = None
        for folder in kind.folders:
            if folder.base != "project" or not self._project.begins(folder.path):
                continue
            if owned is None:
                owned = {os.path.realpath(places.base(each) / each.path) for each in users}
            if not owned or os.path.realpath(places.root / folder.path) not in owned:
                yield "project", folder, self._project
        for source, moved in self._of_user(kind, users) if users else ():
            yield source, moved, _USER

    def _of_user(self, kind: Kind, users: Sequence[Folder]) -> list[tuple[Source, Folder]]:
        """The user's folders of a kind: these paths never change."""
        known = self._users.get(kind)
        if known is not None:
            return known
        places = self.places
        found: list[tuple[Source, Folder]] = []
        for folder in users:
            found.append(("user", _moved(folder, places.base(folder) / folder.path)))
        for folder in users if places.root.name else ():
            own = places.base(folder) / folder.path / "repos" / places.root.name
            found.append(("repos", _moved(folder, own)))
        self._users[kind] = found
        return found


def overridden(found: Iterable[Found]) -> list[Found]:
    """The files, the higher first, with those shadowed whose name a higher one that acts has already."""
    names: dict[str, str] = {}
    told = []
    for each in found:
        if each.acts and each.name in names:
            each = _shadowed(each, f"{names[each.name]} has the same name")
        elif each.acts:
            names[each.name] = each.path
        told.append(each)
    return told


def _moved(folder: Folder, path: Path) -> Folder:
    return msgspec.structs.replace(folder, path=str(path))


def _shadowed(found: Found, reason: str) -> Found:
    return msgspec.structs.replace(found, state="shadowed", reason=reason)


def _broken(found: Found, reason: str) -> Found:
    return msgspec.structs.replace(found, state="broken", reason=reason)


class _Look(Struct, frozen=True):
    """What a name is, links followed."""

    is_file: bool
    size: int
    mark: Mark


class _Project:
    """The project's own files, kept below its root."""

    def __init__(self, root: Path) -> None:
        self._files = Files(root, kind="project")
        self._root = str(root)

    def names(self, folder: str) -> list[str]:
        return [entry.name for entry in self._files.list(folder)]

    def look(self, path: str) -> _Look | None:
        found = self._files.stat(path) if self.begins(path) else None
        return None if found is None else _Look(found.kind == "file", found.size, found.mark)

    def read(self, path: str, most: int) -> bytes | None:
        data = self._files.read(path, most)
        return data.data if data.complete else None

    def begins(self, path: str) -> bool:
        """Whether the first part of a path is there: mostly it isn't, and one look is cheaper than the
        checked way."""
        return os.path.lexists(os.path.join(self._root, path.partition("/")[0]))


class _User:
    """The user's files, wherever a link of theirs leads."""

    def names(self, folder: str) -> list[str]:
        return sorted(os.listdir(folder))

    def look(self, path: str) -> _Look | None:
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _Look(stat.S_ISREG(found.st_mode), found.st_size, mark_of(found))

    def read(self, path: str, most: int) -> bytes | None:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError("it is no regular file")
            data = file.read(most + 1)
        return data if len(data) <= most else None


_USER = _User()
_Reader = _Project | _User


def _files(kind: Kind, folder: Folder, source: Source, reader: _Reader) -> Iterator[Found]:
    """The files of one folder, by name."""
    where = Found(
        kind=kind.name, name=folder.path, path=folder.path, source=source, folder=folder.path
    )
    try:
        names = folder.only or [n for n in reader.names(folder.path) if _counts(kind, folder, n)]
    except OSError as error:
        if os.path.lexists(folder.path):
            yield _broken(where, _reason(error))
        return
    except PathError as error:
        if error.code != "file_not_found":
            yield _broken(where, error.message.rstrip("."))
        return
    for name in names[:MOST_FILES]:
        found = _found(kind, where, name, reader)
        if found is not None:
            yield found
    if len(names) > MOST_FILES:
        yield _broken(where, f"{len(names) - MOST_FILES:,} more files in it are not looked at")


def _counts(kind: Kind, folder: Folder, name: str) -> bool:
    suffixes: Sequence[str] = folder.suffixes or kind.suffixes
    if name.startswith("."):
        return False
    if kind.inside or not suffixes:
        return True
    suffix = os.path.splitext(name)[1].lower()
    return suffix in suffixes


def _found(kind: Kind, where: Found, name: str, reader: _Reader) -> Found | None:
    """What a name of a folder is; None where it is nothing of this kind."""
    path = name if where.folder == "." else f"{where.folder}/{name}"
    if kind.inside:
        path = f"{path}/{kind.inside}"
    stem = name if kind.inside or not kind.suffixes else os.path.splitext(name)[0]
    found = msgspec.structs.replace(where, name=stem, path=path)
    if not _is_text(path):
        shown = path.encode("utf-8", "backslashreplace").decode()
        found = msgspec.structs.replace(found, name=shown, path=shown)
        return _broken(found, "its name is not UTF-8")
    try:
        look = reader.look(path)
    except OSError as error:
        return _broken(found, _reason(error))
    except PathError as error:
        return _broken(found, error.message.rstrip("."))
    if look is None:
        # A name that was listed and leads nowhere is a dangling link; one that was asked for isn't there.
        listed = not kind.inside and kind.suffixes and name not in _asked(kind)
        return _broken(found, "it is a link that leads nowhere") if listed else None
    found = msgspec.structs.replace(found, size=look.size, mark=look.mark)
    if kind.programs and not _may_be_program(name, look):
        return None
    if look.is_file:
        return found
    return None if not kind.suffixes else _broken(found, "it is no regular file")


def _may_be_program(name: str, look: _Look) -> bool:
    if stat.S_ISDIR(look.mark[5]):
        return False
    return bool(os.path.splitext(name)[1]) or not look.is_file or bool(look.mark[5] & 0o111)


def _asked(kind: Kind) -> set[str]:
    return {name for folder in kind.folders for name in folder.only}


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _reason(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__
