"""The orchestrator: planning, working, completing, in both protocols."""

import pytest

from croze.types.event import ChildClosed, ChildOpened, FactAdded, Notice, SessionOpened
from tests.teams.orchestra import Orchestra, bodies, plan_answer, planner, texts, worker


@pytest.fixture(params=["native", "xml"])
def orchestra(request, tmp_path):
    (tmp_path / "project").mkdir()
    return Orchestra(tmp_path, request.param)


@pytest.fixture
def one(tmp_path):
    (tmp_path / "project").mkdir()
    return Orchestra(tmp_path, "native")


def writes(path, content):
    return {"calls": [{"name": "write_to_file", "args": {"path": path, "content": content}}]}


DIAMOND = (
    {"id": "parse", "task": "Write the parser."},
    {"id": "look", "task": "Look at the tests.", "agent": "explore"},
    {"id": "test", "task": "Test the parser.", "needs": ["parse", "look"]},
)


async def test_a_plan_is_made_worked_off_in_order_and_summed_up(orchestra):
    orchestra.write("README.md", "# About")
    orchestra.script(
        planner(
            {"calls": [{"name": "read_file", "args": {"path": "README.md"}}]},
            plan_answer(*DIAMOND),
        ),
        worker("parse", writes("parse.py", "x = 1\n"), {"text": "parse.py holds the parser."}),
        worker("look", {"text": "There are no tests."}, agent="explore"),
        worker(
            "test",
            {
                "expect": ["parse.py holds the parser.", "There are no tests."],
                **writes("t.py", "1\n"),
            },
            {"text": "It works."},
        ),
        replies=[
            {"expect": ["parse.py holds", "no tests", "It works."], "text": "The parser is there."}
        ],
    )
    played = await orchestra.play("Write a parser.")
    assert (played.stopped.reason, played.stopped.text) == ("done", "The parser is there.")
    assert (orchestra.project / "parse.py").read_text() == "x = 1\n"
    assert played.states == {"parse": "done", "look": "done", "test": "done"}
    assert played.story[0] == "planning1"
    assert played.story[1] == "working1 parse:pending look:pending test:pending"
    assert played.story[-2:] == [
        "completing1 parse:done look:done test:done",
        "done1 parse:done look:done test:done",
    ]
    assert "working1 parse:running look:running test:pending" in played.story
    assert played.plan.objective == "Write a parser."
    results = {task.id: task.result for task in played.plan.tasks}
    assert results["look"] == "There are no tests."
    assert played.stopped.steps == 2 + 2 + 1 + 2 + 1
    for task in played.plan.tasks:
        opened = played.logs[task.id][0].body
        assert isinstance(opened, SessionOpened)
        assert opened.parent == played.session
        assert "<objective>\nWrite a parser." in texts(played.logs[task.id])
    assert "Write the parser." not in texts(played.logs["look"])


async def test_all_agents_share_one_scan_and_are_told_of_it_in_the_account(orchestra):
    for number in range(3):
        orchestra.write(f"a/b/c/d/e{number}/f.txt", "x")
    orchestra.script(
        planner(
            {"calls": [{"name": "list_files", "args": {"path": "a/b/c/d/e1"}}]},
            plan_answer(
                {"id": "one", "task": "Do."}, {"id": "two", "task": "Do.", "needs": ["one"]}
            ),
        ),
        worker(
            "one",
            {"calls": [{"name": "read_file", "args": {"path": "a/b/c/d/e1/f.txt"}}]},
            {"text": "1"},
        ),
        worker(
            "two",
            {"calls": [{"name": "read_file", "args": {"path": "a/b/c/d/e1/f.txt"}}]},
            {"text": "2"},
        ),
    )
    played = await orchestra.play()
    (account,) = [n for n in bodies(played.events, Notice) if n.code == "cache_shared"]
    assert account.params["agents"] == 4
    assert account.params["scans"] == 1
    assert account.params["hits"] >= 1
    assert account.params["tokens"] > 0
    visited = [f for f in bodies(played.logs["one"], FactAdded) if f.key == "visited"]
    assert "a/b/c/d/e1/: f.txt" in visited[0].text
    trees = [bodies(log, FactAdded) for log in (played.events, *played.logs.values())]
    shown = {fact.text for facts in trees for fact in facts if fact.key == "tree"}
    assert len(shown) == 1


