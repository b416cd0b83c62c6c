"""Replay: the loop runs again over a recorded session, with the model, the tools, the facts, the times
and the identities taken from the record. Every event that comes out is compared with the recorded one,
and so is the hash of every request's bytes. Nothing is executed and no network is used."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from croze.agent.compaction import ASKED, compact_asked
from croze.agent.host import CallHost
from croze.agent.limits import Meter
from croze.agent.live import Gather, Heard, Live, Workflow
from croze.agent.loop import work
from croze.agent.recorded import BROKEN_OFF, Diverged, Ended, RecordedLog
from croze.agent.resume import BREAK, repairs
from croze.context.law import SKIPPED, UNTRUSTED
from croze.context.library_facts import MISSING, VERSION
from croze.context.rules_facts import PROBLEM
from croze.context.rules_facts import UNTRUSTED as RULE_UNTRUSTED
from croze.tools.approve import Approver
from croze.tools.registry import Registry
from croze.tools.run import HELD_BACK, Host, Outcome
from croze.types.event import (
    ChildClosed,
    ChildOpened,
    Event,
    FactAdded,
    FilesChanged,
    HooksRan,
    Merged,
    ModelCalled,
    ModelSaid,
    Notice,
    Retried,
    Stopped,
    TeamSaid,
    ToolReturned,
    UserSaid,
)
from croze.types.parts import Part, ToolCall

IN_TURN = ("main", "summary")
"""Purposes of the requests that the loop itself makes."""

REFUSALS = frozenset({"not_allowed", "refused", "blocked_by_hook", *HELD_BACK})
"""Codes of the results of calls that were not let run."""

WORKFLOW_FACTS = frozenset({"plan_results"})
"""Keys of the facts that a workflow tells before it lets the model work."""

GATHERED = frozenset({SKIPPED, UNTRUSTED, PROBLEM, RULE_UNTRUSTED, VERSION, MISSING})
"""Codes of the notices that come with gathered facts; others are the loop's own."""


async def replay(live: Live, log: RecordedLog, turn: Callable[[], Awaitable[Stopped]]) -> int:
    """Run every turn of the record again; gives the number of requests that were rebuilt, all alike.
    Raises Diverged at the first difference."""
    while log.peek() is not None:
        log.take_outside()
        live.fold()
        match log.peek():
            case None:
                break
            case ToolReturned():
                await _take_repairs(live, log)
            case Notice(code=code) if code == ASKED:
                await _compact(live, log)
            case Stopped() | Notice() | Retried():
                log.take()
                live.fold()
            case ChildOpened() | ChildClosed() | FilesChanged() | Merged() | TeamSaid():
                log.take()  # a program has let sub-agents work
                live.fold()
            case ModelCalled(purpose=purpose) | ModelSaid(purpose=purpose) if (
                purpose not in IN_TURN
            ):
                log.take()  # asked aside, between turns
                live.fold()
            case _:
                try:
                    await turn()
                except Ended:
                    live.fold()
    return requests(log)


def requests(log: RecordedLog) -> int:
    """How many requests have been rebuilt: those of the conversation and those for its summaries."""
    return sum(
        isinstance(event.body, ModelCalled) and event.body.purpose in IN_TURN
        for event in log.events
    )


async def _compact(live: Live, log: RecordedLog) -> None:
    """What the user asked for between turns, unless it was broken off."""
    try:
        done = await compact_asked(live)
    except Ended:
        live.fold()
        return
    if done is None:
        raise Diverged(f"event {len(log.events) + 1}: the record makes the context smaller")


async def _take_repairs(live: Live, log: RecordedLog) -> None:
    """Results between turns: those that close what an interruption left open, and no others."""
    bodies = repairs(log.events, live.new_id)
    if not bodies:
        raise Diverged(f"event {len(log.events) + 1}: the record has a result of no open call")
    await live.append(*bodies)


