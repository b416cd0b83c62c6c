"""Flows: nodes in the order of their actions, retries, batches, and clear ends."""

from dataclasses import dataclass, field

import pytest

from croze.teams.flow import DONE, BatchNode, Flow, FlowError, Node
from croze.types.errors import CrozeError, ModelError


@dataclass
class Shared:
    number: int = 0
    seen: list[str] = field(default_factory=list)


class Count(Node[Shared, int, int]):
    async def prep(self, shared: Shared) -> int:
        return shared.number

    async def exec(self, prepared: int) -> int:
        return prepared + 1

    async def post(self, shared: Shared, prepared: int, result: int) -> str:
        shared.number = result
        return "again" if result < 3 else DONE


class Flaky(Node[Shared, None, str]):
    retries = 2

    def __init__(self, failures: int, error: Exception) -> None:
        self.failures = failures
        self.error = error
        self.tries = 0

    async def prep(self, shared: Shared) -> None:
        return None

    async def exec(self, prepared: None) -> str:
        self.tries += 1
        if self.tries <= self.failures:
            raise self.error
        return "ok"

    async def post(self, shared: Shared, prepared: None, result: str) -> str:
        shared.seen.append(result)
        return DONE


class Each(BatchNode[Shared, int, int]):
    retries = 1

    def __init__(self) -> None:
        self.tries: list[int] = []

    async def prep(self, shared: Shared) -> list[int]:
        return [3, 2, 1]

    async def each(self, item: int) -> int:
        self.tries.append(item)
        if item == 2 and self.tries.count(2) == 1:
            raise ModelError("once")
        return item * 10

    async def post(self, shared: Shared, prepared: object, result: list[int]) -> str:
        shared.seen = [str(n) for n in result]
        return DONE


async def test_a_flow_follows_the_actions_until_done() -> None:
    count = Count()
    steps: list[tuple[str, str]] = []
    flow = Flow(count, {(count, "again"): count}, watch=lambda *step: steps.append(step))
    assert (await flow.run(Shared())).number == 3
    assert steps == [("Count", "again"), ("Count", "again"), ("Count", DONE)]


async def test_an_action_without_an_edge_is_an_error_that_names_both() -> None:
    with pytest.raises(FlowError, match="Count ended with 'again'"):
        await Flow(Count(), {}).run(Shared())


async def test_a_flow_that_never_ends_is_stopped() -> None:
    class Round(Count):
        async def post(self, shared: Shared, prepared: int, result: int) -> str:
            return "again"

    node = Round()
    with pytest.raises(FlowError, match="without an end"):
        await Flow(node, {(node, "again"): node}).run(Shared())


async def test_exec_is_tried_again_as_often_as_the_node_says() -> None:
    node = Flaky(2, ModelError("busy"))
    assert (await Flow(node, {}).run(Shared())).seen == ["ok"]
    assert node.tries == 3
    stubborn = Flaky(3, ModelError("busy"))
    with pytest.raises(CrozeError, match="busy"):
        await Flow(stubborn, {}).run(Shared())
    assert stubborn.tries == 3


async def test_a_mistake_in_the_code_is_not_tried_again() -> None:
    node = Flaky(1, KeyError("bug"))
    with pytest.raises(KeyError):
        await Flow(node, {}).run(Shared())
    assert node.tries == 1


async def test_a_batch_keeps_its_order_and_tries_only_the_failed_item_again() -> None:
    node = Each()
    assert (await Flow(node, {}).run(Shared())).seen == ["30", "20", "10"]
    assert node.tries == [3, 2, 2, 1]
