"""Finding text, files and folders: bounded results, the rest counted."""

import asyncio
import os
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar

from msgspec import Meta

from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.builtin.failures import failed, missing
from croze.types.errors import CrozeError
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolResult, View
from croze.workspace.files import Files
from croze.workspace.listing import MAX_DEPTH, Listing, draw_tree
from croze.workspace.search import Found, Line, Query, list_files, search

MAX_MATCHES = 50
MAX_CONTEXT = 10
MAX_ENTRIES = 400
MAX_CHARACTERS = 7_500
_GLOB = re.compile(r"[*?\[]")


class SearchFiles(Tool, frozen=True):
    """Search file contents by a regular expression (Rust syntax: no look-around, no backreferences).
    Passes over what .gitignore excludes. At most 50 matches, then counts only."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="search_files",
        summary="search file contents by a regular expression",
        access=Access(read=True),
        core=True,
    )

    regex: str
    path: Annotated[str, Meta(description="folder or file, default .")] = "."
    case_sensitive: Annotated[bool, Meta(description="default true")] = True
    include: Annotated[str, Meta(description="only files of this glob, like *.py")] | None = None
    exclude: Annotated[str, Meta(description="no files of this glob")] | None = None
    context: Annotated[int, Meta(ge=0, le=MAX_CONTEXT, description="lines around each match")] = 0

    async def run(self, ctx: ToolContext) -> ToolResult:
        query = Query(
            self.regex,
            self.path,
            case_sensitive=self.case_sensitive,
            include=tuple(_globs(self.include)),
            exclude=tuple(_globs(self.exclude)),
            context=self.context,
        )
        try:
            found = await search(ctx.workspace, query, ctx.env)
        except CrozeError as error:
            if error.code == "file_not_found":
                return await missing(ctx, self.path)
            return failed(error)
        if found.error:
            return ToolResult(
                ok=False,
                message=f"The regex «{self.regex}» can't be searched for.",
                text=f"{found.error}\nRust syntax: escape ( ) [ ] {{ }} . * + ? | ^ $ \\ to mean themselves.",
                code="bad_regex",
            )
        return self._result(found)

    def _result(self, found: Found) -> ToolResult:
        lines, shown = _shown(found.lines)
        files = len({line.path for line in found.lines if line.match})
        total = f"{found.total:,}" if found.complete else f"at least {found.total:,}"
        message = f"{total} match{'' if found.total == 1 else 'es'} of «{self.regex}»"
        message += (
            f" in {files} file{'' if files == 1 else 's'}" if found.total else f" in {self.path}"
        )
        truncated = None
        if shown < found.total:
            truncated = f"the first {shown} shown; narrow it by path, include or a longer regex"
            message += f"; {truncated}"
        if found.slow:
            message += " (ripgrep is not installed: slower search)"
        text = "\n".join(_grouped(lines))
        return ToolResult(
            ok=True,
            message=message + ".",
            text=text,
            view=View(title=message, body=text, kind="list"),
            data={
                "matches": [
                    {"path": line.path, "line": line.number, "text": line.text}
                    for line in lines
                    if line.match
                ],
                "total": found.total,
                "complete": found.complete,
            },
            truncated=truncated,
        )

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        matches = (result.data or {}).get("matches", []) if result.ok else []
        rows = [f"{m['path']}:{m['line']}: {m['text'].strip()[:160]}" for m in matches[:5]]
        return "\n".join([result.message, *rows])


class FindFiles(Tool, frozen=True):
    """Find files by name: a part of the path, words of it, a few letters in order, or a glob."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="find_files",
        summary="find files by name or glob",
        access=Access(read=True),
        core=True,
    )

    pattern: Annotated[str, Meta(min_length=1, description="like config or src/**/*.ts")]
    path: Annotated[str, Meta(description="folder, default .")] = "."
    limit: Annotated[int, Meta(ge=1, le=200, description="default 10")] = 10

    async def run(self, ctx: ToolContext) -> ToolResult:
        try:
            known, complete = await list_files(ctx.workspace, self.path, ctx.env)
        except CrozeError as error:
            if error.code == "file_not_found":
                return await missing(ctx, self.path)
            return failed(error)
        ranked = await asyncio.to_thread(rank, self.pattern, known)
        shown = ranked[: self.limit]
        message = f"{len(ranked):,} file{'' if len(ranked) == 1 else 's'} match «{self.pattern}»"
        truncated = None
        if len(shown) < len(ranked):
            truncated = f"the best {len(shown)} shown; a higher limit shows more"
            message += f"; {truncated}"
        if not ranked:
            message += f" among {len(known):,}"
        if not complete:
            message += " (the folder has too many files to see all)"
        text = "\n".join(shown)
        return ToolResult(
            ok=True,
            message=message + ".",
            text=text,
            view=View(title=message, body=text, kind="list"),
            data={"files": shown, "total": len(ranked)},
            truncated=truncated,
        )

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return "\n".join([result.message, *result.text.split("\n")[:10]]).strip()


