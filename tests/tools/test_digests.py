"""How results stand in the history later: what of each kind of tool stays, number for number."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from croze.text.redact import redact
from croze.tools.digest import CAP, READ_CAP, digest_of, ranges
from croze.tools.registry import builtin
from croze.types.event import ToolReturned, decode_body
from croze.types.parts import ToolCall
from croze.types.tool import ToolResult, View

REGISTRY = builtin()
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
KEY_LINES = [
    "-----BEGIN PRIVATE KEY-----",
    *(f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ{n:02d}" for n in range(4)),
    "-----END PRIVATE KEY-----",
]


async def digest(fake: Any, name: str, **args: Any) -> list[str]:
    """A call's real result as it stands in the history later: its message, then its digest, in lines."""
    kind = REGISTRY.get(name)
    assert kind is not None
    result = await kind.bind(args).run(fake)
    call, text = ToolCall("123456789", name, args), redact(result.text)[0]
    made = digest_of(kind, call, result, text, cap=READ_CAP if name == "read_file" else CAP)
    return "\n".join(part for part in (result.message, made) if part).split("\n")


@pytest.fixture
def tree(fake_context: Any) -> Any:
    root = fake_context.workspace.root
    for number in range(25):
        (root / f"file{number:02d}.txt").write_text(f"needle {number}\n")
    (root / "long.py").write_text("".join(f"x{n} = {n}\n" for n in range(1, 701)))
    return fake_context


async def test_a_listing_keeps_folder_counts_and_the_first_ten(tree: Any) -> None:
    lines = await digest(tree, "list_files")
    assert lines[0] == ".: 0 folders, 26 files."
    assert lines[1:11] == [f"├── file{n:02d}.txt" for n in range(10)]
    assert lines[11:] == ["… 16 more names"]


async def test_a_glob_keeps_pattern_hits_and_the_first_ten(tree: Any) -> None:
    lines = await digest(tree, "find_files", pattern="file*.txt", limit=20)
    assert lines[0].startswith("25 files match «file*.txt»")
    assert lines[1:11] == [f"file{n:02d}.txt" for n in range(10)]
    assert lines[11:] == ["… 10 more files"]


async def test_a_search_keeps_its_summary_and_five_matches_with_their_places(tree: Any) -> None:
    lines = await digest(tree, "search_files", regex="needle", context=1)
    assert lines[0].startswith("25 matches of «needle» in 25 files")
    assert lines[1:] == [f"file{n:02d}.txt:1: needle {n}" for n in range(5)]


async def test_a_read_keeps_its_range_with_numbers_at_most_500_lines(tree: Any) -> None:
    lines = await digest(tree, "read_file", path="long.py", start_line=101)
    assert lines[0].startswith("long.py, lines 101-600 of 700")
    assert lines[1:] == [f"{n}\tx{n} = {n}" for n in range(101, 601)]


async def test_a_write_keeps_what_it_did_its_lines_and_forty_of_them(tree: Any) -> None:
    content = "".join(f"y{n}\n" for n in range(1, 101))
    lines = await digest(tree, "write_to_file", path="new.txt", content=content)
    assert lines[:2] == ["Created new.txt (100 lines).", "Lines 1-100."]
    assert lines[2:42] == [f"+y{n}" for n in range(1, 41)]
    assert lines[42:] == ["… 60 more lines"]
    lines = await digest(tree, "write_to_file", path="new.txt", content="y1\n" * 3 + "z\n" * 90)
    assert lines[0].startswith("Overwrote new.txt (93 lines), +")


async def test_an_edit_keeps_file_ranges_and_key_lines(tree: Any) -> None:
    blocks = "\n".join(
        f"<<<<<<< SEARCH\nx{n} = {n}\n=======\nx{n} = {n}0\n# more\n>>>>>>> REPLACE"
        for n in (3, 90)
    )
    lines = await digest(tree, "replace_in_file", path="long.py", diff=blocks)
    assert lines == [
        "Edited long.py, +4 -2 lines.",
        "Lines 3-4, 91-92.",
        *("-x3 = 3", "+x3 = 30", "+# more", "-x90 = 90", "+x90 = 900", "+# more"),
    ]
    lines = await digest(tree, "remove_lines", path="long.py", start_line=5, end_line=6)
    assert lines[1:] == ["Lines 5 (deleted).", "-x4 = 4", "-x5 = 5"]


async def test_a_failed_command_keeps_errors_and_the_last_twenty_lines(tree: Any) -> None:
    command = "echo start; echo 'E   ValueError: bad'; seq 40; exit 3"
    lines = await digest(tree, "execute_command", command=command)
    assert lines == [
        "Exit code 3.", "E   ValueError: bad", "… 21 more lines", *map(str, range(21, 41)),
    ]  # fmt: skip


