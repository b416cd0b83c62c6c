"""Calls that were written wrongly: the model is told exactly what, and nothing of it runs."""

import pytest

from croze.types.parts import Text
from tests.dialect.voices import read, write

MALFORMED = {
    "an unknown parameter": (
        "<read_file>\n<path>a</path>\n<lines>1-5</lines>\n</read_file>",
        "read_file has no parameter lines. It has: path, query, start_line.",
    ),
    "an unknown parameter first": (
        "<read_file>\n<file>a</file>\n</read_file>",
        "<read_file> has no parameter file.",
    ),
    "no parameter tag": ("<execute_command>ls</execute_command>", "<command>"),
    "text where there are no parameters": ("<todo_read>all</todo_read>", "no parameters"),
    "attributes": ('<read_file path="a"></read_file>', "Tags take no attributes".lower()),
    "attributes of a parameter": (
        '<read_file>\n<path kind="x">a</path>\n</read_file>',
        "tags take no attributes; write <path> alone",
    ),
    "attributes of a later parameter": (
        '<read_file>\n<path>a</path>\n<query n="1">b</query>\n</read_file>',
        "tags take no attributes; write <query> alone",
    ),
    "a tag that closes itself": ("<todo_read/>", "<todo_read></todo_read>"),
    "a value that isn't closed": (
        "<execute_command>\n<command>ls\n</execute_command>",
        "</command> must come right before </execute_command>",
    ),
}


@pytest.mark.parametrize(("text", "told"), MALFORMED.values(), ids=MALFORMED.keys())
@pytest.mark.parametrize("size", [1, 1000])
def test_a_malformed_call_is_told_what_is_wrong(text: str, told: str, size: int) -> None:
    heard = read(f"Look.\n{text}\n", size=size)
    assert heard.errors == ["malformed"]
    assert told in heard.message
    assert heard.said == []
    assert heard.reply.calls[0].raw.rstrip() == text


def test_a_good_call_before_a_malformed_one_runs() -> None:
    bad = "<read_file>\n<path>b</path>\n<lines>1</lines>\n</read_file>"
    heard = read(f"<read_file>\n<path>a</path>\n</read_file>\n{bad}")
    assert heard.said == [("read_file", {"path": "a"})]
    assert heard.errors == ["malformed"]


def test_a_good_call_before_one_without_parameter_tags_runs() -> None:
    good = "<execute_command>\n<command>ls</command>\n</execute_command>"
    heard = read(f"{good}\n<execute_command>pwd</execute_command>\n{good}")
    assert heard.said == [("execute_command", {"command": "ls"})] * 2
    assert heard.errors == ["malformed"]


def test_a_wrong_call_that_may_hold_an_earlier_ones_end_makes_it_doubtful() -> None:
    content = "s = '</content>\n</write_to_file>'\n<write_to_file>"
    heard = read(write(content))
    assert heard.said == []
    assert "ambiguous_body" in heard.errors


def test_a_repeated_parameter_is_an_error_and_the_first_value_is_shown() -> None:
    heard = read("<read_file>\n<path>a</path>\n<path>b</path>\n</read_file>")
    assert heard.errors == ["repeated_parameter"]
    assert "<path>" in heard.message
    assert heard.reply.calls[0].args == {"path": "a"}


@pytest.mark.parametrize(
    "text",
    [
        "<read_file>",
        "<read_file>\n",
        "<read_file>\n<pa",
        "<read_file>\n<path>",
        "<read_file>\n<path>a</path>",
        "<read_file>\n<path>a</path>\n</read",
        "<todo_read></todo_read",
    ],
)
@pytest.mark.parametrize("cut", [True, False])
def test_a_call_without_its_end_is_truncated(text: str, cut: bool) -> None:
    heard = read(f"So.\n{text}", size=2, cut=cut)
    assert heard.errors == ["truncated"]
    assert heard.reply.calls[0].raw == text


def test_a_cut_reply_keeps_its_complete_calls() -> None:
    heard = read(f"{write('a')}\nNext.\n{write('b')[:-5]}", cut=True)
    assert heard.said == [("write_to_file", {"path": "out.txt", "content": "a"})]
    assert heard.errors == ["truncated"]


def test_a_call_after_which_a_cut_reply_goes_on_is_not_certain() -> None:
    heard = read(f"{write('a')}'\nmore of the fi", cut=True)
    assert heard.errors == ["truncated"]
    assert read(f"{write('a')}\n", cut=True).errors == []


UNKNOWN = {
    "parameters": "<fetch_url>\n<url>x</url>\n</fetch_url>",
    "on one line": "<fetch_url><url>x</url></fetch_url>",
    "json": '<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>',
    "a server's": "<mcp__files__read>\n<path>x</path>\n</mcp__files__read>",
}


@pytest.mark.parametrize("text", UNKNOWN.values(), ids=UNKNOWN.keys())
@pytest.mark.parametrize("size", [1, 1000])
def test_a_tag_like_a_tools_is_an_unknown_tool(text: str, size: int) -> None:
    heard = read(f"I try this:\n\n{text}\n\nDone.", size=size)
    assert heard.errors == ["unknown_tool"]
    (call,) = heard.reply.calls
    assert call.raw == text
    assert call.name == text[1:].split(">")[0]
    assert heard.reply.parts[0] == Text("I try this:\n\n")
    assert heard.reply.parts[2] == Text("\n\nDone.")


@pytest.mark.parametrize(
    "text",
    [
        "<details>\n<summary>x</summary>\n</details>",
        "<my_tag>just words</my_tag>",
        "<my_tag>\n<b>",
        "<my_tag attr='1'>\n<b>x</b>\n</my_tag>",
        "```\n<my_tag>\n<b>x</b>\n</my_tag>\n```",
        "see <my_tag>\n<b>x</b>\n</my_tag>",
        "<my_tag>\n<b>x</b>\n```\n</my_tag>\n```",
        "<todo_read/> is a tag that closes itself",
    ],
)
def test_other_markup_is_text(text: str) -> None:
    heard = read(text)
    assert heard.reply.parts == (Text(text),)
    assert heard.reply.problem == ""


def test_many_open_tags_are_read_in_linear_time() -> None:
    text = "<my_tag>\n" * 60_000 + "x</my_tag>\n" + "<read_file>\n" * 60_000 + "x</read_file>"
    heard = read(text, size=4096)
    assert heard.errors == ["malformed"]
    assert heard.said == []
