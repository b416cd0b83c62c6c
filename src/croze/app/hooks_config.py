"""Which hooks are configured: the user's hooks.toml, a trusted project's, and, where a setting asks for
it, the hooks in Claude Code's settings. They are read once, when the application is opened."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from croze.app.config import Config, parse_toml, read_bytes
from croze.app.options import Finding
from croze.app.trust import is_trusted
from croze.types.errors import ConfigError

if TYPE_CHECKING:
    from croze.tools.hooks import Hook

USER_FILE = "hooks.toml"
PROJECT_FILE = ".croze/hooks.toml"
CLAUDE_FILE = ".claude/settings.json"

UNTRUSTED = "untrusted_config"

Source = Literal["user", "project", "claude"]

_ROOTS = tuple(
    f"{name}/"
    for agent in ("CROZE", "CLAUDE")
    for name in (f"${agent}_PROJECT_DIR", f"${{{agent}_PROJECT_DIR}}")
)
"""How a command may call the project's folder."""


class Hooks(Struct, frozen=True):
    """The hooks as they were read, and what the user is to be told of them."""

    hooks: "tuple[Hook, ...]" = ()
    notices: tuple[Finding, ...] = ()


def load_hooks(config: Config, env: Mapping[str, str]) -> Hooks:
    """Read the files; ConfigError where one that counts is wrong. One of the project's that isn't
    trusted is inert and named in a notice."""
    found: list[Hook] = []
    notices: list[Finding] = []
    root = config.project.root
    path = config.paths.config / USER_FILE
    if (data := read_bytes(path)) is not None:
        found += _parsed(data, path, "user", notices)
    if root / PROJECT_FILE != path:
        found += _project_hooks(config, PROJECT_FILE, "project", notices)
    if config.settings.plugins.claude_hooks:
        home = Path(env.get("HOME") or Path.home()) / CLAUDE_FILE
        if (data := read_bytes(home)) is not None:
            found += _parsed(data, home, "claude", notices)
        if root / CLAUDE_FILE != home:
            found += _project_hooks(config, CLAUDE_FILE, "claude", notices)
    return Hooks(tuple(found), tuple(notices))


def _parsed(data: bytes, path: Path, source: Source, notices: list[Finding]) -> "list[Hook]":
    from croze.app.hook_form import claude_hooks, parse_hooks  # only where there are any

    if source == "claude":
        return claude_hooks(data, path, notices)
    return parse_hooks(parse_toml(data, path), path, source=source)


def in_one_line(notices: Sequence[Finding]) -> tuple[Finding, ...]:
    """The notices, all that says that a file isn't trusted in one of them."""
    untrusted = [notice for notice in notices if notice.code == UNTRUSTED]
    if len(untrusted) < 2:
        return tuple(notices)
    paths = ", ".join(str(notice.params["path"]) for notice in untrusted)
    whole = msgspec.structs.replace(
        untrusted[0],
        text=f"{paths} are not trusted and were ignored",
        params={**untrusted[0].params, "path": paths},
    )
    return (whole, *(notice for notice in notices if notice.code != UNTRUSTED))


def _project_hooks(
    config: Config, name: str, source: Source, notices: list[Finding]
) -> "list[Hook]":
    """A file of the project, where the user trusts exactly this content and that of the files which its
    commands name."""
    root, trusted = config.project.root, config.paths.trusted_file
    path = root / name
    try:
        data = read_bytes(path)
        if data is None:
            return []
        if not is_trusted(trusted, root, {name: data}):
            notices.append(_untrusted(path, trusted))
            return []
    except ConfigError as error:
        notices.append(Finding(level="warning", topic="trust", text=error.message, hint=error.hint))
        return []
    kept = []
    for hook in _parsed(data, path, source, notices):
        files = _named_files(hook.command, root)
        strange = [
            file for file, raw in files.items() if not is_trusted(trusted, root, {file: raw})
        ]
        notices += [_untrusted(root / file, trusted) for file in strange]
        if not strange:
            pinned = {file: sha256(raw).hexdigest() for file, raw in files.items()}
            kept.append(msgspec.structs.replace(hook, pinned=pinned))
    return kept


def _named_files(command: str, root: Path) -> dict[str, bytes]:
    """The files of the project that stand as words in a command: they act with it."""
    import shlex

    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    found: dict[str, bytes] = {}
    for word in words:
        start = next((each for each in _ROOTS if word.startswith(each)), "")
        try:
            path = (root / word.removeprefix(start)).resolve()
            name = path.relative_to(root).as_posix()
            data = read_bytes(path) if path.is_file() else None
        except ConfigError:  # too large to be looked at each time: nobody can trust it
            data = b""
        except (ValueError, OSError):  # outside of the project, or no path at all
            continue
        if data is not None:
            found[name] = data
    return found


def changed_file(hook: "Hook", root: Path) -> str:
    """The file of the project that is no longer what was trusted; empty where all are."""
    for name, digest in hook.pinned.items():
        try:
            data = read_bytes(root / name)
        except ConfigError:
            return name
        if data is None or sha256(data).hexdigest() != digest:
            return name
    return ""


def _untrusted(path: Path, trusted: Path) -> Finding:
    return Finding(
        level="warning",
        topic="trust",
        text=f"{path} is not trusted and was ignored",
        hint=f"trusted projects are listed in {trusted}",
        code=UNTRUSTED,
        params={"path": str(path), "trusted": str(trusted)},
    )
