"""How a result is made shorter by plain code: the form in which it stands later, a short piece of it, and
the note that stands where it was cleared."""

from collections.abc import Mapping
from typing import Any

from croze.context.account import title_of
from croze.context.kinds import ToolKind, kind_of
from croze.context.receipt import short

READ_LINES = 500
_FIRST = {"list": 10, "search": 5, "edit": 30, "todo": 14, "web": 40, "talk": 20, "other": 20}
_SHELL_TAIL = 20
_LINE = 300
"""Characters of a line that a digest keeps."""
PIECE = 400
"""Characters of a result that stay of it when the budget is exceeded."""
CUT = 500
"""Characters of an argument that stay of it."""


def digest_of(name: str, args: Mapping[str, Any], text: str) -> str:
    """How a result stands from the next step on where its tool has left no digest: a read as it is up
    to 500 lines, of a command the end, of lists and searches how many and the first ones. Never longer
    than the result."""
    kind: ToolKind = kind_of(name, args)
    lines = text.splitlines()
    if kind == "read":
        if len(lines) <= READ_LINES:
            return text
        left = len(lines) - READ_LINES
        kept = "\n".join(lines[:READ_LINES])
        return f"{kept}\n[{left:,} more lines left out]"
    if kind == "shell":
        if len(lines) <= _SHELL_TAIL + 2:
            return text
        tail = "\n".join(short_line(line) for line in lines[-_SHELL_TAIL:])
        found = f"{short_line(lines[0])}\n[{len(lines) - _SHELL_TAIL - 1:,} lines left out]\n{tail}"
        return min(found, text, key=len)
    first = _FIRST[kind]
    if len(lines) <= first + 1:
        return text if len(text) <= _LINE * (first + 1) else _head(text, _LINE * first)
    kept = "\n".join(short_line(line) for line in lines[:first])
    return min(
        f"{kept}\n[{len(lines) - first:,} more of {len(lines):,} lines left out]", text, key=len
    )


def piece(text: str, limit: int = PIECE) -> str:
    """The start of a text and its end, in about `limit` characters."""
    if len(text) <= limit + 40:
        return text
    head, tail = text[: limit * 2 // 3].rstrip(), text[-(limit // 3) :].lstrip()
    return f"{head}\n[{len(text) - len(head) - len(tail):,} characters left out]\n{tail}"


def cut_argument(text: str) -> str:
    """The start of an argument, and how much is left out."""
    return f"{text[:CUT]}\n[{len(text) - CUT:,} more characters cut to save room]"


def cleared(name: str, args: Mapping[str, Any], tokens: int, message_id: str) -> str:
    """What stands where a result was: that it was cleared, what it was, and how to get it back."""
    title = short(title_of(name, dict(args)), 120)
    back = f"; read_result {message_id[:8]} shows it again" if message_id else ""
    return f"[cleared to save room: {title}, about {tokens:,} tokens{back}]"


def short_line(line: str) -> str:
    return line if len(line) <= _LINE else f"{line[: _LINE - 1]}…"


def _head(text: str, limit: int) -> str:
    return f"{text[:limit]}\n[{len(text) - limit:,} more characters left out]"
