"""Reading again what an earlier result held: cut, cleared, digested or summarised since, the log has it."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from msgspec import Meta

from croze.tools.base import Remembered, Tool, ToolContext, ToolSpec
from croze.tools.bound import pieces
from croze.tools.builtin.memory import SHORT, ids_near, matches
from croze.tools.digest import first
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolExample, ToolResult, View

MAX_LINES = 500
MAX_CHARACTERS = 39_000
"""Of a call: a little below what the log takes of a read, so that nothing is cut twice."""
MAX_NAMED = 8


class ReadResult(Tool, frozen=True):
    """Read an earlier result of this conversation in full, where it was cut, cleared or summarised; by
    the message id in its hint or stub, or by its call's id. Also replies, what the user said, and by its
    session's id the patch of a sub-agent that worked apart. At most 500 lines a call; the result says how
    to go on."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="read_result",
        summary="read an earlier result in full, by its id",
        access=Access(read=True),
        examples=(ToolExample("Go on in a cut result", {"id": "9226b3a4", "start_line": 120}),),
        aliases={"message_id": "id", "call_id": "id"},
    )

    id: Annotated[str, Meta(min_length=1, description="8-character message id, or a call's id")]
    start_line: Annotated[int, Meta(ge=1, description="first line, from 1")] | None = None
    end_line: Annotated[int, Meta(ge=1, description="last line, inclusive")] | None = None

    async def run(self, ctx: ToolContext) -> ToolResult:
        messages = ctx.remembered()
        wanted = self.id.strip()
        found = matches(wanted, messages)
        if len(found) == 1:
            id, name = found[0].id, f"{found[0].id[:SHORT]}, {found[0].what}"
            lines = pieces(await ctx.recall(id))
        else:  # what is no message may be a sub-agent's work
            id, name = wanted, f"{wanted[:SHORT]}, a sub-agent's work as a patch"
            lines = [] if found else pieces(await ctx.recall(wanted))
            if not lines:
                return _unknown(wanted, found, messages)
        start, end = self.start_line or 1, self.end_line or len(lines)
        if not lines:
            return ToolResult(ok=True, message=f"{name}: it is empty.")
        if start > len(lines) or end < start:
            return ToolResult(
                ok=False,
                message=f"{name}: there are no lines {start:,}-{end:,}; it has {len(lines):,}.",
                code="no_such_lines",
            )
        shown = _fitting(lines[start - 1 : end])
        last = start + len(shown) - 1
        what = f"lines {start:,}-{last:,} of {len(lines):,}"
        truncated = None
        if last < min(end, len(lines)):
            truncated = f"go on with start_line={last + 1}"
        text = "\n".join(shown)
        return ToolResult(
            ok=True,
            message=f"{name}: {what}" + (f"; {truncated}." if truncated else "."),
            text=text,
            view=View(title=f"Read again {name} ({what})", body=text),
            data={
                "message_id": id,
                "start_line": start,
                "end_line": last,
                "lines": len(lines),
            },
            truncated=truncated,
        )

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return first(result, result.text.split("\n") if result.text else [], 10)


def _fitting(lines: Sequence[str]) -> list[str]:
    """As many lines as a call gives, at least one."""
    shown: list[str] = []
    characters = 0
    for line in lines[:MAX_LINES]:
        characters += len(line) + 1
        if shown and characters > MAX_CHARACTERS:
            break
        shown.append(line)
    return shown


def _unknown(
    wanted: str, found: Sequence[Remembered], messages: Sequence[Remembered]
) -> ToolResult:
    if found:
        text = f"Give more of the id. {len(found)} messages begin so:"
        named = list(found[:MAX_NAMED])
    else:
        named = ids_near(wanted, messages)
        text = "Near it:" if named else "The newest results:"
        named = named or [m for m in messages if m.kind == "result"][-MAX_NAMED:]
    rows = [f"{m.id[: SHORT if not found else None]} {m.what}" for m in named]
    return ToolResult(
        ok=False,
        message=f"{wanted!r} is no single message of this conversation.",
        text="\n".join((text, *rows)) if rows else "",
        code="no_such_message",
    )
