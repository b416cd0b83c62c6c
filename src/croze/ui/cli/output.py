"""Writing to the terminal: harmless text, JSON lines, tables; a closed pipe ends quietly."""

import os
import sys
import unicodedata
from collections.abc import Sequence
from datetime import datetime

from croze.text.display import one_line, safe, safe_json
from croze.types.errors import CrozeError


class OutputFailed(CrozeError):
    """Standard output takes nothing more: a full disk, mostly."""


class Output:
    """Standard output for answers, standard error for everything else.

    Writing to a pipe whose reader has gone raises `BrokenPipeError`, any other failure `OutputFailed`.
    """

    def line(self, text: str = "") -> None:
        """One line (or several) of an answer, made harmless."""
        self.raw(safe(text).encode("utf-8", "replace") + b"\n")

    def raw(self, data: bytes) -> None:
        """Bytes as they are, written at once."""
        if sys.stdout is None:
            return
        try:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            drop_stdout()
            reason = error.strerror or str(error)
            raise OutputFailed(
                f"the output can't be written: {reason}", code="output", reason=reason
            ) from error

    def json(self, line: bytes) -> None:
        """A line of JSON, which no terminal obeys."""
        self.raw(safe_json(line))

    def note(self, text: str, *, end: str = "\n") -> None:
        """Progress and messages, on standard error; a closed one is no reason to stop."""
        if sys.stderr is None:
            return
        try:
            sys.stderr.buffer.write((safe(text) + end).encode("utf-8", "replace"))
            sys.stderr.buffer.flush()
        except OSError:
            _to_nowhere(2)

    def error(self, message: str, hint: str = "") -> None:
        """A failure in one line, with the next step below it."""
        self.note(f"croze: {message}")
        if hint:
            self.note(f"  {hint}")

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Rows in columns, each on a line."""
        for text in table_lines(rows):
            self.line(text)


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows in columns, as wide as their widest cell; the last column isn't padded, an empty one left
    out."""
    columns = [
        [one_line(cell, 200) for cell in column]
        for column in zip(*rows, strict=True)
        if any(column)
    ]
    widths = [max(map(cells, column)) for column in columns]
    return [
        "  ".join(
            cell + " " * (width - cells(cell)) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in zip(*columns, strict=True)
    ]


def columns() -> int:
    """The terminal's width in cells, 100 where there is none."""
    import shutil

    return shutil.get_terminal_size((100, 30)).columns


def drop_stdout() -> None:
    """Point standard output nowhere, so that the interpreter's own last flush is silent."""
    _to_nowhere(1)


def _to_nowhere(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def cells(text: str) -> int:
    """Columns of a terminal; East Asian wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def local_time(microseconds: int) -> str:
    """A log's time as the user's clock shows it, to the minute."""
    moment = datetime.fromtimestamp(microseconds / 1e6).astimezone()
    return moment.strftime("%Y-%m-%d %H:%M")


def dollars(cost: float | None) -> str:
    """An amount of money; a dash where it is unknown."""
    if cost is None:
        return "—"
    return "$0" if cost == 0 else f"${cost:.4f}" if cost < 1 else f"${cost:.2f}"


def thousands(count: int | None) -> str:
    """A count in a form that fits a line: 950, 12.3k, 4.56M."""
    if count is None:
        return "—"
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 1_000_000 else f"{count / 1e6:.2f}M"
