"""A terminal's screen, from the bytes that a program writes to it: what a person would see, as text.

It knows what programs use that say they run on an xterm: cursor moves, erasing, inserting and deleting,
scroll regions, the alternate screen, line drawing, wide and combining characters. Colours and titles
are left out. Sources: ECMA-48, xterm's control sequences.
"""

import codecs
import re

from msgspec import Struct

from croze.text.grid import Grid

_LONGEST = 256

_PLAIN = re.compile(r"[^\x00-\x1f\x7f-\x9f]+")
_ESCAPE = re.compile(
    r"\x1b(?:\[(?P<private>[<-?]?)(?P<parameters>[0-9;:]*)[0-?]*(?P<between>[ -/]*)(?P<final>[@-~])"
    r"|(?P<string>[\]PX^_])|(?P<charset>[ -/]+)(?P<to>[0-~])|(?P<single>[0-Z\\`-~]))"
)
_BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[ -/]*)\Z")
_STRING_END = re.compile(r"\x07|\x1b\\|(?=\x1b[^\\])|\x18|\x1a|\x9c")
_BROKEN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*)?")


class Mark(Struct, frozen=True):
    """A place in what was written: a line, counted from the first one ever, and a column."""

    line: int
    column: int


class Screen(Grid):
    """The screen of `rows` × `columns`. `answers` collects what the terminal says to the program."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__(rows, columns)
        self.answers = bytearray()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._in_string = False
        self._main: tuple[list[list[str]], list[bool], int, int] | None = None

    # What there is to see

    def mark(self) -> Mark:
        """Where the cursor stands."""
        return Mark(self.gone + self.y, self.x)

    def text(self) -> str:
        """The screen as it stands, without blanks at the ends of lines and empty lines at its end."""
        lines = ["".join(row).rstrip() for row in self._cells]
        while lines and not lines[-1]:
            lines.pop()
        return "\n".join(lines)

    def since(self, mark: Mark, *, exact: bool = False) -> tuple[str, int]:
        """What was written since `mark`, from the beginning of its line on, or from its very column
        (`exact`); and how many lines of it are no longer known. Lines that the terminal wrapped are one."""
        first = self.gone - len(self._history)
        missing = max(0, first - mark.line)
        start = max(mark.line, first)
        rows = [self._history[at - first] for at in range(start, self.gone)]
        last = max([self.y, *(at for at, row in enumerate(self._cells) if _holds(row))])
        for at in range(max(0, start - self.gone), last + 1):
            line = "".join(self._cells[at])
            kept = self._cells[at][: self.x] if at == self.y else []
            width = max(len("".join(kept)), len(line.rstrip()))
            rows.append((line[:width], self._wrapped[at]))
        lines: list[str] = []
        joins = False
        for at, (line, wrapped) in enumerate(rows):
            if exact and at == 0 and not missing:
                line = line[mark.column :]
            if joins:
                lines[-1] += line
            else:
                lines.append(line)
            joins = wrapped
        return "\n".join(lines), missing

    # What comes from the program

    def feed(self, data: bytes) -> None:
        """Take a piece of what the program writes."""
        text = self._rest + self._decoder.decode(data)
        self._rest = ""
        at, size = 0, len(text)
        while at < size:
            if self._in_string:
                end = _STRING_END.search(text, at)
                if end is None:
                    self._rest = "\x1b" if text.endswith("\x1b") else ""
                    return
                self._in_string, at = False, end.end()
                continue
            plain = _PLAIN.match(text, at)
            if plain is not None:
                self._print(plain.group())
                at = plain.end()
                continue
            if text[at] != "\x1b":
                self._control(text[at])
                at += 1
                continue
            escape = _ESCAPE.match(text, at)
            if escape is not None:
                self._escape(escape)
                at = escape.end()
            elif size - at < _LONGEST and _BEGUN.match(text, at):
                self._rest = text[at:]
                return
            elif broken := _BROKEN.match(text, at):
                at = broken.end()

    def _escape(self, found: "re.Match[str]") -> None:
        if found["string"]:
            self._in_string = True
        elif found["charset"]:
            if found["charset"] in ("(", ")"):
                self._sets[found["charset"] == ")"] = found["to"] == "0"
        elif found["single"]:
            self._single(found["single"])
        elif not found["between"]:
            numbers = [int(each[:6] or 0) for each in re.split("[;:]", found["parameters"])]
            if found["private"] == "?" and found["final"] in "hl":
                for number in numbers:
                    self._private_mode(number, found["final"] == "h")
            elif not found["private"]:
                self._sequence(found["final"], numbers)

    def _single(self, char: str) -> None:
        if char == "7":
            self._saved = (self.y, self.x)
        elif char == "8":
            self._go(*self._saved)
        elif char in "DE":
            self._down()
            self.x = 0 if char == "E" else self.x
        elif char == "M":
            self.drawn = True
            self._up()
        elif char == "c":
            self.drawn = True
            self._leave_alternate()
            self._reset()

    def _private_mode(self, number: int, on: bool) -> None:
        if number == 7:
            self._wraps = on
        elif number == 6:
            self._origin = on
            self._go(self._top if on else 0, 0)
        elif number == 1048:
            self._single("7" if on else "8")
        elif number in (47, 1047, 1049):
            self.drawn = True
            if on and not self.alternate:
                self._main = (self._cells, self._wrapped, self.y, self.x)
                self.alternate = True
                self._cells = [self._blank() for _ in range(self.rows)]
                self._wrapped = [False] * self.rows
                self._pending = False
            elif not on:
                self._leave_alternate()

    def _leave_alternate(self) -> None:
        if not self.alternate or self._main is None:
            return
        self.alternate = False
        rows, columns = self.rows, self.columns
        self._cells, self._wrapped, self.y, self.x = self._main
        self._main = None
        self._top, self._bottom = 0, rows - 1
        self.resize(rows, columns)

    def _sequence(self, final: str, numbers: list[int]) -> None:
        first = numbers[0]
        count = max(1, first)
        second = numbers[1] if len(numbers) > 1 else 0
        limit = min(count, max(self.rows, self.columns))
        if final in "ABCDEFGaed`":
            self._move(final, count)
        elif final in "Hf":
            self.drawn = True
            self._go(count - 1 + (self._top if self._origin else 0), max(1, second) - 1)
        elif final == "J":
            self._erase_display(first)
        elif final == "K":
            self._erase_line(self.y, first)
        elif final in "LM" and self._top <= self.y <= self._bottom:
            self.drawn = True
            (self._insert_lines if final == "L" else self._delete_lines)(self.y, limit)
            self.x = 0
        elif final in "P@X":
            self._edit_line(final, min(count, self.columns - self.x))
        elif final in "ST":
            self.drawn = True
            for _ in range(limit):
                if final == "S":
                    self._scroll(self._top, self._bottom)
                else:
                    self._insert_lines(self._top, 1)
        elif final == "r":
            top, bottom = count - 1, (second or self.rows) - 1
            if top < bottom < self.rows:
                self.drawn = True
                self._top, self._bottom = top, bottom
                self._go(top if self._origin else 0, 0)
        elif final == "b":
            self._print(self._last * min(count, self.columns * self.rows))
        elif final in "su":
            self._single("7" if final == "s" else "8")
        elif final in "hl" and first == 4:
            self._inserts = final == "h"
        elif final in "nc":
            self._answer(final, first)

    def _answer(self, final: str, number: int) -> None:
        """What programs ask a terminal, as far as one that can little has to answer."""
        if len(self.answers) > _LONGEST:
            return
        if final == "c" and number == 0:
            self.answers += b"\x1b[?1;2c"
        elif final == "n" and number == 5:
            self.answers += b"\x1b[0n"
        elif final == "n" and number == 6:
            self.answers += f"\x1b[{self.y + 1};{self.x + 1}R".encode()


def _holds(row: list[str]) -> bool:
    return any(cell not in (" ", "") for cell in row)
