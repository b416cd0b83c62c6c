"""A cancel keeps what arrived and leaves a session that goes on; questions, watchers and callbacks."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from croze.agent.bus import Item
from croze.agent.callbacks import POINTS
from croze.context.gather import GatherState
from croze.types.errors import UsageError
from croze.types.event import (
    Answered,
    Asked,
    Event,
    FactAdded,
    ModelCalled,
    ModelSaid,
    Stopped,
    ToolReturned,
    ToolStarted,
    UserSaid,
)
from croze.types.parts import Text
from croze.types.stream import Delta
from tests.agent.conftest import BOUND, Desk, bodies, is_delta, is_event, seen
from tests.model_server import Reply

WAIT = ("execute_command", {"command": "echo $$ > pid.txt; sleep 600"})
TOUCH = ("write_to_file", {"path": "made.txt", "content": "made\n"})


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


async def test_a_cancel_in_mid_reply_keeps_what_arrived_and_closes_the_connection(
    any_desk: Desk,
) -> None:
    desk, server = any_desk, any_desk.server
    text = "It begins well, and then it takes for ever to come to its end."
    server.replies = [desk.reply(text, fault="stall", after=4), desk.reply("Here I am.")]
    async with desk.session() as session:
        words = seen(session, is_delta("text"))
        turn = asyncio.ensure_future(session.submit("Tell me."))
        await asyncio.wait_for(words, BOUND)
        session.cancel()
        session.cancel()
        stopped = await asyncio.wait_for(turn, BOUND)
        await asyncio.wait_for(server.gone.wait(), BOUND)
        assert stopped.reason == "cancelled"
        (said,) = bodies(session.events, ModelSaid)
        assert said.partial
        (part,) = said.parts
        assert isinstance(part, Text)
        assert part.text
        assert text.startswith(part.text)
        again = await session.submit("Are you there?")
    assert again.text == "Here I am."
    assert part.text.strip() in server.requests[1].body.decode()


async def test_a_cancel_before_anything_arrived_leaves_only_the_end(desk: Desk) -> None:
    desk.server.replies = [Reply(fault="silent"), Reply(text="Now.")]
    async with desk.session() as session:
        called = seen(session, is_event(ModelCalled))
        turn = asyncio.ensure_future(session.submit("Tell me."))
        await asyncio.wait_for(called, BOUND)
        await asyncio.wait_for(desk.server.arrived.wait(), BOUND)
        session.cancel()
        stopped = await asyncio.wait_for(turn, BOUND)
        assert [event.type for event in session.events[-2:]] == ["ModelCalled", "Stopped"]
        assert stopped.reason == "cancelled"
        again = await session.submit("")
    assert again.text == "Now."


async def test_a_cancel_while_the_message_is_being_recorded_is_not_lost(desk: Desk) -> None:
    desk.server.replies = [Reply(text="Never asked."), Reply(text="Asked.")]
    async with desk.session() as session:
        said = seen(session, is_event(UserSaid))
        session.subscribe(lambda item: session.cancel() if is_event(UserSaid)(item) else None)
        stopped = await asyncio.wait_for(session.submit("Tell me."), BOUND)
        await said
        assert stopped.reason == "cancelled"
        assert desk.server.requests == []


async def test_a_cancel_right_after_submitting_ends_the_turn(desk: Desk) -> None:
    desk.server.replies = [Reply(text="Never."), Reply(text="Asked.")]
    async with desk.session() as session:
        stopped: list[Stopped] = []
        for ticks in range(12):
            turn = asyncio.ensure_future(session.submit(f"Tell me {ticks}."))
            for _ in range(ticks):
                await asyncio.sleep(0)
            session.cancel()
            desk.server.replies = lambda _request: Reply(fault="stall", text="Well, well, well.")
            if not session.running and not turn.done():
                await asyncio.wait_for(seen(session, is_event(UserSaid)), BOUND)
                session.cancel()
            stopped.append(await asyncio.wait_for(turn, BOUND))
        assert {one.reason for one in stopped} == {"cancelled"}
        assert len(bodies(session.events, Stopped)) == 12


async def test_a_cancel_when_the_turn_is_over_changes_nothing(desk: Desk) -> None:
    desk.server.replies = lambda _request: Reply(text="Done.")
    async with desk.session() as session:
        await session.submit("One.")
        session.cancel()
        session.subscribe(lambda item: session.cancel() if is_event(Stopped)(item) else None)
        stopped = await session.submit("Two.")
        assert stopped.reason == "done"
        assert [one.reason for one in bodies(session.events, Stopped)] == ["done", "done"]


async def test_whoever_gives_up_waiting_for_a_turn_cancels_it(desk: Desk) -> None:
    desk.server.replies = [Reply(text="I stall here", fault="stall")]
    async with desk.session() as session:
        turn = asyncio.ensure_future(session.submit("Tell me."))
        await asyncio.wait_for(seen(session, is_delta("text")), BOUND)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert session.events[-1].body.reason == "cancelled"  # type: ignore[union-attr]


async def test_a_cancel_kills_the_command_and_pairs_every_call(any_desk: Desk) -> None:
    desk, server = any_desk, any_desk.server
    server.replies = [desk.reply("I wait.", [WAIT, TOUCH]), desk.reply("What next?")]
    async with desk.session() as session:
        started = seen(session, is_event(ToolStarted))
        turn = asyncio.ensure_future(session.submit("Wait."))
        await asyncio.wait_for(started, BOUND)
        pid_file = desk.project / "pid.txt"
        async with asyncio.timeout(BOUND):
            while not pid_file.exists() or not pid_file.read_text().strip():  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        session.cancel()
        stopped = await asyncio.wait_for(turn, BOUND)
        assert stopped.reason == "cancelled"
        assert not alive(int(pid_file.read_text()))
        results = bodies(session.events, ToolReturned)
        assert [result.code for result in results] == ["interrupted", "not_run"]
        assert not (desk.project / "made.txt").exists()
        await session.submit("Go on.")
    assert b"interrupted" in server.requests[1].body
    assert b"not run" in server.requests[1].body


async def test_a_cancel_while_a_question_waits_closes_it(desk: Desk) -> None:
    desk.server.replies = [Reply(calls=[TOUCH]), Reply(text="I see.")]
    async with desk.session(mode="ask", sandbox=None, headless=False) as session:
        asked = seen(session, is_event(Asked))
        turn = asyncio.ensure_future(session.submit("Write."))
        question = (await asyncio.wait_for(asked, BOUND)).body
        assert session.answer("no-such-question", "once") is False
        session.cancel()
        stopped = await asyncio.wait_for(turn, BOUND)
        assert stopped.reason == "cancelled"
        assert session.answer(question.ask_id, "once") is False
        assert not (desk.project / "made.txt").exists()
        assert bodies(session.events, Answered) == []
        assert [r.code for r in bodies(session.events, ToolReturned)] == ["not_run"]
        await session.submit("Go on.")


@pytest.mark.parametrize(("answer", "made"), [("once", True), ("no", False)])
async def test_an_answered_question_lets_the_call_run_or_not(
    any_desk: Desk, answer: str, made: bool
) -> None:
    desk = any_desk
    desk.server.replies = [desk.reply("", [TOUCH]), desk.reply("I see.")]
    async with desk.session(mode="ask", sandbox=None, headless=False) as session:
        asked = seen(session, is_event(Asked))
        turn = asyncio.ensure_future(session.submit("Write."))
        question = (await asyncio.wait_for(asked, BOUND)).body
        assert session.answer(question.ask_id, answer, "because I say so")
        assert session.answer(question.ask_id, answer) is False
        stopped = await asyncio.wait_for(turn, BOUND)
    assert (desk.project / "made.txt").exists() is made
    assert stopped.refused == (0 if made else 1)
    assert (b"because I say so" in desk.server.requests[1].body) is not made


async def test_what_is_said_in_mid_turn_is_answered_in_the_same_turn(any_desk: Desk) -> None:
    desk, server = any_desk, any_desk.server
    server.replies = [
        desk.reply("Only words, and the turn would be over.", pause=0.01),
        desk.reply("That too."),
    ]
    async with desk.session() as session:
        first = asyncio.ensure_future(session.submit("Begin."))
        await asyncio.wait_for(seen(session, is_delta("text")), BOUND)
        second = asyncio.ensure_future(session.submit("One more thing."))
        stopped = await asyncio.wait_for(asyncio.gather(first, second), BOUND)
        assert stopped[0] == stopped[1]
        assert stopped[0].text == "That too."
        assert len(bodies(session.events, Stopped)) == 1
    roles = [message["role"] for message in server.requests[1].json["messages"]]
    assert roles[-2:] == ["assistant", "user"]


async def test_a_message_after_a_cancel_gets_its_own_turn(desk: Desk) -> None:
    desk.server.replies = [Reply(text="I stall here", fault="stall"), Reply(text="Answered.")]
    async with desk.session() as session:
        first = asyncio.ensure_future(session.submit("Begin."))
        await asyncio.wait_for(seen(session, is_delta("text")), BOUND)
        session.cancel()
        second = await asyncio.wait_for(session.submit("Something else."), BOUND)
        assert (await first).reason == "cancelled"
        assert second.text == "Answered."


async def test_there_must_be_something_to_go_on_with(desk: Desk) -> None:
    desk.server.replies = [Reply(text="Done.")]
    async with desk.session() as session:
        with pytest.raises(UsageError, match="nothing to go on with"):
            await session.submit("")
        await session.submit("Begin.")
        with pytest.raises(UsageError, match="nothing to go on with"):
            await session.submit("")


async def test_a_watcher_that_fails_breaks_nothing(desk: Desk) -> None:
    desk.server.replies = [Reply(calls=[TOUCH]), Reply(text="Done.")]
    got: list[Item] = []

    def broken(item: Item) -> None:
        raise RuntimeError(str(item)[:10])

    async with desk.session() as session:
        session.subscribe(broken)
        unsubscribe = session.subscribe(got.append)
        stopped = await session.submit("Begin.")
        unsubscribe()
        assert stopped.reason == "done"
        recorded = [item for item in got if isinstance(item, Event)]
        assert recorded == list(session.events)[-len(recorded) :]


async def gather_rules(state: GatherState) -> Sequence[FactAdded]:
    if "rules" in state.seen:
        return ()
    return (
        FactAdded(
            key="rules", message_id=state.source.uuid(), text="Be kind.", reply="Yes.", tokens=3
        ),
    )


async def gather_libraries(_state: GatherState) -> Sequence[FactAdded]:
    return ()


async def gather_tools(_state: GatherState) -> Sequence[FactAdded]:
    return ()


async def test_callbacks_are_called_at_every_point_in_order(
    any_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, server = any_desk, any_desk.server
    gatherers = (gather_rules, gather_libraries, gather_tools)
    monkeypatch.setattr("croze.context.gather.GATHERERS", gatherers)
    server.replies = [desk.reply("So.", [TOUCH]), desk.reply("Done."), desk.reply("Again.")]
    called: list[str] = []
    items: dict[str, Any] = {}

    def note(point: str) -> None:
        def callback(item: Item) -> None:
            called.append(point)
            items[point] = item
            raise RuntimeError("a callback's mistake")

        app.on(point, callback)

    async with desk.app() as app:
        with pytest.raises(ValueError, match="unknown callback point"):
            app.on("no_such_point", called.append)  # type: ignore[arg-type]
        for point in POINTS:
            note(point)
        session = await app.session(desk.options())
        assert called == ["conversation_start"]
        await session.submit("Begin.")
        gathered = [
            f"{side}_{name}_loaded"
            for name in ("rules", "llm_friendly_packages", "tools")
            for side in ("pre", "post")
        ]
        assert called == [
            "conversation_start",
            *gathered,
            "api_request_start",
            "tool_generated_started",
            "tool_generated_end",
            "api_request_end",
            "pre_tool_call",
            "post_tool_call",
            *gathered,
            "api_request_start",
            "api_request_end",
            "conversation_end",
        ]
        await app.leave(session)
        called.clear()
        again = await app.session(desk.options(resume=session.id))
        assert called == ["pre_conversation_resumed", "post_conversation_resumed"]
        await again.submit("And again.")
    assert set(items) == set(POINTS)
    assert isinstance(items["pre_tool_call"].body, ToolStarted)
    assert isinstance(items["pre_rules_loaded"], Delta)
