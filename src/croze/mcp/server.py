"""One server over a session's time: started when it is first needed, started again when it has died, with what it
said of its tools held against what the user knows of them."""

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from croze.mcp.config import ServerSpec, filled_in
from croze.mcp.failure import McpError
from croze.mcp.listing import Listing, ListingCache, ToolInfo
from croze.mcp.pins import INSTRUCTIONS, Pins, first_seen, standing
from croze.workspace.child_environment import child_environment

if TYPE_CHECKING:
    from croze.mcp.content import Answer
    from croze.mcp.elicit import Caller
    from croze.mcp.link import Link

MOST_FAILURES = 4
"""Starts in a row that failed, or ended within `SHORT`; then it is left alone for `REST`."""

SHORT = 10.0
REST = 60.0
"""Seconds."""


def _trusted(_spec: ServerSpec) -> str:
    return ""


class Surroundings(Struct, frozen=True):
    """What all servers of a project share: its root, the user's environment, and the user's folders. `distrust` says,
    before each start, why a server may not be started now; empty where it may."""

    root: Path
    env: Mapping[str, str]
    cache: Path
    state: Path
    distrust: Callable[[ServerSpec], str] = _trusted


class Server:
    """One configured server."""

    def __init__(self, spec: ServerSpec, around: Surroundings) -> None:
        self.spec = spec
        self.starts = 0
        self.failures = 0
        self.last_error = ""
        self._around = around
        self._cache = ListingCache(around.cache)
        self._pins = Pins(around.state)
        self._link: Link | None = None
        self._newest: Link | None = None
        self._starting = asyncio.Lock()
        self._rests_until = 0.0
        self._listing: Listing | None = None
        self._closed = False

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def running(self) -> bool:
        return self._link is not None and not self._link.over.is_set()

    @property
    def link(self) -> "Link | None":
        """The newest connection, where there was one, also one that failed."""
        return self._newest

    @property
    def known(self) -> Listing | None:
        """What is known of its tools without starting it: from this session, or an earlier one."""
        if self._listing is None:
            return self._cache.load(self.spec.key)
        return self._listing

    def pinned(self) -> dict[str, str]:
        """What the user knows of its tools."""
        return self._pins.of(self.spec.key)

    def approve(self, *tools: ToolInfo) -> None:
        """Take what the server says of these tools now as what the user knows."""
        self._pins.keep(self.spec.key, self.name, {tool.name: tool.said for tool in tools})

    def approve_instructions(self, text: str) -> None:
        self._pins.keep(self.spec.key, self.name, {INSTRUCTIONS: text})

    async def connected(self) -> "Link":
        """The running connection, made where there is none. Raises McpError, ConfigError."""
        async with self._starting:
            link = self._link
            if link is not None and not link.over.is_set():
                return link
            if self._closed:
                raise McpError(f"The MCP server {self.name} is closed.", code="mcp_ended")
            if link is not None:
                self._died(link)
            await self._wait_turn()
            self._listing = None
            try:
                self._link = await self._start()
            except BaseException as error:
                self.last_error = str(error)
                self.failures += 1
                if self.failures >= MOST_FAILURES:
                    self._rests_until = time.monotonic() + REST
                raise
            self.last_error = ""
            return self._link

    def _died(self, link: "Link") -> None:
        self.last_error = link.reason
        if time.monotonic() - link.begun < SHORT:
            self.failures += 1
            if self.failures >= MOST_FAILURES:
                self._rests_until = time.monotonic() + REST
        else:
            self.failures = 0

    async def _wait_turn(self) -> None:
        """The pause before another start; McpError where it failed too often."""
        left = self._rests_until - time.monotonic()
        if left > 0:
            raise McpError(
                f"The MCP server {self.name} has failed {self.failures} times, last: "
                f"{self.last_error or 'it ended'}.",
                hint=f"It is tried again in {left:.0f} s. `croze mcp test {self.name}` shows what it says.",
                code="mcp_waiting",
                server=self.name,
                seconds=round(left),
            )
        if self._rests_until:
            self._rests_until, self.failures = 0.0, 0
        if self.failures:
            await asyncio.sleep(min(0.1 * 2**self.failures, 2.0))

    async def _start(self) -> "Link":
        import importlib

        reason = self._around.distrust(self.spec)
        if reason:
            raise McpError(
                f"The MCP server {self.name} is not started: {reason}.",
                hint="croze trust shows what has changed.",
                code="mcp_distrust",
                server=self.name,
                path=self.spec.path,
            )
        spec = filled_in(self.spec, self._around.env)
        # The SDK takes a second to load: beside the loop, which goes on drawing and reading.
        module = await asyncio.to_thread(importlib.import_module, "croze.mcp.link")
        transports = await asyncio.to_thread(importlib.import_module, "croze.mcp.http")
        from croze.mcp.transport import StdioTransport

        transport: Any
        if spec.transport == "http":
            from croze.mcp.oauth import stored_login

            transport = transports.HttpTransport(
                spec.url,
                headers=spec.headers,
                connect=spec.connect_timeout,
                auth=stored_login(self._around.state, spec),
            )
        else:
            root = self._around.root
            transport = StdioTransport(
                [spec.command, *spec.args],
                cwd=root / Path(spec.cwd).expanduser() if spec.cwd else root,
                env={**child_environment(self._around.env), **spec.env},
            )
        link: Link = module.Link(self.name, transport, root=self._around.root)
        self.starts += 1
        self._newest = link
        await link.open(spec.connect_timeout)
        return link

    async def listing(self, *, fresh: bool = False) -> Listing:
        """Its tools, as it says now; new ones are pinned. Raises McpError, ConfigError."""
        link = await self.connected()
        if self._listing is None or fresh or not link.fresh:
            listing = await link.listing(timeout=self.spec.connect_timeout)
            said = first_seen(listing, self.pinned())
            if said:
                self._pins.keep(self.spec.key, self.name, said)
            self._cache.save(self.spec.key, listing)
            self._listing = listing
        return self._listing

    async def unapproved(self) -> list[ToolInfo]:
        """The tools that are not what the user knows, or raise doubts. Raises McpError, ConfigError."""
        listing = await self.listing(fresh=True)
        pinned = self.pinned()
        return [tool for tool in listing.tools if standing(tool, pinned) in ("changed", "doubtful")]

    async def call(self, tool: str, arguments: dict[str, Any], caller: "Caller") -> "Answer":
        """Call one of its tools. Raises McpError, ConfigError."""
        link = await self.connected()
        result = await link.call(tool, arguments, caller=caller, timeout=self.spec.timeout)
        from croze.mcp.content import of_call

        self.failures = 0
        return of_call(result)

    async def close(self) -> None:
        """End it; it can't be started again."""
        self._closed = True
        async with self._starting:
            if self._link is not None:
                await self._link.close()
