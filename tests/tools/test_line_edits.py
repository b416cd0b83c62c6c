"""edit_file, insert_in_file, remove_lines, replace_lines: checked against what was read, and told."""

import hashlib

import msgspec
import pytest

from croze.edit.grammar import parse
from croze.tools.builtin.edits import ReplaceInFile, WriteToFile
from croze.tools.builtin.files import ReadFile
from croze.tools.builtin.line_edits import EditFile, InsertInFile, RemoveLines, ReplaceLines
from croze.tools.registry import builtin
from croze.types.parts import ToolCall

TEXT = b"one\ntwo\nthree\nfour\nfive\nsix\n"


class WithAgent:
    """A context whose session can ask a model for the plan of an edit."""

    def __init__(self, context, edits, meanwhile=None):
        self._context, self._edits, self._meanwhile = context, edits, meanwhile
        self.asked = []

    def __getattr__(self, name):
        return getattr(self._context, name)

    async def edit_agent(self, path, text, instructions, code_edit):
        self.asked.append((path, text, instructions, code_edit))
        if self._meanwhile is not None:
            self._meanwhile()
        return self._edits


def put(context, path, data=TEXT):
    target = context.workspace.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return target


async def run(context, tool):
    return context.remember(await tool.run(context))


def call(name, **args):
    registry = builtin()
    resolved = registry.resolve(ToolCall("1", name, args))
    assert resolved.error is None
    return registry.get(resolved.name).bind(resolved.args)


@pytest.mark.parametrize(
    ("tool", "after", "message"),
    [
        (
            InsertInFile(path="a", content="new", line_number=1),
            b"new\n" + TEXT,
            "Inserted 1 line into a, +1 -0 lines.",
        ),
        (InsertInFile(path="a", content="x\ny\n"), TEXT + b"x\ny\n", None),
        (InsertInFile(path="a", content="x", line_number=99), TEXT + b"x\n", None),
        (
            RemoveLines(path="a", start_line=2, end_line=3),
            b"one\nfour\nfive\nsix\n",
            "Removed lines from a, +0 -2 lines.",
        ),
        (RemoveLines(path="a", start_line=3), b"one\ntwo\n", None),
        (RemoveLines(path="a", end_line=4), b"five\nsix\n", None),
        (RemoveLines(path="a"), b"", "Removed lines from a, +0 -6 lines."),
        (
            ReplaceLines(path="a", start_line=1, end_line=2, content="1\n2\n3"),
            b"1\n2\n3\nthree\nfour\nfive\nsix\n",
            "Replaced lines of a, +3 -2 lines.",
        ),
    ],
)
async def test_lines_are_put_in_removed_and_replaced(fake_context, tool, after, message):
    path = put(fake_context, "a")
    shown = tool.preview(fake_context)
    assert (shown.kind, path.read_bytes()) == ("diff", TEXT)
    result = await run(fake_context, tool)
    assert (result.ok, path.read_bytes()) == (True, after)
    assert message is None or result.message == message
    assert fake_context.changes == [("a", TEXT, after)]
    assert result.observed == {"a": hashlib.sha256(after).hexdigest()}
    assert (result.data["path"], result.data["created"]) == ("a", False)
    assert type(tool).digest(ToolCall("1", "x"), result).startswith(result.message)


async def test_an_insertion_makes_a_missing_file(fake_context):
    result = await run(fake_context, InsertInFile(path="src/new.txt", content="a\nb"))
    assert (result.message, result.data["created"]) == ("Created src/new.txt.", True)
    assert (fake_context.workspace.root / "src/new.txt").read_bytes() == b"a\nb\n"
    assert fake_context.changes == [("src/new.txt", None, b"a\nb\n")]


