"""The edit agent: where a sketch can't be aligned with a file by its text alone, a model plans the line
edits, the plan is checked, and only then applied, bottom up and all or nothing.

Three nodes: read the target, analyse and plan, apply. The model never writes the file; what it says is
a plan that must fit the file and hold every line of the sketch.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from croze.edit.plan import apply
from croze.edit.ranges import LineRange, RangeEdit, plan_ranges
from croze.edit.values import Refusal
from croze.teams.flow import DECIDE_NEXT, BatchNode, Flow, Node, Record
from croze.teams.state import EditOperation, FlowState, HistoryEntry, stamp
from croze.types.errors import CrozeError

Ask = Callable[[str, str], Awaitable[str]]
"""Asks the `edit` model: system text and question, gives its answer. Raises ModelError."""

MAX_CHARACTERS = 400_000
"""A longer file isn't shown to the model."""

ANALYZE, APPLY = "analyze_plan", "apply_changes"

SYSTEM = (
    "You plan edits of one file. You get the file with line numbers, an instruction, and a sketch of the "
    "change in which marker comments such as `... existing code ...` stand for code that stays. Answer "
    'with a JSON array and nothing else: [{"start_line": 1, "end_line": 1, "replacement": "..."}]. '
    "Line numbers are those of the file as shown, from 1, both included; to insert before a line give "
    "end_line = start_line - 1. Ranges don't overlap. A replacement is whole lines as they shall stand, "
    "with their indentation, without line numbers and without marker comments; an empty one deletes. "
    "Change only what the sketch changes. If the sketch doesn't fit the file, answer []."
)


class EditAgentError(CrozeError):
    """The model found no plan that fits."""

    code = "edit_agent"


class ReadTarget(Node[FlowState, str, str]):
    """Notes in the history which text the plan is made for: its hash, since the journal has the text."""

    def __init__(self, path: str, text: str, now: Callable[[], int]) -> None:
        self._path = path
        self._text = text
        self._now = now

    async def prep(self, shared: FlowState) -> str:
        return self._path

    async def exec(self, prepared: str) -> str:
        if len(self._text) > MAX_CHARACTERS:
            raise EditAgentError(
                f"{prepared} is too long for the edit model ({len(self._text):,} characters).",
                hint="Use replace_in_file with the lines to be changed.",
            )
        return self._text

    async def post(self, shared: FlowState, prepared: str, result: str) -> str:
        seen = {
            "success": True,
            "characters": len(result),
            "sha256": hashlib.sha256(result.encode("utf-8", "surrogatepass")).hexdigest(),
        }
        shared.history.append(
            HistoryEntry(
                "read_file", "to plan the edit", {"path": prepared}, seen, stamp(self._now())
            )
        )
        return ANALYZE


class AnalyzeAndPlan(Node[FlowState, str, tuple[EditOperation, ...]]):
    """Asks the model for line edits until they fit, at most `tries` times, telling it what was wrong."""

    tries = 3

    def __init__(self, text: str, code_edit: str, markers: Callable[[str], bool], ask: Ask) -> None:
        self._text = text
        self._code_edit = code_edit
        self._is_marker = markers
        self._ask = ask

    async def prep(self, shared: FlowState) -> str:
        numbered = "\n".join(
            f"{number}: {line}" for number, line in enumerate(self._text.split("\n"), 1)
        )
        return (
            f"<file>\n{numbered}\n</file>\n\n<instruction>\n{shared.user_query}\n</instruction>\n\n"
            f"<sketch>\n{self._code_edit}\n</sketch>"
        )

    async def exec(self, prepared: str) -> tuple[EditOperation, ...]:
        wrong = ""
        for _attempt in range(self.tries):
            question = (
                prepared if not wrong else f"{prepared}\n\nYour last answer was wrong: {wrong}"
            )
            operations = parse_operations(await self._ask(SYSTEM, question))
            wrong = operations if isinstance(operations, str) else self._check(operations)
            if not wrong and not isinstance(operations, str):
                return operations
        raise EditAgentError(
            f"The edit model found no plan that fits: {wrong}",
            hint="Use replace_in_file with the exact lines.",
        )

    def _check(self, operations: Sequence[EditOperation]) -> str:
        """What is wrong with a plan; empty when it fits and keeps every line of the sketch."""
        planned = plan_ranges(self._text, as_ranges(operations))
        if isinstance(planned, Refusal):
            return planned.message
        after = {line.strip() for line in apply(planned).split("\n")}
        before = {line.strip() for line in self._text.split("\n")}
        for line in after - before:
            if self._is_marker(line):
                return f"the marker {line!r} must not be written into the file"
        for line in self._code_edit.split("\n"):
            if line.strip() and not self._is_marker(line) and line.strip() not in after:
                return f"the sketch's line {line.strip()!r} is missing from the result"
        return ""

    async def post(
        self, shared: FlowState, prepared: str, result: tuple[EditOperation, ...]
    ) -> str:
        shared.edit_operations = result
        return APPLY


