"""Flows on record: every node's end is an event, and an interrupted run goes on from the last one."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from croze.teams.flow import DONE, BatchNode, Flow, FlowError, Node
from croze.teams.flow_record import Past, past
from croze.types.errors import CrozeError, ModelError
from croze.types.team import FlowStepped

PAGE = Path(__file__).parents[2] / "docs" / "flow.md"


class Shared(Struct):
    words: list[str] = []
    lengths: list[int] = []
    total: int = 0


class Killed(BaseException):
    """The process dies here."""


class Tape:
    """Keeps the events as a log would: through JSON; dies after `room` of them."""

    def __init__(self, room: int = 1_000) -> None:
        self.steps: list[FlowStepped] = []
        self.room = room

    async def __call__(self, step: FlowStepped) -> None:
        if len(self.steps) >= self.room:
            raise Killed
        self.steps.append(msgspec.json.decode(msgspec.json.encode(step), type=FlowStepped))


class Lengths(BatchNode[Shared, str, int]):
    kept = int

    def __init__(self, limit: int = 1, bad: str = "") -> None:
        self.limit = limit
        self.bad = bad
        self.done: list[str] = []
        self.most = self.running = 0

    def key(self, item: str) -> str:
        return item

    async def prep(self, shared: Shared) -> Sequence[str]:
        return shared.words

    async def each(self, item: str) -> int:
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(3):
            await asyncio.sleep(0)
        self.running -= 1
        if item == self.bad:
            raise ModelError("unreadable")
        self.done.append(item)
        return len(item)

    async def post(self, shared: Shared, prepared: Sequence[str], result: list[int]) -> str:
        shared.lengths = result
        return "add"


class Add(Node[Shared, list[int], int]):
    async def prep(self, shared: Shared) -> list[int]:
        return shared.lengths

    async def exec(self, prepared: list[int]) -> int:
        return sum(prepared)

    async def post(self, shared: Shared, prepared: list[int], result: int) -> str:
        shared.total = result
        return DONE


def build(tape: Tape, lengths: Lengths) -> Flow[Shared]:
    add = Add()
    edges: dict[tuple[Node[Shared, Any, Any], str], Node[Shared, Any, Any]] = {
        (lengths, "add"): add
    }
    return Flow(lengths, edges, name="sum", record=tape, run_id="r1")


WORDS = ["a", "bb", "ccc", "dddd"]


async def test_the_record_tells_of_the_start_each_item_and_each_node() -> None:
    tape = Tape()
    await build(tape, Lengths()).run(Shared(WORDS))
    told = [(step.node, step.action) for step in tape.steps]
    assert told == [
        ("Lengths", "start"),
        *[("Lengths", "item")] * 4,
        ("Lengths", "add"),
        ("Add", "done"),
    ]
    assert tape.steps[-1].state == {"words": WORDS, "lengths": [1, 2, 3, 4], "total": 10}
    assert {step.run_id for step in tape.steps} == {"r1"}


@given(room=st.integers(1, 7), again=st.integers(0, 7), limit=st.integers(1, 4))
def test_a_run_that_dies_anywhere_and_again_ends_as_an_uninterrupted_one(
    room: int, again: int, limit: int
) -> None:
    async def story() -> None:
        tape, worked = Tape(room), list[str]()
        lengths = Lengths(limit)
        try:
            state = await build(tape, lengths).run(Shared(WORDS))
        except Killed:
            for left in (again, 100):
                worked += lengths.done
                known = past(tape.steps, "sum")
                assert known is not None
                recorded = set(known.items)
                tape.room = len(tape.steps) + left
                lengths = Lengths(limit)
                try:
                    state = await build(tape, lengths).go_on(known, Shared)
                except Killed:
                    continue
                assert not recorded & set(lengths.done)
                break
        assert state == Shared(WORDS, [1, 2, 3, 4], 10)

    asyncio.run(story())


async def test_items_run_beside_each_other_up_to_the_limit() -> None:
    lengths = Lengths(limit=3)
    state = await build(Tape(), lengths).run(Shared(WORDS))
    assert lengths.most == 3
    assert state.lengths == [1, 2, 3, 4]


async def test_an_item_that_fails_is_named_and_those_beside_it_stay_finished() -> None:
    tape, lengths = Tape(), Lengths(limit=2, bad="bb")
    with pytest.raises(ModelError, match="unreadable") as caught:
        await build(tape, lengths).run(Shared(WORDS))
    assert caught.value.params == {"flow": "sum", "node": "Lengths", "action": "", "item": "bb"}
    known = past(tape.steps, "sum")
    assert known is not None
    assert set(known.items) == {"a", "ccc"} - ({"ccc"} - set(lengths.done))
    assert "dddd" not in lengths.done
    state = await build(tape, Lengths()).go_on(known, Shared)
    assert state.total == 10


async def test_an_error_names_the_node_and_the_action_that_led_to_it() -> None:
    class Broken(Add):
        async def exec(self, prepared: list[int]) -> int:
            raise CrozeError("no sum")

    lengths, broken = Lengths(), Broken()
    with pytest.raises(CrozeError, match="no sum") as caught:
        await Flow(lengths, {(lengths, "add"): broken}, name="sum").run(Shared(["a"]))
    assert caught.value.params == {"flow": "sum", "node": "Broken", "action": "add"}
    assert any("'Broken'" in note for note in caught.value.__notes__)


async def test_a_state_of_another_shape_is_refused_and_says_so() -> None:
    bad = Past("r", "Lengths", "add", {"words": "no list"})
    with pytest.raises(FlowError, match="state of sum can't be used"):
        await build(Tape(), Lengths()).go_on(bad, Shared)


async def test_a_node_that_the_flow_no_longer_has_is_named() -> None:
    gone = Past("r", "Gone", "add", {})
    with pytest.raises(FlowError, match="no node 'Gone'"):
        await build(Tape(), Lengths()).go_on(gone, Shared)


async def test_a_flow_that_was_over_is_not_run_again() -> None:
    tape, lengths = Tape(), Lengths()
    await build(tape, lengths).run(Shared(WORDS))
    known = past(tape.steps, "sum")
    assert known is not None
    state = await build(Tape(0), Lengths()).go_on(known, Shared)
    assert state.total == 10


def test_two_nodes_of_one_name_can_not_go_on_record() -> None:
    first, second = Add(), Add()
    with pytest.raises(FlowError, match="same name"):
        Flow(first, {(first, "again"): second}, record=Tape())


def test_other_flows_and_other_runs_are_no_part_of_a_past() -> None:
    steps = [
        FlowStepped("sum", "r1", "Lengths", "start", {"total": 1}),
        FlowStepped("other", "r2", "X", "done", {}),
        FlowStepped("sum", "r3", "Lengths", "item", {"item": "a", "result": 1}),
    ]
    found = past(steps, "sum")
    assert found == Past("r1", "Lengths", "start", {"total": 1})
    assert past(steps, "sum", "r9") is None


async def test_the_example_of_the_page_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    scope: dict[str, Any] = {"__name__": "example"}
    exec("\n".join(blocks), scope)
    state = await scope["flow"].run(scope["Shared"](texts=["one two", "three"]))
    assert state.total == 3
    tape = Tape()
    flow = Flow(scope["count"], {(scope["count"], "add"): scope["add"]}, name="words", record=tape)
    await flow.run(scope["Shared"](texts=["x y", "z"]))
    assert (await scope["take_up"](tape.steps[:2], flow)).total == 3


async def test_a_run_that_began_in_the_middle_goes_on_from_there() -> None:
    tape = Tape(1)
    add = Add()
    lengths = Lengths()
    with pytest.raises(Killed):
        await Flow(add, {(lengths, "add"): add}, name="sum", record=tape).run(Shared(WORDS, [5, 6]))
    known = past(tape.steps, "sum")
    assert known is not None
    state = await build(Tape(), lengths).go_on(known, Shared)
    assert (state.total, lengths.done) == (11, [])
