"""The lines that a block changes: those that differ between its two sides, and no others."""

import itertools
from collections.abc import Sequence

from msgspec import Struct

from croze.edit.diff import opcodes
from croze.edit.lines import TYPOGRAPHIC, Lines, fold, indent, typographic
from croze.edit.match import Match, Part, Way, ways
from croze.edit.values import Change

_ALIKE = 0.6
_TELLING = 4
"""Letters and digits of a line by which it can't be mistaken for another."""


class Undecided(Exception):
    """The text doesn't tell what is meant; the message says why."""


class Spliced(Struct, frozen=True):
    """`changes` of the file's lines. `hunks` are the differences as the model wrote them: lines taken
    away, lines put in their place, and the line after those."""

    changes: tuple[Change, ...]
    hunks: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...]


def splice(match: Match, lines: Lines) -> Spliced:
    """What `match` changes. Restated lines keep the file's bytes; new ones get its indentation, and
    lose blanks and typography that the model added elsewhere. Raises Undecided."""
    found = [_spliced(match, way, lines) for way in ways(match, lines)]
    if any(one.changes != found[0].changes for one in found):
        raise Undecided("the indentation of its new lines can be read in several ways")
    return found[0]


def _spliced(match: Match, way: Way, lines: Lines) -> Spliced:
    changes: list[Change] = []
    hunks = []
    dress = _Dress(match, way, lines)
    for number, part in enumerate(match.parts):
        own = dress if number == 0 else _Dress(match, Way(way.indents), lines)
        for i, j, m, n, low, high in _hunks(match, part, own, lines):
            new = tuple(
                own.line(part.replace[at], at, _counterpart(part, i, j, m, n, at), lines)
                for at in range(m, n)
            )
            after = part.replace[n] if n < len(part.replace) else ""
            hunks.append((part.search[i:j], part.replace[m:n], after))
            if tuple(lines.all[low:high]) != new:
                changes.append(_trimmed(low, lines.all[low:high], new))
    return Spliced(tuple(changes), tuple(hunks))


def _trimmed(start: int, old: Sequence[str], new: Sequence[str]) -> Change:
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return Change(start + head, start + len(old) - tail, tuple(new[head : len(new) - tail]))


def _counterpart(part: Part, i: int, j: int, m: int, n: int, at: int) -> tuple[str, int] | None:
    """The search line that a new line stands for, and its place, where as many go as come."""
    if j - i != n - m:
        return None
    others = range(1, j - i)
    if at == 0 and any(indent(part.search[i + k]) != indent(part.replace[m + k]) for k in others):
        return None
    own = i + at - m
    return (part.search[own], part.pairs[own]) if part.pairs[own] >= 0 else None


_Hunk = tuple[int, int, int, int, int, int]


def _hunks(match: Match, part: Part, dress: "_Dress", lines: Lines) -> list[_Hunk]:
    """The differences between both sides, (search from, to, replace from, to, file from, to)."""
    ours = dress.compared(part.search, match.level)
    theirs = dress.compared(part.replace, match.level)
    found = [(i, j, m, n) for kind, i, j, m, n in opcodes(ours, theirs) if kind != "equal"]
    pairs = part.pairs
    first = pairs[0] if pairs else 0
    if all(at == first + offset for offset, at in enumerate(pairs)):
        if match.level:
            _settled(found, ours, theirs, part, dress, lines)
        return [(i, j, m, n, first + i, first + j) for i, j, m, n in found]
    near, far = _seams(part.search, pairs, 1), _seams(part.search, pairs, _TELLING)
    touched = [
        (hunk, seam)
        for hunk in found
        for seam in (near if hunk[1] - hunk[0] == hunk[3] - hunk[2] else far)
        if _touches(reach(hunk, ours, theirs), seam)
    ]
    if all(_harmless(hunk, seam, part, lines) for hunk, seam in touched):
        return [(i, j, m, n, *_between(pairs, i, j)) for i, j, m, n in found]
    return _restated(part, (near, far), dress, lines)


def _touches(span: tuple[int, int], seam: tuple[int, int]) -> bool:
    return span[0] <= seam[1] and span[1] >= seam[0] + 1


def reach(
    hunk: tuple[int, int, int, int], ours: Sequence[str], theirs: Sequence[str]
) -> tuple[int, int]:
    """The lines of `ours` that a difference may be said to lie between: one that only adds or only
    takes away lines can slide over lines that are the same as its own."""
    i, j, m, n = hunk
    if i < j and m < n:
        return i, j
    run, low, high = (theirs, m, n) if i == j else (ours, i, j)
    up = down = 0
    while i > up and high > up and ours[i - up - 1] == run[high - up - 1]:
        up += 1
    while j + down < len(ours) and low + down < len(run) and ours[j + down] == run[low + down]:
        down += 1
    return i - up, j + down


