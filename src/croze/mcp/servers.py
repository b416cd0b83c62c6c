"""The servers of a project: found by name, named as tools, ended together."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from croze.mcp.config import ServerSpec
from croze.mcp.failure import McpError
from croze.mcp.server import Server, Surroundings

PREFIX = "mcp__"
_SHOWN = 8
_WIDEST = 140


class ToolName(NamedTuple):
    """A server's tool by its names; `tool` is empty where all of them are meant."""

    server: str
    tool: str

    @property
    def tag(self) -> str:
        return f"{PREFIX}{self.server}__{self.tool}"


class Servers:
    """The servers that are configured and may be used, in their order."""

    def __init__(self, specs: Sequence[ServerSpec], around: Surroundings) -> None:
        self.around = around
        self._servers = {spec.name: Server(spec, around) for spec in specs if not spec.disabled}

    def __iter__(self) -> Iterator[Server]:
        return iter(self._servers.values())

    def __len__(self) -> int:
        return len(self._servers)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._servers)

    def get(self, name: str) -> Server:
        """The server of this name. Raises McpError where there is none."""
        server = self._servers.get(name)
        if server is None:
            listed = ", ".join(self._servers) or "none"
            raise McpError(
                f"There is no MCP server named {name[:80]!r}. Configured: {listed}.",
                hint="`croze mcp list` shows them, also those that are not trusted.",
                code="mcp_unknown",
                server=name,
                listed=listed,
            )
        return server

    def tool_name(self, name: str) -> ToolName | None:
        """What a name means: `mcp__server__tool`, `server:tool`, or a server's name alone; None where it means no
        server's tool. The server named in the first form need not exist."""
        if name.startswith(PREFIX):
            server, _, tool = name.removeprefix(PREFIX).partition("__")
            return ToolName(server, "" if tool == "*" else tool) if server else None
        server, colon, tool = name.partition(":")
        if server in self._servers and (colon or not tool):
            return ToolName(server, "" if tool == "*" else tool)
        return None

    def lines(self) -> tuple[str, ...]:
        """A line a server for the prompt: its name, and the names of its tools where they are known."""
        return tuple(map(_line, self))

    async def close(self) -> None:
        """End all of them."""
        await asyncio.gather(*(server.close() for server in self))

    def twins(self, name: ToolName) -> tuple[str, ...]:
        """Other servers that are known to have a tool of the same name."""
        return tuple(
            server.name
            for server in self
            if server.name != name.server
            and (known := server.known) is not None
            and known.tool(name.tool) is not None
        )


def _line(server: Server) -> str:
    known = server.known
    if known is None:
        return server.name
    names = [tool.name for tool in known.tools if not tool.unusable and not tool.doubts]
    shown: list[str] = []
    for name in names[:_SHOWN]:
        if sum(map(len, shown)) + len(name) > _WIDEST:
            break
        shown.append(name)
    more = f", and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return f"{server.name}: {', '.join(shown)}{more}" if shown else server.name
