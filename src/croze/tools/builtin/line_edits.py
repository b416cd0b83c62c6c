"""Changing files by line numbers, and by a sketch of the new text."""

from collections.abc import Callable
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta, Struct

from croze.edit.ranges import LineRange, RangeEdit, plan_ranges
from croze.edit.rows import split
from croze.edit.values import EditPlan, Refusal
from croze.text.redact import redact
from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.builtin.failures import failed, missing, refused
from croze.tools.builtin.writing import Draft, digest, line_count, planned, preview, write
from croze.types.errors import CrozeError
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolExample, ToolResult, View

_WRITES = Access(read=True, write=True)
_UNDECIDED = "undecided_sketch"

Path = Annotated[str, Meta(description="relative to the workspace")]
Line = Annotated[int, Meta(ge=1)]


class PlannedEdit(Struct, frozen=True, forbid_unknown_fields=True):
    """One edit of an edit agent's plan."""

    start_line: int
    end_line: int
    replacement: str


class EditFile(Tool, frozen=True):
    """Change a file by a sketch: the new text of the changed places, each with at least two unchanged
    lines above and below, and `... existing code ...` in a comment for every part left out. Refused
    where the file doesn't decide where it belongs."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="edit_file",
        summary="change a file by a sketch with `... existing code ...`",
        access=_WRITES,
        examples=(
            ToolExample(
                "Change one function",
                {
                    "target_file": "src/app.py",
                    "instructions": "Let total() count tax.",
                    "code_edit": "# ... existing code ...\n\ndef total(items):\n    return sum(items) * TAX\n"
                    "\n# ... existing code ...",
                },
            ),
        ),
    )

    target_file: Path
    instructions: Annotated[str, Meta(description="one sentence: what the edit does")]
    code_edit: Annotated[str, Meta(description="the sketch")]

    async def run(self, ctx: ToolContext) -> ToolResult:
        try:
            draft = self._draft(ctx)
            if isinstance(draft, Refusal) and draft.code == _UNDECIDED:
                draft = await self._asked(ctx, draft)
            if isinstance(draft, Refusal):
                return refused(draft, self.target_file)
            verb = "Created" if draft.before is None else "Edited"
            return write(ctx, draft, f"{verb} {self.target_file}")
        except CrozeError as error:
            return await _failure(ctx, error, self.target_file)

    def preview(self, ctx: ToolContext) -> View:
        view = preview(f"Edit {self.target_file}", lambda: self._draft(ctx))
        if view.kind == "diff":
            return view
        return View(title=view.title, body=f"{view.body}\n{self.instructions}\n\n{self.code_edit}")

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return digest(result)

    def _draft(self, ctx: ToolContext) -> Draft | Refusal:
        from croze.edit.sketch import SketchEdit, plan_sketch

        sketch = SketchEdit(self.code_edit, self.target_file)
        return planned(ctx, self.target_file, lambda text: plan_sketch(text, sketch), make=True)

    async def _asked(self, ctx: ToolContext, refusal: Refusal) -> Draft | Refusal:
        """The draft of what the edit agent plans; the refusal where there is none."""
        texts: list[str] = []

        def unchanged(text: str) -> EditPlan:
            texts.append(text)
            return EditPlan(text, ())

        read = planned(ctx, self.target_file, unchanged, make=True)
        shown, hidden = redact(texts[0])
        if hidden and shown.count("\n") != texts[0].count("\n"):
            return refusal  # the lines that the agent would see aren't the file's
        edits = await ctx.edit_agent(self.target_file, shown, self.instructions, self.code_edit)
        if edits is None or isinstance(read, Refusal):
            return refusal
        try:
            plan = msgspec.convert(list(edits), list[PlannedEdit])
        except msgspec.ValidationError as error:
            message = f"The edit agent's plan is malformed ({error}). Nothing was changed."
            return Refusal("malformed_range", message, refusal.text)
        ranges = RangeEdit(tuple(LineRange(e.start_line, e.end_line, e.replacement) for e in plan))

        def made(text: str) -> EditPlan | Refusal:
            if text != texts[0]:
                what = "The file changed while the edit was planned. Nothing was changed."
                return Refusal("stale", what, "Read it again, then repeat the change.")
            return plan_ranges(text, ranges)

        return planned(ctx, self.target_file, made, make=True)


class InsertInFile(Tool, frozen=True):
    """Put lines into a file before line_number; without it, or beyond the last line, at the end. A file
    that doesn't exist is made."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="insert_in_file",
        summary="insert lines at a line number",
        access=_WRITES,
        examples=(
            ToolExample(
                "Add an import at the top",
                {"path": "src/app.py", "line_number": 1, "content": "import re"},
            ),
        ),
    )

    path: Path
    content: Annotated[str, Meta(description="the lines to put in")]
    line_number: Annotated[Line, Meta(description="the line to stand before, from 1")] | None = None

    async def run(self, ctx: ToolContext) -> ToolResult:
        done = f"Inserted {line_count(self.content)} into {self.path}"
        return await _run(ctx, self.path, self._draft, done, made=f"Created {self.path}")

    def preview(self, ctx: ToolContext) -> View:
        return preview(f"Insert into {self.path}", lambda: self._draft(ctx))

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return digest(result)

    def _draft(self, ctx: ToolContext) -> Draft | Refusal:
        def plan(text: str) -> EditPlan | Refusal:
            end = len(split(text)) + 1
            at = end if self.line_number is None else min(self.line_number, end)
            return plan_ranges(text, RangeEdit((LineRange(at, at - 1, self.content),)))

        return planned(ctx, self.path, plan, make=True)


