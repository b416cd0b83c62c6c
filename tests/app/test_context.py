"""The context inspector over real sessions: exact to the byte, and what it tells of them."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from croze.app.context import (
    Report,
    Unrecorded,
    body,
    breaks,
    compare,
    explain,
    find,
    receipts,
    report,
    restore,
    restore_live,
    show,
    what_if,
)
from croze.app.timetravel import undo
from croze.store.compose import Draft
from croze.types.errors import (
    ConversationNotFound,
    MessageNotFound,
    SessionBusy,
    StoreError,
    UsageError,
)
from croze.types.event import (
    Compacted,
    Event,
    ModelCalled,
    Notice,
    ToolReturned,
    ToolStarted,
    Unknown,
)
from croze.types.tool import Access
from tests.agent.conftest import BOUND, Desk
from tests.model_server import ModelServer, Reply, Request

PREFILL = {
    "openai": 'models."openai:gpt-4.1".prefill',
    "anthropic": 'models."anthropic:claude-sonnet-4-5".prefill',
}
LONG = "".join(f"line {n}\n" for n in range(300))
FOUR = ["openai-native", "openai-xml", "anthropic-native", "anthropic-xml"]


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture(params=FOUR)
def any_desk(request: pytest.FixtureRequest, project: Path, server: ModelServer) -> Desk:
    """Every wire with every protocol."""
    wire, _, dialect = request.param.partition("-")
    return Desk(project, server, wire=wire, dialect=dialect)


@pytest.fixture
def desk(project: Path, server: ModelServer) -> Desk:
    return Desk(project, server, wire="anthropic")


@pytest.fixture
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries follow each other at once."""
    monkeypatch.setattr("croze.llm.retry.BASE_SECONDS", 0.0)


async def say(desk: Desk, session: str | None, *texts: str) -> str:
    """Say something in a new or resumed session and close it again."""
    async with desk.app() as app:
        live = await app.session(desk.options(**({"resume": session} if session else {})))
        for text in texts:
            await asyncio.wait_for(live.submit(text), BOUND)
        await app.leave(live)
        return live.id


def results(events: Sequence[Event]) -> list[ToolReturned]:
    return [event.body for event in events if isinstance(event.body, ToolReturned)]


async def prune(desk: Desk, session: str, **fields: Any) -> None:
    """Append a compaction as a policy would have."""
    given: dict[str, Any] = {
        "policy": "batch", "reason": "above the watermark",
        "tokens_before": 9_000, "tokens_after": 5_000, **fields,
    }  # fmt: skip
    await desk.write_log(session, Compacted(**given))


async def eventful(desk: Desk) -> str:
    """A session with retries, a continued reply, compactions, an undone turn and a resumption."""
    desk.overrides[PREFILL[desk.wire]] = True
    (desk.project / "a.txt").write_text(LONG)
    (desk.project / "b.txt").write_text(LONG.replace("line", "row"))
    kept = {"input": 3_000, "cached": 2_000, "cache_write": 500}
    read_both = [("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"})]
    desk.says(
        Reply(fault="503"),
        desk.reply("Look.", read_both, **kept),
        Reply(text="The answer begins with one and tw", finish="length", **kept),
        Reply(text="o, and it ends with three.", **kept),
    )
    session = await say(desk, None, "Begin.")
    first, second = results(await desk.log(session))
    await prune(desk, session, replaced={first.call_id: "[cleared: read_file a.txt]"})
    desk.says(
        desk.reply("", [("write_to_file", {"path": "c.txt", "content": "made\n"})]),
        desk.reply("Written."),
    )
    await say(desk, session, "Write a file.")
    async with desk.app() as app:
        await undo(app, session)
    desk.says(
        desk.reply("", [("list_files", {"path": "."})]),
        desk.reply("Listed."),
    )
    await say(desk, session, "List instead.")
    await prune(desk, session, hidden=(second.message_id,))
    desk.says(desk.reply("And on."), desk.reply("At the end."))
    await say(desk, session, "Go on.", "And once more.")
    return session


