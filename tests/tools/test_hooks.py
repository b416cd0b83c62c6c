"""What hooks say and what it comes to: exit codes, texts, JSON, several at once."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.tools.approve import Decision
from croze.tools.hooks import (
    BLOCKS,
    MOST_TEXT,
    POINTS,
    Answer,
    Hook,
    Ruling,
    combine,
    failed_answer,
    matches,
    read_answer,
    read_value,
)

SECRET = "sk-proj-a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZ"


def specific(point: str = "PreToolUse", **fields: Any) -> str:
    return json.dumps({"hookSpecificOutput": {"hookEventName": point, **fields}})


def hook(matcher: str, point: Any = "PreToolUse") -> Hook:
    return Hook(point=point, command="true", matcher=matcher)


@pytest.mark.parametrize(
    ("matcher", "tool", "fits"),
    [
        ("", "read_file", True),
        ("*", "read_file", True),
        ("read_file", "read_file", True),
        ("read", "read_file", False),
        ("Bash", "execute_command", True),
        ("Bash", "read_file", False),
        ("Edit|Write", "replace_in_file", True),
        ("Edit|Write", "delete_file", True),
        ("Edit|Write", "read_file", False),
        ("Read", "search_files", True),
        ("todo_.*", "todo_write", True),
        ("TodoWrite", "todo_write", True),
        ("mcp__.*", "execute_command", False),
    ],
)
def test_a_matcher_is_for_whole_names_and_takes_other_agents_names(
    matcher: str, tool: str, fits: bool
) -> None:
    assert matches(hook(matcher), tool) is fits


def test_a_matcher_of_another_point_is_for_its_own_word() -> None:
    assert matches(hook("resume", "SessionStart"), "resume")
    assert not matches(hook("resume", "SessionStart"), "startup")
    assert matches(hook("anything", "Stop"), "")


@pytest.mark.parametrize("point", POINTS)
def test_exit_code_2_blocks_where_something_can_be_blocked_else_tells_the_user(point: Any) -> None:
    answer = read_answer(point, 2, "ignored", "no, never\n")
    assert answer.ended == "blocked"
    if point in BLOCKS:
        assert (answer.decision, answer.reason) == ("deny", "no, never")
    else:
        assert (answer.decision, answer.message) == ("", "no, never")


@pytest.mark.parametrize("point", POINTS)
def test_another_exit_code_decides_nothing_and_tells_the_user(point: Any) -> None:
    answer = read_answer(point, 1, specific(permissionDecision="deny"), "it broke")
    assert answer == Answer(ended="failed", message="it broke")


@pytest.mark.parametrize("point", POINTS)
def test_plain_words_are_context_for_a_message_and_a_session_only(point: Any) -> None:
    answer = read_answer(point, 0, "branch main\n", "")
    told = point in ("UserPromptSubmit", "SessionStart")
    assert answer == Answer(context="branch main" if told else "")


def test_a_permission_decision_comes_with_reason_input_and_context() -> None:
    given_input = {"command": "ls"}
    output = specific(
        permissionDecision="ask",
        permissionDecisionReason="look at it",
        updatedInput=given_input,
        additionalContext="it is late",
    )
    assert read_answer("PreToolUse", 0, output, "") == Answer(
        decision="ask", reason="look at it", args=given_input, context="it is late"
    )


@pytest.mark.parametrize(
    ("point", "decision", "verdict"),
    [
        ("PreToolUse", "approve", "allow"),
        ("PreToolUse", "block", "deny"),
        ("PostToolUse", "block", "deny"),
        ("Stop", "block", "deny"),
        ("UserPromptSubmit", "block", "deny"),
        ("Stop", "approve", ""),
        ("PreCompact", "block", ""),
    ],
)
def test_the_older_decision_is_understood(point: Any, decision: str, verdict: str) -> None:
    output = json.dumps({"decision": decision, "reason": "because"})
    answer = read_answer(point, 0, output, "")
    assert (answer.decision, answer.reason) == (verdict, "because" if verdict else "")


def test_continue_false_ends_the_turn_and_lets_a_stop_be_one() -> None:
    output = json.dumps({"continue": False, "stopReason": "enough", "decision": "block"})
    assert read_answer("PostToolUse", 0, output, "").halt == "enough"
    stop = read_answer("Stop", 0, output, "")
    assert (stop.decision, stop.halt) == ("", None)


@pytest.mark.parametrize(
    "output",
    [
        "{",
        '{"continue": "no"}',
        '{"hookSpecificOutput": {"permissionDecision": "denied"}}',
        '{"hookSpecificOutput": {"updatedInput": "ls"}}',
        specific("PostToolUse", additionalContext="x"),
        '{"decision": 1}',
        "{" * 100_000,
    ],
)
def test_what_is_no_answer_is_told_and_decides_nothing(output: str) -> None:
    answer = read_answer("PreToolUse", 0, output, "")
    assert answer.ended == "invalid"
    assert answer.message
    assert (answer.decision, answer.args, answer.context) == ("", None, "")


def test_fields_that_nobody_knows_are_passed_over() -> None:
    output = json.dumps({"suppressOutput": True, "later": {"x": 1}, "systemMessage": "hello"})
    assert read_answer("PreToolUse", 0, output, "") == Answer(message="hello")


@given(st.sampled_from(POINTS), st.integers(0, 255), st.text(), st.text())
def test_no_output_breaks_the_reading(point: Any, code: int, output: str, errors: str) -> None:
    answer = read_answer(point, code, output, errors)
    assert answer.decision in (("", "deny") if code == 2 else ("",)) or output.startswith("{")


def test_texts_are_bounded_and_without_secrets() -> None:
    long = read_answer("UserPromptSubmit", 0, "word " * MOST_TEXT, "")
    assert len(long.context) < MOST_TEXT + 20
    assert SECRET not in read_answer("PreToolUse", 2, "", f"key {SECRET}").reason
    output = specific(permissionDecision="deny", permissionDecisionReason=SECRET)
    assert SECRET not in read_answer("PreToolUse", 0, output, "").reason


def test_a_python_hook_answers_with_nothing_a_text_or_the_same_object() -> None:
    assert read_value("SessionStart", None) == Answer()
    assert read_value("SessionStart", "hello").context == "hello"
    assert read_value("PreToolUse", {"decision": "block", "reason": "no"}).decision == "deny"
    for strange in (
        ["what?"],
        object(),
        {"reason": "\ud800"},
        {"hookSpecificOutput": {"updatedInput": {"a": object()}}},
    ):
        assert read_value("PreToolUse", strange).ended == "invalid"


@given(st.permutations(["", "allow", "ask", "deny"]))
def test_deny_beats_ask_beats_allow_in_any_order(order: list[Any]) -> None:
    answers = [Answer(decision=each, reason=f"r-{each}") for each in order]
    strongest = ["deny", "ask", "allow", ""]
    for left_out in range(3):
        kept = [a for a in answers if a.decision not in strongest[:left_out]]
        ruling = combine(kept)
        assert ruling.decision == strongest[left_out]
        assert ruling.reason == f"r-{strongest[left_out]}"


def test_an_allow_for_the_old_input_says_nothing_of_the_new_one() -> None:
    new = {"command": "rm -r ."}
    assert combine([Answer(decision="allow"), Answer(args=new)]).decision == ""
    assert combine([Answer(decision="deny"), Answer(args=new)]).decision == "deny"
    assert combine([Answer(decision="allow", args=new)]).decision == "allow"


def test_of_several_new_inputs_the_first_holds() -> None:
    first, second = {"path": "a"}, {"path": "b"}
    ruling = combine([Answer(args=first), Answer(args=second, decision="allow")])
    assert (ruling.args, ruling.decision) == (first, "")


def test_an_allow_spares_the_modes_question_only() -> None:
    allow, ask = Ruling(decision="allow"), Ruling(decision="ask", reason="look")
    of_mode = Decision("ask", "it runs a command", rule="x", flag="--mode full")
    of_rule = Decision("ask", "the rule", by="rule")
    forbidden = Decision("deny", "the rule", by="rule")
    assert allow.applied(of_mode).verdict == "allow"
    assert allow.applied(of_rule) == of_rule
    for ruling in (allow, ask, Ruling(decision="deny"), Ruling()):
        assert ruling.applied(forbidden) == forbidden
    asked = ask.applied(Decision("allow", "it only reads"))
    assert (asked.verdict, asked.rule, asked.reason) == (
        "ask",
        "",
        "a hook wants a question: look",
    )


@pytest.mark.parametrize(
    ("ended", "point"),
    list(
        itertools.product(
            ["failed", "killed", "timeout", "invalid", "not_run"], ["PreToolUse", "Stop"]
        )
    ),
)
def test_a_hook_that_must_not_fail_blocks_when_it_does(ended: Any, point: Any) -> None:
    failed = Answer(ended=ended, message="why")
    assert failed_answer(point, "guard", failed).decision == "deny"
    assert failed_answer("SessionEnd", "guard", failed).decision == ""
    assert failed_answer(point, "guard", Answer()).decision == ""
