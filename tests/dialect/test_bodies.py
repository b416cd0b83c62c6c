"""Bodies that are hard to read: either exactly what was meant, or refused; never something else."""

import re

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.dialect.voices import read, write

EXAMPLE = "<write_to_file>\n<path>x</path>\n<content>\ny\n</content>\n</write_to_file>"
END = "</content>\n</write_to_file>"

LITERAL = {
    "empty": "",
    "a close of the parameter": "before </content> after",
    "closes on lines of their own": "</content>\n</content>\nx",
    "a close at the very end": "last </content>",
    "the tool's close in a string": "s = '</write_to_file>'",
    "the tool's close on a line": "a\n</write_to_file>\nb",
    "a whole example call": f"To write:\n\n{EXAMPLE}\n\nThat's it.",
    "two examples": f"{EXAMPLE}\n{EXAMPLE}",
    "an example in an example": EXAMPLE.replace("\ny\n", f"\n{EXAMPLE}\n"),
    "another tool's call": "<read_file>\n<path>x</path>\n</read_file>",
    "another tool's end": "</path>\n</read_file>",
    "an example in a fence": f"```xml\n{EXAMPLE}\n```",
    "an open fence": "```\nnever closed",
    "thinking": "<thinking>\nnot closed",
    "a result": '<tool_result tool_name="x" success="true">\n</tool_result>',
    "markup": "<html><path d='1'/><content class='a'>x</content></html>",
    "entities": "&lt;b&gt; &amp;amp; &#60; \\u003c",
    "a leading newline before a shebang": "\n#!/bin/sh\n",
    "a shebang": "#!/bin/sh\necho",
    "newlines at both ends": "\n\na\n\n",
    "windows lines": "a\r\nb\r\n",
    "blanks at both ends": "  \t x \t ",
    "lone marks": "< > </ /> <> </>",
    "a mention": "call <write_to_file> with a <path>",
    "an own tag and blanks": "<write_to_file>\n\n",
    "a foreign pair": "</mode>\n</write_to_file>",
    "nothing but a start": "<content>",
    "control characters": "\x00\x1b[31m\x7f",
}


@pytest.mark.parametrize("size", [1, 20, 100_000])
@pytest.mark.parametrize("content", LITERAL.values(), ids=LITERAL.keys())
def test_a_body_is_literal(content: str, size: int) -> None:
    heard = read(f"I write it.\n{write(content)}\nDone.", size=size)
    assert heard.said == [("write_to_file", {"path": "out.txt", "content": content})]
    assert heard.errors == []


REFUSED = {
    "its end in a string": f"s = '{END}'\nmore",
    "its end in a string, then a fence": f"s = '{END}'\n```\nmore",
    "its end in a string, then thinking": f"s = '{END}'\n<thinking>\nmore",
    "its end in a string, then a call": f"{END}\n<execute_command>\n<command>ls</command>\n</execute_command>",
    "its end in a string, then an open call": f"{END}\n<execute_command>\n<command>ls",
    "its end in a string, then its own tag": f"{END}\n<write_to_file>\n<path>",
    "its end in a string, then a mention and an open call": f"{END}\n<execute_command>\n<command><write_to_file>",
    "another end, then a call, then another of its own": "</content><path>y</path></write_to_file>\n"
    "<execute_command>\n<command>rm</command>\n</execute_command></mode>\n<write_to_file><content>",
    "its end in a string, then an example cut": f"{END}\n<write_to_file>\n<path>x</path>\n<path>y</path>\n<content>",
    "half an example": "<write_to_file>\n<path>",
    "more than half an example": "<write_to_file>\n<path>x</path>\n<content>",
    "an example that repeats": EXAMPLE.replace("<content>", "<path>z</path><content>"),
    "a step back": "a</path>\n<content>b",
    "a parameter more": "a</content>\n<mode>append",
    "a parameter twice": "a</content>\n<path>b",
}  # fmt: skip


@pytest.mark.parametrize("size", [1, 20, 100_000])
@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED.keys())
def test_a_body_that_could_be_read_in_two_ways_is_refused(content: str, size: int) -> None:
    heard = read(f"I write it.\n{write(content)}\nDone.", size=size)
    assert heard.said == []
    assert set(heard.errors) <= {"ambiguous_body", "repeated_parameter"}
    assert heard.errors


def test_the_refusal_names_the_escape() -> None:
    heard = read(write(f"s = '{END}'"))
    assert "call_tool" in heard.message
    assert "\\u003c" in heard.message


def test_a_stray_parameter_close_after_a_call_makes_it_doubtful() -> None:
    heard = read(f"{write('a')}'\nrest of the file\n</content>")
    assert heard.errors == ["ambiguous_body"]


def test_the_end_of_another_tools_call_makes_nothing_doubtful() -> None:
    heard = read(f"{write('a')}\nand </read_file> is a tag")
    assert [name for name, _ in heard.said] == ["write_to_file"]


def test_an_example_in_a_later_call_makes_nothing_doubtful() -> None:
    heard = read(
        f"{write('a')}\n<execute_command>\n<command>{EXAMPLE}</command>\n</execute_command>"
    )
    assert [name for name, _ in heard.said] == ["write_to_file", "execute_command"]


