"""What a worker is told: the objective, its own task, and the results of the tasks that this one needs."""

from croze.context.fence import fenced
from croze.tools.bound import bounded
from croze.types.team import PlanSet, PlanTask

ROOM = 24_000
"""Characters of all needed results together at most."""

OBJECTIVE = 12_000
"""Characters of the objective that a worker sees."""

NOT_DONE = "NOT DONE"
"""How the report begins of a worker that could not do its task."""

ABOUT = (
    "Do this task, and only it: others do the rest of the objective, some of them now, in the same folder. "
    "End with a report that says what you did or found: paths, names, numbers, decisions that others need. "
    f"If you can't do it, begin the report with {NOT_DONE}: and say why and what is missing."
)
AGAIN = (
    "You may have been at this task before an interruption: if you have done it already, give your report and "
    "do nothing more."
)
TAKEN_UP = (
    "Another worker began this task and was interrupted. What it did may stand in the files: look before you "
    "do it again."
)


def assignment(plan: PlanSet, task: PlanTask, note: str = "", *, room: int = ROOM) -> str:
    """The text of a worker's order, with needed results in `room` characters, ended by a `note` for one
    that takes it up."""
    found = {each.id: each for each in plan.tasks}
    needed = [found[need] for need in task.needs if need in found]
    parts = [fenced("objective", bounded(plan.objective, OBJECTIVE)[0])]
    if needed:
        share = min(ROOM, room) // len(needed)
        texts = "\n".join(
            fenced("result", bounded(each.result, share)[0], task=each.id) for each in needed
        )
        parts.append(fenced("results", texts))
    parts.append(fenced("task", task.text, id=task.id))
    parts.append(f"{ABOUT} {note}".rstrip())
    return "\n\n".join(parts)


def is_not_done(report: str) -> bool:
    """Whether a worker says that it could not do its task."""
    return report.lstrip(" \n*#_").upper().startswith(NOT_DONE)
