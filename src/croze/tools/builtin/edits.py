"""Writing files: whole, at the end, or by SEARCH/REPLACE blocks; old or new bytes, never mixed."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from croze.edit.blocks import parse_blocks
from croze.edit.plan import apply, plan
from croze.edit.source import Source, edited, lf, read_source, rewritten
from croze.edit.values import Refusal
from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.builtin.failures import failed, missing, refused
from croze.tools.builtin.writing import (
    Draft,
    digest,
    line_count,
    planned,
    present,
    preview,
    write,
)
from croze.types.errors import CrozeError
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolExample, ToolResult, View
from croze.workspace.paths import PathError


class WriteToFile(Tool, frozen=True):
    """Write a file: all of its content, or with mode append text after its end. Missing folders are
    made. For a change in an existing file use replace_in_file. Never leave parts of the content out."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="write_to_file",
        summary="write a whole file or append to one",
        access=Access(read=True, write=True),
        core=True,
        examples=(
            ToolExample("A new file", {"path": "src/hello.py", "content": 'print("hello")'}),
        ),
    )

    path: Annotated[str, Meta(description="relative to the workspace")]
    content: Annotated[str, Meta(description="the whole new content, or the text to append")]
    mode: Annotated[Literal["write", "append"], Meta(description="write (default) or append")] = (
        "write"
    )

    async def run(self, ctx: ToolContext) -> ToolResult:
        try:
            draft = self._draft(ctx)
            if isinstance(draft, Refusal):
                return refused(draft, self.path)
            return write(ctx, draft, self._done(draft))
        except CrozeError as error:
            return failed(error)

    def preview(self, ctx: ToolContext) -> View:
        verb = "Append to" if self.mode == "append" else "Write"
        return preview(f"{verb} {self.path}", lambda: self._draft(ctx))

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return digest(result)

    def _draft(self, ctx: ToolContext) -> Draft | Refusal:
        found = present(ctx, self.path)
        before = found.data if found else None
        path = found.stat.path if found else self.path
        source = read_source(before or b"")
        if source is None:
            if self.mode == "append":
                raise PathError(
                    "binary", self.path, f"{self.path} is binary; nothing was appended."
                )
            source = Source("")
        new, notes = self._new_text(source), tuple[str, ...]()
        if self.mode == "append" or not new:
            after = rewritten(source, new)
        else:
            from croze.edit.whole import WholeEdit, plan_whole

            made = plan_whole(source.text, WholeEdit(new, path))
            if isinstance(made, Refusal):
                return made
            new = apply(made)
            after = edited(source, made) if source.text else rewritten(source, new)
            if made.strategy == "sketch":
                notes = ("What the content left out was kept from the file.",)
        if isinstance(after, Refusal):
            return after
        return Draft(path, before, after, source.text, new, notes)

    def _new_text(self, source: Source) -> str:
        """The new text: with a final newline where the file had one or is new, and its line ends."""
        old = source.text
        content = lf(self.content) if old else self.content
        if self.mode == "append" and old:
            content = old + ("" if old.endswith("\n") else "\n") + content
        ends = content.endswith("\n") or not content
        return content if ends or (old and not old.endswith("\n")) else content + "\n"

    def _done(self, draft: Draft) -> str:
        if draft.before is None:
            return f"Created {self.path} ({line_count(draft.new)})"
        if self.mode == "append":
            return f"Appended {line_count(self.content)} to {self.path}"
        return f"Overwrote {self.path} ({line_count(draft.new)})"


class ReplaceInFile(Tool, frozen=True):
    """Change parts of a file by SEARCH/REPLACE blocks. SEARCH: whole lines, exactly as in the file
    (without line numbers), enough of them to occur once; REPLACE: what stands there then, empty to
    delete. Blocks in file order; to move text, delete it in one block and add it in another. Either
    all blocks are applied or none."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="replace_in_file",
        summary="change parts of a file by SEARCH/REPLACE blocks",
        access=Access(read=True, write=True),
        core=True,
        examples=(
            ToolExample(
                "Change one line",
                {
                    "path": "src/app.py",
                    "diff": "<<<<<<< SEARCH\n    return a - b\n=======\n    return a + b\n>>>>>>> REPLACE",
                },
            ),
        ),
    )

    path: Annotated[str, Meta(description="relative to the workspace")]
    diff: Annotated[
        str, Meta(description="blocks: <<<<<<< SEARCH, lines, =======, lines, >>>>>>> REPLACE")
    ]

    async def run(self, ctx: ToolContext) -> ToolResult:
        try:
            draft = self._draft(ctx)
            if isinstance(draft, Refusal):
                return refused(draft, self.path)
            return write(ctx, draft, f"Edited {self.path}")
        except PathError as error:
            if error.code == "file_not_found":
                return await missing(ctx, self.path)
            return failed(error)

    def preview(self, ctx: ToolContext) -> View:
        return preview(f"Edit {self.path}", lambda: self._draft(ctx))

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return digest(result)

    def _draft(self, ctx: ToolContext) -> Draft | Refusal:
        edit = parse_blocks(self.diff)
        if isinstance(edit, Refusal):
            return edit
        return planned(ctx, self.path, lambda text: plan(text, edit))
