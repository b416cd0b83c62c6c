"""write_to_file and replace_in_file: all or nothing, and the file's form stays."""

import hashlib
import os

import pytest

from croze.tools.builtin.edits import ReplaceInFile, WriteToFile
from croze.tools.builtin.files import ReadFile
from croze.types.parts import ToolCall

REFUSED = ("path_traversal_blocked", "permission_denied", "file_not_found")


def blocks(*pairs):
    return "\n".join(f"<<<<<<< SEARCH\n{a}\n=======\n{b}\n>>>>>>> REPLACE" for a, b in pairs)


async def replace(context, path, *pairs):
    return context.remember(await ReplaceInFile(path=path, diff=blocks(*pairs)).run(context))


async def write(context, path, content, mode="write"):
    return context.remember(await WriteToFile(path=path, content=content, mode=mode).run(context))


def put(context, path, data):
    target = context.workspace.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return target


async def test_a_new_file_gets_its_folders_and_a_final_newline(fake_context):
    result = await write(fake_context, "src/new/[id].tsx", "#!/bin/sh\necho")
    data = b"#!/bin/sh\necho\n"
    assert (fake_context.workspace.root / "src/new/[id].tsx").read_bytes() == data
    assert result.message == "Created src/new/[id].tsx (2 lines)."
    assert result.data == {"path": "src/new/[id].tsx", "created": True, "added": 2, "removed": 0}
    assert result.observed == {"src/new/[id].tsx": hashlib.sha256(data).hexdigest()}
    assert fake_context.changes == [("src/new/[id].tsx", None, data)]
    assert result.view.kind == "diff"
    assert "+#!/bin/sh" in result.view.body


async def test_an_empty_file_can_be_written(fake_context):
    assert (await write(fake_context, "__init__.py", "")).ok
    assert (fake_context.workspace.root / "__init__.py").read_bytes() == b""


async def test_overwriting_keeps_line_ends_bom_final_newline_and_mode(fake_context):
    path = put(fake_context, "a.bat", b"\xef\xbb\xbfone\r\ntwo\r\n")
    path.chmod(0o755)
    result = await write(fake_context, "a.bat", "one\nthree")
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\nthree\r\n"
    assert path.stat().st_mode & 0o777 == 0o755
    assert result.message == "Overwrote a.bat (2 lines), +1 -1 lines."
    bare = put(fake_context, "VERSION", b"1.0")
    await write(fake_context, "VERSION", "1.1")
    assert bare.read_bytes() == b"1.1"


async def test_appending_never_glues_lines_together(fake_context):
    path = put(fake_context, "a", b"one")
    await write(fake_context, "a", "two", mode="append")
    assert path.read_bytes() == b"one\ntwo"
    windows = put(fake_context, "b", b"one\r\n")
    result = await write(fake_context, "b", "two\nthree", mode="append")
    assert windows.read_bytes() == b"one\r\ntwo\r\nthree\r\n"
    assert result.message == "Appended 2 lines to b, +2 -0 lines."
    await write(fake_context, "c", "new", mode="append")
    assert (fake_context.workspace.root / "c").read_bytes() == b"new\n"


async def test_writing_what_is_there_already_changes_nothing(fake_context):
    path = put(fake_context, "a", b"one\n")
    before = path.stat()
    result = await write(fake_context, "a", "one")
    assert (result.ok, "not changed" in result.message) == (True, True)
    assert path.stat().st_ino == before.st_ino
    assert fake_context.changes == []


async def test_blocks_change_their_lines_and_say_where_these_are_now(fake_context):
    path = put(fake_context, "a.py", b"a\nb\nc\nd\n")
    result = await replace(fake_context, "a.py", ("a", "a\na2"), ("d", "D"))
    assert path.read_bytes() == b"a\na2\nb\nc\nD\n"
    assert result.message == "Edited a.py, +2 -1 lines."
    assert result.text == "Changed lines are now 2-2, 5-5."
    assert fake_context.changes == [("a.py", b"a\nb\nc\nd\n", b"a\na2\nb\nc\nD\n")]
    assert result.observed == {"a.py": hashlib.sha256(path.read_bytes()).hexdigest()}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"x\r\na\r\ny\r\n", b"x\r\nb\r\nc\r\ny\r\n"),
        (b"x\na\r\ny", b"x\nb\r\nc\r\ny"),
        (b"\xef\xbb\xbfa", b"\xef\xbb\xbfb\nc"),
        ("ä\na\n".encode("latin-1"), "ä\nb\nc\n".encode("latin-1")),
        ("\ufeffä\r\na".encode("utf-16-le"), "\ufeffä\r\nb\r\nc".encode("utf-16-le")),
        (b"a\rx\r", b"b\rc\rx\r"),
    ],
)
async def test_an_edit_keeps_encoding_and_line_ends(fake_context, before, after):
    path = put(fake_context, "a", before)
    assert (await replace(fake_context, "a", ("a", "b\nc"))).ok
    assert path.read_bytes() == after


async def test_a_refused_edit_changes_nothing_and_shows_the_place(fake_context):
    path = put(fake_context, "a", b"one\ntwo\nthree\n")
    result = await replace(fake_context, "a", ("one", "1"), ("tow", "2"))
    assert (result.ok, result.code) == (False, "no_match")
    assert result.message.startswith("a: Block 2: SEARCH was not found")
    assert path.read_bytes() == b"one\ntwo\nthree\n"
    twice = put(fake_context, "b", b"x\n\nx\n")
    assert (await replace(fake_context, "b", ("x", "y"))).code == "ambiguous"
    assert twice.read_bytes() == b"x\n\nx\n"
    assert fake_context.changes == []


