"""Finding text, files and folders: bounded results, the rest counted."""

import asyncio
import os
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from croze.tools.again import unless_visible
from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.builtin.failures import failed, missing
from croze.tools.digest import first
from croze.types.errors import CrozeError
from croze.types.parts import ToolCall
from croze.types.tool import Access, Look, ToolResult, View
from croze.workspace.cache import CachedFiles
from croze.workspace.ignore import Reader
from croze.workspace.listing import MAX_DEPTH, Listing, draw_tree

if TYPE_CHECKING:
    from croze.workspace.matches import Line
    from croze.workspace.search import Found

MAX_MATCHES = 50
MAX_CONTEXT = 10
MAX_ENTRIES = 400
MAX_CHARACTERS = 7_500
DIGESTED_MATCHES = 5
DIGESTED_NAMES = 10
_FAR = 99
_MATCH = re.compile(r"(\d+): (.*)")
_AROUND = re.compile(r"\d+- |…\Z|\Z")
_GLOB = re.compile(r"[*?\[]")
_BAD_GLOB = re.compile(r"error parsing glob|invalid glob|invalid definition")


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
        from croze.workspace.search import Query, search

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
            return self._refused(found.error)
        return self._result(found)

    def _refused(self, why: str) -> ToolResult:
        if _BAD_GLOB.search(why):
            message = "include or exclude is no glob that can be searched by."
            return ToolResult(ok=False, message=message, text=why, code="bad_glob")
        why = why.partition("\n\nConsider enabling PCRE2")[0]  # an option of rg, not of this tool
        return ToolResult(
            ok=False,
            message=f"The regex «{self.regex}» can't be searched for.",
            text=f"{why}\nRust syntax: escape ( ) [ ] {{ }} . * + ? | ^ $ \\ to mean themselves.",
            code="bad_regex",
        )

    def _result(self, found: "Found") -> ToolResult:
        lines, shown = _shown(found.lines)
        total = f"{found.total:,}" if found.complete else f"at least {found.total:,}"
        message = f"{total} match{'' if found.total == 1 else 'es'} of «{self.regex}»"
        message += f" in {_count(found.files, 'file')}" if found.total else f" in {self.path}"
        if found.binary:
            message += f" and in {_count(found.binary, 'binary file')}"
        if not found.complete:
            from croze.workspace.search import SECONDS

            why = f"after {SECONDS:.0f} s" if found.ended == "timeout" else "for too much output"
            message += f" (the search was stopped {why})"
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
        rows = [f"{path}:{line}: {text.strip()[:160]}" for path, line, text in _found(result.text)]
        return first(result, rows[:DIGESTED_MATCHES], DIGESTED_MATCHES)


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
        from croze.workspace.search import list_files

        try:
            known, complete = await list_files(ctx.workspace, self.path, ctx.env)
        except CrozeError as error:
            if error.code == "file_not_found":
                return await missing(ctx, self.path)
            return failed(error)
        touched = [path for path in known if ctx.seen(path) is not None]
        ranked = await asyncio.to_thread(rank, self.pattern, known, touched)
        shown = ranked[: self.limit]
        verb = "matches" if len(ranked) == 1 else "match"
        message = f"{_count(len(ranked), 'file')} {verb} «{self.pattern}»"
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
        return first(result, result.text.split("\n") if result.text else [], DIGESTED_NAMES, "file")


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
        files = CachedFiles(ctx.cache, ctx.workspace.files)
        try:
            found = await asyncio.to_thread(_fitting_tree, files, self.path, depth)
            await asyncio.to_thread(ctx.cache.visit, ctx.workspace.files, found.contents)
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
        result = ToolResult(
            ok=True,
            message=message + ".",
            text=tree,
            view=View(title=message, body=tree, kind="list"),
            data={"success": True, "tree_visualization": tree},
            truncated=truncated,
            look=Look(
                key=f"list:{found.path}",
                digest=sha256(f"{depth}\n{tree}".encode()).hexdigest(),
                first=1,
                last=1,
                hit=files.hit,
            ),
        )
        return unless_visible(ctx, result)

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return first(result, result.text.split("\n")[1:], DIGESTED_NAMES, "name")


def _fitting_tree(files: Reader, path: str, depth: int) -> Listing:
    """The tree with as many names as there is room for."""
    limit = MAX_ENTRIES
    while True:
        found = draw_tree(files, path, depth=depth, limit=limit)
        if len(found.tree) <= MAX_CHARACTERS or limit == 1:
            return found
        limit = max(
            1, min(limit - 1, found.files + found.folders) * MAX_CHARACTERS // len(found.tree)
        )


def rank(pattern: str, paths: Sequence[str], touched: Sequence[str] = ()) -> list[str]:
    """The paths that fit a pattern, best first: the name itself, its start, a part of it, of the path,
    all words in the path, the letters in order. Of those that fit alike the ones near to `touched`
    files come first, then those less deep, then the shorter ones."""
    near = _Nearness(touched)
    if _GLOB.search(pattern):
        return sorted(_by_glob(pattern, paths), key=lambda p: (near(p), p.count("/"), p))
    wanted = pattern.casefold().strip("/")
    words = re.findall(r"\w+", wanted)
    letters = re.compile(".*?".join(re.escape(c) for c in wanted if not c.isspace()))
    ranked: list[tuple[int, int, int, int, str]] = []
    for path in paths:
        grade = _grade(wanted, words, letters, path.casefold())
        if grade is not None:
            ranked.append((grade, near(path), path.count("/"), len(path), path))
    return [path for *_, path in sorted(ranked)]


class _Nearness:
    """How many steps up and down it is from a file's folder to the next one with a touched file;
    `_FAR` at most."""

    def __init__(self, touched: Sequence[str]) -> None:
        self._up: dict[str, int] = {}
        for path in touched:
            for steps, folder in enumerate(_folders(path)):
                if steps < self._up.get(folder, _FAR):
                    self._up[folder] = steps

    def __call__(self, path: str) -> int:
        if not self._up:
            return _FAR
        steps = (up + self._up.get(folder, _FAR) for up, folder in enumerate(_folders(path)))
        return min(_FAR, *steps)


def _folders(path: str) -> Iterator[str]:
    """The folders that a path lies in, the innermost first, "" the last."""
    while path:
        path = path.rpartition("/")[0]
        yield path


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
    return [path for path in paths if spec.match_file(path)]


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


def _shown(lines: "Sequence[Line]") -> "tuple[list[Line], int]":
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


def _grouped(lines: "Sequence[Line]") -> Iterator[str]:
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


def _found(text: str) -> Iterator[tuple[str, str, str]]:
    """The matches of a result's text: path, line number, line."""
    path = ""
    for row in text.split("\n"):
        match = _MATCH.match(row)
        if match is not None:
            yield path, match[1], match[2]
        elif not _AROUND.match(row):
            path = row


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
