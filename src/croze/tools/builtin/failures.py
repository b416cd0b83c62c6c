"""How a refused or failed operation on the workspace becomes a result that shows the way on."""

import os

from croze.edit.values import Refusal
from croze.tools.base import ToolContext
from croze.types.errors import CrozeError
from croze.types.tool import ToolResult

_COMPARED = 20_000


def failed(error: CrozeError) -> ToolResult:
    return ToolResult(ok=False, message=error.message, text=error.hint, code=error.code)


def refused(refusal: Refusal, path: str) -> ToolResult:
    return ToolResult(
        ok=False, message=f"{path}: {refusal.message}", text=refusal.text, code=refusal.code
    )


async def missing(ctx: ToolContext, path: str) -> ToolResult:
    """For a file that isn't there: with the files of nearly that name."""
    from croze.workspace.search import list_files

    try:
        known, _ = await list_files(ctx.workspace, ".", ctx.env)
    except CrozeError:
        known = []
    near = near_names(path, known)
    hint = "Did you mean " + ", ".join(near) + "?" if near else "Look for it with find_files."
    return ToolResult(ok=False, message=f"{path} does not exist.", text=hint, code="file_not_found")


def near_names(path: str, known: list[str], *, limit: int = 5) -> list[str]:
    """Of `known`, the paths with the same last name, else with one like it."""
    wanted = os.path.basename(path.rstrip("/")).casefold()
    by_name: dict[str, list[str]] = {}
    for other in known:
        by_name.setdefault(os.path.basename(other).casefold(), []).append(other)
    names = [wanted] if wanted in by_name else []
    if not names and len(by_name) <= _COMPARED:
        from difflib import get_close_matches

        names = get_close_matches(wanted, by_name, n=limit, cutoff=0.7)
    return [other for name in names for other in by_name[name]][:limit]


def changed_since_read(path: str) -> ToolResult:
    return ToolResult(
        ok=False,
        message=f"{path} has changed since you last read it; nothing was written.",
        text="Read it again, then repeat the change on what it says now.",
        code="file_changed",
    )
