"""The fold: transcript, late facts, totals."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.store.fold import content_of, fold
from croze.types.conversation import ConversationMessage, LlmMetadata
from croze.types.event import (
    Annotated,
    Body,
    Event,
    FactAdded,
    ModelCalled,
    ModelSaid,
    SessionOpened,
    Stopped,
    ToolReturned,
    Unknown,
    UserSaid,
)
from croze.types.model import Cost, Usage
from croze.types.parts import Image, Text, Thinking, ToolCall

SESSION = "01234567-0000-4000-8000-000000000000"


def events(*bodies: Body, at: int = 100) -> list[Event]:
    return [
        Event(session=SESSION, seq=seq, at=at + seq, body=body)
        for seq, body in enumerate(bodies, start=1)
    ]


def said(text: str, message_id: str = "u", **rest: Any) -> UserSaid:
    return UserSaid(message_id=message_id, parts=(Text(text),), **rest)


def replied(*parts: Any, message_id: str = "a", step: int = 1, **rest: Any) -> ModelSaid:
    return ModelSaid(message_id=message_id, step=step, model="p:m", parts=parts, **rest)


def called(step: int, purpose: str = "main") -> ModelCalled:
    return ModelCalled(
        step=step,
        model="p:m",
        head="",
        history=0,
        body="",
        rolling="",
        encoder=1,
        tokens=0,
        size=0,
        purpose=purpose,
    )


OPENED = SessionOpened(name="N", description="D", namespace="ns", project="/p", metadata={"a": 1})


def test_a_whole_turn_becomes_a_transcript_with_its_figures() -> None:
    call = ToolCall("c1", "read_file", {"path": "x"}, raw="<read_file><path>x</path></read_file>")
    conversation = fold(
        events(
            OPENED,
            FactAdded(key="rules", message_id="f", text="obey", reply="I will"),
            said("please\n  look", metadata={"from": "cli"}),
            called(1),
            replied(
                Thinking("hm"),
                Text("Looking.\n"),
                call,
                usage=Usage(100, 10, 40),
                cost=Cost(0.5, 0.25),
                metadata={"k": "v"},
            ),
            ToolReturned(
                call_id="c1",
                message_id="a",
                name="read_file",
                ok=True,
                message="read x",
                text="1 | data",
            ),
            called(2),
            replied(Text("Done."), message_id="b", step=2, usage=Usage(120, 5), cost=Cost(0.25)),
            Stopped(reason="done"),
        )
    ).conversation()
    assert conversation.messages == (
        ConversationMessage("u", "user", "please\n  look", 103, {"from": "cli"}, None, 3),
        ConversationMessage(
            "a",
            "assistant",
            "Looking.\n<read_file><path>x</path></read_file>",
            105,
            {"k": "v"},
            LlmMetadata("p:m", 100, 10, 40, 0.5, 0.25, 1),
            5,
        ),
        ConversationMessage(
            "c1",
            "tool",
            "read x\n1 | data",
            106,
            {"call_id": "c1", "reply_to": "a", "name": "read_file", "ok": True},
            None,
            6,
        ),
        ConversationMessage(
            "b", "assistant", "Done.", 108, {}, LlmMetadata("p:m", 120, 5, None, 0.25, None, 2), 8
        ),
    )
    assert (conversation.id, conversation.name, conversation.description) == (SESSION, "N", "D")
    assert (conversation.namespace, conversation.project) == ("ns", "/p")
    assert (conversation.created_at, conversation.updated_at) == (101, 109)
    assert (conversation.last_seq, conversation.message_count, conversation.steps) == (9, 4, 2)
    assert (conversation.input_tokens, conversation.output_tokens) == (220, 15)
    assert conversation.cached_tokens == 40
    assert (conversation.cost, conversation.unpriced) == (0.75, 1)
    assert conversation.tools == {"read_file": 1}
    assert conversation.first == "please look"
    assert conversation.model == "p:m"


def test_a_reply_that_was_continued_is_one_message() -> None:
    log = events(
        OPENED,
        replied(Text("first "), message_id="a", usage=Usage(1, 2), cost=Cost(1, 1), partial=True),
        replied(Text("second"), message_id="b", continues="a", usage=Usage(3, 4), cost=Cost(1, 2)),
        Annotated(target="b", metadata={"late": True}),
    )
    (message,) = fold(log).conversation().messages
    assert (message.message_id, message.content) == ("a", "first second")
    assert message.metadata == {"late": True}
    assert message.llm_metadata == LlmMetadata("p:m", 4, 6, None, 2, 3, 1)
    assert fold(log).summary().cost == 5


def test_a_joined_reply_takes_the_place_of_its_beginning_and_both_are_paid() -> None:
    (message,) = (
        result := fold(
            events(
                OPENED,
                replied(Text("first "), message_id="a", cost=Cost(1, 1)),
                replied(
                    Text("first second"),
                    message_id="b",
                    continues="a",
                    joined=True,
                    cost=Cost(1, 1),
                ),
            )
        ).conversation()
    ).messages
    assert (message.message_id, message.content) == ("b", "first second")
    assert result.cost == 4


def test_an_unknown_part_makes_a_messages_figure_unknown_but_not_the_known_sum() -> None:
    result = fold(
        events(
            OPENED,
            replied(Text("x"), usage=Usage(10, 1), cost=Cost(1, 1)),
            replied(Text("y"), message_id="b", continues="a"),
        )
    ).conversation()
    assert result.messages[0].llm_metadata == LlmMetadata("p:m", conversation_round=1)
    assert (result.cost, result.unpriced, result.input_tokens) == (2, 1, 10)
    nothing = fold(events(OPENED, replied(Text("z")))).summary()
    assert (nothing.cost, nothing.unpriced) == (None, 1)
    assert fold(events(OPENED)).summary().cost is None


def test_auxiliary_calls_are_paid_but_not_shown() -> None:
    result = fold(
        events(
            OPENED,
            called(1, "summary"),
            replied(Text("summary"), purpose="summary", cost=Cost(1, 1)),
            called(2),
            replied(Text("shown"), message_id="b", step=2, cost=Cost(1, 1)),
        )
    ).conversation()
    assert [message.content for message in result.messages] == ["shown"]
    assert (result.cost, result.steps) == (4, 2)


def test_late_facts_and_revisions_are_merged() -> None:
    result = fold(
        events(
            OPENED,
            said("wrong", metadata={"a": 1, "b": 1}),
            replied(Text("r"), usage=Usage(1, 1)),
            Annotated(target="u", content="right", metadata={"b": 2}),
            Annotated(target="a", usage=Usage(7, 8), cost=Cost(0.5, 0.5)),
            Annotated(target="nobody", content="lost"),
            Annotated(name="New", metadata={"z": 1}),
            Annotated(description=""),
            Unknown("Later", 1, "{}"),
        )
    ).conversation()
    assert result.messages[0].content == "right"
    assert result.messages[0].metadata == {"a": 1, "b": 2}
    assert result.messages[1].llm_metadata == LlmMetadata("p:m", 7, 8, None, 0.5, 0.5, 1)
    assert (result.name, result.description, result.metadata) == ("New", "", {"a": 1, "z": 1})
    assert (result.cost, result.first) == (1, "right")


@pytest.mark.parametrize(
    ("parts", "content"),
    [
        ((), ""),
        ((Thinking("only thinking"),), ""),
        ((Text("a"), Text("b")), "ab"),
        (
            (Text("look"), ToolCall("c", "t", {"p": 1}, raw='{"p": 1}')),
            [
                {"type": "text", "text": "look"},
                {"type": "call", "id": "c", "name": "t", "args": {"p": 1}},
            ],
        ),
        (
            (Text(""), Image("hash", "image/png")),
            [{"type": "image", "blob": "hash", "media_type": "image/png"}],
        ),
    ],
)
def test_content_is_text_where_the_message_was_text(parts: Any, content: Any) -> None:
    assert content_of(parts) == content


def test_an_empty_log_folds_to_the_default_name() -> None:
    assert fold([], SESSION).summary().name == "Conversation 01234567"


@given(st.data())
def test_a_fold_of_a_prefix_never_fails_and_counts_what_it_shows(data: st.DataObject) -> None:
    ids = st.sampled_from(["a", "b", "c"])
    body = st.one_of(
        st.builds(said, st.text(max_size=5), ids),
        st.builds(
            lambda i, c, j: replied(Text("x"), message_id=i, continues=c, joined=j),
            ids,
            st.none() | ids,
            st.booleans(),
        ),
        st.builds(
            lambda t, c: Annotated(target=t, content=c), st.none() | ids, st.none() | st.just("new")
        ),
        st.builds(lambda i: ToolReturned(call_id=i, message_id="a", name="t", ok=True), ids),
        st.builds(called, st.integers(0, 3), st.sampled_from(["main", "summary"])),
    )
    log = events(*data.draw(st.lists(body, max_size=12)))
    cut = data.draw(st.integers(0, len(log)))
    result = fold(log[:cut], SESSION).conversation()
    assert result.message_count == len(result.messages)
    assert result.last_seq == cut
