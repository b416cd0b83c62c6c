"""Conversations in files, there and back; foreign and broken files."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from croze.store import rows, transfer
from croze.store.compose import Draft
from croze.store.conversations import Conversations
from croze.store.store import Store
from croze.types.conversation import LlmMetadata
from croze.types.errors import ConversationExists, StoreError
from croze.types.event import ToolReturned, Unknown, UserSaid
from croze.types.parts import Text

from .conftest import Opener

FOREIGN = {
    "id": "550e8400-e29b-41d4-a716-446655440000",
    "name": "From elsewhere",
    "description": None,
    "created_at": "2025-01-15T10:30:00",
    "updated_at": "2025-01-15T11:45:00.25",
    "metadata": {"origin": "elsewhere"},
    "messages": [
        {
            "message_id": "123e4567-e89b-12d3-a456-426614174000",
            "role": "user",
            "content": "请实现一个功能",
            "created_at": "2025-01-15T10:30:00",
            "metadata": {},
            "llm_metadata": None,
        },
        {
            "message_id": "987fcdeb-51a2-43e8-b7c9-123456789abc",
            "role": "assistant",
            "content": "<thinking>…</thinking>\n<read_file><path>a</path></read_file>",
            "created_at": 1736937015.5,
            "llm_metadata": {
                "model_name": "some-model",
                "input_tokens": 1234,
                "output_tokens": 567,
                "input_cost": 0.00123,
                "output_cost": 0.00045,
                "conversation_round": 1,
            },
        },
        {"role": "tool", "content": [{"type": "text", "text": "result"}]},
    ],
}


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


async def test_an_exported_conversation_has_the_known_form_and_comes_back_equal(
    conversations: Conversations, open_store: Opener, tmp_path: Path
) -> None:
    made = await conversations.create(
        name="Mine",
        description="d",
        metadata={"k": [1]},
        namespace="ns",
        messages=[
            Draft("user", "hello\n世界", {"a": {"b": 1}}),
            Draft("assistant", "hi", llm_metadata=LlmMetadata("p:m", 1, 2, 3, 0.1, None, 4)),
            Draft("tool", {"any": ["json", 1.5, None]}),
        ],
    )
    path = tmp_path / "out.json"
    await transfer.export_json(conversations, made.id[:8], path)
    assert path.stat().st_mode & 0o777 == 0o600
    value = json.loads(path.read_text())
    assert {
        k: v for k, v in value.items() if k not in ("messages", "created_at", "updated_at")
    } == {
        "id": made.id,
        "name": "Mine",
        "description": "d",
        "metadata": {"k": [1]},
        "namespace": "ns",
    }
    assert value["created_at"].startswith("2027-01-15T08:00:0")
    assert value["messages"][1] == {
        "message_id": made.messages[1].message_id,
        "role": "assistant",
        "content": "hi",
        "created_at": value["messages"][0]["created_at"],
        "metadata": {},
        "llm_metadata": {
            "model_name": "p:m",
            "input_tokens": 1,
            "output_tokens": 2,
            "cached_tokens": 3,
            "input_cost": 0.1,
            "output_cost": None,
            "conversation_round": 4,
        },
    }
    other = open_store(tmp_path / "other")
    assert await transfer.import_json(other, path) == made.id
    assert await Conversations(other).get(made.id) == made
    with pytest.raises(ConversationExists):
        await transfer.import_json(other, path)
    again = await transfer.import_json(other, path, new_id=True)
    assert again != made.id
    assert (await Conversations(other).get(again)).messages == made.messages


async def test_a_file_of_another_program_is_taken_in(store: Store, tmp_path: Path) -> None:
    session = await transfer.import_json(store, write(tmp_path / "a.json", FOREIGN))
    found = await Conversations(store).get(session)
    assert (found.id, found.name, found.description) == (FOREIGN["id"], "From elsewhere", "")
    assert transfer.iso(found.created_at) == "2025-01-15T10:30:00+00:00"
    assert transfer.iso(found.updated_at) == "2025-01-15T11:45:00.250000+00:00"
    assert [m.role for m in found.messages] == ["user", "assistant", "tool"]
    assert transfer.iso(found.messages[1].created_at) == "2025-01-15T10:30:15.500000+00:00"
    assert found.messages[1].llm_metadata == LlmMetadata(
        "some-model", 1234, 567, None, 0.00123, 0.00045, 1
    )
    assert found.messages[2].content == [{"type": "text", "text": "result"}]
    assert found.cost == pytest.approx(0.00168)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "no conversation"),
        (b"[1, 2]", "no conversation"),
        (b'{"id": "x", "messages": [{"role": "user"}]}', "content"),
        (b'{"id": "x", "messages": [{"role": "user", "content": 7}]}', r"messages\[0\]"),
        (b'{"id": "x", "messages": "none"}', "messages"),
        (
            b'{"messages": [{"role": "assistant", "content": "", "llm_metadata": {"a": 1}}]}',
            "model_name",
        ),
        (b'{"id": "../../etc"}', "session id"),
        (b"\xff\xfe\x00", "no conversation"),
    ],
)
async def test_a_broken_file_is_refused_with_its_name_and_leaves_nothing(
    store: Store, tmp_path: Path, content: bytes, problem: str
) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(Exception, match=problem) as caught:
        await transfer.import_json(store, path)
    assert str(path) in str(caught.value) or "session id" in str(caught.value)
    assert await Conversations(store).list() == []
    with pytest.raises(StoreError, match="No such file"):
        await transfer.import_json(store, tmp_path / "missing.json")


async def test_times_that_cannot_be_read_do_not_stop_an_import(
    store: Store, tmp_path: Path
) -> None:
    odd = {
        "id": "odd",
        "created_at": "yesterday",
        "updated_at": 1e300,
        "messages": [{"role": "user", "content": "x", "created_at": ""}],
    }
    session = await transfer.import_json(store, write(tmp_path / "a.json", odd))
    conversations = Conversations(store)
    assert (await conversations.get(session)).created_at > 0
    await transfer.export_json(conversations, session, tmp_path / "b.json")


async def test_a_folder_goes_there_and_back_with_its_current_conversations(
    conversations: Conversations, open_store: Opener, tmp_path: Path
) -> None:
    made = [
        await conversations.create(namespace=f"n{n % 2}", messages=[Draft("user", f"text {n}")])
        for n in range(5)
    ]
    await conversations.set_current(made[3].id, namespace="n1")
    folder = tmp_path / "out" / "deeper"
    assert set(await transfer.export_folder(conversations, folder)) == {m.id for m in made}
    assert {path.name for path in folder.iterdir()} == {
        *(f"{m.id}.json" for m in made),
        "current_conversations.json",
    }
    assert json.loads((folder / "current_conversations.json").read_text()) == {"n1": made[3].id}
    other = open_store(tmp_path / "other")
    imported = await transfer.import_folder(other, folder)
    assert set(imported.sessions) == {m.id for m in made}
    assert imported.problems == ()
    there = Conversations(other)
    for each in made:
        assert await there.get(each.id) == each
    assert await there.current("n1") == made[3].id
    again = await transfer.import_folder(other, folder)
    assert (again.sessions, len(again.problems)) == ((), 5)


async def test_a_foreign_folder_is_taken_in_as_far_as_it_can_be_read(
    store: Store, tmp_path: Path
) -> None:
    folder = tmp_path / "conversations"
    folder.mkdir()
    write(folder / f"{FOREIGN['id']}.json", FOREIGN)
    write(folder / "772g0622-g4bd.json", {"id": "772g0622-g4bd", "name": "odd id", "messages": []})
    (folder / "torn.json").write_text('{"id": "torn", "mess')
    write(
        folder / "current_conversations.json",
        {"default": FOREIGN["id"], "project_b": "772g0622-g4bd", "lost": "torn"},
    )
    imported = await transfer.import_folder(store, folder)
    assert sorted(imported.sessions) == [FOREIGN["id"], "772g0622-g4bd"]
    assert [Path(p.params["path"]).name for p in imported.problems] == [
        "torn.json",
        "current_conversations.json",
    ]
    conversations = Conversations(store)
    assert await conversations.current("project_b") == "772g0622-g4bd"
    assert (await conversations.get("772g0622-g4bd")).namespace == "project_b"
    with pytest.raises(StoreError, match="no such folder"):
        await transfer.import_folder(store, tmp_path / "nowhere")


async def test_events_go_there_and_back_byte_for_byte(
    store: Store, open_store: Opener, tmp_path: Path
) -> None:
    digest = await store.put_blob(b"\0binary output\xff" * 100)
    with closing(await store.create(session_id="s", name="exact")) as log:
        await log.append(
            UserSaid("u", (Text("text \u2028 with\nlines"),)),
            ToolReturned("c", "u", "t", True, blobs=(digest, "0" * 64)),
            Unknown("FromTheFuture", 7, '{"odd":   "spacing", "n": 1e2}'),
            Unknown("Broken", 1, "no json at all"),
            Unknown("Lines", 1, '{"a":\n1}'),
        )
    before = await store.read_stored("s")
    path = tmp_path / "s.jsonl"
    assert await transfer.export_events(store, "s", path) == 6
    assert len(path.read_text().splitlines()) >= 8
    other = open_store(tmp_path / "other")
    assert await transfer.import_events(other, path) == "s"
    assert await other.read_stored("s") == before
    assert await other.read("s") == log.events
    assert await other.blob(digest) == b"\0binary output\xff" * 100
    with pytest.raises(ConversationExists):
        await transfer.import_events(other, path)
    renamed = await transfer.import_events(other, path, new_id=True)
    assert await other.read_stored(renamed) == before


async def test_sub_agents_go_with_their_caller_and_stay_where_it_gets_another_id(
    store: Store, open_store: Opener, tmp_path: Path
) -> None:
    digest = await store.put_blob(b"what it found" * 100)
    for session, parent in (("main", None), ("child", "main"), ("deep", "child"), ("else", None)):
        with closing(await store.create(session_id=session, parent=parent)) as log:
            await log.append(UserSaid("u", (Text(f"to {session}"),)))
            if parent:
                await log.append(ToolReturned("c", "u", "t", True, blobs=(digest,)))
    path = tmp_path / "main.jsonl"
    assert await transfer.export_events(store, "main", path) == 2
    other = open_store(tmp_path / "other")
    assert await transfer.import_events(other, path) == "main"
    for session in ("main", "child", "deep"):
        assert await other.read_stored(session) == await store.read_stored(session)
    assert await other.blob(digest) == b"what it found" * 100
    listed = Conversations(other)
    assert [each.id for each in await listed.list()] == ["main"]
    copy = await transfer.import_events(other, path, new_id=True)
    assert len(await listed.list(include_children=True)) == 4
    await listed.delete("main")
    assert [each.id for each in await listed.list(include_children=True)] == [copy]
    assert await transfer.import_events(other, path) == "main"
    assert len(await listed.list(include_children=True)) == 4
    path.write_text(
        path.read_text() + '{"kind":"session","format":"croze-events","version":2,"session":"x"}\n'
    )
    with pytest.raises(StoreError, match="first event"):
        await transfer.import_events(open_store(tmp_path / "empty"), path)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda lines: [], "first event"),
        (lambda lines: lines[:1], "first event"),
        (lambda lines: lines[1:], "first event"),
        (lambda lines: [lines[0], *lines[2:]], "line 2: event 1 is missing"),
        (lambda lines: [*lines[:2], lines[3]], "line 3: event 2 is missing"),
        (lambda lines: [*lines[:2], lines[2][:20]], "line 3"),
        (lambda lines: [*lines[:2], "{}"], "line 3"),
        (lambda lines: [*lines[:2], lines[2].replace('"at":', '"at":99999')], "line 3.*at"),
        (lambda lines: [lines[0].replace('"version":1', '"version":9'), *lines[1:]], "not known"),
        (lambda lines: [lines[0].replace("croze-events", "other"), *lines[1:]], "not known"),
    ],
)
async def test_broken_event_files_are_refused_with_the_line(
    store: Store, open_store: Opener, tmp_path: Path, change: Any, problem: str
) -> None:
    with closing(await store.create(session_id="s")) as log:
        await log.append(UserSaid("u", (Text("a"),)), UserSaid("v", (Text("b"),)))
    path = tmp_path / "s.jsonl"
    await transfer.export_events(store, "s", path)
    path.write_text("".join(line + "\n" for line in change(path.read_text().splitlines())))
    other = open_store(tmp_path / "other")
    with pytest.raises(StoreError, match=problem):
        await transfer.import_events(other, path)
    assert await Conversations(other).list() == []


async def test_an_export_that_cannot_be_written_leaves_the_old_file(
    conversations: Conversations, tmp_path: Path
) -> None:
    made = await conversations.create()
    with pytest.raises(StoreError, match="can't write in"):
        await transfer.export_json(conversations, made.id, tmp_path / "no" / "folder.json")
    (tmp_path / "taken.json").mkdir()
    with pytest.raises(StoreError, match="can't write in"):
        await transfer.export_json(conversations, made.id, tmp_path / "taken.json")
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def test_stored_ids_leave_room_for_four_billion_events() -> None:
    assert rows.base_of(2) - rows.base_of(1) == 2**32
