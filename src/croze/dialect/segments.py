"""What a scanned reply consists of until it is judged: runs of text or thinking, and calls."""

import re
from bisect import bisect_right
from operator import itemgetter

from croze.dialect.grammar import ToolGrammar


class Run:
    """A run of text or thinking, in pieces.

    `fences` are the code fences in it as [start, end) offsets; an open one ends at -1. `tagged` thinking
    came in `<thinking>` tags, other thinking from the wire.
    """

    __slots__ = ("closed", "fences", "length", "opaque", "pieces", "tagged", "thinking")

    def __init__(self, *, thinking: bool = False, tagged: bool = False) -> None:
        self.thinking = thinking
        self.tagged = tagged
        self.pieces: list[str] = []
        self.length = 0
        self.fences: list[tuple[int, int]] = []
        self.opaque: str | None = None
        self.closed = False

    @property
    def text(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    def fenced(self, offset: int) -> bool:
        """Whether the character at `offset` stands in a code fence."""
        index = bisect_right(self.fences, offset, key=itemgetter(0)) - 1
        return index >= 0 and (self.fences[index][1] < 0 or offset < self.fences[index][1])


class _Frame:
    """One level of a call: the call itself, or an example of the same call in a body."""

    __slots__ = ("param", "seen")

    def __init__(self, param: str) -> None:
        self.param = param
        self.seen = {param}


class CallRun:
    """A call that is being read: its source in pieces, and where its bodies lie in it.

    `unclear` says that another reading of the same source is possible; `steps_back` that a closing
    sequence of the tool stood inside a body (the end of a nested example, or one that ends nothing).
    """

    __slots__ = (
        "_frames",
        "bodies",
        "body_start",
        "closed",
        "grammar",
        "id",
        "length",
        "nested",
        "pieces",
        "repeated",
        "steps_back",
        "unclear",
    )

    def __init__(self, call_id: str, grammar: ToolGrammar) -> None:
        self.id = call_id
        self.grammar = grammar
        self.pieces: list[str] = []
        self.length = 0
        self.bodies: list[tuple[str, int, int]] = []
        self.body_start = 0
        self.closed = False
        self.nested = False
        self.repeated = ""
        self.steps_back = False
        self.unclear = False
        self._frames: list[_Frame] = []

    @property
    def raw(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    @property
    def param(self) -> str:
        """The parameter whose body is open, empty where none is."""
        return self._frames[0].param if self._frames else ""

    def enter(self, param: str, start: int) -> None:
        """The first parameter opens; its body starts at offset `start` of the source."""
        self._frames.append(_Frame(param))
        self.body_start = start

    def take(self, step: re.Match[str], shift: int) -> bool:
        """Take a step that the grammar found; `shift` turns its positions into offsets of the source.
        True when the call is closed by it."""
        closing, following, own, example = step.groups()
        frame = self._frames[-1]
        if example is not None:
            self._frames.append(_Frame(example))
            self.nested = True
            return False
        outer = len(self._frames) == 1
        if closing != frame.param:
            self.unclear = self.unclear or closing in frame.seen
            self.steps_back = self.steps_back or own is not None
            return False
        if outer:
            self.bodies.append((closing, self.body_start, step.start() + shift))
        if own is not None:
            self._frames.pop()
            self.closed = outer
            self.steps_back = self.steps_back or not outer
            return outer
        if outer:
            self.body_start = step.end() + shift
            if following in frame.seen:
                self.repeated = following
        elif following in frame.seen:
            self.unclear = True
        frame.seen.add(following)
        frame.param = following
        return False

    def args(self) -> dict[str, str]:
        """The complete bodies, each without one leading and one trailing newline. Of a repeated one the
        first counts."""
        raw = self.raw
        args: dict[str, str] = {}
        for name, start, end in self.bodies:
            if name not in args:
                args[name] = _trimmed(raw, start, end)
        return args


def _trimmed(raw: str, start: int, end: int) -> str:
    if raw.startswith("\r\n", start, end):
        start += 2
    elif raw.startswith("\n", start, end):
        start += 1
    if raw.endswith("\r\n", start, end):
        end -= 2
    elif raw.endswith("\n", start, end):
        end -= 1
    return raw[start:end]
