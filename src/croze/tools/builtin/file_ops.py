"""Deleting and moving files."""

from typing import Annotated, ClassVar

from msgspec import Meta

from croze.edit.diff import unified
from croze.edit.source import read_source
from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.builtin.failures import changed_since_read, failed, missing
from croze.tools.builtin.writing import digest
from croze.tools.digest import failure
from croze.types.errors import CrozeError
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolExample, ToolResult, View
from croze.workspace.files import FileData
from croze.workspace.moving import move
from croze.workspace.paths import PathError

_WRITES = Access(read=True, write=True)


class DeleteFile(Tool, frozen=True):
    """Delete one file. Folders are not deleted."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="delete_file",
        summary="delete a file",
        access=_WRITES,
        examples=(ToolExample("Delete a file", {"path": "src/old.py"}),),
    )

    path: Annotated[str, Meta(description="relative to the workspace")]

    async def run(self, ctx: ToolContext) -> ToolResult:
        try:
            found = _file(ctx, self.path)
            if _changed(ctx, found):
                return changed_since_read(found.stat.path)
            removed = ctx.workspace.files.remove(self.path, expect=found.sha256)
        except CrozeError as error:
            return await _failure(ctx, error, self.path)
        ctx.record_change(removed.path, removed.before, None)
        view = _deleted(found)
        return ToolResult(
            ok=True,
            message=f"Deleted {self.path}.",
            view=view,
            data={"path": removed.path, "deleted": True, "size": found.stat.size},
        )

    def preview(self, ctx: ToolContext) -> View:
        try:
            return _deleted(_file(ctx, self.path))
        except CrozeError as error:
            return View(title=f"Delete {self.path}", body=error.message)

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return result.message if result.ok else failure(result)


class MoveFile(Tool, frozen=True):
    """Move or rename one file; its content and mode stay. An existing file is never overwritten, missing
    folders are made."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="move_file",
        summary="move or rename a file",
        access=_WRITES,
        examples=(
            ToolExample("Rename a file", {"source": "src/old.py", "destination": "src/new.py"}),
        ),
        aliases={"path": "source", "new_path": "destination", "target": "destination"},
    )

    source: Annotated[str, Meta(description="relative to the workspace")]
    destination: Annotated[str, Meta(description="the file's new path, not a folder")]

    async def run(self, ctx: ToolContext) -> ToolResult:
        try:
            found = _file(ctx, self.source)
            if _changed(ctx, found):
                return changed_since_read(found.stat.path)
            new = move(ctx.workspace, self.source, self.destination, expect=found.sha256)
        except CrozeError as error:
            return await _failure(ctx, error, self.source)
        ctx.record_change(new, None, found.data)
        ctx.record_change(found.stat.path, found.data, None)
        done = f"Moved {self.source} to {self.destination}."
        return ToolResult(
            ok=True,
            message=done,
            view=View(title=done),
            data={"source": found.stat.path, "destination": new},
            observed={new: found.sha256},
        )

    def preview(self, ctx: ToolContext) -> View:
        title = f"Move {self.source} to {self.destination}"
        try:
            size = _file(ctx, self.source).stat.size
        except CrozeError as error:
            return View(title=title, body=error.message)
        return View(title=title, body=f"{size:,} bytes, unchanged")

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return digest(result)


def _file(ctx: ToolContext, path: str) -> FileData:
    found = ctx.workspace.files.read(path)
    if not found.complete:
        raise PathError(
            "write_failed", path, f"{path} has {found.stat.size:,} bytes: too large to keep a copy.",
            hint="Use a command.",
        )  # fmt: skip
    return found


def _changed(ctx: ToolContext, found: FileData) -> bool:
    seen = ctx.seen(found.stat.path)
    return seen is not None and seen != found.sha256


def _deleted(found: FileData) -> View:
    path = found.stat.path
    source = read_source(found.data)
    if source is None:
        return View(title=f"Delete {path}", body=f"binary, {found.stat.size:,} bytes")
    diff = unified(source.text, "", path)
    return View(title=f"Delete {path} -{diff.removed}", body=diff.text, kind="diff")


async def _failure(ctx: ToolContext, error: CrozeError, path: str) -> ToolResult:
    return await missing(ctx, path) if error.code == "file_not_found" else failed(error)
