"""Earlier results read again, messages let go of and tokens counted, in live sessions of both protocols."""

import json
from typing import Any

import pytest

from croze.store.conversations import Conversations
from croze.types.event import Compacted, MessagesMarked, ModelSaid, Notice, ToolReturned
from croze.types.parts import ToolCall
from tests.agent.conftest import Desk, bodies

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def tool(desk: Desk, name: str, **args: Any) -> tuple[str, dict[str, Any]]:
    """A call of a tool outside of the core: by its tag under xml, by call_tool else."""
    if desk.dialect == "xml":
        return name, args
    return "call_tool", {"name": name, "arguments": args}


def results(session: Any) -> list[ToolReturned]:
    return bodies(session.events, ToolReturned)


async def test_what_a_long_result_leaves_out_is_named_and_can_be_read(dialect_desk: Desk) -> None:
    desk = dialect_desk
    rows = "".join(f"row {number} of many words\n" for number in range(1, 1_501))
    (desk.project / "long.txt").write_text(rows)
    desk.says(
        desk.reply("", [("search_files", {"regex": "row", "path": "long.txt", "context": 10})]),
        desk.reply("", [("execute_command", {"command": "cat long.txt | head -300"})]),
        desk.reply("Seen."),
    )
    async with desk.session() as session:
        await session.submit("Look.")
        cut = next(result for result in results(session) if result.name == "execute_command")
        if not cut.whole:  # the shell's own bound may leave nothing to cut
            assert cut.truncated is None or "left out" in cut.truncated
        desk.says(
            desk.reply("", [tool(desk, "read_result", id=cut.message_id[:8])]),
            desk.reply("", [tool(desk, "read_result", id=cut.call_id, start_line=2, end_line=3)]),
            desk.reply("Read."),
        )
        await session.submit("Again.")
        again, part = results(session)[-2:]
    assert again.text.startswith("row 1 of many words\nrow 2")
    assert part.text == "row 2 of many words\nrow 3 of many words"


async def test_a_cut_result_is_whole_in_the_log_and_its_note_leads_there(desk: Desk) -> None:
    big = "".join(f"def name_{number}(): ...\n" for number in range(2_000))
    (desk.project / "big.py").write_text(big)
    describe = {"names": ["read_result", "count_tokens"] * 400}
    desk.says(
        desk.reply("", [("describe_tools", describe)]),
        desk.reply("Seen."),
    )
    async with desk.session() as session:
        await session.submit("Look.")
        (cut,) = results(session)
        assert cut.whole in cut.blobs
        note = f"read_result with id {cut.message_id[:8]} and start_line "
        line = int(cut.text.partition(note)[2].partition(" ")[0])
        desk.says(
            desk.reply("", [tool(desk, "read_result", id=cut.message_id[:8], start_line=line)]),
            desk.reply("Read."),
        )
        await session.submit("The rest.")
        again = results(session)[-1]
    assert again.ok
    head = cut.text.partition("\n[… ")[0]
    async with desk.app() as app:
        whole = (await app.store.blob(cut.whole)).decode()
    assert whole.startswith(head)
    assert whole.split("\n")[line - 1] == again.text.split("\n")[0]
    assert 0 <= len("\n".join(whole.split("\n")[: line - 1])) - len(head) <= 1


async def test_a_fork_reads_what_was_cut_before_it_and_nothing_of_other_sessions(
    desk: Desk,
) -> None:
    describe = {"names": ["count_tokens"] * 800}
    desk.says(desk.reply("", [("describe_tools", describe)]), desk.reply("Seen."))
    session, _ = await desk.run("Look.")
    (cut,) = results(session)
    async with desk.app() as app:
        fork = await Conversations(app.store).fork(session.id)
    call = tool(desk, "read_result", id=cut.message_id[:8])
    desk.says(
        desk.reply("", [call]), desk.reply("Read."), desk.reply("", [call]), desk.reply("No.")
    )
    forked, _ = await desk.run("Again.", resume=fork.id)
    assert results(forked)[-1].ok
    other, _ = await desk.run("Of another.")
    assert (results(other)[-1].ok, results(other)[-1].code) == (False, "no_such_message")


