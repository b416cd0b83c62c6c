"""Which MCP servers a project has: the user's mcp.json, and the project's .mcp.json where the user trusts it."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from croze.app.config import Config, read_bytes, read_project_file
from croze.app.hooks_config import not_trusted
from croze.app.named import named_files, server_words
from croze.app.options import Finding
from croze.types.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from croze.agent.live import Live
    from croze.mcp.config import ServerSpec
    from croze.mcp.servers import Servers
    from croze.tools.registry import Outside

USER_FILE = "mcp.json"
PROJECT_FILE = ".mcp.json"
BROKEN = "mcp_config"

_HEADING = "\nMCP SERVERS\n"

State = Literal["usable", "disabled", "untrusted", "shadowed", "broken"]


class Entry(Struct, frozen=True, omit_defaults=True):
    """One entry of a file: a server, or what is wrong with it. `where` is what is started or reached."""

    name: str
    state: State
    source: Literal["user", "project"]
    path: str
    where: str = ""
    reason: str = ""


class McpConfig(Struct, frozen=True):
    """The servers that may be used, every entry that was found, and what the user is to be told."""

    specs: "tuple[ServerSpec, ...]" = ()
    entries: tuple[Entry, ...] = ()
    notices: tuple[Finding, ...] = ()


def load_mcp(config: Config) -> McpConfig:
    """Read the files. What is wrong in one costs only its own servers; a project's file that isn't trusted is
    inert."""
    user, project = config.paths.config / USER_FILE, config.project.root / PROJECT_FILE
    specs: list[ServerSpec] = []
    entries: list[Entry] = []
    notices: list[Finding] = []
    for source, path in (("user", user), ("project", project)):
        try:
            inside = source == "project"
            data = (
                read_project_file(config.project.root, PROJECT_FILE) if inside else read_bytes(path)
            )
        except ConfigError as error:
            notices.append(_broken(path, error.message, error.hint))
            continue
        if data is not None:
            _take(config, source, path, data, specs, entries, notices)
    return McpConfig(tuple(specs), tuple(entries), tuple(notices))


def _take(
    config: Config,
    source: Any,
    path: Path,
    data: bytes,
    specs: "list[ServerSpec]",
    entries: list[Entry],
    notices: list[Finding],
) -> None:
    from croze.mcp.config import parse  # only where there is a file

    found, problems = parse(data, source, path)
    trusted = source == "user" or _is_trusted(config, data, notices)
    strange = [] if source == "user" else _strange_files(config, found) if trusted else [path]
    notices += [not_trusted(file, config.paths.trusted_file) for file in strange]
    taken = {spec.name for spec in specs}
    for spec in found:
        state: State = "usable"
        if not trusted or (strange and _names_any(config, spec, strange)):
            state = "untrusted"
        elif spec.name in taken:
            state = "shadowed"
        elif spec.disabled:
            state = "disabled"
        entries.append(Entry(spec.name, state, source, str(path), spec.where()))
        if state in ("usable", "disabled"):
            specs.append(spec)
    for problem in problems:
        entries.append(Entry(problem.name, "broken", source, str(path), reason=problem.reason))
        if trusted:
            what = f"the MCP server {problem.name!r}" if problem.name else "the file"
            notices.append(_broken(path, f"{path}: {what} is left out: {problem.reason}", ""))


def _strange_files(config: Config, specs: "list[ServerSpec]") -> list[Path]:
    """The files of the project that the servers' commands name and the user doesn't trust: they act with them."""
    root = config.project.root
    words = [word for spec in specs for word in server_words(spec.command, spec.args, spec.cwd)]
    found = named_files(words, root)
    return [root / name for name, data in found.items() if not config.trust.holds(name, data)]


def _names_any(config: Config, spec: "ServerSpec", files: list[Path]) -> bool:
    words = server_words(spec.command, spec.args, spec.cwd)
    found = named_files(words, config.project.root)
    return any(config.project.root / name in files for name in found)


def _is_trusted(config: Config, data: bytes, notices: list[Finding]) -> bool:
    try:
        return config.trust.holds(PROJECT_FILE, data)
    except ConfigError as error:
        notices.append(Finding(level="warning", topic="trust", text=error.message, hint=error.hint))
        return False


def _broken(path: Path, text: str, hint: str) -> Finding:
    return Finding(
        level="warning", topic="mcp", text=text, hint=hint or f"mend {path}", code=BROKEN,
        params={"path": str(path), "reason": text},
    )  # fmt: skip


def open_servers(config: Config, env: Mapping[str, str], found: McpConfig) -> "Servers | None":
    """The servers that may be used, none of them started; None where there are none."""
    if not any(not spec.disabled for spec in found.specs):
        return None
    from croze.mcp.server import Surroundings
    from croze.mcp.servers import Servers

    def distrust(spec: "ServerSpec") -> str:
        if spec.source == "user":
            return ""
        strange = _strange_files(config, [spec])
        return f"{strange[0]} is not what you trusted" if strange else ""

    around = Surroundings(
        root=config.project.root,
        env=env,
        cache=config.paths.cache,
        state=config.paths.state,
        distrust=distrust,
    )
    return Servers(found.specs, around)


def outside_of(servers: "Servers | None") -> "Outside | None":
    """The servers' tools, as a registry has them."""
    if servers is None:
        return None
    from croze.tools.mcp import McpTools  # only where there are any

    return McpTools(servers)


