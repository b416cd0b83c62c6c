"""A tool is one class: its fields are the parameters, its docstring and `spec` tell the model, `run`
does the work, `digest` says how the result stands in the history later."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from msgspec import Struct

from croze.text.tokens import Counter
from croze.types.event import Body, TodoItem, ToolReturned
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolDoc, ToolExample, ToolResult, View

if TYPE_CHECKING:
    from croze.knowledge.libraries import Libraries
    from croze.knowledge.skills import Skills
    from croze.mcp.servers import Servers
    from croze.tools.registry import Outside
    from croze.tools.team import Team
    from croze.web.web import Web
    from croze.workspace.background import Background
    from croze.workspace.cache import RunCache
    from croze.workspace.extraction import Extractions
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


class Remembered(Struct, frozen=True, omit_defaults=True):
    """One message of the session as a tool may look it up. `what` is a line that tells what it is;
    `tokens` is what it costs in the context as it stands there now, `full` what it first cost."""

    id: str
    kind: Literal["user", "fact", "reply", "result"]
    what: str
    tokens: int
    full: int
    standing: Literal["full", "digested", "replaced", "hidden", "summarised"] = "full"
    call_id: str = ""


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

    @property
    def marked(self) -> tuple[str, ...]:
        """The ids of the messages that the model has let go of."""
        ...

    @property
    def policy(self) -> str:
        """The name of the policy that shortens this session's context."""
        ...

    @property
    def counter(self) -> Counter:
        """What counts tokens as this session's model does."""
        ...

    def remembered(self) -> Sequence[Remembered]:
        """The messages of this session, oldest first; those that were undone left out."""
        ...

    async def recall(self, message_id: str) -> str:
        """All that is stored of a message (by its full id): what was cut from it too."""
        ...

    @property
    def cache(self) -> "RunCache":
        """What the agents of the run have listed and read."""
        ...

    @property
    def documents(self) -> "Extractions":
        """What reads documents, once a content in a run."""
        ...

    @property
    def background(self) -> "Background":
        """The programs that run beside the conversation."""
        ...

    @property
    def team(self) -> "Team | None":
        """The agents that may be called; None where this agent may call none."""
        ...

    @property
    def web(self) -> "Web":
        """What reaches the web, behind its guards."""
        ...

    @property
    def outside(self) -> "Outside | None":
        """The tools that no list has: those of the servers."""
        ...

    @property
    def mcp(self) -> "Servers | None":
        """The MCP servers that may be used; None where none is configured."""
        ...

    @property
    def skills(self) -> "Skills | None":
        """The skills of the project and the user; None where they have no place."""
        ...

    @property
    def libraries(self) -> "Libraries | None":
        """The libraries whose documentation the user has added; None where nobody can add any."""
        ...

    @property
    def vision(self) -> bool:
        """Whether the session's model sees images."""
        ...

    def visible(self, message_id: str) -> bool:
        """Whether a message stands in full in this agent's present context, and is to stay there."""
        ...

    def looked(self, key: str) -> Sequence[ToolReturned]:
        """The visible results whose `look` has this key, oldest first."""
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

    async def allow(self, rules: Sequence[str], text: str) -> bool:
        """Put `text` to the user, and where they say yes let calls that these rules cover run without a
        question for the rest of the session. False where they don't, or nobody is there to ask."""
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
        """The result in a few lines, as it stands in the history later; it may begin with the message,
        which is kept anyway."""
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