def _settled(
    found: Sequence[tuple[int, int, int, int]],
    ours: Sequence[str],
    theirs: Sequence[str],
    part: Part,
    dress: "_Dress",
    lines: Lines,
) -> None:
    """Raises Undecided where lines that come or go may be said to be others than those, which the file
    writes otherwise."""
    for hunk in found:
        i, j, _, _ = hunk
        low, high = reach(hunk, ours, theirs)
        for at in range(low, high) if (low, high) != (i, j) else ():
            written = dress.line(part.search[at], at, None, lines)
            if written.strip() and lines.all[part.pairs[at]] != written:
                raise Undecided(
                    "its new lines are like those next to them, which have other blanks"
                )


def _seams(search: Sequence[str], pairs: Sequence[int], least: int) -> list[tuple[int, int]]:
    """Neighbouring lines of SEARCH (offsets) that aren't blank (with `least` above 1: that have as many
    letters and digits), between which either side has lines of its own."""
    solid = [
        at
        for at, line in enumerate(search)
        if pairs[at] >= 0 and (line.strip() if least == 1 else sum(map(str.isalnum, line)) >= least)
    ]
    return [
        (low, high)
        for low, high in itertools.pairwise([-1, *solid, len(pairs)])
        if any(at < 0 for at in pairs[low + 1 : high])
        or (low >= 0 and high < len(pairs) and pairs[high] - pairs[low] != high - low)
        or ((low < 0 or high == len(pairs)) and _gaps(pairs[max(low, 0) : high + 1]))
    ]


def _gaps(pairs: Sequence[int]) -> bool:
    return any(b != a + 1 for a, b in itertools.pairwise(pairs))


def _harmless(
    hunk: tuple[int, int, int, int], seam: tuple[int, int], part: Part, lines: Lines
) -> bool:
    """True where what only one side has between two lines doesn't matter for a difference there: blank
    lines of SEARCH that go as a whole with nothing blank instead, or a deletion from before to after."""
    (i, j, m, n), (low, high) = hunk, seam
    inside = low >= 0 and high < len(part.pairs)
    extra = lines.all[part.pairs[low] + 1 : part.pairs[high]] if inside else []
    if m == n and inside and i <= low and j > high:
        return not any(line.strip() for line in extra)
    around = part.replace[max(0, m - 1) : n + 1]
    if extra or not inside or not all(line.strip() for line in around):
        return False
    return i <= low + 1 and j >= high


def _between(pairs: Sequence[int], i: int, j: int) -> tuple[int, int]:
    """The file's lines of a run of search lines; where it has none of its own, the point between."""
    own = [at for at in pairs[i:j] if at >= 0]
    if own:
        return own[0], own[-1] + 1
    before = [at for at in pairs[:i] if at >= 0]
    after = [at for at in pairs[j:] if at >= 0]
    point = before[-1] + 1 if before else after[0]
    return point, point


def _restated(
    part: Part,
    seams: tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]]],
    dress: "_Dress",
    lines: Lines,
) -> list[_Hunk]:
    """The differences between the file's own lines and REPLACE, for a REPLACE that has what SEARCH left
    out or hasn't what only SEARCH has. There must be none where the two sides differ."""
    offsets = {place: at for at, place in enumerate(part.pairs) if place >= 0}
    start, end = min(offsets), max(offsets) + 1
    there = [
        fold(dress.line(part.search[offsets[at]], offsets[at], None, lines)).rstrip(" \t")
        if at in offsets
        else fold(lines.all[at]).rstrip(" \t")
        for at in range(start, end)
    ]
    new = [
        fold(dress.line(line, at, None, lines)).rstrip(" \t")
        for at, line in enumerate(part.replace)
    ]
    near, far = (
        [
            (
                part.pairs[low] + 1 if low >= 0 else start,
                part.pairs[high] if high < len(part.pairs) else end,
            )
            for low, high in some
        ]
        for some in seams
    )
    more = len(offsets) == len(part.pairs)
    hunks: list[_Hunk] = []
    for kind, i, j, m, n in opcodes(there, new):
        if kind == "equal":
            continue
        low, high = start + i, start + j
        free = more and j - i == n - m and all(line.strip() for line in part.replace[m:n])
        for first, last in near if j - i == n - m else far:
            inside = low < last and high > first
            if inside or (not free and low <= last and high >= first):
                raise Undecided(
                    "lines that only the file or only its SEARCH has stand next to a change"
                )
        if not more and not all(line.strip() for line in part.replace[m:n]):
            raise Undecided("blank lines that only its SEARCH has may be meant")
        first = offsets.get(low, 0)
        hunks.append((first, first + j - i, m, n, low, high))
    return hunks


