"""Work that is finished though the task that waits for it is cancelled."""

import asyncio
from collections.abc import Awaitable


async def shielded(work: Awaitable[None]) -> None:
    """Finish `work` even where the task is cancelled meanwhile; the cancel comes after it."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled
