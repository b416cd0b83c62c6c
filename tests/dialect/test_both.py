"""One suite over both protocols: what a model says must come out the same."""

from itertools import pairwise

import pytest

from croze.dialect.base import Dialect
from croze.dialect.faults import explain
from croze.types.context import Context, Message
from croze.types.model import Usage
from croze.types.parts import CallError, CallResult, Image, Part, Text, Thinking, ToolCall
from croze.types.stream import Delta, FinishChunk, RetryChunk, TextChunk, ThinkingChunk, UsageChunk
from tests.dialect.voices import Call, Think, Voice, doc, hear, ids, shapes

HARD = [
    "plain",
    "",
    "#!/bin/sh\necho hi\n",
    "\n\ntwo newlines first",
    "a </content> b",
    "s = '</write_to_file>'",
    "<b>bold</b> &lt;kept&gt; &amp; a < b && c > d",
    "<read_file>\n<path>x</path>\n</read_file>",
    'tab\tand "quotes" and \\ backslash \\u003c',
    "naïve 漢字 🙂",
    "windows\r\nlines\r\nend",
]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_script_gives_the_same_calls_in_order(voice: Voice, size: int) -> None:
    heard = voice.says(
        "Let me look.\n",
        Call("read_file", {"path": "a.py"}),
        Call("todo_read"),
        "and then\n",
        Call("write_to_file", {"path": "b.py", "content": "x = 1\ny = 2\n"}),
        size=size,
    )
    assert heard.said == [
        ("read_file", {"path": "a.py"}),
        ("todo_read", {}),
        ("write_to_file", {"path": "b.py", "content": "x = 1\ny = 2\n"}),
    ]
    assert heard.errors == []
    assert heard.reply.problem == ""
    assert [c.id for c in heard.reply.calls] == ["call00000", "call00001", "call00002"]


@pytest.mark.parametrize("content", HARD)
def test_content_comes_out_as_it_was_meant(voice: Voice, content: str) -> None:
    heard = voice.says(Call("write_to_file", {"path": "f", "content": content}))
    assert heard.said == [("write_to_file", {"path": "f", "content": content})]


@pytest.mark.parametrize(
    "content",
    [
        "s = '</content>\n</write_to_file>'\nmore",
        "<write_to_file>\n<path>x</path>\n<content>\ny\n</content>\n</write_to_file>",
        "<write_to_file>\n<path>",
    ],
)
def test_what_tags_cannot_carry_goes_through_call_tool(dialect: Dialect, content: str) -> None:
    args = {"path": "f", "content": content}
    script = Call("call_tool", {"name": "write_to_file", "arguments": args})  # type: ignore[dict-item]
    heard = Voice(dialect).says(script)
    ((name, got),) = heard.said
    assert name == "call_tool"
    assert isinstance(got["name"], str)
    if dialect.name == "xml":
        assert "<" not in str(got["arguments"])
        assert got["arguments"] == dialect.example("call_tool", script.args).split("arguments>")[
            1
        ].removesuffix("</")
        assert Voice(dialect).says(Call("write_to_file", args)).said == heard.said
    else:
        assert got["arguments"] == args


def test_an_alias_tag_is_told_as_the_tool_that_its_shape_names(voice: Voice) -> None:
    heard = voice.says(Call("Write", {"file_path": "a", "content": "b"}))
    assert heard.said == [("write_to_file", {"file_path": "a", "content": "b"})]


def test_deltas_open_carry_and_close_each_call(voice: Voice) -> None:
    heard = voice.says("Hi.\n", Call("read_file", {"path": "a"}), Call("todo_read"))
    calls = [d for d in heard.deltas if d.kind == "call"]
    raws = [c.raw for c in heard.reply.calls]
    assert calls == [
        Delta(kind="call", call_id="call00000", name="read_file"),
        Delta(kind="call", call_id="call00000", text=raws[0]),
        Delta(kind="call", call_id="call00000", done=True),
        Delta(kind="call", call_id="call00001", name="todo_read"),
        Delta(kind="call", call_id="call00001", text=raws[1]),
        Delta(kind="call", call_id="call00001", done=True),
    ]


