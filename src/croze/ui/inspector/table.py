"""Tables with numbers on the right, as wide as the terminal allows, and figures in words."""

from collections.abc import Sequence

from croze.text.display import one_line, safe
from croze.ui.cli.output import cells
from croze.ui.i18n import _, mark
from croze.ui.render import Screen

WIDE = 110
"""Columns from which on a row has room for everything."""

_WORDS = (
    mark("system"), mark("documentation"), mark("history"), mark("current"),
    mark("frozen"), mark("prefix"), mark("new"),
    mark("full"), mark("digested"), mark("replaced"), mark("hidden"), mark("summarised"),
    mark("cut"), mark("undone"), mark("user"), mark("fact"), mark("reply"), mark("result"),
    mark("summary"), mark("head"), mark("came"), mark("went"), mark("changed"),
    mark("compaction"), mark("undo"), mark("redo"), mark("model"), mark("protocol"),
    mark("joined"), mark("facts"), mark("other"), mark("recorded"),
)  # fmt: skip


def word(text: str) -> str:
    """A word of the report in the user's language."""
    return _(text) if text in _WORDS else one_line(text, 60)


def rows(
    table: Sequence[Sequence[str]], *, width: int, right: frozenset[int] = frozenset()
) -> list[str]:
    """Rows in columns two apart; those in `right` stand on the right, the last takes what is left of
    `width` and is cut there."""
    if not table:
        return []
    table = [[safe(cell) for cell in row] for row in table]
    last = len(table[0]) - 1
    widths = [max(cells(row[at]) for row in table) for at in range(last)]
    room = max(8, width - sum(widths) - 2 * last)
    lines = []
    for row in table:
        out = []
        for at, cell in enumerate(row[:last]):
            pad = " " * (widths[at] - cells(cell))
            out.append(pad + cell if at in right else cell + pad)
        end = row[last]
        if last in right:
            end = " " * (max(cells(r[last]) for r in table) - cells(end)) + end
        out.append(one_line(end, room))
        lines.append("  ".join(out).rstrip())
    return lines


def prose(screen: Screen, text: str, *styles: str) -> None:
    """A text in lines that the terminal has room for, broken at blanks, indented as it begins."""
    indent = text[: len(text) - len(text.lstrip(" "))]
    line = ""
    for piece in safe(text).split():
        longer = f"{line} {piece}" if line else f"{indent}{piece}"
        if line and cells(longer) >= screen.width:
            screen.line(line, *styles)
            longer = f"{indent}{piece}"
        line = longer
    screen.line(line, *styles)


def percent(share: float | None) -> str:
    """A share as people read it; a dash where it is unknown."""
    if share is None:
        return "—"
    value = 100 * share
    return f"{value:.1f} %" if 0 < abs(value) < 10 else f"{value:.0f} %"


def money(amount: float | None) -> str:
    """Dollars with as many places as a small amount needs."""
    if amount is None:
        return "—"
    if amount == 0:
        return "$0"
    sign = "−" if amount < 0 else ""
    amount = abs(amount)
    if amount < 0.0001:
        return f"{sign}<$0.0001"
    return f"{sign}${amount:.2f}" if amount >= 1 else f"{sign}${amount:.4f}"


def count(number: int | None) -> str:
    return "—" if number is None else f"{number:,}"


def span(seconds: float | None) -> str:
    """A time in words: 40 s, 12 min, 3 h, 2 d."""
    if seconds is None:
        return "—"
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
