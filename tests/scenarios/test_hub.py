"""Agents that speak with each other by name, over whole sessions and in both protocols."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from croze.app.app import App, Session
from croze.app.options import RunOptions
from croze.types.event import ChildClosed, ChildOpened, Event, Stopped, ToolReturned
from croze.types.team import TeamSaid
from tests.sandboxes import until
from tests.scenarios.conftest import Played, Stage

GROUP = '[groups.review]\nmembers = ["explore", "general"]\nmax_messages = 6\n'


def configured(text: str) -> None:
    path = App.open(cwd=Path.cwd()).config.paths.config_file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def said(played: Played) -> list[str]:
    return [
        f"{e.body.sender}>{e.body.to or e.body.group}: {e.body.text or e.body.error}"
        for e in played.events
        if isinstance(e.body, TeamSaid)
    ]


def opened(played: Played) -> list[ChildOpened]:
    return [e.body for e in played.events if isinstance(e.body, ChildOpened)]


def words(tool: str, **args: str) -> str:
    """A reply that calls a tool which takes texts."""
    given = ", ".join(f"{name}: {value!r}" for name, value in args.items())
    return f"{{calls: [{{name: call_tool, args: {{name: {tool}, arguments: {{{given}}}}}}}]}}"


ASK = words("talk_to", agent="explore", message="question one")
ASK_AGAIN = words("talk_to", agent="explore", message="question two")
REMEMBERS = f"""
replies:
- {ASK}
- {ASK_AGAIN}
- {{expect: "answer two", text: Done.}}
agents:
- agent: explore
  task: question two
  replies: [{{expect: question one, text: answer two}}]
- agent: explore
  replies: [{{expect: question one, text: answer one}}]
"""


async def test_an_agent_remembers_what_was_said_before(stage: Stage) -> None:
    played = await stage.play(REMEMBERS)
    assert played.stopped.reason == "done"
    assert [(result.name, result.ok, result.text) for result in played.results] == [
        ("talk_to", True, "answer one"),
        ("talk_to", True, "answer two"),
    ]
    first, second = opened(played)
    assert first.child == second.child
    assert (first.agent, first.label, first.since) == ("explore", "hub", 0)
    assert said(played) == [
        "main>explore: question one",
        "explore>main: answer one",
        "main>explore: question two",
        "explore>main: answer two",
    ]
    assert await stage.divergence(played.session) is None


async def test_a_later_run_goes_on_with_the_agents_session(stage: Stage) -> None:
    played = await stage.play(
        f"replies: [{ASK}, {{text: Done.}}]\n"
        "agents: [{agent: explore, replies: [{text: answer one}]}]\n"
    )
    again = await stage.play(
        f"replies: [{ASK_AGAIN}, {{expect: answer two, text: Done.}}]\n"
        "agents: [{agent: explore, replies: [{expect: [question one, question two], text: answer two}]}]\n",
        resume=played.session,
    )
    assert again.stopped.reason == "done"
    assert len({each.child for each in opened(again)}) == 1


async def test_a_group_is_asked_side_by_side_and_mentions_go_on(stage: Stage) -> None:
    configured(GROUP)
    played = await stage.play(
        f"""
replies:
- {words("talk_to_group", group="review", message="Is it right?")}
- {{expect: [I am not sure, general here, explore again], text: Done.}}
agents:
- {{agent: explore, task: "@explore", replies: [{{expect: "general here", text: explore again}}]}}
- {{agent: explore, replies: [{{expect: "you are explore", text: I am not sure}}]}}
- {{agent: general, replies: [{{expect: "Is it right?", text: "general here, @explore look again"}}]}}
"""
    )
    assert played.stopped.reason == "done"
    (result,) = played.results
    assert result.message == "review: 3 of 3 answers came."
    assert sorted(said(played)[1:3]) == [
        "explore>review: I am not sure",
        "general>review: general here, @explore look again",
    ]
    assert said(played)[3] == "explore>review: explore again"


async def test_a_group_that_argues_is_ended_and_one_that_fails_is_contained(stage: Stage) -> None:
    configured(GROUP)
    played = await stage.play(
        f"""
replies:
- {words("talk_to_group", group="review", message="@explore begin")}
- {{expect: "The talk was ended: it may have 6 messages", text: Done.}}
agents:
- {{agent: explore, replies: [{{text: "No, @general"}}]}}
- {{agent: general, replies: [{{text: "Yes, @explore"}}]}}
"""
    )
    assert played.stopped.reason == "done"
    assert played.results[0].message.startswith("review: 5 of 5 answers came. The talk was ended")
    failed = await stage.play(
        f"""
