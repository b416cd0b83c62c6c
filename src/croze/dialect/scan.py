"""The scanner of the xml protocol: an incremental state machine over a reply's text.

A tag counts only where a line begins (after blanks), or directly after a call or a thinking block, and
outside code fences; anywhere else it is prose. A tool's tag opens a call only where one of its
parameters, or its own close, comes next. Nothing is scanned twice, and only what may still become a tag
is held back, so the time is linear and the outcome the same however the text was split.
"""

import re
from collections.abc import Callable
from enum import Enum, auto

from croze.dialect.grammar import BLANKS, NEXT, RESULT, TAG, THINKING, Grammar
from croze.dialect.segments import CallRun, Run
from croze.types.stream import Delta

_LINE = re.compile(r"[\r\n]([ \t]*)(?:[<`~]|\Z)")
_LEADING = re.compile(r"[ \t\r\n]*")
_NEWLINE = re.compile(r"[\r\n]")
_FENCE_OPENS = re.compile(r"(`{3,})[^`]*|(~{3,}).*", re.DOTALL)
_FENCE_CLOSES = re.compile(r"(`+|~+)[ \t]*")
_THINKING_ENDS = re.compile(r"</thinking[ \t\r\n]*>")
_THINKING_MAY_END = re.compile(
    r"<(?:/(?:t(?:h(?:i(?:n(?:k(?:i(?:n(?:g[ \t\r\n]*)?)?)?)?)?)?)?)?)?\Z"
)
_NO_FENCE = "    "
"""An indentation at which no fence opens; it also stands for 'directly after a call'."""


class _Mode(Enum):
    TEXT = auto()
    THINKING = auto()
    CALL = auto()


class _Line(Enum):
    """Where in a line the text stands: only blanks so far, in what may be a fence's line, or beyond."""

    START = auto()
    FENCE = auto()
    MIDDLE = auto()


