"""One running sub-agent, and what the application gives for it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from croze.agent.budget import Spent, on_top, rest_of, within
from croze.agent.child import NOTHING, Tally, report_of, with_merge
from croze.tools.shielded import shielded
from croze.types.agent import AgentSpec
from croze.types.errors import CrozeError, UsageError
from croze.types.event import ChildOpened, Event, FilesChanged, Stopped
from croze.types.news import ChildNews
from croze.types.stream import Delta
from croze.types.team import ChildReport, Lease, Merged

if TYPE_CHECKING:
    from croze.agent.children import Children
    from croze.agent.live import Live
    from croze.agent.session import Session


@dataclass(frozen=True, slots=True)
class Ties:
    """What holds a sub-agent's session to its caller: what it may still use, asked at the beginning of
    each turn, and where its changes of files are told."""

    allowance: Callable[[], Lease]
    changed: Callable[[FilesChanged], Awaitable[None]]


class Sessions(Protocol):
    """Opens the sessions of sub-agents; wired by the application."""

    async def open(
        self, caller: "Live", spec: AgentSpec, opened: ChildOpened, ties: Ties
    ) -> "Session":
        """A sub-agent's session, new, or taken up again where there is one of this id. Raises CrozeError
        where it can't be opened; then nothing of it stays open."""
        ...

    async def length(self, session: str) -> int:
        """The last seq of a stored session. Raises ConversationNotFound."""
        ...

    async def mend(self, session: str) -> Sequence[Event]:
        """Bring the log of a session whose process died into order, its own sub-agents' too, and give its
        events; none where it was never made."""
        ...

    async def bring_back(self, caller: "Live", opened: ChildOpened) -> Merged | None:
        """The session is closed: take over what was done in a work tree of its own, as the caller's log
        then says; None where it had none. Raises CrozeError where the work can't be read; it stays."""
        ...

    async def settle(self, live: "Live") -> None:
        """A session is opened: record what processes that died have left of work trees."""
        ...


class Child:
    """A running sub-agent."""

    def __init__(self, home: "Children", opened: ChildOpened, limits: Lease) -> None:
        self.session = opened.child
        self.agent = opened.agent
        self.tally = Tally()
        self.error = ""
        self._home = home
        self._opened = opened
        self._limits = limits
        self._until = opened.lease
        self._begun = time.monotonic()
        self._session: Session | None = None
        self._report: ChildReport | None = None
        self._ending = asyncio.Lock()
        self._stop = False

    @property
    def answer(self) -> str:
        """The last turn's answer; where it was stopped, its last words."""
        return self.tally.answer

    @property
    def running(self) -> bool:
        return self._session is not None and self._session.running

    @property
    def spent(self) -> Spent:
        """What it and its own sub-agents have used since it was opened."""
        spent = Spent(self.tally.total.steps, self.tally.total.cost)
        children = None if self._session is None else self._session.children
        for child in () if children is None else children.open_ones:
            spent.add(child.spent.steps, child.spent.cost)
        return spent

    @property
    def seconds(self) -> float:
        """Since it was opened."""
        return time.monotonic() - self._begun

    def allowance(self) -> Lease:
        """What it may still use."""
        return rest_of(self._until, self.spent, self.seconds)

    async def submit(self, text: str) -> Stopped:
        """One turn of it; again: its conversation goes on. Its failures end the turn, they are not raised;
        raises CrozeError where the budget is used up or the log can't be written."""
        if self._session is None or self._report is not None:
            raise UsageError(
                f"The sub-agent {self.agent} ({self.session[:8]}) is closed.",
                hint="Open it again with resume.",
                code="child_closed",
            )
        if self._stop:
            return Stopped(reason="cancelled", text=NOTHING)
        self._home.lend(self)
        try:
            return await self._session.submit(text)
        finally:
            self._home.take_back(self)

    def cancel(self) -> None:
        """Stop it; what it has is kept."""
        self._stop = True
        if self._session is not None:
            self._session.cancel()

    def answer_question(self, ask_id: str, answer: str, note: str) -> bool:
        return self._session is not None and self._session.answer(ask_id, answer, note)

    async def close(self) -> ChildReport:
        """End it, and record its report. Again: the report."""
        async with self._ending:
            if self._report is None:
                await shielded(self._close())
        assert self._report is not None
        return self._report

    async def _close(self) -> None:
        session = self._session
        if session is not None:
            try:
                await session.close()
            except (CrozeError, OSError) as error:
                if self.tally.stopped is None:
                    self.error = self.error or str(error)
        merged = None
        try:
            merged = await self._home.sessions.bring_back(self._home.live, self._opened)
        except (CrozeError, OSError) as error:
            self.error = self.error or str(error)
        report = report_of(self._opened, self.tally, seconds=self.seconds, error=self.error)
        if merged is not None:
            from croze.agent.merge import told  # only where work comes back

            report = with_merge(report, merged, told(merged))
        events = () if session is None else session.events
        await self._home.closed(self._opened, events, report)
        self._report = report

    def attach(self, session: "Session") -> None:
        """Its session is open."""
        self._session = session
        session.subscribe(self._watch)

    def lent(self, lease: Lease) -> Lease:
        """It may use so much from now on; gives what that is together with what it has used."""
        self._until = within(on_top(lease, self.spent, self.seconds), self._limits)
        return self._until

    def _watch(self, item: Event | Delta | ChildNews) -> None:
        if isinstance(item, Event):
            self.tally.take(item)
        self._home.news(self, item)
