"""Whole sessions, from the user's word to the end of the turn, in both protocols: what is recorded, in
which order, and what the model is told."""

import hashlib
from pathlib import Path

import pytest

from croze.types.event import ModelSaid
from croze.types.parts import ToolCall
from tests.scenarios.conftest import Stage, croze

BEGIN = ["SessionOpened", "HeadSet", "UserSaid", "FactAdded tree", "FactAdded environment"]
SUM = "def total(numbers):\n    return sum(numbers[1:])\n"
CHECK = "python3 -B -c 'from shop import total; assert total([1, 2]) == 3'"

MEND = f"""
- text: I read it first.
  calls: [{{name: read_file, args: {{path: shop.py}}}}]
- expect: "2\\t    return sum(numbers[1:])"
  calls:
  - name: replace_in_file
    args:
      path: shop.py
      diff: |-
        <<<<<<< SEARCH
            return sum(numbers[1:])
        =======
            return sum(numbers)
        >>>>>>> REPLACE
- expect: "Edited shop.py, +1 -1 lines."
  calls: [{{name: execute_command, args: {{command: "{CHECK}"}}}}]
- expect: "Exit code 0"
  calls: [{{name: attempt_completion, args: {{result: total sums all numbers.}}}}]
"""
WRITE = """
- calls: [{name: write_to_file, args: {path: shop.py, content: "total = sum"}}]
- expect: was not allowed
  text: I was not allowed to write.
"""


async def test_a_file_is_read_edited_and_checked(stage: Stage) -> None:
    file = stage.write("shop.py", SUM)
    played = await stage.play(MEND)
    assert played.story == [
        *BEGIN,
        "ModelCalled",
        "ModelSaid read_file",
        "ToolStarted read_file",
        "ToolReturned read_file ok",
        "ModelCalled",
        "ModelSaid replace_in_file",
        "ToolStarted replace_in_file",
        "FilesChanged modified shop.py +1 -1",
        "ToolReturned replace_in_file ok",
        "ModelCalled",
        "ModelSaid execute_command",
        "ToolStarted execute_command",
        "ToolReturned execute_command ok",
        "ModelCalled",
        "ModelSaid attempt_completion",
        "ToolStarted attempt_completion",
        "ToolReturned attempt_completion ok",
        "Stopped done",
    ]
    assert file.read_text() == SUM.replace("[1:]", "")
    assert (played.stopped.text, played.stopped.steps) == ("total sums all numbers.", 4)
    assert played.results[1].observed == {"shop.py": hashlib.sha256(file.read_bytes()).hexdigest()}
    assert await stage.divergence(played.session) is None


async def test_what_nobody_allows_is_refused_and_the_run_goes_on(stage: Stage) -> None:
    file = stage.write("shop.py", SUM)
    played = await stage.play(WRITE, mode="ask")
    assert played.story == [
        *BEGIN,
        "ModelCalled",
        "ModelSaid write_to_file",
        "Asked approval",
        "Answered no by headless",
        "ToolReturned write_to_file not_allowed",
        "ModelCalled",
        "ModelSaid",
        "Stopped done",
    ]
    assert (played.stopped.refused, played.stopped.text) == (1, "I was not allowed to write.")
    assert "--mode auto-edit" in played.results[0].message
    assert file.read_text() == SUM
    assert await stage.divergence(played.session) is None


def test_a_refusal_that_stands_is_exit_code_4(stage: Stage) -> None:
    file = stage.write("shop.py", SUM)
    model, dialect = stage.script(WRITE), ("--dialect", stage.dialect)
    ran = croze(stage.project, "run", "Do it.", "--model", model, *dialect)
    assert (ran.returncode, ran.stdout) == (4, "I was not allowed to write.\n")
    assert "--mode auto-edit" in ran.stderr
    assert file.read_text() == SUM
    mended = stage.script(MEND)
    rules = ("--mode", "auto-edit", "--allow", f"execute_command({CHECK})")
    ran = croze(stage.project, "run", "Do it.", "--model", mended, *dialect, *rules)
    assert (ran.returncode, ran.stdout) == (0, "total sums all numbers.\n")


