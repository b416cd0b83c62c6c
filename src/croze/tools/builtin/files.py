"""Reading a file: numbered lines within bounds, and what to do where there is more or it is no text."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from io import BufferedReader
from typing import Annotated, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from croze.edit.source import Source, is_binary, lf
from croze.knowledge.modules import Noticed
from croze.tools.again import unless_visible
from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.builtin.failures import failed, missing
from croze.tools.builtin.reading import Lines, is_read_otherwise, read_otherwise
from croze.tools.digest import first
from croze.types.parts import ToolCall
from croze.types.tool import Access, Look, ToolResult, View
from croze.workspace.cache import WHOLE, Document
from croze.workspace.files import FileStat
from croze.workspace.paths import PathError

MAX_LINES = 500
MAX_BYTES = 250_000
MAX_CHARACTERS = 40_000
MAX_LINE = 2_000
_CHUNK = 1 << 20
_AROUND = 5

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"BM", "BMP image"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"\x1f\x8b", "gzip archive"),
    (b"7z\xbc\xaf", "7-Zip archive"),
    (b"\xfd7zXZ", "xz archive"),
    (b"\x28\xb5\x2f\xfd", "zstd archive"),
    (b"\x7fELF", "ELF program"),
    (b"\xca\xfe\xba\xbe", "Java class"),
    (b"\0asm", "WebAssembly module"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"OggS", "Ogg media"),
    (b"ID3", "MP3 audio"),
)
_ZIPPED = {
    "docx": "Word document", "xlsx": "Excel workbook", "pptx": "PowerPoint file", "jar": "Java archive",
    "whl": "Python wheel", "odt": "OpenDocument text", "epub": "EPUB book",
}  # fmt: skip


class ReadFile(Tool, frozen=True):
    """Read a text file with line numbers, at most 500 lines a call; the result says how to go on.
    Read what you need of large files by start_line and end_line. The number and tab before each
    line are not part of the file. PDF, DOCX, XLSX, PPTX and notebooks come as text, images as such."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="read_file",
        summary="read a text file, lines numbered",
        access=Access(read=True),
        core=True,
    )

    path: Annotated[str, Meta(description="relative to the workspace")]
    start_line: Annotated[int, Meta(ge=1, description="first line, from 1")] | None = None
    end_line: Annotated[int, Meta(ge=1, description="last line, inclusive")] | None = None
    query: Annotated[str, Meta(description="only lines with this text and those near")] | None = (
        None
    )

    async def run(self, ctx: ToolContext) -> ToolResult:
        result = await self._read(ctx)
        return _with_modules(ctx, result) if result.ok else result

    async def _read(self, ctx: ToolContext) -> ToolResult:
        files = ctx.workspace.files
        try:
            found = files.stat(self.path)
            if found is None:
                return await missing(ctx, self.path)
            if found.kind == "folder":
                raise PathError(
                    "not_a_file", self.path, f"{self.path} is a folder.", hint="Use list_files."
                )
            if self.end_line is not None and self.end_line < (self.start_line or 1):
                return _no_lines(
                    f"end_line {self.end_line} is before start_line {self.start_line}."
                )
            document = ctx.cache.document(files, self.path) if found.size <= WHOLE else None
            if document is None or document.source is None or is_read_otherwise(found.path):
                other = await read_otherwise(ctx, self.path)
                if isinstance(other, Lines):
                    return unless_visible(ctx, self._of_lines(other))
                if other is not None:
                    return other
            if document is not None:
                return unless_visible(ctx, self._of_document(document))
            with files.open(self.path) as (stat, stream):
                result = await asyncio.to_thread(self._of_stream, stat, stream)
                return unless_visible(ctx, result)
        except PathError as error:
            return failed(error)

    def _of_document(self, document: Document) -> ToolResult:
        source = document.source
        if source is None:
            return _binary(document.stat, document.head)
        lines = source.text.removesuffix("\n").split("\n") if source.text else []
        start = self.start_line or 1
        wanted = lines[start - 1 : self.end_line]
        result = self._result(
            document.stat, document.sha256, wanted, total=len(lines), note=_form(source)
        )
        if document.hit and result.look is not None:
            return replace(result, look=replace(result.look, hit=True))
        return result

    def _of_lines(self, document: Lines) -> ToolResult:
        start = self.start_line or 1
        wanted = document.lines[start - 1 : self.end_line]
        return self._result(
            document.stat, document.sha256, wanted, total=len(document.lines), note=document.note
        )

    def _of_stream(self, stat: FileStat, stream: BufferedReader) -> ToolResult:
        """From a file too large to hold: the wanted lines, while the rest is only counted and hashed."""
        start = self.start_line or 1
        last = start + MAX_LINES
        if self.query is None and self.end_line is not None:
            last = min(last, self.end_line)
        digest, taken = hashlib.sha256(), bytearray()
        newlines, final = 0, b"\n"
        head = stream.peek(_CHUNK)
        if is_binary(head) or head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return _binary(stat, head)
        if self.query is not None:
            message = f"{stat.path} is too large for query ({stat.size:,} bytes)."
            return ToolResult(ok=False, message=message, text="Use search_files.", code="too_large")
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            count = chunk.count(b"\n")
            first, after = newlines + 1, newlines + 1 + count
            if after >= start and first <= last and len(taken) <= 2 * MAX_BYTES:
                taken += _between(chunk, start - first, last - first)
            newlines, final = newlines + count, chunk[-1:]
        total = newlines + (final != b"\n")
        text = lf(taken.decode("utf-8", "replace"))
        wanted = text.removesuffix("\n").split("\n") if text else []
        return self._result(stat, digest.hexdigest(), wanted, total=total, note="")

    def _result(
        self, stat: FileStat, digest: str, wanted: Sequence[str], *, total: int, note: str
    ) -> ToolResult:
        seen = {stat.path: digest}
        look = Look(key=f"read:{stat.path}", digest=digest)
        start = self.start_line or 1
        if total == 0:
            message = f"{self.path} is empty."
            return ToolResult(ok=True, message=message, observed=seen, look=look)
        if start > total:
            return _no_lines(f"{self.path} has only {total:,} lines; start_line is {start:,}.")
        numbered = list(enumerate(wanted, start))
        if self.query is not None:
            numbered = _near(numbered, self.query)
            if not numbered:
                message = f"No line of {self.path} contains {self.query!r}."
                return ToolResult(ok=True, message=message, observed=seen, look=look)
        shown, following = _bounded(numbered)
        end = shown[-1].number
        asked = min(self.end_line or total, total)
        truncated = None
        if following is not None or (self.query is None and end < asked):
            rest = f"lines {end + 1:,}-{asked:,}"
            truncated = f"{rest} are left out; go on with start_line={end + 1}"
        what = f"lines {start:,}-{end:,} of {total:,}"
        if self.query is not None:
            what = f"lines with {self.query!r} and those near, of {total:,}"
        else:
            look = replace(look, first=start, last=end)
        text = "\n".join(f"{line.number}\t{line.text}" for line in shown)
        return ToolResult(
            ok=True,
            message=f"{self.path}, {what}{note}" + (f"; {truncated}" if truncated else ""),
            text=text,
            view=View(title=f"Read {stat.path} ({what})", body=text),
            data={"path": stat.path, "start_line": start, "end_line": end, "lines": total},
            truncated=truncated,
            observed=seen,
            look=look,
        )

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return first(result, result.text.split("\n") if result.text else [], MAX_LINES)


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    text: str


