import asyncio
import contextlib
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.llm.script import Fault, Script, ScriptedCall, ScriptedReply, load_script, parse_script
from croze.llm.scripted import ScriptedModel, _shared, call_as_tags
from croze.types.context import Message, Prompt
from croze.types.errors import ModelError, RetriesExhausted, UsageError
from croze.types.model import ModelInfo, Usage
from croze.types.parts import CallResult, Text, ToolCall
from croze.types.stream import (
    CallChunk,
    FinishChunk,
    RetryChunk,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
)
from croze.types.tool import ToolDoc

INFO = ModelInfo(provider="scripted", model="s.yaml", window=9, max_output=9, wire="scripted")
TOOL = ToolDoc(name="read", summary="s", description="d", parameters={"type": "object"})
NATIVE = Prompt(system="Be brief.", messages=(), tools=(TOOL,))
XML = Prompt(system="Be brief.", messages=())


def said(*texts, role="user"):
    return Message(key=1, last=1, role=role, parts=tuple(Text(t) for t in texts))


def scripted(yaml):
    return ScriptedModel(INFO, parse_script(yaml.encode(), "s.yaml"))


async def play(model, prompt=NATIVE):
    return [chunk async for chunk in model.stream(model.encode(prompt))]


async def play_failing(model, prompt=NATIVE, error=ModelError):
    chunks = []
    try:
        async for chunk in model.stream(model.encode(prompt)):
            chunks.append(chunk)
    except error as caught:
        return chunks, caught
    pytest.fail(f"no {error.__name__}")


REPLY = """
- thinking: Look first.
  text: I read it.
  calls:
    - {name: read, args: {path: a.py, lines: [1, 2]}}
    - {name: list}
  usage: {input: 7, output: 3}
"""


async def test_a_script_plays_as_native_calls_where_the_prompt_has_tools():
    assert await play(scripted(REPLY)) == [
        ThinkingChunk("Look first."),
        TextChunk("I read it."),
        CallChunk(0, None, "read", '{"path":"a.py","lines":[1,2]}'),
        CallChunk(1, None, "list", "{}"),
        UsageChunk(Usage(input=7, output=3)),
        FinishChunk("tool_calls"),
    ]


async def test_the_same_script_plays_as_tags_where_it_has_none():
    chunks = await play(scripted(REPLY), XML)
    assert chunks[0] == ThinkingChunk("Look first.")
    assert "".join(c.text for c in chunks[1:] if isinstance(c, TextChunk)) == (
        "I read it.\n<read>\n<path>a.py</path>\n<lines>[1,2]</lines>\n</read>\n<list>\n</list>"
    )
    assert chunks[-1] == FinishChunk("stop")


async def test_text_that_only_looks_like_a_native_body_does_not_change_the_protocol():
    call = ToolCall(id="1", name="describe", args={"protocol": "native", "tools": ["a"]})
    message = Message(key=1, last=1, role="assistant", parts=(call,))
    chunks = await play(scripted(REPLY), msgspec.structs.replace(XML, messages=(message,)))
    assert not any(isinstance(c, CallChunk) for c in chunks)


@given(st.text(min_size=1), st.integers(1, 50))
async def test_any_chunk_size_gives_the_same_text(text, size):
    reply = ScriptedReply(text=text, calls=(ScriptedCall("t", {"x": text}),), chunk=size)
    chunks = await play(ScriptedModel(INFO, Script((reply,))))
    texts = [c.text for c in chunks if isinstance(c, TextChunk)]
    calls = [c for c in chunks if isinstance(c, CallChunk)]
    assert "".join(texts) == text
    assert all(len(t) == size for t in texts[:-1])
    assert calls[0].name == "t"
    assert msgspec.json.decode("".join(c.args for c in calls)) == {"x": text}


@pytest.mark.parametrize(
    ("args", "tags"),
    [
        ({"a": "x < y & </a>"}, "<t>\n<a>x < y & </a></a>\n</t>"),
        ({"a": "\nfirst\n"}, "<t>\n<a>\n\nfirst\n\n</a>\n</t>"),
        ({"a": True, "b": 1.5, "c": None, "d": {"k": "v"}},
         '<t>\n<a>true</a>\n<b>1.5</b>\n<c>null</c>\n<d>{"k":"v"}</d>\n</t>'),
        ('{"a": "raw"}', "<t>\n<a>raw</a>\n</t>"),
        ('{"a": ', '<t>\n{"a": \n</t>'),
        ("[1]", "<t>\n[1]\n</t>"),
    ],
)  # fmt: skip
def test_calls_are_written_as_tags_with_literal_values(args, tags):
    assert call_as_tags(ScriptedCall("t", args)) == tags


async def test_encoding_is_deterministic_and_appends_only():
    model = scripted("[]")
    first, second = said("one"), said("two", role="assistant")
    short = model.encode(msgspec.structs.replace(NATIVE, messages=(first,)))
    long = model.encode(msgspec.structs.replace(NATIVE, messages=(first, second)))
    assert short == scripted("[]").encode(msgspec.structs.replace(NATIVE, messages=(said("one"),)))
    assert long.startswith(short[:-2])
    assert msgspec.json.decode(long)["messages"][1]["role"] == "assistant"
    assert b'"prefill":true' in model.encode(msgspec.structs.replace(NATIVE, prefill=True))