async def test_summarised_and_cleared_results_come_back_by_their_id(desk: Desk) -> None:
    (desk.project / "a.txt").write_text("alpha\n" * 200)
    desk.says(desk.reply("", [("read_file", {"path": "a.txt"})]), desk.reply("Seen."))
    async with desk.session() as session:
        await session.submit("Look.")
    (read,) = results(session)
    cleared = Compacted(policy="test", reason="test", replaced={read.call_id: "[cleared]"})
    await desk.write_log(session.id, cleared)
    call = tool(desk, "read_result", id=read.message_id[:8], end_line=2)
    desk.says(desk.reply("", [call]), desk.reply("Read."))
    async with desk.app() as app:
        again = await app.session(desk.options(resume=session.id))
        await again.submit("Again.")
        assert results(again)[-1].text == "1\talpha\n2\talpha"
        assert b"[cleared]" in desk.server.requests[-1].body


async def test_a_result_of_an_older_log_is_found_by_its_note(desk: Desk) -> None:
    async with desk.app() as app:
        kept = await app.store.put_blob(b"the whole of it")
    desk.says(desk.reply("Hello."))
    session, _ = await desk.run("Hi.")
    old = ToolReturned(
        call_id="OLDCALL01", message_id="0ddba11c-0000-4000-8000-000000000000", name="x", ok=True,
        text="the […] it", truncated=f"9 of 15 characters left out (kept as {kept[:12]}); ask for less",
        blobs=(kept,),
    )  # fmt: skip
    gone = ToolReturned(
        call_id="OLDCALL02", message_id="0ddba11d-0000-4000-8000-000000000000", name="x", ok=True,
        text="what is left", whole="0" * 64,
    )  # fmt: skip
    calls = tuple(ToolCall(each.call_id, "x", raw="{}") for each in (old, gone))
    await desk.write_log(session.id, ModelSaid("old", 1, "a:b", calls), old, gone)
    desk.says(
        desk.reply("", [tool(desk, "read_result", id="0ddba11c")]),
        desk.reply("", [tool(desk, "read_result", id="OLDCALL02")]),
        desk.reply("Read."),
    )
    async with desk.app() as app:
        again = await app.session(desk.options(resume=session.id))
        await again.submit("Again.")
        first, second = results(again)[-2:]
    assert first.text == "the whole of it"
    assert second.text.startswith("what is left\n[What was left out can't be read any more")


async def test_what_the_user_said_comes_back_without_its_secrets(desk: Desk) -> None:
    desk.says(desk.reply("Noted."))
    async with desk.session() as session:
        await session.submit(f"My token is {SECRET}.")
        said = next(e.body for e in session.events if e.type == "UserSaid").message_id
        desk.says(desk.reply("", [tool(desk, "read_result", id=said[:8])]), desk.reply("Read."))
        await session.submit("Again.")
        assert results(session)[-1].text == "My token is <REDACTED>."


async def test_marking_changes_no_byte_of_the_context(dialect_desk: Desk) -> None:
    desk = dialect_desk
    (desk.project / "a.txt").write_text("alpha\n" * 300)
    desk.says(desk.reply("", [("read_file", {"path": "a.txt"})]), desk.reply("Seen."))
    async with desk.session(policy="none") as session:
        await session.submit("Look.")
        (read,) = results(session)
        before = session.context().messages
        ids = f"{read.message_id[:8]}, ffffffff"
        write = tool(desk, "conversation_message_ids_write", message_ids=ids, action="append")
        desk.says(
            desk.reply("", [write]),
            desk.reply("", [tool(desk, "conversation_message_ids_read")]),
            desk.reply("", [tool(desk, "count_tokens", text="word " * 33)]),
            desk.reply("Marked."),
        )
        await session.submit("Let go of it.")
        assert session.context().messages[: len(before)] == before
        (marked,) = bodies(session.events, MessagesMarked)
        written, listed, counted = results(session)[-3:]
    assert marked.ids == (read.message_id,)
    assert "ffffffff: no message" in written.text
    assert "never shortened (policy none)" in written.text
    assert "read_file a.txt" in listed.text.split("\n")[0]
    assert counted.data["counter"] in counted.message


