"""Sub-agents in whole sessions, in both protocols: what stands in the log when they work, fail, hang, run out
of their part, or are stopped; and that it replays."""

import asyncio
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from croze.agent.child import children_of
from croze.app.app import App
from croze.app.options import RunOptions
from croze.types.event import ChildClosed, ChildOpened, Event, PlanSet, ToolReturned
from croze.types.team import ChildReport
from tests.sandboxes import until
from tests.scenarios.conftest import Played, Stage, croze
from tests.scenarios.test_agents import own

APART = "---\nname: apart\ndescription: Works apart.\nisolation: worktree\n---\nYou change code.\n"
LOOK = "{calls: [{name: list_files, args: {path: .}}]}"


def asks(mode: str, *orders: str) -> str:
    """A reply that gives these orders (flow mappings of YAML)."""
    listed = "".join(f"- {{{order}}}\n" for order in orders)
    args = json.dumps({"subagents": f"mode: {mode}\nsubagents:\n{listed}"})
    return f"{{calls: [{{name: run_named_subagents, args: {args}}}]}}"


def writes(path: str, text: str) -> str:
    return (
        f"{{calls: [{{name: write_to_file, args: {json.dumps({'path': path, 'content': text})}}}]}}"
    )


def story(events: Sequence[Event]) -> list[str]:
    """What the log says of sub-agents and their calls, in its order."""
    told = []
    for event in events:
        match event.body:
            case ChildOpened() as body:
                told.append(f"open {body.label or body.agent}")
            case ChildClosed(report=report):
                told.append(f"{report.reason} {report.label or report.agent} {report.steps}")
            case ToolReturned() as body:
                told.append(f"{body.name} {'ok' if body.ok else body.code}")
            case _:
                pass
    return told


def reports(played: Played) -> dict[str, ChildReport]:
    found = [known.report for known in children_of(played.events)]
    return {report.label: report for report in found if report is not None}


async def test_one_after_the_other_sees_what_the_one_before_has_made(stage: Stage) -> None:
    played = await stage.play(
        f"""
replies:
- {asks("serial", "name: general, label: a, task: first", "name: general, label: b, task: second")}
- {{expect: ["2 of 2 sub-agents are done", "it says one"], text: Done.}}
agents:
- {{agent: general, task: first, replies: [{writes("a.txt", "one")}, {{text: made}}]}}
- agent: general
  task: second
  replies: [{{calls: [{{name: read_file, args: {{path: a.txt}}}}]}}, {{expect: one, text: it says one}}]
"""
    )
    assert story(played.events) == [
        "open a", "done a 2", "open b", "done b 2", "run_named_subagents ok",
    ]  # fmt: skip
    assert played.stopped.steps == 6
    for session in (played.session, *(each.session for each in reports(played).values())):
        assert await stage.divergence(session) is None


async def test_whatever_becomes_of_some_the_others_work_and_all_is_told(stage: Stage) -> None:
    stage.write("a.txt", "a\n")
    played = await stage.play(
        f"""
replies:
- {
            asks(
                "parallel",
                "name: explore, label: good, task: look",
                "name: explore, label: dies, task: refused",
                "name: explore, label: hangs, task: silent, max_time: 1",
                "name: explore, label: long, task: endless, max_turns: 2",
            )
        }
- expect:
  - 1 of 4 sub-agents are done
  - "## explore (good): done, 2 steps"
  - "## explore (dies): failed"
  - The key was refused
  - "## explore (hangs): its time is used up"
  - I begin
  - "## explore (long): its steps are used up, 2 steps"
  text: Done.
agents:
- {{agent: explore, task: look, replies: [{LOOK}, {{text: a.txt is all.}}]}}
- {{agent: explore, task: refused, replies: [{{fault: error_401}}]}}
- {{agent: explore, task: silent, replies: [{{text: I begin, fault: stall}}]}}
- {{agent: explore, task: endless, replies: [{LOOK}, {LOOK}, {LOOK}]}}
"""
    )
    told = story(played.events)
    assert told[:4] == ["open good", "open dies", "open hangs", "open long"]
    assert sorted(told[4:-1]) == ["done good 2", "failed dies 1", "seconds hangs 1", "steps long 2"]
    assert told[-1] == "run_named_subagents ok"
    found = reports(played)
    assert (found["hangs"].text, found["hangs"].partial) == ("I begin", True)
    assert played.stopped.reason == "done"
    assert played.stopped.steps == 2 + 2 + 1 + 1 + 2
    for session in (played.session, *(each.session for each in found.values())):
        assert await stage.divergence(session) is None


def test_those_that_the_budget_has_nothing_left_for_are_told(stage: Stage) -> None:
    model = stage.script(
        f"""
replies:
- {asks("parallel", "name: explore, label: a, task: look", "name: explore, label: b, task: look")}
- {{expect: ["## explore (b): not started", "too small for the sub-agent explore"], text: Done.}}
agents:
- {{agent: explore, replies: [{LOOK}, {{text: all}}]}}
"""
    )
    argv = ("run", "go", "--model", model, "--dialect", stage.dialect, "--max-turns", "3")
    ran = croze(stage.project, *argv)
    assert ran.returncode == 0, ran.stderr
    assert "0 of 2 sub-agents are done, 1 could not begin" in ran.stderr


