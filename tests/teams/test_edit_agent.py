"""The edit agent writes only what a checked plan says."""

import json

import pytest

from croze.teams.edit_agent import EditAgentError, edit_by_model, parse_operations
from croze.teams.state import EditOperation, FlowState
from croze.types.errors import ModelError
from croze.types.team import FlowStepped

TEXT = "def one():\n    return 1\n\n\ndef two():\n    return 1\n"
SKETCH = "# ... existing code ...\ndef two():\n    return 2\n"


def is_marker(line: str) -> bool:
    return "... existing code ..." in line


class Model:
    """Gives the answers in order and keeps what it was asked."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.questions: list[str] = []

    async def __call__(self, system: str, question: str) -> str:
        assert "JSON array" in system
        self.questions.append(question)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, str) else json.dumps(answer)


async def edit(
    model: Model, text: str = TEXT, sketch: str = SKETCH, steps: list[FlowStepped] | None = None
) -> tuple[FlowState, str]:
    async def record(step: FlowStepped) -> None:
        if steps is not None:
            steps.append(step)

    return await edit_by_model(
        path="a.py",
        text=text,
        instructions="two returns two",
        code_edit=sketch,
        is_marker=is_marker,
        ask=model,
        working_dir="/p",
        now=lambda: 7,
        record=record,
        run_id="r",
    )


def operation(start: int, end: int, replacement: str) -> dict[str, object]:
    return {"start_line": start, "end_line": end, "replacement": replacement}


async def test_the_plan_is_applied_and_the_history_says_what_was_done() -> None:
    state, after = await edit(Model([operation(6, 6, "    return 2")]))
    assert after == TEXT[:-2] + "2\n"
    assert [entry.tool for entry in state.history] == ["read_file", "replace_lines"]
    assert state.edit_operations == ()


async def test_edits_are_applied_bottom_up_whatever_their_order() -> None:
    sketch = "def one():\n    return 3\n# ... existing code ...\ndef two():\n    return 2\n"
    plan = [operation(2, 2, "    return 3"), operation(6, 6, "    return 2")]
    _, forward = await edit(Model(plan), sketch=sketch)
    _, backward = await edit(Model(plan[::-1]), sketch=sketch)
    assert forward == backward
    assert "return 3" in forward
    assert "return 2" in forward


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("no JSON at all", "no JSON array"),
        ([], "no edit"),
        ([{"start_line": "x"}], "no JSON array"),
        ([operation(90, 91, "x")], "Your last answer was wrong"),
        ([operation(5, 6, "x"), operation(6, 6, "    return 2")], "Your last answer was wrong"),
        ([operation(6, 6, "    # ... existing code ...\n    return 2")], "must not be written"),
        ([operation(6, 6, "    return 5")], "'return 2' is missing"),
    ],
)
async def test_a_plan_that_does_not_fit_is_told_and_asked_again(bad: object, told: str) -> None:
    model = Model(bad, [operation(6, 6, "    return 2")])
    _, after = await edit(model)
    assert told in model.questions[1]
    assert after == TEXT[:-2] + "2\n"


async def test_without_a_fitting_plan_nothing_is_written() -> None:
    model = Model("x", "y", "z")
    with pytest.raises(EditAgentError, match="no plan that fits"):
        await edit(model)
    assert len(model.questions) == 3


async def test_a_model_that_can_not_be_reached_is_an_error_of_its_own() -> None:
    with pytest.raises(ModelError, match="gone"):
        await edit(Model(ModelError("gone")))


async def test_a_file_that_is_too_long_is_not_shown_to_the_model() -> None:
    model = Model()
    with pytest.raises(EditAgentError, match="too long"):
        await edit(model, text="x" * 400_001)
    assert model.questions == []


def test_a_fence_round_the_plan_is_taken_off() -> None:
    assert parse_operations('```json\n[{"start_line":1,"end_line":1,"replacement":"a"}]\n```') == (
        EditOperation(1, 1, "a"),
    )


async def test_each_step_is_on_record_under_its_action_and_without_the_files_text() -> None:
    steps: list[FlowStepped] = []
    await edit(Model([operation(6, 6, "    return 2")]), steps=steps)
    assert [(step.node, step.action) for step in steps] == [
        ("ReadTarget", "start"),
        ("ReadTarget", "analyze_plan"),
        ("AnalyzeAndPlan", "apply_changes"),
        ("ApplyChanges", "decide_next"),
    ]
    assert [len(step.state["edit_operations"]) for step in steps] == [0, 0, 1, 0]
    assert TEXT not in str(steps)
    assert steps[-1].state["history"][0]["timestamp"] == "1970-01-01T00:00:00.000Z"
