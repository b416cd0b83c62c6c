"""The sub-agents of one session: opened, worked with, stopped, closed; each is a session of its own.

A sub-agent's session ends at the latest with the turn that opened it (`settle`); a later turn takes it
up again by its id. What it spends is leased from that turn's budget.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from croze.agent.budget import share_of, within
from croze.agent.child import (
    NOTHING,
    died,
    mirrored,
    missing_changes,
    refused_report,
    unclosed,
)
from croze.agent.executor import Executor, InProcess
from croze.agent.subagent import Child as Child
from croze.agent.subagent import Sessions, Ties
from croze.tools.shielded import shielded
from croze.types.agent import AgentSpec
from croze.types.errors import CrozeError, StoreError, UsageError
from croze.types.event import ChildClosed, ChildOpened, Event, FilesChanged
from croze.types.news import ChildNews
from croze.types.stream import Delta
from croze.types.team import ChildReport, Lease, Order, Roster

if TYPE_CHECKING:
    from croze.agent.live import Live

PARALLEL = 4
DEPTH = 2


@dataclass(slots=True)
class Children:
    """The sub-agents of the session `live`. `roster` gives whom there is to call; at most `parallel` of
    those that `run_all` starts work at a time, and sub-agents call others down to `depth`."""

    live: "Live"
    sessions: Sessions
    roster: Callable[[], Roster]
    parallel: int = PARALLEL
    depth: int = DEPTH
    executor: Executor = field(default_factory=InProcess)
    _open: dict[str, Child] = field(default_factory=dict)
    _gate: asyncio.Semaphore | None = None
    _stops: int = 0

    @property
    def open_ones(self) -> tuple[Child, ...]:
        """Those that are open, oldest first."""
        return tuple(self._open.values())

    async def open(
        self,
        order: Order,
        *,
        call_id: str = "",
        share: int = 1,
        waves: int = 1,
        resume: str = "",
        spec: AgentSpec | None = None,
    ) -> Child:
        """A sub-agent for `order`, with 1/`share` of the budget that is left. `resume` takes the session of
        an earlier one up again; `spec` is the agent where it is none of the roster. Raises CrozeError:
        unknown_agent, too_deep, budget_exhausted, and what opening a session raises."""
        if resume in self._open:
            return self._open[resume]
        spec = self._spec(order.agent) if spec is None else spec
        self._check_depth()
        lease = within(self._lease(order.agent, share, waves), order.limits)
        opened = ChildOpened(
            child=resume or self.live.source.uuid(),
            agent=spec.name,
            task=order.task,
            call_id=call_id,
            label=order.label,
            lease=lease,
            depth=self.live.depth + 1,
            isolation=spec.isolation,
            since=await self.sessions.length(resume) if resume else 0,
        )
        child = Child(self, opened, order.limits)
        self._open[opened.child] = child
        if self.live.meter is not None:
            self.live.meter.leases.hold(child.session, child, lease)
        try:
            await self.live.append(opened, durable=True)
            ties = Ties(allowance=child.allowance, changed=lambda body: self._mirror(opened, body))
            child.attach(await self.sessions.open(self.live, spec, opened, ties))
        except BaseException as error:
            del self._open[opened.child]
            await shielded(self._refused(opened, error))
            raise
        return child

    async def run(self, order: Order, *, call_id: str = "", share: int = 1) -> ChildReport:
        """Let a sub-agent do its task and give its report. Nothing that it does or that keeps it from
        beginning is raised."""
        return await self._run(order, call_id, share, 1)

    async def run_all(
        self,
        orders: Sequence[Order],
        mode: Literal["parallel", "serial"],
        *,
        call_id: str = "",
    ) -> list[ChildReport]:
        """Let sub-agents work side by side, or one after the other; the reports in the order of `orders`.
        Side by side each gets an equal part of what is left."""
        waiting = len(orders)
        stops = self._stops
        if self._gate is None:
            self._gate = asyncio.Semaphore(self.parallel)
        gate = self._gate

        async def work(order: Order) -> ChildReport:
            nonlocal waiting
            async with gate:
                share = waiting if mode == "parallel" else 1
                waves = ceil(waiting / self.parallel) if mode == "parallel" else 1
                waiting -= 1
                if self._stops != stops:
                    return replace(_not_begun(order, NOTHING), reason="cancelled")
                return await self._run(order, call_id, share, waves)

        reports: dict[int, ChildReport] = {}
        limit = self.parallel if mode == "parallel" else 1
        async with aclosing(self.executor.map(work, orders, limit=limit)) as outcomes:
            async for at, outcome in outcomes:
                if isinstance(outcome, StoreError):
                    raise outcome
                if isinstance(outcome, Exception):
                    outcome = _not_begun(orders[at], str(outcome))
                reports[at] = outcome
        return [reports[at] for at in range(len(orders))]

    def cancel(self, session: str | None = None) -> None:
        """Stop one sub-agent, or all of them and those that wait for their turn."""
        if session is not None:
            if session in self._open:
                self._open[session].cancel()
            return
        self._stops += 1
        for child in self.open_ones:
            child.cancel()

    def answer(self, ask_id: str, answer: str, note: str = "") -> bool:
        """Give a sub-agent's question its answer; False where none of them waits for it."""
        return any(child.answer_question(ask_id, answer, note) for child in self.open_ones)

    async def settle(self) -> None:
        """Close those that are open: the turn that opened them ends."""
        failed: StoreError | None = None
        for child in self.open_ones:
            child.cancel()
            try:
                await child.close()
            except StoreError as error:
                self._open.pop(child.session, None)
                failed = failed or error
        if failed is not None:
            raise failed

    async def close(self) -> None:
        """End all of them."""
        self.cancel()
        await self.settle()

    async def record_died(self) -> None:
        """Record the end of those that were open when this session's process died, with the changes of
        files that they had made."""
        for known in unclosed(self.live.log.events):
            events = await self.sessions.mend(known.opened.child)
            await self.live.append(*died(known, events, self.live.log.events), durable=True)

    # What follows is for `Child`.

    def lend(self, child: Child) -> None:
        """A sub-agent begins a turn: it holds its lease, or a new one where it was idle."""
        meter = self.live.meter
        if meter is None or meter.leases.works(child.session):
            return
        until = child.lent(self._lease(child.agent, 1, 1))
        meter.leases.hold(child.session, child, until)

    def take_back(self, child: Child) -> None:
        if self.live.meter is not None:
            self.live.meter.leases.idle(child.session)

    def news(self, child: Child, item: Event | Delta | ChildNews) -> None:
        """Tell this session's watchers what a sub-agent does."""
        here = (child.session, child.agent)
        if isinstance(item, ChildNews):
            told = replace(item, session=self.live.log.session, path=(here, *item.path))
        else:
            told = ChildNews(
                session=self.live.log.session,
                path=(here,),
                item=item,
                cost=child.tally.own.cost,
                subtree=child.spent.cost,
            )
        self.live.bus.publish(told)

    async def closed(
        self, opened: ChildOpened, events: Sequence[Event], report: ChildReport
    ) -> None:
        """Record the end of a sub-agent, with what is not yet told of its changes."""
        self._open.pop(opened.child, None)
        changes = missing_changes(events, self.live.log.events, opened)
        closed = ChildClosed(child=opened.child, report=report)
        await self.live.append(*changes, closed, durable=True)

    async def _run(self, order: Order, call_id: str, share: int, waves: int) -> ChildReport:
        try:
            child = await self.open(order, call_id=call_id, share=share, waves=waves)
        except StoreError:
            raise
        except CrozeError as error:
            return _not_begun(order, error.message)
        try:
            await child.submit(order.task)
        except asyncio.CancelledError:
            child.cancel()
            await child.close()
            raise
        except Exception as error:  # noqa: BLE001 - what breaks a sub-agent is a report, not a crash
            child.error = str(error) or type(error).__name__
        return await child.close()

    def _spec(self, name: str) -> AgentSpec:
        roster = self.roster()
        spec = roster.agent(name)
        if spec is None:
            known = ", ".join(each.name for each in roster.agents) or "none"
            raise UsageError(
                f"There is no agent named {name}. There are: {known}.",
                code="unknown_agent",
                agent=name,
            )
        return spec

    def _check_depth(self) -> None:
        if self.live.depth >= self.depth:
            raise UsageError(
                f"A sub-agent at depth {self.live.depth} can't call others: {self.depth} is the limit.",
                hint="Do this task yourself.",
                code="too_deep",
                depth=self.depth,
            )

    def _lease(self, agent: str, share: int, waves: int) -> Lease:
        meter = self.live.meter
        left = Lease() if meter is None else meter.left()
        lease = share_of(left, max(1, share), max(1, waves))
        if lease is None:
            raise UsageError(
                f"The budget that is left is too small for the sub-agent {agent}: {_told(left)}.",
                hint="Do what is left yourself, or finish with what you have.",
                code="budget_exhausted",
                agent=agent,
            )
        return lease

    async def _mirror(self, opened: ChildOpened, changed: FilesChanged) -> None:
        if opened.isolation == "shared":  # else they are no files of this session's
            await self.live.append(mirrored(changed, opened))

    async def _refused(self, opened: ChildOpened, error: BaseException) -> None:
        if any(known.opened.child == opened.child for known in unclosed(self.live.log.events)):
            report = refused_report(opened, error)
            await self.live.append(ChildClosed(child=opened.child, report=report), durable=True)
        elif self.live.meter is not None:
            self.live.meter.leases.end(opened.child)


def _not_begun(order: Order, error: str) -> ChildReport:
    return ChildReport(
        agent=order.agent,
        session="",
        ok=False,
        reason="refused",
        error=error,
        label=order.label,
        cost=0.0,
    )


def _told(left: Lease) -> str:
    """What is left of a budget, in words."""
    parts = []
    if left.steps is not None:
        parts.append(f"{left.steps} step{'s' * (left.steps != 1)}")
    if left.cost is not None:
        parts.append(f"${left.cost:.4f}")
    if left.seconds is not None:
        parts.append(f"{left.seconds:.0f} s")
    return ", ".join(parts) or "nothing"
