"""What the model's side can do wrong: tried again, told, or ended with a clear word; never half done."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from croze.agent.compaction import RECOVERIES
from croze.llm.anthropic import AnthropicModel
from croze.llm.http import Timeouts
from croze.llm.openai import OpenAIModel
from croze.llm.retry import RetryingModel
from croze.types.event import (
    Compacted,
    ModelCalled,
    ModelSaid,
    Notice,
    Retried,
    ToolReturned,
    ToolStarted,
)
from croze.types.parts import Text
from croze.types.stream import Delta
from tests.agent.conftest import BOUND, Desk, bodies
from tests.model_server import Reply, ServerThread

CROZE = Path(sys.executable).parent / "croze"
WRITE = ("write_to_file", {"path": "made.txt", "content": "all of it\n"})


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wire that takes 50 ms of silence for a stall."""
    for model in (OpenAIModel, AnthropicModel):
        monkeypatch.setitem(model.__init__.__kwdefaults__, "timeouts", Timeouts(idle=0.05))


@pytest.mark.usefixtures("no_waits", "impatient")
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("429", "rate_limited"),
        ("500", "server_error"),
        ("503", None),
        ("529", None),
        ("refuse", None),
        ("reset", None),
        ("cut", None),
        ("eof", "cut"),
        ("stall", "idle_timeout"),
        ("malformed", None),
        ("error", None),
    ],
)
async def test_a_failed_try_is_announced_and_nothing_of_it_is_used(
    any_desk: Desk, fault: str, code: str | None
) -> None:
    desk, server = any_desk, any_desk.server
    made = desk.project / "made.txt"
    broken = desk.reply("Now I write the file for you.", [WRITE], fault=fault, after=4)
    server.replies = [broken, desk.reply("Written later."), desk.reply("Never.")]
    async with desk.session() as session:
        shown: list[str] = []

        def watch(item: object) -> None:
            if isinstance(item, Delta) and item.kind in ("text", "reset"):
                shown.append(item.text if item.kind == "text" else "RESET")

        session.subscribe(watch)
        stopped = await asyncio.wait_for(session.submit("Write it."), BOUND)
        events = session.events
    assert stopped.reason == "done"
    assert stopped.text == "Written later."
    retried = bodies(events, Retried)
    assert [one.attempt for one in retried] == [1]
    assert retried[0].delay == 0
    if code is not None:
        assert retried[0].error == code
    assert not made.exists()
    assert bodies(events, ToolStarted) == []
    assert "".join(shown).endswith("RESETWritten later.")
    assert len(server.requests) == 2
    assert server.requests[0].body == server.requests[1].body
    assert len(bodies(events, ModelCalled)) == 1


@pytest.mark.parametrize("fault", ["crlf", "bytes", "comments", "cr,bytes", "crlf,bytes,close"])
async def test_the_form_of_the_stream_makes_no_difference(any_desk: Desk, fault: str) -> None:
    desk, server = any_desk, any_desk.server
    server.replies = [desk.reply("Sö.", [WRITE], fault=fault), desk.reply("Done.", fault=fault)]
    session, stopped = await desk.run("Write it.")
    assert stopped[0].text == "Done."
    assert (desk.project / "made.txt").read_text() == "all of it\n"
    assert bodies(session.events, Retried) == []


@pytest.mark.usefixtures("no_waits")
async def test_a_call_that_the_length_cut_is_told_and_not_run(any_desk: Desk) -> None:
    desk, server = any_desk, any_desk.server
    file = desk.project / "made.txt"
    file.write_text("as it was\n")
    content = "".join(f"line {n}\n" for n in range(40))
    if desk.dialect == "native":
        call = ("write_to_file", {"path": "made.txt", "content": content})
        cut = Reply(text="I write.", calls=[call], fault="cut_call")
    else:
        whole = desk.reply(
            "I write.", [("write_to_file", {"path": "made.txt", "content": content})]
        )
        cut = Reply(text=whole.text[:120], finish="length")
    server.replies = [cut, desk.reply("I see; in pieces then.")]
    desk.overrides["model.max_continuations"] = 0
    session, stopped = await desk.run("Write it.")
    assert stopped[0].reason == "done"
    assert file.read_text() == "as it was\n"
    (result,) = bodies(session.events, ToolReturned)
    assert (result.ok, result.code) == (False, "truncated")
    assert bodies(session.events, ToolStarted) == []
    assert b"append" in server.requests[1].body


@pytest.mark.usefixtures("no_waits")
async def test_a_model_that_stays_silent_fails_with_a_clear_word(any_desk: Desk) -> None:
    desk, server = any_desk, any_desk.server
    server.replies = lambda _request: desk.reply("")
    session, (stopped,) = await desk.run("Say something.")
    assert stopped.reason == "failed"
    assert stopped.text == "The model returned an empty reply twice."
    assert len(server.requests) <= 4
    assert all(not said.partial for said in bodies(session.events, ModelSaid))


async def test_an_unknown_tool_and_wrong_arguments_are_told(any_desk: Desk) -> None:
    desk, server = any_desk, any_desk.server
    unknown = [("frobnicate", {"x": "1"})] if desk.dialect == "native" else []
    wrong = [("read_file", {})]
    server.replies = [desk.reply("Try.", [*unknown, *wrong]), desk.reply("I see.")]
    session, (stopped,) = await desk.run("Do it.")
    assert stopped.reason == "done"
    codes = [result.code for result in bodies(session.events, ToolReturned)]
    assert codes == [*(["unknown_tool"] if unknown else []), "invalid_arguments"]
    assert b"path" in server.requests[1].body


