"""Library documentation: which libraries a project's user has added, and the documents that there are of them.

A library is `domain/user/library` of the documentation repository, or `python:NAME` or `npm:NAME`, a package
as it is installed for the project. The list is the user's own, kept apart from the project.
"""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from croze.edit.source import read_source
from croze.knowledge.library_repository import LibraryRepository
from croze.knowledge.package_docs import PREFIXES, Package, documents, find_package
from croze.store.files import private_folder
from croze.text.redact import redact
from croze.text.tokens import estimate
from croze.types.errors import ConfigError, UsageError

MOST_DOCUMENTS = 1_000
"""Documents of a library that are looked at."""
MOST_KEPT = 100
"""Packages whose documents are kept once they were read; the oldest go."""
_MOST_OFFERED = 8


class Added(Struct, frozen=True, omit_defaults=True):
    """A library of the list. `version` is that of the installed package when it was added."""

    name: str
    version: str = ""
    at: float = 0.0


class Document(Struct, frozen=True):
    """One document. `name` is the library's with the path in it; `file` is where it lies, where it is one."""

    name: str
    library: str
    text: str
    tokens: int
    file: str = ""


class Libraries:
    """The libraries of one project. `cache` is the user's folder for what can be fetched and read anew,
    `listed` the file of the list."""

    def __init__(self, *, cache: Path, listed: Path, root: Path, env: Mapping[str, str]) -> None:
        self.repository = LibraryRepository(cache / "repository", env)
        self.root = root
        self._cache = cache / "packages"
        self._listed = listed
        self.env = env

    def added(self) -> list[Added]:
        """The list, by name. Raises ConfigError where it can't be read."""
        try:
            return msgspec.json.decode(self._listed.read_bytes(), type=list[Added])
        except FileNotFoundError:
            return []
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigError(
                f"{self._listed} can't be read: {error}",
                hint="Repair or remove it; `croze lib add` makes it anew.",
                code="config_unreadable",
                path=str(self._listed),
                reason=str(error),
            ) from error

    def add(self, name: str) -> Added:
        """Put a library, by its whole name, on the list. Raises UsageError where it is there already."""
        added = self.added()
        if any(each.name == name for each in added):
            raise UsageError(
                f"The library {name} is added already.",
                hint="`croze lib list` shows all.",
                code="library_added",
                library=name,
            )
        package = self.package(name)
        fresh = Added(name, "" if package is None else package.version, round(time.time(), 3))
        self._write([*added, fresh])
        return fresh

    def remove(self, name: str) -> Added:
        """Take a library off the list, by as much of its name as is unique there."""
        added = self.added()
        whole = one_of(name, [each.name for each in added], "added")
        self._write([each for each in added if each.name != whole])
        return next(each for each in added if each.name == whole)

    def renewed(self) -> list[tuple[Added, str]]:
        """The packages whose installed version is another than the list says, with the new one (empty
        where it is gone). From here on the list says the new one."""
        added, changed = self.added(), []
        for at, each in enumerate(added):
            if not is_package(each.name):
                continue
            package = self.package(each.name)
            version = "" if package is None else package.version
            if version != each.version:
                changed.append((each, version))
                added[at] = msgspec.structs.replace(each, version=version)
        if changed:
            with suppress(OSError):  # told again next time
                self._write(added)
        return changed

    def package(self, name: str) -> Package | None:
        """The installed package of a name with its kind."""
        return find_package(name, self.root, self.env) if is_package(name) else None

    def installed(self, name: str) -> list[str]:
        """What is installed under a bare name, as libraries."""
        found = (self.package(f"{kind}:{name}") for kind in PREFIXES)
        return [package.library for package in found if package is not None]

    def known(self, name: str) -> list[str]:
        """The libraries of the repository that a name may stand for: `lib`, `user/lib` or all of it."""
        return [each for each in self.repository.libraries() if stands_for(name, each)]

    def documents(self, library: str) -> list[Document]:
        """The documents of a library, the README first, then by path; none where it isn't there."""
        if is_package(library):
            texts = [(path, text, "") for path, text in self._package_texts(library).items()]
        else:
            files = self.repository.files(library).items()
            texts = [(path, _text(file), str(file)) for path, file in files]
        texts = texts[:MOST_DOCUMENTS]
        texts.sort(key=lambda each: not _is_readme(each[0]))
        return [
            Document(f"{library}/{path}", library, text, estimate(text), file)
            for path, text, file in texts
            if text.strip()
        ]

    def all_documents(self) -> list[Document]:
        """Those of all added libraries, in the order of the list."""
        return [document for each in self.added() for document in self.documents(each.name)]

    def _package_texts(self, library: str) -> dict[str, str]:
        """Reading a package takes a while, so what it gave is kept for as long as it stays what it is."""
        package = self.package(library)
        if package is None:
            return {}
        about = f"{package.library}\n{package.version}\n{os.path.realpath(package.path)}\n"
        with suppress(OSError):
            about += str(package.path.stat().st_mtime_ns)
        kept = self._cache / f"{sha256(os.fsencode(about)).hexdigest()[:32]}.json"
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(kept.read_bytes(), type=dict[str, str])
        texts = {path: redact(text)[0] for path, text in documents(package).items()}
        with suppress(OSError):  # without it the package is read again
            private_folder(self._cache)
            _replace(kept, msgspec.json.encode(texts))
            others = sorted(self._cache.glob("*.json"), key=lambda each: -each.stat().st_mtime_ns)
            for old in others[MOST_KEPT:]:
                old.unlink(missing_ok=True)
        return texts

    def _write(self, added: Sequence[Added]) -> None:
        private_folder(self._listed.parent)
        _replace(self._listed, msgspec.json.encode(sorted(added, key=lambda each: each.name)))