async def test_usage_is_estimated_with_the_shared_prefix_as_cached():
    model = scripted("[{text: abcdefgh}, {text: x}, {text: x, usage: none}]")
    first = said("x" * 4000)
    prompt = msgspec.structs.replace(NATIVE, messages=(first,))
    body = model.encode(prompt)
    [_, usage, _] = await play(model, prompt)
    assert usage == UsageChunk(Usage(input=len(body) // 4, output=2, cached=0))
    longer = msgspec.structs.replace(NATIVE, messages=(first, said("news", role="assistant")))
    [_, usage, _] = await play(model, longer)
    assert usage.usage.cached == (len(body) - 2) // 4
    assert usage.usage.input == len(model.encode(longer)) // 4
    assert await play(model, longer) == [TextChunk("x"), FinishChunk("stop")]


@given(st.binary(max_size=200), st.binary(max_size=50), st.binary(max_size=50), st.booleans())
async def test_the_cached_figure_is_the_common_prefix_of_any_two_requests(head, a, b, large):
    if large:
        head *= 1000
    expected = len(head)
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        expected += 1
    assert _shared(head + a, head + b) == expected


async def test_a_cut_reply_ends_without_a_finish():
    assert await play(scripted("[{text: abcdef, fault: cut, after: 4}]")) == [TextChunk("abcd")]
    assert await play(scripted("[{text: abcdef, fault: cut}]")) == [TextChunk("abcdef")]


async def test_a_cut_can_fall_into_a_call():
    chunks = await play(
        scripted("[{text: abc, calls: [{name: t, args: {a: bcd}}], fault: cut, after: 8}]")
    )
    assert chunks == [TextChunk("abc"), CallChunk(0, None, "t", '{"a":')]


@pytest.mark.parametrize(
    ("fault", "code", "status", "retryable", "text"),
    [
        ("reset", "reset", None, True, "abc"),
        ("timeout", "idle_timeout", None, True, "abc"),
        ("malformed_stream", "malformed_stream", None, True, "abc"),
        ("error_401", "unauthorized", 401, False, ""),
        ("error_429", "rate_limited", 429, True, ""),
        ("error_500", "server_error", 500, True, ""),
        ("error_503", "overloaded", 503, True, ""),
        ("overflow", "overflow", 400, False, ""),
        ("tools_refused", "tools_refused", 400, False, ""),
    ],
)
async def test_faults_fail_as_the_wires_do(fault, code, status, retryable, text):
    chunks, error = await play_failing(scripted(f"[{{text: abc, fault: {fault}}}]"))
    assert "".join(c.text for c in chunks) == text
    assert (error.code, error.status, error.retryable) == (code, status, retryable)
    assert error.overflow == (fault == "overflow")
    assert error.tools_refused == (fault == "tools_refused")


async def test_after_a_fault_the_next_reply_answers_the_next_try():
    model = scripted("[{text: abc, fault: error_500, after: 2}, {text: whole}]")
    chunks, _ = await play_failing(model)
    assert chunks == [TextChunk("ab")]
    assert (await play(model))[0] == TextChunk("whole")


async def test_tools_are_refused_only_where_they_were_sent():
    script = "[{fault: tools_refused}, {text: as text}]"
    _, error = await play_failing(scripted(script))
    assert error.tools_refused
    assert (await play(scripted(script), XML))[0] == TextChunk("as text")


async def test_an_error_can_be_given_in_full():
    _, error = await play_failing(
        scripted("[{error: {message: slow down, status: 429, retryable: true, retry_after: 2}}]")
    )
    assert (str(error), error.retry_after, error.retryable) == ("slow down", 2.0, True)
    await play_failing(
        scripted("[{error: {message: gone, code: retries_exhausted}}]"), error=RetriesExhausted
    )


async def test_a_stalled_reply_waits_until_it_is_cancelled():
    model = scripted("[{text: abc, fault: stall}, {text: next}]")
    seen = asyncio.Event()

    async def read():
        async for chunk in model.stream(model.encode(NATIVE)):
            assert chunk == TextChunk("abc")
            seen.set()

    task = asyncio.create_task(read())
    await asyncio.wait_for(seen.wait(), 5)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await play(model))[0] == TextChunk("next")


async def test_an_empty_reply_has_a_finish_and_nothing_else():
    chunks = await play(scripted("[{text: abc, calls: [{name: t}], fault: empty, usage: none}]"))
    assert chunks == [FinishChunk("stop")]


async def test_a_malformed_call_is_broken_in_both_protocols():
    script = (
        "[{calls: [{name: a, args: {x: '1'}}, {name: b, args: {y: '2'}}], fault: malformed_call}]"
    )
    native = [c for c in await play(scripted(script)) if isinstance(c, CallChunk)]
    assert [c.args for c in native] == ['{"x":"1"}', '{"y":"2"']
    xml = "".join(c.text for c in await play(scripted(script), XML) if isinstance(c, TextChunk))
    assert xml == "<a>\n<x>1</x>\n</a>\n<b>\n<y>2"
    bare = "[{calls: [{name: a}], fault: malformed_call}]"
    xml = "".join(c.text for c in await play(scripted(bare), XML) if isinstance(c, TextChunk))
    assert xml == "<a>\n"


async def test_parts_give_a_reply_in_any_order():
    chunks = await play(
        scripted(
            """
- parts:
    - {text: before}
    - retry: {attempt: 1, delay: 0.5, code: reset, message: gone}
    - {thinking: hm, opaque: '{"s":1}'}
    - call: {name: t, id: call_x, args: '{"broken'}
    - {text: after}
  usage: none
  finish: length
"""
        )
    )
    assert chunks == [
        TextChunk("before"),
        RetryChunk(1, 0.5, "reset", "gone"),
        ThinkingChunk("hm"),
        ThinkingChunk(opaque='{"s":1}'),
        CallChunk(0, "call_x", "t", '{"broken'),
        TextChunk("after"),
        FinishChunk("length"),
    ]


async def test_expectations_are_met_by_what_came_since_the_last_reply_only():
    script = "[{text: a, expect: one}, {text: b, expect: [two, passed], matches: '^2 pass'}]"
    first = said("one passed")
    result = Message(
        key=2, last=2, role="user",
        parts=(CallResult(call_id="1", name="t", ok=True, message="two", text="x\n2 passed"),),
    )  # fmt: skip
    model = scripted(script)
    await play(model, msgspec.structs.replace(NATIVE, messages=(first,)))
    both = msgspec.structs.replace(NATIVE, messages=(first, said("a", role="assistant"), result))
    assert (await play(model, both))[0] == TextChunk("b")

    model = scripted("[{text: a}, {text: b, expect: one}]")
    await play(model, msgspec.structs.replace(NATIVE, messages=(first,)))
    _, error = await play_failing(model, both)
    assert error.code == "script_diverged"
    assert "reply 2 expects 'one'" in str(error)
    assert "2 passed" in str(error)


async def test_what_the_model_said_itself_meets_no_expectation():
    model = scripted("[{text: b, expect: passed}]")
    prompt = msgspec.structs.replace(NATIVE, messages=(said("passed", role="assistant"),))
    _, error = await play_failing(model, prompt)
    assert error.code == "script_diverged"


async def test_another_try_with_the_same_request_is_checked_against_all_of_it():
    model = scripted("[{fault: error_500, expect: one}, {text: b, expect: one}]")
    prompt = msgspec.structs.replace(NATIVE, messages=(said("one"),))
    await play_failing(model, prompt)
    assert (await play(model, prompt))[0] == TextChunk("b")


async def test_a_script_that_has_run_out_says_so():
    model = scripted("[{text: only}]")
    await play(model)
    _, error = await play_failing(model)
    assert error.code == "script_ended"
    assert "s.yaml has 1 replies" in str(error)
    assert not error.retryable


@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        ("- text: [1", "s.yaml:"),
        ("- txt: a", "unknown field `txt`"),
        ("- text: 3", "got `int`"),
        ("text: a", "unknown field `text`"),
        ("chunk: 1", "missing required field `replies`"),
        ("- fault: nope", "Invalid enum value 'nope'"),
        ("- fault: malformed_call", "malformed_call needs a call"),
        ("- {parts: [{text: a}], text: b}", "parts stands instead of"),
        ("- {parts: [{text: a, thinking: b}]}", "exactly one of"),
        ("- {parts: [{}]}", "exactly one of"),
        ("just text", "Expected `object`, got `str`"),
        ("- text: \x01", "s.yaml"),
        ("!!python/object/apply:os.system ['true']", "could not determine a constructor"),
    ],
)
def test_a_script_that_cannot_be_used_is_refused_with_its_place(yaml, said):
    with pytest.raises(UsageError) as caught:
        parse_script(yaml.encode(), "s.yaml")
    assert said in str(caught.value)
    assert caught.value.code == "script"


@given(st.binary(max_size=60))
def test_any_file_is_a_script_or_a_usage_error(data):
    with contextlib.suppress(UsageError):
        assert isinstance(parse_script(data, "s"), Script)


async def test_a_script_file_may_set_chunk_and_delay_for_all(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("{chunk: 2, replies: [{text: abcd, usage: none}, {text: abc, chunk: 0}]}")
    script = load_script(path)
    model = ScriptedModel(INFO, script)
    assert await play(model) == [TextChunk("ab"), TextChunk("cd"), FinishChunk("stop")]
    assert (await play(model))[0] == TextChunk("abc")
    await model.aclose()


def test_a_missing_script_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"nope\.yaml can't be read: No such file"):
        load_script(tmp_path / "nope.yaml")


async def test_a_wrong_regular_expression_is_the_scripts_fault():
    _, error = await play_failing(scripted("[{text: a, matches: '('}]"))
    assert "no regular expression" in str(error)


def test_every_fault_is_tested_here():
    with open(__file__, encoding="utf-8") as file:
        text = file.read()
    assert [f for f in get_args(Fault) if f'"{f}"' not in text and f"fault: {f}" not in text] == []
