"""What a log says of its orchestrator's work: the plan as it stands, and what was said since. A fold; what
was undone doesn't count."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from croze.teams.plan import failed
from croze.types.event import Event, FactAdded, ModelCalled, Stopped, Undone, UserSaid
from croze.types.parts import Text
from croze.types.team import ChildOpened, PlanSet

PLANNER_LABEL = "the plan"
"""The label of a planner's order. A worker's is its task's id, which holds no blank."""

RESULTS = "plan_results"
"""The key of the fact that tells the results."""


class Progress(Struct, kw_only=True):
    """Where the work stands. `plan` is the last one, over or not. `said` are the user's messages that no
    planning has heard. `planner` is the session that made the plan, and `planning` whether it was at
    work on it when the log ends. `replans` counts the plannings for failed tasks since the last turn
    ended; `told` whether the results were told to the model that writes the answer; `answer` is the last
    turn's."""

    plan: PlanSet | None = None
    said: list[str] = []
    planner: str = ""
    planning: bool = False
    replans: int = 0
    told: bool = False
    answer: str = ""


def progress_of(events: Sequence[Event], planner: str) -> Progress:
    """The fold over a session's log. `planner` is the name of the planner's agent."""
    found = Progress()
    for event in standing(events):
        match event.body:
            case UserSaid() as body:
                found.said.append("\n".join(p.text for p in body.parts if isinstance(p, Text)))
            case PlanSet() as body:
                if found.plan is None or found.plan.plan_id != body.plan_id:
                    found.planner, found.replans = "", 0
                found.plan = body
                found.planning = found.told = False
                if body.state == "planning":
                    found.said.clear()
                    found.replans += bool(failed(body))
            case ChildOpened() as body:
                if body.agent == planner and body.label == PLANNER_LABEL:
                    found.planner, found.planning = body.child, True
            case FactAdded(key=key) if key == RESULTS:
                found.told = True
            case ModelCalled(purpose="main"):
                found.said.clear()
            case Stopped() as body:
                found.replans = 0
                found.answer = body.text
            case _:
                pass
    return found


def standing(events: Sequence[Event]) -> Iterable[Event]:
    """The events that are not undone, oldest first."""
    undone = next((e.body for e in reversed(events) if isinstance(e.body, Undone)), None)
    return (event for event in events if undone is None or not undone.hides(event.seq))
