"""A recorded session runs again to the same bytes, touches nothing, and fails closed. (Every session of
the other tests here is replayed too, when it is closed.)"""

import asyncio
import socket
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from croze.agent.recorded import OUTSIDE, Diverged, RecordedLog
from croze.context.receipts import RESTORED
from croze.llm.openai import OpenAIModel
from croze.store import rows
from croze.types.event import (
    Body,
    Event,
    FactAdded,
    ModelCalled,
    ModelSaid,
    Notice,
    Stopped,
    ToolReturned,
    UserSaid,
)
from croze.types.parts import Text
from tests.agent.conftest import Desk, bodies, is_delta, seen
from tests.model_server import Reply

SCRIPT = """\
- thinking: Look first.
  text: I write a file.
  calls: [{name: write_to_file, args: {path: made.txt, content: "made\\n"}}]
- text: Now look at it.
  calls:
    - {name: read_file, args: {path: made.txt}}
    - {name: list_files, args: {path: .}}
- fault: malformed_call
  calls: [{name: read_file, args: {path: made.txt}}]
- text: Done with it.
"""
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "MIIEpAIBAAKCAQEA7vZx0Lq2mT9sYw3RkJd8UoBn5Hc1PgFe6XtAiVyWbQzKuSlO\n" * 4
    + "-----END RSA PRIVATE KEY-----\n"
)


@pytest.mark.parametrize("dialect", ["native", "xml"])
async def test_a_scripted_session_comes_out_the_same(
    desk: Desk, dialect: str, tmp_path: Path
) -> None:
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    async with desk.session(model=f"scripted:{script}", dialect=dialect) as session:
        stopped = await session.submit("Begin.")
        assert stopped.text == "Done with it."
    script.unlink()
    report = await desk.replay(session.id)
    assert (report.requests, report.divergence) == (4, None)


@pytest.mark.usefixtures("no_waits")
async def test_a_session_with_everything_in_it_comes_out_the_same(any_desk: Desk) -> None:
    desk, server = any_desk, any_desk.server
    write = ("write_to_file", {"path": "made.txt", "content": "made\n"})
    server.replies = [
        desk.reply("Tried.", [write], fault="cut", after=3),
        desk.reply("Thinking aloud.", [write], thinking="Let me see."),
        desk.reply("", [("read_file", {"path": "made.txt"}), ("read_file", {"path": "none.txt"})]),
        desk.reply("A first answer.", pause=0.01),
        desk.reply("To the second message."),
        desk.reply("I stall about here.", fault="stall", after=6),
        desk.reply("After the cancel."),
        Reply(fault="400", message="a bad day"),
        desk.reply("After the failure."),
    ]
    async with desk.session() as session:
        turn = asyncio.ensure_future(session.submit("Begin."))
        await seen(session, lambda item: getattr(item, "text", "").startswith("A first"))
        more = asyncio.ensure_future(session.submit("A second message."))
        assert (await turn).text == "To the second message."
        await more
        turn = asyncio.ensure_future(session.submit("Stall now."))
        await seen(session, is_delta("text"))
        session.cancel()
        assert (await turn).reason == "cancelled"
        assert (await session.submit("")).text == "After the cancel."
        assert (await session.submit("Fail now.")).reason == "failed"
        assert (await session.submit("And go on.")).text == "After the failure."


@pytest.mark.parametrize("secret", [SECRET, KEY])
async def test_a_session_with_secrets_comes_out_the_same_and_its_log_has_none(
    any_desk: Desk, secret: str
) -> None:
    desk, server = any_desk, any_desk.server
    write = ("write_to_file", {"path": "made.txt", "content": f"value = {secret}\n"})
    command = ("execute_command", {"command": "cat made.txt", "requires_approval": "false"})
    if desk.dialect == "native":
        command[1]["requires_approval"] = False  # type: ignore[index]
    server.replies = [
        desk.reply(f"It is {secret} that I write.", [write], chunk=7),
        desk.reply("", [command]),
        desk.reply("Written."),
    ]
    async with desk.session() as session:
        await session.submit("Write the secret.")
        stored = b"".join(msgspec.json.encode(event) for event in session.events)
    assert secret.strip() in (desk.project / "made.txt").read_text()
    for line in secret.strip().splitlines()[1:-1] or [secret]:
        assert line.encode() not in stored
        assert all(line.encode() not in request.body for request in server.requests)


