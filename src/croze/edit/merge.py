"""Three versions of a text into one: what one side changed is placed on the other, or refused.

A change is placed only where the texts decide: every alignment that could be meant puts the lines
round it at the same place, both sides left these lines alone, and at least one of them stands between
a change of the one side and a change of the other. All else is a clash; nothing is merged half.
"""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from croze.edit.source import is_binary, read_source

_MOST_STEPS = 1_500
"""Lines removed and added, above which two texts are not aligned line by line."""

_CONTEXT = 3
_WIDE = ("utf-16", "utf-32")


class Clash(Struct, frozen=True):
    """Both sides changed these lines. `line` is the first one's number in ours, from 1; `ours` and
    `theirs` are what each side made of them."""

    line: int
    ours: tuple[str, ...]
    theirs: tuple[str, ...]


class Unmergeable(Struct, frozen=True):
    """Why three contents are not merged: they are no texts, or they clash."""

    reason: str
    clashes: tuple[Clash, ...] = ()


def merge_bytes(base: bytes, ours: bytes, theirs: bytes) -> bytes | Unmergeable:
    """The bytes of ours with what theirs changed from `base`. Lines keep their bytes, ends included."""
    if base == theirs or ours == theirs:
        return ours
    if base == ours:
        return theirs
    if any(map(is_binary, (base, ours, theirs))):
        return Unmergeable("both sides changed it, and it is no text")
    sources = [read_source(data) for data in (base, ours, theirs)]
    forms = {(one.encoding, one.bom) for one in sources if one is not None}
    encoding, bom = next(iter(forms)) if len(forms) == 1 else ("", b"")
    wide = any(name.startswith(_WIDE) for name, _ in forms)
    if wide and not encoding:
        return Unmergeable("both sides changed it, and its encoding differs")
    # One byte a character where the encoding has its line ends as bytes, so that nothing is lost.
    codec = encoding if wide else "latin-1"
    cut = len(bom) if wide else 0
    texts = [data[cut:].decode(codec) for data in (base, ours, theirs)]
    merged, clashes = merge_lines(*map(_lines, texts))
    if clashes:
        shown = "" if wide else "utf-8"
        return Unmergeable(
            "both sides changed the same lines", tuple(_shown(one, shown) for one in clashes)
        )
    return (bom if wide else b"") + "".join(merged).encode(codec)


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def _shown(clash: Clash, codec: str) -> Clash:
    def readable(line: str) -> str:
        return (line.encode("latin-1").decode(codec, "replace") if codec else line).rstrip("\r\n")

    return Clash(clash.line, tuple(map(readable, clash.ours)), tuple(map(readable, clash.theirs)))


def merge_lines(
    base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]
) -> tuple[list[str], list[Clash]]:
    """Ours with the changes from `base` to `theirs`, whole where there are no clashes."""
    names: dict[str, int] = {}
    a, b, c = (
        [names.setdefault(line, len(names)) for line in text] for text in (base, ours, theirs)
    )
    left, right = _pairs(a, b), _pairs(a, c)
    anchors = [(-1, -1, -1)]
    anchors += [(i, left[i], right[i]) for i in sorted(left.keys() & right.keys())]
    anchors.append((len(base), len(ours), len(theirs)))
    known = "".join(map(chr, a))
    merged: list[str] = []
    clashes: list[Clash] = []
    for before, after in pairwise(anchors):
        if before[0] >= 0:
            merged.append(ours[before[1]])
        was = base[before[0] + 1 : after[0]]
        mine = ours[before[1] + 1 : after[1]]
        other = theirs[before[2] + 1 : after[2]]
        if was == mine == other:
            continue
        alike = mine == other and not set(was) & set(mine)
        if (was in (mine, other) or alike) and _is_one_place(known, before[0], after[0]):
            merged += other if was == mine else mine
        else:
            clashes.append(Clash(before[1] + 2, tuple(mine), tuple(other)))
    return merged, clashes


def _is_one_place(known: str, before: int, after: int) -> bool:
    """Whether the lines from `before` to `after`, with context, stand only once in the base."""
    start = max(0, before + 1 - _CONTEXT)
    wanted = known[start : after + _CONTEXT]
    at_an_end = start == 0 or after + _CONTEXT > len(known)
    return at_an_end or known.find(wanted, known.find(wanted) + 1) < 0


def _pairs(a: Sequence[int], b: Sequence[int]) -> dict[int, int]:
    """Lines that are the same in both, by index, where each way of aligning them has them so."""
    found = _aligned(a, b, late=False) & _aligned(a, b, late=True)
    n, m = len(a), len(b)
    for late in (False, True):
        backwards = _aligned(a[::-1], b[::-1], late=late)
        found &= {(n - 1 - i, m - 1 - j) for i, j in backwards}
    return dict(found)


def _aligned(a: Sequence[int], b: Sequence[int], *, late: bool) -> set[tuple[int, int]]:
    """The pairs of a shortest edit script, found by the greedy algorithm of Myers (1986); `late` takes
    the other of two ways that are equally far. Empty where it would be too long."""
    n, m = len(a), len(b)
    reached = {1: 0}
    history: list[dict[int, int]] = []
    for steps in range(min(n + m, _MOST_STEPS) + 1):
        history.append(reached)
        now: dict[int, int] = {}
        for k in range(-steps, steps + 1, 2):
            x = _from(reached, k, steps, late=late)[0]
            y = x - k
            while x < n and y < m and a[x] == b[y]:
                x += 1
                y += 1
            now[k] = x
            if x >= n and y >= m:
                return _path(history, n, m, late=late)
        reached = now
    return set()


def _from(reached: dict[int, int], k: int, steps: int, *, late: bool) -> tuple[int, int]:
    """Where diagonal `k` is entered, and from which one."""
    down, right = reached.get(k + 1, -1), reached.get(k - 1, -1) + 1
    by_insertion = k == -steps or (k != steps and (right <= down if late else right < down))
    return (down, k + 1) if by_insertion else (right, k - 1)


def _path(history: Sequence[dict[int, int]], x: int, y: int, *, late: bool) -> set[tuple[int, int]]:
    pairs: set[tuple[int, int]] = set()
    for steps in range(len(history) - 1, -1, -1):
        k = x - y
        start, before = _from(history[steps], k, steps, late=late)
        while x > start:
            x -= 1
            y -= 1
            pairs.add((x, y))
        x = history[steps][before] if steps else 0
        y = x - before if steps else 0
    return pairs
