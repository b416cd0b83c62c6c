"""Edits by line numbers: of the text as it was read, with the expected lines as a check."""

import itertools
from collections.abc import Sequence

from msgspec import Struct

from croze.edit.rows import given, split
from croze.edit.values import Change, EditPlan, Refusal, RefusalCode

_TELLING = 12
"""Characters that new lines must have for their presence to mean that the edit was already made."""
_CONTEXT = 3
_SHOWN = 40
_WIDTH = 240


class LineRange(Struct, frozen=True):
    """Lines `start` to `end` (from 1, both included) become `text`; `end` = `start` - 1 puts it before
    `start`. `expect` is what the lines are believed to say, None where that isn't known."""

    start: int
    end: int
    text: str
    expect: str | None = None


class RangeEdit(Struct, frozen=True):
    """Ranges of one text, all in its own numbering."""

    edits: tuple[LineRange, ...]


def plan_ranges(text: str, edit: RangeEdit) -> EditPlan | Refusal:
    """The ranges as changes. One whose lines aren't the expected ones is moved to where these stand,
    if that is one place and in the same order; overlapping ranges are refused."""
    lines = split(text)
    if not edit.edits:
        return _refusal("malformed_range", 0, "the edit has no ranges")
    placed: list[tuple[int, Change]] = []
    notes: list[str] = []
    moved = False
    shifts = _shifts(edit.edits)
    for number, (wanted, shift) in enumerate(zip(edit.edits, shifts, strict=True), 1):
        found = _place(lines, wanted, number, shift)
        if isinstance(found, Refusal):
            return found
        if isinstance(found, str):
            notes.append(f"Range {number} {found}.")
            continue
        if found.start != wanted.start - 1:
            moved = True
            notes.append(
                f"Range {number} was applied at line {found.start + 1}, where its expected text is."
            )
        placed.append((number, found))
    if moved and not _in_order(edit.edits, placed):
        what = "the expected lines now stand in another order"
        return _refusal("stale", 0, what, text="Read the file again, then repeat the change.")
    placed.sort(key=lambda item: (item[1].start, item[1].end))
    for (first, before), (second, after) in itertools.pairwise(placed):
        if after.start < before.end:
            numbers = sorted((first, second))
            what = f"ranges {numbers[0]} and {numbers[1]} both change line {after.start + 1}"
            at = (after.start + 1,)
            return _refusal("overlap", numbers[1], what, text="Make one range of them.", lines=at)
    strategy = "relocated" if moved else "exact"
    return EditPlan(text, tuple(change for _, change in placed), tuple(notes), strategy)


def _place(
    lines: Sequence[str], wanted: LineRange, number: int, shift: int
) -> Change | str | Refusal:
    start, end, count = wanted.start - 1, wanted.end, len(lines)
    if start < 0 or end < start:
        what = f"lines {wanted.start}-{wanted.end} are no range: lines count from 1"
        return _refusal("malformed_range", number, what)
    new = given(wanted.text)
    expected = None if wanted.expect is None else given(wanted.expect)
    if expected is not None and len(expected) != end - start:
        what = (
            f"it has {end - start} lines, but its expected text {len(expected)}"
            if end > start
            else "an insertion replaces no lines, so it can't expect any"
        )
        return _refusal("malformed_range", number, what)
    here = lines[start:end]
    if expected and not _alike(here, expected):
        return _elsewhere(lines, wanted, number, new, expected, shift)
    if end > count or start > count:
        what = f"lines {wanted.start}-{wanted.end} are out of the file, which has {count} lines"
        return _refusal("out_of_range", number, what, text=_shown(lines, count - 1, count))
    if tuple(here) == new:
        return "changes nothing: the lines already read so" if new else "changes nothing"
    return Change(start, end, new)


def _elsewhere(
    lines: Sequence[str],
    wanted: LineRange,
    number: int,
    new: Sequence[str],
    expected: Sequence[str],
    shift: int,
) -> Change | str | Refusal:
    for start in (wanted.start - 1 + shift, wanted.start - 1):
        if new and start >= 0 and _alike(lines[start : start + len(new)], new):
            if len("".join(new).strip()) >= _TELLING:
                return f"was already applied at line {start + 1}"
            return _stale(lines, wanted, number)
    if any(character.isalnum() for line in expected for character in line):
        starts = _find(lines, expected)
        if len(starts) == 1:
            return Change(starts[0], starts[0] + len(expected), tuple(new))
    return _stale(lines, wanted, number)


def _find(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    first = wanted[0].rstrip()
    return [
        at
        for at, line in enumerate(lines)
        if line.rstrip() == first and _alike(lines[at : at + len(wanted)], wanted)
    ]


def _alike(found: Sequence[str], wanted: Sequence[str]) -> bool:
    """The same but for blanks at the ends of lines."""
    return len(found) == len(wanted) and all(
        one.rstrip() == other.rstrip() for one, other in zip(found, wanted, strict=True)
    )


def _shifts(edits: Sequence[LineRange]) -> list[int]:
    """For each range, by how many lines those above it would have moved it."""
    deltas = [len(given(edit.text)) - (edit.end - edit.start + 1) for edit in edits]
    order = sorted(range(len(edits)), key=lambda at: edits[at].start)
    shifts, total = [0] * len(edits), 0
    for at in order:
        shifts[at] = total
        total += deltas[at]
    return shifts


def _in_order(edits: Sequence[LineRange], placed: Sequence[tuple[int, Change]]) -> bool:
    rows = sorted(placed, key=lambda item: (edits[item[0] - 1].start, edits[item[0] - 1].end))
    return all(one.start <= other.start for (_, one), (_, other) in itertools.pairwise(rows))


def _stale(lines: Sequence[str], wanted: LineRange, number: int) -> Refusal:
    last = min(wanted.end, len(lines))
    what = f"lines {wanted.start}-{wanted.end} are not the expected ones"
    shown = _shown(lines, wanted.start - 1, wanted.end)
    hint = f"They now read:\n{shown}\nGive the range by these numbers, or read the file again."
    return _refusal("stale", number, what, text=hint, lines=tuple(range(wanted.start, last + 1)))


def _shown(lines: Sequence[str], start: int, end: int) -> str:
    low = max(0, min(start, len(lines)) - _CONTEXT)
    high = min(len(lines), end + _CONTEXT, low + _SHOWN)
    return "\n".join(f"{at + 1}\t{lines[at][:_WIDTH]}" for at in range(low, high))


def _refusal(
    code: RefusalCode, number: int, what: str, *, text: str = "", lines: tuple[int, ...] = ()
) -> Refusal:
    message = f"Range {number}: {what}" if number else what[:1].upper() + what[1:]
    return Refusal(code, f"{message}. Nothing was changed.", text, number, lines)
