"""In what order workers are set to work, whatever the plan is and whichever of them fail."""

import asyncio
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.agent.limits import Meter
from croze.teams import orchestrator as module
from croze.teams.orchestrator import orchestrator
from croze.types.agent import AgentSpec, Limits
from croze.types.errors import UsageError
from croze.types.event import Event, PlanSet, Stopped, UserSaid
from croze.types.parts import Text
from croze.types.team import ChildReport, PlanTask

PLANNER = AgentSpec(name="planner")


class Worker:
    """A sub-agent that takes its time, then does its task or fails it, as the dice say."""

    def __init__(self, house, order, ok, turns):
        self.house, self.order, self.ok, self.turns = house, order, ok, turns
        self.session = f"session of {order.label}"
        self.error = ""

    async def submit(self, _text):
        house = self.house
        house.order.append(self.order.label)
        house.at_work.add(self.order.label)
        house.most = max(house.most, len(house.at_work))
        for _ in range(self.turns):
            await asyncio.sleep(0)
        house.at_work.remove(self.order.label)
        if self.ok:
            house.done.add(self.order.label)
        return Stopped(reason="done")

    async def close(self):
        error = "" if self.ok else "broken"
        return ChildReport(self.order.agent, self.session, ok=self.ok, text="Report.", error=error)


class House:
    """What the orchestrator needs of a session: a log that already holds a plan, and workers."""

    def __init__(self, tasks, dice):
        self.order, self.done, self.at_work, self.most = [], set(), set(), 0
        self.dice = dice
        self.needs_unmet = False
        self.tasks = {task.id: task for task in tasks}
        plan = PlanSet(plan_id="p", objective="All.", tasks=tuple(tasks))
        self.log = SimpleNamespace(session="s", events=[])
        self.last_user = 1
        self.budget = SimpleNamespace(available=100_000)
        self.meter = Meter(Limits(), 0.0)
        self.children = self
        self.with_children = lambda: self
        said = UserSaid("m", (Text("All."),))
        for body in (
            said,
            PlanSet(plan_id="p", objective="All.", tasks=(), state="planning"),
            plan,
        ):
            self.log.events.append(Event("s", len(self.log.events) + 1, 0, body))

    async def append(self, *bodies, durable=False):
        del durable
        for body in bodies:
            self.log.events.append(Event("s", len(self.log.events) + 1, 0, body))
        await asyncio.sleep(0)

    async def gather(self, _live):
        return ()

    async def settle(self):
        assert not self.at_work

    async def tell(self, *_told):
        pass

    async def open(self, order, *, share, resume="", spec=None):
        assert spec is None
        assert not resume
        assert share >= 1
        needs = self.tasks[order.label].needs
        self.needs_unmet = self.needs_unmet or not self.done.issuperset(needs)
        kind = self.dice.draw(st.sampled_from(["done", "done", "failed", "refused"]))
        if kind == "refused":
            raise UsageError("There is no model for it.")
        return Worker(self, order, kind == "done", self.dice.draw(st.integers(0, 4)))


@st.composite
def tasks(draw):
    count = draw(st.integers(1, 10))
    found = []
    for number in range(count):
        needs = draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else set()
        ids = tuple(f"t{need}" for need in sorted(needs))
        found.append(PlanTask(id=f"t{number}", text="Do it.", agent="general", needs=ids))
    return draw(st.permutations(found))


async def written(_live, _host, _meter):
    return "done", "The answer."


async def no_account(_live):
    return None


@given(tasks(), st.integers(1, 4), st.data())
@settings(max_examples=150)
def test_needs_come_first_the_bound_holds_and_every_task_ends_in_one_state(found, parallel, dice):
    house = House(found, dice)
    workflow = orchestrator(planner=PLANNER, parallel=parallel, replans=0, account=no_account)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "work", written)
        host = SimpleNamespace(refused=0)
        stopped = asyncio.run(workflow(house, host, house.meter))
    plans = [event.body for event in house.log.events if isinstance(event.body, PlanSet)]
    states = {task.id: task.state for task in plans[-1].tasks}
    assert not house.needs_unmet
    assert house.most <= parallel
    assert len(set(house.order)) == len(house.order)
    assert {name for name, state in states.items() if state == "done"} == house.done
    for task in plans[-1].tasks:
        lost = any(states[need] != "done" for need in task.needs)
        assert (states[task.id] == "skipped") == lost
        assert states[task.id] in ("done", "failed", "skipped")
    failures = "failed" in states.values()
    assert (stopped.reason, plans[-1].state) == (("failed",) * 2 if failures else ("done",) * 2)
    for before, after in pairwise(plans[1:]):
        for was, now in zip(before.tasks, after.tasks, strict=True):
            assert (was.state, now.state) in ALLOWED


STATES = ("pending", "running", "done", "failed", "skipped")
ALLOWED = {
    *((state, state) for state in STATES),
    ("pending", "running"),
    ("pending", "failed"),  # it could not begin, or ran between two records
    ("pending", "skipped"),
    ("running", "done"),
    ("running", "failed"),
}
"""How a task's state may change from one record of the plan to the next."""
