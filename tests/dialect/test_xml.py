"""The xml protocol's side towards the model: what is advertised, and how messages are encoded."""

import gc
import weakref

import pytest

from croze.dialect.xml import XmlDialect
from croze.types.context import Context, Message
from croze.types.parts import CallResult, Image, Part, Text, Thinking, ToolCall
from croze.types.tool import ToolExample
from tests.dialect.voices import doc, read


def encoded(*parts: Part, role: str = "assistant") -> tuple[Part, ...]:
    message = Message(key=1, last=1, role=role, parts=parts)  # type: ignore[arg-type]
    context = Context(system="s", messages=(message,), tools=(), sections=(), tokens=0)
    (sent,) = XmlDialect().encode(context).messages
    return sent.parts


def test_a_result_is_a_tag_with_literal_content() -> None:
    result = CallResult(call_id="c", name="read_file", ok=True, message="2 lines", text="a <b> &\n")
    assert encoded(result, role="user") == (
        Text(
            '<tool_result tool_name="read_file" success="true">\n<message>2 lines</message>\n'
            "<content>\na <b> &\n\n</content>\n</tool_result>"
        ),
    )


def test_results_and_text_of_a_message_become_one_text() -> None:
    failed = CallResult(call_id="c", name="x", ok=False, message="no")
    (sent,) = encoded(failed, failed, Text("Go on."), role="user")
    assert isinstance(sent, Text)
    assert sent.text.count('success="false"') == 2
    assert sent.text.endswith("</tool_result>\nGo on.")


def test_an_image_stays_between_texts() -> None:
    image = Image(blob="b", media_type="image/png")
    assert encoded(Text("a"), image, Text("b"), role="user") == (Text("a"), image, Text("b"))


def test_a_reply_goes_back_as_it_was_written() -> None:
    text = "I read.\n<read_file >\n<path>a</path>\n</read_file>\nand\n<todo_read/>\n"
    assert encoded(*read(text).reply.parts) == (Text(text),)


def test_a_call_from_the_other_protocol_is_written_as_tags() -> None:
    call = ToolCall(
        id="c", name="read_file", args={"path": "a", "start_line": 3, "deep": [True]}, raw='{"x":1}'
    )
    (sent,) = encoded(Text("I read.\n"), call)
    assert isinstance(sent, Text)
    assert sent.text == (
        "I read.\n<read_file>\n<path>a</path>\n<start_line>3</start_line>\n"
        "<deep>[true]</deep>\n</read_file>"
    )


def test_a_reply_of_thinking_alone_is_left_out() -> None:
    messages = (
        Message(key=1, last=1, role="user", parts=(Text("hi"),)),
        Message(key=2, last=2, role="assistant", parts=(Thinking("hm"), Text("\n"))),
    )
    context = Context(system="s", messages=messages, tools=(), sections=(), tokens=0)
    assert XmlDialect().encode(context).messages == messages[:1]


def test_encoded_messages_are_let_go_with_their_context() -> None:
    dialect = XmlDialect()
    plain = Message(key=1, last=1, role="user", parts=(Text("hi"),))
    changed = Message(key=2, last=2, role="assistant", parts=(Thinking("hm"), Text("x")))
    context = Context(system="s", messages=(plain, changed), tools=(), sections=(), tokens=0)
    dialect.encode(context)
    seen = [weakref.ref(plain), weakref.ref(changed)]
    del plain, changed, context
    empty = Context(system="s", messages=(), tools=(), sections=(), tokens=0)
    assert dialect.encode(empty).messages == ()
    gc.collect()
    assert [ref() for ref in seen] == [None, None]


def test_a_tool_is_described_with_its_tags_and_examples() -> None:
    text = XmlDialect().advertise([doc()], [])
    assert "## write_to_file\nWrite a whole file; its folders are made.\n" in text
    assert "- <path> (required): The file, relative to the project." in text
    assert "- <mode> (write | append, default write)" in text
    assert (
        "A short file:\n<write_to_file>\n<path>a.txt</path>\n<content>\none\ntwo\n</content>\n"
        "</write_to_file>"
    ) in text


def test_a_tool_without_parameters_is_shown_called() -> None:
    bare = doc("todo_read", parameters={"type": "object", "properties": {}}, examples=())
    assert XmlDialect().describe([bare]).endswith("<todo_read>\n</todo_read>")


def test_the_form_itself_is_short() -> None:
    assert len(XmlDialect().advertise([], [])) < 1_600


def test_every_example_in_the_head_is_read_back_as_meant() -> None:
    args = {"path": "a", "content": "see </write_to_file>\n  and <b>"}
    tool = doc(examples=(ToolExample("Odd", args),))
    shown = XmlDialect().describe([tool]).split("Odd:\n")[1]
    assert read(shown).said == [("write_to_file", args)]


@pytest.mark.parametrize("value", ["", " x ", "a\nb", "\n", "a\n", "<", "naïve"])
def test_an_example_gives_back_its_values(value: str) -> None:
    shown = XmlDialect().example("write_to_file", {"path": "p", "content": value})
    assert read(shown).said == [("write_to_file", {"path": "p", "content": value})]
