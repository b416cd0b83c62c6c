"""How a reply that was cut by its length is continued, and how its pieces are joined: pure decisions."""

import re
from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from croze.types.model import ModelInfo
from croze.types.parts import Part, Text, ToolCall

MAX_CONTINUATIONS = 6

CONTINUE = (
    "Your reply reached its length limit and was cut. Go on from exactly where it ended: begin with the "
    "very next character, repeat nothing, add no remark, and do not open a code fence again that is "
    "still open."
)

_LONGEST_OVERLAP = 4_000
_MIN_OVERLAP = 24
_MIN_WORD_CHARACTERS = 12
_MIN_LINE = 8
_MIN_LINE_WORD_CHARACTERS = 5

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_FIRST_FENCE = re.compile(r"\s*?(?:^|\n) {0,3}(`{3,}|~{3,})[ \t]*([^\s`][^\n`]*)\n")
_WORD = re.compile(r"\w")


class Continuation(Enum):
    """What to do with a reply that was cut: nothing more, let the model go on with the very same
    message, or ask for the rest with a message."""

    STOP = "stop"
    PREFIX = "prefix"
    MESSAGE = "message"


class HasParts(Protocol):
    @property
    def parts(self) -> tuple[Part, ...]: ...


def plan(
    reply: HasParts, info: ModelInfo, *, count: int, most: int = MAX_CONTINUATIONS
) -> Continuation:
    """How to go on after `reply` ended by its length, `count` continuations having been made.

    By prefix only where the model takes one and all of the reply can be given back as text: a native
    call can't be begun for a model. Anthropic refuses a prefix that ends in white space, and without
    that space the rest would not fit. A call across the seam of a message is the caller's to discard;
    its error (`truncated`) tells the model to write in pieces.
    """
    if count >= most:
        return Continuation.STOP
    native = any(isinstance(p, ToolCall) and not _is_tag(p) for p in reply.parts)
    text = _text(reply.parts)
    fits = text.strip() and not (info.wire == "anthropic" and text[-1].isspace())
    if info.prefill and not native and fits:
        return Continuation.PREFIX
    return Continuation.MESSAGE


def join(first: str, second: str) -> str:
    """`first` with what a model wrote when it was asked for the rest, without a seam.

    Models often open a code fence again that is still open, and repeat the last words or lines; both
    are left out of `second`. A repetition counts where it is at least 24 characters long, or is the
    whole unfinished last line (at least 8), and mostly words: `ha ha` and closing brackets stay.
    (A model that continues by prefix leaves no seam: its pieces are just put together.)
    """
    if not first or not second:
        return first + second
    fence = _FIRST_FENCE.match(second)
    if fence is not None and _open_fence(first) == (fence.group(1), fence.group(2).strip()):
        rest = second[fence.end() :]
        return first + rest[_overlap(first, rest) :]
    return first + second[_overlap(first, second) :]


def _overlap(first: str, second: str) -> int:
    """How many characters at the start of `second` repeat the end of `first`."""
    line = len(first) - (first.rfind("\n") + 1)
    for length in range(min(len(first), len(second), _LONGEST_OVERLAP), _MIN_LINE - 1, -1):
        if not first.endswith(second[:length]):
            continue
        words = len(_WORD.findall(second, 0, length))
        if length >= _MIN_OVERLAP and words >= _MIN_WORD_CHARACTERS:
            return length
        if length == line and words >= _MIN_LINE_WORD_CHARACTERS:
            return length
    return 0


def _open_fence(text: str) -> tuple[str, str] | None:
    """Marks and language of the code fence that `text` ends in (as CommonMark closes them)."""
    opened: tuple[str, str] | None = None
    for match in _FENCE.finditer(text):
        mark, info = match.group(1), match.group(2).strip()
        if opened is None:
            if mark[0] == "~" or "`" not in info:
                opened = (mark, info)
        elif mark[0] == opened[0][0] and len(mark) >= len(opened[0]) and not info:
            opened = None
    return opened


def _is_tag(call: ToolCall) -> bool:
    """Whether the call was written as a tag; a native call's source is a JSON object."""
    return call.raw.lstrip().startswith("<")


def _text(parts: Sequence[Part]) -> str:
    texts = (
        p.text if isinstance(p, Text) else p.raw for p in parts if isinstance(p, Text | ToolCall)
    )
    return "".join(texts)
