"""Which hooks are configured: the user's hooks.toml, a trusted project's, and, where a setting asks for
it, the hooks in Claude Code's settings. They are read once, when the application is opened."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from croze.app.config import Config, parse_toml, read_bytes, read_project_file
from croze.app.named import named_files, words_of
from croze.app.options import Finding
from croze.types.errors import ConfigError

if TYPE_CHECKING:
    from croze.tools.hooks import Hook

USER_FILE = "hooks.toml"
PROJECT_FILE = ".croze/hooks.toml"
CLAUDE_FILE = ".claude/settings.json"

UNTRUSTED = "untrusted_config"
UNTRUSTED_CODES = frozenset({"untrusted_inert", "untrusted_told", "untrusted_both"})
"""Of the one line that tells of all of them."""
_NAMED = 6

Source = Literal["user", "project", "claude"]


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


def in_one_line(notices: Sequence[Finding], root: Path) -> tuple[Finding, ...]:
    """The notices, all that say that a file isn't trusted in one of them."""
    untrusted = [notice for notice in notices if notice.code == UNTRUSTED]
    if not untrusted:
        return tuple(notices)
    inert = _shown([n for n in untrusted if not n.params.get("material")], root)
    material = _shown([n for n in untrusted if n.params.get("material")], root)
    told = [f"not trusted, so without effect: {inert}"] if inert else []
    told += [f"not trusted, so material and no instructions: {material}"] if material else []
    code = "untrusted_both" if len(told) == 2 else "untrusted_inert" if inert else "untrusted_told"
    whole = Finding(
        level="warning",
        topic="trust",
        text="; ".join(told),
        hint="`croze trust` shows them and trusts them",
        code=code,
        params={"inert": inert, "material": material},
    )
    return (whole, *(notice for notice in notices if notice.code != UNTRUSTED))


def _shown(notices: Sequence[Finding], root: Path) -> str:
    """Their paths as the project has them, a few by name."""
    paths = list(dict.fromkeys(str(notice.params["path"]) for notice in notices))
    names = [path.removeprefix(f"{root}/") for path in paths]
    more = f" (+{len(names) - _NAMED})" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _project_hooks(
    config: Config, name: str, source: Source, notices: list[Finding]
) -> "list[Hook]":
    """A file of the project, where the user trusts exactly this content and that of the files which its
    commands name."""
    root, trust = config.project.root, config.trust
    path = root / name
    try:
        data = read_project_file(root, name)
        if data is None:
            return []
        if not trust.holds(name, data):
            notices.append(not_trusted(path, trust.listed))
            return []
    except ConfigError as error:
        notices.append(Finding(level="warning", topic="trust", text=error.message, hint=error.hint))
        return []
    kept = []
    for hook in _parsed(data, path, source, notices):
        files = named_files(words_of(hook.command), root)
        strange = [file for file, raw in files.items() if not trust.holds(file, raw)]
        notices += [not_trusted(root / file, trust.listed) for file in strange]
        if not strange:
            pinned = {file: sha256(raw or b"").hexdigest() for file, raw in files.items()}
            kept.append(msgspec.structs.replace(hook, pinned=pinned))
    return kept


def not_trusted(path: Path, trusted: Path, *, material: bool = False) -> Finding:
    """What is told of something of the project that the user's list doesn't have; `material`: its text is
    told to the model all the same."""
    return Finding(
        level="warning",
        topic="trust",
        text=f"{path} is not trusted and was ignored",
        hint="`croze trust` shows it and trusts it",
        code=UNTRUSTED,
        params={"path": str(path), "trusted": str(trusted), "material": material},
    )
