"""One consistent mapping from the indentation that a model wrote to the file's."""

import itertools
from collections.abc import Iterable

from msgspec import Struct

_UNITS = (4, 2, 8, 3)


class Indents(Struct, frozen=True):
    """`cut` is taken off and `add` put before. `tab` spaces become a tab; where it is below 0 a tab
    becomes that many spaces. `table`, where given, holds all that is known."""

    cut: str = ""
    add: str = ""
    tab: int = 0
    table: tuple[tuple[str, str], ...] = ()

    def map(self, indent: str) -> str | None:
        """The file's indentation for a model's; None where nothing tells."""
        if self.table:
            return dict(self.table).get(indent)
        if self.tab > 0:
            width = len(indent.expandtabs(self.tab))
            return "\t" * (width // self.tab) + " " * (width % self.tab)
        if self.tab < 0:
            return indent.expandtabs(-self.tab)
        return self.add + indent[len(self.cut) :] if indent.startswith(self.cut) else None


SAME = Indents()


def learn(pairs: Iterable[tuple[str, str]]) -> tuple[Indents, ...]:
    """The mappings that explain every pair of a model's indentation and the file's; the simplest kind
    that explains them all, in each way that it can."""
    seen = sorted(set(pairs))
    if all(ours == theirs for ours, theirs in seen):
        return (SAME,)
    for ours, theirs in seen[:1]:
        if theirs.endswith(ours):
            mapping = Indents(add=theirs[: len(theirs) - len(ours)])
        elif ours.endswith(theirs):
            mapping = Indents(cut=ours[: len(ours) - len(theirs)])
        else:
            break
        if _explains(mapping, seen):
            return (mapping,)
    sign = -1 if any("\t" in ours for ours, _ in seen) else 1
    tabs = [Indents(tab=sign * unit) for unit in _UNITS]
    fitting = tuple(mapping for mapping in tabs if _explains(mapping, seen))
    if fitting:
        return fitting
    rising = all(len(a[1]) < len(b[1]) for a, b in itertools.pairwise(seen))
    distinct = len({ours for ours, _ in seen}) == len(seen) > 1
    if any(ours == theirs for ours, theirs in seen if ours):
        return ()
    return (Indents(table=tuple(seen)),) if rising and distinct else ()


def _explains(mapping: Indents, pairs: Iterable[tuple[str, str]]) -> bool:
    return all(mapping.map(ours) == theirs for ours, theirs in pairs)