def _bounded(numbered: Sequence[tuple[int, str]]) -> tuple[list[_Line], int | None]:
    """As many lines as a call may return, at least one; and the number of the first left out."""
    shown: list[_Line] = []
    scanned = characters = 0
    for number, line in numbered:
        text = line
        if len(line) > MAX_LINE:
            text = f"{line[:MAX_LINE]}… [+{len(line) - MAX_LINE:,} characters]"
        scanned += len(line) + 1
        characters += len(text) + len(str(number)) + 2
        full = len(shown) >= MAX_LINES or scanned > MAX_BYTES or characters > MAX_CHARACTERS
        if shown and full:
            return shown, number
        shown.append(_Line(number, text))
    return shown, None


def _near(numbered: Sequence[tuple[int, str]], query: str) -> list[tuple[int, str]]:
    wanted = query.casefold()
    hits = [at for at, (_, line) in enumerate(numbered) if wanted in line.casefold()]
    near = {at for hit in hits for at in range(max(0, hit - _AROUND), hit + _AROUND + 1)}
    return [row for at, row in enumerate(numbered) if at in near]


def _between(chunk: bytes, first: int, last: int) -> bytes:
    """Of a chunk whose first line has the index 0, the lines `first` to `last`."""
    start = 0
    for _ in range(first):
        start = chunk.find(b"\n", start) + 1
        if start == 0:
            return b""
    end = start
    for _ in range(max(first, 0), last + 1):
        end = chunk.find(b"\n", end) + 1
        if end == 0:
            return chunk[start:]
    return chunk[start:end]


def _with_modules(ctx: ToolContext, result: ToolResult) -> ToolResult:
    """The result, with the modules named that the file lies in and that the session meets first here."""
    noticed = ctx.cache.beside(Noticed)
    found = [
        folder
        for path in result.observed
        for folder in noticed.fresh(ctx.session, ctx.workspace.files, path)
    ]
    if not found:
        return result
    names = " and ".join(". (the root)" if folder == "." else folder for folder in found)
    what = f"the module{'' if len(found) == 1 else 's'} {names}"
    message = f"{result.message.rstrip('.')}. It lies in {what}: ac_mod_read tells what for and how it is used."
    return replace(result, message=message)


def _form(source: Source) -> str:
    """What is unusual in the file's form: edits keep it."""
    odd = []
    if source.encoding != "utf-8":
        odd.append(source.encoding)
    elif source.bom:
        odd.append("BOM")
    if source.ends:
        odd.append("mixed line ends")
    elif source.newline != "\n":
        odd.append("CRLF" if source.newline == "\r\n" else "CR line ends")
    return f" ({', '.join(odd)})" if odd else ""


def _no_lines(message: str) -> ToolResult:
    return ToolResult(ok=False, message=message, code="no_such_lines")


def _binary(stat: FileStat, data: bytes) -> ToolResult:
    kind = next((name for magic, name in _MAGIC if data.startswith(magic)), "binary file")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "WebP image"
    if kind == "ZIP archive":
        kind = _ZIPPED.get(stat.path.rpartition(".")[2].lower(), kind)
    article = "an" if kind[0] in "AEIOUMX" and kind != "MP3 audio" else "a"
    return ToolResult(
        ok=False,
        message=f"{stat.path} is {article} {kind} of {stat.size:,} bytes, not text.",
        text="Look into it with a command (file, unzip -l, pdftotext, strings, xxd), where there is one.",
        data={"path": stat.path, "type": kind, "size": stat.size},
        code="binary",
    )
