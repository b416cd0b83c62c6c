"""Plans as values: what may start next, what a state makes of the others, what is wrong with one, and
what a new planning makes of the old one. Nothing here does anything."""

from collections.abc import Collection, Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from msgspec.structs import replace

from croze.types.team import PlanSet, PlanTask

MOST_TASKS = 30
"""Tasks that one planning may give."""

LONGEST_TASK = 8_000
"""Characters of a task's text."""

LONGEST_ID = 40


def ready(plan: PlanSet) -> list[PlanTask]:
    """The tasks that may start now: everything that they need is done."""
    done = {task.id for task in plan.tasks if task.state == "done"}
    return [task for task in plan.tasks if task.state == "pending" and done.issuperset(task.needs)]


def failed(plan: PlanSet) -> list[PlanTask]:
    return [task for task in plan.tasks if task.state == "failed"]


def changed(plan: PlanSet, task_id: str, **changes: Any) -> PlanSet:
    """The plan with these fields of one task."""
    tasks = (replace(task, **changes) if task.id == task_id else task for task in plan.tasks)
    return replace(plan, tasks=tuple(tasks))


def halted(plan: PlanSet) -> PlanSet:
    """The plan with nothing running. A task's child is kept: its work is taken up again."""
    tasks = (
        replace(task, state="pending") if task.state == "running" else task for task in plan.tasks
    )
    return replace(plan, tasks=tuple(tasks))


def without_hope(plan: PlanSet) -> PlanSet:
    """The plan with every task skipped that needs one which will never be done."""
    while True:
        lost = {task.id for task in plan.tasks if task.state in ("failed", "skipped")}
        tasks = tuple(
            replace(task, state="skipped", error=f"it needs {', '.join(missing)}")
            if task.state == "pending" and (missing := [n for n in task.needs if n in lost])
            else task
            for task in plan.tasks
        )
        if tasks == plan.tasks:
            return plan
        plan = replace(plan, tasks=tasks)


def revised(plan: PlanSet, tasks: Sequence[PlanTask], reason: str) -> PlanSet:
    """The plan with these tasks for what is left to do. What is done stays as it is; what the new tasks
    don't name again is skipped, so that nothing disappears. A task of an old id counts its tries on; one
    that was interrupted and is given again word by word keeps its worker."""
    known = {task.id: task for task in plan.tasks}
    named = {task.id for task in tasks}
    revision = plan.revision + 1
    kept = [
        task
        if task.state in ("done", "skipped")
        else replace(task, state="skipped", error=task.error or f"left out by planning {revision}")
        for task in plan.tasks
        if task.id not in named
    ]
    new = [_taken_over(known[task.id], task) if task.id in known else task for task in tasks]
    return replace(plan, tasks=(*kept, *new), state="working", revision=revision, reason=reason)


def _taken_over(old: PlanTask, new: PlanTask) -> PlanTask:
    same = old.state == "pending" and (old.text, old.agent) == (new.text, new.agent)
    return replace(new, attempts=old.attempts, child=old.child if same else "")


def faults(
    tasks: Sequence[PlanTask], *, agents: Collection[str], done: Collection[str] = ()
) -> list[str]:
    """What is wrong with the tasks that a planner gave, a sentence each; none where they can be worked
    on. `done` are ids of an earlier planning that may be needed, but not be given again."""
    found: list[str] = []
    if len(tasks) > MOST_TASKS:
        found.append(f"There are {len(tasks)} tasks; at most {MOST_TASKS} are allowed.")
    ids: set[str] = set()
    for task in tasks:
        if not _is_id(task.id):
            found.append(
                f"{task.id!r} is no id: use at most {LONGEST_ID} letters, digits, '-', '_' and '.'."
            )
        elif task.id in ids:
            found.append(f"The id {task.id} is given twice.")
        elif task.id in done:
            found.append(f"The task {task.id} is done already: leave it out, or use a new id.")
        ids.add(task.id)
    for task in tasks:
        if not task.text.strip():
            found.append(f"The task {task.id} says nothing: its `task` is empty.")
        elif len(task.text) > LONGEST_TASK:
            found.append(
                f"The task {task.id} has {len(task.text):,} characters; at most {LONGEST_TASK:,} are "
                "allowed."
            )
        if task.agent not in agents:
            found.append(
                f"The task {task.id} names the agent {task.agent!r}; there are: "
                f"{', '.join(sorted(agents))}."
            )
        for need in task.needs:
            if need not in ids and need not in done:
                found.append(f"The task {task.id} needs {need!r}, which is no task of the plan.")
    circle = cycle(tasks)
    if circle:
        found.append(f"These tasks need each other in a circle: {' → '.join(circle)}.")
    return found


def cycle(tasks: Iterable[PlanTask]) -> list[str]:
    """The ids of a circle, each of which needs the next, its first one again at the end; empty where
    there is none."""
    needs = {task.id: task.needs for task in tasks}
    known = {each: [need for need in wanted if need in needs] for each, wanted in needs.items()}
    try:
        TopologicalSorter(known).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def _is_id(text: str) -> bool:
    plain = text.replace("-", "").replace("_", "").replace(".", "")
    return 0 < len(text) <= LONGEST_ID and plain.isascii() and plain.isalnum()
