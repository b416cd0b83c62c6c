"""Whether two lines differ by nothing but a slip of the pen."""

import re

from croze.edit.lines import Lines

_ALIKE = 0.9
_SLIP = 2
_WORD = re.compile(r"[^\W_]+|_+")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_]+")
_SOFT = re.compile(r"[\s,;:()\[\]{}\"'`]*")


def is_slip(wrote: str, stands: str, lines: Lines) -> bool:
    """True where `wrote` (bare) is the line `stands` (bare) with a slip of at most two characters: in
    the letters of one word that thereby becomes no other known one, or in brackets, blanks and commas.
    No digit and no operator may differ."""
    distance = _distance(wrote, stands)
    longest = max(len(wrote), len(stands))
    if not 0 < distance <= _SLIP or distance > (1 - _ALIKE) * longest:
        return False
    low, high = _window(wrote, stands)
    ours, theirs = wrote[low : len(wrote) - high], stands[low : len(stands) - high]
    if any(char.isdigit() for char in ours + theirs):
        return False
    if _SOFT.fullmatch(ours) and _SOFT.fullmatch(theirs):
        return _words(wrote) == _words(stands)
    if not all(char.isalpha() for char in ours + theirs):
        return False
    return _misspelt(wrote, stands, low, high, lines)


def _misspelt(wrote: str, stands: str, low: int, high: int, lines: Lines) -> bool:
    """True where the words round the difference are one word, misspelt."""
    ours, theirs = _around(wrote, low, high), _around(stands, low, high)
    if not ours or not theirs or ours.casefold() == theirs.casefold() or ours in lines.words:
        return False
    mine, other = _PART.findall(ours), _PART.findall(theirs)
    if len(mine) != len(other):
        mine, other = [ours], [theirs]
    differing = [(a.lower(), b.lower()) for a, b in zip(mine, other, strict=True) if a != b]
    if len(differing) != 1:
        return False
    part, right = differing[0]
    if min(len(part), len(right)) < 4 or part.rstrip("s") == right.rstrip("s"):
        return False
    if len(part) == len(right) < 5 and sorted(part) != sorted(right):
        return False
    from croze.edit.words import COMMON

    return part not in COMMON and not _is_part(part, lines)


def _is_part(part: str, lines: Lines) -> bool:
    return any(
        part in (found.lower() for found in _PART.findall(word))
        for word in lines.words
        if part in word.lower()
    )


def _around(line: str, low: int, high: int) -> str:
    """The identifier that holds the characters between `low` and `high` from the end."""
    start, end = low, len(line) - high
    while start > 0 and (line[start - 1].isalnum() or line[start - 1] == "_"):
        start -= 1
    while end < len(line) and (line[end].isalnum() or line[end] == "_"):
        end += 1
    return line[start:end]


def _words(line: str) -> list[str]:
    return _WORD.findall(line)


def _window(first: str, second: str) -> tuple[int, int]:
    """How many characters are the same at the start and at the end."""
    shorter = min(len(first), len(second))
    low = 0
    while low < shorter and first[low] == second[low]:
        low += 1
    high = 0
    while high < shorter - low and first[-1 - high] == second[-1 - high]:
        high += 1
    return low, high


def _distance(first: str, second: str) -> int:
    """The characters to add, drop, change or swap with their neighbour; 3 stands for more than 2."""
    if abs(len(first) - len(second)) > _SLIP:
        return _SLIP + 1
    low, high = _window(first, second)
    a, b = first[low : len(first) - high], second[low : len(second) - high]
    if max(len(a), len(b)) > 12:
        return _SLIP + 1
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, mine in enumerate(a):
        older, before, row = before, row, [i + 1]
        for j, other in enumerate(b):
            cost = min(before[j] + (mine != other), before[j + 1] + 1, row[j] + 1)
            if i and j and mine == b[j - 1] and a[i - 1] == other:
                cost = min(cost, older[j - 1] + 1)
            row.append(cost)
    return min(row[-1], _SLIP + 1)


def slips(wanted: list[str], lines: Lines) -> list[tuple[int, int]]:
    """The places (start line, offset of the slip) where all of `wanted` (bare) stands but one line that
    is off by a slip."""
    found: set[tuple[int, int]] = set()
    for start in _starts(wanted, lines):
        if start < 0 or start + len(wanted) > len(lines.bare):
            continue
        there = lines.bare[start : start + len(wanted)]
        off = [at for at, (a, b) in enumerate(zip(wanted, there, strict=True)) if a != b]
        if len(off) == 1 and is_slip(wanted[off[0]], there[off[0]], lines):
            found.add((start, off[0]))
    return sorted(found)


def _starts(wanted: list[str], lines: Lines) -> set[int]:
    """Where `wanted` could begin: by either of two lines of which one must stand as it is, or where it
    has one line only, by either half of it."""
    solid = sorted((at for at, line in enumerate(wanted) if line), key=lambda at: -len(wanted[at]))
    if len(solid) > 1:
        return {place - at for at in solid[:2] for place in lines.loose([wanted[at]])}
    if not solid:
        return set()
    line, at = wanted[solid[0]], solid[0]
    half = (len(line) - _SLIP) // 2
    if half < 3:
        return set()
    head, tail = line[:half], line[-half:]
    low, high = len(line) - _SLIP, len(line) + _SLIP
    return {
        place - at
        for place, there in enumerate(lines.bare)
        if low <= len(there) <= high and (there.startswith(head) or there.endswith(tail))
    }


def looks_misspelt(wrote: str, stands: str) -> bool:
    """True where two lines (bare) differ so little that one may be the other misspelt."""
    return len(wrote) > 10 and 0 < _distance(wrote, stands) <= _SLIP


def restates_slip(wrote: str, stands: str, new: str) -> bool:
    """True where a new line has the characters round the slip as they were written, not as they stand."""
    first, second = wrote.strip(" \t"), stands.strip(" \t")
    low, high = _window(first, second)
    around = first[max(0, low - 4) : len(first) - high + 4]
    return around in new or any(
        word in _words(new) for word in set(_words(first)) - set(_words(second))
    )