def recorded_gather(log: RecordedLog) -> Gather:
    """Facts as the record has them: those that stand before the next request."""

    async def gather(live: Live) -> list[FactAdded | Notice]:
        log.take_outside()
        log.take_findings()
        live.fold()
        found: list[FactAdded | Notice] = []
        for event in log.recorded[len(log.events) :]:
            body = event.body
            if isinstance(body, FactAdded) or (isinstance(body, Notice) and body.code in GATHERED):
                found.append(body)
            else:
                break
        return found

    return gather


def recorded_workflow(log: RecordedLog) -> Workflow:
    """A workflow that does nothing: what others have done for it stands in the record. Only where it let
    the session's own model work, that is run again."""

    async def again(live: Live, host: CallHost, meter: Meter) -> Stopped:
        answer: str | None = None
        while (body := log.peek()) is not None and body != BREAK:
            if answer is None and _own_work_is_next(log):
                _, answer = await work(live, host, meter)
                continue
            log.take()
            live.fold()
            if isinstance(body, Stopped):
                if answer not in (None, body.text) and body.reason not in BROKEN_OFF:
                    raise Diverged(f"event {len(log.events)}: the turn's answer differs")
                return body
        raise Ended

    return again


def _own_work_is_next(log: RecordedLog) -> bool:
    """Whether nothing stands before the next request of the loop but what the loop itself appends."""
    for event in log.recorded[len(log.events) :]:
        match event.body:
            case ModelCalled(purpose="main"):
                return True
            case FactAdded(key=key) if key not in WORKFLOW_FACTS:
                continue
            case UserSaid() | Notice(level="warning") | HooksRan():
                continue
            case _:
                return False
    return False


@dataclass(frozen=True, slots=True)
class RecordedHooks:
    """Hooks that don't run: what they did stands in the record."""

    live: Live
    log: RecordedLog

    def start(self, source: str) -> None:
        del source

    async def said(self, parts: Sequence[Part]) -> Heard:
        del parts
        return Heard()

    async def stopping(self, answer: str) -> bool:
        del answer
        if not isinstance(self.log.ahead(), Stopped):
            self.log.take_outside()
            self.live.fold()
        return held_since_reply(self.log.events)

    async def compacting(self, trigger: str) -> None:
        del trigger
        self.log.take_outside()
        self.live.fold()

    def notify(self, message: str) -> None:
        del message

    async def end(self, reason: str) -> None:
        del reason

    def halted(self) -> str:
        return ""


def held_since_reply(events: Sequence[Event]) -> bool:
    """Whether hooks held off the end of the turn after the newest reply."""
    for event in reversed(events):
        match event.body:
            case ModelSaid(purpose="main"):
                return False
            case HooksRan(point="Stop" | "SubagentStop", decision="deny"):
                return True
            case _:
                pass
    return False


@dataclass(frozen=True, slots=True)
class RecordedCalls:
    """A runner that runs nothing: it takes over what the record says of the calls."""

    live: Live
    log: RecordedLog

    async def __call__(
        self, calls: Sequence[ToolCall], *, registry: Registry, approver: Approver, host: Host
    ) -> Outcome:
        del approver, host
        waiting = {call.id for call in calls}
        results: list[ToolReturned] = []
        while waiting:
            body = self.log.peek()
            if body is None or (isinstance(body, ModelCalled) and body.purpose == "main"):
                raise Diverged(f"event {len(self.log.events) + 1}: a call has no recorded result")
            self.log.take()
            self.live.fold()
            if isinstance(body, ToolReturned) and body.call_id in waiting:
                waiting.discard(body.call_id)
                results.append(body)
        if not isinstance(self.log.ahead(), Stopped):
            self.log.take_outside()  # said while the calls ran
            self.live.fold()
        ended = None
        for result in results:
            kind = registry.get(result.name)
            if kind is not None and kind.doc.ends_turn and result.ok:
                ended = result
        refused = sum(result.code in REFUSALS for result in results)
        return Outcome(results=tuple(results), ended=ended, refused=refused)
