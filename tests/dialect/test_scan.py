"""The xml protocol's scanner: where a tag counts, and that the split of the stream never matters."""

import re
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from croze.dialect.xml import XmlDialect
from croze.types.parts import Text, Thinking, ToolCall
from croze.types.stream import Delta, FinishChunk, TextChunk, ThinkingChunk
from tests.dialect.voices import Heard, hear, ids, pieces, read, shapes, write

CALL = "<read_file>\n<path>a</path>\n</read_file>"
FRAGMENTS = [
    "<", ">", "</", "/>", "\n", "\r\n", "\r", " ", "    ", "\t", "`", "```", "````", "~~~", "```xml\n",
    "text", "a < b", "<b>", "</b>", "&lt;", "<?xml?>", "<!-- x -->", "漢字🙂", "\x00", "\x1b[0m",
    "<read_file>", "</read_file>", "<read_file >", "<read_file x='1'>", "<read_file/>", "<read_fi",
    "<path>", "</path>", "<path\n>", "</path \t>", "<pa", "<foo>", "</foo>",
    "<write_to_file>", "</write_to_file>", "<content>", "</content>", "<mode>", "</mode>",
    "</content>\n</write_to_file>", "<write_to_file>\n<path>x</path>\n<content>\n",
    "<todo_read></todo_read>", "<todo_read>", "<Write>", "<file_path>", "</Write>",
    "<thinking>", "</thinking>", "<thinking >", "</think", "<tool_result", "<tool_result name='x'>",
    "<my_tool>\n<arg>1</arg>\n</my_tool>", '<tool_call>\n{"a": 1}\n</tool_call>',
    CALL, "\n" + CALL, write("body"), "\n" + write("body") + "\n", f"\n```\n{CALL}\n```\n",
]  # fmt: skip
replies = st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join)


def untagged(text: str) -> str:
    """The text without thinking tags, which alone aren't kept."""
    while (less := re.sub(r"</?thinking[ \t\r\n]*>", "", text)) != text:
        text = less
    return text


def heard_in(text: str, cuts: list[int], *, cut: bool = False) -> Heard:
    decoder = XmlDialect().decoder(shapes(), ids())
    edges = [0, *sorted({c % (len(text) + 1) for c in cuts}), len(text)]
    chunks = [TextChunk(text[a:b]) for a, b in pairwise(edges)]
    return hear(decoder, [*chunks, FinishChunk("stop")], cut=cut)


@settings(max_examples=400)
@given(replies, st.lists(st.integers(0, 10_000), max_size=30), st.booleans())
def test_any_split_gives_the_same_parts_and_deltas(text: str, cuts: list[int], cut: bool) -> None:
    whole = heard_in(text, [], cut=cut)
    assert heard_in(text, cuts, cut=cut) == whole
    assert heard_in(text, list(range(len(text))), cut=cut) == whole


@settings(max_examples=200)
@given(replies | st.text(alphabet="<>/` \n\rtodo_readthinking"))
@example("<thinking>")
@example("<read_file>\n")
def test_no_text_is_lost_or_added(text: str) -> None:
    heard = read(text)
    joined = "".join(
        p.raw if isinstance(p, ToolCall) else getattr(p, "text", "") for p in heard.reply.parts
    )
    if heard.halted:
        assert untagged(text).startswith(untagged(joined))
    else:
        assert untagged(joined) == untagged(text)


@settings(max_examples=200)
@given(replies)
def test_what_is_shown_of_a_call_is_its_source(text: str) -> None:
    heard = heard_in(text, list(range(0, len(text), 3)))
    for call in heard.reply.calls:
        shown = [d for d in heard.deltas if d.call_id == call.id]
        if shown and shown[-1].done:
            assert "".join(d.text for d in shown) == call.raw


@given(st.text(), st.integers(1, 9), st.booleans())
def test_arbitrary_text_never_raises(text: str, size: int, cut: bool) -> None:
    read(text, size=size, cut=cut)


