"""What was sent once stays: each request begins with the bytes of the one before it."""

import asyncio
import hashlib
import json
from itertools import pairwise
from typing import Any

from croze.types.event import ModelCalled, TodoSet, UserSaid
from tests.agent.conftest import Desk, bodies
from tests.model_server import Request

MARK = b',"cache_control":{"type":"ephemeral"}'
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def split(request: Request) -> tuple[bytes, bytes]:
    """A body's head (everything up to its messages) and its messages, marks of the cache taken out."""
    body = request.body.replace(MARK, b"")
    head, _, messages = body.partition(b'"messages":[')
    assert messages.endswith(b"]}")
    return head, messages[:-2]


def assert_each_is_a_prefix_of_the_next(requests: list[Request]) -> None:
    for before, after in pairwise(requests):
        old_head, old = split(before)
        new_head, new = split(after)
        assert new_head == old_head
        assert new.startswith(old)
        assert len(new) > len(old)


def steps(desk: Desk) -> list[Any]:
    todo = [{"id": 1, "text": "look", "status": "in_progress"}]
    items: Any = todo if desk.dialect == "native" else json.dumps(todo)
    return [
        desk.reply("A plan.", [("todo_write", {"todos": items})]),
        desk.reply("Look.", [("list_files", {"path": "."}), ("read_file", {"path": "a.txt"})]),
        desk.reply(f"The key is {SECRET}, keep it.", [("read_file", {"path": "secret.txt"})]),
        desk.reply("", [("execute_command", {"command": "echo hello"})]),
        desk.reply("", [("no_such_tool", {"x": "1"})]),
        desk.reply("Ready."),
    ]


async def test_every_request_of_a_long_session_begins_with_the_one_before(any_desk: Desk) -> None:
    desk, server = any_desk, any_desk.server
    (desk.project / "a.txt").write_text("line\n" * 300)
    (desk.project / "secret.txt").write_text(f"token = {SECRET}\n")
    server.replies = [*steps(desk), *steps(desk), desk.reply("One more thing."), *steps(desk)]
    async with desk.session() as session:
        await session.submit("Begin.")
        await session.submit(f"Go on; my token is {SECRET}.")
    async with desk.session(resume=session.id) as again:
        await again.submit("After a pause.")
        await again.submit("And again.")
        events = again.events
    assert len(server.requests) == 19
    assert_each_is_a_prefix_of_the_next(server.requests)
    hashes = [hashlib.sha256(request.body).hexdigest() for request in server.requests]
    assert [called.body for called in bodies(events, ModelCalled)] == hashes
    assert bodies(events, TodoSet)
    own_words = [body for body in bodies(events, UserSaid) if SECRET in str(body.parts)]
    said_by_user = server.requests[-1].body.count(SECRET.encode())
    assert said_by_user == len(own_words)


async def test_what_is_said_in_mid_turn_is_appended_like_everything_else(any_desk: Desk) -> None:
    desk, server = any_desk, any_desk.server
    server.replies = [
        desk.reply("", [("list_files", {"path": "."})], pause=0.01),
        desk.reply("", [("execute_command", {"command": "echo again"})]),
        desk.reply("Done with all."),
    ]
    async with desk.session() as session:

        def also(item: object) -> None:
            if getattr(item, "type", "") == "ToolStarted" and not also_said:
                also_said.append(asyncio.ensure_future(session.submit("Also this.")))

        also_said: list[Any] = []
        session.subscribe(also)
        await session.submit("Begin.")
        await also_said[0]
    assert len(server.requests) == 3
    assert_each_is_a_prefix_of_the_next(server.requests)
    assert b"Also this." in server.requests[1].body


async def test_two_sessions_of_a_project_share_the_head(any_desk: Desk) -> None:
    desk, server = any_desk, any_desk.server
    server.replies = [desk.reply("One."), desk.reply("Two.")]
    await desk.run("first")
    await desk.run("second")
    first, second = (split(request)[0] for request in server.requests)
    assert first == second
    if desk.wire == "openai":
        messages = [request.json["messages"][0] for request in server.requests]
        assert messages[0] == messages[1]
        assert messages[0]["role"] == "system"
