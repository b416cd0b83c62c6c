"""The documentation that installed packages bring along: of Python and of npm, read where the project has
them. Nothing of a package is imported or run."""

import json
import os
import re
import stat
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Literal

from msgspec import Struct

from croze.edit.source import read_source

MOST_FILES = 300
"""Modules or files of types of a package that are read."""
MOST_FILE = 1_000_000
MOST_CHARACTERS = 3_000_000
"""Of all documents of a package together."""
PREFIXES = ("python", "npm")

_NAME = re.compile(r"(@[a-z0-9~][\w.~-]*/)?[A-Za-z0-9~][\w.~-]*\Z", re.ASCII)
_NOT_DOCS = re.compile(
    r"(change|history|licen[cs]e|contribut|security|code_of_conduct|authors)", re.I
)
_PASSED_OVER = {"tests", "test", "testing", "vendor", "vendored", "node_modules", "conftest"}


class Package(Struct, frozen=True):
    """An installed package. `path` is what its version is known by (Python) or its folder (npm); `place`
    is where its modules lie."""

    kind: Literal["python", "npm"]
    name: str
    version: str
    path: Path
    place: Path

    @property
    def library(self) -> str:
        return f"{self.kind}:{self.name}"


def find_package(name: str, root: Path, env: Mapping[str, str]) -> Package | None:
    """The package `python:NAME` or `npm:NAME` as it is installed for the project."""
    kind, _, own = name.partition(":")
    if not _NAME.match(own):
        return None
    if kind == "python":
        return _find_python(own, root, env)
    return _find_npm(own, root) if kind == "npm" else None


def documents(package: Package) -> dict[str, str]:
    """The documents of a package by path: its README first, then what it offers. Bounded: what is left
    out is said in a document of its own."""
    pages = _python_pages if package.kind == "python" else _npm_pages
    found: dict[str, str] = {}
    characters, left_out = 0, 0
    for path, text in pages(package):
        if not text.strip():
            continue
        if characters + len(text) > MOST_CHARACTERS:
            left_out += 1
            continue
        characters += len(text)
        found[path] = text
    if left_out:
        found["LEFT_OUT.md"] = (
            f"{left_out} more documents of {package.name} are too much to keep.\n"
        )
    return found


# Python


def site_packages(root: Path, env: Mapping[str, str]) -> list[Path]:
    """Where the project's Python packages lie: its own environment first, then the one that is active."""
    homes = [root / name for name in (".venv", "venv", "env")]
    if own := env.get("UV_PROJECT_ENVIRONMENT"):
        homes.insert(0, root / own)
    homes += _poetry_environments(root, env)
    homes += [Path(env[name]) for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if env.get(name)]
    found: dict[str, Path] = {}
    for home in homes:
        for lib in ("lib", "lib64"):
            with_versions = sorted((home / lib).glob("python3*/site-packages"), reverse=True)
            for place in with_versions:
                found.setdefault(os.path.realpath(place), place)
    return list(found.values())


def _poetry_environments(root: Path, env: Mapping[str, str]) -> list[Path]:
    """Poetry names an environment by the project's name, a hash of its folder and the Python version."""
    if not (root / "pyproject.toml").is_file():
        return []
    home = Path(env.get("HOME") or os.path.expanduser("~"))
    cache = Path(env.get("POETRY_CACHE_DIR") or home / ".cache" / "pypoetry")
    kept = Path(env.get("POETRY_VIRTUALENVS_PATH") or cache / "virtualenvs")
    folder = os.path.normcase(os.path.realpath(root)).encode("utf-8", "surrogateescape")
    digest = urlsafe_b64encode(sha256(folder).digest()).decode()[:8]
    return sorted(kept.glob(f"*-{digest}-py3*"), reverse=True)


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _find_python(name: str, root: Path, env: Mapping[str, str]) -> Package | None:
    wanted = _normalised(name)
    for place in site_packages(root, env):
        try:
            entries = sorted(os.listdir(place))
        except OSError:
            continue
        for entry in entries:
            stem, suffix = os.path.splitext(entry)
            own, _, version = stem.partition("-")
            if suffix == ".dist-info" and version and _normalised(own) == wanted:
                return Package("python", wanted, version, place / entry, place)
    return None


def _python_pages(package: Package) -> Iterator[tuple[str, str]]:
    from email import message_from_string  # only where a package is read

    from croze.knowledge.python_api import Api

    message = message_from_string(_text(package.path / "METADATA", package.path))
    summary = str(message.get("Summary") or "").strip()
    body = message.get_payload()
    described = body.strip() if isinstance(body, str) else ""
    if not described:
        lines = str(message.get("Description") or "").split("\n")
        described = "\n".join(re.sub(r"^ {7,8}\|?", "", line) for line in lines).strip()
    title = f"# {package.name} {package.version}\n\n{summary}\n\n"
    yield "README.md", title + described + "\n"
    modules = dict(_modules(package))

    def source(name: str) -> tuple[str, bool] | None:
        path = modules.get(name)
        if path is None:
            return None
        return _text(path, package.place), path.stem == "__init__"

    api, read = Api(source), 0
    for name in sorted(modules, key=lambda name: (name.count("."), name)):
        if any(part.startswith("_") or part in _PASSED_OVER for part in name.split(".")):
            continue
        if read >= MOST_FILES:
            yield (
                "MORE_MODULES.md",
                f"More than {MOST_FILES} modules: the deeper ones are not described.\n",
            )
            break
        read += 1
        yield f"api/{name}.md", api.page(name)


