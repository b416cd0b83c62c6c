"""Sketches: the new text with `... existing code ...` for what stays, aligned with the file by lines
that both have once and by the names of definitions; refused where that doesn't decide."""

from collections.abc import Sequence

from msgspec import Struct

from croze.edit.alignment import Alignment, Chunk, Scope, filled
from croze.edit.definitions import Definition
from croze.edit.edges import CONTEXT, bottoms, proved, spaced, tops
from croze.edit.lines import fold
from croze.edit.markers import holds_marker, is_bare, is_marker
from croze.edit.rows import split
from croze.edit.values import Change, EditPlan, Refusal

_LARGEST = 5_000
"""Lines of a chunk or of the place that it replaces."""
_DELETED = 30
_CLEAR = 6
_SHRUNK = 5
_HINT = (
    "Mark every part that you leave out by a `... existing code ...` comment, and show at least two "
    "unchanged lines that occur once above and below each change; or use replace_in_file."
)


class SketchEdit(Struct, frozen=True):
    """A text in which markers stand for what stays; `path` tells its language."""

    text: str
    path: str = ""


class _Region(Struct, frozen=True):
    """Lines `start` up to `end` of the file, that a chunk replaces."""

    chunk: Chunk
    start: int
    end: int


def plan_sketch(text: str, edit: SketchEdit) -> EditPlan | Refusal:
    """The sketch as changes of `text`. Every part of it must have one place, decided by unchanged lines
    or by names; what it says then replaces the lines there."""
    sketch = edit.text.replace("\r\n", "\n")
    align = Alignment(text, sketch, edit.path)
    if not text.strip():
        if any(align.marked) or not sketch.strip():
            return _undecided("the file is empty, so nothing can be left out")
        return EditPlan(text, (Change(0, len(split(text)), tuple(split(sketch))),), (), "sketch")
    if not align.chunks:
        return _undecided("the sketch has no lines")
    if align.is_hollow:
        return _undecided("two markers of the sketch have only blank lines between them")
    changes: list[Change] = []
    last = 0
    for chunk in align.chunks:
        found = _changes_of(align, chunk)
        if isinstance(found, Refusal):
            return found
        region, made = found
        if region is not None:
            if region.start < last:
                return _at(chunk, align, "stands in the file before what the sketch shows above it")
            last = region.end
        changes.extend(made)
    if not changes:
        return _undecided("the file already reads as the sketch shows")
    return EditPlan(text, tuple(changes), (), "sketch")


def _changes_of(align: Alignment, chunk: Chunk) -> tuple[_Region | None, list[Change]] | Refusal:
    lines = align.lines[chunk.start : chunk.end]
    if not any(character.isalnum() for line in lines for character in line):
        # Closing signs after a marker: they stay what they are.
        if (
            chunk.opens
            or not all(map(align.places, filter(None, lines)))
            or not _ends_file(align, chunk)
        ):
            return _at(chunk, align, "has no line by which its place could be known")
        return None, []
    starts, ends = tops(align, chunk), bottoms(align, chunk)
    if not starts or not ends:
        restated = _restated(align, chunk, starts, ends)
        if restated is not None:
            return restated, []
        added = _at_the_end(align, chunk)
        if added is not None:
            return _Region(chunk, added.start, added.end), [added]
        side = "begins" if not starts else "ends"
        return _at(chunk, align, f"doesn't show where in the file it {side}")
    regions = [_Region(chunk, start, end) for start in starts for end in ends]
    found = [_replacing(align, region) for region in regions]
    fitting = [one for one in found if not isinstance(one, Refusal)]
    whole = list(fitting)
    if len(fitting) == 1:
        # A place that would only need a small deletion may be the meant one as well.
        near = range(1, len(lines) + _SHRUNK)
        fitting += [
            (region, []) for region, one in zip(regions, found, strict=True)
            if isinstance(one, Refusal) and region.end - region.start in near
        ]  # fmt: skip
    if len(fitting) > 1:
        order = sorted(fitting, key=lambda one: _shared(align, one[0]), reverse=True)
        best, next_best = _shared(align, order[0][0]), _shared(align, order[1][0])
        if best < _CLEAR or 2 * next_best > best or order[0] not in whole:
            where = ", ".join(f"{region.start + 1}-{region.end}" for region, _ in fitting)
            return _at(chunk, align, f"fits several places of the file (lines {where})")
        fitting = order
    return found[0] if len(found) == 1 or not fitting else fitting[0]


