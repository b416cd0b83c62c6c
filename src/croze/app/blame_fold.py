"""Who wrote each line of a file: a fold over its versions, one difference after the other."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from msgspec import Struct

from croze.edit.diff import opcodes
from croze.workspace.files import sha256


class Origin(Struct, frozen=True, omit_defaults=True):
    """Where a line comes from. Of croze: the session, its agent, turn, call and tool. Of git: commit
    and author. `you` is somebody outside of croze, not committed yet; `unknown` is nobody we know of.
    `at` is in microseconds since the epoch."""

    by: Literal["croze", "git", "you", "unknown"]
    at: int | None = None
    session: str = ""
    agent: str = ""
    turn: int = 0
    call: str = ""
    tool: str = ""
    commit: str = ""
    author: str = ""


YOU = Origin(by="you")


class Version(Struct, frozen=True):
    """One recorded change of the file: hashes before and after (None: no file). `undo` puts an earlier
    version back. `lost`: the hash before isn't known. `child` names whose work came back by it."""

    at: int
    seq: int
    before: str | None
    after: str | None
    origin: Origin
    undo: bool = False
    lost: bool = False
    child: str = ""


Text = tuple[list[str], list[Origin | None]]
"""Lines, with their ends, a character a byte, and where each comes from; None: it stood there before
anything we know of."""


def lines_of(data: bytes) -> list[str]:
    """By line feeds only, so that lines are counted as git does."""
    lines = data.decode("latin-1").split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([last] if last else [])


@dataclass(slots=True)
class Fold:
    """The file as it went through its versions. `content` gives the bytes with a hash."""

    content: Callable[[str], bytes | None]
    text: Text = field(default_factory=lambda: ([], []))
    _digest: str | None = None
    _begun: bool = False
    _known: dict[str, Text] = field(default_factory=dict)
    _missed: Origin | None = None

    def feed(self, version: Version, came: Text | None = None) -> None:
        """Take the next version; `came` is the sub-agent's own text, where its work comes back."""
        if not self._begun:
            self._start(version.before)
        elif version.before != self._digest and not version.lost:
            self._reach(version.before, YOU, restores=True)
        self._reach(version.after, version.origin, restores=version.undo, came=came)

    def finish(self, data: bytes) -> Text:
        """The file as it is now: what differs from the last version was written by somebody else."""
        if not self._begun:
            lines = lines_of(data)
            return lines, [None] * len(lines)
        digest = sha256(data)
        if digest != self._digest or self._missed is not None:
            known = self._known.get(digest)
            self.text = known if known is not None else self._compared(data, self._missed or YOU)
        return self.text

    def _start(self, digest: str | None) -> None:
        self._begun, self._digest = True, digest
        data = None if digest is None else self.content(digest)
        if data is not None:
            lines = lines_of(data)
            self.text = lines, [None] * len(lines)
            self._known[str(digest)] = self.text

    def _reach(
        self, digest: str | None, origin: Origin, *, restores: bool, came: Text | None = None
    ) -> None:
        self._digest = digest
        if digest is None:
            self.text = ([], [])
            return
        known = self._known.get(digest) if restores else None
        if known is not None:
            self.text = known
            return
        data = self.content(digest)
        if data is None:  # the journal has it no more: its lines show with the next version
            self._missed = self._missed or origin
            return
        self.text = self._compared(data, self._missed or origin, came)
        self._missed = None
        self._known[digest] = self.text

    def _compared(self, data: bytes, origin: Origin, came: Text | None = None) -> Text:
        """The text as `data`: lines that stay keep where they come from."""
        new = lines_of(data)
        old, old_origins = self.text
        origins: list[Origin | None] = [origin] * len(new)
        if came is not None:
            for at, found in _carried(came, new):
                origins[at] = found if found is not None else origin
        for at, found in _carried((old, old_origins), new):
            origins[at] = found
        return new, origins


def _carried(text: Text, new: Sequence[str]) -> Iterable[tuple[int, Origin | None]]:
    """Lines of `new` that stand in an older text too, with where they come from there."""
    old, origins = text
    for kind, a, b, c, _ in opcodes(old, new):
        if kind == "equal":
            yield from zip(range(c, c + b - a), origins[a:b], strict=True)
