"""The most important definitions of a repository, as many as fit into a budget.

Files that use a name point at the files that define it. A random walk along these pointers, begun at the
files in focus, tells how much each file and each of its definitions matters (Page et al. 1999: PageRank;
with a chosen start: Haveliwala 2002).
"""

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct

from croze.retrieval.outline import Definition, Outline
from croze.retrieval.symbols import REFERENCES

DAMPING = 0.85
ROUNDS = 30
_SETTLED = 1e-7
_COMMON = 12
"""A name that more files define says nothing about which of them is meant."""

MOST = 1_000
"""Definitions that are ranked; no budget has room for more."""

_BODIES = frozenset({"function", "method", "constructor"})
_LESSER = frozenset({"constant", "variable", "prototype"})
_INNER = 0.3
_UNLIKELY = 0.1
_FOCUS_SHARE = 0.7


_Edge = tuple[int, float, str]


class Ranked(Struct, frozen=True, gc=False):
    """A definition and what it weighs in the map."""

    path: str
    definition: Definition
    weight: float


class RepoMap(Struct, frozen=True):
    """A drawn map. `tokens` is what it costs; `shown` definitions stand in it, of `files`."""

    text: str
    tokens: int
    shown: int
    files: int
    ranked: tuple[Ranked, ...] = ()


class Stopped(Exception):
    """The ranking was stopped by whoever asked for it."""


def rank(
    outlines: Mapping[str, Outline],
    focus: Collection[str] = (),
    stopped: Callable[[], bool] = lambda: False,
) -> list[Ranked]:
    """The definitions that matter most, best first, `MOST` of them. The same outlines and focus give the
    same order. Raises `Stopped` soon after `stopped` has become true."""
    paths = sorted(path for path in outlines if outlines[path].language in REFERENCES)
    number = {path: at for at, path in enumerate(paths)}
    visible = [_visible(outlines[path].definitions) for path in paths]
    owners: dict[str, dict[int, bool]] = defaultdict(dict)
    for at, definitions in enumerate(visible):
        for definition in definitions:
            inner = owners[definition.name].get(at, True)
            owners[definition.name][at] = inner and definition.depth > 0
    callers = Counter(name for path in paths for name in outlines[path].references)
    roots = {part.removesuffix(".py") for path in paths for part in path.split("/")}
    edges: list[list[_Edge]] = []
    for at, path in enumerate(paths):
        if at % 64 == 0 and stopped():
            raise Stopped
        edges.append(_edges(at, outlines[path], owners, callers, roots))
    scores = _walk(edges, _start(paths, number, focus), stopped)
    return _best(paths, visible, edges, scores)


def _visible(definitions: Sequence[Definition]) -> list[Definition]:
    """The definitions that other files can mean: none that stand in a function."""
    found = []
    hidden_below: int | None = None
    for definition in definitions:
        if hidden_below is not None and definition.depth > hidden_below:
            continue
        hidden_below = definition.depth if definition.kind in _BODIES else None
        found.append(definition)
    return found


def _edges(
    at: int,
    outline: Outline,
    owners: Mapping[str, Mapping[int, bool]],
    callers: Mapping[str, int],
    roots: Collection[str],
) -> list[_Edge]:
    """Where a file's references lead: to whom, how strongly, by which name.

    References within the file tell nothing of others and count for little. What is called on something
    (`callers` counts the files that do) may as well be a method of the language's own types; what is
    imported from a module that isn't among `roots` is defined elsewhere.
    """
    found = []
    for used, times in sorted(outline.references.items()):
        name, _, root = used.removeprefix(".").partition("@")
        among = owners.get(name)
        if among is None or len(among) > _COMMON or (root and root not in roots):
            continue
        weight = math.sqrt(times) / len(among) * _telling(name)
        member = used.startswith(".")
        if member:
            weight /= math.sqrt(callers[used])
        for to, inner in among.items():
            if inner and not member:
                continue
            likely = _INNER if inner else _UNLIKELY if member else 1.0
            found.append((to, weight * likely * (_UNLIKELY if to == at else 1.0), name))
    return found


def _telling(name: str) -> float:
    """Long names of several words are rarely met by accident; private ones matter to their file only."""
    words = "_" in name.strip("_") or (name.upper() != name and name[1:].lower() != name[1:])
    return (0.2 if name.startswith("_") else 1.0) * (2.0 if words and len(name) >= 8 else 1.0)


