"""The planner: what it is told, and how its answer is read.

Its answer is YAML. Scalars are taken as the text that they are (`no` and `1` are ids like any other) and
aliases are refused, so a small answer stays small.
"""

import re
from collections.abc import Collection, Sequence

import msgspec
from msgspec import Struct

from croze.teams.plan import MOST_TASKS, faults
from croze.text.headings import below
from croze.text.plain_yaml import load_plain
from croze.tools.bound import bounded
from croze.types.agent import AgentSpec
from croze.types.team import PlanSet, PlanTask

LONGEST_ANSWER = 200_000
"""Characters of an answer that is read at all."""

SHOWN_RESULT = 1_500
"""Characters of a task's result that the planner sees when it plans again."""

SHOWN_BEFORE = 8_000
"""Characters of the answer to an earlier objective that the planner sees."""

PROMPT = (
    "You plan work that others do. Look round in the project as far as a good plan needs it, change nothing, "
    "and answer with a plan."
)

_FENCE = re.compile(r"^```[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)

FORM = """\
```yaml
tasks:
  - id: parser
    agent: general
    needs: []
    task: |
      What is to be done, in which files, and how to see that it is done.
  - id: tests
    agent: general
    needs: [parser]
    task: |
      …
```"""

RULES = f"""\
- A worker sees the objective, its own task and the results of the tasks in its `needs`; nothing else of this \
plan or of what you found out. Say in the task what it has to know: paths, names, commands, decisions.
- Tasks that don't need each other run at the same time in the same folder. Of two that change the same \
file one must need the other.
- As few tasks as the objective has parts; one is fine. At most {MOST_TASKS}. Checking the whole (tests, a build) \
is a task of its own at the end where there is something to check.
- An id is letters, digits, '-', '_' or '.'. `needs` names ids. `agent` is one of those below."""


class _Task(Struct, forbid_unknown_fields=True):
    id: str
    task: str
    agent: str = "general"
    needs: tuple[str, ...] | str = ()


class _Plan(Struct):
    tasks: tuple[_Task, ...] | None = None


def first_question(objective: str, agents: Sequence[AgentSpec], *, before: str = "") -> str:
    """What the planner is asked first. `before` is what was done in this conversation before."""
    before = bounded(before, SHOWN_BEFORE)[0]
    earlier = f"<done_before>\n{before}\n</done_before>\n\n" if before else ""
    if before:
        earlier += "If the objective needs no work but an answer from what was done before, answer `tasks: []`.\n\n"
    return (
        f"<objective>\n{objective}\n</objective>\n\n{earlier}"
        "Plan this objective: divide it into tasks for workers. Look at the project only as far as the plan "
        "needs it. Change nothing and don't do the tasks yourself. Your final answer is the plan alone, in "
        f"this form:\n\n{FORM}\n\n{RULES}\n\n{_listed(agents)}"
    )


def next_question(plan: PlanSet, why: str, agents: Sequence[AgentSpec], *, known: bool) -> str:
    """What the planner is asked when a plan has to be made anew. `known`: it made the last one, so it
    knows the form."""
    form = "" if known else f"\n\nThe form:\n\n{FORM}\n\n{RULES}\n\n{_listed(agents)}"
    return (
        f"<objective>\n{plan.objective}\n</objective>\n\n<plan>\n{told(plan)}\n</plan>\n\n{why}\n\n"
        "Plan again what is left to do: answer with the tasks that are still to be done, those that stay as "
        "well as new ones, in the same form. What is done stays done and may be needed by its id. A task that "
        "failed needs another way, not the same words; look why it failed first, where that isn't clear. Where "
        f"nothing is left that can be done, answer `tasks: []`.{form}"
    )


def corrected(wrong: Sequence[str]) -> str:
    """What the planner is told of an answer that can't be used."""
    listed = "\n".join(f"- {each}" for each in wrong)
    return f"The plan can't be used:\n{listed}\n\nAnswer with the whole plan again, in this form:\n\n{FORM}"


def told(plan: PlanSet) -> str:
    """A plan as it stands, for a model."""
    lines = []
    for task in plan.tasks:
        needs = f", needs {', '.join(task.needs)}" if task.needs else ""
        lines.append(f"## {task.id} ({task.state}, {task.agent}{needs})")
        lines.append(task.text.strip())
        if task.error:
            lines.append(f"Why: {task.error}")
        if task.result:
            lines.append(f"Result: {below(bounded(task.result, SHOWN_RESULT)[0])}")
    return "\n".join(lines) or "No task."


def read_plan(
    answer: str, *, agents: Collection[str], done: Collection[str] = (), may_be_empty: bool = False
) -> tuple[PlanTask, ...] | list[str]:
    """The tasks in a planner's answer; where it can't be used, what is wrong with it."""
    if len(answer) > LONGEST_ANSWER:
        return [f"It has {len(answer):,} characters; at most {LONGEST_ANSWER:,} are read."]
    wrong: list[str] = []
    for text in _candidates(answer):
        tasks = _decode(text)
        if isinstance(tasks, str):
            wrong = wrong or [tasks]
            continue
        if not tasks and not may_be_empty:
            return ["It has no tasks."]
        return faults(tasks, agents=agents, done=done) or tasks
    return wrong or ["It holds no YAML with `tasks`."]


def _candidates(answer: str) -> list[str]:
    """Where the plan may stand: in the fenced blocks, the last one first; without one in the whole."""
    blocks = [found for found in _FENCE.findall(answer) if "tasks" in found]
    return blocks[::-1] or [answer]


def _decode(text: str) -> tuple[PlanTask, ...] | str:
    try:
        value = load_plain(text)
    except ValueError as error:
        return str(error)
    if isinstance(value, list):
        value = {"tasks": value}
    if not isinstance(value, dict) or "tasks" not in value:
        return "It holds no YAML with `tasks`."
    if value["tasks"] in ("", "null", "~"):
        value = {"tasks": []}
    for each in value["tasks"] if isinstance(value["tasks"], list) else ():
        if isinstance(each, dict) and each.get("needs") in ("", "null", "~"):
            each["needs"] = []
    try:
        plan = msgspec.convert({"tasks": value["tasks"]}, _Plan)
    except (msgspec.ValidationError, RecursionError) as error:
        return f"It has not the form of a plan: {error}."
    return tuple(
        PlanTask(
            id=each.id.strip(),
            text=each.task.strip(),
            agent=each.agent.strip(),
            needs=tuple(
                dict.fromkeys((each.needs,) if isinstance(each.needs, str) else each.needs)
            ),
        )
        for each in plan.tasks or ()
    )


def _listed(agents: Sequence[AgentSpec]) -> str:
    lines = [f"- {each.name}: {each.description or 'no description'}" for each in agents]
    return "Agents:\n" + "\n".join(lines)
