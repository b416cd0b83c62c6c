"""The cells of a terminal's screen: where characters go, and what moves, scrolls and erases them."""

import unicodedata
from collections import deque
from functools import lru_cache

HISTORY = 1_000
"""Lines that are kept of what has left the screen at its top."""

MOST_ROWS, MOST_COLUMNS = 200, 500
_MOST_MARKS = 8
_TAB = 8

_LINES = str.maketrans(
    "`afgjklmnopqrstuvwxyz{|}~", "◆▒°±┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·"
)  # fmt: skip


class Grid:
    """`rows` × `columns` cells and a cursor. A wide character holds two cells, the second one empty.
    `gone` counts the lines that have left at the top, `drawn` tells that a program has not only written
    line by line."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = _size(rows, columns)
        self.gone = 0
        self.drawn = False
        self.alternate = False
        self._history: deque[tuple[str, bool]] = deque(maxlen=HISTORY)
        self._reset()

    def _reset(self) -> None:
        self._cells = [self._blank() for _ in range(self.rows)]
        self._wrapped = [False] * self.rows
        self.y = self.x = 0
        self._pending = False
        self._top, self._bottom = 0, self.rows - 1
        self._saved = (0, 0)
        self._wraps, self._origin, self._inserts = True, False, False
        self._sets = [False, False]
        self._shifted = 0
        self._last = " "

    def resize(self, rows: int, columns: int) -> None:
        """Another size; what doesn't fit is cut off, at the top into the history."""
        rows, columns = _size(rows, columns)
        while self.y >= rows:
            self._scroll(0, len(self._cells) - 1)
            self.y -= 1
        for row in self._cells:
            row[columns:] = []
            row.extend(" " * (columns - len(row)))
            if row[-1:] and _width(row[-1]) == 2:
                row[-1] = " "
        self.columns = columns
        self._cells[rows:] = []
        self._cells += [self._blank() for _ in range(rows - len(self._cells))]
        self._wrapped = (self._wrapped + [False] * rows)[:rows]
        self.rows = rows
        self._top, self._bottom = 0, rows - 1
        self.x = min(self.x, columns - 1)
        self._pending = False

    def _blank(self) -> list[str]:
        return [" "] * self.columns

    def _print(self, text: str) -> None:
        if self._sets[self._shifted]:
            text = text.translate(_LINES)
        self._last = text[-1]
        if not text.isascii() or self._inserts:
            for char in text:
                self._put(char)
            return
        while text:
            self._wrap_if_due()
            room = self.columns - self.x
            piece, text = text[:room], text[room:]
            self._clear_halves(self.x, self.x + len(piece))
            self._cells[self.y][self.x : self.x + len(piece)] = piece
            self.x += len(piece)
            if self.x == self.columns:
                self.x, self._pending = self.columns - 1, True
                if text and not self._wraps:
                    self._cells[self.y][-1] = text[-1]
                    return

    def _put(self, char: str) -> None:
        width = _width(char)
        if width == 0:
            self._combine(char)
            return
        self._wrap_if_due()
        if width == 2 and self.x == self.columns - 1:
            if self.columns < 2 or not self._wraps:
                return
            self._pending = True
            self._wrap_if_due()
        row = self._cells[self.y]
        if self._inserts:
            row[self.x : self.x] = [" "] * width
            del row[self.columns :]
        self._clear_halves(self.x, self.x + width)
        row[self.x : self.x + width] = [char, ""][:width]
        self.x += width
        if self.x >= self.columns:
            self.x, self._pending = self.columns - 1, True

    def _combine(self, char: str) -> None:
        row = self._cells[self.y]
        at = self.x if self._pending else self.x - 1
        if at > 0 and row[at] == "":
            at -= 1
        if at >= 0 and len(row[at]) < _MOST_MARKS and unicodedata.category(char)[0] == "M":
            row[at] += char

    def _clear_halves(self, start: int, end: int) -> None:
        """Of a wide character that is about to lose one half the other goes too."""
        row = self._cells[self.y]
        if row[start] == "" and start > 0:
            row[start - 1] = " "
        if end < self.columns and row[end] == "":
            row[end] = " "

    def _wrap_if_due(self) -> None:
        if not self._pending:
            return
        self._pending = False
        if self._wraps:
            self._wrapped[self.y] = True
            self.x = 0
            self._down(wrapped=True)

    def _control(self, char: str) -> None:
        if char in "\n\x0b\x0c\x85":
            self._down()
            if char == "\x85":
                self.x = 0
        elif char == "\r":
            self.x = 0
        elif char == "\b":
            self.x = max(0, self.x - 1)
        elif char == "\t":
            self.x = min(self.columns - 1, (self.x // _TAB + 1) * _TAB)
        elif char in "\x0e\x0f":
            self._shifted = 1 if char == "\x0e" else 0
            return
        else:
            return
        self._pending = False

    def _down(self, *, wrapped: bool = False) -> None:
        if not wrapped:
            self._wrapped[self.y] = False
        if self.y == self._bottom:
            self._scroll(self._top, self._bottom)
        elif self.y < self.rows - 1:
            self.y += 1

    def _up(self) -> None:
        if self.y == self._top:
            self._insert_lines(self._top, 1)
        elif self.y > 0:
            self.y -= 1

    def _scroll(self, top: int, bottom: int) -> None:
        """One line up; the main screen's first line goes into the history."""
        row, wrapped = self._cells.pop(top), self._wrapped.pop(top)
        if top == 0 and not self.alternate:
            self._history.append(("".join(row).rstrip() if not wrapped else "".join(row), wrapped))
            self.gone += 1
        self._cells.insert(bottom, self._blank())
        self._wrapped.insert(bottom, False)

    def _insert_lines(self, at: int, count: int) -> None:
        for _ in range(min(count, self._bottom - at + 1)):
            del self._cells[self._bottom], self._wrapped[self._bottom]
            self._cells.insert(at, self._blank())
            self._wrapped.insert(at, False)

    def _delete_lines(self, at: int, count: int) -> None:
        for _ in range(min(count, self._bottom - at + 1)):
            del self._cells[at], self._wrapped[at]
            self._cells.insert(self._bottom, self._blank())
            self._wrapped.insert(self._bottom, False)

    def _go(self, y: int, x: int) -> None:
        top, bottom = (self._top, self._bottom) if self._origin else (0, self.rows - 1)
        self.y = min(max(y, top), bottom)
        self.x = min(max(x, 0), self.columns - 1)
        self._pending = False

    def _move(self, final: str, count: int) -> None:
        y, x = self.y, self.x
        if final in "AF":
            y = max(y - count, self._top if y >= self._top else 0)
        elif final in "BEe":
            y = min(y + count, self._bottom if y <= self._bottom else self.rows - 1)
        elif final in "Ca":
            x += count
        elif final == "D":
            x -= count
        elif final in "G`":
            x = count - 1
        elif final == "d":
            self.drawn = True
            y = count - 1
        self._go(y, 0 if final in "EF" else x)

    def _erase_display(self, how: int) -> None:
        if how == 3:
            return
        if how >= 1:
            self.drawn = True
        before, after = how in (1, 2), how in (0, 2)
        for at in range(self.rows):
            if (at < self.y and before) or (at > self.y and after):
                self._cells[at] = self._blank()
                self._wrapped[at] = False
        self._erase_line(self.y, how)

    def _erase_line(self, at: int, how: int) -> None:
        start = 0 if how else self.x
        end = self.columns if how != 1 else self.x + 1
        self._clear_halves(start, min(end, self.columns))
        self._cells[at][start:end] = " " * (end - start)
        if how != 1:
            self._wrapped[at] = False
        self._pending = False

    def _edit_line(self, final: str, count: int) -> None:
        row = self._cells[self.y]
        self._clear_halves(self.x, self.x + count if final != "@" else self.x)
        if final == "X":
            row[self.x : self.x + count] = " " * count
        elif final == "P":
            del row[self.x : self.x + count]
            row.extend(" " * count)
        else:
            row[self.x : self.x] = " " * count
            del row[self.columns :]
        self._pending = False


def _size(rows: int, columns: int) -> tuple[int, int]:
    return min(max(rows, 1), MOST_ROWS), min(max(columns, 1), MOST_COLUMNS)


@lru_cache(maxsize=4096)
def _width(char: str) -> int:
    """Cells of a character; nothing for what only changes the one before it, and for what is hidden."""
    if char == "":
        return 0
    char = char[0]
    if unicodedata.category(char) in ("Mn", "Me", "Cf", "Cs"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
