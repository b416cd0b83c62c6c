from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.llm.continuation import (
    MAX_CONTINUATIONS,
    Continuation,
    join,
    plan,
)
from croze.types.model import ModelInfo
from croze.types.parts import CallError, Part, Text, Thinking, ToolCall


class Reply(NamedTuple):
    parts: tuple[Part, ...]


CUT = CallError(code="truncated", message="cut")
OPEN_TAG = ToolCall(id="1", name="write", raw="\n<write>\n<content>abc", error=CUT)
OPEN_JSON = ToolCall(id="1", name="write", raw='{"content":"ab', error=CUT)


def model(prefill, wire="openai"):
    return ModelInfo(
        provider="p", model="m", window=1000, max_output=100, prefill=prefill, wire=wire
    )


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((Text("half a sen"),), Continuation.PREFIX),
        ((Text("I write.\n"), OPEN_TAG), Continuation.PREFIX),
        ((Thinking("hm", opaque='"sig"'), Text("half")), Continuation.PREFIX),
        ((Text("I write."), OPEN_JSON), Continuation.MESSAGE),
        ((Thinking("on and on"),), Continuation.MESSAGE),
        ((Text(" \n"),), Continuation.MESSAGE),
        ((), Continuation.MESSAGE),
    ],
)
def test_a_model_with_prefill_goes_on_with_its_text_but_not_with_native_calls(parts, expected):
    assert plan(Reply(parts), model(True), count=0) is expected
    assert plan(Reply(parts), model(False), count=0) is Continuation.MESSAGE


def test_anthropic_is_given_no_prefix_that_ends_in_white_space():
    reply = Reply((Text("def f():\n    "),))
    assert plan(reply, model(True, "anthropic"), count=0) is Continuation.MESSAGE
    assert plan(reply, model(True), count=0) is Continuation.PREFIX


@given(st.integers(0, 20), st.integers(0, 20), st.booleans())
def test_continuations_stop_at_their_limit(count, most, prefill):
    how = plan(Reply((Text("x"),)), model(prefill), count=count, most=most)
    assert (how is Continuation.STOP) == (count >= most)


def test_six_continuations_are_made_by_default():
    assert MAX_CONTINUATIONS == 6
    reply = Reply((Text("x"),))
    assert plan(reply, model(False), count=5) is Continuation.MESSAGE
    assert plan(reply, model(False), count=6) is Continuation.STOP


@given(st.text(), st.text())
def test_joining_only_ever_leaves_out_what_first_ends_with_or_a_fence_line(first, second):
    joined = join(first, second)
    assert joined.startswith(first)
    rest = joined[len(first) :]
    assert second.endswith(rest)
    left_out = second[: len(second) - len(rest)]
    assert first.endswith(left_out) or "```" in left_out or "~~~" in left_out


@given(st.text("abc \n"), st.text("xyz \n"))
def test_nothing_is_lost_where_nothing_overlaps(first, second):
    assert join(first, second) == first + second


@given(
    st.text("abcdefg ._\n", min_size=30, max_size=300),
    st.text("xyz0123456789 \n", min_size=1, max_size=300),
    st.data(),
)
def test_a_long_repetition_is_left_out(first, new, data):
    first += "the very last words of it"
    length = data.draw(st.integers(25, len(first)))
    assert join(first, first[-length:] + new) == first + new


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        ("ha ha", " ha ha", "ha ha ha ha"),
        ("    }\n  }\n", "    }\n  }\n", "    }\n  }\n    }\n  }\n"),
        ("a\ndef parse(text", "def parse(text, more):", "a\ndef parse(text, more):"),
        ("x = 1\n", "x = 1\n", "x = 1\nx = 1\n"),
        ("", "abc", "abc"),
        ("abc", "", "abc"),
        (
            "see\n```python\na = 1\n",
            "```python\nb = 2\n```\n",
            "see\n```python\na = 1\nb = 2\n```\n",
        ),
        ("```py\na = 1\n", "\n```py\nb\n", "```py\na = 1\nb\n"),
        (
            "```python\ndef f(one, two, three):\n    return one + tw",
            "```python\ndef f(one, two, three):\n    return one + two\n```",
            "```python\ndef f(one, two, three):\n    return one + two\n```",
        ),
        ("```python\na = 1\n", "```\nDone.", "```python\na = 1\n```\nDone."),
        ("no fence\n", "```python\nb\n```", "no fence\n```python\nb\n```"),
        ("```a\nb\n```\n", "```a\nc\n```", "```a\nb\n```\n```a\nc\n```"),
        ("````md\ntext\n", "```python\nb\n", "````md\ntext\n```python\nb\n"),
        ("~~~sh\nls\n", "~~~sh\npwd\n", "~~~sh\nls\npwd\n"),
    ],
)
def test_seams_as_models_make_them(first, second, joined):
    assert join(first, second) == joined


def test_joining_large_replies_is_bounded():
    first = "word " * 400_000
    assert join(first, first).startswith(first)
    assert len(join("```x\n" * 200_000, "tail" * 100_000)) == 1_000_000 + 400_000
