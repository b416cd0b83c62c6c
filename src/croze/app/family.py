"""A conversation with its sub-agents, theirs below them: who worked on what, how it ended, what it took."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from croze.agent.child import Known, children_of, tally_of
from croze.types.errors import ConversationNotFound
from croze.types.event import Event, HeadSet, SessionOpened, UserSaid
from croze.types.parts import Text

if TYPE_CHECKING:
    from croze.app.app import App

OPEN = "open"


class Member(Struct, frozen=True, omit_defaults=True):
    """One agent's session. `state` is how it ended last (done, failed, steps, died …), `open` where no end
    is recorded. Steps and cost (US dollars, None: unknown) are its own and its sub-agents'; `own_cost` is
    its own alone. `openings` counts how often it was called."""

    session: str
    agent: str
    task: str
    state: str
    label: str = ""
    steps: int = 0
    cost: float | None = None
    own_cost: float | None = None
    files: tuple[str, ...] = ()
    openings: int = 1
    children: tuple["Member", ...] = ()


async def family_of(app: "App", conversation: str) -> Member:
    """The conversation (an id or the beginning of one) with all below it. Raises ConversationNotFound."""
    session = await app.store.resolve(conversation)
    events = await app.store.read(session)
    tally = tally_of(events)
    heads = [event.body.agent.name for event in events if isinstance(event.body, HeadSet)]
    stopped = tally.stopped
    return Member(
        session=session,
        agent=heads[-1] if heads else "main",
        task=_task(events),
        state=OPEN if stopped is None else stopped.reason,
        steps=tally.total.steps,
        cost=tally.total.cost,
        own_cost=tally.own.cost,
        files=tuple(tally.files),
        children=await _below(app, events),
    )


async def _below(app: "App", events: Sequence[Event]) -> tuple[Member, ...]:
    times: dict[str, list[Known]] = {}
    for known in children_of(events):
        times.setdefault(known.opened.child, []).append(known)
    return tuple([await _member(app, each) for each in times.values()])


async def _member(app: "App", times: Sequence[Known]) -> Member:
    """One sub-agent, called once or several times."""
    first, last = times[0].opened, times[-1]
    reports = [known.report for known in times if known.report is not None]
    costs = [report.cost for report in reports if report.cost is not None]
    try:
        events = await app.store.read(first.child)
    except ConversationNotFound:
        events = []
    return Member(
        session=first.child,
        agent=first.agent,
        task=first.task,
        state=OPEN if last.report is None else last.report.reason,
        label=first.label,
        steps=sum(report.steps for report in reports),
        cost=sum(costs) if len(costs) == len(times) else None,
        own_cost=tally_of(events).own.cost,
        files=tuple(dict.fromkeys(path for report in reports for path in report.files)),
        openings=len(times),
        children=await _below(app, events),
    )


def _task(events: Sequence[Event]) -> str:
    for event in events:
        if isinstance(event.body, UserSaid):
            return " ".join(p.text for p in event.body.parts if isinstance(p, Text))
    opened = events[0].body
    return opened.name if isinstance(opened, SessionOpened) else ""