@pytest.mark.parametrize(
    ("tool", "code"),
    [
        (RemoveLines(path="a", start_line=3, end_line=2), "malformed_range"),
        (RemoveLines(path="a", start_line=7), "malformed_range"),
        (RemoveLines(path="a", start_line=5, end_line=9), "out_of_range"),
        (ReplaceLines(path="a", start_line=6, end_line=7, content="x"), "out_of_range"),
        (ReplaceLines(path="a", start_line=4, end_line=3, content="x"), "malformed_range"),
        (ReplaceLines(path="none", start_line=1, end_line=1, content="x"), "file_not_found"),
        (RemoveLines(path="none"), "file_not_found"),
        (ReplaceLines(path="bin", start_line=1, end_line=1, content="x"), "binary"),
        (InsertInFile(path="folder", content="x"), "not_a_file"),
        (EditFile(target_file="a", instructions="", code_edit="# ...\nx\n# ..."), "undecided_sketch"),
        (EditFile(target_file="none", instructions="", code_edit="# ...\nx"), "undecided_sketch"),
    ],
)  # fmt: skip
async def test_what_cant_be_done_is_a_result_and_changes_nothing(fake_context, tool, code):
    path = put(fake_context, "a")
    put(fake_context, "bin", b"\0\1")
    put(fake_context, "folder/x")
    shown = tool.preview(fake_context)
    result = await tool.run(WithAgent(fake_context, None))
    assert (result.ok, result.code, shown.kind) == (False, code, "text")
    assert path.read_bytes() == TEXT
    assert fake_context.changes == []


async def test_protected_folders_are_not_written(fake_context):
    for path in (".git/hooks/x", ".croze/config.toml"):
        result = await InsertInFile(path=path, content="x").run(fake_context)
        assert (result.ok, result.code) == (False, "permission_denied")
    assert list(fake_context.workspace.root.iterdir()) == []


async def test_a_file_that_changed_since_it_was_read_is_refused(fake_context):
    path = put(fake_context, "a")
    await run(fake_context, ReadFile(path="a"))
    path.write_bytes(b"zero\n" + TEXT)
    for tool in (
        InsertInFile(path="a", content="x"),
        RemoveLines(path="a", start_line=2, end_line=2),
        ReplaceLines(path="a", start_line=2, end_line=2, content="x"),
        EditFile(target_file="a", instructions="", code_edit="# ...\nfive\nsix\nseven"),
    ):
        assert (await tool.run(fake_context)).code == "file_changed"
    assert path.read_bytes() == b"zero\n" + TEXT


async def test_the_form_of_a_file_stays(fake_context):
    path = put(fake_context, "a", b"\xef\xbb\xbfone\r\ntwo\r\nthree")
    path.chmod(0o750)
    await run(fake_context, ReplaceLines(path="a", start_line=2, end_line=2, content="2\nzwei\n"))
    await run(fake_context, InsertInFile(path="a", content="four"))
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\n2\r\nzwei\r\nthree\r\nfour"
    assert path.stat().st_mode & 0o777 == 0o750


async def test_a_sketch_is_applied_where_its_place_is_clear(fake_context):
    path = put(fake_context, "a.txt")
    tool = EditFile(
        target_file="a.txt",
        instructions="Add a line",
        code_edit="# ... existing code ...\ntwo\nthree\nnew\nfour\nfive\n# ... existing code ...",
    )
    assert tool.preview(fake_context).title == "Edit a.txt +1 -0"
    result = await run(fake_context, tool)
    assert (result.message, result.text) == (
        "Edited a.txt, +1 -0 lines.",
        "Changed lines are now 4-4.",
    )
    assert path.read_bytes() == TEXT.replace(b"three\n", b"three\nnew\n")


async def test_a_refused_sketch_says_what_is_missing(fake_context):
    put(fake_context, "a.txt")
    tool = EditFile(target_file="a.txt", instructions="Add", code_edit="# ...\nthree\nnew\n# ...")
    result = await tool.run(WithAgent(fake_context, None))
    assert "doesn't show where in the file it begins" in result.message
    assert "at least two unchanged lines" in result.text
    assert "Add\n\n# ...\nthree" in tool.preview(fake_context).body


async def test_a_new_file_can_be_made_by_a_sketch_without_markers(fake_context):
    tool = EditFile(target_file="new.txt", instructions="", code_edit="a\nb")
    assert (await run(fake_context, tool)).message == "Created new.txt."
    assert (fake_context.workspace.root / "new.txt").read_bytes() == b"a\nb\n"