async def test_malformed_arguments_show_the_right_form(desk: Desk) -> None:
    broken = ("read_file", '{"path": "a.txt"')
    desk.server.replies = [Reply(calls=[broken], finish="tool_calls"), Reply(text="I see.")]
    session, _ = await desk.run("Do it.")
    (result,) = bodies(session.events, ToolReturned)
    assert result.code == "malformed"
    assert "path" in result.text


async def test_a_wrong_key_is_one_clear_message_and_appears_nowhere(wire_desk: Desk) -> None:
    desk, server = wire_desk, wire_desk.server
    key = "sk-verysecret-0123456789abcdef"
    desk.env = {"OPENAI_API_KEY": key, "ANTHROPIC_API_KEY": key}
    server.replies = [Reply(fault="401")]
    session, (stopped,) = await desk.run("Do it.")
    assert stopped.reason == "failed"
    notices = [notice for notice in bodies(session.events, Notice) if notice.level == "error"]
    assert len(notices) == 1
    assert f"check {desk.wire.upper()}_API_KEY" in notices[0].params["hint"]
    assert len(server.requests) == 1
    raw = b"".join(
        path.read_bytes() for path in Path(os.environ["HOME"]).rglob("*") if path.is_file()
    )
    assert key.encode() not in raw


async def test_a_context_overflow_is_recovered_from_before_it_ends_the_turn(any_desk: Desk) -> None:
    any_desk.server.replies = lambda _request: Reply(fault="overflow")
    session, (stopped,) = await any_desk.run("Do it.")
    assert stopped.reason == "failed"
    assert "context" in stopped.text  # the server's own word
    assert bodies(session.events, Retried) == []
    tried = bodies(session.events, Compacted)
    assert 1 <= len(tried) <= RECOVERIES
    assert len(any_desk.server.requests) == len(tried) + 1
    sizes = [len(request.body) for request in any_desk.server.requests]
    assert sizes == sorted(sizes, reverse=True)
    assert all(b"Do it." in request.body for request in any_desk.server.requests)
    (failed,) = [notice for notice in bodies(session.events, Notice) if notice.level == "error"]
    assert "made smaller" in failed.params["hint"]
    assert "larger window" in failed.params["hint"]


async def test_an_overflow_that_recovery_mends_is_only_a_warning(any_desk: Desk) -> None:
    any_desk.server.replies = [Reply(fault="overflow"), Reply(text="It fits.")]
    session, (stopped,) = await any_desk.run("Do it.")
    assert (stopped.reason, stopped.text) == ("done", "It fits.")
    (warned,) = [notice for notice in bodies(session.events, Notice) if notice.level != "info"]
    assert (warned.level, warned.code) == ("warning", "window_overflow")
    (body,) = bodies(session.events, Compacted)
    assert body.tokens_after < body.tokens_before


@pytest.mark.usefixtures("no_waits")
async def test_when_every_try_failed_the_turn_says_so_and_can_go_on(any_desk: Desk) -> None:
    desk, server = any_desk, any_desk.server
    desk.overrides["model.max_retries"] = 2
    last = desk.reply("This much arrived, then nothing.", [WRITE], fault="cut", after=5)
    server.replies = [Reply(fault="500"), Reply(fault="429", retry_after="0"), last]
    async with desk.session() as session:
        stopped = await session.submit("Do it.")
        assert stopped.reason == "retries_exhausted"
        assert [one.attempt for one in bodies(session.events, Retried)] == [1, 2]
        (said,) = bodies(session.events, ModelSaid)
        assert said.partial
        assert any(isinstance(part, Text) and part.text for part in said.parts)
        assert bodies(session.events, ToolStarted) == []
        server.replies = [*server.replies, desk.reply("Here I am again.")]
        again = await session.submit("")
    assert again.text == "Here I am again."


@pytest.mark.usefixtures("no_waits")
async def test_the_servers_wish_to_wait_is_recorded(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    sleep = asyncio.sleep

    async def noted(delay: float) -> None:
        waited.append(delay)
        await sleep(0)

    monkeypatch.setitem(RetryingModel.__init__.__kwdefaults__, "sleep", noted)
    desk.server.replies = [Reply(fault="429", retry_after="7"), Reply(text="Thanks.")]
    session, _ = await desk.run("Do it.")
    (retried,) = bodies(session.events, Retried)
    assert (retried.delay, waited) == (7.0, [7.0])


async def test_a_cancel_in_a_pause_between_tries_is_not_tried_again(desk: Desk) -> None:
    desk.server.replies = lambda _request: Reply(fault="429", retry_after="60")
    async with desk.session() as session:
        turn = asyncio.ensure_future(session.submit("Do it."))
        session.subscribe(lambda item: session.cancel() if _is_retry(item) else None)
        stopped = await asyncio.wait_for(turn, BOUND)
    assert stopped.reason == "cancelled"
    assert len(desk.server.requests) == 1


def _is_retry(item: object) -> bool:
    return isinstance(getattr(item, "body", None), Retried)


def test_the_command_line_exits_with_75_when_the_model_cannot_be_reached(
    tmp_path: Path, project: Path
) -> None:
    key = "sk-verysecret-0123456789abcdef"
    with ServerThread([Reply(fault="500")], repeat=True) as server:
        done = subprocess.run(
            [CROZE, "run", "go", "--model", "openai:gpt-4.1"],
            cwd=project,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "OPENAI_API_KEY": key,
                "OPENAI_BASE_URL": server.url,
                "CROZE_MODEL__MAX_RETRIES": "0",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BOUND,
            check=False,
        )
    assert done.returncode == 75, done.stderr
    assert key not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