async def test_messages_that_were_brought_back_come_out_the_same_with_another_model_too(
    desk: Desk,
) -> None:
    def brought_back(number: int) -> FactAdded:
        return FactAdded(RESTORED, f"{number:08x}-0", "A text.", layer="history", tokens=2)

    desk.server.replies = lambda _request: Reply(text="Yes.")
    first, _ = await desk.run("One?")
    await desk.write_log(first.id, brought_back(1))
    async with desk.session(resume=first.id, model="openai:gpt-4.1-mini") as session:
        await session.submit("Two?")
        await session.add_fact(brought_back(2))
        await session.submit("Three?")
    assert [call.model for call in bodies(session.events, ModelCalled)] == [
        "openai:gpt-4.1", "openai:gpt-4.1-mini", "openai:gpt-4.1-mini",
    ]  # fmt: skip


async def test_calls_that_were_written_wrongly_come_out_the_same(desk: Desk) -> None:
    desk.dialect = "xml"
    text = (
        "First <read_file path='a'> in the text.\n<read_file>\n<pth>a.txt</pth>\n</read_file>\n"
        "<list_files>\n<path>.</path>\n</list_files>\nand <b>more</b> text.\n"
    )
    desk.server.replies = [Reply(text=text, chunk=5), Reply(text="I see.")]
    session, (stopped,) = await desk.run("Begin.")
    assert stopped.text == "I see."
    assert len(bodies(session.events, ToolReturned)) >= 2


async def test_limits_of_one_run_do_not_bind_the_replay(desk: Desk) -> None:
    desk.server.replies = lambda _request: Reply(
        text="Step.", calls=[("execute_command", {"command": f"echo {len(desk.server.requests)}"})]
    )
    session, _ = await desk.run("Begin.", max_turns=2)
    async with desk.session(resume=session.id, max_turns=4) as again:
        await again.submit("")
        await again.submit("More.")
        assert [one.steps for one in bodies(again.events, Stopped)] == [2, 4, 4]


async def tampered(desk: Desk, session: str, event: Event, body: Body) -> None:
    """Change one event behind the store's back."""
    async with desk.app() as app:
        path = app.store.database.path
    assert path is not None
    connection = sqlite3.connect(path)
    _, _, stored = rows.encode(body, compress=False)
    before = connection.execute("SELECT num FROM sessions WHERE id = ?", (session,)).fetchone()[0]
    connection.execute(
        "UPDATE events SET body = ? WHERE id = ?", (stored, rows.base_of(before) + event.seq)
    )
    connection.commit()
    connection.close()


TAMPERS: list[Any] = [
    pytest.param(UserSaid, {"parts": (Text("Something else."),)}, ModelCalled, 1, id="user"),
    pytest.param(FactAdded, {"text": "Another date."}, ModelCalled, 1, id="fact"),
    pytest.param(ModelCalled, {"body": "0" * 64}, ModelCalled, 1, id="request"),
    pytest.param(ModelSaid, {"parts": (Text("I never said it."),)}, ModelSaid, 1, id="reply"),
    pytest.param(ToolReturned, {"text": "no such thing"}, ModelCalled, 2, id="result"),
    pytest.param(Stopped, {"text": "Never done."}, Stopped, 1, id="end"),
]


