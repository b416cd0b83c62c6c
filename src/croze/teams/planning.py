"""Has a plan made: by a planner in a session of its own, which is told what is wrong until the plan can be
worked on."""

from croze.agent.limits import Meter
from croze.agent.live import Live
from croze.agent.subagent import Child
from croze.teams.planner import corrected, first_question, next_question, read_plan
from croze.teams.progress import PLANNER_LABEL, Progress
from croze.types.agent import AgentSpec, StopReason
from croze.types.errors import CrozeError, StoreError, UsageError
from croze.types.event import Stopped
from croze.types.team import Order, PlanSet, PlanTask

CORRECTIONS = 3
"""How often a planner is told what is wrong with its plan."""

SHARE = 2
"""The planner may use the part 1/SHARE of what is left."""

UNPAID = "budget_exhausted"
"""The code of the error that says that a sub-agent can't be paid."""


class PlanningFailed(CrozeError):
    """No plan came out. `reason` is why the turn is to end; `session` is the planner's conversation."""

    code = "no_plan"

    def __init__(self, reason: StopReason, why: str, session: str = "") -> None:
        if session:
            hint = f"What it answered is kept: croze session show {session[:8]}"
            super().__init__(f"No plan came out: {why}", hint=hint, why=why, session=session[:8])
        else:
            super().__init__(f"The planner could not begin: {why}", code="no_planner", why=why)
        self.reason = reason


async def ask_planner(
    live: Live, planner: AgentSpec, plan: PlanSet, past: Progress
) -> tuple[PlanTask, ...]:
    """The tasks that a planner gives for what is left of `plan`, fit to be worked on. Raises
    PlanningFailed."""
    agents = agents_of(live)
    names = {agent.name for agent in agents}
    done = {task.id for task in plan.tasks if task.state == "done"}
    child, known = await _open(live, planner, plan, past)
    try:
        stopped = await taken_up(child) if known and past.planning else None
        if stopped is None:
            stopped = await child.submit(_question(plan, past, agents, known=known))
        wrong: list[str] = []
        for tries in range(1 + CORRECTIONS):
            if stopped.reason != "done":
                raise PlanningFailed(stopped.reason, stopped.text, child.session)
            found = read_plan(
                child.answer,
                agents=names,
                done=done,
                may_be_empty=bool(plan.tasks or past.answer),
            )
            if isinstance(found, tuple):
                return found
            wrong = found
            if tries < CORRECTIONS:
                stopped = await child.submit(corrected(wrong))
        raise PlanningFailed("failed", " ".join(wrong), child.session)
    finally:
        await child.close()


def agents_of(live: Live) -> list[AgentSpec]:
    """The agents that can be given a task. Raises CrozeError where there are none."""
    team = live.team
    agents = [] if team is None else [each for each in team.roster.agents if not each.workflow]
    if not agents:
        raise CrozeError(
            "There is no agent that could do the work.",
            hint="Sub-agents are off here, or nested too deep.",
            code="no_agents",
        )
    return agents


async def open_child(
    live: Live, order: Order, *, share: int, resume: str = "", spec: AgentSpec | None = None
) -> Child:
    children = live.with_children()
    if children is None:
        raise CrozeError("Sub-agents are off in this session.", code="no_agents")
    return await children.open(order, share=share, resume=resume, spec=spec)


async def taken_up(child: Child) -> Stopped | None:
    """Let a sub-agent go on where it was interrupted; None where there is nothing to go on with."""
    try:
        return await child.submit("")
    except UsageError:
        return None


def short_of(meter: Meter) -> StopReason:
    """The limit that leaves too little for a sub-agent."""
    left = meter.left()
    if left.cost is not None and left.cost <= 0:
        return "cost"
    return "steps" if left.steps is not None and left.steps < 2 else "seconds"


async def _open(
    live: Live, planner: AgentSpec, plan: PlanSet, past: Progress
) -> tuple[Child, bool]:
    """A planner, and whether it is the one that made the plan so far."""
    order = Order(agent=planner.name, task=plan.objective, label=PLANNER_LABEL)
    try:
        if past.planner:
            try:
                found = await open_child(
                    live, order, share=SHARE, resume=past.planner, spec=planner
                )
                return found, True
            except StoreError:
                pass  # its conversation is gone, or another process has it
        return await open_child(live, order, share=SHARE, spec=planner), False
    except StoreError:
        raise
    except CrozeError as error:
        reason = "failed" if live.meter is None or error.code != UNPAID else short_of(live.meter)
        raise PlanningFailed(reason, error.message) from error


def _question(plan: PlanSet, past: Progress, agents: list[AgentSpec], *, known: bool) -> str:
    if plan.tasks:
        return next_question(plan, f"Why it is planned again: {plan.reason}.", agents, known=known)
    return first_question(plan.objective, agents, before=past.answer)
