"""What a reader gives: the text of a document, or why there is none."""

from msgspec import Struct

MOST_CHARACTERS = 5_000_000
"""Of a document's text; the rest is left out with a note."""


class Extracted(Struct, frozen=True, omit_defaults=True):
    """`about` says what the document is (`PDF document, 12 pages`), `notes` what the text leaves out."""

    text: str
    about: str
    notes: tuple[str, ...] = ()
    title: str = ""


class Unreadable(Exception):
    """A document that gives no text. Codes: `encrypted`, `damaged`, `too_large`, `no_text`,
    `missing_extra`, `unsupported`."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


class Text:
    """Lines of a document as they are found, up to the most characters that are kept."""

    def __init__(self, most: int = MOST_CHARACTERS) -> None:
        self._lines: list[str] = []
        self._left = most
        self.full = False

    def add(self, *lines: str) -> bool:
        """Take these lines in; false where no more are wanted."""
        for line in lines:
            if self._left <= 0:
                self.full = True
                return False
            if len(line) > self._left:
                line, self.full = line[: self._left], True
            self._lines.append(line)
            self._left -= len(line) + 1
        return not self.full

    @property
    def text(self) -> str:
        return tidied("\n".join(self._lines))

    def notes(self) -> tuple[str, ...]:
        return ("the text is longer; its rest is left out",) if self.full else ()


def tidied(text: str) -> str:
    """Text with `\\n` as its only line end, without blanks at the ends of lines or three empty lines in a
    row."""
    out: list[str] = []
    empty = 0
    for line in text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n").split("\n"):
        kept = line.rstrip().replace("\0", "")
        empty = 0 if kept else empty + 1
        if empty <= 2:
            out.append(kept)
    return "\n".join(out).strip("\n")


def plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def table(rows: list[list[str]]) -> list[str]:
    """Rows as a Markdown table whose first row is the heading; `|` and line ends inside are kept
    harmless."""
    width = max((len(row) for row in rows), default=0)
    if not width:
        return []
    lines = []
    for at, row in enumerate(rows):
        cells = [cell.strip().replace("|", "\\|").replace("\n", " / ") for cell in row]
        lines.append("| " + " | ".join([*cells, *[""] * (width - len(cells))]) + " |")
        if at == 0:
            lines.append("|" + " --- |" * width)
    return lines
