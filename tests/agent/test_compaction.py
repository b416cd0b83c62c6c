"""The compaction step in a running session: one event, a prefix that holds until the next, summaries by a
model or by code, recovery of a full window; and all of it replays to the same bytes."""

import asyncio
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from croze.context.asked import REASON
from croze.types.errors import UsageError
from croze.types.event import (
    Compacted,
    HeadSet,
    MessagesMarked,
    ModelCalled,
    ModelSaid,
    Notice,
    Stopped,
    TodoSet,
)
from tests.agent.conftest import Desk, bodies
from tests.agent.test_prefix import split
from tests.model_server import Reply, Request

SUMMARY = """\
[History Summary]
- Overall Goal: read the files and tell what they hold
- Current Plan & Progress: the first files are read, the rest is next
- Environment / Files: file0.txt, file1.txt
- Key Knowledge / Insights: every file holds one line many times
- Recent Actions: read file0.txt: 500 lines
- Left-off Point: the next file is to be read"""


def files(desk: Desk, count: int, lines: int = 300) -> None:
    for number in range(count):
        text = f"line of file {number} with value_{number}\n" * lines
        (desk.project / f"file{number}.txt").write_text(text)


def reads(desk: Desk, count: int, *, words: str = "") -> list[Reply]:
    """Replies that read one file each, then say that they are done."""
    found = [
        desk.reply(f"File {n}. {words}", [("read_file", {"path": f"file{n}.txt"})])
        for n in range(count)
    ]
    return [*found, desk.reply("All read.")]


def is_summary(request: Request) -> bool:
    return b"Overall Goal" in request.body and b"read_file" not in split(request)[0]


def answers(desk: Desk, replies: list[Reply], summary: Reply) -> list[Request]:
    """The server plays `replies` in order and `summary` where one is asked for; gives the list that the
    requests for summaries are kept in."""
    left = iter(replies)
    asked: list[Request] = []

    def play(request: Request) -> Reply:
        if is_summary(request):
            asked.append(request)
            return summary
        return counted(next(left), request)

    desk.server.replies = play
    return asked


