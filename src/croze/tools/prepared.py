"""A call on its way through the runner, and the hooks that it passes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from croze.tools.approve import Decision
from croze.tools.base import BoundTool, ToolKind
from croze.types.event import ToolReturned
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolResult

if TYPE_CHECKING:
    from croze.tools.hooks import Ruling

_READING = Access(read=True)


class Prepared(Struct):
    """A call on its way: `failure` is why it can't run, else `bound` is what runs. `asked_args` is what the
    model gave where hooks made another input of it."""

    call: ToolCall
    kind: ToolKind | None = None
    bound: BoundTool | None = None
    access: Access = _READING
    failure: ToolResult | None = None
    decision: Decision | None = None
    started: bool = False
    ruling: "Ruling | None" = None
    asked_args: Mapping[str, Any] | None = None

    @property
    def ends_turn(self) -> bool:
        return self.kind is not None and self.kind.doc.ends_turn

    def ruled(self, decision: Decision) -> Decision:
        return decision if self.ruling is None else self.ruling.applied(decision)

    @property
    def only_reads(self) -> bool:
        """Whether it is classed as one that changes nothing, whatever its tool might."""
        return self.decision is not None and self.decision.kind == "read"

    @property
    def parallel(self) -> bool:
        """Whether it may run beside others: it only reads (or fails at once), and nobody is asked."""
        if self.failure is not None:
            return True
        free = self.decision is not None and self.ruled(self.decision).verdict == "allow"
        return free and self.access.read and self.access.read_only and not self.ends_turn


class CallHooks(Protocol):
    """The hooks round a call, as the runner sees them."""

    async def before_call(self, call: ToolCall) -> "Ruling":
        """What the hooks decide of a call; recorded already."""
        ...

    async def after_call(self, call: ToolCall, returned: ToolReturned) -> None:
        """Let the hooks look at a call's result, and record what they say."""
        ...
