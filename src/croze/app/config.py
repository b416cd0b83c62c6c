"""Configuration: defaults, the user's file, a trusted project's, the environment, arguments."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from croze.app.keypath import Key, canonical, field_of, flatten, join, known_keys, split
from croze.app.options import Finding
from croze.app.paths import Paths, Project, find_project
from croze.app.settings import SECTIONS, TABLES, Settings
from croze.app.trust import Trust
from croze.types.errors import ConfigError

Source = Literal["default", "user", "project", "environment", "argument"]

PROJECT_FILE = ".croze/config.toml"
MAX_FILE = 1_000_000
"""Bytes; a larger configuration file is refused."""

_MODES = ("plan", "ask", "auto-edit", "full")
_SANDBOXES = ("read-only", "workspace", "off")
_ADDED = {("permissions", "allow"), ("permissions", "ask"), ("permissions", "deny")}
_TIGHTENING = {("store", "storage_path"), ("permissions", "deny"), ("permissions", "ask")}
_PROJECT_MAY = {"model", "models", "providers", "groups"}


@dataclass(frozen=True, slots=True)
class Config:
    """The settings as they hold. `sources` names each set key's source (keys at their default are
    absent); `notices` are things to tell the user once; `trust` says what of the project may act."""

    settings: Settings
    paths: Paths
    project: Project
    sources: Mapping[str, Source] = field(default_factory=dict)
    notices: tuple[Finding, ...] = ()
    once: Mapping[str, str] = field(default_factory=dict)

    @property
    def trust(self) -> Trust:
        """What of the project may act; `once` is what may for this run only."""
        return Trust(self.paths.trusted_file, self.project.root, self.once)

    @property
    def store_folder(self) -> Path:
        """The folder of this project's session log."""
        chosen = self.settings.store.storage_path
        if chosen:
            return Path(chosen).expanduser().absolute()
        return self.paths.data / self.project.folder_name

    def source(self, key: str) -> Source:
        return self.sources.get(key, "default")


class Layer(Struct, frozen=True):
    """One source's values. `where` names it in errors; `text` says that values come as strings."""

    source: Source
    where: Mapping[Key, str] | str
    values: Mapping[Key, Any]
    text: bool = False

    def place(self, key: Key) -> str:
        return self.where if isinstance(self.where, str) else self.where[key]


def load(
    cwd: Path,
    *,
    overrides: Mapping[str, object] | None = None,
    env: Mapping[str, str] | None = None,
    trust: bool = False,
) -> Config:
    """The configuration for work in `cwd`. `overrides` are the arguments, by dotted key; with `trust` the
    project's files as they are now may act in this run.

    Raises `ConfigError` naming key, value, source and what is allowed.
    """
    env = os.environ if env is None else env
    paths = Paths.of(env)
    project = find_project(cwd)
    once = _as_they_are(paths, project, env) if trust else {}
    trusted = Trust(paths.trusted_file, project.root, once)
    _ = trusted.kept  # one that can't be read is told here, whatever the project holds
    notices: list[Finding] = []
    layers = [
        _file_layer("user", paths.config_file),
        _project_layer(paths, trusted, project, notices),
        _env_layer(env),
        _argument_layer(overrides or {}),
    ]
    values: dict[Key, Any] = {}
    sources: dict[str, Source] = {}
    for layer in layers:
        if layer is not None:
            _merge(layer, values, sources, notices)
    return Config(_build(values), paths, project, sources, tuple(notices), once)


def _as_they_are(paths: Paths, project: Project, env: Mapping[str, str]) -> dict[str, str]:
    """The hashes of all files of the project that would act."""
    from croze.app.acting import acting_files, places_in

    trust = Trust(paths.trusted_file, project.root)
    found = acting_files(places_in(paths, project.root, env), trust)
    return {each.path: each.sha256 for each in found if not each.problem}


def read_toml(path: Path) -> tuple[bytes, dict[str, Any]] | None:
    """The bytes and the parsed document of a configuration file, None where it doesn't exist."""
    data = read_bytes(path)
    return None if data is None else (data, parse_toml(data, path))


def parse_toml(data: bytes, path: Path) -> dict[str, Any]:
    """A TOML document; `ConfigError` names the line that can't be read."""
    import tomllib

    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(
            f"{path} is not valid TOML: {error}",
            hint="`croze config edit` opens it",
            code="config_syntax",
            path=str(path),
            reason=str(error),
        ) from error


def read_bytes(path: Path) -> bytes | None:
    """A small regular file's bytes, None where there is none; anything else is a `ConfigError`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, os.strerror(error.errno or 0)) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _unreadable(path, "not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise _unreadable(path, f"larger than {MAX_FILE} bytes")
    return data


def read_project_file(root: Path, name: str, most: int = MAX_FILE) -> bytes | None:
    """As `read_bytes`, of a file that is really below the project's root: what a link brings in from
    elsewhere is not the project's."""
    if not os.path.lexists(root / name):
        return None
    from croze.workspace.files import Files  # only where there is a file
    from croze.workspace.paths import PathError

    try:
        data = Files(root, kind="project").read(name, most)
    except PathError as error:
        raise _unreadable(root / name, error.message.rstrip(".")) from error
    if not data.complete:
        raise _unreadable(root / name, f"larger than {most} bytes")
    return data.data


