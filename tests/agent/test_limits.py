"""Where a turn ends by itself: limits, circles, a model that never says that it is done."""

import asyncio

import pytest

import tests.model_server as served
from croze.app import assemble
from croze.text.tokens import estimate
from croze.types.agent import AgentSpec
from croze.types.context import budget_for
from croze.types.errors import UsageError
from croze.types.event import Compacted, FactAdded, ModelCalled, Notice, Stopped, ToolReturned
from tests.agent.conftest import BOUND, Desk, bodies
from tests.model_server import Reply, Request


def facts(events: object, key: str) -> list[FactAdded]:
    return [fact for fact in bodies(events, FactAdded) if fact.key == key]  # type: ignore[arg-type]


async def test_the_limit_of_steps_ends_the_turn_and_the_next_one_goes_on(any_desk: Desk) -> None:
    desk, server = any_desk, any_desk.server
    server.replies = lambda request: desk.reply(
        f"Step {len(server.requests)}.",
        [("execute_command", {"command": f"echo {len(server.requests)}"})]
        if len(server.requests) < 5
        else [],
    )
    session, (stopped,) = await desk.run("Count.", max_turns=2)
    assert (stopped.reason, stopped.steps) == ("steps", 2)
    assert len(server.requests) == 2
    async with desk.session(resume=session.id) as again:
        stopped = await again.submit("")
    assert (stopped.reason, stopped.text) == ("done", "Step 5.")


@pytest.mark.parametrize("command", [True, False])
async def test_the_limit_of_seconds_ends_a_step_that_runs(desk: Desk, command: bool) -> None:
    call = ("execute_command", {"command": "sleep 600"})
    first = Reply(text="I wait.", calls=[call]) if command else Reply(text="I st", fault="stall")
    desk.server.replies = [first, Reply(text="Later.")]
    async with desk.session(max_time=0.5) as session:
        stopped = await asyncio.wait_for(session.submit("Wait."), BOUND)
        assert stopped.reason == "seconds"
        assert stopped.text == "The limit of 0.5 seconds is reached."
        codes = [result.code for result in bodies(session.events, ToolReturned)]
        assert codes == (["interrupted"] if command else [])
        again = await session.submit("And now?")
    assert again.text == "Later."


async def test_the_limit_of_cost_ends_the_turn(wire_desk: Desk) -> None:
    desk, server = wire_desk, wire_desk.server
    call = ("execute_command", {"command": "echo dear"})
    server.replies = lambda _request: Reply(
        calls=[call], input=100_000, output=10_000, text=f"{len(server.requests)}"
    )
    session, (stopped,) = await desk.run("Spend.", max_cost=0.5)
    assert stopped.reason == "cost"
    assert stopped.cost is not None
    assert stopped.cost >= 0.5
    assert stopped.steps == len(server.requests) < 5
    assert bodies(session.events, Stopped) == [stopped]


async def test_a_limit_of_cost_needs_a_price(desk: Desk) -> None:
    async with desk.app() as app:
        options = desk.options(model="openai:no-such-model", max_cost=1.0)
        with pytest.raises(UsageError, match="price of openai:no-such-model is unknown"):
            await app.session(options)
        assert await app.conversations.list() == []