class Scanner:
    """Reads one reply's text in pieces; gives deltas at once and `segments` at the end."""

    def __init__(self, grammar: Grammar, new_id: Callable[[], str]) -> None:
        self.segments: list[Run | CallRun] = []
        self.halted = False
        self._grammar = grammar
        self._new_id = new_id
        self._mode = _Mode.TEXT
        self._held: list[str] = []
        self._blanks_go_on = False
        self._run: Run | None = None
        self._call: CallRun | None = None
        self._line = _Line.START
        self._indent = ""
        self._fence = ""
        self._fence_line: list[str] = []
        self._fence_at = 0

    def feed(self, text: str) -> list[Delta]:
        if not text or self.halted:
            return []
        if not self._held:
            if self._mode is _Mode.CALL:
                if "<" not in text:
                    call = self._call
                    assert call is not None
                    call.pieces.append(text)
                    call.length += len(text)
                    return [Delta(kind="call", text=text, call_id=call.id)]
            elif self._mode is _Mode.TEXT:
                run = self._run
                if self._line is _Line.MIDDLE and run is not None and not _LINE.search(text):
                    run.pieces.append(text)
                    run.length += len(text)
                    return [Delta(kind="text", text=text)]
            return self._scan(text, 0)
        if self._blanks_go_on and not text.strip(BLANKS):
            self._held.append(text)
            return self._record_call(text) if self._mode is _Mode.CALL else []
        self._held.append(text)
        data = "".join(self._held)
        self._held = []
        return self._scan(data, len(data) - len(text) if self._mode is _Mode.CALL else 0)

    def think(self, text: str, opaque: str | None) -> list[Delta]:
        """Take reasoning from the wire: it stands where it arrived, and `opaque` ends its block."""
        if self.halted:
            return []
        out = self._give_out()
        last = self.segments[-1] if self.segments else None
        if not (isinstance(last, Run) and last.thinking and not last.tagged and not last.closed):
            last = Run(thinking=True)
            self.segments.append(last)
            if self._mode is _Mode.TEXT:
                self._run = None
                self._begin_line(_NO_FENCE)
        last.pieces.append(text)
        if opaque is not None:
            last.opaque = opaque
            last.closed = True
        if text:
            out.append(Delta(kind="thinking", text=text))
        return out

    def flush(self) -> list[Delta]:
        """Give out what is held back, as no more text comes; a tool's whole tag stays for `finish`."""
        return [] if self._holds_tool() else self._give_out()

    def finish(self) -> list[Run | CallRun]:
        """The reply has ended: what it consists of. A tool's tag at its very end is an open call."""
        if self._holds_tool():
            held = "".join(self._held)
            self._held = []
            tag = TAG.match(held)
            assert tag is not None
            self._open_call(tag[1])
            self._record_call(held)
        else:
            self._give_out()
        return self.segments

    def _holds_tool(self) -> bool:
        return self._mode is _Mode.TEXT and bool(self._held) and ">" in "".join(self._held)

    def _give_out(self) -> list[Delta]:
        if not self._held or self._mode is _Mode.CALL:
            return []
        held = "".join(self._held)
        self._held = []
        self._line = _Line.MIDDLE
        return self._record_run(held)

    def _scan(self, data: str, start: int) -> list[Delta]:
        """Read `data`; what stands before `start` has been recorded already."""
        out: list[Delta] = []
        position = 0
        while position < len(data) and not self.halted:
            if self._mode is _Mode.TEXT:
                position = self._scan_text(data, position, out)
            elif self._mode is _Mode.THINKING:
                position = self._scan_thinking(data, position, out)
            else:
                position = self._scan_call(data, start, position, out)
            start = position
        return out

    def _scan_text(self, data: str, start: int, out: list[Delta]) -> int:
        if self._run is None:
            self._run = Run()
            self.segments.append(self._run)
            if self._fence:
                self._run.fences.append((0, -1))
        shift = self._run.length - start
        position, size = start, len(data)
        while position < size:
            if self._line is _Line.MIDDLE:
                line = _LINE.search(data, position)
                if line is None:
                    break
                self._begin_line(line[1])
                position = line.end(1)
            elif self._line is _Line.FENCE:
                newline = _NEWLINE.search(data, position)
                if newline is None:
                    self._fence_line.append(data[position:])
                    break
                self._fence_line.append(data[position : newline.start()])
                position = newline.end()
                self._end_fence_line(self._run, position + shift)
            else:
                leading = _LEADING.match(data, position)
                assert leading is not None
                self._begin_line(self._indent + leading[0])
                position = leading.end()
                if position == size:
                    break
                mark = data[position]
                if mark == "<" and not self._fence:
                    taken = self._take_tag(data, start, position, out)
                    if taken is not None:
                        return taken
                    self._line = _Line.MIDDLE
                elif mark in "`~" and len(self._indent) < len(_NO_FENCE):
                    self._line = _Line.FENCE
                    self._fence_line = []
                    self._fence_at = position + shift
                else:
                    self._line = _Line.MIDDLE
        out.extend(self._record_run(data[start:]))
        return size

    def _begin_line(self, blanks: str) -> None:
        """A line begins, or goes on after `blanks` with nothing else before them."""
        indent = blanks[max(blanks.rfind("\n"), blanks.rfind("\r")) + 1 :]
        self._indent = _NO_FENCE if len(indent) >= len(_NO_FENCE) or "\t" in indent else indent
        self._line = _Line.START

    def _end_fence_line(self, run: Run, end: int) -> None:
        line = "".join(self._fence_line)
        if self._fence:
            closes = _FENCE_CLOSES.fullmatch(line)
            if closes is not None and closes[1].startswith(self._fence):
                run.fences[-1] = (run.fences[-1][0], end)
                self._fence = ""
        else:
            opens = _FENCE_OPENS.fullmatch(line)
            if opens is not None:
                self._fence = opens[1] or opens[2]
                run.fences.append((self._fence_at, -1))
        self._begin_line("")

    def _take_tag(self, data: str, start: int, at: int, out: list[Delta]) -> int | None:
        """Read the tag at `at`: where scanning goes on after it, or None where it is only text. What
        may yet become a tag is held back."""
        tag = TAG.match(data, at)
        assert tag is not None
        name, blanks, closed = tag.groups()
        grammar = self._grammar
        if name == RESULT and (blanks or closed):
            out.extend(self._record_run(data[start:at]))
            self.halted = True
            return len(data)
        known = name == THINKING or name in grammar.tools
        if not closed:
            if tag.end() < len(data) or not (known if blanks else name in grammar.starts):
                return None
            return self._hold(data, start, at, out)
        if not known:
            return None
        if name == THINKING:
            out.extend(self._record_run(data[start:at]))
            self._run = Run(thinking=True, tagged=True)
            self.segments.append(self._run)
            self._mode = _Mode.THINKING
            return tag.end()
        tool = grammar.tool(name)
        after = NEXT.match(data, tag.end())
        assert after is not None
        opened, slash, follower, blanks, closed = after.groups("")
        if not closed:
            if after.end() < len(data) or (opened and not tool.can_follow(slash, follower, blanks)):
                return None
            return self._hold(data, start, at, out)
        if not (follower == name if slash else follower in tool.params):
            return None
        out.extend(self._record_run(data[start:at]))
        call = self._open_call(name)
        out.append(Delta(kind="call", call_id=call.id, name=tool.shape.name))
        if slash:
            return self._close_call(call, data[at : after.end()], after.end(), out)
        call.enter(follower, after.end() - at)
        out.extend(self._record_call(data[at : after.end()]))
        return after.end()

    def _scan_call(self, data: str, start: int, position: int, out: list[Delta]) -> int:
        call = self._call
        assert call is not None
        shift = call.length - start
        step = call.grammar.step
        while (found := step.search(data, position)) is not None:
            position = found.end()
            if call.take(found, shift):
                return self._close_call(call, data[start:position], position, out)
        out.extend(self._record_call(data[start:]))
        pending = call.grammar.pending(data, position)
        if pending < len(data):
            self._keep(data[pending:])
        return len(data)

    def _scan_thinking(self, data: str, start: int, out: list[Delta]) -> int:
        end = _THINKING_ENDS.search(data, start)
        if end is not None:
            out.extend(self._record_run(data[start : end.start()]))
            self._run = None
            self._mode = _Mode.TEXT
            self._begin_line(_NO_FENCE)
            return end.end()
        last = data.rfind("<", start)
        if last >= 0 and _THINKING_MAY_END.match(data, last):
            return self._hold(data, start, last, out)
        out.extend(self._record_run(data[start:]))
        return len(data)

    def _hold(self, data: str, start: int, at: int, out: list[Delta]) -> int:
        out.extend(self._record_run(data[start:at]))
        self._keep(data[at:])
        return len(data)

    def _keep(self, tail: str) -> None:
        self._held = [tail]
        self._blanks_go_on = tail[-1] in BLANKS

    def _open_call(self, tag: str) -> CallRun:
        call = self._call = CallRun(self._new_id(), self._grammar.tool(tag))
        self.segments.append(call)
        self._run = None
        self._mode = _Mode.CALL
        return call

    def _close_call(self, call: CallRun, text: str, end: int, out: list[Delta]) -> int:
        out.extend(self._record_call(text))
        out.append(Delta(kind="call", call_id=call.id, done=True))
        call.closed = True
        self._call = None
        self._mode = _Mode.TEXT
        self._begin_line(_NO_FENCE)
        return end

    def _record_call(self, text: str) -> list[Delta]:
        call = self._call
        assert call is not None
        call.pieces.append(text)
        call.length += len(text)
        return [Delta(kind="call", text=text, call_id=call.id)]

    def _record_run(self, text: str) -> list[Delta]:
        if not text:
            return []
        run = self._run
        assert run is not None
        run.pieces.append(text)
        run.length += len(text)
        return [Delta(kind="thinking" if run.thinking else "text", text=text)]