UNDECIDED = EditFile(target_file="a", instructions="do it", code_edit="# ...\nnew\n# ...")


async def test_the_edit_agent_is_asked_where_the_sketch_does_not_decide(fake_context):
    path = put(fake_context, "a")
    edits = [
        {"start_line": 2, "end_line": 2, "replacement": "2\nzwei"},
        {"start_line": 5, "end_line": 4, "replacement": "new"},
    ]
    context = WithAgent(fake_context, edits)
    result = await UNDECIDED.run(context)
    assert path.read_bytes() == b"one\n2\nzwei\nthree\nfour\nnew\nfive\nsix\n"
    assert context.asked == [("a", TEXT.decode(), "do it", "# ...\nnew\n# ...")]
    assert (result.ok, fake_context.changes[0][0]) == (True, "a")


@pytest.mark.parametrize(
    ("edits", "code"),
    [
        (None, "undecided_sketch"),
        ([], "malformed_range"),
        ([{"start_line": 1, "end_line": "x", "replacement": ""}], "malformed_range"),
        ([{"start": 1}], "malformed_range"),
        ([{"start_line": 1, "end_line": 9, "replacement": ""}], "out_of_range"),
        (
            [
                {"start_line": 1, "end_line": 3, "replacement": ""},
                {"start_line": 2, "end_line": 2, "replacement": ""},
            ],
            "overlap",
        ),
    ],
)
async def test_a_bad_plan_of_the_edit_agent_changes_nothing(fake_context, edits, code):
    path = put(fake_context, "a")
    result = await UNDECIDED.run(WithAgent(fake_context, edits))
    assert (result.ok, result.code, path.read_bytes()) == (False, code, TEXT)


async def test_a_plan_for_a_text_that_changed_meanwhile_is_not_applied(fake_context):
    path = put(fake_context, "a")
    edits = [{"start_line": 1, "end_line": 1, "replacement": "1"}]
    context = WithAgent(fake_context, edits, lambda: path.write_bytes(b"other\n"))
    result = await UNDECIDED.run(context)
    assert (result.code, path.read_bytes()) == ("stale", b"other\n")


async def test_new_syntax_errors_are_told_and_are_no_failure(fake_context):
    if parse("", "python") is None:
        pytest.skip("the grammar of Python is not installed")
    put(fake_context, "a.py", b"x = 1\ny = 2\n")
    diff = "<<<<<<< SEARCH\nx = 1\n=======\nx = = 1\n>>>>>>> REPLACE"
    for tool in (
        ReplaceInFile(path="a.py", diff=diff),
        InsertInFile(path="a.py", content="def f(:\n    pass"),
        WriteToFile(path="b.py", content="\nclass (\n"),
        ReplaceLines(path="a.py", start_line=2, end_line=2, content="y = = 2"),
    ):
        result = await run(fake_context, tool)
        assert (result.ok, len(result.data["syntax_errors"])) == (True, 1)
        line = result.data["syntax_errors"][0]["line"]
        assert f"  line {line}: " in result.text
    clean = await run(fake_context, InsertInFile(path="a.py", content="z = 3"))
    assert "syntax" not in clean.text
    assert "syntax_errors" not in clean.data


def test_the_tools_take_other_names_of_their_parameters_and_stand_outside_the_core():
    edit = call("edit_file", path="a", instructions="i", code_edit="c", explanation="why")
    assert edit == EditFile(target_file="a", instructions="i", code_edit="c")
    lines = call("replace_lines", target_file="a", start_line="2", end_line=3, new_content="x")
    assert lines == ReplaceLines(path="a", start_line=2, end_line=3, content="x")
    core = {doc.name for doc in builtin().docs()[0]}
    assert core.isdisjoint({"edit_file", "insert_in_file", "remove_lines", "replace_lines"})
    with pytest.raises(msgspec.ValidationError):
        call("insert_in_file", path="a", content="x", line_number=0)