async def test_a_failed_task_is_planned_again_by_the_same_planner(orchestra):
    orchestra.script(
        planner(
            {"expect": ["## fetch (failed", "planned again: failed: fetch"]}
            | plan_answer({"id": "copy", "task": "Copy it.", "needs": ["make"]}),
            when="Plan again",
        ),
        planner(
            plan_answer(
                {"id": "make", "task": "Make it."},
                {"id": "fetch", "task": "Fetch it."},
                {"id": "use", "task": "Use it.", "needs": ["fetch"]},
            )
        ),
        worker("make", {"text": "Made."}),
        worker("fetch", {"fault": "error_401"}),
        worker("copy", {"expect": "Made.", "text": "Copied."}),
        replies=[{"expect": ["left out by planning 2", "Copied."], "text": "Done otherwise."}],
    )
    played = await orchestra.play()
    assert played.stopped.text == "Done otherwise."
    assert played.stopped.reason == "done"
    assert played.plan.revision == 2
    assert played.states == {"make": "done", "fetch": "skipped", "use": "skipped", "copy": "done"}
    assert "planning1 make:done fetch:failed use:pending" in played.story
    planners = [o.child for o in bodies(played.events, ChildOpened) if o.label == "the plan"]
    assert len(planners) == 2
    assert len(set(planners)) == 1
    assert sum(o.label == "make" for o in bodies(played.events, ChildOpened)) == 1


async def test_a_worker_that_says_it_could_not_do_its_task_has_failed(one):
    one.script(
        planner(
            {"expect": "Result: **NOT DONE:** there is no compiler."}
            | plan_answer({"id": "read", "task": "Read it instead."}),
            when="Plan again",
        ),
        planner(plan_answer({"id": "build", "task": "Build it."})),
        worker("build", {"expect": "NOT DONE:", "text": "**NOT DONE:** there is no compiler."}),
        worker("read", {"text": "It is right."}),
    )
    played = await one.play()
    assert played.stopped.reason == "done"
    assert played.states == {"build": "skipped", "read": "done"}
    assert played.plan.tasks[0].error == "The worker could not do it."


async def test_what_is_wrong_with_a_plan_goes_back_to_the_planner(orchestra):
    circle = plan_answer(
        {"id": "a", "task": "A.", "needs": ["b"]}, {"id": "b", "task": "B.", "needs": ["a"]}
    )
    orchestra.script(
        planner(
            circle,
            {"expect": "need each other in a circle", "text": "Sorry, I don't know."},
            {"expect": "no YAML with `tasks`"} | plan_answer({"id": "a", "task": "A."}),
        ),
        worker("a", {"text": "A."}),
    )
    played = await orchestra.play()
    assert played.stopped.reason == "done"
    assert played.states == {"a": "done"}


async def test_without_a_plan_the_turn_fails_and_the_answers_are_kept(one):
    one.script(planner(*[{"text": f"No plan {number}."} for number in range(4)]))
    played = await one.play()
    assert played.stopped.reason == "failed"
    assert "It holds no YAML" in played.stopped.text
    (notice,) = [n for n in bodies(played.events, Notice) if n.level == "error"]
    (closed,) = bodies(played.events, ChildClosed)
    assert notice.code == "no_plan"
    assert f"croze session show {closed.child[:8]}" in notice.params["hint"]
    assert "No plan 3." in texts(played.logs["the plan"])
    assert (played.plan.state, played.plan.tasks) == ("failed", ())


