"""What all tools that write a file share: the draft, its preview, the checked write and its result."""

from collections.abc import Callable

from msgspec import Struct

from croze.edit.diff import Diff, unified
from croze.edit.plan import apply
from croze.edit.source import Source, edited, read_source, rewritten
from croze.edit.syntax import new_errors
from croze.edit.values import EditPlan, Refusal
from croze.text.secret_values import MARK
from croze.tools.base import ToolContext
from croze.tools.builtin.failures import changed_since_read
from croze.tools.builtin.marks import copies_mark
from croze.tools.digest import failure, left_out, ranges
from croze.types.errors import CrozeError
from croze.types.tool import ToolResult, View
from croze.workspace.files import FileData, sha256
from croze.workspace.paths import PathError

_KEY_LINES = 40
_KEY_LINE = 300
_ERRORS_SHOWN = 5


class Draft(Struct, frozen=True):
    """What a call would write: bytes before and after, both as text, and what to tell of it."""

    path: str
    before: bytes | None
    after: bytes
    old: str
    new: str
    notes: tuple[str, ...] = ()

    @property
    def diff(self) -> Diff:
        return unified(self.old, self.new, self.path)


def present(ctx: ToolContext, path: str) -> FileData | None:
    """The file, None where there is none. Raises `PathError` where it is too large to edit."""
    try:
        data = ctx.workspace.files.read(path)
    except PathError as error:
        if error.code == "file_not_found":
            return None
        raise
    if not data.complete:
        raise PathError("write_failed", path, f"{path} is too large to edit; use a command.")
    return data


def planned(
    ctx: ToolContext,
    path: str,
    plan: Callable[[str], EditPlan | Refusal],
    *,
    make: bool = False,
) -> Draft | Refusal:
    """The draft of a plan on the file's text. With `make` a file that isn't there counts as empty.
    Raises `PathError` where it can't be read or is binary."""
    found = present(ctx, path)
    if found is None and not make:
        raise PathError("file_not_found", path, f"{path} does not exist.")
    source = read_source(found.data) if found is not None else Source("")
    if source is None:
        raise PathError("binary", path, f"{path} is binary; nothing was changed.")
    made = plan(source.text)
    if isinstance(made, Refusal):
        return made
    new = apply(made)
    after = edited(source, made) if source.text else rewritten(source, new)
    if isinstance(after, Refusal):
        return after
    notes = (*(changed_lines(made) if found is not None else ()), *made.notes)
    where, before = (found.stat.path, found.data) if found is not None else (path, None)
    return Draft(where, before, after, source.text, new, notes)


def write(ctx: ToolContext, draft: Draft, done: str) -> ToolResult:
    """Write a draft, if the file is still the one that the agent has seen. Syntax errors that it brings
    in are told, but are no failure."""
    before = "" if draft.before is None else sha256(draft.before)
    seen = ctx.seen(draft.path)
    if seen is not None and draft.before is not None and seen != before:
        return changed_since_read(draft.path)
    if copies_mark(draft.old, draft.new):
        return ToolResult(
            ok=False,
            message=f"The new text of {draft.path} holds {MARK}; nothing was written.",
            text="That stands where a secret was hidden from you. Change the file without that part.",
            code="redacted",
        )
    if draft.after == draft.before:
        message = f"{draft.path} was not changed: it already reads so."
        return ToolResult(
            ok=True, message=message, text="\n".join(draft.notes), observed={draft.path: before}
        )
    written = ctx.workspace.files.write(draft.path, draft.after, expect=before)
    ctx.record_change(written.path, draft.before, draft.after)
    diff = draft.diff
    counts = f"+{diff.added} -{diff.removed}"
    data = {
        "path": written.path,
        "created": draft.before is None,
        "added": diff.added,
        "removed": diff.removed,
    }
    notes = list(draft.notes)
    errors = new_errors(draft.old, draft.new, written.path)
    if errors:
        data["syntax_errors"] = [{"line": error.line, "text": error.text} for error in errors]
        notes.append("Warning: the file now has syntax errors that it didn't have before:")
        notes += [f"  line {error.line}: {error.text}" for error in errors[:_ERRORS_SHOWN]]
        if len(errors) > _ERRORS_SHOWN:
            notes.append(f"  … and {len(errors) - _ERRORS_SHOWN} more")
    return ToolResult(
        ok=True,
        message=f"{done}, {counts} lines." if draft.before is not None else f"{done}.",
        text="\n".join(notes),
        view=View(title=f"{done} {counts}", body=diff.text, kind="diff"),
        data=data,
        observed={written.path: sha256(draft.after)},
    )


def preview(title: str, make: Callable[[], Draft | Refusal]) -> View:
    """The diff of a draft for the approval question; where there is none, why."""
    try:
        draft = make()
    except CrozeError as error:
        return View(title=title, body=error.message)
    if isinstance(draft, Refusal):
        return View(title=title, body=draft.message)
    diff = draft.diff
    return View(title=f"{title} +{diff.added} -{diff.removed}", body=diff.text, kind="diff")


def digest(result: ToolResult) -> str:
    """What was done to which file, the ranges of lines, and the changed lines themselves."""
    if not result.ok:
        return failure(result)
    where = ranges(result.view)
    lines = [f"Lines {where}." if where else ""]
    if result.view is not None and result.view.kind == "diff":
        rows = [row for row in result.view.body.split("\n")[2:] if row.startswith(("+", "-"))]
        lines += [row[:_KEY_LINE] for row in rows[:_KEY_LINES]]
        lines += [left_out(len(rows) - _KEY_LINES, "line")] if len(rows) > _KEY_LINES else []
    return "\n".join(filter(None, [result.message, *lines]))


def line_count(text: str) -> str:
    count = text.count("\n") + (not text.endswith("\n") and bool(text))
    return f"{count} line{'' if count == 1 else 's'}"


def changed_lines(plan: EditPlan) -> tuple[str, ...]:
    """The changed lines as they are numbered after the edit."""
    ranges, shift = [], 0
    for change in plan.changes:
        start = change.start + shift
        shift += len(change.lines) - (change.end - change.start)
        if change.lines:
            ranges.append(f"{start + 1}-{start + len(change.lines)}")
        else:
            ranges.append(f"{start + 1} (deleted above)")
    return (f"Changed lines are now {', '.join(ranges)}.",) if ranges else ()
