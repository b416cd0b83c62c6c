"""MCP servers: calling their tools, reading their resources, taking their prompts."""

import re
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta, field

from croze.text.display import exact, one_line, safe
from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.builtin.failures import failed
from croze.tools.digest import first
from croze.types.errors import CrozeError
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolResult, View

_NET = Access(read=True, exec=True, net=True)
_NONE = "No MCP server is configured."
_HINT = "The user adds one with croze mcp add."
_DIGESTED = 20

_SERVER = re.compile(r"[\w.\-]+")
Server = Annotated[str, Meta(min_length=1, description="a configured server")]


class UseMcpTool(Tool, frozen=True):
    """Call a tool of an MCP server. describe_tools(["SERVER"]) lists a server's tools, and
    describe_tools(["SERVER:TOOL"]) gives the parameters of one."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="use_mcp_tool",
        summary="call a tool of an MCP server",
        access=_NET,
    )

    server_name: Server
    tool_name: Annotated[str, Meta(min_length=1)]
    arguments: Annotated[dict[str, Any], Meta(description="the tool's parameters")] = field(
        default_factory=dict
    )

    async def run(self, ctx: ToolContext) -> ToolResult:
        """Only reached where there is no server: else the registry puts the server's tool in its place."""
        return ToolResult(ok=False, message=_NONE, text=_HINT, code="mcp_unknown")


class ReadMcpResource(Tool, frozen=True):
    """Read a resource of an MCP server. Without uri: list its resources and their templates."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="read_mcp_resource",
        summary="read or list the resources of an MCP server",
        access=_NET,
    )
    unconfined: ClassVar[bool] = True

    server_name: Server
    uri: Annotated[str, Meta(description="as the list gives it, or a template filled in")] = ""

    async def run(self, ctx: ToolContext) -> ToolResult:
        from croze.mcp import offers

        async def work() -> ToolResult:
            server = _server(ctx, self.server_name)
            if not self.uri:
                return _listed(await offers.resources(server), "resources", self.server_name)
            from croze.tools.mcp import result_of

            answer = await offers.read(server, self.uri, ctx)
            return await result_of(answer, f"{self.server_name} {one_line(self.uri, 200)}", ctx)

        return await _tried(work)

    @property
    def rule(self) -> str:
        """What rules call it, so that one for its server speaks of it too."""
        return _rule(self.server_name, self.spec.name)

    def preview(self, ctx: ToolContext) -> View:
        return View(
            title=f"Read from the MCP server {safe(self.server_name)}", body=exact(self.uri)
        )

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return first(result, result.text.split("\n") if result.text else [], _DIGESTED)


class GetMcpPrompt(Tool, frozen=True):
    """Get a prompt of an MCP server with its arguments filled in. Without prompt_name: list its prompts."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="get_mcp_prompt",
        summary="get or list the prompts of an MCP server",
        access=_NET,
    )
    unconfined: ClassVar[bool] = True

    server_name: Server
    prompt_name: str = ""
    arguments: Annotated[dict[str, str], Meta(description="texts by name")] = field(
        default_factory=dict
    )

    async def run(self, ctx: ToolContext) -> ToolResult:
        from croze.mcp import offers

        async def work() -> ToolResult:
            server = _server(ctx, self.server_name)
            if not self.prompt_name:
                return _listed(await offers.prompts(server), "prompts", self.server_name)
            from croze.tools.mcp import result_of

            answer = await offers.prompt(server, self.prompt_name, dict(self.arguments), ctx)
            what = f"{self.server_name} {one_line(self.prompt_name, 100)}"
            return await result_of(answer, what, ctx)

        return await _tried(work)

    @property
    def rule(self) -> str:
        return _rule(self.server_name, self.spec.name)

    def preview(self, ctx: ToolContext) -> View:
        shown = msgspec.json.format(msgspec.json.encode(self.arguments)).decode()
        title = f"Get a prompt of the MCP server {safe(self.server_name)}"
        return View(title=title, body=exact(f"{self.prompt_name} {shown}"))

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return first(result, result.text.split("\n") if result.text else [], _DIGESTED)


def _server(ctx: ToolContext, name: str) -> Any:
    from croze.mcp.failure import McpError

    if ctx.mcp is None:
        raise McpError(_NONE, hint=_HINT, code="mcp_unknown")
    if ctx.outside is not None and ctx.outside.forbids(name):
        raise McpError(f"This agent may not use the MCP server {name}.", code="unknown_tool")
    return ctx.mcp.get(name)


def _rule(server: str, tool: str) -> str:
    return f"mcp__{server}__{tool}" if _SERVER.fullmatch(server) else ""


async def _tried(work: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
    try:
        return await work()
    except CrozeError as error:
        return failed(error)


def _listed(lines: list[str], what: str, server: str) -> ToolResult:
    from croze.tools.mcp import DATA

    text = "\n".join(lines)
    count = f"{len(lines)} {what}" if lines else f"no {what}"
    message = f"{server} has {count}.{f' {DATA}' if lines else ''}"
    return ToolResult(
        ok=True, message=message, text=text, view=View(title=message, body=text, kind="list")
    )
