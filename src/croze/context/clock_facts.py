"""The clock in the tail: the time and what is left of the turn's limits, told now and then."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from croze.text.tokens import estimate
from croze.types.event import Compacted, Event, FactAdded, HeadSet, ModelCalled, Stopped

if TYPE_CHECKING:
    from croze.context.gather import GatherState

CLOCK = "clock"
EVERY = 10
"""Requests after which the clock is told again; between them it would only cost."""


async def gather_clock(state: "GatherState") -> Sequence[FactAdded]:
    """The time and the limits, every tenth request and where a compaction took the last ones."""
    if not _is_due(state.events):
        return ()
    now = datetime.fromtimestamp(state.source.now() / 1e6, tz=UTC).astimezone()
    lines = [f"Time: {now:%Y-%m-%d %H:%M}", *_limits(state.events)]
    text = "\n".join(("<clock>", *lines, "</clock>"))
    fact = FactAdded(
        key=CLOCK,
        message_id=state.source.uuid(),
        text=text,
        layer="current",
        place="tail",
        reason="the time and the turn's limits",
        origin="clock",
        tokens=estimate(text),
    )
    return (fact,)


def _is_due(events: Sequence[Event]) -> bool:
    """Looks back no further than to the last ten requests."""
    calls = 0
    compacted = False
    for event in reversed(events):
        body = event.body
        if isinstance(body, ModelCalled) and body.purpose == "main":
            calls += 1
            if calls >= EVERY:
                return True
        elif isinstance(body, Compacted):
            compacted = True
        elif isinstance(body, FactAdded) and body.key == CLOCK:
            return compacted
    return False


def _limits(events: Sequence[Event]) -> list[str]:
    """How many steps this turn has taken of those that it may, where there is such a limit."""
    heads = (event.body for event in reversed(events) if isinstance(event.body, HeadSet))
    head = next(heads, None)
    if head is None or head.agent.limits.steps is None:
        return []
    steps: set[int] = set()
    for event in reversed(events):
        if isinstance(event.body, Stopped):
            break
        if isinstance(event.body, ModelCalled) and event.body.purpose == "main":
            steps.add(event.body.step)
    return [f"Steps of this turn: {len(steps)} of {head.agent.limits.steps}"]
