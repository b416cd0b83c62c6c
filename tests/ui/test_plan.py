"""The orchestrator's plan as people and programs see it."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from croze.app.plans import Used, planned_in
from croze.types.event import ChildClosed, Event, PlanSet, Undone
from croze.types.team import ChildReport, PlanTask
from croze.ui.i18n import use_language
from croze.ui.plan import PlanView, heading, tree
from croze.ui.render import Screen
from tests.scenarios.conftest import croze

TASKS = (
    PlanTask(id="fix", text="Mend it.", agent="general"),
    PlanTask(id="test", text="Test it.", agent="general", needs=("fix",)),
)
PLAN = PlanSet(plan_id="p", objective="Mend the parser.", tasks=TASKS)
SCRIPT = """
replies: [{text: "Both are done."}]
agents:
  - agent: planner
    replies:
      - text: "tasks: [{id: one, task: Do one.}, {id: two, agent: explore, needs: [one], task: Do two.}]"
  - {agent: general, replies: [{text: I did one.}]}
  - {agent: explore, replies: [{text: I did two.}]}
"""


def with_states(*states: str, **more: object) -> PlanSet:
    tasks = tuple(
        replace(task, state=state) for task, state in zip(PLAN.tasks, states, strict=True)
    )
    return replace(PLAN, tasks=tasks, **more)


def lines(found: list[tuple[str, str]]) -> list[str]:
    return [text for text, _style in found]


def test_a_view_tells_what_is_new_and_nothing_twice() -> None:
    view = PlanView()
    assert lines(view.take(replace(PLAN, tasks=(), state="planning"))) == ["planning"]
    assert lines(view.take(PLAN)) == [
        "plan: 2 tasks",
        "├── ○ fix · general",
        "│     Mend it.",
        "└── ○ test · general · after fix",
        "      Test it.",
    ]
    assert view.take(with_states("running", "pending")) == []
    done = changed(with_states("done", "pending"), "fix", result="It works.\nSee a.py.")
    assert lines(view.take(done)) == ["✓ fix: done – It works. See a.py."]
    assert view.take(done) == []
    view.take(with_states("done", "running"))
    assert lines(view.take(done)) == ["at work, 1 of 2 tasks done"]
    failed = changed(with_states("done", "failed"), "test", error="No time.")
    assert lines(view.take(failed)) == ["✗ test: failed – No time."]
    again = replace(failed, state="planning", reason="failed: test")
    assert lines(view.take(again)) == ["planning (failed: test)"]
    assert view.take(replace(again, state="working")) == []  # no other plan came out


def changed(plan: PlanSet, task_id: str, **fields: object) -> PlanSet:
    return replace(
        plan, tasks=tuple(replace(t, **fields) if t.id == task_id else t for t in plan.tasks)
    )


def test_the_tree_shows_states_workers_tries_and_costs() -> None:
    plan = changed(with_states("done", "skipped"), "fix", child="1234567890", attempts=2)
    plan = changed(plan, "test", error="left out by planning 2")
    assert lines(tree(plan, {"1234567890": (3, 0.5)})) == [
        "Mend the parser.",
        "├── ✓ fix · general · try 2 · 12345678 · 3 steps · $0.5000",
        "│     Mend it.",
        "└── – test · general · after fix",
        "      Test it.",
        "      left out by planning 2",
    ]


def test_the_heading_says_how_far_it_is() -> None:
    assert heading(with_states("done", "running")) == "at work, 1 of 2 tasks done"
    plan = with_states("done", "done", state="done", revision=2, reason="failed: fix")
    assert heading(plan) == "done, 2 of 2 tasks done, planning 2 (failed: fix)"


def test_the_chat_draws_what_is_new_and_on_demand_all_of_it() -> None:
    written: list[str] = []
    screen = Screen(written.append, color=False)
    screen.watch(Event("s", 1, 0, PLAN))
    assert "".join(written).startswith("at work, 0 of 2 tasks done\n├── ○ fix · general\n")
    written.clear()
    screen.plan(with_states("done", "running"), {})
    assert "".join(written).startswith("at work, 1 of 2 tasks done\nMend the parser.\n├── ✓ fix")


def test_a_plan_speaks_the_users_language() -> None:
    use_language("zh_CN")
    try:
        assert heading(with_states("done", "running")) == "进行中, 2 项任务已完成 1 项"
    finally:
        use_language("en")


@given(st.text(), st.text(), st.integers(30, 200))
def test_whatever_stands_in_a_plan_no_line_is_too_long_or_steers_the_terminal(
    objective: str, error: str, width: int
) -> None:
    plan = changed(replace(PLAN, objective=objective), "fix", error=error, result=objective)
    view = PlanView(width)
    shown = [*tree(plan, {}, width), *view.take(plan), *view.take(with_states("failed", "done"))]
    for text, _style in shown:
        assert len(text) <= width
        assert text.isprintable() or not any(ord(c) < 32 or ord(c) == 127 for c in text)


def test_the_plan_of_a_log_is_its_last_one_that_is_not_undone() -> None:
    bodies = (
        changed(PLAN, "fix", child="c"),
        ChildClosed("c", ChildReport("general", "c", ok=False, steps=2, cost=0.25)),
        ChildClosed("c", ChildReport("general", "c", ok=True, steps=1, cost=None)),
        replace(PLAN, plan_id="q", tasks=()),
    )
    events = [Event("s", seq, 0, body) for seq, body in enumerate(bodies, 1)]
    undone = Undone(undo_id="u", kind="undo", hidden=((4, 4),))
    found = planned_in([*events, Event("s", 5, 0, undone)], "s")
    assert found is not None
    assert found.plan.plan_id == "p"
    assert found.workers == {"c": Used(3, None)}
    last = planned_in(events, "s")
    assert last is not None
    assert (last.plan.plan_id, last.workers) == ("q", {})
    assert planned_in([], "s") is None


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "script.yaml").write_text(SCRIPT)
    return folder


def run(project: Path, *args: str) -> "tuple[str, str]":
    model = f"scripted:{project.parent / 'script.yaml'}"
    ran = croze(project, "run", "Do both.", "--agent", "orchestrator", "--model", model, *args)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, ran.stderr


def test_croze_run_shows_the_plan_and_session_plan_shows_it_later(project: Path) -> None:
    out, err = run(project)
    assert out == "Both are done.\n"
    assert "croze: plan: 2 tasks" in err
    assert "croze: └── ○ two · explore · after one" in err
    assert "croze: ✓ two: done – I did two." in err
    assert "croze: Shared by 4 agents: a tree of" in err
    listed = json.loads(croze(project, "session", "list", "--format", "json").stdout)
    (session,) = [row["id"] for row in listed]
    shown = croze(project, "session", "plan", session[:8]).stdout.splitlines()
    assert shown[0] == "done, 2 of 2 tasks done"
    assert shown[1] == "Do both."
    assert shown[2].startswith("├── ✓ one · general · ")
    assert shown[2].endswith(" · 1 step · $0")
    told = json.loads(croze(project, "session", "plan", session, "--format", "json").stdout)
    assert [task["state"] for task in told["plan"]["tasks"]] == ["done", "done"]
    assert set(told["workers"]) == {task["child"] for task in told["plan"]["tasks"]}


def test_stream_json_has_every_plan_as_an_object(project: Path) -> None:
    out, _err = run(project, "--output-format", "stream-json")
    plans = [each for each in map(json.loads, out.splitlines()) if each["type"] == "plan"]
    assert [plan["state"] for plan in plans][:2] == ["planning", "working"]
    assert plans[-1]["state"] == "done"
    assert [task["result"] for task in plans[-1]["tasks"]] == ["I did one.", "I did two."]


def test_a_conversation_without_a_plan_is_told_so(project: Path) -> None:
    script = project.parent / "plain.yaml"
    script.write_text("- text: Hello.\n")
    croze(project, "run", "Hi.", "--model", f"scripted:{script}")
    listed = json.loads(croze(project, "session", "list", "--format", "json").stdout)
    shown = croze(project, "session", "plan", listed[0]["id"])
    assert shown.returncode == 2
    assert "has no plan" in shown.stderr
    assert "--agent orchestrator" in shown.stderr
