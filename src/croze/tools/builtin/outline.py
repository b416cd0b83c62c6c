"""What code defines: the outline of files, and the map of what matters most in a repository."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Event
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from croze.edit.grammar import language
from croze.retrieval.outline import Outline
from croze.retrieval.outlines import OutlineCache, Outlines, outlines
from croze.retrieval.repomap import RepoMap, Stopped, draw, rank, row
from croze.retrieval.symbols import REFERENCES
from croze.text.tokens import Counter
from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.builtin.failures import failed, missing
from croze.tools.digest import first
from croze.types.errors import CrozeError
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolExample, ToolResult, View
from croze.workspace.search import list_files
from croze.workspace.sensitive import is_sensitive

MAX_CHARACTERS = 7_500
MAX_OUTLINED = 300
MAX_MAPPED = 20_000
MAX_TOKENS = 2_000
TOKENS = 1_000
DIGESTED_ROWS = 15
_LESSER = frozenset({"constant", "variable", "prototype"})
_LANGUAGES = "Python, JavaScript, TypeScript, Go, Rust, C, Java, shell, CSS, HTML and JSON"


class ListCodeDefinitionNames(Tool, frozen=True):
    """List what a file or the files below a folder define: classes, functions, methods, types, with
    their lines and what they are nested in. Cheaper than reading: look here, then read those lines.
    Knows Python, JavaScript, TypeScript, Go, Rust, C, Java, shell, CSS, HTML and JSON. Passes over what
    .gitignore excludes, generated and minified files."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="list_code_definition_names",
        summary="definitions in a file or folder, with their lines",
        access=Access(read=True),
        examples=(ToolExample("What a file defines", {"path": "src/app.py"}),),
    )

    path: Annotated[str, Meta(description="file or folder, default .")] = "."

    async def run(self, ctx: ToolContext) -> ToolResult:
        try:
            found, left_out, is_file = await self._outlines(ctx)
        except CrozeError as error:
            if error.code == "file_not_found":
                return await missing(ctx, self.path)
            return failed(error)
        if is_file and not found.found:
            return self._none(found)
        return self._result(found, left_out)

    async def _outlines(self, ctx: ToolContext) -> tuple[Outlines, int, bool]:
        """The outlines, how many files there is no room for, and whether the path is a file."""
        stat = await asyncio.to_thread(ctx.workspace.files.stat, self.path)
        cache = ctx.cache.beside(OutlineCache)
        if stat is not None and stat.kind == "file":
            return await outlines(ctx.workspace, [stat.path], ctx.env, cache, named=True), 0, True
        known, _ = await list_files(ctx.workspace, self.path, ctx.env)
        code = _upper_first(path for path in known if language(path))
        chosen = code[:MAX_OUTLINED]
        found = await outlines(ctx.workspace, chosen, ctx.env, cache)
        return found, len(code) - len(chosen), False

    def _none(self, found: Outlines) -> ToolResult:
        why = next(iter(found.skipped), "")
        if why in ("", "no grammar"):
            why = f"Definitions are known of {_LANGUAGES} only; read it with read_file."
        else:
            why = f"It is passed over: {why}. Look into it with search_files or read_file."
        message = f"{self.path} has no outline."
        return ToolResult(ok=False, message=message, text=why, code="no_outline")

    def _result(self, found: Outlines, left_out: int) -> ToolResult:
        text, shown = _fitting(found.found)
        total = sum(len(outline.definitions) for outline in found.found.values())
        message = (
            f"{self.path}: {_count(total, 'definition')} in {_count(len(found.found), 'file')}"
        )
        truncated = None
        if shown < total or left_out:
            truncated = f"{shown:,} shown; name a file or folder below to see the others"
            message += f"; {truncated}"
            if left_out:
                message += f" ({_count(left_out, 'more file')} not looked at)"
        broken = sum(outline.broken for outline in found.found.values())
        message += _passed_over(found, broken)
        return ToolResult(
            ok=True,
            message=message + ".",
            text=text,
            view=View(title=message, body=text, kind="list"),
            data={"files": list(_data(found.found)), "total": total},
            truncated=truncated,
        )

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        rows = result.text.split("\n") if result.text else []
        return first(result, rows, DIGESTED_ROWS, "line")