def test_a_calls_end_inside_another_tools_later_call_makes_both_doubtful() -> None:
    later = f"<execute_command>\n<command>echo {END}</command>\n</execute_command>"
    heard = read(f"{write('a')}\n{later}\n<todo_read></todo_read>")
    assert heard.said == [("todo_read", {})]
    assert heard.errors == ["ambiguous_body", "ambiguous_body"]


@pytest.mark.parametrize(
    "later",
    [
        f"<write_to_file>\n<path>b</path>\n<content>\n{EXAMPLE}",
        "<execute_command>\n<command>x\n</content>",
        f"<execute_command>\n<command><write_to_file><path>{END}",
        "<write_to_file>x</path>\n</write_to_file>",
    ],
    ids=["holds an example", "holds a close", "holds an end", "is no call"],
)
def test_a_later_call_without_an_end_of_its_own_may_hold_this_ones(later: str) -> None:
    heard = read(f"{write('a')}\n{later}")
    assert heard.said == []
    assert heard.errors[0] == "ambiguous_body"


def test_an_example_that_is_never_closed_leaves_the_depth_open() -> None:
    heard = read(write("see <write_to_file>\n<path>").split("\n</content>")[0])
    assert heard.errors == ["ambiguous_body"]


def test_windows_line_ends_round_a_body_are_one_newline() -> None:
    heard = read(write("\nx\ny\n").replace("\n", "\r\n"))
    assert heard.said == [("write_to_file", {"path": "out.txt", "content": "\r\nx\r\ny\r\n"})]


def test_ten_megabytes_come_through_whole() -> None:
    content = "def f():\n    return '<b>' < \"</content>\"\n" * 250_000
    heard = read(write(content), size=4096)
    assert heard.said == [("write_to_file", {"path": "out.txt", "content": content})]


FRAGMENTS = [
    "x", "'", "\n", " ", "\r\n", "```\n", "~~~\n", "<b>", "&lt;", "<", "</",
    "<content>", "</content>", "<path>", "</path>", "<mode>", "</mode>", "<content >", "</content\n>",
    "<write_to_file>", "</write_to_file>", "</write_to_file >", END, "</path></write_to_file>",
    "<write_to_file>\n<path>", "<write_to_file><content>", "</path>\n<content>", "</content><mode>",
    EXAMPLE, "<thinking>", "</thinking>", "<todo_read></todo_read>", "<my_tool>", "</my_tool>",
    "<execute_command>\n<command>rm</command>\n</execute_command>", "\n<execute_command>\n<command>",
    "<read_file>\n<path>", "</path>\n</read_file>", "<tool_result>",
]  # fmt: skip
contents = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=5), max_size=14).map("".join)
AFTER = ["", "\nDone.", "\n\n<read_file>\n<path>z</path>\n</read_file>\n"]

_ITS_END = r"</(?:content|path|mode)\s*>\s*</write_to_file\s*>"
_SAME_BYTES = re.compile(
    rf"{_ITS_END}.*(?:<write_to_file\s*>\s*<(?:path|content|mode)\s*>|<tool_result)", re.DOTALL
)
"""After what looks like its end a file that goes on with a whole other call, or with a result, can be
the very bytes of two calls, or of a call and an invented result: no parser can tell them apart."""


@settings(max_examples=600)
@given(contents, st.sampled_from(AFTER), st.booleans())
@example(f"{END}\n<execute_command>\n<command>", AFTER[2], False)
@example(f"{END}\n<read_file>\n<path>x</path>\n<query>", AFTER[2], False)
@example(f"a</content><mode>{EXAMPLE}", "", False)
def test_any_content_arrives_exactly_or_the_call_is_refused(
    content: str, after: str, mode: bool
) -> None:
    assume(not _SAME_BYTES.search(content) and not content.endswith("\r"))
    call = write(content)
    expected: dict[str, object] = {"path": "out.txt", "content": content}
    if mode:
        call = call.replace("<path>", "<mode>append</mode>\n<path>", 1)
        expected["mode"] = "append"
    heard = read(f"Now:\n\n{call}{after}", size=13)
    meant = [("write_to_file", expected), ("read_file", {"path": "z"})]
    assert all(said in meant for said in heard.said)
    assert heard.said or heard.errors


@given(contents)
def test_content_in_front_of_another_parameter_arrives_exactly_or_is_refused(content: str) -> None:
    assume(not _SAME_BYTES.search(content) and not content.endswith("\r"))
    assume(
        not re.search(r"</(?:path|mode)\s*>\s*</write_to_file\s*>.*<(?:write|tool)", content, re.S)
    )
    text = (
        f"<write_to_file>\n<content>\n{content}\n</content>\n<path>out.txt</path>\n</write_to_file>"
    )
    heard = read(text, size=13)
    assert heard.said in ([], [("write_to_file", {"content": content, "path": "out.txt"})])


@given(st.text())
def test_ordinary_text_is_never_refused(content: str) -> None:
    assume("<" not in content and not content.endswith("\r"))
    assert read(write(content)).said == [("write_to_file", {"path": "out.txt", "content": content})]
