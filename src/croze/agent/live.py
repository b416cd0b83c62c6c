"""The working state of one session: its log, what is folded from it, and the parts it works with."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from croze.agent.bus import Bus
from croze.context.head import Head
from croze.context.policies import Policy
from croze.context.project import Projection
from croze.dialect.base import Dialect
from croze.llm.model import Model
from croze.text.tokens import RATIO, Ratio, estimate
from croze.tools.approve import Approver
from croze.tools.registry import Registry
from croze.tools.run import Host, Outcome, run_calls
from croze.types.agent import AgentSpec
from croze.types.context import Budget, Context
from croze.types.event import (
    Body,
    Compacted,
    Event,
    FactAdded,
    HeadSet,
    ModelCalled,
    ModelSaid,
    Notice,
    TodoItem,
    TodoSet,
    ToolReturned,
    Undone,
    UserSaid,
)
from croze.types.ids import Source
from croze.types.parts import ToolCall
from croze.types.stream import Delta
from croze.types.tool import ToolShape
from croze.workspace.track import Tracker
from croze.workspace.workspace import Workspace


class Log(Protocol):
    """The session's log as the agent needs it; the store's, or a recorded one in replay."""

    session: str
    events: list[Event]

    async def append(self, *bodies: Body, durable: bool = False) -> tuple[Event, ...]: ...

    def close(self) -> None: ...


class Blobs(Protocol):
    async def put_blob(self, data: bytes) -> str: ...

    async def blob(self, digest: str) -> bytes: ...


Gather = Callable[["Live"], Awaitable[Sequence[FactAdded]]]


class RunCalls(Protocol):
    """Runs a reply's calls: `croze.tools.run.run_calls`, or the recorded results in replay."""

    async def __call__(
        self, calls: Sequence[ToolCall], *, registry: Registry, approver: Approver, host: Host
    ) -> Outcome: ...


PlanEdit = Callable[["Live", str, str, str, str], Awaitable[Sequence[Mapping[str, object]]]]
"""Plans the line edits of a sketch with a model: session, path, text, instructions, sketch."""


class BodyDigest:
    """SHA-256 of request bodies. A body mostly begins with the one before it, but for the two closing
    brackets; then only what is new is hashed."""

    def __init__(self) -> None:
        self._prefix = b""
        self._state = hashlib.sha256()

    def __call__(self, body: bytes) -> str:
        if len(body) < len(self._prefix) + 2 or not body.startswith(self._prefix):
            self._prefix, self._state = b"", hashlib.sha256()
        self._state.update(body[len(self._prefix) : -2])
        self._prefix = body[:-2]
        whole = self._state.copy()
        whole.update(body[-2:])
        return whole.hexdigest()


@dataclass(slots=True, kw_only=True)
class Live:
    """One session at work. Only `append` changes the log; everything else here is folded from it, so a
    session that is taken up again (or replayed) stands exactly where it stood.

    `checked` counts the messages that were held against the wires' rules before they were sent, `warned`
    the notices that have been given since the head or the context's shape changed last.
    """

    log: Log
    blobs: Blobs
    source: Source
    bus: Bus
    spec: AgentSpec
    model: Model
    dialect: Dialect
    head: Head
    registry: Registry
    approver: Approver
    workspace: Workspace
    budget: Budget
    gather: Gather
    policy: Policy
    env: Mapping[str, str]
    headless: bool
    tracker: Tracker | None = None
    edit_agent: PlanEdit | None = None
    max_continuations: int = 6
    run_calls: RunCalls = run_calls
    projection: Projection = field(default_factory=Projection)
    digest: BodyDigest = field(default_factory=BodyDigest)
    todo: tuple[TodoItem, ...] = ()
    seen: dict[str, str] = field(default_factory=dict)
    ratio: Ratio = field(default_factory=Ratio)
    checked: int = 0
    warned: set[str] = field(default_factory=set)
    steps: int = 0
    last_user: int = 0
    last_called: int = 0
    _fed: int = 0
    _estimated: int = 0
    _rated: str = ""
    _short_ids: set[str] = field(default_factory=set)
    _shapes: tuple[Registry | None, Mapping[str, ToolShape]] = (None, {})

    def fold(self) -> None:
        """Take in the events of the log that are new since the last time, others' too."""
        events = self.log.events
        while self._fed < len(events):
            event = events[self._fed]
            self._fed += 1
            self.projection.feed(event)
            self._take(event)

    def _take(self, event: Event) -> None:
        match event.body:
            case ToolReturned() as body:
                self.seen.update(body.observed)
                self._short_ids.add(body.message_id[:8])
            case UserSaid() as body:
                self.last_user = event.seq
                self._short_ids.add(body.message_id[:8])
            case ModelCalled(purpose="main") as body:
                self.steps = body.step
                self.last_called = event.seq
                self.checked = len(self.projection.messages)
                self._estimated = body.tokens
            case ModelSaid(purpose="main") as body:
                if body.usage.input and not body.partial:
                    weight = self._estimated * self.ratio.value
                    self.ratio = self.ratio.update(weight, body.usage.input)
            case TodoSet() as body:
                self.todo = body.items
            case Notice() as body:
                self.warned.add(body.code)
            case HeadSet() as body:
                self.warned.clear()
                if body.model.name != self._rated:
                    self._rated, self.ratio = body.model.name, Ratio()
            case Undone() as body:
                self._take_undone(body)
            case Compacted():
                self.checked = 0
                self.warned.clear()
            case _:
                pass

    def _take_undone(self, body: Undone) -> None:
        """Know of the files only what the rest of the conversation has seen."""
        self.checked = 0
        if body.todo is not None:
            self.todo = body.todo
        self.seen = {}
        for event in self.log.events:
            if isinstance(event.body, ToolReturned) and not body.hides(event.seq):
                self.seen.update(event.body.observed)

    async def append(self, *bodies: Body, durable: bool = False) -> tuple[Event, ...]:
        """Commit events, fold them in, and tell the watchers: in this order."""
        before = self._fed
        appended = await self.log.append(*bodies, durable=durable)
        self.fold()
        for event in self.log.events[before : self._fed]:
            self.bus.publish(event)
        return appended

    def new_id(self) -> str:
        """A message id whose first eight characters no other message of the session has."""
        while True:
            message_id = self.source.uuid()
            if message_id[:8] not in self._short_ids:
                self._short_ids.add(message_id[:8])
                return message_id

    def publish(self, delta: Delta) -> None:
        self.bus.publish(delta)

    def context(self, *, prefill: bool = False) -> Context:
        """What the model sees if it is asked now; with `prefill` it goes on with its last reply."""
        head = self.head
        return self.projection.context(head.system, head.core, head.sections, prefill=prefill)

    def tokens(self, context: Context) -> int:
        """An estimate of a context's tokens, by the ratio learned from this model's reports."""
        return round(context.tokens * RATIO / self.ratio.value)

    def shapes(self) -> Mapping[str, ToolShape]:
        """The shapes of all tools by tag, as the decoders want them."""
        if self._shapes[0] is not self.registry:
            self._shapes = (self.registry, self.registry.shapes())
        return self._shapes[1]

    async def tell(self, key: str, text: str, reason: str) -> None:
        """Tell the model something that nobody said: a reminder, a correction."""
        await self.append(
            FactAdded(
                key=key,
                message_id=self.new_id(),
                text=text,
                layer="current",
                reason=reason,
                tokens=estimate(text),
            )
        )
