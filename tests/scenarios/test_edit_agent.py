"""A sketch that the file doesn't decide goes to the edit agent: the model's plan is checked, applied
through the tool, recorded with its own purpose, and replayed."""

import pytest

from croze.app.app import App
from croze.types.event import FilesChanged, ModelCalled, ModelSaid
from tests.scenarios.conftest import Stage

FILE = "x = 1\n\ndef a():\n    return 1\n\ndef b():\n    return 1\n"

SKETCH = """
- calls: [{name: read_file, args: {path: a.py}}]
- calls:
  - name: call_tool
    args:
      name: edit_file
      arguments:
        target_file: a.py
        instructions: b returns two
        code_edit: "# ... existing code ...\\n    return 2\\n"
"""
PLAN = """
- text: '[{"start_line": 7, "end_line": 7, "replacement": "    return 2"}]'
"""
END = """
- calls: [{name: attempt_completion, args: {result: done}}]
"""


@pytest.fixture
def small(stage: Stage) -> Stage:
    stage.write("a.py", FILE)
    return stage


async def test_the_models_plan_is_applied_and_paid_for_but_not_part_of_the_conversation(
    small: Stage,
) -> None:
    played = await small.play(SKETCH + PLAN + END)
    assert played.stopped.reason == "done"
    assert (small.project / "a.py").read_text() == FILE[:-2] + "2\n"
    purposes = [e.body.purpose for e in played.events if isinstance(e.body, ModelCalled)]
    assert purposes == ["main", "main", "edit", "main"]
    assert sum(isinstance(e.body, FilesChanged) for e in played.events) == 1
    app = App.open(cwd=small.project)
    try:
        transcript = await app.conversations.get(played.session)
        assert not any("start_line" in str(message.content) for message in transcript.messages)
    finally:
        await app.aclose()
    assert await small.divergence(played.session) is None


async def test_a_bad_plan_is_told_to_the_edit_model_and_the_file_stays_until_one_fits(
    small: Stage,
) -> None:
    played = await small.play(SKETCH + "\n- text: no plan at all\n" + PLAN + END)
    said = [e.body for e in played.events if isinstance(e.body, ModelSaid)]
    assert [body.purpose for body in said].count("edit") == 2
    assert (small.project / "a.py").read_text().endswith("return 2\n")
    assert await small.divergence(played.session) is None


async def test_without_a_plan_that_fits_the_model_is_told_and_nothing_is_written(
    small: Stage,
) -> None:
    bad = "\n- text: rubbish\n" * 3
    played = await small.play(SKETCH + bad + END)
    failed = played.results[1]
    assert (failed.ok, failed.code) == (False, "edit_agent")
    assert "no plan that fits" in failed.message
    assert (small.project / "a.py").read_text() == FILE