class ApplyChanges(BatchNode[FlowState, EditOperation, EditOperation]):
    """Applies the plan to the text, from the last line to the first; `after` is what comes out."""

    def __init__(self, text: str, now: Callable[[], int]) -> None:
        self._text = text
        self._now = now
        self.after = text

    async def prep(self, shared: FlowState) -> Sequence[EditOperation]:
        return sorted(shared.edit_operations, key=lambda op: op.start_line, reverse=True)

    async def each(self, item: EditOperation) -> EditOperation:
        return item

    async def post(
        self,
        shared: FlowState,
        prepared: Sequence[EditOperation],
        result: list[EditOperation],
    ) -> str:
        planned = plan_ranges(self._text, as_ranges(result))
        if isinstance(planned, Refusal):
            raise EditAgentError(planned.message)
        self.after = apply(planned)
        shared.response = f"{len(result)} edits were planned."
        shared.history.append(
            HistoryEntry(
                "replace_lines",
                "the planned edits",
                {"edits": msgspec.to_builtins(result)},
                {"success": True},
                stamp(self._now()),
            )
        )
        shared.edit_operations = ()
        return DECIDE_NEXT


async def edit_by_model(
    *,
    path: str,
    text: str,
    instructions: str,
    code_edit: str,
    is_marker: Callable[[str], bool],
    ask: Ask,
    working_dir: str,
    now: Callable[[], int],
    record: Record | None = None,
    run_id: str = "",
) -> tuple[FlowState, str]:
    """Run the flow; gives its state and the file's new text. Raises EditAgentError where no plan fits,
    and ModelError where the model can't be reached. Line ends of `text` are LF."""
    read = ReadTarget(path, text, now)
    analyze = AnalyzeAndPlan(text, code_edit, is_marker, ask)
    change = ApplyChanges(text, now)
    flow = Flow(
        read,
        {(read, ANALYZE): analyze, (analyze, APPLY): change},
        name="edit_agent",
        ends=(DECIDE_NEXT,),
        record=record,
        run_id=run_id,
    )
    state = await flow.run(FlowState(user_query=instructions, working_dir=working_dir))
    return state, change.after


def parse_operations(answer: str) -> tuple[EditOperation, ...] | str:
    """The model's plan; where it can't be read, what is wrong with it."""
    body = answer.strip()
    if body.startswith("```"):
        body = body.partition("\n")[2].rstrip().removesuffix("```")
    try:
        found = msgspec.convert(json.loads(body), tuple[EditOperation, ...])
    except (ValueError, RecursionError) as error:
        return f"it is no JSON array of edits: {error}"
    return found or "there is no edit in it"


def as_ranges(operations: Sequence[EditOperation]) -> RangeEdit:
    return RangeEdit(
        edits=tuple(
            LineRange(start=op.start_line, end=op.end_line, text=op.replacement)
            for op in sorted(operations, key=lambda op: (op.start_line, op.end_line))
        )
    )