async def test_marks_of_an_undone_turn_are_undone(desk: Desk) -> None:
    (desk.project / "a.txt").write_text("alpha\n" * 300)
    desk.says(desk.reply("", [("read_file", {"path": "a.txt"})]), desk.reply("Seen."))
    async with desk.session() as session:
        await session.submit("Look.")
        (read,) = results(session)
        write = tool(desk, "conversation_message_ids_write", message_ids=read.message_id[:8])
        desk.says(desk.reply("", [write]), desk.reply("Marked."))
        await session.submit("Let go of it.")
        await session.rewinder().undo()
        desk.says(
            desk.reply("", [tool(desk, "conversation_message_ids_read")]), desk.reply("None.")
        )
        await session.submit("What is marked?")
        assert results(session)[-1].message == "No message is marked."


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
async def test_the_law_keeps_the_prefix_and_the_markers(desk: Desk, wire: str) -> None:
    desk.wire = wire
    guide = desk.project / "AGENTS.md"
    guide.write_text("Use tabs.\n")
    desk.says(desk.reply("One."), desk.reply("Two."), desk.reply("Three."))
    async with desk.session() as session:
        await session.submit("First.")
        guide.write_text("Use spaces, four of them.\n")
        await session.submit("Second.")
        await session.submit("Third.")
    mark = b',"cache_control":{"type":"ephemeral"}'
    sent = [
        request.body.replace(mark, b"").rpartition(b"]}")[0] for request in desk.server.requests
    ]
    messages = [body.partition(b'"messages":[')[2] for body in sent]
    assert messages[1].startswith(messages[0])
    assert messages[2].startswith(messages[1])
    assert b"Use tabs." in messages[0]
    assert messages[1].count(b"Use spaces") == messages[2].count(b"Use spaces") == 1
    if wire == "anthropic":
        for request in desk.server.requests:
            body = json.loads(request.body)
            flags = ["cache_control" in m["content"][-1] for m in body["messages"]]
            begun = next(at for at, m in enumerate(body["messages"]) if "First." in str(m))
            assert "cache_control" in body["system"][-1]
            assert begun >= 2
            assert flags[begun - 1]  # the end of the static block
            assert flags[-1]
            assert sum(flags) == 3


async def test_a_law_above_half_of_the_budget_ends_the_turn_and_names_it(desk: Desk) -> None:
    law = "word " * 500_000
    (desk.project / "AGENTS.md").write_text(law)
    desk.open().config.trust.add({"AGENTS.md": law.encode()})
    async with desk.session() as session:
        stopped = await session.submit("Begin.")
    assert stopped.reason == "failed"
    assert "AGENTS.md (2,500,000 bytes" in stopped.text
    assert desk.server.requests == []


async def test_a_law_that_nobody_trusts_is_passed_over_where_it_is_too_large(desk: Desk) -> None:
    (desk.project / "AGENTS.md").write_text("word " * 500_000)
    desk.says(desk.reply("One."))
    async with desk.session() as session:
        stopped = await session.submit("Begin.")
        (notice,) = (
            e.body for e in session.events if getattr(e.body, "code", "") == "law_file_skipped"
        )
    assert stopped.reason == "done"
    assert "not trusted" in notice.text


async def test_an_odd_law_file_is_a_notice_that_replay_knows(desk: Desk) -> None:
    (desk.project / "AGENTS.md").mkdir()
    (desk.project / "code_law.md").write_text("No globals.\n")
    desk.says(
        desk.reply("One."), desk.reply("", [("list_files", {"path": "."})]), desk.reply("Two.")
    )
    async with desk.session() as session:
        await session.submit("First.")
        (desk.project / "code_law.md").write_bytes(b"\0\0\0")
        await session.submit("Second.")
    skipped = [body for body in bodies(session.events, Notice) if body.code == "law_file_skipped"]
    assert [body.params["file"] for body in skipped] == ["AGENTS.md", "code_law.md"]
