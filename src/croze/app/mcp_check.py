"""Looking at an MCP server for a person: whether it works, what it has, what of it has to be approved, logging in."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from croze.app.config import Config
from croze.app.mcp import Entry, McpConfig, load_mcp, open_servers
from croze.types.errors import CrozeError, UsageError

if TYPE_CHECKING:
    from croze.app.app import App
    from croze.mcp.listing import Listing
    from croze.mcp.server import Server


class ToolSeen(Struct, frozen=True, omit_defaults=True):
    """A tool as a person looks at it. `difference` is what there is to approve: a diff, or all that is said of it;
    `doubts` are what in it to look at."""

    name: str
    standing: str
    summary: str = ""
    difference: str = ""
    doubts: tuple[str, ...] = ()


class Check(Struct, frozen=True, omit_defaults=True):
    """What a server has and how it answered; `seconds` until it was ready, `failure` where it never was."""

    name: str
    transport: str
    where: str
    failure: str = ""
    hint: str = ""
    code: str = ""
    server: str = ""
    version: str = ""
    protocol: str = ""
    seconds: float = 0.0
    listed_seconds: float = 0.0
    tools: tuple[ToolSeen, ...] = ()
    resources: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    errors: str = ""
    said: tuple[str, ...] = ()


class Look(Struct, frozen=True):
    """Whose servers are looked at."""

    config: Config
    env: Mapping[str, str]
    found: McpConfig


def look_of(app: "App") -> Look:
    """The servers of an application, as their files say now."""
    return Look(app.config, app.env, load_mcp(app.config))


def known_tools(look: Look, entry: Entry) -> int | None:
    """How many tools a server had when it was last used; None where it never was."""
    from croze.mcp.listing import ListingCache

    spec = next((each for each in look.found.specs if each.name == entry.name), None)
    if spec is None or entry.state != "usable":
        return None
    listing = ListingCache(look.config.paths.cache).load(spec.key)
    return None if listing is None else len(listing.tools)


async def check(look: Look, name: str) -> Check:
    """Start a server and see what it has. What fails is told in the result; UsageError where there is none of the
    name."""
    server = _server(look, name)
    spec = server.spec
    base = Check(name=name, transport=spec.transport, where=spec.where())
    begun = time.monotonic()
    try:
        link = await server.connected()
        ready = time.monotonic()
        listing = await server.listing(fresh=True)
        listed = time.monotonic()
        from croze.mcp import offers

        resources = await offers.resources(server)
        prompts = await offers.prompts(server)
    except CrozeError as error:
        found = _replaced(base, failure=error.message, hint=error.hint, code=error.code)
    else:
        found = _replaced(
            base,
            server=listing.server,
            version=listing.version,
            protocol=link.client.protocol_version,
            seconds=round(ready - begun, 3),
            listed_seconds=round(listed - ready, 3),
            tools=_tools(server, listing),
            resources=tuple(resources),
            prompts=tuple(prompts),
            notes=listing.notes,
        )
    finally:
        await server.close()
    last = server.link
    if last is None:
        return found
    notes = (*found.notes, last.junk) if last.junk else found.notes
    return _replaced(found, errors=last.errors, said=tuple(last.said), notes=notes)


async def to_approve(look: Look, name: str, tools: Sequence[str] = ()) -> list[ToolSeen]:
    """The tools of a server that wait for the user's approval, those of `tools` alone where it names some. Raises
    UsageError, McpError."""
    server = _server(look, name)
    try:
        waiting = {tool.name for tool in await server.unapproved()}
        listing = await server.listing()
    finally:
        await server.close()
    if unknown := sorted(set(tools) - {tool.name for tool in listing.tools}):
        raise UsageError(
            f"The MCP server {name} has no tool named {', '.join(unknown)}.",
            hint=f"croze mcp test {name} lists its tools.",
            code="mcp_no_tool",
            server=name,
            tool=", ".join(unknown),
        )
    seen = _tools(server, listing)
    return [tool for tool in seen if tool.name in waiting and (not tools or tool.name in tools)]


def approve(look: Look, name: str, tools: Sequence[ToolSeen]) -> None:
    """Take what the server said of these tools, as it was shown, as what the user knows."""
    server = _server(look, name)
    listing = server.known
    named = {tool.name: tool for tool in tools}
    if listing is not None:
        pinned = server.pinned()
        from croze.mcp.pins import difference

        server.approve(
            *(
                tool
                for tool in listing.tools
                if tool.name in named and difference(tool, pinned) == named[tool.name].difference
            )
        )
        if listing.instructions:
            server.approve_instructions(listing.instructions)


async def log_in(look: Look, name: str, show: Callable[[str], None]) -> None:
    """Log in to a server over HTTP; `show` is given the address that the user has to open. Raises UsageError,
    McpError, ConfigError."""
    from croze.mcp import oauth
    from croze.mcp.config import filled_in

    spec = filled_in(_http(look, name).spec, look.env)
    login = await oauth.log_in(look.config.paths.state, spec, show)
    from croze.mcp.http import HttpTransport
    from croze.mcp.link import Link

    transport = HttpTransport(
        spec.url, headers=spec.headers, connect=spec.connect_timeout, auth=login.auth
    )
    link = Link(name, transport, root=look.config.project.root)
    try:
        await link.open(oauth.PATIENCE + spec.connect_timeout)
    finally:
        await link.close()
        await login.close()


def forget_login(look: Look, name: str) -> bool:
    """Remove the tokens for a server; False where there were none."""
    from croze.mcp.config import filled_in
    from croze.mcp.oauth import token_file

    spec = filled_in(_http(look, name).spec, look.env)
    return token_file(look.config.paths.state, spec).forget()


def _http(look: Look, name: str) -> "Server":
    server = _server(look, name)
    if server.spec.transport != "http":
        raise UsageError(
            f"The MCP server {name} is a program; only servers with a url have a login.",
            hint=f"Give it what it needs by env in {server.spec.path}.",
            code="mcp_no_login",
            server=name,
            path=server.spec.path,
        )
    return server


def _server(look: Look, name: str) -> "Server":
    servers = open_servers(look.config, look.env, look.found)
    if servers is not None and name in servers.names:
        return servers.get(name)
    entry = next((each for each in look.found.entries if each.name == name), None)
    if entry is not None:
        raise UsageError(
            f"The MCP server {name} of {entry.path} can't be used: it is "
            f"{entry.reason or entry.state}.",
            hint="croze mcp list shows all of them.",
            code="mcp_unusable",
            server=name,
            path=entry.path,
            reason=entry.reason or entry.state,
        )
    listed = ", ".join(servers.names) if servers is not None else "none"
    raise UsageError(
        f"There is no MCP server named {name}. Configured: {listed}.",
        hint="croze mcp add adds one.",
        code="mcp_unknown",
        server=name,
        listed=listed,
    )


def _tools(server: "Server", listing: "Listing") -> tuple[ToolSeen, ...]:
    from croze.mcp.pins import difference, standing

    pinned = server.pinned()
    found = []
    for tool in listing.tools:
        stands = standing(tool, pinned)
        waits = stands in ("changed", "doubtful")
        found.append(
            ToolSeen(
                name=tool.name,
                standing=stands,
                summary=tool.unusable or tool.summary,
                difference=difference(tool, pinned) if waits else "",
                doubts=tool.doubts,
            )
        )
    return tuple(found)


def _replaced(found: Check, **changes: object) -> Check:
    from msgspec.structs import replace

    return replace(found, **changes)