async def test_a_commands_output_is_summed_up(tree: Any) -> None:
    lines = await digest(tree, "execute_command", command="seq 100")
    assert lines == ["Exit code 0.", "1", "2", "3", "… 87 more lines", *map(str, range(91, 101))]
    assert await digest(tree, "execute_command", command="true") == ["Exit code 0, no output."]


async def test_the_todo_list_keeps_its_recap(tree: Any) -> None:
    lines = await digest(tree, "todo_write", action="create", content="one\ntwo")
    assert lines == ["Created. 0 of 2 tasks completed.", "[ ] 1. one", "[ ] 2. two"]


async def test_a_failure_keeps_what_was_wrong(tree: Any) -> None:
    lines = await digest(tree, "read_file", path="file0.txt")
    assert lines[0] == "file0.txt does not exist."
    assert lines[1].startswith("Did you mean file")
    refused = await digest(
        tree, "replace_in_file", path="long.py",
        diff="<<<<<<< SEARCH\nno such line\n=======\nb\n>>>>>>> REPLACE",
    )  # fmt: skip
    assert refused[0].startswith("long.py: ")


async def test_what_the_user_answered_stays(tree: Any) -> None:
    tree.answer = "the second one, " * 9
    lines = await digest(tree, "ask_followup_question", question="Which?")
    assert "the second one" in "\n".join(lines)


def test_ranges_follow_the_new_side_of_a_diff() -> None:
    diff = "--- a\n+++ b\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+3\n four\n@@ -9,2 +10,1 @@\n-nine\n ten"
    assert ranges(View("t", diff, "diff")) == "2-3, 10 (deleted)"
    assert ranges(View("t", "no diff")) == ""
    assert ranges(None) == ""


async def test_no_part_of_a_secret_comes_back_from_the_data_of_a_search(tree: Any) -> None:
    root = tree.workspace.root
    (root / "key.txt").write_text("\n".join(KEY_LINES) + "\n")
    (root / "token.txt").write_text("pad " * 38 + f"token = {SECRET}\n")
    for pattern in (".", "token"):
        shown = "\n".join(await digest(tree, "search_files", regex=pattern))
        assert "MII" not in shown
        assert SECRET[:14] not in shown


TEXTS = st.text(max_size=60) | st.sampled_from(
    ["", "a.py", "3: x", "@@ -1 +1 @@", "+y", "{\"path\": \"a\"}", f"key = {SECRET}", "x" * 900]
)  # fmt: skip
RESULTS = st.builds(
    ToolResult,
    ok=st.booleans(),
    message=TEXTS,
    text=st.lists(TEXTS, max_size=60).map("\n".join),
    view=st.none()
    | st.builds(View, title=TEXTS, body=st.lists(TEXTS, max_size=60).map("\n".join),
                kind=st.sampled_from(["text", "diff", "output", "list"])),
    data=st.none() | st.dictionaries(TEXTS, TEXTS, max_size=3) | st.lists(TEXTS, max_size=3),
    code=st.none() | TEXTS,
    truncated=st.none() | TEXTS,
)  # fmt: skip
TOOLS = st.sampled_from(REGISTRY.names)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(TOOLS, RESULTS, st.integers(1, 400))
def test_a_digest_is_never_longer_than_its_result_and_holds_no_secret(
    name: str, result: ToolResult, times: int
) -> None:
    result = msgspec.structs.replace(result, text="\n".join([result.text] * times))
    kind = REGISTRY.get(name)
    call = ToolCall("123456789", name, {"question": "Which?", "path": "a.py"})
    text = result.text.replace(SECRET, "<REDACTED>")
    made = digest_of(kind, call, result, text, cap=READ_CAP if name == "read_file" else CAP)
    diff = result.view.body if result.view and result.view.kind == "diff" else ""
    assert len(made) <= max(len(text), len(diff))
    assert made or not text
    assert SECRET not in made


@given(TOOLS, RESULTS)
def test_results_of_old_logs_have_digests_too(name: str, result: ToolResult) -> None:
    """A stored result knows its text and message, perhaps no view and no data."""
    stored = {"call_id": "c", "message_id": "m", "name": name, "ok": result.ok}
    stored |= {"message": result.message, "text": result.text}
    body = decode_body("ToolReturned", 1, json.dumps(stored).encode("utf-8", "surrogatepass"))
    assert isinstance(body, ToolReturned)
    kind = REGISTRY.get(name)
    assert kind is not None
    old = ToolResult(ok=body.ok, message=body.message, text=body.text, view=body.view)
    made = kind.digest(ToolCall("123456789", name), old)
    assert isinstance(made, str)
    assert '"call_id"' not in made