async def test_a_rule_allows_what_the_mode_would_ask_about(stage: Stage) -> None:
    stage.write("shop.py", SUM)
    rules = ("replace_in_file(*.py)", f"execute_command({CHECK})")
    played = await stage.play(MEND, mode="ask", allow=rules)
    assert (played.stopped.reason, played.stopped.refused) == ("done", 0)
    assert not [line for line in played.story if line.startswith("Asked")]


async def test_plan_mode_writes_nothing_and_ends_with_the_plan(stage: Stage) -> None:
    file = stage.write("shop.py", SUM)
    played = await stage.play(
        """
- calls: [{name: write_to_file, args: {path: shop.py, content: "total = sum"}}]
- expect: plan mode only reads
  calls: [{name: execute_command, args: {command: "echo > shop.py"}}]
- expect: plan mode only reads
  calls: [{name: plan_mode_respond, args: {response: Sum all of them., options: [Go, Wait]}}]
- text: This reply is never asked for.
""",
        mode="plan",
    )
    assert played.story == [
        *BEGIN,
        "ModelCalled",
        "ModelSaid write_to_file",
        "ToolReturned write_to_file not_allowed",
        "ModelCalled",
        "ModelSaid execute_command",
        "ToolReturned execute_command not_allowed",
        "ModelCalled",
        "ModelSaid plan_mode_respond",
        "ToolStarted plan_mode_respond",
        "ToolReturned plan_mode_respond ok",
        "Stopped done",
    ]
    assert (played.stopped.text, played.stopped.refused) == ("Sum all of them.", 2)
    assert played.results[-1].data == {"response": "Sum all of them.", "options": ["Go", "Wait"]}
    assert file.read_text() == SUM


async def test_wrong_calls_are_answered_with_the_right_form(stage: Stage) -> None:
    stage.write("shop.py", SUM)
    played = await stage.play(
        """
- calls: [{name: read_fil, args: {path: shop.py}}]
- expect: ["there is no tool 'read_fil'", "Did you mean read_file"]
  calls: [{name: read_file, args: {path: shop.py, start_lin: 2}}]
- expect: [start_lin, "## read_file", start_line]
  calls: [{name: read_file, args: {start_line: 2}}]
- expect: [the required parameter path is missing, "## read_file"]
  calls: [{name: execute_command, args: {command: "true", timeout: soon}}]
- expect: ["timeout must be a whole number", "'soon'", "## execute_command"]
  calls: [{name: read_file, args: {path: shop.py, start_line: 2}}]
- expect: "sum(numbers[1:])"
  calls: [{name: attempt_completion, args: {result: Read.}}]
"""
    )
    assert played.stopped.reason == "done"
    assert [result.ok for result in played.results] == [False] * 4 + [True] * 2
    assert [result.code for result in played.results if not result.ok] == [
        "unknown_tool",
        "malformed" if stage.dialect == "xml" else "invalid_arguments",
        "invalid_arguments",
        "invalid_arguments",
    ]
    form = "- <path> (required)" if stage.dialect == "xml" else "- path (required, string)"
    assert form in played.results[2].text
    started = [line for line in played.story if line.startswith("ToolStarted")]
    assert started == ["ToolStarted read_file", "ToolStarted attempt_completion"]
    assert await stage.divergence(played.session) is None


async def test_reads_run_side_by_side_and_answer_in_the_order_of_the_calls(stage: Stage) -> None:
    stage.write("large.txt", "all work and no play\n" * 400_000)
    stage.write("small.txt", "small\n")
    played = await stage.play(
        """
- calls:
  - {name: read_file, args: {path: large.txt, start_line: 399999}}
  - {name: search_files, args: {regex: no pla., path: large.txt}}
  - {name: read_file, args: {path: missing.txt}}
  - {name: read_file, args: {path: small.txt}}
- expect: ["399999", "400,000 match", "missing.txt does not exist", "small"]
  text: All read.
"""
    )
    assert played.story[len(BEGIN) :] == [
        "ModelCalled",
        "ModelSaid read_file search_files read_file read_file",
        "ToolStarted read_file",
        "ToolStarted search_files",
        "ToolStarted read_file",
        "ToolStarted read_file",
        "ToolReturned read_file ok",
        "ToolReturned search_files ok",
        "ToolReturned read_file file_not_found",
        "ToolReturned read_file ok",
        "ModelCalled",
        "ModelSaid",
        "Stopped done",
    ]
    said = next(event.body for event in played.events if isinstance(event.body, ModelSaid))
    calls = [part.id for part in said.parts if isinstance(part, ToolCall)]
    assert [result.call_id for result in played.results] == calls