@pytest.mark.parametrize(("kind", "changes", "shows_in", "number"), TAMPERS)
async def test_a_changed_event_is_found_where_it_first_shows(
    dialect_desk: Desk, kind: type, changes: dict[str, Any], shows_in: type, number: int
) -> None:
    desk = dialect_desk
    desk.server.replies = [desk.reply("Look.", [("list_files", {"path": "."})]), desk.reply("So.")]
    session, _ = await desk.run("Begin.")
    event = next(event for event in session.events if isinstance(event.body, kind))
    await tampered(desk, session.id, event, msgspec.structs.replace(event.body, **changes))
    report = await desk.replay(session.id)
    shown = [event.seq for event in session.events if isinstance(event.body, shows_in)]
    assert report.divergence is not None
    assert report.divergence.startswith(f"event {shown[number - 1]}: {shows_in.__name__}")


async def test_a_changed_encoder_is_found_at_the_first_request(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.server.replies = [Reply(text="Yes.")]
    session, _ = await desk.run("Begin.")
    encode = OpenAIModel.encode
    monkeypatch.setattr(OpenAIModel, "encode", lambda self, prompt: encode(self, prompt) + b" ")
    report = await desk.replay(session.id)
    assert report.requests == 0
    assert report.divergence is not None
    assert "ModelCalled: the request's bytes differ" in report.divergence


async def test_a_replay_runs_nothing_and_opens_no_connection(
    any_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = any_desk
    desk.server.replies = [
        desk.reply("Go.", [("execute_command", {"command": "echo ran >> ran.txt"})]),
        desk.reply("", [("write_to_file", {"path": "made.txt", "content": "made\n"})]),
        desk.reply("Done."),
    ]
    session, _ = await desk.run("Begin.")
    requests = len(desk.server.requests)
    for name in ("ran.txt", "made.txt"):
        (desk.project / name).unlink()

    def refused(*_args: object, **_more: object) -> None:
        raise AssertionError("a replay opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(asyncio, "open_connection", refused)
    before = await desk.log(session.id)
    report = await desk.replay(session.id)
    assert (report.requests, report.divergence) == (3, None)
    assert len(desk.server.requests) == requests
    assert list(desk.project.iterdir()) == []
    assert await desk.log(session.id) == before


async def test_a_result_that_nobody_asked_for_is_found(desk: Desk) -> None:
    desk.server.replies = [Reply(text="Yes.")]
    session, _ = await desk.run("Begin.")
    result = ToolReturned(call_id="000000000", message_id="m", name="read_file", ok=True)
    await desk.write_log(session.id, result)
    report = await desk.replay(session.id)
    assert (
        report.divergence
        == f"event {len(session.events) + 1}: the record has a result of no open call"
    )


async def test_findings_of_checks_that_a_record_lacks_or_has_too_much_are_no_divergence(
    desk: Desk,
) -> None:
    """Later versions check other things: a record of an earlier one still replays, byte for byte."""
    desk.server.replies = lambda _request: Reply(text="Yes.", input=90_000)
    async with desk.session() as session:
        await session.submit("One?")
        recorded = [event.body for event in session.events]
    assert [body.code for body in recorded if isinstance(body, Notice)] == ["usage"]
    more = Notice(level="warning", code="share", text="The history layer takes much.")
    lacking = [body for body in recorded if not isinstance(body, Notice)]
    at = next(i for i, body in enumerate(recorded) if isinstance(body, ModelCalled))
    for bodies_then in (lacking, [*recorded[:at], more, *recorded[at:]]):
        log = record_of(bodies_then)
        for body in recorded:
            if isinstance(body, ModelCalled):
                log.take_outside()
                log.take_findings()
            if not isinstance(body, OUTSIDE):
                await log.append(body)
        assert [event.body for event in log.events] == bodies_then
    with pytest.raises(Diverged):
        await record_of(lacking).append(Notice(level="error", code="window", text="Full."))


def record_of(recorded: list[Body]) -> RecordedLog:
    events = [Event("s", seq, seq, body) for seq, body in enumerate(recorded, 1)]
    return RecordedLog(recorded=events, session="s", events=[], on_head=lambda _head: None)
