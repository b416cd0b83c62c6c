"""Late facts (L2): content replaced and metadata merged, in the transcript, in the export, in a fork."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from croze.store.conversations import Conversations
from croze.store.store import Store
from croze.types.event import Annotated, ModelSaid, ToolReturned, UserSaid
from croze.types.ids import SystemSource
from croze.types.model import Cost, Usage
from croze.types.parts import Text, ToolCall
from croze.ui.cli.main import main
from croze.ui.cli.state import State

USER, REPLY, RESULT = (f"{n}0000000-0000-4000-8000-000000000000" for n in (1, 2, 3))
LATE = (
    Annotated(target=USER, content="what I meant", metadata={"rating": 1, "by": "me"}),
    Annotated(target=USER, metadata={"rating": 5}),
    Annotated(target=REPLY, content="what it should have said"),
    Annotated(target=REPLY, usage=Usage(input=70, output=8), cost=Cost(0.5, 0.25)),
    Annotated(target=RESULT, metadata={"checked": True}),
    Annotated(target="CALL00001", content="the right result"),
    Annotated(target="nobody", content="lost"),
    Annotated(name="Renamed", description="About it", metadata={"tag": "x"}),
)


async def recorded(store: Store, *late: Annotated) -> str:
    log = await store.create(name="First")
    await log.append(
        UserSaid(USER, (Text("what I said"),), metadata={"rating": 0}),
        ModelSaid(REPLY, 1, "a:b", (Text("I look."), ToolCall("CALL00001", "read_file", raw="{}"))),
        ToolReturned("CALL00001", RESULT, "read_file", True, message="a.py", text="x"),
        durable=True,
    )
    log.close()
    for body in late:
        await store.annotate(log.session, body)
    return log.session


def told(conversation: Any) -> dict[str, Any]:
    return {message.role: (message.content, message.metadata) for message in conversation.messages}


@pytest.fixture
def store(tmp_path: Path) -> Any:
    store = Store.open(tmp_path / "store", source=SystemSource())
    yield store
    store.close()


async def test_the_fold_merges_them_in_their_order(store: Store) -> None:
    session = await recorded(store, *LATE)
    found = await Conversations(store).get(session)
    assert (found.name, found.description, found.metadata) == ("Renamed", "About it", {"tag": "x"})
    shown = told(found)
    assert shown["user"] == ("what I meant", {"rating": 5, "by": "me"})
    assert shown["assistant"][0] == "what it should have said"
    assert shown["tool"][0] == "the right result"
    assert shown["tool"][1]["checked"] is True
    reply = found.messages[1].llm_metadata
    assert reply is not None
    assert (reply.input_tokens, reply.output_tokens, reply.input_cost) == (70, 8, 0.5)
    assert (found.input_tokens, found.cost) == (70, 0.75)


async def test_a_fork_keeps_those_of_what_it_takes_over(store: Store) -> None:
    session = await recorded(store, *LATE)
    fork = await Conversations(store).fork(session, USER)
    assert told(fork) == {"user": ("what I meant", {"rating": 5, "by": "me"})}


def test_show_and_export_have_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from croze.app.app import App

    project = tmp_path / "project"
    project.mkdir()
    env = {"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}

    async def make() -> str:
        app = App.open(cwd=project, env=env)
        try:
            return await recorded(app.store, *LATE)
        finally:
            await app.aclose()

    session = asyncio.run(make())
    state = State(env=env, cwd=project)
    assert main(["session", "show", session[:8]], state=state) == 0
    shown = capsys.readouterr().out
    assert "Renamed" in shown
    assert "what I meant" in shown
    assert "what it should have said" in shown
    assert "what I said" not in shown
    target = tmp_path / "out.json"
    assert main(["session", "export", session, str(target)], state=state) == 0
    exported = json.loads(target.read_text())
    assert [message["content"] for message in exported["messages"]] == [
        "what I meant", "what it should have said", "the right result",
    ]  # fmt: skip
    assert exported["messages"][0]["metadata"] == {"rating": 5, "by": "me"}
    assert exported["name"] == "Renamed"
