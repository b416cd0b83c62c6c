"""A session's record in the shape that programs know, folded from its log."""

import re

from croze.app.record import record
from tests.scenarios.conftest import Stage

LOOK = """
- text: I look at the file first.
  calls: [{name: read_file, args: {path: a.py}}]
- text: |
    It has to be two.
  calls:
  - {name: write_to_file, args: {path: a.py, content: "x = 2\\n"}}
  - {name: read_file, args: {path: none.py, explanation: to see whether it is there}}
- calls: [{name: attempt_completion, args: {result: "x is two."}}]
"""


async def test_what_was_asked_done_and_answered_is_told_with_reasons_and_results(
    stage: Stage,
) -> None:
    stage.write("a.py", "x = 1\n")
    played = await stage.play(LOOK, "Make x two.")
    found = record(played.events)
    assert found["user_query"] == "Make x two."
    assert found["working_dir"] == str(stage.project)
    assert (found["edit_operations"], found["response"]) == ((), "x is two.")
    told = [(e["tool"], e["reason"], e["params"]) for e in found["history"]]
    assert told == [
        ("read_file", "I look at the file first.", {"path": "a.py"}),
        ("write_to_file", "It has to be two.", {"path": "a.py", "content": "x = 2\n"}),
        ("read_file", "to see whether it is there", {"path": "none.py"}),
        ("attempt_completion", "", {"result": "x is two."}),
    ]
    results = [e["result"] for e in found["history"]]
    assert [r["success"] for r in results] == [True, True, False, True]
    assert results[2]["error"]["code"] == "file_not_found"
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", e["timestamp"]) for e in found["history"])


async def test_a_later_turns_record_has_its_own_question_and_calls_only(stage: Stage) -> None:
    stage.write("a.py", "x = 1\n")
    first = await stage.play(LOOK, "Make x two.")
    second = await stage.play("- {text: It is two.}", "What is x?", resume=first.session)
    found = record(second.events, len(first.events))
    assert (found["user_query"], found["response"]) == ("What is x?", "It is two.")
    assert found["history"] == []
    assert found["working_dir"] == str(stage.project)