class ListFiles(Tool, frozen=True):
    """List a folder as a tree. Passes over ignored folders (node_modules, .git, build …) unless path
    names one."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="list_files",
        summary="list a folder",
        access=Access(read=True),
        core=True,
    )

    path: Annotated[str, Meta(description="default .")] = "."
    recursive: Annotated[bool, Meta(description="default false")] = False
    depth: (
        Annotated[int, Meta(ge=1, le=MAX_DEPTH, description="levels, 3 when recursive")] | None
    ) = None

    async def run(self, ctx: ToolContext) -> ToolResult:
        depth = self.depth or (3 if self.recursive else 1)
        files = ctx.workspace.files
        try:
            found = await asyncio.to_thread(_fitting_tree, files, self.path, depth)
        except CrozeError as error:
            if error.code == "file_not_found":
                return await missing(ctx, self.path)
            return failed(error)
        tree, left_out = found.tree, found.left_out
        total = found.files + found.folders + found.left_out
        message = f"{self.path}: {_count(found.folders, 'folder')}, {_count(found.files, 'file')}"
        truncated = None
        if left_out:
            truncated = f"{left_out} of {total} names left out; list a folder below, or less deep"
            message += f"; {truncated}"
        elif not total:
            message = f"{self.path} is empty"
        return ToolResult(
            ok=True,
            message=message + ".",
            text=tree,
            view=View(title=message, body=tree, kind="list"),
            data={"success": True, "tree_visualization": tree},
            truncated=truncated,
        )

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return "\n".join([result.message, *result.text.split("\n")[1:11]]).strip()


def _fitting_tree(files: Files, path: str, depth: int) -> Listing:
    """The tree with as many names as there is room for."""
    limit = MAX_ENTRIES
    while True:
        found = draw_tree(files, path, depth=depth, limit=limit)
        if len(found.tree) <= MAX_CHARACTERS or limit == 1:
            return found
        limit = max(
            1, min(limit - 1, found.files + found.folders) * MAX_CHARACTERS // len(found.tree)
        )


def rank(pattern: str, paths: Sequence[str]) -> list[str]:
    """The paths that fit a pattern, best first: the name itself, its start, a part of it, of the path,
    all words in the path, the letters in order; shorter paths before longer ones."""
    if _GLOB.search(pattern):
        return _by_glob(pattern, paths)
    wanted = pattern.casefold().strip("/")
    words = re.findall(r"\w+", wanted)
    letters = re.compile(".*?".join(re.escape(c) for c in wanted if not c.isspace()))
    ranked: list[tuple[int, int, str]] = []
    for path in paths:
        grade = _grade(wanted, words, letters, path.casefold())
        if grade is not None:
            ranked.append((grade, len(path), path))
    return [path for _, _, path in sorted(ranked)]


def _grade(wanted: str, words: list[str], letters: re.Pattern[str], path: str) -> int | None:
    name = os.path.basename(path)
    if wanted in (path, name):
        return 0
    if wanted == name.partition(".")[0]:
        return 1
    if name.startswith(wanted):
        return 2
    if wanted in name:
        return 3
    if wanted in path:
        return 4
    if words and all(word in path for word in words):
        return 5
    if letters.search(name):
        return 6
    return 7 if letters.search(path) else None


def _by_glob(pattern: str, paths: Sequence[str]) -> list[str]:
    from pathspec import GitIgnoreSpec

    try:
        spec = GitIgnoreSpec.from_lines([pattern.removeprefix("./").replace("!", "\\!", 1)])
    except ValueError:
        return []
    fitting = [path for path in paths if spec.match_file(path)]
    return sorted(fitting, key=lambda path: (path.count("/"), path))


def _globs(text: str | None) -> Iterator[str]:
    """Globs apart by commas that stand outside of braces; braces expanded."""
    for glob in re.split(r",(?![^{]*\})", text or ""):
        if glob.strip():
            yield from _expanded(glob.strip())


def _expanded(glob: str) -> Iterator[str]:
    braces = re.search(r"\{([^{}]*)\}", glob)
    if braces is None:
        yield glob
        return
    for choice in braces[1].split(","):
        yield from _expanded(glob[: braces.start()] + choice + glob[braces.end() :])


def _shown(lines: Sequence[Line]) -> tuple[list[Line], int]:
    """The lines that have room, and how many matches are among them."""
    shown: list[Line] = []
    matches = characters = 0
    for line in lines:
        characters += len(line.text) + 8
        if shown and line.path != shown[-1].path:
            characters += len(line.path)
        if matches and (matches + line.match > MAX_MATCHES or characters > MAX_CHARACTERS):
            break
        matches += line.match
        shown.append(line)
    return shown, matches


def _grouped(lines: Sequence[Line]) -> Iterator[str]:
    """Lines under their file's name; a gap in the numbers of context lines is shown."""
    before: Line | None = None
    has_context = any(not line.match for line in lines)
    for line in lines:
        if before is None or line.path != before.path:
            if before is not None:
                yield ""
            yield line.path
        elif has_context and line.number > before.number + 1:
            yield "…"
        yield f"{line.number}{':' if line.match else '-'} {line.text}"
        before = line


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