def test_thinking_from_the_wire_stands_where_it_came(voice: Voice) -> None:
    heard = voice.says(Think("Which file?"), "That one.\n", Call("read_file", {"path": "a"}))
    kinds = [type(p) for p in heard.reply.parts]
    assert kinds[:2] == [Thinking, Text]
    assert heard.reply.parts[0] == Thinking(text="Which file?")
    assert Delta(kind="thinking", text="Which file?") in heard.deltas


def test_an_opaque_piece_closes_its_thinking_block(dialect: Dialect) -> None:
    decoder = dialect.decoder(shapes(), ids())
    chunks = [
        ThinkingChunk("one"),
        ThinkingChunk(opaque='{"signature":"a"}'),
        ThinkingChunk(opaque='{"redacted":"b"}'),
        ThinkingChunk("two"),
        TextChunk("said"),
    ]
    assert hear(decoder, chunks).reply.parts == (
        Thinking("one", opaque='{"signature":"a"}'),
        Thinking("", opaque='{"redacted":"b"}'),
        Thinking("two"),
        Text("said"),
    )


def test_an_unknown_tool_is_told_with_names_that_are_near(voice: Voice) -> None:
    heard = voice.says(Call("read_files", {"path": "a"}))
    assert heard.errors == ["unknown_tool"]
    assert heard.reply.calls[0].name == "read_files"
    assert "'read_files'" in heard.message
    assert "read_file" in heard.message.split("Did you mean")[1]


@pytest.mark.parametrize("kept", range(20, 60, 3))
def test_a_call_cut_in_the_middle_is_truncated(dialect: Dialect, kept: int) -> None:
    voice = Voice(dialect)
    args = {"path": "a.py", "content": "one\ntwo\nthree and a long line that goes on"}
    chunks = list(voice.chunks([Call("write_to_file", args)], size=1))
    heard = hear(dialect.decoder(shapes(), ids()), chunks[:kept], cut=True)
    assert heard.said == []
    assert heard.errors == ["truncated"]
    assert heard.reply.calls[0].name == "write_to_file"


def test_calls_before_the_cut_one_still_run(voice: Voice) -> None:
    script = [Call("read_file", {"path": "a"}), "And\n", Call("execute_command", {"command": "ls"})]
    chunks = list(voice.chunks(script, size=1))[:-8]
    heard = hear(voice.dialect.decoder(shapes(), ids()), chunks, cut=True)
    assert heard.said == [("read_file", {"path": "a"})]
    assert heard.errors == ["truncated"]


@pytest.mark.parametrize("seam", range(1, 90, 8))
def test_a_reply_cut_for_length_goes_on_without_a_seam(dialect: Dialect, seam: int) -> None:
    script = ["So:\n", Call("write_to_file", {"path": "a", "content": "first\nsecond"})]
    chunks = list(Voice(dialect).chunks(script, size=1))
    decoder = dialect.decoder(shapes(), ids())
    chunks = [*chunks[:seam], FinishChunk("length"), *chunks[seam:], FinishChunk("stop")]
    heard = hear(decoder, chunks)
    assert heard.said == [("write_to_file", {"path": "a", "content": "first\nsecond"})]


def test_a_retry_voids_what_came_before(dialect: Dialect) -> None:
    voice = Voice(dialect)
    first = list(voice.chunks(["lost", Think("lost"), Call("read_file", {"path": "lost"})]))[:-1]
    again = list(voice.chunks(["kept\n", Call("read_file", {"path": "kept"})]))
    void = RetryChunk(attempt=1, delay=0.5, code="overloaded", message="busy")
    heard = hear(dialect.decoder(shapes(), ids()), [*first, void, *again])
    assert Delta(kind="reset") in heard.deltas
    assert heard.said == [("read_file", {"path": "kept"})]
    assert not any("lost" in getattr(p, "text", "") for p in heard.reply.parts)


def test_usage_and_empty_pieces_say_nothing(dialect: Dialect) -> None:
    decoder = dialect.decoder(shapes(), ids())
    chunks = [TextChunk(""), UsageChunk(Usage(input=1)), ThinkingChunk(""), FinishChunk("stop")]
    heard = hear(decoder, chunks)
    assert heard.deltas == []
    assert [p for p in heard.reply.parts if getattr(p, "text", "")] == []


