"""What is done when a turn is over and its answer is out: beside the user, but before the next turn."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from croze.types.event import Stopped

CLOSING = 60.0
"""Seconds for which the end of a session waits for it."""


class Afterwards:
    """The work after the turns of one session; there is one at most, since the log is written in order."""

    def __init__(self, work: Callable[[Stopped], Awaitable[None]]) -> None:
        self._work = work
        self._task: asyncio.Task[None] | None = None

    def begin(self, turn: "asyncio.Task[Stopped]") -> None:
        """After a turn that came to its end."""
        if turn.cancelled() or turn.exception() is not None:
            return
        self._task = asyncio.ensure_future(self._run(turn.result()))

    async def _run(self, stopped: Stopped) -> None:
        await self._work(stopped)

    async def wait(self, seconds: float | None = None) -> None:
        """Until it is done; what takes longer is cancelled."""
        task = self._task
        if task is None:
            return
        _done, late = await asyncio.wait([task], timeout=seconds)
        if late:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._task = None
        if not task.cancelled():
            task.exception()  # its own failures are told; others have no reader

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
