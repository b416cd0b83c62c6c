"""Flows: nodes that prepare, execute and decide what comes next, over one shared, typed state.

A node never calls another: `post` gives an action's name and the flow's edges say where it leads. So a
flow can be read as a table, and each node be tested alone. With a `record` every node's end is an event,
and an interrupted flow goes on from the last one (`croze.teams.flow_record`).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Generic, TypeVar

import msgspec

from croze.agent.executor import InProcess
from croze.teams.flow_record import ITEM, START, Past
from croze.types.errors import CrozeError
from croze.types.team import FlowStepped

S = TypeVar("S")
P = TypeVar("P")
R = TypeVar("R")

DONE = "done"
"""The action that ends a flow."""

DECIDE_NEXT = "decide_next"
"""The action that gives the word back to whoever decides: in a flow inside of another, its end."""

MAX_STEPS = 1_000
"""Nodes that one run may pass; a flow that goes round in a circle ends there with an error."""

Record = Callable[[FlowStepped], Awaitable[object]]
"""Keeps an event of a flow, such as `Live.append`."""


class FlowError(CrozeError):
    """A flow that can't go on: an action without an edge, too many steps, a record that doesn't fit."""

    code = "flow"


class Node(Generic[S, P, R]):
    """One step. `prep` reads the shared state, `exec` works without it, `post` writes it and gives the
    action to follow. Only `exec` is tried again: `retries` more times after a `CrozeError`, `wait`
    seconds apart. `attempts` counts what the last run took."""

    retries: int = 0
    wait: float = 0.0
    attempts: int = 0

    @property
    def name(self) -> str:
        """Stands in errors and in the record; one of a kind in a flow."""
        return type(self).__name__

    async def prep(self, shared: S) -> P:
        raise NotImplementedError(f"{self.name}.prep")

    async def exec(self, prepared: P) -> R:
        raise NotImplementedError(f"{self.name}.exec")

    async def post(self, shared: S, prepared: P, result: R) -> str:
        raise NotImplementedError(f"{self.name}.post")

    async def run(self, shared: S, items: "Items | None" = None) -> str:
        """Prepare, execute, decide; gives the action."""
        prepared = await self.prep(shared)
        result, self.attempts = await self._tried(lambda: self.exec(prepared))
        return await self.post(shared, prepared, result)

    async def _tried(self, work: Callable[[], Awaitable[Any]]) -> tuple[Any, int]:
        for attempt in range(1, self.retries + 2):
            try:
                return await work(), attempt
            except CrozeError:
                if attempt > self.retries:
                    raise
                await asyncio.sleep(self.wait)
        raise FlowError(f"{self.name} has a negative number of retries.")


class BatchNode(Node[S, Sequence[P], list[R]], Generic[S, P, R]):
    """A node whose `prep` gives several items: `each` is executed for every one, at most `limit` at a
    time, tried again by itself, and `post` gets the list of results in the order of the items.

    Where `kept` is the results' type, each that is finished goes on record under its `key`, and a flow
    that is taken up again doesn't work on it once more. The first item that fails ends the batch: what
    runs then is finished (and recorded), what waits isn't begun.
    """

    limit: int = 1
    kept: Any = None

    def key(self, item: P) -> str:
        """What tells an item from the others on record; empty: its place."""
        return ""

    async def each(self, item: P) -> R:
        raise NotImplementedError(f"{self.name}.each")

    async def run(self, shared: S, items: "Items | None" = None) -> str:
        prepared = await self.prep(shared)
        result = await self._all(prepared, items or Items())
        return await self.post(shared, prepared, result)

    async def _all(self, prepared: Sequence[P], items: "Items") -> list[R]:
        keys = [self.key(item) or str(at) for at, item in enumerate(prepared)]
        results: dict[int, R] = {}
        for at, key in enumerate(keys):
            if self.kept is not None and key in items.known:
                results[at] = items.decoded(self.name, key, self.kept)
        failure: Exception | None = None
        self.attempts = 1

        async def work(at: int) -> tuple[R, int] | None:
            if failure is not None:
                return None
            began = time.monotonic()
            done, tries = await self._tried(lambda: self.each(prepared[at]))
            if self.kept is not None:
                await items.keep(self.name, keys[at], done, tries, time.monotonic() - began)
            return done, tries

        left = [at for at in range(len(prepared)) if at not in results]
        async with aclosing(InProcess().map(work, left, limit=self.limit)) as outcomes:
            async for place, outcome in outcomes:
                if isinstance(outcome, Exception):
                    failure = failure or _placed(outcome, item=keys[left[place]])
                elif outcome is not None:
                    results[left[place]], tries = outcome
                    self.attempts = max(self.attempts, tries)
        if failure is not None:
            raise failure
        return [results[at] for at in range(len(prepared))]


class Items:
    """The items of a batch that are finished already, as recorded; and where the next ones are kept."""

    def __init__(
        self,
        known: Mapping[str, Any] | None = None,
        step: Callable[..., Awaitable[None]] | None = None,
    ) -> None:
        self.known = dict(known or {})
        self._step = step

    def decoded(self, node: str, key: str, kind: Any) -> Any:
        return _decoded(self.known[key], kind, f"the item {key} of {node}")

    async def keep(self, node: str, key: str, result: object, tries: int, seconds: float) -> None:
        if self._step is not None:
            state = {"item": key, "result": msgspec.to_builtins(result)}
            await self._step(node, ITEM, state, tries, seconds)


class Flow(Generic[S]):
    """Nodes and edges: `edges` maps (node, action) to the next node; an action of `ends` ends the flow
    wherever it has no edge. With `record` it goes on record as `name` and `run_id`; the state must then
    be a Struct or dataclass of JSON values, and the nodes' names be different."""

    def __init__(
        self,
        start: Node[S, Any, Any],
        edges: Mapping[tuple[Node[S, Any, Any], str], Node[S, Any, Any]],
        *,
        name: str = "flow",
        ends: Sequence[str] = (DONE,),
        record: Record | None = None,
        run_id: str = "",
        watch: Callable[[str, str], None] | None = None,
    ) -> None:
        self.name = name
        self._start = start
        self._edges = dict(edges)
        self._ends = frozenset(ends)
        self._record = record
        self._run_id = run_id
        self._watch = watch
        nodes = {start, *(node for node, _ in self._edges), *self._edges.values()}
        self._nodes = {node.name: node for node in nodes}
        if record is not None and len(self._nodes) < len(nodes):
            raise FlowError(f"Two nodes of {name} have the same name, so it can't go on record.")

    async def run(self, shared: S) -> S:
        """Run to the end; gives `shared` back. `watch` is told each node's name and its action."""
        state = msgspec.to_builtins(shared) if self._record else {}
        await self._step(self._start.name, START, state, 1, None)
        return await self._from(self._start, shared, {}, "")

    async def go_on(self, past: Past, kind: type[S]) -> S:
        """Take an interrupted run up where its record ends; gives the state. Raises FlowError where the
        record doesn't fit this flow or the state's type."""
        shared: S = _decoded(past.state, kind, f"the state of {self.name}")
        self._run_id = past.run_id
        node = self._nodes.get(past.node)
        if node is None:
            raise FlowError(
                f"{self.name} has no node {past.node!r}, where its record ends.",
                hint="It was recorded by another version: begin anew.",
                node=past.node,
                action=past.action,
            )
        if past.action == START:
            return await self._from(node, shared, past.items, "")
        following = self._after(node, past.action)
        if following is None:
            return shared
        return await self._from(following, shared, past.items, past.action)

    async def _from(
        self, node: Node[S, Any, Any], shared: S, known: Mapping[str, Any], action: str
    ) -> S:
        for _step in range(MAX_STEPS):
            began = time.monotonic()
            try:
                action = await node.run(shared, Items(known, self._step))
            except Exception as error:
                _placed(error, flow=self.name, node=node.name, action=action)
                raise
            known = {}
            if self._watch is not None:
                self._watch(node.name, action)
            state = msgspec.to_builtins(shared) if self._record else {}
            await self._step(node.name, action, state, node.attempts, time.monotonic() - began)
            following = self._after(node, action)
            if following is None:
                return shared
            node = following
        raise FlowError(f"The flow {self.name} passed {MAX_STEPS} nodes without an end.")

    def _after(self, node: Node[S, Any, Any], action: str) -> Node[S, Any, Any] | None:
        """The node that follows; None at the flow's end."""
        following = self._edges.get((node, action))
        if following is None and action not in self._ends:
            raise FlowError(
                f"{node.name} ended with {action!r}, and nothing in {self.name} follows from that.",
                node=node.name,
                action=action,
            )
        return following

    async def _step(
        self, node: str, action: str, state: dict[str, Any], tries: int, seconds: float | None
    ) -> None:
        if self._record is None:
            return
        await self._record(
            FlowStepped(
                flow=self.name,
                run_id=self._run_id,
                node=node,
                action=action,
                state=state,
                attempts=tries,
                seconds=None if seconds is None else round(seconds, 3),
            )
        )


def _decoded(value: Any, kind: Any, what: str) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise FlowError(
            f"What is on record of {what} can't be used: {error}.",
            hint="It was recorded by another version: begin anew.",
        ) from error


def _placed(error: Exception, **where: str) -> Exception:
    """The error, with the place in the flow where it came up."""
    if isinstance(error, CrozeError):
        error.params = {**where, **error.params}
    error.add_note(", ".join(f"{name} {value!r}" for name, value in where.items() if value))
    return error
