"""The text of a document or a web page, written into a file of the workspace."""

import asyncio
from typing import Annotated, ClassVar

from msgspec import Meta

from croze.documents.kinds import kind_of
from croze.documents.read import Request
from croze.edit.source import read_source, rewritten
from croze.edit.values import Refusal
from croze.text.display import safe
from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.builtin.failures import failed, missing, refused
from croze.tools.builtin.writing import Draft, digest, line_count, present, write
from croze.types.errors import CrozeError
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolExample, ToolResult, View
from croze.workspace.extraction import LARGEST
from croze.workspace.paths import PathError
from croze.workspace.sensitive import is_sensitive

_SCHEMES = ("http://", "https://")


class ExtractToText(Tool, frozen=True):
    """Write the text of a document (PDF, DOCX, XLSX, PPTX, HTML, notebook, any text) or of a web page
    into a file: HTML as Markdown. Use it for what is too long to read at once; then search the file."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="extract_to_text",
        summary="write a document's or web page's text into a file",
        access=Access(read=True, write=True, net=True),
        examples=(
            ToolExample(
                "A manual", {"source": "docs/manual.pdf", "destination": "docs/manual.txt"}
            ),
        ),
        aliases={"source_path": "source", "target_path": "destination", "path": "source"},
    )

    source: Annotated[str, Meta(description="a path in the workspace, or a URL", min_length=1)]
    destination: Annotated[str, Meta(description="the text file to write", min_length=1)]

    @property
    def url(self) -> str:
        """The URL that is fetched, empty where the source is a file: approval rules see it."""
        source = self.source.strip()
        return source if source.lower().startswith(_SCHEMES) else ""

    def access(self) -> Access:
        return Access(read=True, write=True, net=bool(self.url))

    async def run(self, ctx: ToolContext) -> ToolResult:
        try:
            what, text = await (self._of_web(ctx) if self.url else self._of_file(ctx))
            return self._written(ctx, what, text)
        except PathError as error:
            if error.code == "file_not_found" and not self.url:
                return await missing(ctx, self.source)
            return failed(error)
        except CrozeError as error:
            return failed(error)

    def preview(self, ctx: ToolContext) -> View:
        return View(
            title="Write a document's text", body=safe(f"{self.source}\n→ {self.destination}")
        )

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return digest(result)

    async def _of_web(self, ctx: ToolContext) -> tuple[str, str]:
        from croze.tools.builtin.web import fetched

        page = await fetched(ctx, self.url)
        return page.what, page.text

    async def _of_file(self, ctx: ToolContext) -> tuple[str, str]:
        found = await asyncio.to_thread(ctx.workspace.files.read, self.source, LARGEST)
        path = found.stat.path
        if is_sensitive(self.source) or is_sensitive(path):
            raise PathError("sensitive", path, f"{path} may hold secrets and is not copied.")
        if not found.complete:
            raise PathError("too_large", path, f"{path} has more than {LARGEST:,} bytes.")
        kind = kind_of(path, found.data[:4096])
        if kind is not None:
            read = await ctx.documents.text(Request(kind), found.data, ctx.env)
            return f"{path}: {'; '.join((read.about, *read.notes))}", safe(read.text)
        source = read_source(found.data)
        if source is None:
            raise PathError("binary", path, f"{path} is neither text nor a document that is read.")
        return f"{path}: text", source.text

    def _written(self, ctx: ToolContext, what: str, text: str) -> ToolResult:
        """Written as the file tools write."""
        found = present(ctx, self.destination)
        before = found.data if found else None
        old = read_source(before or b"")
        if old is None:
            raise PathError(
                "binary",
                self.destination,
                f"{self.destination} is binary and stays as it is.",
                hint="Name another file.",
            )
        new = text.rstrip("\n") + "\n"
        after = rewritten(old, new)
        if isinstance(after, Refusal):
            return refused(after, self.destination)
        path = found.stat.path if found else self.destination
        done = f"Wrote the text of {what} to {self.destination} ({line_count(new)})"
        return write(ctx, Draft(path, before, after, old.text, new), done)