@pytest.mark.usefixtures("no_waits")
async def test_every_request_is_rebuilt_byte_for_byte(any_desk: Desk) -> None:
    desk = any_desk
    session = await eventful(desk)
    sent = {hashlib.sha256(r.body).hexdigest(): r.body for r in desk.server.requests}
    events = await desk.log(session)
    called = [event.body for event in events if isinstance(event.body, ModelCalled)]
    assert len(called) == 9
    parts: dict[int, int] = {}
    async with desk.app() as app:
        for recorded in called:
            parts[recorded.step] = parts.get(recorded.step, 0) + 1
            turn = f"{recorded.step}.{parts[recorded.step]}"
            data, exact = await body(app, session, turn=turn)
            assert exact.exact, exact.text
            assert data == sent[recorded.body]
            shown = await report(app, session, turn=turn)
            assert isinstance(shown, Report)
            assert shown.exact.exact
            assert shown.step == recorded.step
    assert max(parts.values()) == 2


@pytest.mark.parametrize("policy", ["batch", "digest", "zone"])
async def test_what_a_real_policy_made_of_the_context_is_exact_too(
    any_desk: Desk, policy: str
) -> None:
    desk = any_desk
    desk.overrides |= {"context.policy": policy, "context.zone": "6k"}
    (desk.project / "a.txt").write_text(LONG * 2)
    calls = iter(range(1, 100))

    def reply(request: Request) -> Reply:
        if b"read_file" not in request.body:
            return Reply(text="No summary.")  # what is asked beside the conversation
        number = next(calls)
        if number % 6 == 0:
            return desk.reply("Enough.")
        return desk.reply("", [("read_file", {"path": "a.txt", "start_line": str(number)})])

    desk.server.replies = reply
    session = await say(desk, None, "Begin.", "Go on.")
    sent = {hashlib.sha256(r.body).hexdigest(): r.body for r in desk.server.requests}
    events = await desk.log(session)
    assert any(isinstance(event.body, Compacted) for event in events)
    async with desk.app() as app:
        for event in events:
            if isinstance(event.body, ModelCalled) and event.body.purpose == "main":
                data, exact = await body(app, session, turn=str(event.body.step))
                assert exact.exact, exact.text
                assert data == sent[event.body.body]
        told = await breaks(app, session)
        assert {item.cause for item in told.breaks} == {"compaction"}
        found = await receipts(app, session)
        assert {receipt.policy for receipt in found.receipts} <= {policy, "recovery"}
        assert any(receipt.spans for receipt in found.receipts)


@pytest.mark.usefixtures("no_waits")
async def test_the_inspector_tells_the_story_of_a_session(any_desk: Desk) -> None:
    desk = any_desk
    session = await eventful(desk)
    first, second = results(await desk.log(session))[:2]
    async with desk.app() as app:
        causes = {(item.step, item.cause) for item in (await breaks(app, session)).breaks}
        assert (3, "compaction") in causes
        assert (7, "compaction") in causes
        assert any(cause == "undo" for _step, cause in causes)
        found = await receipts(app, session)
        how = [(span.id, span.how) for receipt in found.receipts for span in receipt.spans]
        assert how == [(first.message_id, "replaced"), (second.message_id, "hidden")]
        gone = (await explain(app, "line 77", session)).gone
        assert [item.id for item in gone] == [first.message_id]
        assert gone[0].at == 3
        here = (await explain(app, "line 77", session, turn="2")).here
        assert [item.origin for item in here] == ['read_file {"path":"a.txt"}']
        undone = await explain(app, "Write a file.", session)
        assert [item.standing for item in undone.gone] == ["undone"]
        changed = await compare(app, "2", "3", session)
        assert (changed.a, changed.b) == ("2.2", "3")
        assert first.message_id in {item.id for item in changed.messages}
        tried = await what_if(app, ["all"], session)
        assert [outcome.policy for outcome in tried.outcomes] == ["none", "batch", "digest", "zone"]


