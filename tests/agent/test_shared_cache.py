"""The run's shared cache in live sessions: the tree, re-reads, undo, compactions, agents that join."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from croze.agent.session import Session
from croze.types.event import Compacted, FactAdded, ToolReturned
from croze.workspace.cache import RunCache
from tests.agent.conftest import BOUND, Desk, bodies

READ = ("read_file", {"path": "a.py"})


@pytest.fixture(autouse=True)
def file(project: Path) -> Path:
    file = project / "a.py"
    file.write_text("".join(f"value_{number} = {number} * 2  # twice\n" for number in range(100)))
    return file


def aged() -> RunCache:
    """A cache to which nothing is so new that it could not be trusted."""
    return RunCache(clock=lambda: time.time_ns() + 10_000_000_000)


async def say(session: Session, text: str) -> None:
    await asyncio.wait_for(session.submit(text), BOUND)


def results(session: Session) -> list[ToolReturned]:
    return [body for body in bodies(session.events, ToolReturned) if body.name == "read_file"]


def is_whole(result: ToolReturned) -> bool:
    return result.ok and "value_50" in result.text


async def test_a_file_that_stands_in_the_context_is_not_sent_again(any_desk: Desk) -> None:
    desk = any_desk
    desk.says(desk.reply("", [READ]), desk.reply("", [READ]), desk.reply("Done."))
    session, _ = await desk.run("Read.")
    first, again = results(session)
    assert is_whole(first)
    assert not is_whole(again)
    assert first.message_id[:8] in again.message
    assert first.look is not None
    assert again.look is not None
    assert again.look.unchanged == first.message_id
    assert again.observed == first.observed
    sent = json.dumps(desk.server.requests[-1].json)
    assert sent.count("value_50 = 50") == 1
    assert f"message_id: {first.message_id[:8]}" in sent


async def test_a_session_that_is_taken_up_again_knows_what_it_has_read(desk: Desk) -> None:
    desk.says(desk.reply("", [READ]), desk.reply("Read."))
    session, _ = await desk.run("Read.")
    desk.says(desk.reply("", [READ]), desk.reply("Done."))
    async with desk.session(resume=session.id) as again:
        await say(again, "Again.")
        assert [is_whole(result) for result in results(again)] == [True, False]


async def test_what_was_undone_is_shown_again(desk: Desk) -> None:
    async with desk.session() as session:
        desk.says(desk.reply("Hello."), desk.reply("", [READ]), desk.reply("Read."))
        await say(session, "Hello.")
        await say(session, "Read.")
        await session.rewinder().undo(turns=1)
        desk.says(desk.reply("", [READ]), desk.reply("Done."))
        await say(session, "Read it.")
        assert [is_whole(result) for result in results(session)] == [True, True]


@pytest.mark.parametrize("how", ["replaced", "digested", "hidden", "summarised"])
async def test_what_a_compaction_took_is_shown_again(desk: Desk, how: str) -> None:
    desk.says(desk.reply("", [READ]), desk.reply("Read."))
    session, _ = await desk.run("Read.")
    (read,) = results(session)
    taken: dict[str, Any] = {
        "replaced": {"replaced": {read.call_id: "[cleared]"}},
        "digested": {"digested": (read.call_id,)},
        "hidden": {"hidden": (read.message_id,)},
        "summarised": {"until": session.events[-1].seq, "summary": "It was read."},
    }[how]
    await desk.write_log(session.id, Compacted("batch", "full", **taken))
    desk.says(desk.reply("", [READ]), desk.reply("Done."))
    async with desk.app() as app:
        again = await app.session(desk.options(resume=session.id))
        await say(again, "Again.")
        assert [is_whole(result) for result in results(again)] == [True, True]


async def test_a_changed_file_is_shown_again_and_can_be_edited(desk: Desk, file: Path) -> None:
    diff = "<<<<<<< SEARCH\nvalue_7 = 7 * 2  # twice\n=======\nvalue_7 = 0\n>>>>>>> REPLACE"
    edit = ("replace_in_file", {"path": "a.py", "diff": diff})
    desk.says(
        desk.reply("", [READ]), desk.reply("", [READ]), desk.reply("", [edit]), desk.reply("", [READ]),
        desk.reply("Done."),
    )  # fmt: skip
    session, _ = await desk.run("Edit.")
    assert [is_whole(result) for result in results(session)] == [True, False, True]
    assert "value_7 = 0\n" in file.read_text()


async def test_two_sessions_in_the_same_project_begin_with_the_same_bytes(desk: Desk) -> None:
    desk.says(desk.reply("One."), desk.reply("Two."))
    await desk.run("First.")
    await desk.run("Second.")
    first, second = (request.json["messages"] for request in desk.server.requests)
    assert [message["role"] for message in first] == ["system", "user", "assistant", "user"]
    assert first[:3] == second[:3]
    assert "a.py" in json.dumps(first[1])


async def test_an_agent_that_joins_a_run_is_given_what_the_others_have_seen(desk: Desk) -> None:
    (desk.project / "x/y/z/deep/down").mkdir(parents=True)
    (desk.project / "x/y/z/deep/down/file.py").touch()
    cache = aged()
    listing = ("list_files", {"path": "x/y/z/deep", "recursive": True})
    async with desk.app() as app:
        desk.says(desk.reply("", [READ, listing]), desk.reply("Seen."))
        first = await app.session(desk.options(), cache=cache)
        await say(first, "Look round.")
        desk.says(desk.reply("", [READ]), desk.reply("Done."))
        second = await app.session(desk.options(), cache=cache)
        await say(second, "Work.")
        facts = [f for f in bodies(second.events, FactAdded) if f.layer == "documentation"]
        assert [fact.key for fact in facts] == ["tree", "visited"]
        assert facts[0].text == bodies(first.events, FactAdded)[0].text
        assert "x/y/z/deep/down/: file.py" in facts[1].text
        (read,) = results(second)
        assert is_whole(read)  # another agent's context is not this one's
        assert read.look is not None
        assert read.look.hit
    assert (cache.stats.scans, cache.stats.shared) == (1, 1)


@pytest.mark.parametrize(
    ("overrides", "told"),
    [({}, True), ({"workspace.tree": False}, False), ({"workspace.tree_depth": 2}, True)],
)
async def test_the_settings_say_whether_and_how_the_tree_is_told(
    desk: Desk, overrides: dict[str, object], told: bool
) -> None:
    (desk.project / "x/y/z").mkdir(parents=True)
    desk.overrides |= overrides
    desk.says(desk.reply("Done."))
    session, _ = await desk.run("Work.")
    trees = [fact for fact in bodies(session.events, FactAdded) if fact.key == "tree"]
    assert bool(trees) is told
    if told:
        assert ("z/" in trees[0].text) is ("workspace.tree_depth" not in overrides)