def _start(paths: Sequence[str], number: Mapping[str, int], focus: Collection[str]) -> list[float]:
    """Where the walk begins: anywhere, and mostly at the focus, which may name folders."""
    count = len(paths)
    if not count:
        return []
    wanted = {
        number[path]
        for path in paths
        if any(path == each or each == "." or path.startswith(f"{each}/") for each in focus)
    }
    share = _FOCUS_SHARE if wanted and len(wanted) < count else 0.0
    start = [(1.0 - share) / count] * count
    for at in sorted(wanted):
        start[at] += share / len(wanted)
    return start


def _walk(
    edges: Sequence[Sequence[_Edge]],
    start: list[float],
    stopped: Callable[[], bool],
) -> list[float]:
    joined: list[list[tuple[int, float]]] = []
    for at, each in enumerate(edges):
        sums: dict[int, float] = defaultdict(float)
        for to, weight, _ in each:
            if to != at:
                sums[to] += weight
        total = sum(sums.values())
        joined.append([(to, weight / total) for to, weight in sorted(sums.items())])
    scores = start
    for _ in range(ROUNDS):
        if stopped():
            raise Stopped
        lost = sum(score for score, out in zip(scores, joined, strict=True) if not out)
        new = [(1.0 - DAMPING + DAMPING * lost) * each for each in start]
        for score, out in zip(scores, joined, strict=True):
            for to, share in out:
                new[to] += DAMPING * score * share
        moved = sum(abs(one - other) for one, other in zip(new, scores, strict=True))
        scores = new
        if moved < _SETTLED:
            break
    return scores


def _best(
    paths: Sequence[str],
    visible: Sequence[Sequence[Definition]],
    edges: Sequence[Sequence[_Edge]],
    scores: Sequence[float],
) -> list[Ranked]:
    """A definition gets what flows to its name; a part of its file's own score besides, so that what
    nobody refers to stands in the order of the files."""
    flow: dict[tuple[int, str], float] = defaultdict(float)
    for at, each in enumerate(edges):
        total = sum(weight for _, weight, _ in each)
        for to, weight, name in each:
            flow[to, name] += scores[at] * weight / total
    ranked = (
        Ranked(path, definition, flow.get((at, definition.name), 0.0) + own * _share(definition))
        for at, path in enumerate(paths)
        for own in (scores[at] / (4 * (len(visible[at]) + 1)),)
        for definition in visible[at]
    )
    return heapq.nsmallest(MOST, ranked, key=_order)


def _share(definition: Definition) -> float:
    return _INNER if definition.depth or definition.kind in _LESSER else 1.0


def _order(one: Ranked) -> tuple[float, str, int, str]:
    return -one.weight, one.path, one.definition.start, one.definition.name


def draw(
    ranked: Sequence[Ranked], budget: int, count: Callable[[str], int], *, longest: int = 7_500
) -> RepoMap:
    """The map of as many definitions, the first ones first, as `budget` tokens and `longest` characters
    have room for; found by bisection, because a definition may bring its file's name with it."""
    low, high = 0, len(ranked)
    best = "", 0
    while low < high:
        middle = (low + high + 1) // 2
        text = _text(ranked[:middle]) if middle <= longest else ""
        tokens = count(text) if text and len(text) <= longest else budget + 1
        if tokens <= budget:
            low, best = middle, (text, tokens)
        else:
            high = middle - 1
    shown = tuple(ranked[:low])
    files = len({one.path for one in shown})
    return RepoMap(*best, shown=low, files=files, ranked=shown)


def _text(shown: Sequence[Ranked]) -> str:
    """Files in the order of their best definition, with their definitions in the order of the lines."""
    by_file: dict[str, list[Definition]] = {}
    for one in shown:
        by_file.setdefault(one.path, []).append(one.definition)
    rows = []
    for path, definitions in by_file.items():
        rows.append(f"{path}:")
        rows += [
            row(definition) for definition in sorted(definitions, key=lambda d: (d.start, -d.end))
        ]
    return "\n".join(rows)


def row(definition: Definition) -> str:
    """A definition as it is listed: its lines, and its head below what holds it."""
    lines = str(definition.start)
    if definition.end > definition.start:
        lines += f"-{definition.end}"
    return f"{'  ' * (definition.depth + 1)}{lines}: {definition.signature}"