@pytest.mark.parametrize("first", [True, False], ids=["before it", "after it"])
async def test_the_end_is_refused_beside_a_call_that_failed(stage: Stage, first: bool) -> None:
    calls = [
        '{name: execute_command, args: {command: "exit 3"}}',
        "{name: attempt_completion, args: {result: All is well.}}",
    ]
    listed = ", ".join(calls if first else calls[::-1])
    played = await stage.play(
        f"""
- calls: [{listed}]
- expect: ["Exit code 3", "attempt_completion was refused: another call failed."]
  calls: [{{name: attempt_completion, args: {{result: One command fails.}}}}]
"""
    )
    assert played.stopped.text == "One command fails."
    assert [(result.name, result.code) for result in played.results] == [
        ("execute_command", "exit_status"),
        ("attempt_completion", "completion_refused"),
        ("attempt_completion", None),
    ]


FENCED = """
- text: |
    I'll read it:

    ```xml
    <read_file>
    <path>shop.py</path>
    </read_file>
    ```
- text: So be it.
"""


async def test_a_call_in_a_code_fence_is_not_run_and_the_model_is_told(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "xml")
    stage.write("shop.py", SUM)
    told = "- expect: Your reply held tool calls only inside a code fence\n  text: So be it."
    played = await stage.play(FENCED.replace("- text: So be it.", told))
    assert played.story == [
        *BEGIN,
        "ModelCalled",
        "ModelSaid",
        "FactAdded fenced",
        "ModelCalled",
        "ModelSaid",
        "Stopped done",
    ]
    assert await stage.divergence(played.session) is None


async def test_where_calls_have_a_wire_of_their_own_a_fence_is_only_text(tmp_path: Path) -> None:
    played = await Stage(tmp_path, "native").play(FENCED)
    assert played.story == [*BEGIN, "ModelCalled", "ModelSaid", "Stopped done"]
    assert "<path>shop.py</path>" in played.stopped.text


async def test_a_file_that_changed_behind_the_session_is_read_again_first(stage: Stage) -> None:
    file = stage.write("shop.py", SUM)
    edit = """
  - name: replace_in_file
    args:
      path: shop.py
      diff: |-
        <<<<<<< SEARCH
            return sum(numbers[1:])
        =======
            return sum(numbers)
        >>>>>>> REPLACE
"""
    played = await stage.play(
        f"""
- calls: [{{name: read_file, args: {{path: shop.py}}}}]
- calls:
  - {{name: execute_command, args: {{command: "echo '# theirs' >> shop.py"}}}}
{edit}
- expect: changed
  calls: [{{name: read_file, args: {{path: shop.py}}}}]
- expect: "# theirs"
  calls:
{edit}
- expect: "Edited shop.py"
  text: Both are in it.
"""
    )
    assert [(result.name, result.ok) for result in played.results] == [
        ("read_file", True),
        ("execute_command", True),
        ("replace_in_file", False),
        ("read_file", True),
        ("replace_in_file", True),
    ]
    assert file.read_text() == SUM.replace("[1:]", "") + "# theirs\n"


async def test_a_second_task_goes_on_in_the_same_conversation(stage: Stage) -> None:
    stage.write("shop.py", SUM)
    first = await stage.play(MEND, "Mend total.")
    second = await stage.play(
        "[{expect: Thank you., text: You are welcome.}]", "Thank you.", resume=first.session
    )
    assert second.session == first.session
    assert second.events[: len(first.events)] == first.events
    rest = second.story[len(first.story) :]
    assert [line for line in rest if not line.startswith("HeadSet")] == [
        "UserSaid",
        "ModelCalled",
        "ModelSaid",
        "Stopped done",
    ]
    assert await stage.divergence(first.session) is None
