"""Runs the same work over many items at once, and gives what came out as it comes."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from itertools import islice
from typing import Protocol, TypeVar

from croze.types.errors import CrozeError

Item = TypeVar("Item")
Done = TypeVar("Done")


class Executor(Protocol):
    """Where work runs. Batches and sub-agents go through it.

    `InProcess` runs it as tasks of this process. A form on other machines sends `work` and each item
    there, so for that one both must be picklable: `work` a function of a module (no lambda, no method of
    a live session), an item plain values (an `Order`, a row of a batch) instead of open things, the
    outcome too. Work that only ever runs here may take what it likes.
    """

    def map(
        self, work: Callable[[Item], Awaitable[Done]], items: Iterable[Item], *, limit: int
    ) -> AsyncGenerator[tuple[int, Done | Exception], None]:
        """Run `work` on every item, at most `limit` at a time; gives (place of the item, outcome) in the
        order in which they end.

        An exception is an outcome like any other and leaves the others alone. Closing the generator
        cancels what still runs and waits until it is over; take it in `contextlib.aclosing` where the
        loop may be left early. Items are taken as there is room, so they may be endless; what has ended
        waits for whoever reads, and nothing new starts meanwhile. Raises ValueError for a `limit` below 1.
        """
        ...


class InProcess:
    """Work as tasks of this process."""

    async def map(
        self, work: Callable[[Item], Awaitable[Done]], items: Iterable[Item], *, limit: int
    ) -> AsyncGenerator[tuple[int, Done | Exception], None]:
        if limit < 1:
            raise ValueError(f"limit is {limit}, at least 1 is needed")
        waiting = iter(enumerate(items))
        running: dict[asyncio.Task[Done], int] = {}
        ended: asyncio.Queue[asyncio.Task[Done]] = asyncio.Queue()
        try:
            while True:
                for at, item in islice(waiting, limit - len(running)):
                    task = asyncio.create_task(_awaited(work, item))
                    running[task] = at
                    task.add_done_callback(ended.put_nowait)
                if not running:
                    return
                task = await ended.get()
                yield running.pop(task), _outcome(task)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


async def _awaited(work: Callable[[Item], Awaitable[Done]], item: Item) -> Done:
    return await work(item)


def _outcome(task: asyncio.Task[Done]) -> Done | Exception:
    """What a task gave or raised. One that cancelled itself has failed: nobody here cancelled it."""
    if task.cancelled():
        return CrozeError("The work was cancelled from inside.", code="work_cancelled")
    error = task.exception()
    if error is None:
        return task.result()
    if isinstance(error, Exception):
        return error
    raise error
