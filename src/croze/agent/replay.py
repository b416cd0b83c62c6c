"""Replay: the loop runs again over a recorded session, with the model, the tools, the facts, the times
and the identities taken from the record. Every event that comes out is compared with the recorded one,
and so is the hash of every request's bytes. Nothing is executed and no network is used."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from croze.agent.live import Gather, Live
from croze.agent.recorded import Diverged, Ended, RecordedLog
from croze.agent.resume import repairs
from croze.tools.approve import Approver
from croze.tools.registry import Registry
from croze.tools.run import Host, Outcome
from croze.types.event import (
    FactAdded,
    ModelCalled,
    ModelSaid,
    Notice,
    Retried,
    Stopped,
    ToolReturned,
)
from croze.types.parts import ToolCall


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
            case Stopped() | Notice() | Retried():
                log.take()
                live.fold()
            case ModelCalled(purpose=purpose) | ModelSaid(purpose=purpose) if purpose != "main":
                log.take()  # asked aside, between turns
                live.fold()
            case _:
                try:
                    await turn()
                except Ended:
                    live.fold()
    return requests(log)


def requests(log: RecordedLog) -> int:
    """How many requests of the conversation have been rebuilt."""
    return sum(
        isinstance(event.body, ModelCalled) and event.body.purpose == "main" for event in log.events
    )


async def _take_repairs(live: Live, log: RecordedLog) -> None:
    """Results between turns: those that close what an interruption left open, and no others."""
    bodies = repairs(log.events, live.new_id)
    if not bodies:
        raise Diverged(f"event {len(log.events) + 1}: the record has a result of no open call")
    await live.append(*bodies)


def recorded_gather(log: RecordedLog) -> Gather:
    """Facts as the record has them: those that stand before the next request."""

    async def gather(_live: Live) -> list[FactAdded]:
        log.take_outside()
        facts: list[FactAdded] = []
        for event in log.recorded[len(log.events) :]:
            if not isinstance(event.body, FactAdded):
                break
            facts.append(event.body)
        return facts

    return gather


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
        refused = sum(result.code in ("not_allowed", "refused") for result in results)
        return Outcome(results=tuple(results), ended=ended, refused=refused)