def _modules(package: Package) -> Iterator[tuple[str, Path]]:
    """The modules of a distribution, by dotted name; a source before its stub."""
    tops = set()
    for line in _text(package.path / "RECORD", package.path).splitlines():
        first, slash, _ = line.partition(",")[0].partition("/")
        stem, suffix = os.path.splitext(first)
        if slash and not suffix and first.isidentifier():
            tops.add(first)
        elif not slash and suffix in (".py", ".pyi") and stem.isidentifier():
            tops.add(stem)
    for top in sorted(tops):
        for suffix in (".pyi", ".py"):
            if (path := package.place / f"{top}{suffix}").is_file():
                yield top, path
        files = _walk(package.place / top, (".pyi", ".py"))
        for path in sorted(files, key=lambda path: path.suffix, reverse=True):
            parts = path.relative_to(package.place).with_suffix("").parts
            dotted = parts[:-1] if parts[-1] == "__init__" else parts
            if all(part.isidentifier() for part in dotted):
                yield ".".join(dotted), path


# npm


def _find_npm(name: str, root: Path) -> Package | None:
    place = root / "node_modules" / name
    version = _manifest(place).get("version")
    if not isinstance(version, str):
        return None
    return Package("npm", name, version, place, place)


def _manifest(place: Path) -> Mapping[str, object]:
    try:
        found = json.loads(_text(place / "package.json", place) or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _npm_pages(package: Package) -> Iterator[tuple[str, str]]:
    manifest = _manifest(package.place)
    about = {
        key: manifest[key]
        for key in ("name", "version", "description", "type", "main", "module", "types", "exports")
        if key in manifest
    }
    names = _names(package.place)
    readme = next((name for name in names if name.lower().split(".")[0] == "readme"), "")
    title = f"# {package.name} {package.version}\n\n{manifest.get('description') or ''}\n\n"
    yield "README.md", title + (_text(package.place / readme, package.place) if readme else "")
    shown = json.dumps(about, indent=2, ensure_ascii=False)
    yield "package.json.md", f"# package.json\n\n```json\n{shown}\n```\n"
    for folder in (".", "docs"):
        for name in _names(package.place / folder):
            if name.lower().endswith(".md") and name != readme and not _NOT_DOCS.match(name):
                path = name if folder == "." else f"{folder}/{name}"
                yield path, _text(package.place / path, package.place)
    types = list(_typed(package, manifest))
    for path, file in types[:MOST_FILES]:
        text = _text(file, package.place if file.is_relative_to(package.place) else file.parent)
        yield f"types/{path}.md", f"# {path}\n\n```ts\n{text}\n```\n" if text else ""
    if len(types) > MOST_FILES:
        yield "MORE_TYPES.md", f"{len(types) - MOST_FILES} more files of types are not described.\n"


def _typed(package: Package, manifest: Mapping[str, object]) -> Iterator[tuple[str, Path]]:
    """The files of types: the entry first, then by depth; those of `@types` where it has none itself."""
    suffixes = (".d.ts", ".d.mts", ".d.cts")
    place = package.place
    files = list(_walk(place, suffixes))
    if not files:
        own = package.name.removeprefix("@").replace("/", "__")
        modules = place.parents[package.name.count("/")]
        place = modules / "@types" / own
        files = list(_walk(place, suffixes))
    entry = manifest.get("types") or manifest.get("typings")
    first = os.path.normpath(place / entry) if isinstance(entry, str) else ""
    files.sort(key=lambda file: (str(file) != first, len(file.parts), str(file)))
    for file in files:
        yield file.relative_to(place).as_posix(), file


# Files


def _walk(top: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """The files below a folder with these suffixes, in their order; links to folders aren't followed."""
    found: list[Path] = []
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(n for n in folders if n not in _PASSED_OVER and not n.startswith("."))
        found += [Path(folder, name) for name in sorted(names) if name.endswith(suffixes)]
        if len(found) > 20 * MOST_FILES:
            break
    yield from found


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _text(path: Path, inside: Path) -> str:
    """The text of a regular file that really lies inside of a folder; empty of any other."""
    real = os.path.realpath(path)
    if not Path(real).is_relative_to(os.path.realpath(inside)):
        return ""
    try:
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            data = file.read(MOST_FILE + 1)
    except OSError:
        return ""
    source = read_source(data) if len(data) <= MOST_FILE else None
    return "" if source is None else source.text