replies:
- {words("talk_to_group", group="review", message="hello")}
- {{expect: [explore did not answer, general here], text: Done.}}
agents:
- {{agent: explore, replies: [{{fault: error_401}}]}}
- {{agent: general, replies: [{{text: general here}}]}}
"""
    )
    assert failed.results[0].ok
    assert failed.results[0].message == "review: 1 of 2 answers came."


async def test_agents_ask_each_other_and_a_circle_is_refused(stage: Stage) -> None:
    for name in ("anna", "bert"):
        path = App.open(cwd=Path.cwd()).config.paths.config / "agents" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nname: {name}\ndescription: Knows half.\n---\nYou are {name}.\n")
    played = await stage.play(
        f"""
replies:
- {words("talk_to", agent="anna", message="ask bert")}
- {{expect: "he says alone", text: Done.}}
agents:
- agent: anna
  replies:
  - {words("talk_to", agent="bert", message="well?")}
  - {{expect: "bert alone", text: he says alone}}
- agent: bert
  replies:
  - {words("talk_to", agent="anna", message="and you?")}
  - {{expect: "anna waits for you to end", text: bert alone}}
"""
    )
    assert played.stopped.reason == "done"
    assert said(played) == [
        "main>anna: ask bert",
        "anna>bert: well?",
        "bert>anna: bert alone",
        "anna>main: he says alone",
    ]


async def test_an_unknown_name_is_told_with_who_there_is(stage: Stage) -> None:
    played = await stage.play(
        f"[{words('talk_to', agent='explorer', message='hi')}, {{text: Done.}}]"
    )
    (result,) = played.results
    assert (result.ok, result.code) == (False, "unknown_agent")
    assert "explore" in result.text
    assert opened(played) == []


async def test_what_agents_say_counts_for_the_run(stage: Stage) -> None:
    played = await stage.play(REMEMBERS)
    closed = [e.body.report for e in played.events if isinstance(e.body, ChildClosed)]
    assert [report.steps for report in closed] == [1, 1]
    assert played.stopped.steps == 3 + 2


STALLS = f"""
replies:
- {words("talk_to_group", group="review", message="hello")}
- {{text: never}}
agents:
- {{agent: explore, replies: [{{text: I beg, fault: stall}}]}}
- {{agent: general, replies: [{{text: quick}}]}}
"""


async def test_a_cancel_ends_everyone_and_keeps_what_was_said(stage: Stage) -> None:
    configured(GROUP)
    async with running(stage, STALLS) as (session, turn):
        await until(lambda: any(says_so(e, "general") for e in session.events))
        session.cancel()
        stopped = await asyncio.wait_for(turn, 10)
        assert stopped.reason == "cancelled"
        reports = [e.body.report for e in session.events if isinstance(e.body, ChildClosed)]
        assert {(each.agent, each.reason) for each in reports} == {
            ("general", "done"),
            ("explore", "cancelled"),
        }
        assert session.children is not None
        assert session.children.open_ones == ()
        returned = [e.body for e in session.events if isinstance(e.body, ToolReturned)]
        assert returned[-1].code == "interrupted"


async def test_agents_that_are_asked_share_the_turns_budget(stage: Stage) -> None:
    configured(GROUP)
    endless = "[" + ", ".join("{calls: [{name: list_files, args: {}}]}" for _ in range(20)) + "]"
    script = f"""
replies:
- {words("talk_to_group", group="review", message="hello")}
- {{expect: limit of 3 steps, text: Done.}}
agents:
- {{agent: explore, replies: {endless}}}
- {{agent: general, replies: {endless}}}
"""
    async with running(stage, script, max_turns=11) as (session, turn):
        stopped = await asyncio.wait_for(turn, 30)
        assert stopped.reason == "done"
        reports = [e.body.report for e in session.events if isinstance(e.body, ChildClosed)]
        assert sorted(each.steps for each in reports) == [3, 3]
        assert stopped.steps == 8


def says_so(event: Event, name: str) -> bool:
    return isinstance(event.body, TeamSaid) and event.body.sender == name


@asynccontextmanager
async def running(
    stage: Stage, script: str, **limits: int
) -> AsyncIterator[tuple[Session, asyncio.Task[Stopped]]]:
    """A session with its turn at work."""
    app = App.open(cwd=stage.project)
    try:
        session = await app.session(
            RunOptions(model=stage.script(script), dialect=stage.dialect, headless=True, **limits)
        )
        yield session, asyncio.create_task(session.submit("Do it."))
    finally:
        await app.aclose()
