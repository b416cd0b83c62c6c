"""get_workspace_info: how much there is in the workspace."""

import asyncio
from typing import ClassVar

import msgspec

from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.builtin.failures import failed
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolExample, ToolResult, View
from croze.workspace.ignore import Ignore
from croze.workspace.measure import MOST_ENTRIES, Measured, measure
from croze.workspace.paths import PathError
from croze.workspace.workspace import Workspace


class GetWorkspaceInfo(Tool, frozen=True):
    """Count the files and folders of the workspace and their bytes, and tell when it was changed last.
    In a project what listings pass over (hidden and ignored folders and files) isn't counted."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="get_workspace_info",
        summary="count files, folders and bytes here",
        access=Access(read=True),
        examples=(ToolExample("Look how much there is", {}),),
    )

    async def run(self, ctx: ToolContext) -> ToolResult:
        try:
            measured = await asyncio.to_thread(_measure, ctx.workspace)
        except PathError as error:
            return failed(error)
        info = measured.info
        if info.last_modified is None:
            message = "The workspace is empty: nothing was written yet."
        else:
            files = "1 file" if info.file_count == 1 else f"{info.file_count:,} files"
            folders = "1 folder" if info.dir_count == 1 else f"{info.dir_count:,} folders"
            message = (
                f"{files}, {folders}, {info.total_size:,} bytes; last change {info.last_modified}."
            )
        truncated = None
        if measured.cut:
            truncated = f"there is more: only the first {MOST_ENTRIES:,} were counted"
        elif measured.problem is not None:
            truncated = f"not all was counted: {measured.problem.message}"
        return ToolResult(
            ok=True,
            message=f"{message} {truncated}" if truncated else message,
            view=View(title=message),
            data=msgspec.to_builtins(info),
            truncated=truncated,
        )

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return result.message


def _measure(workspace: Workspace) -> Measured:
    if workspace.kind == "task":
        return measure(workspace.files)
    return measure(workspace.files, ignore=Ignore(workspace.files), most=MOST_ENTRIES)
