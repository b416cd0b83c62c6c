"""The completer: what the session's own model is told to write the answer from, and the answer by code
where no model can be asked."""

from croze.context.fence import fenced
from croze.tools.bound import bounded
from croze.types.team import PlanSet, PlanTask

ROOM = 60_000
"""Characters of all results together that the completer sees at most."""

LEAST = 300
"""Characters that are left of a result, however small the window is."""

_STATES = {"done": "done", "failed": "failed", "skipped": "not done"}


def results(plan: PlanSet, room: int = ROOM) -> str:
    """The plan's results in `room` characters, with what to do with them: the answer is written now."""
    share = max(LEAST, min(ROOM, room) // max(1, len(plan.tasks)))
    tasks = "\n\n".join(_result(task, share) for task in plan.tasks) or "No task was needed."
    return (
        f"{fenced('objective', plan.objective)}\n\n{fenced('results', tasks)}\n\n"
        "Workers did these tasks for the objective; their changes are in the files. Write the final answer to "
        "the objective now, from their results. Say what was done and what came out; where a task failed or "
        "was not done, say so and why. Start no further work: read a file only where the results contradict "
        "one another or leave open what the objective asks."
    )


def _result(task: PlanTask, share: int) -> str:
    state = _STATES.get(task.state, task.state)
    lines = [bounded(task.text, LEAST)[0]]
    if task.error:
        lines.append(f"Why: {task.error}")
    if task.result:
        lines.append(f"Result:\n{bounded(task.result, share)[0]}")
    return fenced("task", "\n".join(lines), id=task.id, state=state)


def in_short(plan: PlanSet) -> str:
    """How far the plan has come, in a sentence."""
    if not plan.tasks:
        return "There is no plan yet."
    counts = {state: sum(task.state == state for task in plan.tasks) for state in _STATES}
    text = f"{counts['done']} of {len(plan.tasks)} tasks are done"
    if counts["failed"]:
        text += f", {counts['failed']} failed"
    if counts["skipped"]:
        text += f", {counts['skipped']} left out"
    return f"{text}."
