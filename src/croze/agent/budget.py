"""Budgets as a tree: what an agent can still lend to its sub-agents, and what they have of it."""

from typing import Protocol, TypeVar

from msgspec import Struct, field

from croze.types.agent import Limits
from croze.types.team import Lease

KEPT = 0.1
"""The share of the money and time left that stays with the caller (and one step), so that it can make
something of what comes back."""


class Spent(Struct):
    """What was used so far, one's sub-agents included; `cost` None: unknown."""

    steps: int = 0
    cost: float | None = 0.0

    def add(self, steps: int, cost: float | None) -> None:
        self.steps += steps
        self.cost = None if self.cost is None or cost is None else self.cost + cost


class Spender(Protocol):
    """One that works on a lease."""

    @property
    def spent(self) -> Spent:
        """What it has used since it was opened."""
        ...


class Leases(Struct):
    """What open sub-agents may use of a turn's budget. One that works holds all that it may still use;
    one that is idle holds nothing, but what it has used counts."""

    _open: dict[str, tuple[Spender, Lease | None]] = field(default_factory=dict)

    def hold(self, child: str, spender: Spender, until: Lease) -> None:
        """A sub-agent works; together with what it has used it may use so much."""
        self._open[child] = spender, until

    def works(self, child: str) -> bool:
        return child in self._open and self._open[child][1] is not None

    def idle(self, child: str) -> None:
        """A sub-agent works no more, for now: what it has not used returns."""
        if child in self._open:
            self._open[child] = self._open[child][0], None

    def end(self, child: str) -> None:
        """A sub-agent is over; what it used is counted elsewhere from now on."""
        self._open.pop(child, None)

    @property
    def spent(self) -> Spent:
        """What those that are open have used so far."""
        total = Spent()
        for spender, _ in self._open.values():
            spent = spender.spent
            total.add(spent.steps, spent.cost)
        return total

    @property
    def held(self) -> Spent:
        """What those that are open have used or may still use."""
        total = Spent()
        for spender, until in self._open.values():
            spent = spender.spent
            lent = until or Lease()
            cost = None if spent.cost is None else max(lent.cost or 0.0, spent.cost)
            total.add(max(lent.steps or 0, spent.steps), cost)
        return total


def within(first: Lease, second: Lease) -> Lease:
    """What both allow."""
    return Lease(
        steps=_least(first.steps, second.steps),
        seconds=_least(first.seconds, second.seconds),
        cost=_least(first.cost, second.cost),
    )


def share_of(left: Lease, share: int, waves: int = 1) -> Lease | None:
    """One of `share` equal parts of what is left, less what the caller keeps; None where it is too little
    for a single request. Time passes for all that work at once: of it each of the `waves` that follow
    one another gets its part."""
    steps = left.steps
    if steps is not None:
        if steps < 2:
            return None
        steps = max(1, (steps - 1) // share)
    cost, seconds = left.cost, left.seconds
    if (cost is not None and cost <= 0) or (seconds is not None and seconds <= 0):
        return None
    return Lease(
        steps=steps,
        cost=None if cost is None else cost * (1 - KEPT) / share,
        seconds=None if seconds is None else seconds * (1 - KEPT) / waves,
    )


def rest_of(lease: Lease, spent: Spent, seconds: float) -> Lease:
    """What of a lease is not yet used, after so many seconds; unknown costs use up all of it."""
    cost = lease.cost
    if cost is not None:
        cost = 0.0 if spent.cost is None else max(0.0, cost - spent.cost)
    return Lease(
        steps=None if lease.steps is None else max(0, lease.steps - spent.steps),
        cost=cost,
        seconds=None if lease.seconds is None else max(0.0, lease.seconds - seconds),
    )


def on_top(lease: Lease, spent: Spent, seconds: float) -> Lease:
    """A lease together with what was used before it."""
    cost = lease.cost
    if cost is not None:
        cost = 0.0 if spent.cost is None else spent.cost + cost
    return Lease(
        steps=None if lease.steps is None else lease.steps + spent.steps,
        cost=cost,
        seconds=None if lease.seconds is None else lease.seconds + seconds,
    )


def limited(limits: Limits, lease: Lease) -> Limits:
    """An agent's own limits, and within what was lent to it."""
    own = Lease(steps=limits.steps, seconds=limits.seconds, cost=limits.cost)
    both = within(own, lease)
    return Limits(steps=both.steps, seconds=both.seconds, cost=both.cost, repeats=limits.repeats)


_Number = TypeVar("_Number", int, float)


def _least(first: _Number | None, second: _Number | None) -> _Number | None:
    if first is None or second is None:
        return first if second is None else second
    return min(first, second)
