"""The files of a project that would act or instruct if the user trusted them, and what they would do."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from croze.app.acting_text import commands, does, hidden
from croze.app.config import MAX_FILE, PROJECT_FILE, load, read_project_file
from croze.app.hooks_config import CLAUDE_FILE
from croze.app.hooks_config import PROJECT_FILE as HOOKS_FILE
from croze.app.mcp import PROJECT_FILE as MCP_FILE
from croze.app.named import named_files
from croze.app.paths import Paths, find_project
from croze.app.trust import MOST_KEPT, Trust
from croze.context.law import LAW_FILES
from croze.knowledge.find import MOST_FILES, Finder, Found, Kind, Places
from croze.knowledge.instructions import instructed
from croze.knowledge.kinds import KINDS
from croze.knowledge.rules import RuleFiles
from croze.types.errors import ConfigError
from croze.workspace.files import Files
from croze.workspace.paths import PathError

if TYPE_CHECKING:
    from croze.app.config import Config

Effect = Literal["runs", "sets", "tells"]
State = Literal["trusted", "changed", "new", "broken"]

_MOST_HELD = 64_000_000
"""Bytes of contents that are held in memory to be shown."""
_RUNS = {"hooks", "mcp", "tools", "programs", "scripts"}


class ActingFile(Struct, frozen=True, kw_only=True):
    """One file: `path` is below the project's root; its `effect` is to run programs, to set something, or
    to tell agents something; `does` says what in detail, as the file has it. `state` compares it with what
    is trusted; one with a `problem` can't be trusted. `hidden` counts characters that can't be seen. `data`
    is None for what is too large to be shown."""

    path: str
    kind: str
    effect: Effect
    state: State = "new"
    does: tuple[str, ...] = ()
    problem: str = ""
    size: int = 0
    hidden: int = 0
    sha256: str = ""
    data: bytes | None = None


class _Candidate(Struct, frozen=True):
    path: str
    kind: str
    most: int = MAX_FILE
    problem: str = ""
    data: bytes | None = None


def places_in(paths: Paths, root: Path, env: Mapping[str, str]) -> Places:
    """Where a project and its user keep things."""
    return Places(root, Path(env.get("HOME") or Path.home()), paths.config)


def acting_of(config: "Config", env: Mapping[str, str], *, deep: bool = True) -> list[ActingFile]:
    """The files of the configuration's project."""
    places = places_in(config.paths, config.project.root, env)
    return acting_files(
        places, config.trust, claude=config.settings.plugins.claude_hooks, deep=deep
    )


def acting_files(
    places: Places, trust: Trust, *, claude: bool = True, deep: bool = True
) -> list[ActingFile]:
    """Every file of the project that would act or instruct, with its content: what programs are started
    by first. `claude`: the hooks in Claude Code's settings count. `deep`: the instruction files of all
    folders too, not of the root only."""
    found: dict[str, ActingFile] = {}
    held = 0
    for candidate in _candidates(places, claude=claude, deep=deep):
        if candidate.path in found:
            continue
        each = _examined(candidate, places.root, trust)
        held += min(each.size, MOST_KEPT)
        if each.size > MOST_KEPT or held > _MOST_HELD:
            each = msgspec.structs.replace(each, data=None)
        found[each.path] = each
    rank: list[Effect] = ["runs", "sets", "tells"]
    return sorted(found.values(), key=lambda each: rank.index(each.effect))


def survey(cwd: Path, env: Mapping[str, str]) -> tuple[Trust, list[ActingFile]]:
    """What is trusted of the project that a folder belongs to, and its files. A configuration that can't be
    loaded is no hindrance; raises ConfigError where the list of trusted projects can't be read."""
    paths, root = Paths.of(env), find_project(cwd).root
    trust = Trust(paths.trusted_file, root)
    _ = trust.kept
    try:
        claude = load(cwd, env=env).settings.plugins.claude_hooks
    except ConfigError:
        claude = True
    return trust, acting_files(places_in(paths, root, env), trust, claude=claude)


def trust_all(trust: Trust, files: Sequence[ActingFile], *, whole: bool) -> int:
    """Trust these files as they were read; gives their number. Those that can't be are left out."""
    fit = [each for each in files if not each.problem]
    contents = {each.path: each.sha256 if each.data is None else each.data for each in fit}
    trust.add(contents, whole=whole)
    return len(fit)


