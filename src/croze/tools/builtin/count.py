"""Counting the tokens of a text, a file or a folder, as this session's model counts them."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, ClassVar

from msgspec import Meta, Struct, field

from croze.edit.source import read_source
from croze.text.tokens import Counter
from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.builtin.failures import failed, missing
from croze.tools.digest import first
from croze.types.errors import CrozeError
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolExample, ToolResult, View
from croze.workspace.files import Files
from croze.workspace.ignore import Ignore
from croze.workspace.paths import PathError
from croze.workspace.sensitive import is_sensitive

MAX_FILES = 5_000
MAX_BYTES = 64 << 20
"""Of all files of a call together; the others are named as not counted."""
MAX_FILE = 8 << 20
MAX_ROWS = 50


class CountTokens(Tool, frozen=True):
    """Count tokens before you read or write much: of a text, a file, or a folder's files (with
    recursive: all below it), the largest first. Binary, sensitive and ignored files are passed over. The
    result says whether the model's own vocabulary counted or an estimate."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="count_tokens",
        summary="count tokens of a text, file or folder",
        access=Access(read=True),
        examples=(ToolExample("What is large below src?", {"path": "src", "recursive": True}),),
    )

    path: Annotated[str, Meta(description="file or folder")] | None = None
    text: Annotated[str, Meta(description="a text, instead of path")] | None = None
    recursive: Annotated[bool, Meta(description="all folders below, default false")] = False

    async def run(self, ctx: ToolContext) -> ToolResult:
        if (self.path is None) == (self.text is None):
            return ToolResult(
                ok=False, message="Give either path or text.", code="invalid_arguments"
            )
        counter = await asyncio.to_thread(lambda: ctx.counter)
        if self.text is not None:
            return await self._text(self.text, counter)
        assert self.path is not None
        try:
            return await self._path(ctx, self.path, counter)
        except CrozeError as error:
            if error.code == "file_not_found":
                return await missing(ctx, self.path)
            return failed(error)

    async def _text(self, text: str, counter: Counter) -> ToolResult:
        tokens = await asyncio.to_thread(counter, text)
        message = f"{_tokens(tokens)} in {len(text):,} characters, by {counter.name}."
        data = {"tokens": tokens, "characters": len(text), **_by(counter)}
        return ToolResult(ok=True, message=message, data=data)

    async def _path(self, ctx: ToolContext, path: str, counter: Counter) -> ToolResult:
        files = ctx.workspace.files
        found = files.stat(path)
        if found is None:
            return await missing(ctx, path)
        if found.kind != "folder":
            return await asyncio.to_thread(_one, files, path, counter)
        if self.recursive:
            from croze.workspace.search import list_files

            paths, complete = await list_files(ctx.workspace, path, ctx.env)
        else:
            paths, complete = _directly_in(files, found.path), True
        count = _Count(complete=complete)
        await asyncio.to_thread(count.add, files, paths, counter)
        return count.result(path, counter)

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return first(result, result.text.split("\n") if result.text else [], 10)


class _Count(Struct):
    """The tokens of many files, and why the others have none."""

    complete: bool
    tokens: dict[str, int] = field(default_factory=dict)
    binary: int = 0
    sensitive: int = 0
    large: int = 0
    unreadable: int = 0
    left_out: int = 0
    bytes: int = 0

    def add(self, files: Files, paths: Sequence[str], counter: Counter) -> None:
        for at, path in enumerate(paths):
            if len(self.tokens) >= MAX_FILES or self.bytes >= MAX_BYTES:
                self.left_out = len(paths) - at
                return
            if is_sensitive(path):
                self.sensitive += 1
                continue
            try:
                data = files.read(path, MAX_FILE)
            except PathError:
                self.unreadable += 1
                continue
            self.bytes += len(data.data)
            if not data.complete:
                self.large += 1
                continue
            source = read_source(data.data)
            if source is None:
                self.binary += 1
            else:
                self.tokens[path] = counter(source.text)

    @property
    def passed_over(self) -> str:
        parts = [
            f"{count:,} {what}"
            for count, what in (
                (self.binary, "binary"),
                (self.sensitive, "sensitive"),
                (self.large, f"over {MAX_FILE >> 20} MB"),
                (self.unreadable, "unreadable"),
                (self.left_out, "beyond what a call counts"),
            )
            if count
        ]
        parts += [] if self.complete else ["more than a listing holds"]
        return ", ".join(parts)

    def result(self, path: str, counter: Counter) -> ToolResult:
        ranked = sorted(self.tokens.items(), key=lambda item: (-item[1], item[0]))
        total = sum(self.tokens.values())
        files = f"{len(ranked):,} file{'' if len(ranked) == 1 else 's'}"
        message = f"{path}: {_tokens(total)} in {files}, by {counter.name}."
        if self.passed_over:
            message += f" Not counted: {self.passed_over}."
        rows = [f"{tokens:>9,} {name}" for name, tokens in ranked[:MAX_ROWS]]
        rest = ranked[MAX_ROWS:]
        if rest:
            rows.append(f"{sum(count for _, count in rest):>9,} in {len(rest):,} smaller files")
        text = "\n".join(rows)
        return ToolResult(
            ok=True,
            message=message,
            text=text,
            view=View(title=message, body=text, kind="list"),
            data={
                "tokens": total,
                "files": [{"path": name, "tokens": tokens} for name, tokens in ranked[:MAX_ROWS]],
                "counted": len(ranked),
                "binary": self.binary,
                "sensitive": self.sensitive,
                "too_large": self.large,
                "unreadable": self.unreadable,
                "left_out": self.left_out,
                **_by(counter),
            },
            truncated=f"{len(rest):,} smaller files in one row" if rest else None,
        )


def _one(files: Files, path: str, counter: Counter) -> ToolResult:
    data = files.read(path, MAX_BYTES)
    if not data.complete:
        message = f"{path} has {data.stat.size:,} bytes: too large to count."
        return ToolResult(ok=False, message=message, code="too_large")
    source = read_source(data.data)
    if source is None:
        message = f"{path} is binary ({data.stat.size:,} bytes): it has no tokens."
        return ToolResult(ok=False, message=message, code="binary")
    tokens = counter(source.text)
    message = f"{path}: {_tokens(tokens)} in {data.stat.size:,} bytes, by {counter.name}."
    shown = {"path": data.stat.path, "tokens": tokens, "bytes": data.stat.size, **_by(counter)}
    return ToolResult(ok=True, message=message, data=shown)


def _directly_in(files: Files, folder: str) -> list[str]:
    ignore = Ignore(files, folder)
    names = [entry.name for entry in files.list(folder) if entry.kind == "file"]
    kept = (name for name in names if not ignore.excludes(folder, name, is_folder=False))
    return [name if folder == "." else f"{folder}/{name}" for name in kept]


def _by(counter: Counter) -> dict[str, object]:
    return {"counter": counter.name, "exact": counter.exact}


def _tokens(count: int) -> str:
    return f"{count:,} token{'' if count == 1 else 's'}"