def counted(reply: Reply, request: Request) -> Reply:
    """The reply of a provider that counts a token for four bytes."""
    return replace(reply, input=len(request.body) // 4)


def main_requests(desk: Desk) -> list[Request]:
    return [request for request in desk.server.requests if not is_summary(request)]


async def test_a_batch_is_one_event_and_the_prefix_holds_before_and_after_it(
    any_desk: Desk,
) -> None:
    desk = any_desk
    files(desk, 9)
    desk.overrides["context.zone"] = "24k"
    answers(desk, [*reads(desk, 9), *reads(desk, 1)], desk.reply(SUMMARY))
    async with desk.session() as session:
        await session.submit("Read all files.")
        await session.submit("And the first once more.")
        events = session.events
    found = [e for e in events if isinstance(e.body, Compacted)]
    assert len(found) == 1
    body = found[0].body
    assert isinstance(body, Compacted)
    assert (body.policy, body.reason) == ("batch", "above the watermark")
    assert body.tokens_after <= 0.75 * body.tokens_before
    assert body.figures["high"] == 24 * 1024
    cut = next(i for i, b in enumerate(bodies(events, ModelCalled)) if b.history >= found[0].seq)
    for index, (before, after) in enumerate(pairwise(desk.server.requests), 1):
        assert split(after)[0] == split(before)[0]
        assert split(after)[1].startswith(split(before)[1]) == (index != cut)
    assert b"cleared to save room" in desk.server.requests[cut].body
    assert b"read_result" in desk.server.requests[cut].body


async def test_a_summary_is_asked_of_the_summarize_model_and_put_into_the_event(desk: Desk) -> None:
    files(desk, 14, lines=3)
    desk.overrides["context.zone"] = "9k"
    desk.overrides["model.summarize"] = "openai:gpt-4.1-mini"
    asked = answers(desk, reads(desk, 14, words="word " * 400), desk.reply(SUMMARY))
    session, (stopped,) = await desk.run("Read all files.")
    assert stopped.text == "All read."
    summaries = [b for b in bodies(session.events, Compacted) if b.summary]
    assert summaries
    assert summaries[0].summary == SUMMARY
    assert "14" not in summaries[0].receipt
    assert "read" in summaries[0].receipt
    assert len(asked) == len(summaries)
    assert asked[0].json["model"] == "gpt-4.1-mini"
    called = [b for b in bodies(session.events, ModelCalled) if b.purpose == "summary"]
    assert called[0].info is not None
    assert called[0].info.model == "gpt-4.1-mini"
    last = main_requests(desk)[-1].body
    assert last.count(b"[History Summary]") == 1
    assert b"Read all files." in last


async def test_an_earlier_summary_is_handed_to_the_next_as_it_is(desk: Desk) -> None:
    files(desk, 30, lines=3)
    desk.overrides["context.zone"] = "9k"
    asked = answers(desk, reads(desk, 30, words="word " * 400), desk.reply(SUMMARY))
    await desk.run("Read all files.")
    assert len(asked) >= 2
    assert b"the next file is to be read" not in asked[0].body
    assert b"the next file is to be read" in asked[1].body


@pytest.mark.parametrize(
    "bad",
    [Reply(text="I can't."), Reply(fault="400", message="a bad day"), Reply(text="")],
    ids=["rubbish", "failure", "empty"],
)
async def test_where_no_model_writes_a_summary_plain_code_does(desk: Desk, bad: Reply) -> None:
    files(desk, 14, lines=3)
    desk.overrides["context.zone"] = "9k"
    desk.overrides["model.summarize"] = "openai:gpt-4.1-mini,openai:gpt-4.1-nano"
    asked = answers(desk, reads(desk, 14, words="word " * 400), bad)
    session, (stopped,) = await desk.run("Read all files.")
    assert stopped.text == "All read."
    (first, *_) = [b for b in bodies(session.events, Compacted) if b.summary]
    assert first.summary.startswith("[History Summary]\n- Overall Goal:")
    assert list(dict.fromkeys(r.json["model"] for r in asked)) == ["gpt-4.1-mini", "gpt-4.1-nano"]
    failed = [b for b in bodies(session.events, Notice) if b.code == "summary_failed"]
    assert [b.params["model"] for b in failed[:2]] == ["openai:gpt-4.1-mini", "openai:gpt-4.1-nano"]


async def test_a_cancel_while_the_summary_is_written_leaves_a_session_to_go_on_with(
    desk: Desk,
) -> None:
    files(desk, 14, lines=3)
    desk.overrides["context.zone"] = "9k"
    stall = [True]
    left = iter([*reads(desk, 14, words="word " * 400), desk.reply("On.")])

    def play(request: Request) -> Reply:
        if not is_summary(request):
            return counted(next(left), request)
        if stall:
            stall.pop()
            session.cancel()
            return desk.reply(SUMMARY, fault="stall", after=5)
        return desk.reply(SUMMARY)

    desk.server.replies = play
    async with desk.session() as session:
        assert (await session.submit("Read all files.")).reason == "cancelled"
        assert not bodies(session.events, Compacted)
        assert (await session.submit("")).text == "All read."
        assert bodies(session.events, Compacted)


async def test_the_todo_recap_is_told_again_after_a_compaction(desk: Desk) -> None:
    files(desk, 12)
    desk.overrides["context.zone"] = "24k"
    todo = [{"id": 1, "text": "read it all", "status": "in_progress"}]
    first = desk.reply("A plan.", [("todo_write", {"todos": todo})])
    answers(desk, [first, *reads(desk, 12)], desk.reply(SUMMARY))
    session, _ = await desk.run("Read all files.")
    assert bodies(session.events, TodoSet)
    assert bodies(session.events, Compacted)
    last = desk.server.requests[-1].body
    assert last.count(b"<todo>") == desk.server.requests[1].body.count(b"<todo>")
    assert last.rindex(b"<todo>") > last.rindex(b"cleared to save room")


async def test_policy_none_keeps_everything_until_the_window_is_full(desk: Desk) -> None:
    files(desk, 9)
    desk.overrides["context.zone"] = "24k"
    answers(desk, reads(desk, 9), desk.reply(SUMMARY))
    session, _ = await desk.run("Read all files.", policy="none")
    assert not bodies(session.events, Compacted)
    assert bodies(session.events, HeadSet)[0].agent.policy == "none"


SMALL: dict[str, Any] = {"window": 16_000, "max_output": 4_000}


def small_window(desk: Desk, **facts: Any) -> None:
    for name, value in {**SMALL, **facts}.items():
        desk.overrides[f'models."{desk.model}".{name}'] = value


@pytest.mark.parametrize("policy", ["none", "batch", "zone", "digest"])
async def test_a_full_window_is_recovered_whatever_the_policy(desk: Desk, policy: str) -> None:
    files(desk, 9)
    small_window(desk)
    answers(desk, reads(desk, 9), desk.reply(SUMMARY))
    session, (stopped,) = await desk.run("Read all files.", policy=policy)
    assert stopped.text == "All read."
    found = bodies(session.events, Compacted)
    assert found
    if policy == "none":
        assert {b.policy for b in found} == {"recovery"}
    called = [b for b in bodies(session.events, ModelCalled) if b.purpose == "main"]
    assert all(b.tokens <= 12_000 for b in called)


async def test_a_window_of_8k_is_enough_to_work_in(dialect_desk: Desk) -> None:
    desk = dialect_desk
    files(desk, 6, lines=100)
    small_window(desk, window=8_192, max_output=1_024)
    answers(desk, reads(desk, 6), desk.reply(SUMMARY))
    session, (stopped,) = await desk.run("Read all files.")
    assert stopped.text == "All read."
    assert bodies(session.events, Compacted)


async def test_after_the_providers_overflow_error_the_turn_goes_on(any_desk: Desk) -> None:
    desk = any_desk
    files(desk, 6)
    overflow = Reply(fault="400", message="prompt is too long: 213000 tokens > 200000 maximum")
    replies = reads(desk, 6)
    answers(desk, [*replies[:4], overflow, *replies[4:]], desk.reply(SUMMARY))
    session, (stopped,) = await desk.run("Read all files.")
    assert stopped.text == "All read."
    (body,) = bodies(session.events, Compacted)
    assert body.policy == "recovery"
    notices = [b for b in bodies(session.events, Notice) if b.code == "window_overflow"]
    assert len(notices) == 1
    sizes = [len(request.body) for request in main_requests(desk)]
    assert sizes[5] < sizes[4]


async def test_a_context_that_overflows_again_and_again_fails_with_a_diagnosis(desk: Desk) -> None:
    files(desk, 6)
    overflow = Reply(fault="400", message="prompt is too long: 213000 tokens > 200000 maximum")
    answers(desk, [*reads(desk, 6)[:4], *[overflow] * 5], desk.reply(SUMMARY))
    session, (stopped,) = await desk.run("Read all files.")
    assert stopped.reason == "failed"
    assert "too long" in stopped.text
    assert len(bodies(session.events, Compacted)) == 2


async def test_a_request_that_no_window_takes_is_refused_with_the_way_out(desk: Desk) -> None:
    small_window(desk)
    answers(desk, [desk.reply("Never.")], desk.reply(SUMMARY))
    session, (stopped,) = await desk.run("word " * 20_000)
    assert stopped.reason == "failed"
    assert "larger window" in stopped.text
    assert not main_requests(desk)
    assert bodies(session.events, Stopped)


async def test_resume_and_fork_carry_a_compaction_on(desk: Desk) -> None:
    files(desk, 9)
    desk.overrides["context.zone"] = "24k"
    answers(
        desk, [*reads(desk, 9), desk.reply("More."), desk.reply("Forked.")], desk.reply(SUMMARY)
    )
    session, _ = await desk.run("Read all files.")
    async with desk.session(resume=session.id) as again:
        assert (await again.submit("Go on.")).text == "More."
        forked = await again.fork(None)
    async with desk.session(resume=forked) as other:
        assert (await other.submit("Go on.")).text == "Forked."
    requests = desk.server.requests
    assert b"cleared to save room" in requests[-1].body
    assert split(requests[-2])[1].startswith(split(requests[-3])[1])


async def test_undoing_a_turn_undoes_its_compaction(desk: Desk) -> None:
    files(desk, 9)
    desk.overrides["context.zone"] = "24k"
    replies = reads(desk, 9)
    answers(desk, [desk.reply("Hello."), *replies, desk.reply("After.")], desk.reply(SUMMARY))
    async with desk.session() as session:
        await session.submit("Hello.")
        await session.submit("Read all files.")
        assert bodies(session.events, Compacted)
        await session.rewinder().undo()
        await session.submit("Something else.")
    last = desk.server.requests[-1].body
    assert b"cleared" not in last
    assert b"Read all files" not in last
    assert len(last) < len(desk.server.requests[3].body)


async def test_a_resumed_session_takes_the_policy_of_the_new_run(desk: Desk) -> None:
    answers(desk, [desk.reply("One."), desk.reply("Two.")], desk.reply(SUMMARY))
    session, _ = await desk.run("First.", policy="none", zone="32k")
    async with desk.session(resume=session.id, policy="zone", zone="0.5") as again:
        await again.submit("Second.")
        heads = bodies(again.events, HeadSet)
    assert [(h.agent.policy, h.agent.zone) for h in heads] == [("none", "32k"), ("zone", "0.5")]
    assert heads[0].head == heads[1].head


async def test_nothing_changes_when_the_model_lets_go_until_it_pays(desk: Desk) -> None:
    files(desk, 5)
    left = iter(reads(desk, 5))

    def play(request: Request) -> Reply:
        if len(desk.server.requests) == 7:
            name = "conversation_message_ids_write"
            found = re.search(rb"message_id: (\w{8})", request.body.partition(b"file 0")[2])
            args = {"action": "create", "message_ids": found[1].decode() if found else ""}
            return desk.reply("", [("call_tool", {"name": name, "arguments": args})])
        return counted(next(left, desk.reply("More.")), request)

    desk.server.replies = play
    async with desk.session() as session:
        await session.submit("Read all files.")
        await session.submit("Go on.")
        assert bodies(session.events, MessagesMarked)
        assert not bodies(session.events, Compacted)
    assert split(desk.server.requests[-1])[1].startswith(split(desk.server.requests[-2])[1])
    assert bodies(session.events, ModelSaid)


async def test_what_the_user_asks_to_compact_goes_down_to_half_at_once(any_desk: Desk) -> None:
    desk = any_desk
    files(desk, 9)
    answers(desk, [*reads(desk, 9), desk.reply("Went on.")], desk.reply(SUMMARY))
    async with desk.session() as session:
        await session.submit("Read all files.")
        done = await session.compact()
        assert done is not None
        assert (done.policy, done.reason) == ("batch", REASON)
        assert done.tokens_after <= 0.55 * done.tokens_before
        assert not done.summary
        assert bodies(session.events, Compacted) == [done]
        await session.submit("Go on.")
    last = desk.server.requests[-1]
    assert b"cleared to save room" in last.body
    assert len(last.body) < 0.75 * len(desk.server.requests[-2].body)


async def test_where_little_can_be_cleared_the_wish_to_compact_makes_a_summary(desk: Desk) -> None:
    files(desk, 8, lines=2)
    asked = answers(
        desk, [*reads(desk, 8, words="word " * 300), desk.reply("Went on.")], desk.reply(SUMMARY)
    )
    async with desk.session() as session:
        await session.submit("Read all files.")
        done = await session.compact()
        assert done is not None
        assert done.summary == SUMMARY
        assert done.receipt
        assert done.tokens_after < 0.9 * done.tokens_before
        await session.submit("Go on.")
    assert len(asked) == 1
    last = desk.server.requests[-1].body
    assert b"Left-off Point" in last
    assert b"Read all files." in last
    assert b"File 0. word" not in last


async def test_a_conversation_with_nothing_to_free_is_left_as_it_is(desk: Desk) -> None:
    answers(desk, [desk.reply("Hello."), desk.reply("Again.")], desk.reply(SUMMARY))
    async with desk.session() as session:
        assert await session.compact() is None
        await session.submit("Hello.")
        before = len(session.events)
        assert await session.compact() is None
        assert len(session.events) == before
        await session.submit("Hello again.")
    assert split(desk.server.requests[1])[1].startswith(split(desk.server.requests[0])[1])


@pytest.mark.parametrize("policy", ["digest", "zone", "none"])
async def test_the_wish_to_compact_is_met_under_every_policy(desk: Desk, policy: str) -> None:
    files(desk, 9)
    answers(desk, [*reads(desk, 9), desk.reply("Went on.")], desk.reply(SUMMARY))
    async with desk.session(policy=policy) as session:
        await session.submit("Read all files.")
        before = len(bodies(session.events, Compacted))
        done = await session.compact()
        if done is None:
            assert policy == "digest"  # it had done all it could by itself
            assert before
        else:
            assert done.tokens_after < done.tokens_before
        await session.submit("Go on.")


async def test_a_cancelled_wish_to_compact_changes_nothing_and_what_is_said_waits_for_it(
    desk: Desk,
) -> None:
    files(desk, 8, lines=2)
    left = iter([*reads(desk, 8, words="word " * 300), desk.reply("Went on.")])

    def play(request: Request) -> Reply:
        if not is_summary(request):
            return counted(next(left), request)
        session.cancel()
        return desk.reply(SUMMARY, fault="stall", after=5)

    desk.server.replies = play
    async with desk.session() as session:
        await session.submit("Read all files.")
        assert await session.compact() is None
        assert not bodies(session.events, Compacted)
        assert (await session.submit("Go on.")).text == "Went on."


async def test_nobody_compacts_while_the_agent_works(desk: Desk) -> None:
    def play(_request: Request) -> Reply:
        refused.append(session.running)
        return desk.reply("Done.")

    refused: list[bool] = []
    desk.server.replies = play
    async with desk.session() as session:
        turn = asyncio.create_task(session.submit("Work."))
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="while the agent works"):
            await session.compact()
        assert (await turn).text == "Done."
    assert refused == [True]


async def test_a_resumed_session_records_what_its_model_has_become(desk: Desk) -> None:
    answers(desk, [desk.reply("One."), desk.reply("Two."), desk.reply("Three.")], desk.reply(""))
    session, _ = await desk.run("First.")
    desk.overrides[f'models."{desk.model}".window'] = 64_000
    desk.overrides["context.low"] = 0.6
    async with desk.session(resume=session.id) as again:
        await again.submit("Second.")
        heads = bodies(again.events, HeadSet)
    assert [head.model.window for head in heads][1:] == [64_000]
    assert [head.agent.low for head in heads] == [0.5, 0.6]
    assert heads[0].head == heads[1].head
    async with desk.session(resume=session.id) as again:
        await again.submit("Third.")
        assert len(bodies(again.events, HeadSet)) == 2
    first, *later = [split(request)[1] for request in desk.server.requests]
    assert all(body.startswith(first) for body in later)
