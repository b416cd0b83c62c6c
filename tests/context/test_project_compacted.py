"""Whatever a compaction names stands as it says, and nothing else changes."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.context.check import check_context
from croze.context.ledger import Ledger, ledger_of
from croze.context.project import SUMMARY_HEADING, Projection, project
from croze.dialect.native import NativeDialect
from croze.dialect.xml import XmlDialect
from croze.types.context import Budget, Context, Message
from croze.types.event import (
    Body,
    Compacted,
    Event,
    FactAdded,
    ModelSaid,
    ToolReturned,
    UserSaid,
)
from croze.types.parts import CallResult, Text, ToolCall
from tests.context.session_logs import called, logged, sessions

WIDE = Budget(window=10_000_000, reserve=0)


def context_of(log: Sequence[Event]) -> Context:
    return project(log, "head", (), ())


def plain(messages: Sequence[Message]) -> list[tuple[object, ...]]:
    return [(m.role, m.parts, m.layer, m.tokens) for m in messages]


def texts(context: Context) -> str:
    return "\n".join(
        part.text
        for m in context.messages
        for part in m.parts
        if isinstance(part, Text | CallResult)
    )


def errors(context: Context) -> list[str]:
    last = context.messages[-1] if context.messages else None
    prefill = last is not None and last.role == "assistant"
    return [c.text for c in check_context(context, WIDE, prefill=prefill) if c.level == "error"]


@settings(max_examples=150)
@given(sessions(compactions=True))
def test_a_compacted_session_folds_the_same_from_scratch_and_breaks_no_rule(
    log: list[Event],
) -> None:
    projection, ledger = Projection(), Ledger()
    for seq, event in enumerate(log, 1):
        projection.feed(event)
        ledger.feed(event)
        if isinstance(event.body, Compacted) or seq == len(log):
            now = projection.context("head", (), ())
            fresh = context_of(log[:seq])
            assert plain(now.messages) == plain(fresh.messages)
            assert now.sections == fresh.sections
            assert errors(now) == []
            assert ledger.tokens == sum(m.tokens for m in now.messages) == now.tokens
            assert ledger.held <= ledger.tokens
    scratch = Projection()
    for event in log:
        scratch.feed(event)
    assert scratch.rolling() == projection.rolling()


@settings(max_examples=150)
@given(st.data())
def test_messages_that_a_compaction_does_not_touch_stay_the_same_objects(
    data: st.DataObject,
) -> None:
    log = data.draw(sessions())
    projection = Projection()
    for event in log:
        projection.feed(event)
    before = list(projection.messages)
    results = [e.body.call_id for e in log if isinstance(e.body, ToolReturned)]
    if not results:
        return
    chosen = data.draw(st.sampled_from(results))
    compacted = Compacted(policy="p", reason="r", replaced={chosen: "[cleared]"})
    projection.feed(Event("s", len(log) + 1, 1, compacted))
    after = list(projection.messages)
    assert len(after) <= len(before)
    kept = {id(message) for message in after}
    for message in before:
        touched = any(isinstance(p, CallResult) and p.call_id == chosen for p in message.parts)
        tail = any(
            isinstance(e.body, FactAdded)
            and e.body.place == "tail"
            and any(isinstance(p, Text) and p.text == e.body.text for p in message.parts)
            for e in log
        )
        if not touched and not tail:
            assert id(message) in kept


def user(message_id: str, text: str = "go") -> UserSaid:
    return UserSaid(message_id=message_id, parts=(Text(text=text),), tokens=5)


def said(message_id: str, *parts: Text | ToolCall) -> ModelSaid:
    return ModelSaid(message_id=message_id, step=1, model="m", parts=parts, tokens=50)


def returned(call_id: str, text: str = "result", **more: object) -> ToolReturned:
    return ToolReturned(
        call_id=call_id, message_id=f"{call_id}-result", name="read_file", ok=True, text=text,
        message="Read.", tokens=400, **more,  # type: ignore[arg-type]
    )  # fmt: skip


def three_steps() -> list[Body]:
    bodies: list[Body] = [
        FactAdded(key="rules", message_id="rules", text="Rules.", reply="Noted.", tokens=3),
        FactAdded(key="environment", message_id="env", text="Linux.", layer="current", tokens=2),
        user("user-1", "First."),
    ]
    for number in (1, 2, 3):
        call = ToolCall(f"c{number}", "read_file", {"path": f"{number}.py"}, raw="<read_file>…")
        bodies += [
            called(number),
            said(f"reply-{number}", Text(text=f"Step {number}."), call),
            returned(f"c{number}", f"content {number}", digest=f"digest {number}"),
        ]
        if number == 1:
            bodies.append(user("user-2", "Second."))
    return bodies


def compacted(**fields: object) -> Context:
    bodies = three_steps()
    return context_of(logged([*bodies, Compacted(policy="p", reason="r", **fields)]))  # type: ignore[arg-type]


def result(context: Context, call_id: str) -> CallResult:
    parts = (p for m in context.messages for p in m.parts)
    return next(p for p in parts if isinstance(p, CallResult) and p.call_id == call_id)


def test_a_replaced_result_keeps_its_tool_its_message_and_its_success() -> None:
    context = compacted(replaced={"c1": "[cleared]"})
    assert result(context, "c1") == CallResult("c1", "read_file", True, "Read.", "[cleared]")
    assert result(context, "c2").text.startswith("content 2")


def test_a_result_may_be_named_by_its_message_too() -> None:
    assert result(compacted(replaced={"c1-result": "[cleared]"}), "c1").text == "[cleared]"


def test_a_digested_result_stands_as_its_stored_digest_with_its_id() -> None:
    context = compacted(digested=("c1", "c2"))
    assert result(context, "c1").text == "digest 1\n\n[Hint: message_id: c1-resul]"
    assert result(context, "c3").text.startswith("content 3")


def test_a_result_without_a_digest_stays_as_it_is() -> None:
    bodies = [user("u"), called(1), said("r", ToolCall("c", "t")), returned("c")]
    context = context_of(logged([*bodies, Compacted(policy="p", reason="r", digested=("c",))]))
    assert result(context, "c").text.startswith("result")


def test_user_and_fact_texts_can_be_replaced() -> None:
    context = compacted(replaced={"user-2": "[shorter]", "env": "[env]"})
    assert "Second." not in texts(context)
    assert "[shorter]" in texts(context)
    assert "[env]" in texts(context)


@pytest.mark.parametrize("dialect", [NativeDialect(), XmlDialect()])
def test_cut_arguments_are_what_the_wire_gets(dialect: NativeDialect | XmlDialect) -> None:
    context = compacted(cut={"c2": {"path": "[cut]"}})
    sent = str([m.parts for m in dialect.encode(context).messages])
    assert "[cut]" in sent
    assert "2.py" not in sent
    if dialect.name == "xml":
        assert "<path>[cut]</path>" in sent


@pytest.mark.parametrize("hidden", ["reply-2", "c2-result"])
def test_a_call_and_its_result_go_together(hidden: str) -> None:
    context = compacted(hidden=(hidden,))
    parts = [p for m in context.messages for p in m.parts]
    assert not any(isinstance(p, ToolCall) and p.id == "c2" for p in parts)
    assert not any(isinstance(p, CallResult) and p.call_id == "c2" for p in parts)
    assert errors(context) == []


def test_messages_around_a_hidden_reply_become_one() -> None:
    bodies = [
        user("u1"), called(1), said("r1", Text(text="words")), user("u2"), called(2),
        said("r2", Text(text="more")), user("u3"),
    ]  # fmt: skip
    log = logged([*bodies, Compacted(policy="p", reason="r", hidden=("r1",))])
    assert [m.role for m in context_of(log).messages] == ["user", "assistant", "user"]


def test_a_summary_keeps_what_was_said_and_documented_above_itself_byte_for_byte() -> None:
    before = texts(compacted())
    until = 3 + 4 + 3  # all but the third step
    context = compacted(until=until, summary="It went well.", receipt="[Receipt]\nDone: 2 reads")
    roles = [(m.role, m.layer) for m in context.messages]
    assert roles == [
        ("user", "documentation"),
        ("assistant", "documentation"),
        ("user", "history"),
        ("assistant", "history"),
        ("user", "history"),
    ]
    first = [p.text for p in context.messages[2].parts if isinstance(p, Text)]
    assert first == [
        "Linux.",
        "First.\n\n[Hint: message_id: user-1]",
        "Second.\n\n[Hint: message_id: user-2]",
        f"{SUMMARY_HEADING}\nIt went well.\n\n[Receipt]\nDone: 2 reads",
    ]
    assert all(text in before for text in first[:3])
    assert result(context, "c3").text.startswith("content 3")
    assert errors(context) == []


def test_a_pinned_result_stays_with_its_call() -> None:
    context = compacted(until=10, summary="S", pinned=("c1-result",))
    parts = [p for m in context.messages for p in m.parts]
    assert [p.id for p in parts if isinstance(p, ToolCall)] == ["c1", "c3"]
    assert result(context, "c1").text.startswith("content 1")
    assert errors(context) == []


def test_a_later_summary_takes_the_place_of_an_earlier_one() -> None:
    bodies = three_steps()
    first = Compacted(policy="p", reason="r", until=6, summary="Early.")
    second = Compacted(policy="p", reason="r", until=10, summary="Late.", receipt="[R]")
    context = context_of(logged([*bodies, first, second]))
    assert texts(context).count(SUMMARY_HEADING) == 1
    assert "Late." in texts(context)
    assert "Early." not in texts(context)


def test_facts_of_the_tail_go_with_any_compaction_and_later_ones_stay() -> None:
    def recap(number: int) -> FactAdded:
        return FactAdded(
            key="todo", message_id=f"todo-{number}", text=f"recap {number}", layer="current",
            place="tail", tokens=4,
        )  # fmt: skip

    bodies = [*three_steps(), recap(1), Compacted(policy="p", reason="r"), recap(2)]
    context = context_of(logged(bodies))
    assert "recap 1" not in texts(context)
    assert "recap 2" in texts(context)


def test_an_undone_compaction_is_no_more() -> None:
    from croze.types.event import Undone

    bodies = three_steps()
    log = logged([*bodies, Compacted(policy="p", reason="r", until=10, summary="S")])
    undone = Undone(undo_id="u", kind="undo", hidden=((len(log), len(log)),))
    log.append(Event("s", len(log) + 1, 1, undone))
    assert plain(context_of(log).messages) == plain(context_of(logged(bodies)).messages)
    assert ledger_of(log).compactions == []
