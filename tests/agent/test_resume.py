"""A log that ended in the middle of something goes on: repaired once, told to the model, never run again."""

import os
from collections.abc import Sequence
from typing import Any

import pytest

from croze.agent.resume import BREAK
from croze.store.conversations import Conversations
from croze.store.log import SessionLog
from croze.store.store import Store
from croze.types.errors import SessionBusy, StoreFull
from croze.types.event import (
    Annotated,
    Body,
    Event,
    HeadSet,
    ModelCalled,
    ModelSaid,
    Notice,
    Stopped,
    ToolReturned,
    ToolStarted,
    UserSaid,
)
from croze.types.ids import SystemSource
from croze.types.parts import ToolCall
from tests.agent.conftest import Desk, bodies
from tests.model_server import Reply

RUN = ("execute_command", {"command": "echo ran >> ran.txt"})
WRITE = ("write_to_file", {"path": "made.txt", "content": "made\n"})


async def crashed(desk: Desk, last: type, *, after: int = 1) -> str:
    """A session whose log ends right after the n-th event of a type, as a killed process leaves it."""
    server = desk.server
    desk.says(desk.reply("I begin.", [RUN, WRITE]), desk.reply("All done."))
    whole, _ = await desk.run("The task.")
    events = await desk.log(whole.id)
    at = [event.seq for event in events if isinstance(event.body, last)][after - 1]
    while isinstance(events[at].body, Notice):
        at += 1  # said in the same commit
    async with desk.app() as app:
        log = await app.store.create(name="crashed", project=str(desk.project), version="test")
        kept = [event.body for event in events[1:at]]
        for body in kept:
            await log.append(body)
        log.close()
    for name in ("ran.txt", "made.txt"):
        (desk.project / name).unlink()
    server.requests.clear()
    desk.says(desk.reply("Resumed."))
    return log.session


def results(events: Sequence[Event]) -> list[tuple[str, str | None]]:
    return [(body.name, body.code) for body in bodies(events, ToolReturned)]


CRASHES: list[Any] = [
    pytest.param(UserSaid, 1, [], id="after the user's message"),
    pytest.param(ModelCalled, 1, [], id="after the request"),
    pytest.param(
        ModelSaid,
        1,
        [("execute_command", "not_run"), ("write_to_file", "not_run")],
        id="after the reply",
    ),
    pytest.param(
        ToolStarted,
        1,
        [("execute_command", "interrupted"), ("write_to_file", "not_run")],
        id="while the first call ran",
    ),
    pytest.param(
        ToolReturned,
        1,
        [("execute_command", None), ("write_to_file", "not_run")],
        id="between the calls",
    ),
    pytest.param(
        ToolStarted,
        2,
        [("execute_command", None), ("write_to_file", "interrupted")],
        id="while the second call ran",
    ),
    pytest.param(
        ToolReturned,
        2,
        [("execute_command", None), ("write_to_file", None)],
        id="after the calls",
    ),
    pytest.param(
        ModelSaid,
        2,
        [("execute_command", None), ("write_to_file", None)],
        id="after the last reply",
    ),
]


@pytest.mark.parametrize(("last", "number", "expected"), CRASHES)
async def test_a_crash_is_repaired_once_and_told(
    dialect_desk: Desk, last: type, number: int, expected: list[tuple[str, str | None]]
) -> None:
    desk, server = dialect_desk, dialect_desk.server
    session_id = await crashed(desk, last, after=number)
    before = await desk.log(session_id)
    for _ in range(2):
        async with desk.session(resume=session_id) as session:
            assert session.unfinished()
    async with desk.session(resume=session_id) as session:
        events = session.events
        assert events[: len(before)] == tuple(before)
        assert results(events) == expected
        assert [event.body for event in events].count(BREAK) == 1
        stopped = await session.submit("")
        assert stopped.text == "Resumed."
        assert results(session.events) == expected
        assert not session.unfinished()
    (request,) = server.requests
    for _, code in expected:
        if code is not None:
            assert b"was interrupted" in request.body
    assert not (desk.project / "ran.txt").exists()
    assert not (desk.project / "made.txt").exists()
    calls = [
        part.id
        for said in bodies(session.events, ModelSaid)
        for part in said.parts
        if isinstance(part, ToolCall)
    ]
    assert [result.call_id for result in bodies(session.events, ToolReturned)] == calls


async def test_a_crash_in_the_middle_leaves_a_session_that_takes_a_new_message(desk: Desk) -> None:
    session_id = await crashed(desk, ToolStarted)
    async with desk.session(resume=session_id) as session:
        stopped = await session.submit("Do something else instead.")
    assert stopped.text == "Resumed."
    body = desk.server.requests[0].body
    assert b"interrupted" in body
    assert b"Do something else instead." in body


async def test_a_session_resumed_without_a_model_keeps_head_and_model(any_desk: Desk) -> None:
    desk, server = any_desk, any_desk.server
    server.replies = lambda _request: desk.reply("Yes.")
    session, _ = await desk.run("One.")
    (desk.project / "AGENTS.md").write_text("News since then.\n")
    async with desk.session(resume=session.id, model=None, dialect=None) as again:
        await again.submit("Two.")
        assert len(bodies(again.events, HeadSet)) == 1
    first, second = (request.json for request in server.requests)
    assert {key: first[key] for key in first if key != "messages"} == {
        key: second[key] for key in second if key != "messages"
    }
    assert (
        server.requests[0].body.split(b'"messages"')[0]
        == (server.requests[1].body.split(b'"messages"')[0])
    )


