"""Turns of the orchestrator that are stopped: by limits, by the user, by what the user says meanwhile."""

import asyncio

import pytest

from croze.app.timetravel import undo_live
from croze.types.event import ChildOpened, PlanSet, UserSaid
from tests.teams.orchestra import BOUND, Orchestra, bodies, plan_answer, planner, texts, worker

TWO = plan_answer(
    {"id": "first", "task": "One."}, {"id": "second", "task": "Two.", "needs": ["first"]}
)


@pytest.fixture(params=["native", "xml"])
def orchestra(request, tmp_path):
    (tmp_path / "project").mkdir()
    return Orchestra(tmp_path, request.param)


@pytest.fixture
def one(tmp_path):
    (tmp_path / "project").mkdir()
    return Orchestra(tmp_path, "native")


def runs(command):
    return {"calls": [{"name": "execute_command", "args": {"command": command}}]}


def reached(session, matches):
    """The first event of the session from now on that `matches`."""
    found = asyncio.get_running_loop().create_future()

    def watch(item):
        if not found.done() and matches(item):
            found.set_result(item)

    session.subscribe(watch)
    return asyncio.wait_for(found, BOUND)


def state_of(task, state):
    def matches(item):
        plan = getattr(item, "body", None)
        return isinstance(plan, PlanSet) and any(
            (each.id, each.state) == (task, state) for each in plan.tasks
        )

    return matches


def from_child(agent, kind):
    """News of a sub-agent of this name whose item is an event of this kind."""

    def matches(item):
        path = getattr(item, "path", None)
        return bool(path) and path[-1][1] == agent and getattr(item.item, "type", "") == kind

    return matches


async def test_a_cancelled_turn_keeps_what_is_done_and_goes_on_with_the_same_worker(orchestra):
    orchestra.script(
        planner(TWO),
        worker("first", runs("echo one >> ran.txt"), {"text": "One is done."}),
        worker("second", runs("echo two >> ran.txt"), {"text": "Half", "fault": "stall"}),
    )
    async with orchestra.session() as session:
        turn = asyncio.create_task(session.submit("Count."))
        await reached(session, state_of("second", "running"))
        await reached(session, from_child("general", "ToolReturned"))
        session.cancel()
        stopped = await asyncio.wait_for(turn, BOUND)
        played = await orchestra.played(session, stopped)
    assert stopped.reason == "cancelled"
    assert played.states == {"first": "done", "second": "pending"}
    worker_before = played.plan.tasks[1].child
    assert worker_before
    orchestra.script(
        worker("second", {"text": "Two is done."}),
        replies=[{"expect": ["One is done.", "Two is done."], "text": "Both."}],
    )
    again = await orchestra.play("", resume=played.session)
    assert (again.stopped.reason, again.stopped.text) == ("done", "Both.")
    assert again.states == {"first": "done", "second": "done"}
    assert again.plan.tasks[1].child == worker_before
    assert [task.attempts for task in again.plan.tasks] == [1, 1]
    assert (orchestra.project / "ran.txt").read_text() == "one\ntwo\n"


async def test_a_limit_of_steps_ends_the_turn_and_the_plan_goes_on_later(one):
    one.script(planner(TWO), worker("first", {"text": "1"}), worker("second", {"text": "2"}))
    stopped = await one.play("Count.", max_turns=3)
    assert stopped.stopped.reason == "steps"
    assert "1 of 2 tasks are done" in stopped.stopped.text
    assert stopped.stopped.steps <= 3
    assert stopped.states == {"first": "done", "second": "pending"}
    done = await one.play("", resume=stopped.session)
    assert done.stopped.reason == "done"
    assert done.states == {"first": "done", "second": "done"}
    labels = [opened.label for opened in bodies(done.events, ChildOpened)]
    assert labels == ["the plan", "first", "second"]


async def test_a_worker_over_its_lease_fails_its_task_with_what_it_had(one):
    one.overrides["teams.replans"] = 0
    steps = [{"text": f"Step {n}.", **runs(f"echo {n}")} for n in range(9)]
    one.script(
        planner(plan_answer({"id": "long", "task": "A."}, {"id": "short", "task": "B."})),
        worker("long", *steps),
        worker("short", {"text": "B."}),
        replies=[{"text": "B, but not A."}],
    )
    played = await one.play(max_turns=12)
    assert played.states == {"long": "failed", "short": "done"}
    long = played.plan.tasks[0]
    assert "steps is reached" in long.error
    assert long.result.startswith("Step")
    assert played.stopped.steps <= 12


