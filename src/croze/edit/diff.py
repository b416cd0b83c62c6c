"""The unified diff of two texts, at a bounded cost."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

_CONTEXT = 3
_ALIGNED = 20_000
"""Lines of the differing middle, above which it is shown as removed and added in whole."""


class Diff(Struct, frozen=True):
    """A unified diff and its counts of lines."""

    text: str
    added: int
    removed: int


def unified(before: str, after: str, path: str, *, limit: int = 2_000) -> Diff:
    """The diff from `before` to `after` (LF), at most `limit` lines of it shown.

    An empty text is that of a file that isn't there.
    """
    first, second = _lines(before), _lines(after)
    groups = _grouped(opcodes(first, second))
    rows: list[str] = []
    added = removed = 0
    for group in groups:
        low, high = group[0], group[-1]
        rows.append(f"@@ -{_span(low[1], high[2])} +{_span(low[3], high[4])} @@")
        for kind, a, b, c, d in group:
            if kind == "equal":
                rows += [f" {line}" for line in first[a:b]]
                continue
            removed += b - a
            added += d - c
            rows += [f"-{line}" for line in first[a:b]]
            rows += [f"+{line}" for line in second[c:d]]
    if not rows:
        return Diff("", 0, 0)
    if len(rows) > limit:
        rows = [*rows[:limit], f"… {len(rows) - limit} more lines"]
    head = [
        f"--- {'a/' + path if before else '/dev/null'}",
        f"+++ {'b/' + path if after else '/dev/null'}",
    ]
    return Diff("\n".join([*head, *rows]) + "\n", added, removed)


_Opcode = tuple[str, int, int, int, int]


def _lines(text: str) -> list[str]:
    """Lines without their ends; a missing final newline is a line's difference, as in `diff`."""
    if not text:
        return []
    lines = text.split("\n")
    if lines[-1]:
        lines[-1] += "\n\\ No newline at end of file"
        return lines
    return lines[:-1]


def opcodes(first: Sequence[str], second: Sequence[str]) -> list[_Opcode]:
    """As difflib gives them, with what is the same at both ends left out of its work."""
    shorter = min(len(first), len(second))
    head = 0
    while head < shorter and first[head] == second[head]:
        head += 1
    tail = 0
    while tail < shorter - head and first[-1 - tail] == second[-1 - tail]:
        tail += 1
    a, c = len(first) - tail, len(second) - tail
    middle = [
        (k, i + head, j + head, m + head, n + head)
        for k, i, j, m, n in _aligned(first[head:a], second[head:c])
    ]
    ends = [("equal", 0, head, 0, head)] if head else []
    last = [("equal", a, len(first), c, len(second))] if tail else []
    return [*ends, *middle, *last]


def _aligned(first: Sequence[str], second: Sequence[str]) -> list[_Opcode]:
    if not first and not second:
        return []
    if len(first) + len(second) > _ALIGNED or not first or not second:
        return [("replace", 0, len(first), 0, len(second))]
    from difflib import SequenceMatcher

    return list(SequenceMatcher(None, first, second).get_opcodes())


def _grouped(opcodes: Sequence[_Opcode]) -> Iterator[list[_Opcode]]:
    """Hunks: changes with lines of context, apart where more than twice as many lie between."""
    group: list[_Opcode] = []
    for at, (kind, a, b, c, d) in enumerate(opcodes):
        if kind != "equal":
            group.append((kind, a, b, c, d))
            continue
        first, last = at == 0, at == len(opcodes) - 1
        if not first and (last or b - a > 2 * _CONTEXT):
            group.append((kind, a, min(b, a + _CONTEXT), c, min(d, c + _CONTEXT)))
            yield group
            group = []
        if not last and (first or b - a > 2 * _CONTEXT):
            group = [(kind, max(a, b - _CONTEXT), b, max(c, d - _CONTEXT), d)]
        elif not first and not last:
            group.append((kind, a, b, c, d))
    if any(kind != "equal" for kind, *_ in group):
        yield group


def _span(start: int, end: int) -> str:
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
