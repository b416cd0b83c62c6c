"""The tools that speak with the user."""

from typing import Any

from croze.tools.builtin.talk import (
    NO_USER,
    AskFollowupQuestion,
    AttemptCompletion,
    PlanModeRespond,
)
from croze.tools.registry import builtin
from croze.types.parts import ToolCall


async def test_an_answer_is_the_result(fake_context: Any) -> None:
    fake_context.answer = "the second"
    result = await AskFollowupQuestion(question="Which?", options=("first", "second")).run(
        fake_context
    )
    assert fake_context.asked == [("Which?", ("first", "second"))]
    assert (result.ok, result.text, result.data) == (True, "the second", {"answer": "the second"})
    call = ToolCall("123456789", "ask_followup_question", {"question": "Which?"})
    assert AskFollowupQuestion.digest(call, result) == "Question: Which?\nAnswer: the second"


async def test_without_a_user_the_model_is_told_to_decide(fake_context: Any) -> None:
    result = await AskFollowupQuestion(question="Which?").run(fake_context)
    assert (result.ok, result.message, result.data) == (True, NO_USER, {"answer": None})


async def test_a_completion_holds_its_result_and_only_keeps_the_command(fake_context: Any) -> None:
    result = await AttemptCompletion(result="Fixed.", command="rm -rf x").run(fake_context)
    assert (result.ok, result.text) == (True, "Fixed.")
    assert result.data == {"result": "Fixed.", "command": "rm -rf x"}
    assert fake_context.events == fake_context.outputs == []


async def test_a_plan_holds_its_response_and_options(fake_context: Any) -> None:
    result = await PlanModeRespond(response="1. Look", options=("go", "stop")).run(fake_context)
    assert (result.ok, result.text) == (True, "1. Look")
    assert result.data == {"response": "1. Look", "options": ["go", "stop"]}


def test_completion_and_plan_end_the_turn_and_a_question_does_not() -> None:
    kinds = {name: builtin().get(name) for name in builtin().names}
    ends = {name for name, kind in kinds.items() if kind is not None and kind.doc.ends_turn}
    assert ends == {"attempt_completion", "plan_mode_respond"}
