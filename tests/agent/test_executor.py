"""The executor: bounded work, outcomes as they come, failures as values, nothing left running."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.agent.executor import Executor, InProcess
from croze.types.errors import CrozeError


async def double(item: int) -> int:
    return item * 2


async def test_outcomes_carry_the_place_of_their_item_and_come_as_they_end() -> None:
    gates = [asyncio.Event() for _ in range(3)]

    async def work(at: int) -> str:
        await gates[at].wait()
        return f"item {at}"

    executor: Executor = InProcess()
    came = []
    async with aclosing(executor.map(work, range(3), limit=3)) as outcomes:
        for at in (2, 0, 1):
            gates[at].set()
            came.append(await anext(outcomes))
    assert came == [(2, "item 2"), (0, "item 0"), (1, "item 1")]


async def test_a_failure_is_an_outcome_and_leaves_the_others_alone() -> None:
    async def work(item: int) -> int:
        if item == 1:
            raise KeyError("one")
        return item

    found = dict([pair async for pair in InProcess().map(work, [0, 1, 2], limit=2)])
    assert found[0] == 0
    assert found[2] == 2
    assert isinstance(found[1], KeyError)


async def test_work_that_cancels_itself_has_failed() -> None:
    async def work(item: int) -> int:
        raise asyncio.CancelledError

    ((at, outcome),) = [pair async for pair in InProcess().map(work, [7], limit=1)]
    assert at == 0
    assert isinstance(outcome, CrozeError)
    assert outcome.code == "work_cancelled"


async def test_closing_the_iterator_cancels_what_runs_and_waits_for_it() -> None:
    ended: list[int] = []

    async def work(item: int) -> int:
        if item == 0:
            return item
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(item)
        return item

    async with aclosing(InProcess().map(work, range(10), limit=4)) as outcomes:
        assert await anext(outcomes) == (0, 0)
        await asyncio.sleep(0)
    assert sorted(ended) == [1, 2, 3]


async def test_a_cancel_of_the_reader_is_raised_and_ends_the_work() -> None:
    begun = asyncio.Event()
    ended = asyncio.Event()

    async def work(item: int) -> int:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return item

    async def read() -> None:
        async for _ in InProcess().map(work, [0], limit=1):
            pass

    reading = asyncio.create_task(read())
    await asyncio.wait_for(begun.wait(), 5)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert ended.is_set()


async def test_items_are_taken_only_as_there_is_room() -> None:
    taken: list[int] = []

    def endless() -> Iterator[int]:
        at = 0
        while True:
            taken.append(at)
            yield at
            at += 1

    async with aclosing(InProcess().map(double, endless(), limit=3)) as outcomes:
        assert await anext(outcomes) == (0, 0)
        assert len(taken) == 3
        assert await anext(outcomes) == (1, 2)
        assert len(taken) == 4


async def test_what_the_items_raise_reaches_the_reader_and_ends_the_rest() -> None:
    ended = asyncio.Event()

    def items() -> Iterator[int]:
        yield 0
        raise OSError("the list is torn")

    async def work(item: int) -> int:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return item

    with pytest.raises(OSError, match="torn"):
        async for _ in InProcess().map(work, items(), limit=2):
            pass


async def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="limit"):
        await anext(InProcess().map(double, [1], limit=0))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.booleans(), max_size=30), st.integers(1, 8))
def test_every_item_has_one_outcome_and_never_more_than_the_limit_run(
    fails: list[bool], limit: int
) -> None:
    running = most = 0

    async def work(fail: bool) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        if fail:
            raise RuntimeError("failed")
        return "done"

    async def collect() -> list[tuple[int, str | Exception]]:
        return [pair async for pair in InProcess().map(work, fails, limit=limit)]

    found = asyncio.run(collect())
    assert sorted(at for at, _ in found) == list(range(len(fails)))
    assert all(isinstance(outcome, RuntimeError) == fails[at] for at, outcome in found)
    assert most <= limit
