"""Flows: nodes that prepare, execute and decide what comes next, over one shared, typed state.

A node never calls another: `post` gives an action's name and the flow's edges say where it leads. So a
flow can be read as a table, and each node be tested alone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from croze.types.errors import CrozeError

S = TypeVar("S")
P = TypeVar("P")
R = TypeVar("R")

DONE = "done"
"""The action that ends a flow."""

MAX_STEPS = 1_000
"""Nodes that one run may pass; a flow that goes round in a circle ends there with an error."""


class FlowError(CrozeError):
    """A flow that can't go on: an action without an edge, or too many steps."""

    code = "flow"


class Node(Generic[S, P, R]):
    """One step. `prep` reads the shared state, `exec` works without it, `post` writes it and gives the
    action to follow. Only `exec` is tried again: `retries` more times after a `CrozeError`, `wait`
    seconds apart."""

    retries: int = 0
    wait: float = 0.0

    @property
    def name(self) -> str:
        return type(self).__name__

    async def prep(self, shared: S) -> P:
        raise NotImplementedError(f"{self.name}.prep")

    async def exec(self, prepared: P) -> R:
        raise NotImplementedError(f"{self.name}.exec")

    async def post(self, shared: S, prepared: P, result: R) -> str:
        raise NotImplementedError(f"{self.name}.post")

    async def run(self, shared: S) -> str:
        """Prepare, execute, decide; gives the action."""
        prepared = await self.prep(shared)
        result = await self._tried(lambda: self.exec(prepared))
        return await self.post(shared, prepared, result)

    async def _tried(self, work: Callable[[], Awaitable[Any]]) -> Any:
        for attempt in range(self.retries + 1):
            try:
                return await work()
            except CrozeError:
                if attempt == self.retries:
                    raise
                await asyncio.sleep(self.wait)
        raise FlowError(f"{self.name} has a negative number of retries")


class BatchNode(Node[S, Sequence[P], list[R]], Generic[S, P, R]):
    """A node whose `prep` gives several items: `each` is executed for one after the other, tried again
    by itself, and `post` gets the list of results in the order of the items."""

    async def each(self, item: P) -> R:
        raise NotImplementedError(f"{self.name}.each")

    async def exec(self, prepared: Sequence[P]) -> list[R]:
        return [await self._tried(lambda item=item: self.each(item)) for item in prepared]  # type: ignore[misc]

    async def run(self, shared: S) -> str:
        prepared = await self.prep(shared)
        return await self.post(shared, prepared, await self.exec(prepared))


class Flow(Generic[S]):
    """Nodes and edges: `edges` maps (node, action) to the next node; the action `done` ends the flow
    wherever it has no edge."""

    def __init__(
        self,
        start: Node[S, Any, Any],
        edges: Mapping[tuple[Node[S, Any, Any], str], Node[S, Any, Any]],
        *,
        watch: Callable[[str, str], None] | None = None,
    ) -> None:
        self._start = start
        self._edges = dict(edges)
        self._watch = watch

    async def run(self, shared: S) -> S:
        """Run to the end; gives `shared` back. `watch` is told each node's name and its action."""
        node = self._start
        for _step in range(MAX_STEPS):
            action = await node.run(shared)
            if self._watch is not None:
                self._watch(node.name, action)
            following = self._edges.get((node, action))
            if following is None:
                if action == DONE:
                    return shared
                raise FlowError(
                    f"{node.name} ended with {action!r}, and nothing follows from that."
                )
            node = following
        raise FlowError(f"The flow passed {MAX_STEPS} nodes without an end.")