async def test_a_limit_of_cost_that_nobody_can_count_ends_the_turn(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = served.openai_events
    monkeypatch.setattr(
        served,
        "openai_events",
        lambda reply, model="test": [e for e in events(reply, model) if b'"usage"' not in e],
    )
    call = ("execute_command", {"command": "echo x"})
    desk.server.replies = [Reply(calls=[call]), Reply(text="Never asked.")]
    _, (stopped,) = await desk.run("Spend.", max_cost=0.5)
    assert stopped.reason == "cost"
    assert "did not report" in stopped.text


async def test_the_same_calls_over_and_over_end_the_turn(any_desk: Desk) -> None:
    desk, server = any_desk, any_desk.server
    server.replies = lambda _request: desk.reply("Once more.", [("list_files", {"path": "."})])
    _, (stopped,) = await desk.run("Go round.")
    assert (stopped.reason, stopped.steps) == ("repeated", 5)
    assert stopped.text == "The same calls came 5 times in a row."


async def test_a_reply_without_a_call_ends_the_turn(any_desk: Desk) -> None:
    any_desk.server.replies = [any_desk.reply("That is all there is to say.")]
    _, (stopped,) = await any_desk.run("Say it.")
    assert (stopped.reason, stopped.text) == ("done", "That is all there is to say.")
    assert (stopped.steps, stopped.refused) == (1, 0)


async def test_an_agent_may_demand_a_report_and_reminds_three_times(
    any_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = AgentSpec(dialect=any_desk.dialect, demand_completion=True)  # type: ignore[arg-type]
    monkeypatch.setattr(assemble, "agent_spec", lambda *_args: spec)
    desk, server = any_desk, any_desk.server
    server.replies = lambda _request: desk.reply("I think I am done.")
    session, (stopped,) = await desk.run("Work.")
    assert stopped.reason == "done"
    assert len(server.requests) == 4
    assert len(facts(session.events, "demand_completion")) == 3
    done = desk.reply("", [("attempt_completion", {"result": "All is well."})])
    server.replies = lambda _request: done
    _, (stopped,) = await desk.run("Work.")
    assert stopped.text == "All is well."


async def test_calls_in_a_fence_are_told_and_after_three_times_given_up(desk: Desk) -> None:
    desk.dialect = "xml"
    fenced = "Like this:\n```xml\n<list_files>\n<path>.</path>\n</list_files>\n```\n"
    desk.server.replies = [Reply(text=fenced), Reply(text="Oh. There is nothing to list.")]
    session, (stopped,) = await desk.run("List.")
    assert stopped.text == "Oh. There is nothing to list."
    assert len(facts(session.events, "fenced")) == 1
    desk.server.replies = lambda _request: Reply(text=fenced)
    session, (stopped,) = await desk.run("List.")
    assert (stopped.reason, stopped.steps) == ("failed", 4)
    assert len(facts(session.events, "fenced")) == 3


async def test_a_result_that_the_model_wrote_itself_ends_its_reply(desk: Desk) -> None:
    desk.dialect = "xml"
    wrote = 'I look.\n<tool_result tool_name="list_files" success="true">\n<message>ok</message>\n'
    desk.server.replies = [
        Reply(text=f"{wrote}And on I go, for ever and ever."),
        Reply(text="Sorry."),
    ]
    session, (stopped,) = await desk.run("List.")
    assert stopped.text == "Sorry."
    assert len(facts(session.events, "wrote_result")) == 1
    assert b"for ever" not in desk.server.requests[1].body


async def test_the_content_filter_ends_the_turn(wire_desk: Desk) -> None:
    wire_desk.server.replies = [Reply(text="I can't", finish="content_filter")]
    _, (stopped,) = await wire_desk.run("Do it.")
    assert stopped.reason == "failed"
    assert "content filter" in stopped.text


async def test_an_unknown_price_is_said_once_a_session(desk: Desk) -> None:
    desk.server.replies = lambda _request: Reply(text="Yes.")
    session, _ = await desk.run("One?", "Two?", model="openai:no-such-model")
    async with desk.session(resume=session.id, model=None) as again:
        await again.submit("Three?")
        notices = [n for n in bodies(again.events, Notice) if n.code == "price_unknown"]
    assert len(notices) == 1


def reads_on(desk: Desk, count: int) -> None:
    """Files of some 1,500 tokens, and a model that reads one after the other, then says that it is done."""
    for number in range(1, count + 1):
        (desk.project / f"long{number}.txt").write_text(f"some words of text {number}\n" * 300)

    def play(request: Request) -> Reply:
        number = len(desk.server.requests)
        if number > count:
            return Reply(text="All read.", input=len(request.body) // 4)
        calls = [("read_file", {"path": f"long{number}.txt"})]
        return Reply(text=f"{number}", calls=calls, input=len(request.body) // 4)

    desk.server.replies = play


async def test_a_window_that_fills_is_recovered_as_often_as_it_takes(desk: Desk) -> None:
    """Under the policy that keeps everything: 60 files of which some 20 fit."""
    desk.overrides['models."openai:gpt-4.1".window'] = 40_000
    reads_on(desk, 60)
    session, (stopped,) = await desk.run("Read on and on.", policy="none")
    assert (stopped.reason, stopped.text) == ("done", "All read.")
    found = bodies(session.events, Compacted)
    assert {body.policy for body in found} == {"recovery"}
    assert 2 <= len(found) <= 30
    called = bodies(session.events, ModelCalled)
    assert all(call.tokens <= budget_for(40_000, 32_768).available for call in called)
    warned = [notice.code for notice in bodies(session.events, Notice) if notice.level == "warning"]
    assert warned.count("window") == 1
    assert warned.count("share") == 1


async def test_a_window_that_nothing_frees_is_warned_of_once_and_then_refused(desk: Desk) -> None:
    """What the user says is never taken: a request that doesn't fit is told, not cut."""
    desk.overrides['models."openai:gpt-4.1".window'] = 40_000
    available = budget_for(40_000, 32_768).available
    desk.server.replies = lambda request: Reply(text="Go on.", input=len(request.body) // 4)
    async with desk.session() as session:
        room = round(0.82 * available) - session.context().tokens
        stopped = await session.submit("word " * round(1_000 * room / estimate("word " * 1_000)))
        assert stopped.reason == "done"
        first = [n for n in bodies(session.events, Notice) if n.code == "window"]
        assert [notice.level for notice in first] == ["warning"]
        assert (await session.submit("And?")).reason == "done"
        stopped = await session.submit("word " * available)
        assert stopped.reason == "failed"
        assert "the model takes" in stopped.text
        assert "larger window" in stopped.text
        asked = len(desk.server.requests)
        found = [n.level for n in bodies(session.events, Notice) if n.code == "window"]
    assert found.count("error") == 1
    assert asked == 2
