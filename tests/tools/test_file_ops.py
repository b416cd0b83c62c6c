"""delete_file and move_file: nothing is lost, nothing overwritten, and what happened is recorded."""

import hashlib
import os

import pytest

from croze.tools.builtin.file_ops import DeleteFile, MoveFile
from croze.tools.builtin.files import ReadFile
from croze.types.parts import ToolCall

DATA = b"one\ntwo\n"


def put(context, path, data=DATA):
    target = context.workspace.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return target


async def test_a_file_is_deleted_and_its_last_bytes_are_recorded(fake_context):
    path = put(fake_context, "src/a.py")
    tool = DeleteFile(path="src/a.py")
    assert (tool.preview(fake_context).title, path.exists()) == ("Delete src/a.py -2", True)
    result = await tool.run(fake_context)
    assert (result.ok, result.message, path.exists()) == (True, "Deleted src/a.py.", False)
    assert fake_context.changes == [("src/a.py", DATA, None)]
    assert result.data == {"path": "src/a.py", "deleted": True, "size": 8}
    assert "-two" in result.view.body
    assert DeleteFile.digest(ToolCall("1", "delete_file"), result) == "Deleted src/a.py."


async def test_a_binary_file_can_be_deleted(fake_context):
    path = put(fake_context, "a.bin", b"\0\1\2")
    assert "3 bytes" in DeleteFile(path="a.bin").preview(fake_context).body
    assert (await DeleteFile(path="a.bin").run(fake_context)).ok
    assert not path.exists()


async def test_a_moved_file_keeps_its_content_and_mode(fake_context):
    path = put(fake_context, "run.sh", b"#!/bin/sh\r\n\xff")
    path.chmod(0o751)
    tool = MoveFile(source="run.sh", destination="bin/new/go.sh")
    assert tool.preview(fake_context).title == "Move run.sh to bin/new/go.sh"
    result = await tool.run(fake_context)
    moved = fake_context.workspace.root / "bin/new/go.sh"
    assert (result.ok, path.exists(), moved.read_bytes()) == (True, False, b"#!/bin/sh\r\n\xff")
    assert moved.stat().st_mode & 0o777 == 0o751
    assert fake_context.changes == [
        ("bin/new/go.sh", None, b"#!/bin/sh\r\n\xff"),
        ("run.sh", b"#!/bin/sh\r\n\xff", None),
    ]
    assert result.data == {"source": "run.sh", "destination": "bin/new/go.sh"}
    assert result.observed == {"bin/new/go.sh": hashlib.sha256(b"#!/bin/sh\r\n\xff").hexdigest()}
    assert MoveFile.digest(ToolCall("1", "move_file"), result) == result.message


@pytest.mark.parametrize("destination", ["b.py", "a.py", "folder", "./b.py"])
async def test_nothing_is_overwritten_by_a_move(fake_context, destination):
    path, other = put(fake_context, "a.py"), put(fake_context, "b.py", b"other\n")
    put(fake_context, "folder/x")
    result = await MoveFile(source="a.py", destination=destination).run(fake_context)
    assert (result.ok, result.code) == (False, "file_exists")
    assert (path.read_bytes(), other.read_bytes()) == (DATA, b"other\n")
    assert fake_context.changes == []


@pytest.mark.parametrize(
    ("tool", "code"),
    [
        (DeleteFile(path="none"), "file_not_found"),
        (DeleteFile(path="folder"), "not_a_file"),
        (DeleteFile(path="pipe"), "not_a_file"),
        (DeleteFile(path=".git/config"), "permission_denied"),
        (DeleteFile(path="../out"), "path_traversal_blocked"),
        (MoveFile(source="none", destination="x"), "file_not_found"),
        (MoveFile(source="folder", destination="x"), "not_a_file"),
        (MoveFile(source="a.py", destination=".git/hooks/x"), "permission_denied"),
        (MoveFile(source=".git/config", destination="x"), "permission_denied"),
        (MoveFile(source="a.py", destination="../x"), "path_traversal_blocked"),
    ],
)
async def test_what_cant_be_done_is_a_result_and_changes_nothing(fake_context, tool, code):
    put(fake_context, "a.py")
    put(fake_context, "folder/x")
    put(fake_context, ".git/config")
    os.mkfifo(fake_context.workspace.root / "pipe")
    before = sorted(fake_context.workspace.root.rglob("*"))
    shown = tool.preview(fake_context)
    result = await tool.run(fake_context)
    refused = ("path_traversal_blocked", "permission_denied", "file_not_found")
    assert not result.ok
    assert result.code == code or (code == refused[0] and result.code in refused)
    assert (shown.kind == "diff", result.view) in ((False, None), (True, None))
    assert sorted(fake_context.workspace.root.rglob("*")) == before
    assert fake_context.changes == []


async def test_a_missing_file_is_told_with_the_near_names(fake_context):
    put(fake_context, "src/app.py")
    for tool in (DeleteFile(path="app.py"), MoveFile(source="app.py", destination="b.py")):
        result = await tool.run(fake_context)
        assert (result.code, result.text) == ("file_not_found", "Did you mean src/app.py?")


async def test_a_file_that_changed_since_it_was_read_is_refused(fake_context):
    path = put(fake_context, "a.py")
    fake_context.remember(await ReadFile(path="a.py").run(fake_context))
    path.write_bytes(b"changed\n")
    for tool in (DeleteFile(path="a.py"), MoveFile(source="a.py", destination="b.py")):
        assert (await tool.run(fake_context)).code == "file_changed"
    assert path.read_bytes() == b"changed\n"
    assert not (fake_context.workspace.root / "b.py").exists()
