"""The projection keeps what was sent, pairs what belongs together, and is the same however it is fed."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from croze.context.project import SUMMARY_HEADING, Projection, project
from croze.types.context import Context, Message
from croze.types.event import (
    Body,
    Compacted,
    Event,
    FactAdded,
    ModelCalled,
    ModelSaid,
    Notice,
    Stopped,
    TodoSet,
    ToolReturned,
    ToolStarted,
    UserSaid,
)
from croze.types.parts import CallResult, Text, Thinking, ToolCall
from croze.types.tool import Access


def called(step: int = 1, *, prefill: bool = False) -> ModelCalled:
    return ModelCalled(
        step=step,
        model="m",
        head="h",
        history=1,
        body="b",
        rolling="r",
        encoder=1,
        tokens=1,
        size=1,
        prefill=prefill,
    )


def said(message_id: str, *parts: Text | ToolCall | Thinking, **more: object) -> ModelSaid:
    return ModelSaid(message_id=message_id, step=1, model="m", parts=parts, tokens=7, **more)  # type: ignore[arg-type]


def user(message_id: str, text: str) -> UserSaid:
    return UserSaid(message_id=message_id, parts=(Text(text=text),), tokens=5)


def returned(call_id: str, text: str = "ok", tokens: int = 3) -> ToolReturned:
    return ToolReturned(
        call_id=call_id, message_id=f"{call_id}-result", name="t", ok=True, text=text, tokens=tokens
    )


def events(*bodies: Body) -> list[Event]:
    """The bodies as a log; a request holds all that stands before it."""
    return [
        Event(
            "s",
            seq,
            seq,
            replace(body, history=seq - 1) if isinstance(body, ModelCalled) else body,
        )
        for seq, body in enumerate(bodies, 1)
    ]


def context_of(log: Sequence[Event]) -> Context:
    return project(log, "head", (), ())


def plain(messages: Sequence[Message]) -> list[tuple[object, ...]]:
    return [(m.role, m.parts, m.layer) for m in messages]


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """A session as the loop would write one: turns with facts, steps, calls, results, notes."""
    bodies: list[Body] = []
    count = 0

    def fresh() -> str:
        nonlocal count
        count += 1
        return f"{count:08d}-id"

    for _turn in range(draw(st.integers(1, 4))):
        bodies.append(user(fresh(), draw(st.text(max_size=20))))
        for _step in range(draw(st.integers(1, 4))):
            if draw(st.booleans()):
                bodies.append(
                    FactAdded(
                        key="rules",
                        message_id=fresh(),
                        text=draw(st.text(max_size=10)),
                        reply=draw(st.sampled_from(["", ""])),
                        tokens=2,
                    )
                )
            bodies.append(called())
            if draw(st.integers(0, 5)) == 0:
                bodies.append(user(fresh(), "said while the model speaks"))
            calls = [
                ToolCall(id=fresh()[:9], name="t", raw="<t></t>")
                for _ in range(draw(st.integers(0, 3)))
            ]
            bodies.append(said(fresh(), Text(text=draw(st.text(max_size=20))), *calls))
            for call in calls:
                bodies.append(ToolStarted(call_id=call.id, name="t", access=Access(read=True)))
            if draw(st.integers(0, 5)) == 0:
                bodies.append(user(fresh(), "said while the tools run"))
            for call in calls:
                tokens = draw(st.sampled_from([3, 500]))
                bodies.append(returned(call.id, draw(st.text(max_size=10)), tokens))
            if draw(st.booleans()):
                bodies.append(TodoSet(items=()))
            if draw(st.booleans()):
                bodies.append(Notice(level="info", code="x", text="y"))
        bodies.append(Stopped(reason="done"))
    return events(*bodies)


def test_results_stand_in_call_order_in_whatever_order_they_came() -> None:
    log = events(
        user("1", "go"),
        called(),
        said("2", *(ToolCall(id=name, name="t", args={}) for name in ("a", "b", "c"))),
        returned("a"),
        returned("c"),
        returned("b"),
        called(),
        said("3", Text(text="done")),
    )
    parts = context_of(log).messages[2].parts
    assert [part.call_id for part in parts if isinstance(part, CallResult)] == ["a", "b", "c"]


@settings(max_examples=100)
@given(logs())
def test_each_request_is_a_prefix_of_the_next(log: list[Event]) -> None:
    projection = Projection()
    before: tuple[Message, ...] | None = None
    for event in log:
        if isinstance(event.body, ModelCalled):
            now = projection.context("head", (), ()).messages
            if before is not None:
                assert plain(now)[: len(before)] == plain(before)
                assert all(a is b for a, b in zip(before, now, strict=False))
            before = now
        projection.feed(event)


@settings(max_examples=100)
@given(logs())
def test_the_fold_event_by_event_equals_the_projection_from_scratch(log: list[Event]) -> None:
    projection = Projection()
    for seq, event in enumerate(log, 1):
        projection.feed(event)
        fresh = project(log[:seq], "head", (), ())
        now = projection.context("head", (), ())
        assert plain(now.messages) == plain(fresh.messages)
        assert now.sections == fresh.sections
    again = Projection()
    for event in log:
        again.feed(event)
    assert again.rolling() == projection.rolling()


@settings(max_examples=100)
@given(logs())
def test_results_stand_right_below_their_calls_and_tokens_add_up(log: list[Event]) -> None:
    context = context_of(log)
    for index, message in enumerate(context.messages):
        calls = [p.id for p in message.parts if isinstance(p, ToolCall)]
        if calls:
            below = context.messages[index + 1]
            results = [p.call_id for p in below.parts if isinstance(p, CallResult)]
            assert results == calls
            assert below.parts[: len(results)] == tuple(
                p for p in below.parts if isinstance(p, CallResult)
            )
    assert sum(s.tokens for s in context.sections) == sum(m.tokens for m in context.messages)


def test_something_said_while_the_reply_streams_comes_after_the_reply() -> None:
    log = events(
        user("aaaaaaaa-1", "first"),
        called(),
        user("bbbbbbbb-1", "second"),
        said("cccccccc-1", Text(text="reply")),
    )
    texts = [[p.text for p in m.parts if isinstance(p, Text)] for m in context_of(log).messages]
    assert texts == [
        ["first\n\n[Hint: message_id: aaaaaaaa]"],
        ["reply"],
        ["second\n\n[Hint: message_id: bbbbbbbb]"],
    ]


def test_only_long_results_carry_their_message_id() -> None:
    log = events(
        user("aaaaaaaa-1", "go"),
        called(),
        said("cccccccc-1", ToolCall(id="1", name="t"), ToolCall(id="2", name="t")),
        returned("1", "short", 150),
        returned("2", "long", 151),
    )
    results = [p for p in context_of(log).messages[2].parts if isinstance(p, CallResult)]
    assert [r.text for r in results] == ["short", "long\n\n[Hint: message_id: 2-result]"]


def test_thinking_is_sent_again_only_where_it_is_signed_and_led_to_a_call() -> None:
    signed = Thinking(text="hm", opaque="{}", model="m")
    log = events(
        user("aaaaaaaa-1", "go"),
        called(),
        said("bbbbbbbb-1", Thinking(text="plain"), signed, ToolCall(id="1", name="t")),
        returned("1"),
        called(),
        said("cccccccc-1", signed, Text(text="done")),
    )
    messages = context_of(log).messages
    assert [type(p) for p in messages[1].parts] == [Thinking, ToolCall]
    assert [type(p) for p in messages[3].parts] == [Text]


def test_a_reply_that_the_model_continued_itself_stands_once_and_whole() -> None:
    log = events(
        user("aaaaaaaa-1", "go"),
        called(),
        said("bbbbbbbb-1", Text(text="one, "), finish="length"),
        called(prefill=True),
        said("cccccccc-1", Text(text="one, two"), continues="bbbbbbbb-1", joined=True),
    )
    messages = context_of(log).messages
    assert [m.role for m in messages] == ["user", "assistant"]
    assert messages[1].parts == (Text(text="one, two"),)


def test_what_is_said_while_a_reply_is_continued_waits_below_it() -> None:
    log = events(
        user("aaaaaaaa-1", "go"),
        called(),
        user("bbbbbbbb-1", "and this"),
        said("cccccccc-1", Text(text="one, "), finish="length"),
    )
    projection = Projection()
    for event in log:
        projection.feed(event)
    asked = projection.context("head", (), (), prefill=True)
    assert [m.role for m in asked.messages] == ["user", "assistant"]
    log = events(
        *(event.body for event in log),
        called(prefill=True),
        said("dddddddd-1", Text(text="one, two"), continues="cccccccc-1", joined=True),
    )
    messages = context_of(log).messages
    assert [m.role for m in messages] == ["user", "assistant", "user"]
    assert messages[1].parts == (Text(text="one, two"),)
    assert messages[2].parts == (Text(text="and this\n\n[Hint: message_id: bbbbbbbb]"),)


def test_what_came_between_a_request_and_its_event_is_part_of_the_next_request() -> None:
    log = events(user("aaaaaaaa-1", "go"), user("bbbbbbbb-1", "too late"), called())
    request = log[2].body
    assert isinstance(request, ModelCalled)
    log[2] = Event("s", 3, 3, replace(request, history=1))
    log += [Event("s", 4, 4, said("cccccccc-1", Text(text="reply")))]
    texts = [[p.text for p in m.parts if isinstance(p, Text)] for m in context_of(log).messages]
    assert texts == [
        ["go\n\n[Hint: message_id: aaaaaaaa]"],
        ["reply"],
        ["too late\n\n[Hint: message_id: bbbbbbbb]"],
    ]


def test_an_imported_reply_answers_what_stands_before_it() -> None:
    log = events(
        user("aaaaaaaa-1", "one"),
        said("bbbbbbbb-1", Text(text="reply")),
        user("cccccccc-1", "two"),
        said("dddddddd-1", Text(text="again")),
        user("eeeeeeee-1", "three"),
    )
    roles = [m.role for m in context_of(log).messages]
    assert roles == ["user", "assistant", "user", "assistant", "user"]


def test_an_empty_reply_leaves_no_message() -> None:
    log = events(user("aaaaaaaa-1", "go"), called(), said("bbbbbbbb-1", Text(text="  \n")))
    assert [m.role for m in context_of(log).messages] == ["user"]


def test_documentation_enters_as_a_pair_before_the_request() -> None:
    log = events(
        FactAdded(key="rules", message_id="r", text="Rules.", reply="Understood.", tokens=4),
        user("aaaaaaaa-1", "go"),
    )
    context = context_of(log)
    assert [(m.role, m.layer) for m in context.messages] == [
        ("user", "documentation"),
        ("assistant", "documentation"),
        ("user", "history"),
    ]
    assert context.by_layer() == {"documentation": 4, "current": 5}


def test_a_compaction_replaces_hides_and_summarises_and_nothing_else() -> None:
    log = events(
        user("aaaaaaaa-1", "first"),
        called(),
        said("bbbbbbbb-1", Text(text="gone")),
        user("dddddddd-1", "second"),
        called(),
        said("eeeeeeee-1", ToolCall(id="1", name="t")),
        returned("1", "a long result", 400),
    )
    compacted = Compacted(
        policy="p",
        reason="r",
        replaced={"1": "[cleared]"},
        hidden=("aaaaaaaa-1", "bbbbbbbb-1"),
        summary="What was done.",
    )
    after = context_of([*log, Event("s", 8, 8, compacted)])
    kinds = [[type(p).__name__ for p in m.parts] for m in after.messages]
    assert kinds == [["Text", "Text"], ["ToolCall"], ["CallResult"]]
    first = after.messages[0].parts[0]
    assert isinstance(first, Text)
    assert first.text == f"{SUMMARY_HEADING}\nWhat was done."
    result = after.messages[2].parts[0]
    assert isinstance(result, CallResult)
    assert result.text == "[cleared]"
