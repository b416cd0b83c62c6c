"""A reply that its length cut goes on: by prefix where the model can, else by a message."""

import asyncio

import pytest

from croze.types.event import FactAdded, ModelCalled, ModelSaid, ToolReturned, ToolStarted
from croze.types.parts import Text
from tests.agent.conftest import BOUND, Desk, as_tags, bodies, is_delta, seen
from tests.model_server import Reply

OVERRIDES = {
    "openai": 'models."openai:gpt-4.1".prefill',
    "anthropic": 'models."anthropic:claude-sonnet-4-5".prefill',
}
FIRST = "The answer is long: it begins with one and two and thr"
SECOND = "ee, and it ends with four."
CONTENT = "".join(f"line {n}\n" for n in range(30))


def prefill(desk: Desk, *, on: bool) -> None:
    desk.overrides[OVERRIDES[desk.wire]] = on


@pytest.mark.parametrize("by_prefix", [True, False])
async def test_a_cut_reply_goes_on_without_a_seam(any_desk: Desk, by_prefix: bool) -> None:
    desk, server = any_desk, any_desk.server
    prefill(desk, on=by_prefix)
    server.replies = [Reply(text=FIRST, finish="length"), Reply(text=SECOND), Reply(text="Bye.")]
    async with desk.session() as session:
        stopped = await session.submit("Tell me.")
        assert stopped.text == FIRST + SECOND
        first, second = bodies(session.events, ModelSaid)
        assert (first.finish, second.finish) == ("length", "stop")
        assert second.continues == first.message_id
        assert second.joined is by_prefix
        words = "".join(part.text for part in second.parts if isinstance(part, Text))
        assert words == (FIRST + SECOND if by_prefix else SECOND)
        await session.submit("Thanks.")
    last = server.requests[1].json["messages"][-1]
    assert last["role"] == ("assistant" if by_prefix else "user")
    assert [called.prefill for called in bodies(session.events, ModelCalled)][1] is by_prefix
    assert len([fact for fact in bodies(session.events, FactAdded) if fact.key == "continue"]) == (
        0 if by_prefix else 1
    )
    told = server.requests[2].body.decode()
    assert (FIRST + SECOND in told) is by_prefix
    assert told.count("The answer is long") == 1


async def test_words_that_the_model_repeats_are_left_out_of_the_answer(desk: Desk) -> None:
    first = "Here is what I found out about the matter in question:\nit is quite sim"
    second = "about the matter in question:\nit is quite simple."
    desk.server.replies = [Reply(text=first, finish="length"), Reply(text=second)]
    _, (stopped,) = await desk.run("Tell me.")
    assert stopped.text == first + "ple."


@pytest.mark.parametrize("by_prefix", [True, False])
async def test_continuations_have_an_end(any_desk: Desk, by_prefix: bool) -> None:
    desk, server = any_desk, any_desk.server
    prefill(desk, on=by_prefix)
    desk.overrides["model.max_continuations"] = 2
    server.replies = lambda _request: Reply(text=f"part {len(server.requests)}, ", finish="length")
    session, (stopped,) = await desk.run("Tell me.")
    assert stopped.reason == "failed"
    assert "cut by their length" in stopped.text
    assert len(server.requests) == 4 * 3
    assert len(bodies(session.events, ModelSaid)) == 12


async def test_a_call_across_the_seam_runs_where_the_model_itself_went_on(desk: Desk) -> None:
    desk.dialect = "xml"
    prefill(desk, on=True)
    text = "I write.\n" + as_tags("write_to_file", {"path": "made.txt", "content": CONTENT})
    desk.server.replies = [
        Reply(text=text[:150], finish="length"),
        Reply(text=text[150:290], finish="length"),
        Reply(text=text[290:]),
        Reply(text="Written."),
    ]
    session, (stopped,) = await desk.run("Write it.")
    assert stopped.text == "Written."
    assert (desk.project / "made.txt").read_text() == CONTENT
    assert len(bodies(session.events, ToolStarted)) == 1
    assert [result.ok for result in bodies(session.events, ToolReturned)] == [True]
    (call,) = [p for p in bodies(session.events, ModelSaid)[2].parts if not isinstance(p, Text)]
    assert call.raw in text
    messages = desk.server.requests[3].json["messages"]
    roles = [message["role"] for message in messages]
    assert roles == ["system", *["user", "assistant"] * 2, "user"]  # the tree is the first pair


@pytest.mark.parametrize("dialect", ["native", "xml"])
async def test_a_call_across_the_seam_of_a_message_is_discarded(desk: Desk, dialect: str) -> None:
    desk.dialect = dialect
    args = {"path": "made.txt", "content": CONTENT}
    if dialect == "native":
        cut = Reply(text="I write.", calls=[("write_to_file", args)], fault="cut_call")
    else:
        cut = Reply(text=f"I write.\n{as_tags('write_to_file', args)[:150]}", finish="length")
    desk.server.replies = [cut, Reply(text="In pieces, then.")]
    session, (stopped,) = await desk.run("Write it.")
    assert stopped.text == "In pieces, then."
    assert not (desk.project / "made.txt").exists()
    assert [result.code for result in bodies(session.events, ToolReturned)] == ["truncated"]
    assert bodies(session.events, ToolStarted) == []


async def test_what_is_said_while_a_reply_is_continued_waits_for_its_end(any_desk: Desk) -> None:
    desk, server = any_desk, any_desk.server
    prefill(desk, on=True)
    server.replies = [
        Reply(text=FIRST, finish="length", pause=0.01),
        Reply(text=SECOND),
        Reply(text="And that."),
    ]
    async with desk.session() as session:
        turn = asyncio.ensure_future(session.submit("Tell me."))
        await asyncio.wait_for(seen(session, is_delta("text")), BOUND)
        more = asyncio.ensure_future(session.submit("And that?"))
        stopped = await asyncio.wait_for(turn, BOUND)
        await more
    assert stopped.text == "And that."
    roles = [message["role"] for message in server.requests[1].json["messages"]]
    assert roles[-1] == "assistant"
    assert b"And that?" not in server.requests[1].body
    messages = server.requests[2].json["messages"]
    assert [message["role"] for message in messages][-3:] == ["user", "assistant", "user"]
    assert FIRST + SECOND in str(messages[-2])
    assert "And that?" in str(messages[-1])


async def test_a_continuation_that_is_cancelled_keeps_the_whole_of_what_came(desk: Desk) -> None:
    prefill(desk, on=True)
    desk.server.replies = [
        Reply(text=FIRST, finish="length"),
        Reply(text=SECOND, fault="stall", after=2),
        Reply(text="Again."),
    ]
    async with desk.session() as session:
        turn = asyncio.ensure_future(session.submit("Tell me."))
        await asyncio.wait_for(
            seen(session, lambda item: SECOND[:5] in getattr(item, "text", "")), BOUND
        )
        session.cancel()
        await asyncio.wait_for(turn, BOUND)
        said = bodies(session.events, ModelSaid)[-1]
        assert (said.partial, said.joined) == (True, True)
        assert said.parts[0].text.startswith(FIRST + SECOND[:5])
        await session.submit("")
    assert desk.server.requests[2].body.count(FIRST.encode()) == 1
