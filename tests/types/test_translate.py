"""What programs outside see of a session."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.types.event import (
    Annotated,
    Answered,
    Asked,
    BackgroundTask,
    Body,
    Compacted,
    Event,
    FactAdded,
    FilesChanged,
    ModelCalled,
    ModelSaid,
    Notice,
    Retried,
    SessionOpened,
    Stopped,
    TodoItem,
    TodoSet,
    ToolReturned,
    ToolStarted,
    Unknown,
    UserSaid,
)
from croze.types.model import Cost, Usage
from croze.types.outward import Outward, TextObject, encode
from croze.types.parts import CallError, Text, Thinking, ToolCall
from croze.types.stream import Delta
from croze.types.tool import Access, FileChange
from croze.types.translate import Translator


def outward(*bodies: Body | Delta, **options: Any) -> list[Outward]:
    translator = Translator("s1", **options)
    found: list[Outward] = []
    for seq, body in enumerate(bodies, 1):
        item = body if isinstance(body, Delta) else Event(session="s1", seq=seq, at=5, body=body)
        found += translator.of(item)
    return found


def kinds(found: list[Outward]) -> list[str]:
    return [msgspec.json.decode(encode(item))["type"] for item in found]


def said(*parts: Any, **fields: Any) -> ModelSaid:
    return ModelSaid(message_id="m", step=1, model="a:b", parts=parts, **fields)


def call(name: str, **args: Any) -> ToolCall:
    return ToolCall(id="c1", name=name, args=args, raw=f"<{name}>")


def returned(name: str, ok: bool = True) -> ToolReturned:
    return ToolReturned(call_id="c1", message_id="r", name=name, ok=ok, message="m", text="t")


def test_what_concerns_the_log_alone_stays_inside() -> None:
    assert outward(
        SessionOpened(name="x"),
        UserSaid(message_id="u", parts=()),
        FactAdded(key="k", message_id="f", text="t"),
        ToolStarted(call_id="c", name="n", access=Access()),
        Annotated(name="y"),
        Unknown(type="Later", v=9, raw="{}"),
        ModelCalled(
            step=1, model="m", head="", history=0, body="", rolling="", encoder=1, tokens=1, size=1,
            purpose="summarize",
        ),
    ) == []  # fmt: skip


def test_a_reply_gives_its_parts_in_order_and_then_its_usage() -> None:
    broken = ToolCall(id="c2", name="x", raw="<x", error=CallError("truncated", "cut"))
    found = outward(
        said(
            Thinking(text="why"), Text(text="so"), call("read_file", path="a"), broken,
            usage=Usage(input=10, output=2), cost=Cost(input=1.0),
        )
    )  # fmt: skip
    assert kinds(found) == ["thinking", "text", "tool_call", "tool_call", "token_usage"]
    assert [msgspec.json.decode(encode(item)) for item in found[2:]] == [
        {"type": "tool_call", "v": 1, "session": "s1", "seq": 1, "at": 5, "call_id": "c1",
         "name": "read_file", "args": {"path": "a"}, "raw": "<read_file>", "error": None},
        {"type": "tool_call", "v": 1, "session": "s1", "seq": 1, "at": 5, "call_id": "c2",
         "name": "x", "args": {}, "raw": "<x", "error": "cut"},
        {"type": "token_usage", "v": 1, "session": "s1", "seq": 1, "at": 5, "model": "a:b",
         "input_tokens": 10, "output_tokens": 2, "cached_tokens": None, "cache_write_tokens": None,
         "thinking_tokens": None, "input_cost": 1.0, "output_cost": None},
    ]  # fmt: skip


def test_the_completion_is_the_tools_result_with_its_source() -> None:
    found = outward(
        said(Text(text="done?"), call("attempt_completion", result="It is done.")),
        returned("attempt_completion"),
        Stopped(reason="done", text="other"),
    )
    assert kinds(found)[-2:] == ["completion", "stopped"]
    assert (found[-2].result, found[-2].raw) == ("It is done.", "<attempt_completion>")  # type: ignore[union-attr]


def test_a_refused_completion_is_no_answer() -> None:
    found = outward(
        said(call("attempt_completion", result="early")),
        returned("attempt_completion", ok=False),
        said(Text(text="Now it is.")),
        Stopped(reason="done"),
    )
    assert found[-2].result == "Now it is."  # type: ignore[union-attr]


def test_a_reply_continued_in_a_second_message_is_one_answer() -> None:
    found = outward(
        said(Text(text="first ")),
        said(Text(text="second"), continues="m"),
        Stopped(reason="done"),
    )
    assert found[-2].result == "first second"  # type: ignore[union-attr]
    joined = outward(
        said(Text(text="first ")),
        said(Text(text="first second"), continues="m", joined=True),
        Stopped(reason="done"),
    )
    assert joined[-2].result == "first second"  # type: ignore[union-attr]
    assert [t.replaces for t in joined if isinstance(t, TextObject)] == [None, "m"]


def test_an_answer_never_reaches_into_the_next_turn() -> None:
    found = outward(
        said(Text(text="one")),
        Stopped(reason="done"),
        UserSaid(message_id="u", parts=()),
        Stopped(reason="done"),
    )
    assert found[-2].result == ""  # type: ignore[union-attr]


def test_a_plan_response_and_its_options() -> None:
    found = outward(
        said(call("plan_mode_respond", response="Plan", options=["a", "b"])),
        returned("plan_mode_respond"),
        Stopped(reason="done"),
    )
    assert kinds(found) == ["tool_call", "tool_result", "plan_response", "completion", "stopped"]
    assert found[2].options == ("a", "b")  # type: ignore[union-attr]
    assert found[3].result == "Plan"  # type: ignore[union-attr]


def test_questions_and_approvals_are_told_apart() -> None:
    found = outward(
        said(call("ask_followup_question", question="which?")),
        Asked(ask_id="q", kind="question", text="which?", call_id="c1", options=("x",)),
        Answered(ask_id="q", answer="x"),
        Asked(ask_id="a", kind="approval", text="run?", call_id="c1", rule="r"),
        Answered(ask_id="a", answer="no", by="headless"),
    )
    assert kinds(found)[1:] == ["follow_up_question", "approval_asked", "approval_given"]
    assert found[1].raw == "<ask_followup_question>"  # type: ignore[union-attr]


def test_pruning_gives_its_numbers_the_summary_and_the_window() -> None:
    called = ModelCalled(
        step=1, model="m", head="", history=0, body="", rolling="", encoder=1, tokens=900, size=1
    )
    found = outward(
        called,
        Compacted(policy="batch", reason="full", summary="S", tokens_before=900, tokens_after=300),
        rounds=4,
    )
    assert kinds(found) == ["window_change", "pruned", "summary", "window_change"]
    last = found[-1]
    assert (last.tokens_used, last.pruned_tokens_used, last.conversation_round) == (900, 300, 5)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("bodies", "expected"),
    [
        ([Stopped(reason="cancelled")], ["interrupted", "stopped"]),
        ([Stopped(reason="steps", text="limit")], ["error", "stopped"]),
        (
            [Notice(level="error", code="model", text="x"), Stopped(reason="failed", text="x")],
            ["error", "stopped"],
        ),
        ([Notice(level="info", code="c", text="x")], ["notice"]),
        ([Retried(attempt=1, delay=1, error="e", message="m")], ["retry"]),
        ([TodoSet(items=(TodoItem(id=1, text="t"),))], ["todo_changed"]),
        (
            [
                FilesChanged(
                    call_id="c", changes=(FileChange("a", "added"), FileChange("b", "deleted"))
                )
            ],
            ["file_changed", "file_changed"],
        ),
    ],
)
def test_ends_notices_and_changes(bodies: list[Body], expected: list[str]) -> None:
    assert kinds(outward(*bodies)) == expected


def test_pieces_pass_only_when_asked_for() -> None:
    piece = Delta(kind="text", text="x", session="s1")
    assert outward(piece) == []
    assert kinds(outward(piece, Delta(kind="thinking", text="y"), partial=True)) == [
        "text",
        "thinking",
    ]
    assert outward(Delta(kind="text", text="x", session="other"), partial=True) == []


def test_another_sessions_events_stay_out() -> None:
    event = Event(session="child", seq=1, at=1, body=said(Text(text="x")))
    assert Translator("s1").of(event) == []


@given(st.text())
def test_every_object_is_one_line_that_reads_back(text: str) -> None:
    line = encode(TextObject(session="s", text=text))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert msgspec.json.decode(line, type=Outward) == TextObject(session="s", text=text)


def test_a_background_task_is_told_when_it_begins_and_when_it_ends() -> None:
    task = BackgroundTask("bg1", "command", "make")
    ended = msgspec.structs.replace(task, state="ended", exit_code=2, seconds=1.5, size=9, last="x")
    found = [msgspec.json.decode(encode(item)) for item in outward(task, ended)]
    assert [(item["type"], item["state"]) for item in found] == [
        ("background_task", "running"),
        ("background_task", "ended"),
    ]
    assert found[1]["task_id"] == "bg1"
    assert (found[1]["exit_code"], found[1]["seconds"], found[1]["size"]) == (2, 1.5, 9)
