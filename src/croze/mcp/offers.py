"""What a server has beside tools: resources, their templates, prompts."""

from typing import TYPE_CHECKING, Any

from croze.mcp.content import Answer, of_prompt, of_resource
from croze.mcp.server import Server
from croze.text.display import one_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp import Client

    from croze.mcp.elicit import Caller

MOST = 1_000
"""Of each kind that are listed."""

_PAGES = 50


async def resources(server: Server) -> list[str]:
    """The resources and templates, one a line. Raises McpError, ConfigError."""
    link = await server.connected()

    async def work(client: "Client") -> list[str]:
        if client.server_capabilities.resources is None:
            return []
        lines = [
            _line(str(each.uri), each.title or each.name, each.description)
            for each in await _pages(client.list_resources, "resources")
        ]
        templates = await _pages(client.list_resource_templates, "resource_templates")
        lines += [
            _line(f"{each.uri_template} (template)", each.title or each.name, each.description)
            for each in templates
        ]
        return lines

    return await link.request(work, timeout=server.spec.timeout)


async def prompts(server: Server) -> list[str]:
    """The prompts with their arguments, one a line. Raises McpError, ConfigError."""
    link = await server.connected()

    async def work(client: "Client") -> list[str]:
        if client.server_capabilities.prompts is None:
            return []
        lines = []
        for each in await _pages(client.list_prompts, "prompts"):
            names = [f"{a.name}{'' if a.required else '?'}" for a in each.arguments or ()]
            shown = f"{each.name}({', '.join(names)})"
            lines.append(_line(shown, each.title or "", each.description))
        return lines

    return await link.request(work, timeout=server.spec.timeout)


async def read(server: Server, uri: str, caller: "Caller") -> Answer:
    """The contents of a resource. Raises McpError, ConfigError."""
    link = await server.connected()

    async def work(client: "Client") -> Answer:
        return of_resource(await client.read_resource(uri, cache_mode="bypass"))

    return await link.request(work, timeout=server.spec.timeout, caller=caller)


async def prompt(server: Server, name: str, arguments: dict[str, str], caller: "Caller") -> Answer:
    """A prompt, filled in. Raises McpError, ConfigError."""
    link = await server.connected()

    async def work(client: "Client") -> Answer:
        return of_prompt(await client.get_prompt(name, arguments))

    return await link.request(work, timeout=server.spec.timeout, caller=caller)


async def _pages(ask: "Callable[..., Awaitable[Any]]", name: str) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await ask(cursor=cursor)
        found += getattr(page, name)
        cursor = page.next_cursor
        if not cursor or len(found) >= MOST:
            break
    return found[:MOST]


def _line(what: str, name: str, description: str | None) -> str:
    about = ": ".join(filter(None, [one_line(name, 100), one_line(description or "", 200)]))
    return f"- {one_line(what, 300)}{f' — {about}' if about else ''}"
