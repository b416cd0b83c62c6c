"""Where in the file a sketch's chunk begins and ends: decided by lines, by definitions, or not at all."""

from collections.abc import Sequence

from croze.edit.alignment import Alignment, Chunk, filled, telling
from croze.edit.definitions import Definition

CONTEXT = 2
"""Lines that aren't blank, one of which says something, that an edge needs."""

_MOST = 6
_BELOW = 60
_REWORDED = 3
_ALIKE = 0.6


def tops(align: Alignment, chunk: Chunk) -> tuple[int, ...]:
    """The lines of the file (from 0) at which the chunk may begin; none where nothing decides."""
    if chunk.opens:
        opening = _opening(align, chunk)
        return () if opening is None else (opening,)
    return _agreed(_top_by_name(align, chunk), _tops_by_lines(align, chunk))


def bottoms(align: Alignment, chunk: Chunk) -> tuple[int, ...]:
    """The lines of the file (from 0) before which the chunk may end; none where nothing decides."""
    by_name = _bottom_by_name(align, chunk)
    if chunk.closes:
        closing = _closing(align, chunk)
        last = _last_filled(align.file)
        wrong = closing is None or (by_name is not None and by_name < last)
        return () if wrong or closing is None else (closing,)
    return _agreed(by_name, _bottoms_by_lines(align, chunk))


def spaced(align: Alignment, chunk: Chunk, start: int, end: int) -> bool:
    """False where the sketch has more blank lines beside a marker than the file has there: what stood
    between them may be meant to go."""
    if not chunk.opens:
        blanks = chunk.start - chunk.raw
        if any(align.file[max(0, start - blanks) : start]) or blanks > start:
            return False
    if not chunk.closes:
        below = chunk.end
        while below < len(align.lines) and not align.marked[below]:
            below += 1
        if any(align.file[end : end + below - chunk.end]):
            return False
    return True


def proved(align: Alignment, chunk: Chunk, start: int, end: int) -> bool:
    """True where the lines that decided the two edges stand between them."""
    if not chunk.opens and _top_by_name(align, chunk) != start:
        run = min(align.run_down(chunk.start, start, chunk.end), end - start)
        if not _enough(align.lines[chunk.start : chunk.start + run]):
            return False
    if not chunk.closes and _bottom_by_name(align, chunk) != end:
        run = min(align.run_up(chunk.end, end, chunk.start), end - start)
        return _enough(align.lines[chunk.end - run : chunk.end])
    return True


def _agreed(by_name: int | None, by_lines: list[int]) -> tuple[int, ...]:
    if by_name is None:
        return tuple(by_lines) if len(by_lines) <= _MOST else ()
    return (by_name,) if not by_lines or by_name in by_lines else ()


def _tops_by_lines(align: Alignment, chunk: Chunk) -> list[int]:
    scope = align.scope(chunk.start)
    found = []
    for at in align.places(align.lines[chunk.start]):
        if scope.f_start <= at < scope.f_end:
            run = align.run_down(chunk.start, at, chunk.end)
            if _enough(align.lines[chunk.start : chunk.start + run]):
                found.append(at)
    return found


def _bottoms_by_lines(align: Alignment, chunk: Chunk) -> list[int]:
    scope = align.scope(chunk.end - 1)
    found = []
    for at in align.places(align.lines[chunk.end - 1]):
        if scope.f_start <= at < scope.f_end:
            run = align.run_up(chunk.end, at + 1, chunk.start)
            if _enough(align.lines[chunk.end - run : chunk.end]):
                found.append(at + 1)
    return found


def _enough(lines: Sequence[str]) -> bool:
    return filled(lines) >= CONTEXT and any(map(telling, lines))


def _top_by_name(align: Alignment, chunk: Chunk) -> int | None:
    for one in align.sketch_definitions:
        if one.above != chunk.start:
            continue
        partner = align.partners.get(one)
        if partner is None or (partner.attributes and not one.attributes):
            return None
        ours = align.lines[one.above : one.start]
        if not ours or (partner.above == partner.start and not any(map(align.places, ours))):
            return partner.start
        return partner.above if ours == align.file[partner.above : partner.start] else None
    return None


