"""What a session's calls change in the project: pre-images before, and each change as it is recorded.

The file tools announce every write; round a command the whole project is looked at.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from croze.types.errors import StoreError
from croze.types.tool import FileChange
from croze.workspace.changes import Side, describe
from croze.workspace.commands import CommandWatch
from croze.workspace.files import Change, Files, sha256
from croze.workspace.git import Git
from croze.workspace.journal import Intent, Intents, Journal
from croze.workspace.neighbours import Neighbours
from croze.workspace.snapshot import Scanner, TooManyFiles


@dataclass(slots=True)
class Tracker:
    """One session's record of its changes. Calls that change files run one at a time: `begin`, the
    call, `changes`, and when these stand in the log `recorded`."""

    files: Files
    root: Path
    journal: Journal
    session: str
    git: Git | None
    neighbours: Neighbours = field(default_factory=Neighbours)
    blind: bool = False
    """Whether commands' changes can't be followed: the folder holds too many files."""

    _intents: Intents = field(init=False)
    _commands: CommandWatch = field(init=False)
    _call: str = ""
    _running: bool = False
    _announced: dict[str, Change] = field(default_factory=dict)
    _written: dict[str, tuple[Side, Side]] = field(default_factory=dict)
    _made: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _others: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._intents = self.journal.intents(self.session)
        scanner = Scanner(self.files, self.root)
        self._commands = CommandWatch(self.root, self.journal, self.git, scanner)
        self.files.watch(self._before_change)
        self.neighbours.join(self)

    @property
    def call(self) -> str:
        """The call that is being followed."""
        return self._call

    async def begin(self, call_id: str, *, command: bool) -> None:
        """A call that may change files is about to run."""
        self._call, self._running = call_id, False
        if command and not self.blind:
            try:
                await self._commands.before()
                self._running = True
            except TooManyFiles:
                self.blind = True

    def _before_change(self, change: Change) -> None:
        """Keep what a write is about to replace, and say so, before anything has happened to it."""
        if change.before is not None:
            self.journal.put(change.before)
        self._intents.add(
            Intent(
                call_id=self._call,
                path=change.path,
                before=None if change.before is None else sha256(change.before),
                after=None if change.after is None else sha256(change.after),
                mode=change.mode,
                made=change.made,
                temporary=change.temporary,
            )
        )
        self._announced[change.path] = change
        for each in self.neighbours.beside(self):
            each.others_write(change.path)

    def others_write(self, path: str) -> None:
        self._others.add(path)

    def others_wrote(self, path: str, after: bytes | None) -> None:
        self._others.discard(path)
        self._commands.wrote(path, after)

    def others_left(self, path: str) -> None:
        self._others.discard(path)

    @contextmanager
    def on_behalf(self, call_id: str) -> Iterator[None]:
        """Changes in the block belong to this call, whichever one is followed. Nothing may be awaited
        in it."""
        followed, self._call = self._call, call_id
        try:
            yield
        finally:
            self._call = followed

    def came_back(self, path: str, data: bytes | None) -> tuple[int | None, tuple[str, ...]]:
        """A sub-agent's change of a file was taken over, and is recorded by itself: the file's mode now,
        and the folders made for it."""
        announced = self._announced.pop(path, None)
        if data is not None:
            with suppress(StoreError):
                self.journal.put(data, durable=False)
        mode = self._commands.wrote(path, data)
        for each in self.neighbours.beside(self):
            each.others_wrote(path, data)
        return mode, announced.made if announced is not None else ()

    def gave_up(self, path: str) -> None:
        """What was about to come back could not be written."""
        self._announced.pop(path, None)
        for each in self.neighbours.beside(self):
            each.others_left(path)

    def settle(self) -> None:
        """What came back stands in the log; as long as no call is changing files this empties the list
        of what is about to be changed."""
        if not self._announced:
            self._intents.settle()

    def record(self, path: str, before: bytes | None, after: bytes | None) -> None:
        """A file tool has changed a file."""
        announced = self._announced.pop(path, None)
        if announced is not None and announced.made:
            self._made[path] = announced.made
        if after is not None:
            with suppress(StoreError):  # it can still be read from the file itself
                self.journal.put(after, durable=False)
        mode = announced.mode if announced is not None else None
        first = self._written[path][0] if path in self._written else Side(before, mode)
        self._written[path] = first, Side(after, self._commands.wrote(path, after))
        for each in self.neighbours.beside(self):
            each.others_wrote(path, after)

    async def changes(self) -> tuple[FileChange, ...]:
        """What the call that has just ended changed; asked once a call."""
        sides, made = self._written, self._made
        for path in self._announced:
            for each in self.neighbours.beside(self):
                each.others_left(path)
        self._written, self._made, self._announced = {}, {}, {}
        if self._running:
            self._running = False
            try:
                found = await self._commands.after()
            except TooManyFiles:
                self.blind = True
            else:
                own = {path: s for path, s in found.sides.items() if path not in self._others}
                sides, made = own | sides, {**found.made, **made}
        return describe(sides, made) if sides else ()

    def recorded(self) -> None:
        """What was announced stands in the log now."""
        self._intents.settle()

    def close(self) -> None:
        """Nothing runs any more."""
        self.neighbours.leave(self)
        self._intents.close()
        self.journal.settle()