async def test_a_span_comes_back_at_the_end_and_the_prefix_holds(any_desk: Desk) -> None:
    desk = any_desk
    (desk.project / "a.txt").write_text(LONG)
    desk.says(desk.reply("", [("read_file", {"path": "a.txt"})]), desk.reply("Read."))
    session = await say(desk, None, "Begin.")
    (returned,) = results(await desk.log(session))
    async with desk.app() as app:
        with pytest.raises(UsageError, match="in full"):
            await restore(app, returned.message_id, session)
    await prune(desk, session, replaced={returned.call_id: "[cleared]"})
    desk.says(desk.reply("Yes."))
    await say(desk, session, "Still there?")
    async with desk.app() as app:
        back = await restore(app, returned.message_id[:8], session)
        assert (back.id, back.origin) == (returned.message_id, 'read_file {"path":"a.txt"}')
        with pytest.raises(UsageError, match="in full"):
            await restore(app, returned.message_id[:8], session)
        (receipt,) = (await receipts(app, session)).receipts
        assert [span.restored for span in receipt.spans] == [True]
    desk.says(desk.reply("Now I see it."))
    await say(desk, session, "Look again.")
    before, after = desk.server.requests[-2:]
    assert b"line 299" not in before.body
    assert b"line 299" in after.body
    async with desk.app() as app:
        assert [item.cause for item in (await breaks(app, session)).breaks] == ["compaction"]
        (holder,) = (await explain(app, "line 299", session)).here
        assert (holder.section, holder.reason) == ("restored", "brought back by the user")
        assert (await body(app, session))[1].exact


async def test_a_session_that_runs_is_restored_by_itself_and_by_nobody_else(desk: Desk) -> None:
    (desk.project / "a.txt").write_text(LONG)
    desk.says(desk.reply("", [("read_file", {"path": "a.txt"})]), desk.reply("Read."))
    session = await say(desk, None, "Begin.")
    (returned,) = results(await desk.log(session))
    await prune(desk, session, hidden=(returned.message_id,))
    async with desk.app() as app:
        live = await app.session(desk.options(resume=session))
        async with desk.app() as other:
            with pytest.raises(SessionBusy):
                await restore(other, returned.message_id, session)
            assert isinstance(await report(other, session), Report)
        back = await restore_live(live, returned.message_id)
        assert back.event == live.events[-1].seq
        desk.says(desk.reply("There it is."))
        await asyncio.wait_for(live.submit("Look again."), BOUND)
        await app.leave(live)
    assert b"line 299" in desk.server.requests[-1].body


async def test_a_span_is_shown_in_full_also_where_the_result_had_been_cut(desk: Desk) -> None:
    desk.says(desk.reply("Hello."))
    session = await say(desk, None, "Begin.")
    async with desk.app() as app:
        kept = await app.store.put_blob(b"the head\nthe middle\nthe tail")
        lost = "0" * 64
        for number, whole in enumerate((kept, lost)):
            returned = ToolReturned(
                f"call0000{number}", f"abcdef0{number}-0", "execute_command", True,
                text="the head\n[…]\nthe tail", truncated="1 line", blobs=(whole,), whole=whole,
            )  # fmt: skip
            await desk.write_log(session, returned)
        shown = await show(app, "abcdef00", session)
        assert shown.span.text == "the head\n[…]\nthe tail"
        assert shown.whole == "the head\nthe middle\nthe tail"
        assert (await show(app, "abcdef01", session)).whole is None
        with pytest.raises(MessageNotFound):
            await show(app, "nobody-at-all", session)


async def test_a_head_that_was_purged_takes_the_bytes_and_nothing_else(desk: Desk) -> None:
    desk.says(desk.reply("Hello."))
    session = await say(desk, None, "Begin.")
    async with desk.app() as app:
        app.store.database.connection.execute("DELETE FROM blobs")
        found = await report(app, session)
        assert isinstance(found, Report)
        assert (found.exact.exact, found.exact.why) == (False, "head")
        assert [row.text for row in found.messages if row.role == "user"] == ["Begin."]
        with pytest.raises(StoreError, match="no longer stored"):
            await body(app, session)
        assert (await breaks(app, session)).breaks == ()