def digest_of(files: Sequence[ActingFile]) -> str:
    """What stands for the contents of these files together."""
    lines = sorted(f"{each.path}\0{each.sha256}" for each in files)
    return sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _candidates(places: Places, *, claude: bool, deep: bool) -> Iterator[_Candidate]:
    for kind, name in (("hooks", HOOKS_FILE), ("hooks", CLAUDE_FILE), ("mcp", MCP_FILE)):
        if (name == CLAUDE_FILE and not claude) or _is_users(places, name):
            continue
        first = _read(name, kind, places.root)
        if first is None:
            continue
        yield first
        for words in commands(first.kind, first.data or b"", name):
            for path, data in named_files(words, places.root).items():
                problem = "" if data is not None else "it is too large to be looked at each time"
                yield _Candidate(path, "programs", problem=problem, data=data)
    if not _is_users(places, PROJECT_FILE):
        yield from _there(places.root, PROJECT_FILE, "config")
    finder = Finder(places, lambda _path, _data: False)
    for each_kind in KINDS:
        for found in finder.find(each_kind, project_only=True):
            if found.state == "shadowed":
                continue
            problem = found.reason if found.state == "broken" else ""
            yield _Candidate(found.path, each_kind.name, each_kind.most, problem)
            if each_kind.inside and not problem:
                yield from _beside(each_kind, found, places.root)
    for name in LAW_FILES:
        yield from _there(places.root, name, "law")
    folders = instructed(Files(places.root, kind="project")) if deep else ()
    for rule in RuleFiles(finder).read(folders):
        told = rule.found
        if told.source == "project":
            yield _Candidate(
                told.path, "rules", problem=told.reason if told.state == "broken" else ""
            )


def _is_users(places: Places, name: str) -> bool:
    """Whether a file of this place is the user's own: their home, or their folder, is the project's."""
    own = {CLAUDE_FILE: places.home / CLAUDE_FILE}.get(name, places.config / Path(name).name)
    return places.root / name == own


def _beside(kind: Kind, found: Found, root: Path) -> Iterator[_Candidate]:
    """The other files of a folder that counts as one thing, such as a skill's scripts."""
    files = Files(root, kind="project")
    folders = [found.path.rpartition("/")[0]]
    count = 0
    while folders:
        folder = folders.pop()
        try:
            entries = files.list(folder)
        except PathError as error:
            yield _Candidate(folder, kind.name, problem=error.message.rstrip("."))
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}"
            if path == found.path:
                continue
            if entry.kind == "folder":
                folders.append(path)
                continue
            count += 1
            if count > MOST_FILES:
                yield _Candidate(folder, kind.name, problem=f"more than {MOST_FILES:,} files in it")
                return
            named = path.encode("utf-8", "backslashreplace").decode()
            problem = "" if named == path else "its name is not UTF-8"
            yield _Candidate(named, "scripts", kind.most, problem)


def _there(root: Path, name: str, kind: str) -> Iterator[_Candidate]:
    found = _read(name, kind, root)
    if found is not None:
        yield found


def _read(name: str, kind: str, root: Path) -> _Candidate | None:
    try:
        data = read_project_file(root, name)
    except ConfigError as error:
        return _Candidate(name, kind, problem=error.message)
    return None if data is None else _Candidate(name, kind, data=data)


def _examined(candidate: _Candidate, root: Path, trust: Trust) -> ActingFile:
    kind, path, data, problem = candidate.kind, candidate.path, candidate.data, candidate.problem
    effect: Effect = "runs" if kind in _RUNS else "sets" if kind == "config" else "tells"
    if data is None and not problem:
        try:
            data = read_project_file(root, path, candidate.most)
        except ConfigError as error:
            problem = error.message
    if data is None or problem:
        broken = problem or "it is no longer there"
        return ActingFile(path=path, kind=kind, effect=effect, state="broken", problem=broken)
    fresh: State = "changed" if trust.names(path) else "new"
    return ActingFile(
        path=path,
        kind=kind,
        effect=effect,
        state="trusted" if trust.holds(path, data) else fresh,
        does=does(kind, data, path),
        size=len(data),
        hidden=hidden(data),
        sha256=sha256(data).hexdigest(),
        data=data,
    )