def _bottom_by_name(align: Alignment, chunk: Chunk) -> int | None:
    """By the innermost definition that ends with the chunk."""
    ending = [one for one in align.sketch_definitions if one.end == chunk.end]
    partner = align.partners.get(ending[-1]) if ending else None
    if (
        partner is None
        or not align.is_trusted(ending[-1])
        or _may_go_on(align, ending[-1], partner)
    ):
        return None
    return partner.end


def _may_go_on(align: Alignment, ours: Definition, partner: Definition) -> bool:
    """True where the definition that the sketch shows may be a part of the file's, or run on into what
    stands below it there: its last line is found in such a place."""
    if align.is_open(ours):
        return False
    shown = align.lines[ours.start : ours.end]
    there = align.file[partner.start : partner.end]
    if align.language == "python" and not _shows_end(shown, there):
        return True
    last = next((line for line in reversed(shown) if any(map(str.isalnum, line))), shown[-1])
    return last not in there and last in align.file[partner.end : partner.end + _BELOW]


def _shows_end(shown: Sequence[str], there: Sequence[str]) -> bool:
    """True where the end of an indented block is to be seen in what is shown of it: its last line, or
    the one before a last line that is new. Nothing else closes such a block."""
    if shown[-1] == there[-1]:
        return shown.count(shown[-1]) == there.count(shown[-1])
    if shown[-1] in there or shown[-1].endswith(":"):
        return False
    solid = [line for line in there if line]
    return there[-1] in shown or (len(solid) > 1 and solid[-2] in shown)


def _opening(align: Alignment, chunk: Chunk) -> int | None:
    """The file's start, where the chunk shows it: its first line, new lines before it, or a few lines
    that were reworded."""
    first = next((at for at, line in enumerate(align.file) if line), len(align.file))
    if first < len(align.file) and align.lines[chunk.start] == align.file[first]:
        return first
    anchors = align.anchors(align.scope(chunk.start))
    at = next((at for at in range(chunk.start, chunk.end) if align.lines[at] in anchors), None)
    if at is None:
        return None
    where = anchors[align.lines[at]]
    up = align.run_up(at, where, chunk.start)
    run = up + align.run_down(at, where, chunk.end)
    at, where = at - up, where - up
    if filled(align.lines[at : at + run]) < CONTEXT or not align.lines[0]:
        return None  # a blank line at the start of a sketch may be meant or not
    return first if _stands_for(align.lines[chunk.start : at], align.file[first:where]) else None


def _closing(align: Alignment, chunk: Chunk) -> int | None:
    last = _last_filled(align.file)
    if last and align.lines[chunk.end - 1] == align.file[last - 1]:
        return last
    anchors = align.anchors(align.scope(chunk.end - 1))
    rows = range(chunk.end - 1, chunk.start - 1, -1)
    at = next((at for at in rows if align.lines[at] in anchors), None)
    if at is None:
        return None
    where = anchors[align.lines[at]]
    down = align.run_down(at, where, chunk.end)
    run = align.run_up(at, where, chunk.start) + down
    at, where = at + down, where + down
    if filled(align.lines[at - run : at]) < CONTEXT or not align.lines[-1]:
        return None
    return last if _stands_for(align.lines[at : chunk.end], align.file[where:last]) else None


def _last_filled(lines: Sequence[str]) -> int:
    return next((at for at in range(len(lines), 0, -1) if lines[at - 1]), 0)


def _stands_for(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """True where the sketch's lines are new, or the file's lines reworded one by one."""
    if not filled(theirs):
        return True
    if len(ours) != len(theirs) or len(ours) > _REWORDED:
        return False
    from difflib import SequenceMatcher

    return all(
        SequenceMatcher(None, one, other).ratio() >= _ALIKE
        for one, other in zip(ours, theirs, strict=True)
    )
