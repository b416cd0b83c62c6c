"""What a sandbox is to the runner: a policy, and the way in for one program."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

MOST_PROCESSES = 4_096
"""Processes and threads that a sandboxed command may have at a time (Linux doesn't count root's)."""


class Policy(Struct, frozen=True, kw_only=True):
    """What a program in the sandbox may touch. All paths are absolute and free of links.

    It may write into `root` (on level `workspace`, but never into the protected folders there) and
    into a temporary folder of its own, and read everything but what is in `hidden`. `visible` names
    folders that stay readable although they lie where temporary folders are; `guarded` what can't be
    written, nor made, although it lies in the root. `lent` names folders that can be read although what
    they lie in is hidden. `shown` is where the root is to be seen instead of
    its own place, where the sandbox can do that.
    """

    root: Path
    level: Literal["read-only", "workspace"]
    network: bool = False
    hidden: tuple[Path, ...] = ()
    temporary: tuple[Path, ...] = ()
    visible: tuple[Path, ...] = ()
    guarded: tuple[Path, ...] = ()
    lent: tuple[Path, ...] = ()
    shown: Path | None = None

    def place(self, path: str | os.PathLike[str]) -> str:
        """Where a path in the root is seen inside."""
        inner = os.path.relpath(path, self.root)
        return os.fspath(path) if self.shown is None else os.path.normpath(self.shown / inner)


class Report(Protocol):
    """What a sandbox with a process namespace tells of the program in it."""

    def started(self) -> None:
        """The program has been started: let go of the descriptors that are its."""
        ...

    def first(self) -> int | None:
        """The namespace's first process, as this system numbers it; None before it was there."""
        ...

    def began(self) -> bool:
        """Whether the program itself was reached, so the sandbox could be set up."""
        ...

    def left(self) -> int:
        """How many processes were still running when the program ended."""
        ...

    def killed(self) -> bool:
        """Whether a signal ended the program, so its exit code, as far above 128, names that."""
        ...


class Sieve(Protocol):
    """Changes output piece by piece, before anybody sees it."""

    def feed(self, chunk: bytes) -> bytes:
        """What may be shown by now: the rest comes with a later piece."""
        ...

    def finish(self) -> bytes:
        """The rest: no more will come."""
        ...


class Entry(Struct, frozen=True, kw_only=True):
    """How one program is started inside. `restrict` is called in the thread that starts it, which ends
    with it; `notes` gives, once the program has ended, what the model should know of it. Its errors go
    where its output goes, or to `stderr`; its output goes through `sieve` where there is one."""

    argv: Sequence[str]
    cwd: str | os.PathLike[str]
    env: Mapping[str, str]
    descriptors: tuple[int, ...] = ()
    stdin: int | None = None
    stderr: int | None = None
    restrict: Callable[[], None] | None = None
    report: Report | None = None
    notes: Callable[[], tuple[str, ...]] = tuple
    sieve: Sieve | None = None


class Entrance(Protocol):
    """The way in for programs."""

    def enter(
        self, argv: Sequence[str], *, cwd: str | os.PathLike[str], env: Mapping[str, str]
    ) -> AbstractContextManager[Entry]:
        """Make ready for one program; the context is left when all of it has ended. Raises OSError."""
        ...


class Wrapper(Entrance, Protocol):
    """A sandbox that programs can be run in."""

    @property
    def policy(self) -> Policy: ...
