"""A secret in a call: it works while the call runs, is hidden in the log, and the call never runs again."""

import hashlib
from typing import Any

from croze.types.event import FilesChanged, ModelSaid, Notice, ToolReturned, ToolStarted, UserSaid
from croze.types.parts import Text, ToolCall
from tests.agent.conftest import Desk, bodies

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
WRITE = ("write_to_file", {"path": "made.txt", "content": f"token = {SECRET}\n"})
RUN = ("execute_command", {"command": f"echo {SECRET} >> ran.txt"})


def calls(session_events: Any) -> list[ToolCall]:
    return [
        part
        for said in bodies(session_events, ModelSaid)
        for part in said.parts
        if isinstance(part, ToolCall)
    ]


async def test_the_call_has_its_secret_and_the_log_has_none(any_desk: Desk) -> None:
    desk = any_desk
    desk.says(desk.reply("I write.", [WRITE, RUN]), desk.reply("Done."))
    session, _ = await desk.run("Begin.")
    assert (desk.project / "made.txt").read_text() == WRITE[1]["content"]
    assert SECRET in (desk.project / "ran.txt").read_text()
    for call in calls(session.events):
        assert SECRET not in call.raw + str(call.args)
        assert "<REDACTED>" in str(call.args)
    for kind in (ToolStarted, ToolReturned, FilesChanged):
        assert SECRET not in str(bodies(session.events, kind))
    assert SECRET.encode() not in desk.server.requests[-1].body


async def test_a_call_with_hidden_arguments_is_not_run_again_after_a_crash(any_desk: Desk) -> None:
    desk = any_desk
    desk.says(desk.reply("I write.", [WRITE, RUN]), desk.reply("Done."))
    whole, _ = await desk.run("Begin.")
    for name in ("made.txt", "ran.txt"):
        (desk.project / name).unlink()
    for last in (ModelSaid, ToolStarted):
        at = next(event.seq for event in whole.events if isinstance(event.body, last))
        while isinstance(whole.events[at].body, Notice):
            at += 1  # said in the same commit
        async with desk.app() as app:
            log = await app.store.create(project=str(desk.project))
            await log.append(*[event.body for event in whole.events[1:at]])
            log.close()
        desk.says(desk.reply("Resumed."))
        async with desk.session(resume=log.session) as session:
            await session.submit("")
        returned = bodies(session.events, ToolReturned)
        assert [result.code for result in returned] in (
            ["not_run", "not_run"], ["interrupted", "not_run"],
        )  # fmt: skip
        assert not (desk.project / "made.txt").exists()
        assert not (desk.project / "ran.txt").exists()


async def test_undo_and_redo_bring_back_the_secret_itself(desk: Desk) -> None:
    path = desk.project / "made.txt"
    path.write_text(f"old = {SECRET}\n")
    desk.says(desk.reply("I write.", [WRITE]), desk.reply("Done."))
    async with desk.session() as session:
        await session.submit("Begin.")
        (changed,) = bodies(session.events, FilesChanged)
        before = hashlib.sha256(f"old = {SECRET}\n".encode()).hexdigest()
        assert changed.changes[0].before == before
        assert SECRET not in changed.changes[0].diff
        await session.rewinder().undo()
        assert path.read_text() == f"old = {SECRET}\n"
        await session.rewinder().redo()
        assert path.read_text() == WRITE[1]["content"]


async def test_what_the_user_types_stays_as_it_is(desk: Desk) -> None:
    desk.says(desk.reply(f"You said {SECRET}."))
    session, _ = await desk.run(f"The token is {SECRET}.")
    (said,) = bodies(session.events, UserSaid)
    assert said.parts == (Text(f"The token is {SECRET}."),)
    (reply,) = bodies(session.events, ModelSaid)
    assert reply.parts == (Text("You said <REDACTED>."),)
