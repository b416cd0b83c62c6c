"""The first matching lines by path and number out of a searcher's output, which comes in whatever order
its threads found it."""

import re

from msgspec import Struct, field

KEPT = 2_000
"""Lines that are kept; of the matches after them there are only counts."""

GATHERED = 64 << 10
"""Bytes that are read at once, because a searcher writes a small piece for each file."""

_MOST_BYTES = 256 << 20
_ROW = re.compile(rb"(\d+)([:-])([^\n]*)\n?")
_MATCH = re.compile(rb"^\d+:", re.MULTILINE)
_BINARY = re.compile(rb'([^\0]*?)(?:: )?binary file matches \(found "\\0" byte[^\n]*\n{1,2}')
_Row = tuple[bytes, int, bool, bytes]


class Line(Struct, frozen=True):
    """A line of a result, `match` or one of its context. `path` is relative to the workspace."""

    path: str
    number: int
    text: str
    match: bool


class Collector(Struct):
    """Reads blocks as `rg --null --heading` prints them: a path and a NUL, rows that begin with their
    number, an empty line.

    Whatever the order of the blocks, the same lines are kept: the first `KEPT` by path and number.
    Memory is bounded, because rows beyond the last one kept are passed over while they are counted.
    """

    total: int = 0
    files: int = 0
    binary: int = 0
    _rest: bytes = b""
    _pieces: list[bytes] = field(default_factory=list)
    _waiting: int = 0
    _bytes: int = 0
    _path: bytes | None = None
    _counted: bool = False
    _rows: list[_Row] = field(default_factory=list)
    _last: tuple[bytes, int] | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing was found, not even in a binary file."""
        return not (self.total or self.binary)

    def feed(self, chunk: bytes) -> bool:
        """Take a piece of the output; False when it is more than is read."""
        self._bytes += len(chunk)
        self._pieces.append(chunk)
        self._waiting += len(chunk)
        if self._waiting >= GATHERED:
            self._read()
        return self._bytes <= _MOST_BYTES

    def _read(self) -> None:
        data = self._rest + b"".join(self._pieces)
        self._pieces.clear()
        self._waiting = at = 0
        while True:
            after = self._heading(data, at) if self._path is None else self._body(data, at)
            if after is None:
                break
            at = after
        self._rest = data[at:]

    def lines(self, prefix: str) -> tuple[Line, ...]:
        """What was kept, by path and number, with `prefix` before each path; to be asked for when all
        output is taken, and the counts after it."""
        self._read()
        self._rest = b"" if self._binary(self._rest, 0, len(self._rest)) else self._rest
        return tuple(
            Line(
                prefix + path.decode("utf-8", "replace"),
                number,
                text.removesuffix(b"\r").decode("utf-8", "replace"),
                match,
            )
            for path, number, match, text in sorted(self._rows)[:KEPT]
        )

    def _heading(self, data: bytes, at: int) -> int | None:
        """Where the rows begin; None where the path isn't whole yet."""
        end = data.find(b"\0", at)
        if end < 0:
            return None
        at = self._binary(data, at, end) or at
        self._path = data[at:end].removeprefix(b"./")
        self._counted = False
        return end + 1

    def _binary(self, data: bytes, at: int, end: int) -> int | None:
        """Where the words on binary files that matched end; None where there are none."""
        after = None
        while (found := _BINARY.match(data, at, end)) is not None:
            self.binary += 1
            after = at = found.end()
        return after

    def _body(self, data: bytes, at: int) -> int | None:
        """Where the next rows begin, or the next path; None where no row is whole."""
        if data.startswith(b"\n", at):
            self._path = None
            return at + 1
        end = data.find(b"\n\n", at)
        if end >= 0:
            self._take(data[at : end + 1])
            self._path = None
            return end + 2
        end = data.rfind(b"\n", at)
        if end < 0:
            return None
        self._take(data[at : end + 1])
        return end + 1

    def _take(self, rows: bytes) -> None:
        assert self._path is not None
        first = _ROW.match(rows)
        beyond = (
            self._last is not None
            and first is not None
            and (self._path, int(first[1])) > self._last
        )
        matches = len(_MATCH.findall(rows))
        self.total += matches
        if matches and not self._counted:
            self.files += 1
            self._counted = True
        said = rows[rows.rfind(b"\n", 0, len(rows) - 1) + 1 :]
        if not said[:1].isdigit() and _BINARY.fullmatch(said):
            self.binary += 1
        if beyond:
            return
        for line in rows.split(b"\n"):
            row = _ROW.fullmatch(line)
            if row is not None:
                self._rows.append((self._path, int(row[1]), row[2] == b":", row[3]))
                if len(self._rows) >= 2 * KEPT:
                    self._prune()

    def _prune(self) -> None:
        self._rows = sorted(self._rows)[:KEPT]
        path, number, _, _ = self._rows[-1]
        self._last = path, number
