"""All blocks of an edit, planned on the original text: every one of them, or a refusal."""

from collections import Counter
from collections.abc import Iterable, Sequence

from croze.edit.blocks import DIVIDER, refusal
from croze.edit.decode import Reading, is_fence, readings
from croze.edit.doubts import code_of, doubt
from croze.edit.draft import Draft, Placed, ordered
from croze.edit.lines import TOO_LONG, Lines, bare
from croze.edit.match import BLANKS, COMMENTS, ELISION, EXACT, LADDER, SLIP, Match, matches
from croze.edit.nearest import closest, nearest
from croze.edit.slip import looks_misspelt, restates_slip
from croze.edit.splice import Spliced, Undecided, splice
from croze.edit.values import Block, BlockEdit, EditPlan, Refusal

_TELLING = 12
"""Characters that new lines must have for their presence to mean that they were already written."""
ALREADY = "already applied"

_ALIKE = 0.75
_NEAR = 5
_PLACES = 40


def plan_blocks(text: str, edit: BlockEdit) -> EditPlan | Refusal:
    """Where the blocks belong in `text`; each by the narrowest reading that fits, and only where it
    stands once. A block that isn't there may build on the lines of those before it."""
    lines = Lines(text)
    placed: dict[int, Placed] = {}
    late: list[tuple[Block, tuple[str, ...]]] = []
    for block in edit.blocks:
        found = _placed(block, lines, (EXACT,))
        if isinstance(found, Refusal):
            return found
        if found is not None:
            placed[block.number] = found
    for block in edit.blocks:
        if block.number in placed:
            continue
        found = None
        drafted = bool(late) or any(
            placed[number].changes for number in placed if number < block.number
        )
        for rungs in ((EXACT,), LADDER[1:]):
            if rungs != (EXACT,):
                found = _placed(block, lines, rungs)
            if found is None and drafted:
                draft = _drafted(lines, placed.values(), late)
                if isinstance(draft, Refusal):
                    return draft
                onto = _onto(draft, block, rungs)
                if isinstance(onto, Placed):
                    late.append((block, rungs))
                    break
                if onto is not None and rungs == (EXACT,):
                    return onto
            if found is not None:
                break
        else:
            found = (
                _placed(block, lines, (SLIP,)) or _already(block, lines) or _absent(block, lines)
            )
        if isinstance(found, Refusal):
            return found
        if found is not None:
            placed[block.number] = found
    return _planned(lines, placed, late)


def _planned(
    lines: Lines, placed: dict[int, Placed], late: Sequence[tuple[Block, tuple[str, ...]]]
) -> EditPlan | Refusal:
    changes = ordered(lines, placed.values())
    if isinstance(changes, Refusal):
        return changes
    for number, one in placed.items():
        if one.rung == ALREADY and (changes or late):
            return _perhaps_already(number, one)
    notes = [one.note for _, one in sorted(placed.items()) if one.note]
    rungs = {one.rung for one in placed.values()}
    if late:
        draft = _drafted(lines, placed.values(), late)
        if isinstance(draft, Refusal):
            return draft
        changes = draft.changes()
        rungs |= draft.rungs
        notes += draft.notes
    order = (*LADDER, SLIP)
    strategy = max((rung for rung in rungs if rung in order), key=order.index, default=EXACT)
    return EditPlan(lines.text, tuple(changes), tuple(notes), strategy)


def _drafted(
    lines: Lines, placed: Iterable[Placed], late: Sequence[tuple[Block, tuple[str, ...]]]
) -> Draft | Refusal:
    blocks = list(placed)
    changes = ordered(lines, blocks)
    if isinstance(changes, Refusal):
        return changes
    draft = Draft(lines, blocks, changes)
    for block, rungs in late:
        found = _onto(draft, block, rungs)
        if not isinstance(found, Placed):
            return found or refusal(
                "overlap", block.number, "builds on lines that other blocks change"
            )
        draft.take(found)
    return draft


def _onto(draft: Draft, block: Block, rungs: tuple[str, ...]) -> Placed | Refusal | None:
    """The block on a draft; not on lines that a later block wrote."""
    found = _placed(block, Lines(draft.text), rungs)
    return None if isinstance(found, Placed) and not draft.earlier(found) else found