def _shared(align: Alignment, region: _Region) -> int:
    """How many lines of the chunk are the region's."""
    from difflib import SequenceMatcher

    ours = align.lines[region.chunk.start : region.chunk.end]
    theirs = align.file[region.start : region.end]
    blocks = SequenceMatcher(None, theirs, ours, autojunk=False).get_matching_blocks()
    return sum(filled(ours[block.b : block.b + block.size]) for block in blocks)


def _ends_file(align: Alignment, chunk: Chunk) -> bool:
    if not chunk.closes:
        return True
    there = [line for line in align.file if line]
    shown = [line for line in align.lines[chunk.start : chunk.end] if line]
    return there[-len(shown) :] == shown


def _replacing(align: Alignment, region: _Region) -> tuple[_Region, list[Change]] | Refusal:
    chunk = region.chunk
    if region.end < region.start:
        return _at(chunk, align, "begins in the file after the place where it ends")
    if not proved(align, chunk, region.start, region.end):
        return _at(chunk, align, "shows less than two lines of the file above or below its change")
    if not spaced(align, chunk, region.start, region.end):
        return _at(chunk, align, "has blank lines beside a marker that the file doesn't have there")
    if max(region.end - region.start, chunk.end - chunk.start) > _LARGEST:
        return _at(chunk, align, "is too large")
    problem = _misplaced(align, region)
    return _difference(align, region) if problem is None else _at(chunk, align, problem)


def _difference(align: Alignment, region: _Region) -> tuple[_Region, list[Change]] | Refusal:
    """What makes the chunk of the region; refused where it would take away more than the chunk shows."""
    from difflib import SequenceMatcher

    chunk, base = region.chunk, region.start
    ours, theirs = align.lines[chunk.start : chunk.end], align.file[base : region.end]
    written = align.sketch.split("\n")
    changes: list[Change] = []
    operations = SequenceMatcher(None, theirs, ours, autojunk=False).get_opcodes()
    for kind, a, b, c, d in operations:
        if kind == "equal":
            continue
        problem = _unproved(align, region, theirs[a:b], ours[c:d], (a, b, c, d))
        if problem is not None:
            return _at(chunk, align, problem)
        new = tuple(written[chunk.start + c : chunk.start + d])
        changes.append(Change(base + a, base + b, new))
    if not changes and not (chunk.opens or chunk.closes or _named(align, chunk)):
        return _at(chunk, align, "reads as the file does, so it says no change")
    return region, changes


def _unproved(
    align: Alignment,
    region: _Region,
    old: Sequence[str],
    new: Sequence[str],
    span: tuple[int, int, int, int],
) -> str | None:
    """Why one difference can't be taken for a wanted change."""
    a, b, c, d = span
    if any(holds_marker(line) or is_marker(line) or is_bare(line) for line in new):
        return "has dots in a line with code, which may stand for something left out"
    folded = {fold(line) for line in old if line}
    if any(fold(line) in folded for line in new if line and line not in old):
        return "differs from the file only in quotes or dashes in some lines"
    removed, added = filled(old), filled(new)
    if not removed or (added and removed <= 2 * added + 2):
        return None
    known = {one.path for one in align.sketch_definitions}
    holder = _holder(align, region, region.start + a, region.start + b)
    if holder is not None:
        ours, theirs = holder
        shown = filled(align.lines[ours.start : ours.end])
        there = filled(align.file[theirs.start : theirs.end])
        if there - shown > _SHRUNK and 5 * shown < 2 * there:
            return "shows much less of a definition than the file has, without a marker"
        for one in align.file_definitions:
            inside = theirs.start <= one.start and one.end <= theirs.end
            if inside and one.path not in known:
                return f"leaves out {one.path[-1][1]} without a marker"
        return None
    before = _anchored(align, region, 0, c) if not region.chunk.opens or c else CONTEXT
    count = region.chunk.end - region.chunk.start
    after = _anchored(align, region, d, count) if not region.chunk.closes or d < count else CONTEXT
    low, high = region.start + a, region.start + b
    gone = [one.path for one in align.file_definitions if low <= one.start and one.end <= high]
    if sum(1 for path in gone if path not in known and path[:-1] not in gone) > 1:
        return "would delete several definitions without showing them"
    if removed - added > _DELETED:
        return f"would delete {removed} lines without showing them"
    if before < CONTEXT or after < CONTEXT:
        return "would delete lines, but has less than two unique lines above or below these"
    return None


def _anchored(align: Alignment, region: _Region, low: int, high: int) -> int:
    """How many of the chunk's lines from `low` to `high` are unique ones of the region."""
    start = region.chunk.start
    scopes = {align.scope(start), align.scope(region.chunk.end - 1)}
    found = 0
    for line in align.lines[start + low : start + high]:
        places = (align.anchors(scope).get(line, -1) for scope in scopes)
        found += any(region.start <= place < region.end for place in places)
    return found