class RepoMapTool(Tool, frozen=True):
    """Map a repository: its most used definitions, ranked by how files refer to each other, as many as
    the budget has room for. A good first look at unknown code. With focus, what the named files and
    folders use comes first. For Python, JavaScript, TypeScript, Go, Rust, C, Java and shell."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="repo_map",
        summary="the repository's most important definitions",
        access=Access(read=True),
        examples=(ToolExample("What the code around a file rests on", {"focus": ["src/app.py"]}),),
        guideline="First look at unknown code: repo_map, then list_code_definition_names on a file that "
        "matters, then read_file with those lines. For a known word search_files is quicker.",
    )

    path: Annotated[str, Meta(description="folder, default .")] = "."
    focus: Annotated[tuple[str, ...], Meta(description="files or folders you work on")] = ()
    tokens: Annotated[int, Meta(ge=100, le=MAX_TOKENS, description=f"budget, default {TOKENS}")] = (
        TOKENS
    )

    async def run(self, ctx: ToolContext) -> ToolResult:
        try:
            known, complete = await list_files(ctx.workspace, self.path, ctx.env)
            focus = await asyncio.to_thread(self._resolved, ctx)
        except CrozeError as error:
            if error.code == "file_not_found":
                return await missing(ctx, self.path)
            return failed(error)
        unknown = [path for path, resolved in focus.items() if resolved is None]
        if unknown:
            return await missing(ctx, unknown[0])
        code = _upper_first(path for path in known if language(path) in REFERENCES)
        cache = ctx.cache.beside(OutlineCache)
        found = await outlines(ctx.workspace, code[:MAX_MAPPED], ctx.env, cache)
        places = [place for place in focus.values() if place is not None]
        drawn = await _mapped(found.found, places, self.tokens, ctx.counter)
        left_out = max(0, len(code) - MAX_MAPPED)
        return self._result(drawn, found, left_out, complete=complete)

    def _resolved(self, ctx: ToolContext) -> dict[str, str | None]:
        stats = {path: ctx.workspace.files.stat(path) for path in self.focus}
        return {path: None if stat is None else stat.path for path, stat in stats.items()}

    def _result(
        self, drawn: RepoMap, found: Outlines, left_out: int, *, complete: bool
    ) -> ToolResult:
        files = len(found.found)
        total = sum(len(outline.definitions) for outline in found.found.values())
        if not total:
            message = f"{self.path} has no code that can be mapped{_passed_over(found, 0)}."
            return ToolResult(ok=True, message=message, data={"definitions": [], "total": 0})
        message = (
            f"{drawn.shown:,} of {_count(total, 'definition')} in {drawn.files:,} of "
            f"{_count(files, 'file')}, {drawn.tokens:,} tokens{_passed_over(found, 0)}"
        )
        if left_out or not complete:
            message += f"; {left_out:,} files and more not looked at: map a folder below"
        truncated = None
        if drawn.shown < total:
            truncated = (
                "the most referred to shown; a larger budget, a folder or a focus shows others"
            )
        return ToolResult(
            ok=True,
            message=message + ".",
            text=drawn.text,
            view=View(title=message, body=drawn.text, kind="list"),
            data={
                "definitions": [
                    {
                        "path": one.path,
                        "name": one.definition.name,
                        "kind": one.definition.kind,
                        "start": one.definition.start,
                        "end": one.definition.end,
                    }
                    for one in drawn.ranked
                ],
                "total": total,
                "tokens": drawn.tokens,
            },
            truncated=truncated,
        )

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        rows = result.text.split("\n") if result.text else []
        return first(result, rows, DIGESTED_ROWS, "line")


def _upper_first(paths: Iterable[str]) -> list[str]:
    """Files for an outline, those less deep first. Sensitive ones must be named: a head may hold a
    value."""
    return sorted(
        (path for path in paths if not is_sensitive(path)), key=lambda path: (path.count("/"), path)
    )


async def _mapped(
    found: Mapping[str, Outline], focus: Sequence[str], tokens: int, counter: Counter
) -> RepoMap:
    """The map, made in a thread that ends soon when the call is cancelled."""
    cancelled = Event()

    def work() -> RepoMap | None:
        try:
            ranked = rank(found, focus, cancelled.is_set)
        except Stopped:
            return None
        return draw(ranked, tokens, counter, longest=MAX_CHARACTERS)

    try:
        drawn = await asyncio.to_thread(work)
    finally:
        cancelled.set()
    assert drawn is not None
    return drawn


def _fitting(found: Mapping[str, Outline]) -> tuple[str, int]:
    """The outlines, at all depths where there is room, else the outer definitions only, else those of
    the first files; and how many definitions that shows."""
    deepest = max((d.depth for o in found.values() for d in o.definitions), default=0)
    for depth in range(deepest, -2, -1):  # at last without constants too
        rows, shown = _rows(found, depth)
        if sum(len(each) + 1 for each in rows) <= MAX_CHARACTERS + 1:
            break
    room = MAX_CHARACTERS
    kept: list[str] = []
    for each in rows:
        room -= len(each) + 1
        if room < 0:
            break
        kept.append(each)
    if len(kept) < len(rows):
        shown = sum(each.startswith(" ") for each in kept)
        while kept and not kept[-1].startswith(" "):
            kept.pop()
    return "\n".join(kept), shown


def _rows(found: Mapping[str, Outline], depth: int) -> tuple[list[str], int]:
    rows: list[str] = []
    for path, outline in found.items():
        definitions = [
            d
            for d in outline.definitions
            if d.depth <= max(depth, 0) and (depth >= 0 or d.kind not in _LESSER)
        ]
        if definitions:
            rows += [f"{path} ({_count(outline.lines, 'line')}):", *map(row, definitions)]
    return rows, sum(each.startswith(" ") for each in rows)


def _data(found: Mapping[str, Outline]) -> Iterator[dict[str, Any]]:
    for path, outline in found.items():
        yield {
            "path": path,
            "language": outline.language,
            "definitions": [
                {"name": d.name, "kind": d.kind, "start": d.start, "end": d.end, "depth": d.depth}
                for d in outline.definitions
            ],
        }


def _passed_over(found: Outlines, broken: int) -> str:
    """What was not looked at, and what can't be relied on."""
    said = [f"{count:,} {reason}" for reason, count in found.skipped.items()]
    said += [f"{found.late:,} not in time"] * bool(found.late)
    text = f"; passed over: {', '.join(said)}" if said else ""
    return text + (f"; {broken:,} with syntax errors" if broken else "")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