class RemoveLines(Tool, frozen=True):
    """Remove the lines from start_line to end_line, both included; without one of them, from the first
    or to the last line. Line numbers are those of the file as it is now: read it before."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="remove_lines",
        summary="remove a range of lines",
        access=_WRITES,
        examples=(
            ToolExample(
                "Remove two lines", {"path": "src/app.py", "start_line": 10, "end_line": 11}
            ),
        ),
    )

    path: Path
    start_line: Annotated[Line, Meta(description="first line, from 1")] | None = None
    end_line: Annotated[Line, Meta(description="last line, inclusive")] | None = None

    async def run(self, ctx: ToolContext) -> ToolResult:
        return await _run(ctx, self.path, self._draft, f"Removed lines from {self.path}")

    def preview(self, ctx: ToolContext) -> View:
        return preview(f"Remove lines from {self.path}", lambda: self._draft(ctx))

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return digest(result)

    def _draft(self, ctx: ToolContext) -> Draft | Refusal:
        def plan(text: str) -> EditPlan | Refusal:
            start, end = self.start_line or 1, self.end_line or len(split(text))
            return _ordered(start, end, "") or plan_ranges(
                text, RangeEdit((LineRange(start, end, ""),))
            )

        return planned(ctx, self.path, plan)


class ReplaceLines(Tool, frozen=True):
    """Put content in the place of the lines from start_line to end_line, both included. Line numbers
    are those of the file as it is now: read it before."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="replace_lines",
        summary="replace a range of lines",
        access=_WRITES,
        examples=(
            ToolExample(
                "Replace one line",
                {"path": "src/app.py", "start_line": 3, "end_line": 3, "content": "DEBUG = False"},
            ),
        ),
    )

    path: Path
    start_line: Annotated[Line, Meta(description="first line, from 1")]
    end_line: Annotated[Line, Meta(description="last line, inclusive")]
    content: Annotated[str, Meta(description="the new lines")]

    async def run(self, ctx: ToolContext) -> ToolResult:
        return await _run(ctx, self.path, self._draft, f"Replaced lines of {self.path}")

    def preview(self, ctx: ToolContext) -> View:
        return preview(f"Replace lines of {self.path}", lambda: self._draft(ctx))

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return digest(result)

    def _draft(self, ctx: ToolContext) -> Draft | Refusal:
        edit = RangeEdit((LineRange(self.start_line, self.end_line, self.content),))
        wrong = _ordered(self.start_line, self.end_line, "To put lines in, use insert_in_file.")
        return wrong or planned(ctx, self.path, lambda text: plan_ranges(text, edit))


async def _run(
    ctx: ToolContext,
    path: str,
    drafting: Callable[[ToolContext], Draft | Refusal],
    done: str,
    made: str = "",
) -> ToolResult:
    try:
        draft = drafting(ctx)
        if isinstance(draft, Refusal):
            return refused(draft, path)
        return write(ctx, draft, made if draft.before is None else done)
    except CrozeError as error:
        return await _failure(ctx, error, path)


async def _failure(ctx: ToolContext, error: CrozeError, path: str) -> ToolResult:
    return await missing(ctx, path) if error.code == "file_not_found" else failed(error)


def _ordered(start: int, end: int, hint: str) -> Refusal | None:
    """A refusal where no line is in the range: an insertion is another tool's work."""
    if end >= start:
        return None
    what = f"There is no line from {start} to {end}. Nothing was changed."
    return Refusal("malformed_range", what, hint)
