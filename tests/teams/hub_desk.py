"""A hub over agents that are functions: what each is told and what it answers, with a log in memory."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from croze.teams.hub import Hub
from croze.types.agent import AgentSpec
from croze.types.errors import ConversationNotFound, CrozeError
from croze.types.event import Body, ChildClosed, ChildOpened, Event, SessionOpened, Stopped
from croze.types.ids import SystemSource
from croze.types.team import ChildReport, GroupSpec, Order, Roster, TeamSaid

Answer = Callable[[str], Awaitable[str]]


@dataclass
class Speaker:
    desk: "Desk"
    session: str
    order: Order
    stopped: Stopped | None = None

    async def submit(self, text: str) -> Stopped:
        desk, agent = self.desk, self.order.agent
        desk.heard.append((agent, text))
        desk.working += 1
        desk.most = max(desk.most, desk.working)
        try:
            said = await desk.answers[agent](text)
            self.stopped = Stopped(reason="done", text=said)
        except CrozeError as error:
            self.stopped = Stopped(reason="failed", text=str(error))
        except asyncio.CancelledError:
            self.stopped = Stopped(reason="cancelled")
            raise
        finally:
            desk.working -= 1
        return self.stopped

    async def close(self) -> ChildReport:
        self.desk.open.discard(self.session)
        stopped = self.stopped or Stopped(reason="cancelled")
        ok = stopped.reason == "done"
        report = ChildReport(
            agent=self.order.agent,
            session=self.session,
            ok=ok,
            text=stopped.text if ok else "",
            reason=stopped.reason,
            error="" if ok else stopped.text or "Stopped.",
            cost=self.desk.price,
        )
        await self.desk.append(ChildClosed(self.session, report))
        return report


@dataclass
class Desk:
    """Opens the sessions of `answers`; `dead` are those that can't be taken up any more."""

    answers: dict[str, Answer]
    groups: tuple[GroupSpec, ...] = ()
    price: float | None = 0.01
    events: list[Event] = field(default_factory=list)
    heard: list[tuple[str, str]] = field(default_factory=list)
    orders: list[tuple[Order, int, str]] = field(default_factory=list)
    open: set[str] = field(default_factory=set)
    dead: set[str] = field(default_factory=set)
    refusal: CrozeError | None = None
    working: int = 0
    most: int = 0

    def __post_init__(self) -> None:
        if not self.events:
            self.events.append(Event("run", 1, 0, SessionOpened(name="run")))
        self.sessions = self
        self.hub = self.new_hub()

    def new_hub(self) -> Hub:
        """A hub over the log as it stands, as after a restart."""
        agents = tuple(AgentSpec(name=name) for name in self.answers)
        return Hub(
            self._opener,
            Roster(agents, self.groups),
            self.append,
            events=self.events,
            source=SystemSource(),
        )

    @property
    def _opener(self) -> Any:
        desk = self

        class Opener:
            async def open(
                self, order: Order, *, call_id: str = "", share: int = 1, resume: str = ""
            ) -> Speaker:
                return await desk.opened(order, call_id, share, resume)

        return Opener()

    async def opened(self, order: Order, call_id: str, share: int, resume: str) -> Speaker:
        await asyncio.sleep(0)
        if self.refusal is not None:
            raise self.refusal
        if resume in self.dead:
            raise ConversationNotFound(f"There is no session {resume}.")
        self.orders.append((order, share, call_id))
        session = resume or f"{order.agent}-{len(self.orders)}"
        await self.append(ChildOpened(session, order.agent, order.task, label=order.label))
        assert session not in self.open, "an agent works on one message at a time"
        self.open.add(session)
        return Speaker(self, session, order)

    async def append(self, *bodies: Body) -> None:
        await asyncio.sleep(0)
        for body in bodies:
            self.events.append(Event("run", len(self.events) + 1, 0, body))

    @property
    def said(self) -> list[TeamSaid]:
        return [event.body for event in self.events if isinstance(event.body, TeamSaid)]

    @property
    def lines(self) -> list[str]:
        """What was said, as `sender>to: text`."""
        return [
            f"{each.sender}>{each.to or each.group}: {each.text or each.error}"
            for each in self.said
        ]

    def told(self, agent: str) -> list[str]:
        """What an agent was told, in order."""
        return [text for name, text in self.heard if name == agent]


def says(*texts: str) -> Answer:
    """An agent that gives these answers in turn, the last one for ever."""
    left = list(texts)

    async def answer(text: str) -> str:
        return left.pop(0) if len(left) > 1 else left[0]

    return answer
