"""The way to tools outside the core: their full description, and a call by name."""

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.cases import CASES, told
from croze.types.errors import CrozeError
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolExample, ToolResult, View


class DescribeTools(Tool, frozen=True):
    """Get the full description of tools that are only listed by name, or a guide: case:explore,
    case:rename, case:long-output, case:many-edits, case:external-tool."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="describe_tools",
        summary="full description of listed tools",
        access=Access(read=True),
        core=True,
    )

    names: Annotated[tuple[str, ...], Meta(min_length=1, description="tool names")]

    async def run(self, ctx: ToolContext) -> ToolResult:
        servers = [name for name in self.names if _is_of_server(ctx, name)]
        tools = [name for name in self.names if name not in CASES and name not in servers]
        text, unknown = ctx.describe(tools)
        guides = [self._guide(ctx, name) for name in self.names if name in CASES]
        told, absent = await self._of_servers(ctx, servers)
        unknown += absent
        text = "\n\n".join(filter(None, [text.strip(), *told, *guides]))
        known = [name for name in self.names if name not in unknown]
        missing = f"There is no tool named {', '.join(unknown)}." if unknown else ""
        if not known:
            return ToolResult(ok=False, message=missing, text=text, code="unknown_tool")
        return ToolResult(
            ok=True,
            message=missing or f"Described: {', '.join(known)}.",
            text=text,
            view=View(title=f"Described {', '.join(known)}", body=text),
            data={"described": known, "unknown": unknown},
        )

    @staticmethod
    async def _of_servers(ctx: ToolContext, names: list[str]) -> tuple[list[str], list[str]]:
        """What MCP servers say of their tools, started for it where they don't run; the names that are none."""
        told: list[str] = []
        absent: list[str] = []
        for name in names:
            assert ctx.outside is not None
            try:
                told.append(await ctx.outside.described(name))
            except CrozeError as error:
                absent.append(name)
                told.append(f"{name}: {error.message} {error.hint}".strip())
        return told, absent

    @staticmethod
    def _guide(ctx: ToolContext, name: str) -> str:
        _, unknown = ctx.describe(CASES[name].tools)
        return told(name, unknown)

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return f"{result.message}\n{result.text}".strip()


def _is_of_server(ctx: ToolContext, name: str) -> bool:
    return name not in CASES and ctx.outside is not None and ctx.outside.speaks_of(name)


class CallTool(Tool, frozen=True):
    """Call any tool by its name, with its arguments as one JSON object."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="call_tool",
        summary="call a tool by name",
        access=Access(),
        core=True,
        examples=(
            ToolExample("Read a file", {"name": "read_file", "arguments": {"path": "README.md"}}),
        ),
    )

    name: Annotated[str, Meta(min_length=1)]
    arguments: Annotated[dict[str, Any], Meta(description="the tool's parameters")]

    async def run(self, ctx: ToolContext) -> ToolResult:
        """Never reached by a call: the registry puts the named tool in its place before."""
        return ToolResult(
            ok=False, message="call_tool only stands for the tool that it names.", code="malformed"
        )
