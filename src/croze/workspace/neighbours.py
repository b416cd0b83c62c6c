"""Several agents in one project: whose change is whose.

What one's file tools write is not found by the others' commands, which are followed by looking at the
whole project before and after; and such commands take turns.
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from msgspec import Struct, field


class Follower(Protocol):
    """What follows one agent's changes below `root`."""

    root: Path

    def others_write(self, path: str) -> None:
        """Another agent is about to change this."""
        ...

    def others_wrote(self, path: str, after: bytes | None) -> None:
        """Another agent has written this (None: removed it)."""
        ...

    def others_left(self, path: str) -> None:
        """Another agent was about to change this and did not."""
        ...


class Neighbours(Struct):
    """The followers of a run; there is one of these for it."""

    _all: list[Follower] = field(default_factory=list)
    _turns: dict[Path, asyncio.Lock] = field(default_factory=dict)

    def join(self, follower: Follower) -> None:
        self._all.append(follower)

    def leave(self, follower: Follower) -> None:
        if follower in self._all:
            self._all.remove(follower)

    def beside(self, follower: Follower) -> Iterator[Follower]:
        """The others in the same project."""
        return (each for each in self._all if each is not follower and each.root == follower.root)

    def alone(self, follower: Follower) -> bool:
        return next(self.beside(follower), None) is None

    async def take_turn(self, root: Path, waits: Callable[[], None]) -> Callable[[], None]:
        """Wait until no other agent's command is followed; gives what ends this one's turn. `waits` is
        called where it has to wait."""
        turn = self._turns.setdefault(root, asyncio.Lock())
        if turn.locked():
            waits()
        await turn.acquire()
        return turn.release