def _unreadable(path: Path, reason: str) -> ConfigError:
    return ConfigError(
        f"{path} can't be read: {reason}",
        hint=f"make {path} a plain file that you may read, or remove it",
        code="config_unreadable",
        path=str(path),
        reason=reason,
    )


def _file_layer(source: Source, path: Path) -> Layer | None:
    found = read_toml(path)
    return None if found is None else Layer(source, str(path), flatten(found[1], str(path)))


def _project_layer(
    paths: Paths, trust: Trust, project: Project, notices: list[Finding]
) -> Layer | None:
    """The project's file where the user trusts exactly this content; else a notice, unread."""
    path = project.config_file
    if path == paths.config_file:
        return None
    try:
        data = read_project_file(project.root, PROJECT_FILE)
    except ConfigError as error:
        notices.append(Finding(level="warning", topic="trust", text=error.message, hint=error.hint))
        return None
    if data is None:
        return None
    if not trust.holds(PROJECT_FILE, data):
        notices.append(
            Finding(
                level="warning",
                topic="trust",
                text=f"{path} is not trusted and was ignored",
                hint="`croze trust` shows it and trusts it",
                code="untrusted_config",
                params={"path": str(path), "trusted": str(paths.trusted_file)},
            )
        )
        return None
    return Layer("project", str(path), flatten(parse_toml(data, path), str(path)))


def _env_layer(env: Mapping[str, str]) -> Layer | None:
    values: dict[Key, Any] = {}
    where: dict[Key, str] = {}
    for name in sorted(env):
        if not name.startswith("CROZE_") or "__" not in name:
            continue
        key = canonical(tuple(name.removeprefix("CROZE_").lower().split("__")))
        where[key] = name
        values[key] = env[name]
    return Layer("environment", where, values, text=True) if values else None


def _argument_layer(overrides: Mapping[str, object]) -> Layer | None:
    values = {split(name): value for name, value in overrides.items()}
    return Layer("argument", "the command line", values, text=True) if values else None


def check_value(key: Key, value: object, where: str, *, text: bool) -> Any:
    """The value as its setting holds it; `ConfigError` names key, value, source and what is allowed."""
    known = field_of(key, where)
    try:
        return known.convert(value, text=text)
    except (ValueError, msgspec.ValidationError) as error:
        shown = repr(value) if len(repr(value)) <= 80 else repr(value)[:79] + "…"
        raise ConfigError(
            f"{join(key)} can't be {shown} ({where})",
            hint=f"allowed: {known.allowed}",
            code="config_value",
            key=join(key),
            value=shown,
            source=where,
            allowed=known.allowed,
        ) from error


def _merge(
    layer: Layer, values: dict[Key, Any], sources: dict[str, Source], notices: list[Finding]
) -> None:
    for key, raw in layer.values.items():
        where = layer.place(key)
        value = check_value(key, raw, where, text=layer.text)
        if layer.source == "project" and not _project_may_set(key, value, values):
            notices.append(
                Finding(
                    level="warning",
                    topic="config",
                    text=f"{join(key)} in {where} was ignored: a project may not set or loosen it",
                    hint=f"set {join(key)} in your own configuration",
                    code="project_may_not",
                    params={"key": join(key), "path": where},
                )
            )
            continue
        if key in _ADDED:
            value = tuple(dict.fromkeys((*values.get(key, ()), *value)))
        values[key] = value
        sources[join(key)] = layer.source


def _project_may_set(key: Key, value: Any, values: Mapping[Key, Any]) -> bool:
    """A trusted project chooses models and paths, and tightens permissions and limits."""
    if key[0] in _PROJECT_MAY or key in _TIGHTENING:
        return True
    present = values.get(key, getattr(getattr(Settings(), key[0], None), key[-1], None))
    if key == ("permissions", "mode"):
        return _MODES.index(value) <= _MODES.index(present)
    if key == ("permissions", "sandbox"):
        return value is not None and (
            _SANDBOXES.index(value) <= _SANDBOXES.index(present or "workspace")
        )
    if key == ("permissions", "network"):
        return value is False
    if key[0] == "limits":
        return value is not None and (present is None or value <= present)
    return False


def _build(values: Mapping[Key, Any]) -> Settings:
    sections: dict[str, dict[str, Any]] = {}
    tables: dict[str, dict[str, dict[str, Any]]] = {}
    for key, value in values.items():
        if len(key) == 2:
            sections.setdefault(key[0], {})[key[1]] = value
        else:
            tables.setdefault(key[0], {}).setdefault(key[1], {})[key[2]] = value
    parts: dict[str, Any] = {name: SECTIONS[name](**given) for name, given in sections.items()}
    for name, rows in tables.items():
        parts[name] = {row: TABLES[name](**given) for row, given in rows.items()}
    return Settings(**parts)


def entries(config: Config) -> dict[str, Any]:
    """Every key with its value as it holds: the plain sections whole, of the tables what is set."""
    found: dict[str, Any] = {
        join(key): getattr(getattr(config.settings, key[0]), key[1]) for key in known_keys()
    }
    for name in TABLES:
        for row, struct in getattr(config.settings, name).items():
            for leaf, value in msgspec.structs.asdict(struct).items():
                if value is not None:
                    found[join((name, row, leaf))] = value
    return found
