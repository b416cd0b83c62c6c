"""How the orchestrator's plan looks: as a tree, and what is new in it, line by line."""

from collections.abc import Mapping

from croze.text.display import one_line, safe
from croze.types.team import PlanSet, PlanTask
from croze.ui.cli.output import dollars
from croze.ui.i18n import _
from croze.ui.sums import counted_steps

SHORT = 8
_MARKS = {"pending": "○", "running": "●", "done": "✓", "failed": "✗", "skipped": "–"}
_STYLES = {"running": "cyan", "done": "green", "failed": "red", "skipped": "dim"}
Line = tuple[str, str]
"""A line and its style, empty for none."""


class PlanView:
    """Follows one session's plan: what each `PlanSet` tells that the one before did not."""

    def __init__(self, width: int = 100) -> None:
        self._width = width
        self._last: PlanSet | None = None

    def take(self, plan: PlanSet) -> list[Line]:
        """The lines that tell what is new."""
        last, self._last = self._last, plan
        if last is None or last.plan_id != plan.plan_id:
            if plan.tasks:  # an earlier run made it
                return [(heading(plan), "bold"), *tree(plan, {}, self._width)[1:]]
            last = PlanSet(plan_id=plan.plan_id, objective="", tasks=())
        lines: list[Line] = []
        known = {task.id: task for task in last.tasks}
        if plan.state == "planning" and last.state != "planning":
            why = f" ({one_line(plan.reason, 100)})" if last.tasks and plan.reason else ""
            lines.append((_("planning") + why, "dim"))
        if plan.state == "working" and last.state == "planning":
            if last.tasks and plan.revision == last.revision:
                return lines  # it could not be made anew
            count = sum(task.state == "pending" for task in plan.tasks)
            told = _("plan: 1 task") if count == 1 else _("plan: {count} tasks", count=count)
            if not plan.tasks:
                return [(_("nothing has to be done; the answer is being written"), "dim")]
            lines.append((told, "bold"))
            lines += tree(plan, {}, self._width)[1:]
            return lines
        for task in plan.tasks:
            before = known.get(task.id)
            if before is None or before.state != task.state:
                lines += self._changed(plan, task)
        halted = [t for t in plan.tasks if t.state == "pending" and t.id in known]
        if any(known[task.id].state == "running" for task in halted):
            lines.append((heading(plan), "dim"))
        if plan.state == "completing" and last.state != "completing" and plan.tasks:
            lines.append((heading(plan), "dim"))
        return lines

    def _changed(self, plan: PlanSet, task: PlanTask) -> list[Line]:
        if task.state in ("pending", "running"):  # of its beginning the sub-agent itself tells
            return []
        told = {
            "done": _("done"),
            "failed": _("failed"),
            "skipped": _("left out"),
        }[task.state]
        line = f"{_MARKS[task.state]} {safe(task.id)}: {told}"
        why = one_line(task.error or (task.result if task.state == "done" else ""), self._width)
        if why:
            line += f" – {why}"
        return [(one_line(line, self._width), _STYLES.get(task.state, ""))]


def heading(plan: PlanSet) -> str:
    """How far the plan has come, in a line."""
    states = {
        "planning": _("it is being planned"),
        "working": _("at work"),
        "completing": _("the answer is being written"),
        "done": _("done"),
        "failed": _("failed"),
    }
    text = _("{done} of {all} tasks done", **counts(plan))
    text = f"{states[plan.state]}, {text}"
    if plan.revision > 1:
        text += ", " + _("planning {number}", number=plan.revision)
        text += f" ({one_line(plan.reason, 200)})" if plan.reason else ""
    return text


def counts(plan: PlanSet) -> dict[str, int]:
    done = sum(task.state == "done" for task in plan.tasks)
    return {"done": done, "all": len(plan.tasks)}


def tree(
    plan: PlanSet, spent: Mapping[str, tuple[int, float | None]], width: int = 100
) -> list[Line]:
    """The plan with its tasks, their states and workers; the objective stands first. `spent` are steps and
    cost (US dollars) of the workers' sessions."""
    head = one_line(plan.objective, width) or _("no objective")
    lines: list[Line] = [(head, "bold")]
    for number, task in enumerate(plan.tasks):
        last = number == len(plan.tasks) - 1
        branch, below = ("└── ", "    ") if last else ("├── ", "│   ")
        mark = _MARKS[task.state]
        parts = [f"{mark} {task.id}", task.agent]
        if task.needs:
            parts.append(_("after {needs}", needs=", ".join(task.needs)))
        if task.attempts > 1:
            parts.append(_("try {number}", number=task.attempts))
        if task.child:
            parts.append(task.child[:SHORT])
        if task.child in spent:
            steps, cost = spent[task.child]
            parts += [counted_steps(steps), dollars(cost)]
        lines.append((branch + one_line(" · ".join(parts), width - 4), _STYLES.get(task.state, "")))
        lines.append((below + "  " + one_line(task.text, width - 6), "dim"))
        if task.error:
            lines.append((below + "  " + one_line(task.error, width - 6), "dim"))
    return lines
