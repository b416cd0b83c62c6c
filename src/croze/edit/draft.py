"""The blocks of an edit together: in the order of the file, and a text with some of them applied."""

import itertools
from collections.abc import Iterable, Sequence

from msgspec import Struct

from croze.edit.blocks import refusal
from croze.edit.lines import Lines
from croze.edit.splice import reach
from croze.edit.values import Change, Refusal


class Placed(Struct, frozen=True):
    """A block's changes on some lines, the span that it matched, and how; or why it changes nothing."""

    number: int
    changes: tuple[Change, ...]
    start: int
    end: int
    rung: str
    note: str = ""


def ordered(lines: Lines, placed: Iterable[Placed]) -> list[Change] | Refusal:
    """The changes in the order of the file; a refusal where two of them touch the same lines or where
    nothing tells which of two comes first."""
    every = [
        (change.start, change.end, one.start, change, one)
        for one in placed
        for change in one.changes
    ]
    every.sort(key=lambda item: item[:3])
    for (_, _, _, before, first), (_, _, _, after, second) in itertools.pairwise(every):
        apart = first is second
        if not apart and after.start >= before.end and not _may_meet(lines, before, after):
            solid = before.start < before.end and after.start < after.end
            apart = after.start > before.end or solid or _settled(before, first, after, second)
        if not apart:
            numbers = sorted((first.number, second.number))
            return refusal(
                "overlap",
                numbers[1],
                f"blocks {numbers[0]} and {numbers[1]} both change line {after.start + 1}",
                text="Make one block of them.",
                lines=(after.start + 1,),
            )
    return [change for *_, change, _ in every]


def _may_meet(lines: Lines, before: Change, after: Change) -> bool:
    """True where one of two changes can as well be said to be where the other is: lines that come or go
    may be said to be those next to them, where they are the same."""
    (_, high), (low, _) = (
        reach((change.start, change.end, 0, len(change.lines)), lines.all, change.lines)
        for change in (before, after)
    )
    return high >= low and (high, low) != (before.end, after.start)


def _settled(before: Change, first: Placed, after: Change, second: Placed) -> bool:
    """True where two changes meet and at least one only adds lines, but the order is plain: one of the
    blocks ends or begins there, or the other one swaps line for line."""
    point = after.start
    if not all(
        "".join(change.lines).strip() for change in (before, after) if change.start == change.end
    ):
        return False
    if first.end <= point or second.start >= point:
        return first.start != second.start or first.end != second.end
    return any(
        change.start < change.end and len(change.lines) == change.end - change.start
        for change in (before, after)
    )


class Draft:
    """The text with the blocks so far applied. `owners` has for each line its number in the original
    (0-based), or minus the number of the block that wrote it."""

    def __init__(self, lines: Lines, blocks: Sequence[Placed], changes: Sequence[Change]) -> None:
        self.original = lines
        self.all = list(lines.all)
        self.owners = list(range(len(self.all)))
        self.rungs: set[str] = set()
        self.notes: list[str] = []
        numbers = {id(change): one.number for one in blocks for change in one.changes}
        for change in reversed(changes):
            self._splice(change, numbers[id(change)])

    def _splice(self, change: Change, number: int) -> None:
        self.all[change.start : change.end] = change.lines
        self.owners[change.start : change.end] = [-number] * len(change.lines)

    @property
    def text(self) -> str:
        return "\n".join(self.all) + ("\n" if self.original.text.endswith("\n") else "")

    def earlier(self, one: Placed) -> bool:
        """True where a block stands on no lines that itself or a later one wrote."""
        owners = self.owners[one.start : one.end]
        return all(owner >= 0 or -owner < one.number for owner in owners)

    def take(self, one: Placed) -> None:
        self.rungs.add(one.rung)
        self.notes += [one.note] if one.note else []
        for change in reversed(one.changes):
            self._splice(change, one.number)

    def changes(self) -> list[Change]:
        """What has become of the original's lines."""
        found: list[Change] = []
        last, new = 0, 0
        for at, owner in enumerate([*self.owners, len(self.original.all)]):
            if owner < 0:
                continue
            if owner > last or at > new:
                found.append(Change(last, owner, tuple(self.all[new:at])))
            last, new = owner + 1, at + 1
        return found
