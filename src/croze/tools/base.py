"""A tool is one class: its fields are the parameters, its docstring and `spec` tell the model, `run`
does the work, `digest` says how the result stands in the history later."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from msgspec import Struct

from croze.types.event import Body, TodoItem
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolDoc, ToolExample, ToolResult, View

if TYPE_CHECKING:
    from croze.workspace.workspace import Workspace


class ToolSpec(Struct, frozen=True):
    """The flags and prose of a tool class. `core`: described in full from the start. `summary` is its
    one line; `aliases` maps other names of its parameters to the real ones."""

    name: str
    summary: str
    access: Access
    core: bool = False
    ends_turn: bool = False
    examples: tuple[ToolExample, ...] = ()
    guideline: str = ""
    aliases: Mapping[str, str] = {}


class ToolContext(Protocol):
    """What a running call may use of its session; wired by the agent, never imported by tools."""

    session: str
    call: ToolCall
    workspace: "Workspace"
    env: Mapping[str, str]

    @property
    def todo(self) -> tuple[TodoItem, ...]:
        """The todo list as the log has it."""
        ...

    def seen(self, path: str) -> str | None:
        """SHA-256 of `path` (workspace-relative) as this agent last saw it, None if it never did."""
        ...

    def output(self, text: str) -> None:
        """Show a piece of a running tool's output to the user; not stored."""
        ...

    async def emit(self, body: Body) -> None:
        """Append an event to the session's log."""
        ...

    async def ask(self, text: str, options: Sequence[str] = ()) -> str | None:
        """Ask the user; None where no user is present."""
        ...

    async def edit_agent(
        self, path: str, text: str, instructions: str, code_edit: str
    ) -> Sequence[Mapping[str, Any]] | None:
        """Let a model plan an edit that the sketch alone doesn't decide: `start_line`, `end_line` (from 1,
        both included) and `replacement` of each. None where no model is there for it."""
        ...

    async def keep(self, data: bytes) -> str:
        """Keep bytes in the blob table; gives their SHA-256."""
        ...

    def describe(self, names: Sequence[str]) -> tuple[str, list[str]]:
        """The full description of the named tools in the session's protocol, and the unknown names."""
        ...

    def record_change(self, path: str, before: bytes | None, after: bytes | None) -> None:
        """Tell the session of a file that this call has written or removed (workspace-relative). Events
        and the pre-image are kept by the session when the call returns."""
        ...


class Tool(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Base of all built-in tools. Subclasses declare parameters as annotated fields."""

    spec: ClassVar[ToolSpec]

    async def run(self, ctx: ToolContext) -> ToolResult:
        raise NotImplementedError(type(self).__name__)

    def access(self) -> Access:
        """What this very call touches; by default what the tool may touch."""
        return self.spec.access

    def preview(self, ctx: ToolContext) -> View:
        """What the approval question shows: the command, the diff."""
        return View(title=self.spec.name)

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        """The result in a few lines, as it stands in the history later."""
        return result.message or result.text[:500]


class BoundTool(Protocol):
    """A call whose arguments have been checked. Instances of `Tool` are bound tools."""

    async def run(self, ctx: ToolContext) -> ToolResult: ...

    def access(self) -> Access: ...

    def preview(self, ctx: ToolContext) -> View: ...


class ToolKind(Protocol):
    """A tool as the registry holds it: what it tells of itself, and how arguments become a call.
    Tool classes are wrapped into one; MCP and plugin tools implement it directly."""

    doc: ToolDoc
    aliases: Mapping[str, str]

    def bind(self, args: Mapping[str, Any]) -> BoundTool:
        """Check arguments; raises `msgspec.ValidationError` with a message for the model."""
        ...

    def digest(self, call: ToolCall, result: ToolResult) -> str: ...
