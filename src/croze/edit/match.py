"""Where a block's SEARCH stands in a text: a ladder of readings, each as narrow as it can be."""

import itertools
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from croze.edit.decode import Reading
from croze.edit.indents import SAME, Indents, learn
from croze.edit.lines import Lines, bare, fold, indent, is_comment
from croze.edit.slip import slips

EXACT, TRAILING, TYPOGRAPHY, INDENTATION = "exact", "trailing blanks", "typography", "indentation"
ELISION, BLANKS, COMMENTS, SLIP = "elision", "blank lines", "comment lines", "one slip"
LADDER = (EXACT, TRAILING, TYPOGRAPHY, INDENTATION, ELISION, BLANKS, COMMENTS)
MARKER = re.compile(
    r"[ \t]*(?:\.\.\.|…)[ \t]*"
    r"|[ \t]*(?:#|//|/\*|<!--|--|;|%|\{/\*)[ \t]*(?:\.\.\.|…)[ \t]*[\w ,'()]*(?:\.\.\.|…)?[ \t]*(?:\*/\}?|-->)?[ \t]*"
)
_LEVELS = {EXACT: 0, TRAILING: 1, TYPOGRAPHY: 2, INDENTATION: 3}
_PLACEMENTS = 40
_COMMENT_LINES = 3
_LONG = 20
_KNOWN = 4


class Part(Struct, frozen=True):
    """Lines of a SEARCH and of its REPLACE, and the file's line (0-based) of each of the former; -1 for
    a blank line that the file doesn't have."""

    search: tuple[str, ...]
    replace: tuple[str, ...]
    pairs: tuple[int, ...]


class Match(Struct, frozen=True):
    """A place of a block. `level` counts what may differ: 0 nothing, 1 blanks at the end, 2 quotes and
    dashes, 3 the indentation. `slip` is the offset of a misspelt line, else -1."""

    rung: str
    level: int
    parts: tuple[Part, ...]
    slip: int = -1

    @property
    def start(self) -> int:
        return min((at for part in self.parts for at in part.pairs if at >= 0), default=0)

    @property
    def end(self) -> int:
        return max((at for part in self.parts for at in part.pairs), default=-1) + 1


class Way(Struct, frozen=True):
    """How to indent a model's lines as the file's are: by a mapping, and `first` instead for the first
    line where that alone lost its indentation."""

    indents: Indents
    first: str | None = None


def matches(rung: str, reading: Reading, lines: Lines) -> list[Match]:
    """The places of a block at one rung of the ladder."""
    search, replace = reading.search, reading.replace
    if rung == EXACT:
        return [_plain(rung, 0, reading, at) for at in lines.exact(search)]
    if not any(line.strip() for line in search):
        return []
    if rung in _LEVELS:
        level = _LEVELS[rung]
        places = lines.loose([bare(line) for line in search])
        found = [
            _plain(rung, level, reading, at)
            for at in places
            if _level(search, lines.all[at : at + len(search)]) == level
        ]
        return [
            match
            for match in found
            if (how := ways(match, lines)) and (level < 3 or _telling(match, how, lines))
        ]
    if rung == ELISION:
        return [match for match in _elided(search, replace, lines) if ways(match, lines)]
    if rung == SLIP:
        wanted = [bare(line) for line in search]
        slipped = (_plain(rung, 3, reading, at, slip=offset) for at, offset in slips(wanted, lines))
        return [match for match in slipped if ways(match, lines)]
    if sum(1 for line in search for char in line if char.isalnum()) < _LONG:
        return []
    sparse = (
        Match(rung, 3, (Part(search, replace, pairs),))
        for pairs in _sparse(search, lines, comments=rung == COMMENTS)
        if any(after != before + 1 for before, after in itertools.pairwise(pairs))
    )
    same = (Way(SAME),)
    return [
        match
        for match in sparse
        if (how := ways(match, lines)) and (how == same or _telling(match, how, lines))
    ]


def ways(match: Match, lines: Lines) -> tuple[Way, ...]:
    """The mappings of indentation that explain the matched lines."""
    if match.level < 3:
        return (Way(SAME),)
    pairs = [
        (indent(line), indent(lines.all[at]))
        for part in match.parts
        for line, at in zip(part.search, part.pairs, strict=True)
        if at >= 0 and line.strip()
    ]
    found = [Way(mapping) for mapping in learn(pairs)]
    (ours, theirs), *rest = pairs
    first = next(line for part in match.parts for line in part.search if line.strip())
    known = sum(map(str.isalnum, first)) >= _KNOWN
    if theirs and not ours and known and all(a == b for a, b in rest):
        found = [way for way in found if not way.indents.table]
        found.append(Way(SAME, theirs))
    return tuple(found)