def context(*messages: Message) -> Context:
    return Context(system="head", messages=messages, tools=(doc(),), sections=(), tokens=0)


def message(*parts: Part, role: str = "assistant", key: int = 1) -> Message:
    return Message(key=key, last=key, role=role, parts=parts)  # type: ignore[arg-type]


def test_the_same_messages_give_the_same_objects_however_they_are_grouped(dialect: Dialect) -> None:
    messages = [
        message(Text("do it"), role="user", key=1),
        message(Thinking("hm"), Text("yes\n"), ToolCall(id="c1", name="todo_read"), key=2),
        message(CallResult(call_id="c1", name="todo_read", ok=True), role="user", key=3),
        message(Thinking("only this"), key=4),
        message(Text("end"), key=5),
    ]
    grown = [dialect.encode(context(*messages[:n])).messages for n in range(1, 6)]
    for shorter, longer in pairwise(grown):
        assert all(a is b for a, b in zip(shorter, longer, strict=False))
    fresh = dialect.encode(context(*messages[1:3])).messages
    assert [id(m) for m in fresh] == [id(m) for m in grown[-1][1:3]]
    assert len(grown[-1]) == 4


def test_a_message_that_needs_no_change_is_passed_on_itself(dialect: Dialect) -> None:
    plain = message(Text("hello"), Image(blob="b", media_type="image/png"), role="user")
    assert dialect.encode(context(plain)).messages == (plain,)


def test_thinking_is_not_sent_again_unless_it_is_signed(dialect: Dialect) -> None:
    signed = Thinking("deep", opaque='{"signature":"x"}', model="m")
    sent = dialect.encode(context(message(signed, Thinking("loose"), Text("done"))))
    assert sent.messages[0].parts == (signed, Text("done"))


def test_prefill_and_system_pass_through(dialect: Dialect) -> None:
    prompt = dialect.encode(context(message(Text("so far"))), prefill=True)
    assert (prompt.system, prompt.prefill) == ("head", True)
    assert prompt.tools == (() if dialect.name == "xml" else (doc(),))


def test_the_head_lists_other_tools_in_one_line_each(dialect: Dialect) -> None:
    text = dialect.advertise([doc()], [doc("move_file", summary="Move a file.")])
    assert "- move_file: Move a file." in text.splitlines()
    assert "Prefer small edits" in text
    assert "describe_tools" in text


def test_a_head_without_other_tools_does_not_speak_of_them(dialect: Dialect) -> None:
    assert "describe_tools" not in dialect.advertise([doc()], [])


def test_a_description_tells_parameters_and_types(dialect: Dialect) -> None:
    text = dialect.describe([doc()])
    lines = {line.split(" (")[0].strip("- <>:"): line for line in text.splitlines()}
    assert "required" in lines["path"]
    assert "required" not in lines["mode"]
    assert "write | append" in lines["mode"]
    assert "default write" in lines["mode"]
    assert "integer" in lines["line"]
    assert "null" not in lines["line"]
    assert "true | false" in lines["force"]
    assert "JSON list of string" in lines["tags"]
    assert "one" in text


@pytest.mark.parametrize("code", ["malformed", "truncated", "repeated_parameter", "ambiguous_body"])
def test_an_explanation_shows_the_fault_and_the_right_form(dialect: Dialect, code: str) -> None:
    text = explain(CallError(code, "What was wrong."), doc(), dialect)
    assert text.startswith("What was wrong.")
    assert "path (required)" in text
    assert "mode" in text
    args = {"path": "a.txt", "content": "one\ntwo"}
    if code == "ambiguous_body":
        form = dialect.example("call_tool", {"name": "write_to_file", "arguments": args})
    else:
        form = dialect.example("write_to_file", args)
    assert text.endswith(form)


def test_an_explanation_without_a_tool_or_examples_still_helps(dialect: Dialect) -> None:
    assert "listed" in explain(CallError("unknown_tool", "No such tool."), None, dialect)
    bare = doc(examples=())
    shown = explain(CallError("malformed", "Bad."), bare, dialect)
    assert shown.endswith(
        dialect.example("write_to_file", {"path": "(path)", "content": "(content)"})
    )