def _placed(block: Block, lines: Lines, rungs: Sequence[str]) -> Placed | Refusal | None:
    """The block at the first rung that has a place for it; None where none has."""
    sides = [(readings(*split), split) for split in block.splits]
    for rung in rungs:
        fitting: list[list[tuple[Reading, list[Match]]]] = []
        for read, split in sides:
            if rung != EXACT and any(len(line) > TOO_LONG for line in split[0]):
                continue
            found = [(one, there) for one in read if (there := _near(one, block, rung, lines))]
            if found:
                fitting.append(found[:1] if found[0][0] is read[0] else found)
        unique = [found for found in fitting if all(len(there) == 1 for _, there in found)]
        fitting = unique or fitting
        if len(fitting) > 1:
            fitting = [found for found in fitting if _balanced(found[0][0])] or fitting
        if len(fitting) > 1:
            message = "can be read in several ways, because its content holds ======= lines"
            hint = "Leave such lines out of SEARCH and REPLACE, or write the whole file."
            return refusal("ambiguous", block.number, message, text=hint)
        for found in fitting:
            return _chosen(block, lines, rung, found)
    return None


def _balanced(reading: Reading) -> bool:
    """True where both sides have as many lines like the divider: it is restated content."""
    ours, theirs = (
        sum(1 for line in side if DIVIDER.fullmatch(line))
        for side in (reading.search, reading.replace)
    )
    return ours == theirs


def _near(reading: Reading, block: Block, rung: str, lines: Lines) -> list[Match]:
    """The places of a reading at a rung: all, or the one that a line hint decides for."""
    found = [match for match in matches(rung, reading, lines) if not _fenced(reading, match, lines)]
    hint = block.line or reading.line
    if len(found) < 2 or not hint or rung == ELISION:
        return found
    ranked = sorted((abs(match.start + 1 - hint), at) for at, match in enumerate(found))
    (first, at), (second, _) = ranked[:2]
    return [found[at]] if first <= _NEAR and second >= 3 * first + 3 else found


def _fenced(reading: Reading, match: Match, lines: Lines) -> bool:
    """True where code fences were taken off a text that stands between fences in the file."""
    beside = (*lines.all[match.start - 1 : match.start], *lines.all[match.end : match.end + 1])
    return reading.name.startswith("code fences") and any(map(is_fence, beside))


def _chosen(
    block: Block, lines: Lines, rung: str, found: Sequence[tuple[Reading, list[Match]]]
) -> Placed | Refusal:
    """The one change that all the places found amount to."""
    every = [(reading, match) for reading, there in found for match in there]
    if len(every) > 1 and (rung != ELISION or len(every) > _PLACES) and len(found[0][1]) > 1:
        search = found[0][0].search
        return _several(lines, block.number, search, [match.start for match in found[0][1]])
    done: list[Placed | Refusal] = []
    for reading, match in every:
        made = _made(block, lines, rung, reading, match)
        if isinstance(made, Refusal):
            return made
        if not any(made.changes == other.changes for other in done if isinstance(other, Placed)):
            done.append(made)
    if len(done) > 1:
        if rung == ELISION:
            spots = sorted(
                {match.start for _, match in every} | {match.end - 1 for _, match in every}
            )
            return _several(lines, block.number, found[0][0].search[-1:], spots)
        return refusal("ambiguous", block.number, "can be unescaped in several ways")
    return done[0]


def _made(
    block: Block, lines: Lines, rung: str, reading: Reading, match: Match
) -> Placed | Refusal:
    try:
        spliced = splice(match, lines)
        if match.slip >= 0:
            _carried_slip(reading, match, spliced, lines)
        note = _needless(block.number, lines, reading, match, spliced)
        if not note:
            doubt(reading, match, spliced, lines)
    except Undecided as reason:
        hint = _shown(lines, match.start, match.end)
        return refusal(
            code_of(reason),
            block.number,
            f"{reason} (SEARCH fits lines {match.start + 1}-{match.end} by {rung})",
            text=f"The file there:\n{hint}",
            lines=(match.start + 1, match.end),
        )
    name = f"{rung}, {reading.name}" if reading.name and rung == EXACT else rung
    if note:
        return Placed(block.number, (), match.start, match.end, rung, note)
    return Placed(
        block.number, spliced.changes, match.start, match.end, name if name in LADDER else rung
    )


def _carried_slip(reading: Reading, match: Match, spliced: Spliced, lines: Lines) -> None:
    wrote = reading.search[match.slip]
    stands = lines.all[match.parts[0].pairs[match.slip]]
    if any(restates_slip(wrote, stands, line) for _, new, _ in spliced.hunks for line in new):
        raise Undecided("a line of its SEARCH differs from the file's, and so does a new one")


