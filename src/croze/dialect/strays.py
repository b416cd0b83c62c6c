"""What stands in a reply's text and looks like a call without being one: written wrongly, of a tool
that isn't there, or quoted."""

import re
from bisect import bisect_left

from msgspec import Struct

from croze.dialect.faults import malformed, unknown_tool, wrong_parameter
from croze.dialect.grammar import BLANKS, RESULT, Grammar
from croze.dialect.segments import Run
from croze.types.parts import CallError

_OPENING = re.compile(r"<([A-Za-z_][^<>/ \t\r\n]*)((?:[ \t\r\n][^<>]*?)?)(/?)>")
_CLOSING = re.compile(r"</([^<>/ \t\r\n]+)[ \t\r\n]*>")
_INNER = re.compile(r"[ \t\r\n]*<([A-Za-z_][^<>/ \t\r\n]*)([^<>]*)>")
_OBJECT = re.compile(r"[ \t\r\n]*\{")
_QUOTED = re.compile(r"<([^<>/ \t\r\n]+)[ \t\r\n]*>[ \t\r\n]*<(/?)([^<>/ \t\r\n]+)[ \t\r\n]*>")
_LAST_CLOSED = re.compile(r"</([^<>/ \t\r\n]+)[ \t\r\n]*>[ \t\r\n]*\Z")
_TOOL_LIKE = re.compile(r"[a-z][a-z0-9]*(?:_+[a-z0-9]+)+")
_LONGEST_NAME = 64
_TAIL = 200
"""Characters before a close in which the close of a parameter is looked for."""


class Slip(Struct, frozen=True):
    """A call written wrongly, at [start, end) of a run's text. `balanced`: its close can't be the end of
    another call of the tool."""

    start: int
    end: int
    name: str
    error: CallError
    balanced: bool


class _Closes:
    """Where each tag is closed in a text."""

    def __init__(self, run: Run) -> None:
        self._ends: dict[str, list[tuple[int, int]]] = {}
        for close in _CLOSING.finditer(run.text):
            if not run.fenced(close.start()):
                self._ends.setdefault(close[1], []).append(close.span())

    def first(self, name: str, position: int) -> tuple[int, int] | None:
        """The first close of `name` at or after `position`, as [start, end)."""
        spans = self._ends.get(name, [])
        index = bisect_left(spans, (position, 0))
        return spans[index] if index < len(spans) else None


def slips(run: Run, grammar: Grammar) -> list[Slip]:
    """The calls in a run of text that were meant but written wrongly, in order."""
    text = run.text
    if "<" not in text:
        return []
    closes = _Closes(run)
    found: list[Slip] = []
    position = 0
    for opening in _OPENING.finditer(text):
        start, name = opening.start(), opening[1]
        ours = name in grammar.tools
        if not ours and (len(name) > _LONGEST_NAME or not _TOOL_LIKE.fullmatch(name)):
            continue
        if start < position or name == RESULT or run.fenced(start) or not _begins_line(text, start):
            continue
        read = _wrong if ours else _unknown
        slip = read(text, opening, closes, grammar)
        if slip is not None:
            found.append(slip)
            position = slip.end
    return found


def tells_calls(run: Run, grammar: Grammar) -> bool:
    """Whether a run of text or thinking quotes a whole call: in a fence, in thinking, or amid prose. A
    call between backticks in prose is a mention."""
    text = run.text
    last_close = {close[1]: close.start() for close in _CLOSING.finditer(text)}
    for quoted in _QUOTED.finditer(text):
        name, slash, inner = quoted.groups()
        shape = grammar.tools.get(name)
        if shape is None or not (inner == name if slash else inner in shape.params):
            continue
        if last_close.get(name, -1) < quoted.start(2):
            continue
        mention = text[quoted.start() - 1 : quoted.start()] == "`"
        if run.thinking or not mention or run.fenced(quoted.start()):
            return True
    return False


def _begins_line(text: str, position: int) -> bool:
    while position > 0 and text[position - 1] in " \t":
        position -= 1
    return position == 0 or text[position - 1] in "\r\n"


def _wrong(text: str, opening: re.Match[str], closes: _Closes, grammar: Grammar) -> Slip | None:
    """A registered tool's tag with attributes, self-closed, or without parameter tags in it."""
    tag, attributes, itself = opening[1], opening[2].strip(BLANKS), opening[3]
    shape = grammar.tools[tag]
    start, inside = opening.span()
    if itself:
        newline = text.find("\n", inside)
        if text[inside : newline if newline >= 0 else len(text)].strip(BLANKS):
            return None
        error = malformed(
            f"tags don't close themselves; write <{tag}></{tag}>, parameters in between."
        )
        return Slip(start, inside, shape.name, error, balanced=True)
    close = closes.first(tag, inside)
    if close is None:
        return None
    inner = _INNER.match(text, inside, close[0])
    if attributes:
        error = malformed(f"tags take no attributes; write <{tag}>, each parameter as a tag in it.")
    elif inner is not None:
        error = wrong_parameter(f"<{tag}>", inner[1], inner[2].strip(BLANKS), shape.params)
    else:
        listed = ", ".join(f"<{name}>" for name in sorted(shape.params)) or "it has no parameters"
        error = malformed(
            f"text stands directly in <{tag}>; put it in a parameter's tag: {listed}."
        )
    last = _LAST_CLOSED.search(text, max(inside, close[0] - _TAIL), close[0])
    balanced = last is None or last[1] not in shape.params
    return Slip(start, close[1], shape.name, error, balanced)


def _unknown(text: str, opening: re.Match[str], closes: _Closes, grammar: Grammar) -> Slip | None:
    """A tag that is named like a tool and holds tags, or JSON, and nothing else."""
    name = opening[1]
    start, inside = opening.span()
    close = closes.first(name, inside)
    if opening[2].strip(BLANKS) or opening[3] or close is None:
        return None
    end = text[max(inside, close[0] - _TAIL) : close[0]].rstrip(BLANKS)[-1:]
    if end == ">":
        holds = _INNER.match(text, inside, close[0])
    elif end == "}":
        holds = _OBJECT.match(text, inside, close[0])
    else:
        holds = None
    if holds is None:
        return None
    return Slip(start, close[1], name, unknown_tool(name, grammar.tools), balanced=True)