async def test_what_the_user_says_meanwhile_is_planned_in(one):
    one.script(
        planner(
            {"expect": ["Later the user said: In French, please.", "the user said more"]}
            | plan_answer({"id": "french", "task": "Translate.", "needs": ["first"]}),
            when="Plan again",
        ),
        planner(TWO),
        worker("first", runs("sleep 0.3"), {"text": "One."}),
        worker("french", {"expect": "In French, please.", "text": "Un."}),
        replies=[{"expect": "Un.", "text": "Un, deux."}],
    )
    async with one.session() as session:
        turn = asyncio.create_task(session.submit("Count."))
        await reached(session, state_of("first", "running"))
        await session.submit("In French, please.")
        played = await one.played(session, await asyncio.wait_for(turn, BOUND))
    assert played.stopped.text == "Un, deux."
    assert played.states == {"first": "done", "second": "skipped", "french": "done"}
    assert len(bodies(played.events, UserSaid)) == 2


async def test_a_worker_whose_conversation_is_gone_is_replaced_by_one_that_is_told(one):
    one.script(planner(TWO), worker("first", {"text": "Half", "fault": "stall"}))
    async with one.session() as session:
        turn = asyncio.create_task(session.submit("Count."))
        await reached(session, from_child("general", "ModelCalled"))
        session.cancel()
        await asyncio.wait_for(turn, BOUND)
        played = await one.played(session, turn.result())
    await one.forget(played.plan.tasks[0].child)
    one.script(
        worker("first", {"expect": "Another worker began this task", "text": "1"}),
        worker("second", {"text": "2"}),
    )
    again = await one.play("", resume=played.session)
    assert again.states == {"first": "done", "second": "done"}
    assert again.plan.tasks[0].attempts == 1
    assert "Another worker" in texts(again.logs["first"])


async def test_a_planner_that_was_stopped_goes_on(orchestra):
    orchestra.script(planner({"text": "Let me", "fault": "stall"}))
    async with orchestra.session() as session:
        turn = asyncio.create_task(session.submit("Count."))
        await reached(session, from_child("planner", "ModelCalled"))
        session.cancel()
        stopped = await asyncio.wait_for(turn, BOUND)
    assert stopped.reason == "cancelled"
    orchestra.script(planner(TWO), worker("first", {"text": "1"}), worker("second", {"text": "2"}))
    again = await orchestra.play("", resume=session.id)
    assert again.stopped.reason == "done"
    planners = [o.child for o in bodies(again.events, ChildOpened) if o.label == "the plan"]
    assert len(planners) == 2
    assert len(set(planners)) == 1


async def test_at_most_so_many_workers_are_at_work_as_configured(one):
    one.overrides["teams.parallel"] = 2
    tasks = [{"id": f"t{n}", "task": "Do."} for n in range(5)]
    one.script(
        planner(plan_answer(*tasks)),
        *(worker(f"t{n}", runs("sleep 0.05"), {"text": str(n)}) for n in range(5)),
    )
    played = await one.play()
    assert played.stopped.reason == "done"
    at_once = [
        sum(task.state == "running" for task in plan.tasks)
        for plan in bodies(played.events, PlanSet)
    ]
    assert max(at_once) == 2


async def test_an_undone_turn_takes_its_workers_files_back_and_its_plan_is_forgotten(one):
    write = {"name": "write_to_file", "args": {"path": "a.txt", "content": "a\n"}}
    one.script(
        planner(plan_answer({"id": "a", "task": "Write a."})),
        worker("a", {"calls": [write]}, {"text": "a.txt is there."}),
        replies=[{"text": "Done."}, {"text": "Done again."}],
    )
    async with one.session() as session:
        await session.submit("Write.")
        assert (one.project / "a.txt").exists()
        await undo_live(session, turns=1)
        assert not (one.project / "a.txt").exists()
        stopped = await session.submit("Write it.")
        played = await one.played(session, stopped)
    plans = bodies(played.events, PlanSet)
    assert plans[0].plan_id != plans[-1].plan_id
    assert plans[-1].objective == "Write it."
    assert "done_before" not in texts(played.logs["the plan"])
    assert (one.project / "a.txt").read_text() == "a\n"