def is_package(name: str) -> bool:
    return name.startswith(tuple(f"{kind}:" for kind in PREFIXES))


def stands_for(name: str, library: str) -> bool:
    """Whether `lib`, `user/lib` or the whole name is this library's."""
    if is_package(library):
        return name in (library, library.partition(":")[2])
    return library == name or library.endswith(f"/{name}")


def one_of(name: str, libraries: Sequence[str], where: str) -> str:
    """The one library that a name stands for. Raises UsageError where there is none, or several."""
    found = [each for each in libraries if stands_for(name, each)]
    if len(found) == 1:
        return found[0]
    if name in found:
        return name
    if found:
        raise ambiguous(name, found)
    from difflib import get_close_matches  # only where somebody errs

    last = {each.rpartition("/")[2].rpartition(":")[2]: each for each in libraries}
    near = [last[each] for each in get_close_matches(name.rpartition("/")[2], last, n=3)]
    command = "croze lib list" if where == "added" else "croze lib list --all"
    hint = f"Did you mean {' or '.join(near)}?" if near else f"`{command}` shows what there is."
    raise UsageError(
        f"There is no library {name} among those {where}.",
        hint=hint,
        code="library_unknown" if where != "added" else "library_not_added",
        library=name,
        near=", ".join(near) or "—",
    )


def ambiguous(name: str, found: Sequence[str]) -> UsageError:
    shown = ", ".join(found[:_MOST_OFFERED]) + (" …" if len(found) > _MOST_OFFERED else "")
    return UsageError(
        f"{name} may be any of {shown}.",
        hint="Give more of the name.",
        code="library_ambiguous",
        library=name,
        choices=shown,
    )


def document_named(name: str, found: Sequence[Document]) -> Document | None:
    """The document of a name, which may be short where the library's is."""
    for document in found:
        if document.name == name:
            return document
    fits = []
    for document in found:
        path = document.name[len(document.library) :]
        if name.endswith(path) and stands_for(name.removesuffix(path), document.library):
            fits.append(document)
    return fits[0] if len(fits) == 1 else None


def _is_readme(path: str) -> bool:
    return path.lower().startswith("readme")


def _text(file: Path) -> str:
    try:
        source = read_source(file.read_bytes())
    except OSError:
        return ""
    return "" if source is None else redact(source.text)[0]


def _replace(path: Path, data: bytes) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