def _telling(match: Match, how: Sequence[Way], lines: Lines) -> bool:
    """True where lines say enough to be looked for in another indentation. Lines that neither here nor
    there begin at the margin, and aren't shown by tabs, must say more: they may be of another depth."""
    (part,) = match.parts
    solid = [(line, at) for line, at in zip(part.search, part.pairs, strict=True) if line.strip()]
    weight = sum(1 for line, _ in solid for char in line if char.isalnum())
    margin = any(not indent(line) or not indent(lines.all[at]) for line, at in solid)
    if margin or all(way.indents.tab for way in how):
        return weight >= _LONG
    return len(solid) > 1 and weight >= 2 * _LONG


def _plain(rung: str, level: int, reading: Reading, start: int, *, slip: int = -1) -> Match:
    pairs = tuple(range(start, start + len(reading.search)))
    return Match(rung, level, (Part(reading.search, reading.replace, pairs),), slip)


def _level(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """What differs between lines that are the same when bare."""
    trimmed = [(a.rstrip(" \t"), b.rstrip(" \t")) for a, b in zip(ours, theirs, strict=True)]
    if all(a == b for a, b in trimmed):
        return 1 if tuple(ours) != tuple(theirs) else 0
    return 2 if all(fold(a) == fold(b) for a, b in trimmed) else 3


def _elided(search: Sequence[str], replace: Sequence[str], lines: Lines) -> Iterator[Match]:
    """Placements of the runs of lines between markers, as many of them on either side."""
    ours, theirs = _runs(search), _runs(replace)
    if len(ours) < 2 or len(ours) != len(theirs):
        return
    hits = [lines.loose([bare(line) for line in run]) if run else [] for run in ours]
    if not all(places for run, places in zip(ours, hits, strict=True) if run):
        return
    if not any(line.strip() for line in (*ours[0], *ours[-1])):
        return
    for starts in _ascending(ours, hits, 0, 0):
        parts = [
            Part(run, other, tuple(range(at, at + len(run))))
            for run, other, at in zip(ours, theirs, starts, strict=True)
        ]
        yield Match(ELISION, 3, tuple(parts))


def _ascending(
    runs: Sequence[Sequence[str]], hits: Sequence[Sequence[int]], at: int, floor: int
) -> Iterator[tuple[int, ...]]:
    if at == len(runs):
        yield ()
        return
    places = [place for place in hits[at] if place >= floor] if runs[at] else [floor]
    for place in places:
        for rest in _ascending(runs, hits, at + 1, place + len(runs[at])):
            yield (place, *rest)


def _runs(lines: Sequence[str]) -> list[tuple[str, ...]]:
    runs: list[list[str]] = [[]]
    for line in lines:
        if MARKER.fullmatch(line):
            runs.append([])
        else:
            runs[-1].append(line)
    return [tuple(run) for run in runs]


def _sparse(search: Sequence[str], lines: Lines, *, comments: bool) -> Iterator[tuple[int, ...]]:
    """Placements of lines among which blank lines, and with `comments` the file's comment lines, may
    be more or fewer than in the file."""
    wanted = [bare(line) for line in search]

    def counts(line: str) -> bool:
        return bool(line) and not (comments and is_comment(line))

    solid = [at for at, line in enumerate(wanted) if counts(line)]
    for places in lines.sparse([wanted[at] for at in solid], comments=comments):
        pairs = dict(zip(solid, places, strict=True))
        ends = [(-1, places[0] - 1 - 2 * solid[0]), *pairs.items()]
        ends.append((len(wanted), places[-1] + 1 + 2 * (len(wanted) - solid[-1])))
        fits = all(
            _between(wanted, lines.bare, low, high, pairs) for low, high in itertools.pairwise(ends)
        )
        placed = tuple(pairs.get(at, -1) for at in range(len(wanted)))
        inside = set(range(places[0], places[-1] + 1)) - set(placed)
        if fits and sum(1 for at in inside if lines.bare[at]) <= _COMMENT_LINES:
            yield placed


def _between(
    wanted: Sequence[str],
    there: Sequence[str],
    low: tuple[int, int],
    high: tuple[int, int],
    pairs: dict[int, int],
) -> bool:
    """Pair the lines between two pairs, in order: outside of the first and last pair next to it, else
    from above. False where a line that isn't blank has no counterpart."""
    ours = list(range(low[0] + 1, high[0]))
    theirs = [at for at in range(low[1] + 1, high[1]) if 0 <= at < len(there)]
    if low[0] < 0:
        ours.reverse()
        theirs.reverse()
    edge = low[0] < 0 or high[0] == len(wanted)
    at = 0
    for mine in ours:
        step = next((n for n in range(at, len(theirs)) if there[theirs[n]] == wanted[mine]), None)
        if step is None or (edge and not wanted[mine] and step != at):
            if wanted[mine]:
                return False
            continue
        pairs[mine] = theirs[step]
        at = step + 1
    return True
