"""The orchestrator's plan of a stored session, with what its workers have used: a fold over its log."""

from typing import TYPE_CHECKING

from msgspec import Struct

from croze.types.errors import UsageError
from croze.types.event import ChildClosed, Event, PlanSet, Undone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from croze.app.app import App


class Used(Struct, frozen=True):
    """What a sub-agent has used, its own ones included; an unknown cost (US dollars) is None."""

    steps: int
    cost: float | None


class Planned(Struct, frozen=True):
    """A session's plan as it stands; `workers` by their sessions, those that have ended at least once."""

    session: str
    plan: PlanSet
    workers: dict[str, Used]


async def plan_of(app: "App", session: str) -> Planned:
    """The last plan of a session, given by its id or the start of one. Raises UsageError where it has
    none."""
    found = await app.store.resolve(session)
    planned = planned_in(await app.store.read(found), found)
    if planned is None:
        raise UsageError(
            f"The conversation {found[:8]} has no plan.",
            hint='Only the orchestrator makes one: croze run --agent orchestrator "the objective".',
            code="no_plan_here",
            session=found[:8],
        )
    return planned


def planned_in(events: "Sequence[Event]", session: str) -> Planned | None:
    undone = next((e.body for e in reversed(events) if isinstance(e.body, Undone)), None)
    plan: PlanSet | None = None
    workers: dict[str, Used] = {}
    for event in events:
        if isinstance(event.body, ChildClosed):
            report = event.body.report
            had = workers.get(event.body.child, Used(0, 0.0))
            cost = None if had.cost is None or report.cost is None else had.cost + report.cost
            workers[event.body.child] = Used(had.steps + report.steps, cost)
        elif isinstance(event.body, PlanSet) and not (undone and undone.hides(event.seq)):
            plan = event.body
    if plan is None:
        return None
    children = {task.child for task in plan.tasks}
    return Planned(session, plan, {c: used for c, used in workers.items() if c in children})