def _holder(
    align: Alignment, region: _Region, start: int, end: int
) -> tuple[Definition, Definition] | None:
    """The definition that the chunk shows in whole and that in the file holds these lines."""
    for ours, theirs in reversed(align.partners.items()):
        shown = region.chunk.start <= ours.start and ours.end <= region.chunk.end
        if shown and theirs.start <= start and end <= theirs.end and not align.is_open(ours):
            return ours, theirs
    return None


def _misplaced(align: Alignment, region: _Region) -> str | None:
    """Why the definitions around and in a chunk speak against its place."""
    chunk = region.chunk
    for one in align.around(chunk.start):
        partner = align.partners.get(one)
        if partner is None:
            return f"is in {one.path[-1][1]}, which the file doesn't have just once"
        if region.start < partner.start or (one.end >= chunk.end and region.end > partner.end):
            return f"is in {one.path[-1][1]}, but fits lines outside of it"
    theirs: dict[tuple[tuple[str, str], ...], list[Definition]] = {}
    for one in align.file_definitions:
        theirs.setdefault(one.path, []).append(one)
    for one in align.sketch_definitions:
        others = theirs.get(one.path, ()) if chunk.start <= one.start < chunk.end else ()
        if others and all(
            other.end <= region.start or region.end <= other.start for other in others
        ):
            return f"defines {one.path[-1][1]}, which stands elsewhere in the file"
    return None


def _restated(
    align: Alignment, chunk: Chunk, starts: Sequence[int], ends: Sequence[int]
) -> _Region | None:
    """A chunk with one known edge that says just what the file says from there: the head of a
    definition, the first or last lines of the file."""
    if len(starts) + len(ends) != 1:
        return None
    count = chunk.end - chunk.start
    start = starts[0] if starts else ends[0] - count
    end = start + count
    if start < 0:
        return None
    if chunk.opens or chunk.closes:
        known = (not chunk.opens or not any(align.file[:start])) and (
            not chunk.closes or not any(align.file[end:])
        )
    else:
        known = _named(align, chunk)
    same = align.file[start:end] == align.lines[chunk.start : chunk.end]
    return _Region(chunk, start, end) if known and same else None


def _named(align: Alignment, chunk: Chunk) -> bool:
    """True where the chunk begins with the head of a definition that the file has."""
    return any(
        one.above == chunk.start and align.is_open(one) and align.is_trusted(one)
        for one in align.partners
    )


def _at_the_end(align: Alignment, chunk: Chunk) -> Change | None:
    """New definitions below the last marker: at the end of the file, or of the definition around."""
    if chunk.opens:
        return None
    around = [one for one in align.around(chunk.raw - 1) if one.end == chunk.end]
    holder = around[-1] if around else None
    scope = Scope(0, len(align.lines), 0, len(align.file))
    if holder is not None:
        partner = align.partners.get(holder)
        if partner is None:
            return None
        scope = Scope(holder.start, holder.end, partner.start, partner.end)
    elif not chunk.closes:
        return None
    end, at = chunk.end, scope.f_end
    if holder is not None and align.language != "python":
        # The closing sign of the definition stays the file's own.
        end, at = end - 1, at - 1
        if align.lines[end] != align.file[at]:
            return None
    if not _all_new(align, chunk.start, end, holder):
        return None
    anchors = align.anchors(align.whole)
    if any(len(line) >= 8 and line in anchors for line in align.lines[chunk.start : end]):
        return None
    return Change(at, at, tuple(align.sketch.split("\n")[chunk.raw : end]))


def _all_new(align: Alignment, start: int, end: int, holder: Definition | None) -> bool:
    """True where the lines are whole definitions whose names the place doesn't have yet."""
    path = holder.path if holder is not None else ()
    known = {one.path for one in align.file_definitions}
    covered = set[int]()
    for one in align.sketch_definitions:
        if one.path[:-1] == path and start <= one.above and one.end <= end:
            if one.path in known or align.is_open(one):
                return False
            covered.update(range(one.above, one.end))
    return bool(covered) and all(at in covered or not align.lines[at] for at in range(start, end))


def _at(chunk: Chunk, align: Alignment, what: str) -> Refusal:
    first = align.lines[chunk.start].strip()[:80]
    return _undecided(f"the part from line {chunk.start + 1} of the sketch on ({first!r}) {what}")


def _undecided(what: str) -> Refusal:
    message = f"{what[:1].upper()}{what[1:]}. Nothing was changed."
    return Refusal("undecided_sketch", message, _HINT)
