"""Signals: the first ends the turn, the second the program."""

import asyncio
import os
import signal

import pytest

from croze.ui.cli.exits import Exit
from croze.ui.cli.interrupt import Interrupt


async def hung(interrupt: Interrupt, began: asyncio.Event, cancelled: asyncio.Event) -> None:
    """A turn that doesn't end when it is cancelled."""
    with interrupt.watching(), interrupt.turn(cancelled.set):
        began.set()
        await asyncio.Event().wait()


async def test_a_second_ctrl_c_ends_a_chat_whose_turn_does_not() -> None:
    interrupt, began, cancelled = Interrupt(leaves=False), asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(hung(interrupt, began, cancelled))
    await began.wait()
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.wait_for(cancelled.wait(), 20)
    assert interrupt.code is None
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 20)
    assert interrupt.code is Exit.INTERRUPTED


async def test_every_turn_has_its_first_ctrl_c() -> None:
    interrupt, count = Interrupt(leaves=False), 0
    for _turn in range(2):
        cancelled = asyncio.Event()
        with interrupt.turn(cancelled.set):
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.wait_for(cancelled.wait(), 20)
            count += 1
    assert (count, interrupt.code) == (2, None)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)],
)
async def test_outside_a_chat_the_first_signal_ends_the_turn_and_the_second_everything(
    number: signal.Signals, code: int
) -> None:
    interrupt, began, cancelled = Interrupt(), asyncio.Event(), asyncio.Event()

    async def run() -> None:
        interrupt.cancel = cancelled.set
        with interrupt.watching():
            began.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(run())
    await began.wait()
    os.kill(os.getpid(), number)
    await asyncio.wait_for(cancelled.wait(), 20)
    assert not task.done()
    os.kill(os.getpid(), number)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 20)
    assert interrupt.code == code