async def test_another_model_means_a_new_head_and_the_same_history(desk: Desk) -> None:
    desk.server.replies = [
        desk.reply("I look.", [("list_files", {"path": "."})]),
        desk.reply("So."),
    ]
    session, _ = await desk.run("One.")
    for wire, dialect in (("anthropic", "native"), ("openai", "xml")):
        desk.wire, desk.dialect = wire, dialect
        desk.server.replies = lambda _request: Reply(text="Taken over.")
        async with desk.session(resume=session.id) as again:
            stopped = await again.submit(f"Over {wire} as {dialect}.")
            assert stopped.text == "Taken over."
            head = bodies(again.events, HeadSet)[-1]
            assert (head.model.provider, head.dialect) == (wire, dialect)
    assert len(bodies(again.events, HeadSet)) == 3
    last = desk.server.requests[-1].body
    assert b"I look." in last
    assert b"Over anthropic as native." in last


async def test_a_session_is_run_by_one_at_a_time(desk: Desk) -> None:
    desk.says(desk.reply("Yes."))
    async with desk.session() as session:
        await session.submit("One.")
        async with desk.app() as other:
            with pytest.raises(SessionBusy, match=str(os.getpid())):
                await other.session(desk.options(resume=session.id))
    async with desk.session(resume=session.id) as again:
        assert again.id == session.id


async def test_a_rename_from_elsewhere_is_seen_by_the_session_that_runs(desk: Desk) -> None:
    desk.server.replies = lambda _request: desk.reply("Yes.")
    async with desk.app() as app:
        session = await app.session(desk.options())
        await session.submit("One.")
        elsewhere = Store.open(app.config.store_folder, source=SystemSource())
        await Conversations(elsewhere).rename(session.id, "A better name")
        elsewhere.close()
        await session.submit("Two.")
        events = session.events
        await app.leave(session)
        assert (await app.conversations.get(session.id)).name == "A better name"
        assert (await app.replay(session.id)).divergence is None
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    renamed = [event.seq for event in events if isinstance(event.body, Annotated)]
    assert len(renamed) == 1
    assert renamed[0] < [e.seq for e in events if isinstance(e.body, UserSaid)][1]


async def test_a_fork_goes_on_from_its_message_with_the_same_bytes(any_desk: Desk) -> None:
    desk, server = any_desk, any_desk.server
    server.replies = lambda _request: desk.reply(f"Reply {len(server.requests)}.")
    async with desk.session() as session:
        await session.submit("One.")
        await session.submit("Two.")
        first = bodies(session.events, ModelSaid)[0]
        fork_id = await session.fork(first.message_id)
        whole_id = await session.fork()
    async with desk.session(resume=fork_id) as fork:
        await fork.submit("Another two.")
        assert bodies(fork.events, UserSaid)[0] == bodies(session.events, UserSaid)[0]
    async with desk.session(resume=whole_id) as whole:
        await whole.submit("Three.")
    marks = b',"cache_control":{"type":"ephemeral"}'
    one, two, other, three = (request.body.replace(marks, b"") for request in server.requests)
    assert other.startswith(one[:-2])
    assert b"Another two." in other
    assert b"Two." not in other.replace(b"Another two.", b"")
    assert three.startswith(two[:-2])


async def test_an_imported_conversation_has_no_open_turn(desk: Desk) -> None:
    desk.says(desk.reply("Welcome."))
    said: list[Body] = []
    session, _ = await desk.run("One.")
    for event in await desk.log(session.id):
        if isinstance(event.body, UserSaid | ModelSaid):
            said.append(event.body)
    async with desk.app() as app:
        log = await app.store.create(name="imported", project=str(desk.project), version="x")
        await log.append(*said)
        log.close()
    desk.says(desk.reply("Hello."))
    async with desk.session(resume=log.session) as again:
        assert not again.unfinished()
        assert bodies(again.events, Notice) == []
        stopped = await again.submit("Go on.")
        assert stopped.text == "Hello."
        assert [one.reason for one in bodies(again.events, Stopped)] == ["done"]


async def test_a_turn_that_could_not_be_recorded_is_closed_by_the_next(
    dialect_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = dialect_desk
    append = SessionLog.append
    full = [True]

    async def failing(log: SessionLog, *added: Body, durable: bool = False) -> tuple[Event, ...]:
        if full and any(isinstance(body, ToolStarted) for body in added):
            full.clear()
            raise StoreFull("There is no space left.")
        return await append(log, *added, durable=durable)

    monkeypatch.setattr(SessionLog, "append", failing)
    desk.says(desk.reply("I begin.", [RUN, WRITE]), desk.reply("Now it goes on."))
    async with desk.session() as session:
        with pytest.raises(StoreFull):
            await session.submit("The task.")
        assert not session.running
        stopped = await session.submit("There is space again.")
        assert stopped.text == "Now it goes on."
        assert results(session.events) == [
            ("execute_command", "not_run"),
            ("write_to_file", "not_run"),
        ]
        assert [event.body for event in session.events].count(BREAK) == 1
    assert list(desk.project.iterdir()) == []
