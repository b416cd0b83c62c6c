"""The native protocol: calls from function-call pieces."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.dialect.native import NativeDialect
from croze.types.context import Context, Message
from croze.types.parts import Text, ToolCall
from croze.types.stream import CallChunk, Chunk, FinishChunk, TextChunk
from tests.dialect.voices import Heard, doc, hear, ids, shapes


def hears(*chunks: Chunk, cut: bool = False) -> Heard:
    return hear(NativeDialect().decoder(shapes(), ids()), chunks, cut=cut)


def calls(args: str, name: str = "read_file") -> Heard:
    return hears(CallChunk(0, "p0", name), CallChunk(0, args=args), FinishChunk("tool_calls"))


def test_typed_values_stay_typed() -> None:
    args = {"path": "a", "start_line": 3, "query": None, "deep": {"x": [1, 2.5, True]}}
    assert calls(json.dumps(args)).said == [("read_file", args)]


def test_no_arguments_at_all_are_an_empty_object() -> None:
    assert calls("", "todo_read").said == [("todo_read", {})]
    assert calls(" \n", "todo_read").said == [("todo_read", {})]


def test_the_source_and_the_providers_id_are_kept() -> None:
    (call,) = calls('{ "path":"a" }').reply.calls
    assert (call.raw, call.provider_id, call.id) == ('{ "path":"a" }', "p0", "call00000")


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ('{"path": "a"', "malformed"),
        ('{"path": "a"}}', "malformed"),
        ("['a']", "malformed"),
        ('["a"]', "malformed"),
        ("null", "malformed"),
        ('{"path": NaN}', "malformed"),
        ('{"path": "\\ud800"}', "malformed"),
        ("[" * 200_000, "malformed"),
        ('{"n": ' + "9" * 5000 + "}", "malformed"),
        ('{"path": "a", "path": "b"}', "repeated_parameter"),
        ('{"path": {"x": 1, "x": 2}}', "repeated_parameter"),
    ],
)
def test_arguments_that_cannot_be_read_are_refused(args: str, code: str) -> None:
    heard = calls(args)
    assert (heard.said, heard.errors) == ([], [code])
    assert heard.reply.calls[0].raw == args


def test_a_whole_surrogate_pair_is_one_character() -> None:
    assert calls('{"path": "\\ud83d\\ude42"}').said == [("read_file", {"path": "🙂"})]


def test_a_raw_line_break_in_a_string_is_taken() -> None:
    assert calls('{"path": "a\nb"}').said == [("read_file", {"path": "a\nb"})]


def test_a_cut_call_is_truncated_even_where_its_json_parses() -> None:
    heard = hears(CallChunk(0, "p", "read_file", '{"path": "a"}'), cut=True)
    assert heard.errors == ["truncated"]


def test_text_after_a_call_closes_it() -> None:
    heard = hears(CallChunk(0, "p", "read_file", '{"path": "a"}'), TextChunk("and"), cut=True)
    assert heard.said == [("read_file", {"path": "a"})]


def test_pieces_of_several_calls_may_mix() -> None:
    heard = hears(
        CallChunk(0, "p0", "read_file", '{"path"'),
        CallChunk(1, "p1", "execute_command", '{"command"'),
        CallChunk(0, args=': "a"}'),
        CallChunk(1, args=': "b"}'),
        FinishChunk("tool_calls"),
    )
    assert heard.said == [("read_file", {"path": "a"}), ("execute_command", {"command": "b"})]


def test_calls_that_all_bear_the_same_index_are_told_apart_by_id() -> None:
    heard = hears(
        CallChunk(0, "p0", "read_file", '{"path": "a"}'),
        CallChunk(0, "p1", "read_file", '{"path": "b"}'),
    )
    assert heard.said == [("read_file", {"path": "a"}), ("read_file", {"path": "b"})]
    assert [c.provider_id for c in heard.reply.calls] == ["p0", "p1"]


def test_a_name_that_is_sent_again_stays_one_name() -> None:
    heard = hears(
        CallChunk(0, "p0", "read_file"),
        CallChunk(0, "p0", "read_file", '{"path": "a"}'),
    )
    assert heard.said == [("read_file", {"path": "a"})]


def test_a_name_in_pieces_is_put_together() -> None:
    heard = hears(CallChunk(0, "p0", "read_"), CallChunk(0, name="file", args='{"path": "a"}'))
    assert heard.said == [("read_file", {"path": "a"})]


def test_a_call_without_a_name_is_malformed() -> None:
    assert hears(CallChunk(0, "p0", args="{}")).errors == ["malformed"]


def test_a_tag_in_the_text_stays_text() -> None:
    text = "<read_file>\n<path>a</path>\n</read_file>\n<tool_result>x</tool_result>"
    heard = hears(TextChunk(text))
    assert heard.reply.parts == (Text(text),)
    assert not heard.halted


def test_a_call_once_written_as_tags_goes_on_as_its_arguments() -> None:
    call = ToolCall(id="c", name="read_file", args={"path": "a"}, raw="<read_file>…</read_file>")
    said = Message(key=1, last=1, role="assistant", parts=(call,))
    context = Context(system="", messages=(said,), tools=(doc(),), sections=(), tokens=0)
    (sent,) = NativeDialect().encode(context).messages
    assert sent.parts == (ToolCall(id="c", name="read_file", args={"path": "a"}),)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=8), json_values, max_size=4), st.integers(1, 30))
def test_any_arguments_arrive_whole_in_any_pieces(args: dict[str, object], size: int) -> None:
    raw = json.dumps(args)
    chunks = [CallChunk(0, args=raw[i : i + size]) for i in range(0, len(raw), size)]
    heard = hears(CallChunk(0, "p", "read_file"), *chunks, FinishChunk("tool_calls"))
    assert heard.said == [("read_file", args)]


@given(st.text(), st.booleans())
def test_no_argument_text_raises(raw: str, cut: bool) -> None:
    heard = hears(CallChunk(0, "p", "read_file", raw), cut=cut)
    assert len(heard.reply.calls) == 1


def test_other_names_of_a_tool_are_never_offered() -> None:
    assert "Did you mean write_to_file?" in calls("{}", "Writer").message
