"""The working state of one session: its log, what is folded from it, and the parts it works with."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from croze.agent.bus import Bus
from croze.agent.limits import Meter
from croze.agent.outside import redacted
from croze.context.head import Head
from croze.context.images import Images
from croze.context.invariants import EventChecks
from croze.context.ledger import Ledger
from croze.context.policies import Policy, State, decide, zone_of
from croze.context.project import Projection
from croze.dialect.base import Dialect
from croze.llm.model import Model
from croze.text.tokens import HIGHEST_RATIO, LOWEST_RATIO, RATIO, Ratio, estimate
from croze.tools.approve import Approver
from croze.tools.registry import Registry
from croze.tools.run import Host, Outcome, run_calls
from croze.tools.team import Team
from croze.types.agent import AgentSpec
from croze.types.context import Budget, Context, Prompt
from croze.types.errors import StoreError
from croze.types.event import (
    BackgroundTask,
    Body,
    ChildClosed,
    ChildOpened,
    Compacted,
    Event,
    FactAdded,
    FilesChanged,
    HeadSet,
    ModelCalled,
    ModelSaid,
    Notice,
    Stopped,
    TodoItem,
    TodoSet,
    ToolReturned,
    Undone,
    UserSaid,
)
from croze.types.ids import Source
from croze.types.parts import Part, ToolCall
from croze.types.stream import Delta
from croze.types.team import Lease
from croze.types.tool import ToolShape
from croze.web.web import Web
from croze.workspace.background import Background
from croze.workspace.cache import RunCache
from croze.workspace.extraction import Extractions
from croze.workspace.track import Tracker
from croze.workspace.workspace import Workspace

if TYPE_CHECKING:
    from croze.agent.children import Children
    from croze.agent.host import CallHost
    from croze.knowledge.libraries import Libraries
    from croze.knowledge.skills import Skills
    from croze.mcp.servers import Servers


class Log(Protocol):
    """The session's log as the agent needs it; the store's, or a recorded one in replay."""

    session: str
    events: list[Event]

    async def append(self, *bodies: Body, durable: bool = False) -> tuple[Event, ...]: ...

    def close(self) -> None: ...


class Blobs(Protocol):
    async def put_blob(self, data: bytes) -> str: ...

    async def blob(self, digest: str) -> bytes: ...


Gather = Callable[["Live"], Awaitable[Sequence[FactAdded | Notice]]]


class RunCalls(Protocol):
    """Runs a reply's calls: `croze.tools.run.run_calls`, or the recorded results in replay."""

    async def __call__(
        self, calls: Sequence[ToolCall], *, registry: Registry, approver: Approver, host: Host
    ) -> Outcome: ...


PlanEdit = Callable[["Live", str, str, str, str], Awaitable[Sequence[Mapping[str, object]]]]
"""Plans the line edits of a sketch with a model: session, path, text, instructions, sketch."""


class Heard(Struct, frozen=True):
    """What hooks make of the user's message: what is recorded before and after it; `dropped` says why
    it isn't taken at all."""

    before: tuple[Body, ...] = ()
    after: tuple[Body, ...] = ()
    dropped: str = ""


class SessionHooks(Protocol):
    """The user's hooks at the points of a session that are no calls (`croze.agent.hooks`)."""

    def start(self, source: str) -> None: ...

    async def said(self, parts: Sequence[Part]) -> Heard: ...

    async def stopping(self, answer: str) -> bool:
        """Whether a hook makes the turn go on that is about to end."""
        ...

    async def compacting(self, trigger: str) -> None:
        """The context is about to be made smaller: `auto` by its policy, `manual` by the user's wish."""
        ...

    def notify(self, message: str) -> None: ...

    async def end(self, reason: str) -> None: ...

    def halted(self) -> str:
        """Why a hook wants the turn to end; empty where none does."""
        ...


Workflow = Callable[["Live", "CallHost", Meter], Awaitable[Stopped]]
"""What a turn is where it isn't the model's own loop: works until it is over and records the `Stopped`
that it gives (`croze.agent.loop.stop`)."""

AfterTurn = Callable[["Live", Stopped], Awaitable[None]]
"""Work that is done when a turn is over."""