async def test_sub_agents_call_others_down_to_the_limit(stage: Stage) -> None:
    script = f"""
replies:
- {asks("parallel", "name: general, label: one, task: first")}
- {{expect: at the bottom, text: Done.}}
agents:
- agent: general
  task: first
  replies:
  - {asks("parallel", "name: general, label: two, task: second")}
  - {{expect: nobody below me, text: at the bottom}}
- agent: general
  task: second
  replies:
  - {asks("parallel", "name: general, label: three, task: third")}
  - {{expect: "depth 2 can't call others", text: nobody below me}}
"""
    played = await stage.play(script)
    assert played.stopped.reason == "done", played.stopped.text
    assert played.stopped.steps == 6
    assert reports(played)["one"].steps == 4


async def test_a_cancel_keeps_what_they_have_and_the_next_turn_is_told(stage: Stage) -> None:
    first = stage.script(
        f"""
replies:
- {asks("parallel", *(f"name: general, label: {n}, task: do {n}" for n in ("a", "b", "c")))}
agents:
- {{agent: general, task: do a, replies: [{writes("a.txt", "a")}, {{text: I go on, fault: stall}}]}}
- {{agent: general, task: do b, replies: [{{text: b is done}}]}}
- {{agent: general, task: do c, replies: [{{text: c begins, fault: stall}}]}}
"""
    )
    app = App.open(cwd=stage.project)
    try:
        session = await app.session(
            RunOptions(
                model=first, dialect=stage.dialect, mode="full", sandbox="off", headless=True
            )
        )
        told: list[str] = []
        session.subscribe(lambda item: told.append(repr(item)))
        turn = asyncio.create_task(session.submit("Do it."))
        await until(
            lambda: all(any(word in each for each in told) for word in ("I go on", "c begins"))
        )
        await until(lambda: "done b 1" in story(session.events))
        session.cancel()
        stopped = await asyncio.wait_for(turn, 10)
        assert stopped.reason == "cancelled"
        assert sorted(story(session.events)) == [
            "cancelled a 2", "cancelled c 1", "done b 1", "open a", "open b", "open c",
            "run_named_subagents interrupted",
        ]  # fmt: skip
        assert session.children is not None
        assert session.children.open_ones == ()
        id = session.id
    finally:
        await app.aclose()
    again = await stage.play(
        "- {expect: [b is done, 'changed: a.txt', go on], text: I see.}", "go on", resume=id
    )
    assert again.stopped.reason == "done"
    assert await stage.divergence(id) is None


async def test_a_planner_is_told_what_could_not_be_merged(stage: Stage) -> None:
    own("apart.md", APART)
    stage.write("a.txt", "line\n")
    for args in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
        named = ["git", "-c", "user.name=n", "-c", "user.email=e@x", *args]
        subprocess.run(named, cwd=stage.project, check=True)

    def edits(text: str) -> str:
        diff = f"<<<<<<< SEARCH\nline\n=======\n{text}\n>>>>>>> REPLACE"
        return f"{{calls: [{{name: replace_in_file, args: {json.dumps({'path': 'a.txt', 'diff': diff})}}}]}}"

    played = await stage.play(
        f"""
replies: [{{text: Both are in.}}]
agents:
- agent: planner
  task: (failed
  replies:
  - expect: [1 of its files could not be merged, "a.txt: both sides changed the same lines"]
    text: "tasks: [{{id: again, agent: general, task: Put it in by hand.}}]"
- agent: planner
  replies:
  - text: "tasks: [{{id: one, agent: apart, task: write ONE}}, {{id: two, agent: apart, task: write TWO}}]"
- {{agent: apart, task: write ONE, replies: [{edits("ONE")}, {{text: it is one}}]}}
- {{agent: apart, task: write TWO, replies: [{edits("TWO")}, {{text: it is two}}]}}
- {{agent: general, replies: [{{text: by hand}}]}}
""",
        agent="orchestrator",
    )
    assert played.stopped.reason == "done", played.stopped.text
    plan = [event.body for event in played.events if isinstance(event.body, PlanSet)][-1]
    assert (plan.state, plan.revision) == ("done", 2)
    assert (stage.project / "a.txt").read_text() in ("ONE\n", "TWO\n")
    assert await stage.divergence(played.session) is None


async def test_a_replay_starts_nobody(stage: Stage, tmp_path: Path) -> None:
    played = await stage.play(
        f"""
replies:
- {asks("parallel", "name: general, label: a, task: first")}
- {{text: Done.}}
agents:
- {{agent: general, replies: [{writes("a.txt", "a")}, {{text: made}}]}}
"""
    )
    (stage.project / "a.txt").unlink()
    (tmp_path / "script.yaml").unlink()
    assert await stage.divergence(played.session) is None
    assert not (stage.project / "a.txt").exists()
    app = App.open(cwd=stage.project)
    try:
        both = await app.conversations.list(include_children=True)
        assert len(both) == 2
    finally:
        await app.aclose()