async def test_an_edit_that_was_made_already_is_no_error(fake_context):
    put(fake_context, "a", b"return sum(items)\n")
    result = await replace(fake_context, "a", ("return 0", "return sum(items)"))
    assert (result.ok, result.text) == (True, "Block 1 was already applied at line 1.")
    assert fake_context.changes == []


async def test_a_file_that_changed_since_it_was_read_is_refused_until_read_again(fake_context):
    path = put(fake_context, "a", b"one\n")
    fake_context.remember(await ReadFile(path="a").run(fake_context))
    path.write_bytes(b"one\ntwo\n")
    for result in (
        await replace(fake_context, "a", ("one", "1")),
        await write(fake_context, "a", "1"),
    ):
        assert (result.ok, result.code) == (False, "file_changed")
    assert path.read_bytes() == b"one\ntwo\n"
    fake_context.remember(await ReadFile(path="a").run(fake_context))
    assert (await replace(fake_context, "a", ("one", "1"))).ok
    assert (await replace(fake_context, "a", ("two", "2"))).ok
    assert path.read_bytes() == b"1\n2\n"


async def test_a_file_is_the_same_by_every_name_that_leads_to_it(fake_context):
    put(fake_context, "real/a", b"one\n")
    (fake_context.workspace.root / "link").symlink_to("real/a")
    fake_context.remember(await ReadFile(path="link").run(fake_context))
    put(fake_context, "real/a", b"one\n\n")
    assert (await replace(fake_context, "./real/a", ("one", "1"))).code == "file_changed"
    fake_context.remember(await ReadFile(path="real/../real/a").run(fake_context))
    assert (await replace(fake_context, "link", ("one", "1"))).ok
    assert fake_context.changes[0][0] == "real/a"
    assert (fake_context.workspace.root / "link").is_symlink()


async def test_binary_and_special_files_are_not_edited(fake_context):
    put(fake_context, "a", b"\0\1")
    os.mkfifo(fake_context.workspace.root / "pipe")
    assert (await replace(fake_context, "a", ("x", "y"))).code == "binary"
    assert (await write(fake_context, "a", "x", mode="append")).code == "binary"
    assert (await replace(fake_context, "pipe", ("x", "y"))).code == "not_a_file"
    assert (await write(fake_context, "pipe", "x")).code == "not_a_file"


async def test_a_missing_file_is_told_with_the_near_names(fake_context):
    put(fake_context, "src/app.py", b"x\n")
    result = await replace(fake_context, "app.py", ("x", "y"))
    assert (result.code, result.text) == ("file_not_found", "Did you mean src/app.py?")


@pytest.mark.parametrize(
    "path", ["../a", "/tmp/a", ".git/hooks/pre-commit", ".croze/config.toml", "a/../../b"]
)
async def test_paths_that_may_not_be_written_are_results(fake_context, path):
    result = await write(fake_context, path, "x")
    assert (result.ok, result.code in REFUSED) == (
        False,
        True,
    )
    assert os.listdir(fake_context.workspace.root) == []
    assert fake_context.changes == []


async def test_content_that_leaves_something_out_is_refused(fake_context):
    path = put(fake_context, "a.py", b"def a():\n    pass\n")
    result = await write(fake_context, "a.py", "import x\n# ... existing code ...\n")
    assert (result.ok, "leaves something out" in result.message) == (False, True)
    assert path.read_bytes() == b"def a():\n    pass\n"


async def test_a_hidden_secret_is_never_written_back_as_its_mark(fake_context):
    path = put(fake_context, "a", b"key = 1\n")
    assert (await replace(fake_context, "a", ("key = 1", "key = <REDACTED>"))).code == "redacted"
    assert path.read_bytes() == b"key = 1\n"
    put(fake_context, "b", b"say <REDACTED>\nx\n")
    assert (await replace(fake_context, "b", ("x", "y"))).ok


async def test_a_character_that_the_file_cant_hold_is_refused(fake_context):
    path = put(fake_context, "a", b"\xe4\nx\n")
    assert (await replace(fake_context, "a", ("x", "→"))).code == "encoding"
    assert path.read_bytes() == b"\xe4\nx\n"
    assert (await write(fake_context, "b", "\ud800")).code == "encoding"


async def test_a_name_that_is_shell_code_is_only_a_name(fake_context):
    for name in ("$(touch pwned)", "`touch pwned`", "; touch pwned", "-rf", "a\nb"):
        assert (await write(fake_context, name, "x\n")).ok
        assert (await replace(fake_context, name, ("x", "y"))).ok
        assert (await ReadFile(path=name).run(fake_context)).text == "1\ty"
    assert not (fake_context.workspace.root / "pwned").exists()


async def test_the_preview_is_the_diff_and_writes_nothing(fake_context):
    path = put(fake_context, "a", b"one\n")
    edit = ReplaceInFile(path="a", diff=blocks(("one", "two"))).preview(fake_context)
    assert (edit.title, edit.kind) == ("Edit a +1 -1", "diff")
    assert edit.body == "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two\n"
    assert WriteToFile(path="new", content="x").preview(fake_context).title == "Write new +1 -0"
    assert (
        "not found" in ReplaceInFile(path="a", diff=blocks(("no", "x"))).preview(fake_context).body
    )
    assert "outside" in WriteToFile(path="/etc/x", content="x").preview(fake_context).body
    assert path.read_bytes() == b"one\n"


async def test_the_digest_has_the_changed_lines_only(fake_context):
    put(fake_context, "a", b"one\n" + b"same\n" * 9)
    result = await replace(fake_context, "a", ("one", "two"))
    digest = ReplaceInFile.digest(ToolCall("1", "replace_in_file"), result)
    assert digest == "Edited a, +1 -1 lines.\nLines 1.\n-one\n+two"
