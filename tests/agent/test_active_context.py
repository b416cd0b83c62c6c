"""Notes on folders: written when a task is over, by the summarising model, beside the user."""

import asyncio

import pytest

from croze.app.active import PURPOSE, changed_folders, check, normalise
from croze.types.event import (
    Event,
    FactAdded,
    FilesChanged,
    ModelCalled,
    ModelSaid,
    Notice,
    Stopped,
)
from croze.types.tool import FileChange
from tests.agent.conftest import BOUND, Desk, bodies, seen
from tests.model_server import Reply

NOTE = "# src\n\n## What it is\nThe source.\n\n## What changed\n- today: a.py was added"
PLACE = ".croze/active-context/src/active.md"


def add(desk: Desk, path: str = "src/a.py") -> list[Reply]:
    return [desk.reply("", [("write_to_file", {"path": path, "content": "x = 1\n"})])]


def switched(desk: Desk, how: str) -> None:
    desk.overrides["knowledge.active_context"] = how


async def test_a_note_is_written_after_the_task_and_told_in_the_next_session(
    any_desk: Desk,
) -> None:
    desk, server = any_desk, any_desk.server
    switched(desk, "on")
    desk.says(*add(desk), desk.reply("Added it."), desk.reply(NOTE))
    async with desk.app() as app:
        session = await app.session(desk.options())
        stopped = await session.submit("Add a.py to the source.")
        assert stopped.text == "Added it."
        await app.leave(session)
        report = await app.replay(session.id)
        assert report.divergence is None
    assert (desk.project / PLACE).read_text() == f"{NOTE}\n"
    asked = [body for body in bodies(session.events, ModelCalled) if body.purpose == PURPOSE]
    said = [body for body in bodies(session.events, ModelSaid) if body.purpose == PURPOSE]
    assert len(asked) == len(said) == 1
    assert said[0].cost.total is not None
    question = server.requests[-1].body.decode()
    for part in ("Folder: src", "added src/a.py (+1 -0)", "Add a.py to the source.", "Added it."):
        assert part in question
    desk.says(desk.reply("", [("list_files", {"path": "src"})]), desk.reply("Seen."))
    again, _ = await desk.run("Look.")
    told = [fact for fact in bodies(again.events, FactAdded) if fact.key == "active_context:src"]
    assert len(told) == 1
    assert "The source." in told[0].text


@pytest.mark.parametrize(
    ("how", "written", "told"), [("off", 0, 0), ("read", 0, 1), ("write", 1, 0)]
)
async def test_reading_and_writing_are_switched_apart(
    desk: Desk, how: str, written: int, told: int
) -> None:
    switched(desk, how)
    file = desk.project / PLACE
    file.parent.mkdir(parents=True)
    file.write_text("Old note.")
    desk.says(*add(desk), desk.reply("Done."), desk.reply(NOTE))
    async with desk.app() as app:
        session = await app.session(desk.options())
        await session.submit("Go.")
        await app.leave(session)
    asked = [body for body in bodies(session.events, ModelCalled) if body.purpose == PURPOSE]
    facts = [fact for fact in bodies(session.events, FactAdded) if "active_context" in fact.key]
    assert (len(asked), len(facts)) == (written, told)
    assert file.read_text() == (f"{NOTE}\n" if written else "Old note.")


async def test_the_turn_is_over_before_the_note_is_written_and_the_next_one_waits(
    desk: Desk,
) -> None:
    switched(desk, "write")
    desk.says(
        *add(desk),
        desk.reply("Done."),
        desk.reply(NOTE, pause=0.2),
        desk.reply("Second."),
    )
    async with desk.app() as app:
        session = await app.session(desk.options())
        await session.submit("Go.")
        assert not (desk.project / PLACE).exists()
        await session.submit("And now?")
        assert (desk.project / PLACE).exists()
        purposes = [body.purpose for body in bodies(session.events, ModelCalled)]
        assert purposes == ["main", "main", PURPOSE, "main"]
        await app.leave(session)
        assert (await app.replay(session.id)).divergence is None


async def test_a_note_that_fails_is_a_notice_and_the_old_one_stays(desk: Desk) -> None:
    switched(desk, "write")
    file = desk.project / PLACE
    file.parent.mkdir(parents=True)
    file.write_text("Old note.")
    desk.says(*add(desk), desk.reply("Done."), desk.reply("I can't."))
    async with desk.app() as app:
        session = await app.session(desk.options())
        stopped = await session.submit("Go.")
        await app.leave(session)
    assert stopped.reason == "done"
    (notice,) = [n for n in bodies(session.events, Notice) if n.code == "active_context_failed"]
    assert notice.params["folder"] == "src"
    assert "What it is" in notice.params["reason"]
    assert file.read_text() == "Old note."


async def test_cancelling_ends_the_writing_too(desk: Desk) -> None:
    switched(desk, "write")
    desk.says(*add(desk), desk.reply("Done."), desk.reply(NOTE, pause=30.0))
    async with desk.app() as app:
        session = await app.session(desk.options())
        asked = seen(
            session, lambda item: getattr(getattr(item, "body", None), "purpose", "") == PURPOSE
        )
        await session.submit("Go.")
        await asyncio.wait_for(asked, BOUND)
        session.cancel()
        await asyncio.wait_for(app.leave(session), 10)
    assert not (desk.project / PLACE).exists()


async def test_a_turn_that_changed_nothing_or_failed_writes_nothing(desk: Desk) -> None:
    switched(desk, "write")
    desk.says(desk.reply("Nothing to do."))
    async with desk.app() as app:
        session = await app.session(desk.options())
        await session.submit("Go.")
        desk.says(*add(desk))
        stopped = await session.submit("Go.")
        assert stopped.reason == "failed"
        await app.leave(session)
    assert not any(body.purpose == PURPOSE for body in bodies(session.events, ModelCalled))


def test_folders_with_most_changes_come_first_and_installed_ones_never() -> None:
    paths = ("a.py", "src/b.py", "src/c.py", "node_modules/x/y.js", ".croze/rules/z.md")
    changes = tuple(FileChange(path, "modified") for path in paths)
    events = [Event("s", 1, 0, FilesChanged("c", changes)), Event("s", 2, 0, Stopped("done"))]
    assert list(changed_folders(events)) == ["src", "."]


def test_a_note_is_checked_and_freed_of_its_fence() -> None:
    assert normalise(f"```markdown\n{NOTE}\n```") == NOTE
    assert check(NOTE) == ""
    assert "characters" in check(NOTE + "x" * 5_000)
    assert "'## What changed'" in check("## What it is")