@given(st.lists(st.sampled_from(FRAGMENTS) | st.none(), max_size=15))
def test_reasoning_in_between_never_raises_nor_is_lost(script: list[str | None]) -> None:
    decoder = XmlDialect().decoder(shapes(), ids())
    chunks = [ThinkingChunk("hm") if s is None else TextChunk(s) for s in script]
    heard = hear(decoder, chunks)
    if not heard.halted:
        thought = "".join(p.text for p in heard.reply.parts if isinstance(p, Thinking))
        assert thought.count("hm") == script.count(None)


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        "  \t" + CALL,
        "Some text.\n" + CALL,
        "Some text.\r\n  " + CALL,
        "Use <b>bold</b> and a < b.\n\n" + CALL,
        "<b>x</b>\n" + CALL,
        "<thinking>plan</thinking>" + CALL,
        "<thinking>```\n</thinking>\n" + CALL,
        "<thinking\n>plan</thinking >\n" + CALL,
        "```\ncode\n```\n" + CALL,
        "```inline``` code\n" + CALL,
        "``\n" + CALL,
        "    ```\n" + CALL,
        "\t```\n" + CALL,
        "~~~ `a`\n```\n~~~~  \n" + CALL,
        "````md\n```\n````\n" + CALL,
        "text ```\n" + CALL,
        "<read_file >\n\n<path\t>a</path >\r\n</read_file\n>",
        "<read_file><path>a</path></read_file>",
    ],
)
def test_a_call_at_the_start_of_a_line_is_a_call(text: str) -> None:
    heard = read(text)
    assert heard.said == [("read_file", {"path": "a"})]
    assert heard.errors == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"Then I would use {CALL} for it.", "fenced"),
        (f"> {CALL}", "fenced"),
        (f"```xml\n{CALL}\n```", "fenced"),
        (f"   ~~~\n{CALL}\n~~~", "fenced"),
        (f"```\n{CALL}", "fenced"),
        (f"````\n```\n{CALL}\n```\n", "fenced"),
        (f"~~~\n```\n{CALL}\n```\n", "fenced"),
        (f"```\n    ```\n{CALL}\n```\n", "fenced"),
        (f"```\n``` not a close\n{CALL}", "fenced"),
        (f"<thinking>\n{CALL}\n</thinking>", "fenced"),
        (f"<thinking>\n{CALL}", "fenced"),
        (f"Write `{CALL}` to read.", ""),
        ("Use <read_file> to read.", ""),
        ("<read_file> is the tool.", ""),
        ("<read_file>\nis the tool.", ""),
        ("<readfile>\n<path>a</path>", ""),
        ("<read_file", ""),
        ("no call at all", ""),
    ],
)
def test_a_call_anywhere_else_is_text(text: str, problem: str) -> None:
    heard = read(text)
    assert heard.reply.calls == ()
    assert heard.reply.problem == problem


def test_a_quoted_call_beside_a_real_one_is_no_problem() -> None:
    heard = read(f"```\n{CALL}\n```\n<todo_read></todo_read>")
    assert heard.said == [("todo_read", {})]
    assert heard.reply.problem == ""


def test_calls_may_follow_each_other_directly() -> None:
    heard = read(f"{CALL}{CALL} <todo_read>\n</todo_read>\n\n{CALL}")
    assert [name for name, _ in heard.said] == ["read_file", "read_file", "todo_read", "read_file"]


def test_a_fence_right_after_a_call_on_its_line_is_text() -> None:
    heard = read(f"{CALL}```\n{CALL}")
    assert len(heard.said) == 2


def test_thinking_ends_at_its_first_close() -> None:
    heard = read("<thinking>a < b <b></think></thinking>said")
    assert heard.reply.parts == (Thinking("a < b <b></think>"), Text("said"))


def test_a_thinking_tag_in_prose_is_text() -> None:
    heard = read("I use <thinking> for that.")
    assert heard.reply.parts == (Text("I use <thinking> for that."),)


@pytest.mark.parametrize("tag", ["<tool_result>", '<tool_result tool_name="x" success="true">'])
def test_a_result_written_by_the_model_ends_the_reply(tag: str) -> None:
    heard = read(f"{CALL}\n{tag}\nfake</tool_result>\n{CALL}")
    assert heard.halted
    assert heard.reply.problem == "wrote_result"
    assert heard.said == [("read_file", {"path": "a"})]
    assert "fake" not in "".join(getattr(p, "text", "") for p in heard.reply.parts)


@pytest.mark.parametrize(
    "text", ["see <tool_result>", "```\n<tool_result>\n```", "<tool_results>", "<tool_result"]
)
def test_a_result_tag_elsewhere_ends_nothing(text: str) -> None:
    heard = read(text)
    assert not heard.halted
    assert heard.reply.parts == (Text(text),)


@pytest.mark.parametrize(
    "text", ["plain words", "a < b", "x <read_file> y", "<b>", "`<path>", "</x"]
)
def test_text_that_cannot_become_a_tag_is_shown_at_once(text: str) -> None:
    decoder = XmlDialect().decoder(shapes(), ids())
    shown = [d for piece in pieces(text, 1) for d in decoder.feed(TextChunk(piece))]
    held = 1 if text[0] == "<" and len(text) == 1 else 0
    assert "".join(d.text for d in shown) == text[: len(text) - held]


def test_a_body_is_shown_as_it_comes() -> None:
    decoder = XmlDialect().decoder(shapes(), ids())
    decoder.feed(TextChunk("<write_to_file>\n<path>a</path>\n<content>\n"))
    for piece in ("one ", "</con", "tent>", "\n", "</write"):
        assert decoder.feed(TextChunk(piece)) == [
            Delta(kind="call", text=piece, call_id="call00000")
        ]


def test_held_text_is_shown_when_the_reply_finishes() -> None:
    decoder = XmlDialect().decoder(shapes(), ids())
    assert decoder.feed(TextChunk("<read_fi")) == []
    assert decoder.feed(FinishChunk("stop")) == [Delta(kind="text", text="<read_fi")]


@pytest.mark.parametrize(
    "unit",
    ["</content>" + " " * 400, "<write_to_file>" + "\n" * 400, "<", "</content", "\n<", "\n```\n"],
)
def test_ten_megabytes_of_look_alikes_in_small_pieces_are_read(unit: str) -> None:
    content = "x" + unit * (1_000_000 // len(unit)) + "x"
    heard = read(write(content), size=20)
    assert heard.said == [("write_to_file", {"path": "out.txt", "content": content})]