class _Dress:
    """How the file writes what the model wrote: learned from the lines that match."""

    def __init__(self, match: Match, way: Way, lines: Lines) -> None:
        self.way = way
        self.level = match.level
        self.added: set[str] = set()
        self.kept: set[str] = set()
        self.odd: set[str] = set()
        self.plain: set[str] = set()
        self.lead = match.parts[0].search[0] if match.parts[0].search else ""
        self.others = match.parts[0].search[1:]
        if not match.level:
            return
        for part in match.parts:
            for wrote, at in zip(part.search, part.pairs, strict=True):
                if at >= 0:
                    self._learn(wrote, lines.all[at])

    def _learn(self, wrote: str, stands: str) -> None:
        mine, own = _tail(wrote), _tail(stands)
        if mine and wrote.strip():
            (self.added if not own else self.kept).add(mine)
        here, there = typographic(wrote), typographic(stands)
        self.odd |= here - there
        if fold(wrote).strip() == fold(stands).strip():
            self.plain |= {TYPOGRAPHIC[char] for char in there - here}

    def compared(self, written: Sequence[str], level: int) -> list[str]:
        """Lines as the two sides of a block are compared with each other."""
        if not level:
            return list(written)
        trimmed = [line.rstrip(" \t") for line in written]
        first = self.way.first
        if first is not None and trimmed and trimmed[0] and not indent(trimmed[0]):
            same = {indent(line) for line in self.others if line.strip() == trimmed[0]}
            vague = self.lead.strip() == trimmed[0] or sum(map(str.isalnum, trimmed[0])) < _TELLING
            if same and vague and same != {first}:
                raise Undecided("the indentation of its first line is lost")
            trimmed[0] = (same.pop() if len(same) == 1 else first) + trimmed[0]
        return trimmed if level < 2 else [fold(line) for line in trimmed]

    def line(self, written: str, at: int, stands_for: tuple[str, int] | None, lines: Lines) -> str:
        """A line of the model's as the file would have it. `at` is its offset in its side."""
        if not self.level or not written.strip():
            return "" if self.level and not written.strip() else written
        blanks = indent(written)
        mapped = self.way.indents.map(blanks)
        if at == 0 and self.way.first is not None and not blanks:
            mapped = self._first(written, stands_for)
        if mapped is None:
            raise Undecided("the indentation of its new lines has no counterpart in the file")
        body = written[len(blanks) :]
        tail = _tail(body)
        if tail and self.added:
            if tail not in self.added or tail in self.kept:
                raise Undecided("blanks at the end of its lines differ from the file's")
            body = body[: -len(tail)]
        return mapped + self._plainly(body, stands_for, lines)

    def _first(self, written: str, stands_for: tuple[str, int] | None) -> str | None:
        """The indentation of a first line that lost it like SEARCH's first line: only where it is that
        line or one made from it."""
        same = {indent(line) for line in self.others if line.strip() == written.strip()}
        if len(same) == 1 and sum(map(str.isalnum, written)) >= _TELLING:
            return same.pop()
        if stands_for is None or not _alike(stands_for[0].strip(), written.strip()):
            raise Undecided("the indentation of its first line is lost")
        return self.way.first

    def _plainly(self, body: str, stands_for: tuple[str, int] | None, lines: Lines) -> str:
        odd = typographic(body)
        if self.odd and odd:
            if any(char in lines.text for char in odd):
                raise Undecided("its quotes or dashes differ from the file's, which has both kinds")
            body = fold(body)
        if self.plain and any(char in body for char in self.plain):
            if stands_for is None:
                raise Undecided("its plain quotes or dashes stand for typographic ones of the file")
            return self._carried(
                body, stands_for[0].strip(" \t"), lines.all[stands_for[1]].strip(" \t")
            )
        return body

    def _carried(self, body: str, wrote: str, stands: str) -> str:
        """`stands`, changed as `wrote` was changed to `body`."""
        trimmed = body.rstrip(" \t")
        if len(wrote) != len(stands):
            raise Undecided("its plain quotes or dashes stand for typographic ones of the file")
        from difflib import SequenceMatcher

        pieces = []
        for kind, i, j, m, n in SequenceMatcher(None, wrote, trimmed, autojunk=False).get_opcodes():
            if kind != "equal" and any(char in self.plain for char in trimmed[m:n]):
                raise Undecided("its plain quotes or dashes stand for typographic ones of the file")
            pieces.append(stands[i:j] if kind == "equal" else trimmed[m:n])
        return "".join(pieces) + body[len(trimmed) :]


def _alike(first: str, second: str) -> bool:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, first, second, autojunk=False).ratio() >= _ALIKE


def _tail(line: str) -> str:
    return line[len(line.rstrip(" \t")) :]