async def test_where_planning_again_is_used_up_the_rest_is_done_and_the_turn_has_failed(one):
    one.overrides["teams.replans"] = 0
    one.script(
        planner(
            plan_answer(
                {"id": "bad", "task": "Fail."},
                {"id": "after", "task": "Needs it.", "needs": ["bad"]},
                {"id": "later", "task": "Needs that.", "needs": ["after"]},
                {"id": "good", "task": "Work."},
                {"id": "better", "task": "Work on.", "needs": ["good"]},
            )
        ),
        worker("bad", {"fault": "error_401"}),
        worker("good", {"text": "Good."}),
        worker("better", {"expect": "Good.", "text": "Better."}),
        replies=[{"expect": ["it needs bad", "it needs after"], "text": "Half of it is done."}],
    )
    played = await one.play()
    assert (played.stopped.reason, played.stopped.text) == ("failed", "Half of it is done.")
    assert played.plan.state == "failed"
    assert played.states == {
        "bad": "failed", "after": "skipped", "later": "skipped", "good": "done", "better": "done",
    }  # fmt: skip


async def test_a_planner_that_finds_no_other_way_does_not_keep_the_rest_from_being_done(one):
    one.script(
        planner(*[{"text": "I give up."}] * 4, when="Plan again"),
        planner(
            plan_answer(
                {"id": "bad", "task": "Fail."},
                {"id": "good", "task": "Work.", "needs": []},
                {"id": "better", "task": "Work on.", "needs": ["good"]},
            )
        ),
        worker("bad", {"fault": "error_401"}),
        worker("good", {"text": "Good."}),
        worker("better", {"text": "Better."}),
        replies=[{"text": "Half of it is done."}],
    )
    played = await one.play()
    assert played.stopped.reason == "failed"
    assert played.states == {"bad": "failed", "good": "done", "better": "done"}
    assert [n.code for n in bodies(played.events, Notice) if n.level == "warning"] == ["no_plan"]


async def test_a_failed_objective_is_planned_anew_when_it_is_taken_up_again(one):
    one.overrides["teams.replans"] = 0
    one.script(
        planner(plan_answer({"id": "bad", "task": "Fail."}, {"id": "good", "task": "Work."})),
        worker("bad", {"fault": "error_401"}),
        worker("good", {"text": "Good."}),
    )
    first = await one.play()
    assert first.stopped.reason == "failed"
    one.script(
        planner(
            {"expect": "it is taken up again"} | plan_answer({"id": "bad", "task": "Otherwise."}),
            when="Plan again",
        ),
        worker("bad", {"text": "Now it works."}),
        replies=[{"text": "All is well."}],
    )
    again = await one.play("", resume=first.session)
    assert (again.stopped.reason, again.stopped.text) == ("done", "All is well.")
    assert again.states == {"good": "done", "bad": "done"}
    assert next(t for t in again.plan.tasks if t.id == "bad").attempts == 2


async def test_a_question_about_what_was_done_needs_no_task(orchestra):
    orchestra.script(
        planner({"expect": "A is done.", "text": "tasks: []"}, when="<done_before>"),
        planner(plan_answer({"id": "a", "task": "A."})),
        worker("a", {"text": "A."}),
        replies=[{"text": "A is done."}, {"expect": "No task was needed.", "text": "I did A."}],
    )
    async with orchestra.session() as session:
        first = await session.submit("Do A.")
        second = await session.submit("What did you do?")
        played = await orchestra.played(session, second)
    assert (first.text, second.text) == ("A is done.", "I did A.")
    assert (played.plan.objective, played.plan.tasks) == ("What did you do?", ())


async def test_the_planner_is_asked_with_the_model_of_the_role_plan(one, tmp_path):
    other = tmp_path / "other.yaml"
    one.script(planner(), worker("a", {"text": "A."}))
    other.write_text(
        "replies: []\nagents:\n  - agent: planner\n    replies: [{text: 'tasks: [{id: a, task: A.}]'}]\n"
    )
    one.overrides["model.plan"] = [f"scripted:{other}"]
    played = await one.play()
    assert played.stopped.reason == "done"
    assert played.states == {"a": "done"}
