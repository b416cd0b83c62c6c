"""Paging through what an earlier message held: all of it can be reached, and only of this session."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.tools.base import Remembered
from croze.tools.bound import LONGEST, bounded, pieces
from croze.tools.builtin.stored import MAX_CHARACTERS, MAX_LINES, ReadResult
from croze.tools.run import READ_CAP
from croze.types.parts import ToolCall

READ = Remembered("9226b3a4-0001", "result", "execute_command make", 9, 9, "full", "CALL00001")
TWIN = Remembered("9226b3a5-0002", "result", "read_file a.py", 9, 9, "summarised", "CALL00002")
SAID = Remembered("11111111-0003", "user", "user: go", 1, 1)


@pytest.fixture
def talk(fake_context: Any) -> Any:
    fake_context.messages = [READ, TWIN, SAID]
    fake_context.stored = {
        READ.id: "\n".join(f"row {number}" for number in range(1, 1_201)),
        TWIN.id: "1\tx = 1",
        SAID.id: "go",
    }
    return fake_context


async def test_a_long_result_is_paged_to_its_end(talk: Any) -> None:
    whole, start = [], 1
    while start:
        result = await ReadResult(id="9226b3a4", start_line=start).run(talk)
        assert result.ok
        whole += result.text.split("\n")
        start = result.data["end_line"] + 1 if result.truncated else 0
    assert "\n".join(whole) == talk.stored[READ.id]
    first = await ReadResult(id="9226b3a4").run(talk)
    assert first.message == (
        f"9226b3a4, execute_command make: lines 1-{MAX_LINES} of 1,200; go on with start_line=501."
    )
    part = await ReadResult(id="CALL00001", start_line=3, end_line=4).run(talk)
    assert (part.text, part.truncated) == ("row 3\nrow 4", None)


@pytest.mark.parametrize("wanted", ["9226b3a5", "CALL00002", TWIN.id, "9226B3A5"])
async def test_summarised_messages_are_read_by_any_of_their_ids(talk: Any, wanted: str) -> None:
    assert (await ReadResult(id=wanted).run(talk)).text == "1\tx = 1"


async def test_what_the_user_said_can_be_read_again(talk: Any) -> None:
    assert (await ReadResult(id="11111111").run(talk)).text == "go"


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        ("9226b3a", ["Give more of the id. 2 messages begin so:", "9226b3a4-0001 execute_command"]),
        ("9226b3aa", ["Near it:", "9226b3a4 execute_command make"]),
        ("zzzzzzzz", ["The newest results:", "9226b3a4 execute_command make", "9226b3a5 read"]),
        ("CALL00009", ["Near it:", "9226b3a4 execute_command make"]),
    ],
)
async def test_an_unknown_id_is_told_with_near_ones(
    talk: Any, wanted: str, shown: list[str]
) -> None:
    result = await ReadResult(id=wanted).run(talk)
    assert (result.ok, result.code) == (False, "no_such_message")
    for line in shown:
        assert line in result.text


@pytest.mark.parametrize("lines", [{"start_line": 2_000}, {"start_line": 9, "end_line": 3}])
async def test_lines_that_are_not_there_are_told(talk: Any, lines: Any) -> None:
    result = await ReadResult(id="9226b3a4", **lines).run(talk)
    assert (result.ok, result.code) == (False, "no_such_lines")
    assert "it has 1,200" in result.message


async def test_an_empty_message_is_no_error(talk: Any) -> None:
    talk.stored[READ.id] = ""
    result = await ReadResult(id="9226b3a4").run(talk)
    assert (result.ok, result.text) == (True, "")


async def test_one_endless_line_can_be_read_to_its_end(talk: Any) -> None:
    talk.stored[READ.id] = "x" * 100_000
    got, start = 0, 1
    while start:
        result = await ReadResult(id="9226b3a4", start_line=start).run(talk)
        assert len(result.text) <= MAX_CHARACTERS < READ_CAP
        got += result.text.count("x")
        start = result.data["end_line"] + 1 if result.truncated else 0
    assert got == 100_000


async def test_the_digest_says_what_was_read_and_shows_its_beginning(talk: Any) -> None:
    result = await ReadResult(id="9226b3a4").run(talk)
    digest = ReadResult.digest(ToolCall("1", "read_result"), result).split("\n")
    assert digest == [result.message, *(f"row {n}" for n in range(1, 11)), "… 490 more lines"]


@given(st.text(alphabet="ab\n", max_size=200).flatmap(lambda t: st.just(t * 40)))
def test_pieces_hold_all_of_a_text(text: str) -> None:
    lines = pieces(text)
    assert "".join(lines) == text.replace("\n", "")
    assert all(len(line) <= LONGEST for line in lines)


@given(
    st.lists(st.integers(0, 5_000), min_size=1, max_size=60).map(
        lambda sizes: "\n".join("x" * size for size in sizes)
    ),
    st.integers(1_000, 9_000),
)
def test_the_note_names_the_first_line_that_was_left_out(text: str, cap: int) -> None:
    cut, left_out = bounded(text, cap, "{line}!")
    if not left_out:
        return
    head, _, note = cut.partition("[… ")
    line = int(note.split("; ")[1].split("!")[0])
    starts, at = [], 0
    for row in text.split("\n"):
        starts += range(at, at + max(len(row), 1), LONGEST)
        at += len(row) + 1
    cut_at = len(head) if text.startswith(head) else len(head) - 1  # a line end was put in
    assert starts[line - 1] <= cut_at
    assert line == len(starts) or cut_at <= starts[line]