Summarisers = Callable[["Live"], AsyncGenerator[Model, None]]
"""The models that may write a summary, in the order in which they are tried."""


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
    the notices that have been given since the head or the context's shape changed last. `meter` is the
    running turn's; `depth` counts the parents above a sub-agent's session. `children` are the session's own
    sub-agents, made by `call` when one is first wanted; what is `closing` is called when it ends; a sub-agent's `allowance` is what its caller lets
    it use, asked at the beginning of a turn, and `mirror` tells the caller of files that it has changed.
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
    env: Mapping[str, str]
    headless: bool
    tracker: Tracker | None = None
    policy: Policy = decide
    summarisers: Summarisers | None = None
    edit_agent: PlanEdit | None = None
    max_continuations: int = 6
    run_calls: RunCalls = run_calls
    hooks: SessionHooks | None = None
    team: Team | None = None
    workflow: Workflow | None = None
    after_turn: AfterTurn | None = None
    meter: Meter | None = None
    merging: asyncio.Lock = field(default_factory=asyncio.Lock)
    depth: int = 0
    children: "Children | None" = None
    call: "Callable[[], Children] | None" = None
    allowance: Callable[[], Lease] | None = None
    mirror: Callable[[FilesChanged], Awaitable[None]] | None = None
    projection: Projection = field(default_factory=Projection)
    ledger: Ledger = field(default_factory=Ledger)
    invariants: EventChecks = field(default_factory=EventChecks)
    images: Images = field(default_factory=Images)
    documents: Extractions = field(default_factory=Extractions)
    web: Web = field(default_factory=Web)
    mcp: "Servers | None" = None
    libraries: "Callable[[], Libraries] | None" = None
    skills: "Skills | None" = None
    closing: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    background: Background = field(default_factory=Background)
    digest: BodyDigest = field(default_factory=BodyDigest)
    todo: tuple[TodoItem, ...] = ()
    seen: dict[str, str] = field(default_factory=dict)
    cache: RunCache = field(default_factory=RunCache)
    looks: dict[str, list[ToolReturned]] = field(default_factory=dict)
    ratio: Ratio = field(default_factory=Ratio)
    checked: int = 0
    warned: set[str] = field(default_factory=set)
    steps: int = 0
    last_user: int = 0
    last_called: int = 0
    _fed: int = 0
    _told: int = 0
    _estimated: int = 0
    _rated: str = ""
    _reported: int = 0
    _reported_at: int = 0
    _short_ids: set[str] = field(default_factory=set)
    _shapes: tuple[Registry | None, Mapping[str, ToolShape]] = (None, {})

    def fold(self) -> None:
        """Take in the events of the log that are new since the last time, others' too. Nobody is told."""
        self._take_new()
        self._told = self._fed

    def _take_new(self) -> None:
        events = self.log.events
        while self._fed < len(events):
            event = events[self._fed]
            self._fed += 1
            self.projection.feed(event)
            self.ledger.feed(event)
            self.invariants.feed(event)
            self.images.know(event.body)
            self._take(event)

    def _take(self, event: Event) -> None:
        match event.body:
            case ToolReturned() as body:
                self.seen.update(body.observed)
                self._short_ids.add(body.message_id[:8])
                if body.look is not None:
                    self.looks.setdefault(body.look.key, []).append(body)
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
                    low, high = weight / HIGHEST_RATIO, weight / LOWEST_RATIO
                    self._reported = round(min(high, max(low, body.usage.input)))
                    self._reported_at = self.ledger.sent
            case TodoSet() as body:
                self.todo = body.items
            case BackgroundTask(state="running"):
                self.background.know(event.body.task_id)
            case Notice() as body:
                self.warned.add(body.code)
            case ChildOpened():
                self.with_children()
            case ChildClosed() as body if self.meter is not None:
                self.meter.returned(body.child, body.report)
            case HeadSet() as body:
                self.warned.clear()
                if self.ledger.cold:
                    self._reported = 0
                if body.model.name != self._rated:
                    self._rated, self.ratio = body.model.name, Ratio()
            case Undone() as body:
                self._take_undone(body)
            case Compacted() as body:
                self.checked = 0
                # A ceiling is told of once; after a recovery the window is nearly full again at once.
                self.warned &= {"share", "window"} if body.policy == "recovery" else {"share"}

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
        appended = await self.log.append(*map(redacted, bodies), durable=durable)
        self._take_new()
        while self._told < self._fed:
            self._told += 1
            self.bus.publish(self.log.events[self._told - 1])
        if self.mirror is not None:
            for body in bodies:
                if isinstance(body, FilesChanged):
                    await self.mirror(body)
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

    async def with_images(self, prompt: Prompt) -> Prompt:
        """The prompt with the bytes of its images; one that is no longer stored is told to be missing."""
        for name in self.images.missing:
            try:
                self.images.put({name: await self.blobs.blob(name)})
            except StoreError:
                self.images.put({name: None})
        return self.images.fill(prompt)

    def tokens(self, context: Context) -> int:
        """An estimate of a context's tokens, by the ratio learned from this model's reports."""
        return round(context.tokens * RATIO / self.ratio.value)

    @property
    def scale(self) -> float:
        """What turns an estimate of the log into the model's own tokens."""
        return RATIO / self.ratio.value

    def state(self, *, forced: bool = False) -> State:
        """What a policy decides by. The next request's tokens are what the provider reported last and
        an estimate of what came since; where it has reported nothing, an estimate of all of it."""
        ledger, scale, spec = self.ledger, self.scale, self.spec
        tokens = (self.head.tokens + ledger.tokens) * scale
        if self._reported:
            tokens = self._reported + (ledger.tokens - self._reported_at) * scale
        idle = None
        if ledger.last is not None and ledger.newest is not None and not ledger.cold:
            idle = max(0.0, (ledger.newest.at - ledger.last.at) / 1e6)
        return State(
            ledger=ledger,
            tokens=max(0, round(tokens)),
            head=round(self.head.tokens * scale),
            scale=scale,
            budget=self.budget,
            zone=zone_of(spec.policy, spec.zone, self.budget, low=spec.low, gain=spec.gain),
            prices=self.model.info.prices,
            idle=idle,
            forced=forced,
        )

    def shapes(self) -> Mapping[str, ToolShape]:
        """The shapes of all tools by tag, as the decoders want them."""
        if self._shapes[0] is not self.registry:
            self._shapes = (self.registry, self.registry.shapes())
        return self._shapes[1]

    def with_children(self) -> "Children | None":
        """The session's sub-agents, also where it has had none yet; None where it can have none."""
        if self.children is None and self.call is not None:
            self.children = self.call()
        return self.children

    async def tell(self, key: str, text: str, reason: str) -> None:
        """Tell the model something that nobody said: a reminder, a correction."""
        new, tokens = self.new_id(), estimate(text)
        fact = FactAdded(
            key=key, message_id=new, text=text, layer="current", reason=reason, tokens=tokens
        )
        await self.append(fact)