async def tell_of_servers(live: "Live") -> None:
    """Tell a session that is taken up again of servers which its head doesn't name."""
    if live.mcp is None:
        return
    from croze.agent.recorded import NEW_SERVERS
    from croze.types.event import FactAdded

    told = live.head.system.partition(_HEADING)[2].partition("\n====\n")[0].splitlines()
    for event in live.log.events:
        if isinstance(event.body, FactAdded) and event.body.key == NEW_SERVERS:
            told += event.body.text.splitlines()
    known = {line.removeprefix("- ").partition(":")[0] for line in told if line.startswith("- ")}
    lines = [
        line
        for name, line in zip(live.mcp.names, live.mcp.lines(), strict=True)
        if name not in known
    ]
    if lines:
        listed = "\n".join(f"- {line}" for line in lines)
        text = f"MCP servers that came since (use_mcp_tool calls their tools, describe_tools lists them):\n{listed}"
        await live.tell(
            NEW_SERVERS, text, "MCP servers that were configured since the session began"
        )


def add_server(config: Config, name: str, entry: Mapping[str, Any], *, project: bool) -> Path:
    """Write a server into the user's file, or the project's, which then is trusted as it stands, with the files of the
    project that its servers' commands name. Raises UsageError where there is one of this name, or the entry is
    wrong."""
    from croze.mcp.config import parse

    path, document = _open(config, project=project)
    servers = document.setdefault("mcpServers", {})
    if name in servers:
        raise UsageError(
            f"There is already an MCP server named {name} in {path}.",
            hint=f"croze mcp remove {name} removes it.",
            code="mcp_exists",
            server=name,
            path=str(path),
        )
    servers[name] = dict(entry)
    source: Literal["user", "project"] = "project" if project else "user"
    _, problems = parse(json.dumps({"mcpServers": {name: entry}}).encode(), source, path)
    if problems:
        raise UsageError(
            f"The MCP server {name} can't be added: {problems[0].reason}.",
            hint="croze mcp add --help shows the forms.",
            code="mcp_entry",
            server=name,
            reason=problems[0].reason,
        )
    _write(config, path, document, project=project)
    return path


def remove_server(config: Config, name: str) -> list[Path]:
    """Take a server out of the files that name it; gives these files."""
    changed = []
    for project in (False, True):
        path, document = _open(config, project=project, must_trust=False)
        if name not in document.get("mcpServers", {}):
            continue
        if project:
            path, document = _open(config, project=True)
        del document["mcpServers"][name]
        _write(config, path, document, project=project)
        changed.append(path)
    return changed


def _open(config: Config, *, project: bool, must_trust: bool = True) -> tuple[Path, dict[str, Any]]:
    """A file's path and its document. A project's file that isn't trusted is not written to: that would trust what
    others wrote there."""
    path = config.project.root / PROJECT_FILE if project else config.paths.config / USER_FILE
    data = read_bytes(path)
    if data is None:
        return path, {}
    if project and must_trust and not _is_trusted(config, data, []):
        raise UsageError(
            f"{path} is not trusted, so nothing is written to it.",
            hint="croze trust shows what is in it and trusts it; or leave --project out.",
            code="mcp_untrusted",
            path=str(path),
        )
    try:
        document = json.loads(data)
    except ValueError as error:
        raise _unreadable(path, str(error)) from error
    if not isinstance(document, dict) or not isinstance(document.get("mcpServers", {}), dict):
        raise _unreadable(path, 'it has no object "mcpServers"')
    return path, document


def _unreadable(path: Path, reason: str) -> ConfigError:
    return ConfigError(
        f"{path} can't be read: {reason}",
        hint=f"mend {path}",
        code="config_unreadable",
        path=str(path),
        reason=reason,
    )


def _write(config: Config, path: Path, document: dict[str, Any], *, project: bool) -> None:
    from croze.mcp.config import parse

    data = json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = 0o644 if project else 0o600
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
    if project:
        found = parse(data, "project", path)[0]
        words = [w for s in found for w in server_words(s.command, s.args, s.cwd)]
        named = named_files(words, config.project.root)
        config.trust.add(
            {PROJECT_FILE: data, **{n: raw for n, raw in named.items() if raw is not None}}
        )