async def test_an_imported_conversation_says_that_nothing_was_recorded(desk: Desk) -> None:
    async with desk.app() as app:
        drafts = [Draft(role="user", content="Hi."), Draft(role="assistant", content="Hello.")]
        made = await app.conversations.create(name="old talk", messages=drafts)
        found = await report(app)
        assert isinstance(found, Unrecorded)
        assert (found.session, found.requests, found.imported) == (made.id, 0, True)
        assert [row.role for row in found.messages] == ["user", "reply"]
        for ask in (breaks(app), body(app), compare(app, "1", "2"), explain(app, "Hi")):
            with pytest.raises(UsageError, match="imported"):
                await ask
        assert (await receipts(app)).receipts == ()
        assert (await show(app, found.messages[1].id)).span.text == "Hello."


async def test_sessions_are_found_by_id_name_namespace_and_newness(desk: Desk) -> None:
    async with desk.app() as app:
        with pytest.raises(UsageError, match="no conversation"):
            await find(app, None)
        first = await app.conversations.create(name="first", namespace="one")
        second = await app.conversations.create(name="second", namespace="two")
        assert await find(app, None) == second.id
        assert await find(app, None, "one") == first.id
        assert await find(app, "first") == first.id
        assert await find(app, second.id[:8]) == second.id
        with pytest.raises(ConversationNotFound):
            await find(app, "third")
        await app.conversations.create(name="first")
        with pytest.raises(ConversationNotFound):
            await find(app, "first")


async def test_a_log_of_another_version_is_reported_with_what_it_lacks(desk: Desk) -> None:
    desk.says(desk.reply("Hello."), desk.reply("Again."))
    session = await say(desk, None, "Begin.")
    await desk.write_log(session, Unknown("Telepathy", 7, '{"thought": "?"}'))
    await say(desk, session, "More.")
    async with desk.app() as app:
        found = await report(app, session)
        assert isinstance(found, Report)
        assert (found.unknown, found.exact.exact) == (1, True)


async def test_what_if_says_what_it_can_not_understand(desk: Desk) -> None:
    desk.says(desk.reply("Hello.", input=3_000, cache_write=1_000))
    session = await say(desk, None, "Begin.")
    wrong = ["policy=magic", "window=0", "prices=1/2", "colour=red", "window=", "prices=1/2/3/x",
             "window=lots", "prices=1/-2/3/4", "window=0.5"]  # fmt: skip
    async with desk.app() as app:
        for spec in wrong:
            with pytest.raises(UsageError, match="what-if"):
                await what_if(app, [spec], session)
        tried = await what_if(app, ["none,window=32k,prices=1/0.1/-/5", "digest+zone"], session)
        first, *others = tried.outcomes
        assert (first.window, first.prices_of, first.prices.cache_write) == (
            32 * 1024, "1/0.1/-/5", None,
        )  # fmt: skip
        assert [outcome.policy for outcome in others] == ["digest", "zone"]
        named = await what_if(app, ["none,prices=openai:gpt-4.1"], session)
        assert named.outcomes[0].prices_of == "openai:gpt-4.1"
        assert named.outcomes[0].cost != tried.recorded.cost


async def test_a_log_that_breaks_a_rule_gets_a_warning_and_goes_on(desk: Desk) -> None:
    desk.says(desk.reply("Hello."), desk.reply("Again."), desk.reply("And again."))
    session = await say(desk, None, "Begin.")
    await desk.write_log(session, ToolStarted("nobody123", "read_file", Access(read=True)))
    await say(desk, session, "More.", "And more.")
    events = await desk.log(session)
    found = [e.body for e in events if isinstance(e.body, Notice) and e.body.level == "warning"]
    assert [notice.code for notice in found] == ["start_without_call"]
    assert len(desk.server.requests) == 3
