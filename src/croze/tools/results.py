"""The results that the runner itself gives, and what is taken out of results before they are kept."""

from typing import TYPE_CHECKING

import msgspec

from croze.text.redact import redact
from croze.tools.approve import Decision
from croze.tools.bound import bounded
from croze.types.errors import CrozeError
from croze.types.event import AskedPart, FilesChanged
from croze.types.parts import ToolCall
from croze.types.tool import ToolResult, View

if TYPE_CHECKING:
    from croze.workspace.task_mask import Mask

INTERRUPTED = (
    "This call was interrupted before its outcome was known. Whether it took effect is unknown: look "
    "before you rely on it or repeat it."
)
NOT_RUN = "This call was not run: the user stopped the step before it began."
FAILED_BEFORE = (
    "Another call of the same reply failed, so the turn goes on. Look at its result first, then call "
    "{name} again, alone."
)
_VIEW_CAP = 200_000


def interrupted(*, begun: bool) -> ToolResult:
    """For a call that a cancel met; `begun`: while it ran."""
    return ToolResult(
        ok=False,
        message="interrupted, outcome unknown" if begun else "not run",
        text=INTERRUPTED if begun else NOT_RUN,
        code="interrupted" if begun else "not_run",
    )


def completion_refused(name: str) -> ToolResult:
    return ToolResult(
        ok=False,
        message=f"{name} was refused: another call failed.",
        text=FAILED_BEFORE.format(name=name),
        code="completion_refused",
    )


def refused_by_user(note: str) -> ToolResult:
    why = f" {note.strip()}" if note.strip() else ""
    return ToolResult(
        ok=False,
        message=f"The user refused this call.{why}",
        text="Do it another way, or ask what the user wants.",
        code="refused",
        data={"note": note},
    )


def not_allowed(call: ToolCall, decision: Decision) -> ToolResult:
    where = "" if decision.verdict == "deny" else " and no user is present to ask"
    flag = f" The user can allow it with {decision.flag}" if decision.flag else ""
    return ToolResult(
        ok=False,
        message=f"{call.name} was not allowed: {decision.reason}{where}.{flag}",
        text="Go on without it, or do it another way.",
        code="not_allowed",
        data={"reason": decision.reason, "flag": decision.flag},
    )


def tool_error(error: BaseException) -> ToolResult:
    if isinstance(error, CrozeError):
        return ToolResult(ok=False, message=error.message, text=error.hint, code=error.code)
    what = str(error).strip()
    return ToolResult(
        ok=False,
        message=f"The tool failed: {type(error).__name__}{f': {what}' if what else ''}",
        code="tool_error",
    )


def without_place(result: ToolResult, mask: "Mask | None") -> ToolResult:
    """The result as it is shown where the model must not know where its workspace is."""
    if mask is None:
        return result
    view = result.view
    if view is not None:
        view = View(title=mask.text(view.title), body=mask.text(view.body), kind=view.kind)
    return msgspec.structs.replace(
        result,
        message=mask.text(result.message),
        text=mask.text(result.text),
        view=view,
        data=mask.value(result.data),
        truncated=None if result.truncated is None else mask.text(result.truncated),
        whole=mask.text(result.whole),
    )


def redacted_view(view: View | None) -> View | None:
    if view is None:
        return None
    body, _ = bounded(redact(view.body)[0], _VIEW_CAP)
    return View(title=redact(view.title)[0], body=body, kind=view.kind)


def redacted_parts(parts: tuple[AskedPart, ...]) -> tuple[AskedPart, ...]:
    return tuple(AskedPart(text=redact(each.text)[0], why=redact(each.why)[0]) for each in parts)


def redacted_changes(changed: FilesChanged) -> FilesChanged:
    changes = tuple(
        msgspec.structs.replace(change, diff=redact(change.diff)[0]) for change in changed.changes
    )
    return FilesChanged(call_id=changed.call_id, changes=changes)
