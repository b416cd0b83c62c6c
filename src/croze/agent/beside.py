"""What the log is told of the programs that run beside the conversation, and when they are ended."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from croze.agent.live import Live
from croze.types.errors import StoreError
from croze.types.event import BackgroundTask, Event


async def record_ended(live: Live) -> None:
    """Record the ends that have not been recorded yet."""
    ended = live.background.take_ended()
    if ended:
        await live.append(*ended)


class Beside:
    """The programs beside one session. While a turn runs, ends are recorded where it gathers its facts;
    else (`busy` is false) at once."""

    def __init__(self, live: Live, busy: Callable[[], bool]) -> None:
        self._live = live
        self._busy = busy
        self._recording: set[asyncio.Task[None]] = set()
        self._closed = False
        live.background.on_end = self.ended

    def ended(self) -> None:
        """Something may have ended, a program or the turn."""
        if self._closed or self._busy() or not self._live.background.unrecorded:
            return
        task = asyncio.get_running_loop().create_task(self._record())
        self._recording.add(task)
        task.add_done_callback(self._recording.discard)

    async def _record(self) -> None:
        with contextlib.suppress(
            StoreError
        ):  # the next turn meets the same failure, and tells of it
            await record_ended(self._live)

    async def record_lost(self) -> None:
        """Record the end of what another process was running, or another conversation that this one was
        forked from: nothing of it is this session's."""
        found = lost(self._live.log.events)
        if found:
            await self._live.append(*found)

    async def close(self) -> None:
        """End what is running, and record it."""
        self._closed = True
        if self._recording:
            await asyncio.wait(self._recording)
        await self._live.background.close()
        await self._record()


def lost(events: Sequence[Event]) -> list[BackgroundTask]:
    """The programs that a log shows as running, as ended with their process."""
    running: dict[str, BackgroundTask] = {}
    for event in events:
        if isinstance(event.body, BackgroundTask):
            if event.body.state == "running":
                running[event.body.task_id] = event.body
            else:
                running.pop(event.body.task_id, None)
    return [replace(task, state="lost") for task in running.values()]