def _needless(number: int, lines: Lines, reading: Reading, match: Match, spliced: Spliced) -> str:
    """Why the block changes nothing; '' where it does. Raises Undecided where it may."""
    if reading.search == reading.replace and match.rung not in (BLANKS, COMMENTS, SLIP):
        return f"Block {number} changes nothing: SEARCH and REPLACE are the same."
    if not spliced.changes:
        if match.rung in (BLANKS, COMMENTS, SLIP):
            raise Undecided("its difference is what the file already has")
        return f"Block {number} changes nothing: the file reads so at line {match.start + 1}."
    replace, search = reading.replace, reading.search
    new = [line for change in spliced.changes for line in change.lines]
    if not replace or not new:
        return ""
    places = lines.exact(replace)
    if match.level == 0 and match.rung == EXACT:
        if len(replace) <= len(search):
            return ""
        offsets = range(len(replace) - len(search) + 1)
        stands = any(
            match.start - offset in places and replace[offset : offset + len(search)] == search
            for offset in offsets
        )
    else:
        stands = any(at < match.end and at + len(replace) > match.start for at in places)
    if not stands:
        return ""
    if _weight(new) < _TELLING:
        raise Undecided(
            "the file may already read so; restate the lines below and above the change"
        )
    return f"Block {number} was already applied at line {match.start + 1}."


def _weight(lines: Iterable[str]) -> int:
    return sum(1 for line in lines for char in line if char.isalnum())


def _already(block: Block, lines: Lines) -> Placed | None:
    """The block as one that was applied before: its REPLACE stands once, and SEARCH is nowhere nearer."""
    for split in block.splits:
        for reading in readings(*split):
            search, replace = reading.search, reading.replace
            if not any(line.strip() for line in search) or not replace:
                continue
            sought = {bare(line) for line in search}
            kept_bare = {bare(line) for line in replace}
            fresh = [line for line in replace if bare(line) not in sought]
            gone = sought - kept_bare - {""}
            twice = Counter(map(bare, search)) - Counter(map(bare, replace))
            if fresh and _weight(fresh) < _TELLING:
                continue
            if not fresh and (not gone or len(kept_bare) < 2 or _weight(kept_bare) < 2 * _TELLING):
                continue
            if any(looks_misspelt(one, bare(line)) for one in gone for line in fresh):
                continue
            starts = lines.exact(replace) or lines.loose([bare(line) for line in replace])
            if len(starts) != 1:
                continue
            start, end = starts[0], starts[0] + len(replace)
            around = lines.bare[max(0, start - len(search)) : end + len(search)]
            near = closest(lines, search)
            if near is not None and not start - len(search) < near < end:
                continue
            beside = (*lines.bare[max(0, start - 1) : start], *lines.bare[end : end + 1])
            if any(twice[line] for line in beside if line):
                continue
            if not any(_alike(one, line) for one in gone for line in set(around) - kept_bare):
                note = f"Block {block.number} was already applied at line {start + 1}."
                return Placed(block.number, (), start, end, ALREADY, note)
    return None


def _perhaps_already(number: int, one: Placed) -> Refusal:
    """A block alone whose REPLACE stands in the file is a change made twice. Among blocks that change
    something it may as well be meant for other lines, so the text doesn't decide."""
    return refusal(
        "no_match",
        number,
        "has a SEARCH that is not in the file",
        text=f"Its REPLACE stands at line {one.start + 1} already. Leave the block out if that is this "
        "change; else give the exact lines.",
        lines=(one.start + 1,),
    )


def _alike(first: str, second: str) -> bool:
    from difflib import SequenceMatcher

    longest = max(len(first), len(second))
    return first == second or (
        min(len(first), len(second)) > longest // 2
        and SequenceMatcher(None, first, second, autojunk=False).ratio() >= _ALIKE
    )


def _absent(block: Block, lines: Lines) -> Refusal:
    search = block.splits[0][0]
    if not any(line.strip() for line in search):
        hint = "Put lines of the file into SEARCH; a whole file is written with write_to_file."
        return refusal("empty_search", block.number, "has an empty SEARCH", text=hint)
    places, shown = nearest(lines, search)
    if any(len(line) > TOO_LONG for line in search):
        message = (
            f"has a line above {TOO_LONG:,} characters in SEARCH that isn't exactly in the file"
        )
        return refusal("too_long", block.number, message, text=shown, lines=places)
    message = "SEARCH was not found in the file"
    return refusal("no_match", block.number, message, text=shown, lines=places)


def _several(lines: Lines, number: int, search: Sequence[str], starts: Sequence[int]) -> Refusal:
    shown = [_shown(lines, start, start + min(len(search), 3), around=2) for start in starts[:5]]
    if len(starts) > 5:
        shown.append(f"… and {len(starts) - 5} more")
    where = ", ".join(str(start + 1) for start in starts[:5])
    return refusal(
        "ambiguous",
        number,
        f"SEARCH stands {len(starts)} times in the file (lines {where}{' …' if len(starts) > 5 else ''})",
        text="Add lines above or below until it is unique:\n\n" + "\n\n".join(shown),
        lines=tuple(start + 1 for start in starts),
    )


def _shown(lines: Lines, start: int, end: int, *, around: int = 0) -> str:
    low, high = max(0, start - around), min(len(lines.all), end + around, start + 40)
    return "\n".join(f"{at + 1}\t{lines.all[at][:200]}" for at in range(low, high))
