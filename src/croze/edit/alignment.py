"""A sketch and a file side by side: which lines and definitions of the one are those of the other."""

import itertools
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct

from croze.edit.definitions import Definition, definitions
from croze.edit.grammar import language
from croze.edit.markers import is_bare, is_marker
from croze.edit.rows import split

_COMMON = frozenset(
    [
        "else:",
        "try:",
        "finally:",
        "pass",
        "return",
        "break",
        "continue",
        "else",
        "try",
        "finally",
        "end",
        "done",
        "esac",
        "begin",
        "return;",
        "break;",
        "continue;",
        "default:",
        "default",
        "return;",
        "then",
        "do",
        "endif",
    ]
)


class Chunk(Struct, frozen=True):
    """Lines `start` up to `end` of the sketch, which stand in the file without anything between them;
    blank lines beside markers are left out. `raw` is the start with them. `opens` and `closes` tell
    that no marker stands before or after: the chunk begins or ends the file."""

    start: int
    end: int
    raw: int
    opens: bool
    closes: bool


class Scope(Struct, frozen=True):
    """Lines of the sketch and of the file that belong to each other as wholes."""

    s_start: int
    s_end: int
    f_start: int
    f_end: int


class Alignment:
    """A file's and a sketch's lines (compared without blanks at their ends) and definitions."""

    def __init__(self, text: str, sketch: str, path: str) -> None:
        self.text, self.sketch = text, sketch
        self.language = language(path)
        self.file = [line.rstrip() for line in split(text)]
        self.lines = [line.rstrip() for line in split(sketch)]
        elided = self.language != "python"
        self.marked = [is_marker(line) or (elided and is_bare(line)) for line in self.lines]
        self.whole = Scope(0, len(self.lines), 0, len(self.file))
        self._anchors: dict[Scope, dict[str, int]] = {}

    @cached_property
    def chunks(self) -> tuple[Chunk, ...]:
        found: list[Chunk] = []
        start = 0
        marks = [at for at, marked in enumerate(self.marked) if marked]
        for mark in (*marks, len(self.lines)):
            low, high = start, mark
            while low < high and not self.lines[low]:
                low += 1
            while high > low and not self.lines[high - 1]:
                high -= 1
            if low < high:
                opens = start == 0
                found.append(Chunk(low, high, start, opens, mark == len(self.lines)))
            start = mark + 1
        return tuple(found)

    @property
    def is_hollow(self) -> bool:
        """True where between two markers there are blank lines only: nobody knows which."""
        marks = [at for at, marked in enumerate(self.marked) if marked]
        return any(
            high > low + 1 and not any(self.lines[low + 1 : high])
            for low, high in itertools.pairwise(marks)
        )

    @cached_property
    def file_definitions(self) -> tuple[Definition, ...]:
        return definitions(self.text, self.language, lambda _: False)

    @cached_property
    def sketch_definitions(self) -> tuple[Definition, ...]:
        return definitions(self.sketch, self.language, lambda line: self.marked[line])

    @cached_property
    def partners(self) -> dict[Definition, Definition]:
        """The definitions of the sketch → those of the same kind, name and parents in the file; only
        where there is one of each."""
        ours = Counter(one.path for one in self.sketch_definitions)
        theirs = Counter(one.path for one in self.file_definitions)
        by_path = {one.path: one for one in self.file_definitions}
        return {
            one: by_path[one.path]
            for one in self.sketch_definitions
            if ours[one.path] == theirs[one.path] == 1
        }

    def is_open(self, definition: Definition) -> bool:
        """True for a definition of the sketch with a marker in it: only a part of it is shown."""
        return any(self.marked[definition.start : definition.end])

    def is_trusted(self, definition: Definition) -> bool:
        """True where each marker in a definition is set in deeper than its head. Others may stand for the
        end of one definition and the beginning of the next."""
        depth = _depth(self.lines[definition.start])
        return all(
            _depth(self.lines[at]) > depth
            for at in range(definition.start, definition.end)
            if self.marked[at]
        )

    def around(self, line: int) -> list[Definition]:
        """The open definitions of the sketch that hold a line, the innermost last."""
        return [
            one
            for one in self.sketch_definitions
            if one.start <= line < one.end and self.is_open(one) and self.is_trusted(one)
        ]

    def scope(self, line: int) -> Scope:
        """Where to look for a line of the sketch: the innermost open definition around it that the
        file has too, or all of the file."""
        for one in reversed(self.around(line)):
            partner = self.partners.get(one)
            if partner is not None:
                return Scope(one.start, one.end, partner.start, partner.end)
        return self.whole

    def anchors(self, scope: Scope) -> dict[str, int]:
        """Lines that both sides of a scope have once and that say something → where in the file."""
        if scope not in self._anchors:
            ours = Counter(self.lines[scope.s_start : scope.s_end])
            theirs = Counter(self.file[scope.f_start : scope.f_end])
            self._anchors[scope] = {
                line: at
                for at, line in enumerate(self.file[scope.f_start : scope.f_end], scope.f_start)
                if theirs[line] == 1 and ours[line] == 1 and telling(line)
            }
        return self._anchors[scope]

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for at, line in enumerate(self.file):
            found.setdefault(line, []).append(at)
        return found

    def places(self, line: str) -> list[int]:
        """Where a line stands in the file."""
        return self._places.get(line, [])

    def run_down(self, s_at: int, f_at: int, s_end: int) -> int:
        """How many lines from these two on are the same."""
        count = 0
        while (
            s_at + count < s_end
            and f_at + count < len(self.file)
            and self.lines[s_at + count] == self.file[f_at + count]
        ):
            count += 1
        return count

    def run_up(self, s_at: int, f_at: int, s_start: int) -> int:
        """How many lines right before these two are the same."""
        count = 0
        while (
            s_at - count > s_start
            and f_at - count > 0
            and self.lines[s_at - count - 1] == self.file[f_at - count - 1]
        ):
            count += 1
        return count


def filled(lines: Sequence[str]) -> int:
    """How many of the lines aren't blank."""
    return sum(1 for line in lines if line)


def telling(line: str) -> bool:
    """True of a line that isn't to be expected in any file of its kind."""
    body = line.strip()
    return len(body) >= 3 and body not in _COMMON and any(map(str.isalnum, body))


def _depth(line: str) -> int:
    line = line.expandtabs(8)
    return len(line) - len(line.lstrip())
