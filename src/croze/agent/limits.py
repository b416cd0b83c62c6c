"""How far a turn may go: steps, money, and the same calls over and over.

Time is a deadline over the whole turn, kept by the session: it ends a running step too.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from croze.agent.budget import Leases, Spent
from croze.types.agent import Limits, StopReason
from croze.types.model import Cost
from croze.types.parts import ToolCall
from croze.types.team import ChildReport, Lease


@dataclass(slots=True)
class Meter:
    """What a turn has used so far, held against its limits. `started` is monotonic, in seconds. `halted`
    says why a hook wants the turn to end; empty where none does. `steps` and `cost` are those of the
    sub-agents that are over, too, as are their `refused` calls; `leases` tells of those that are open."""

    limits: Limits
    started: float
    steps: int = 0
    cost: float | None = 0.0
    same: int = 0
    refused: int = 0
    halted: Callable[[], str] | None = None
    leases: Leases = field(default_factory=Leases)
    _last: bytes = field(default=b"", repr=False)

    @property
    def spent(self) -> Spent:
        """What was used so far, by open sub-agents too."""
        total = Spent(self.steps, self.cost)
        opened = self.leases.spent
        total.add(opened.steps, opened.cost)
        return total

    @property
    def _bound(self) -> Spent:
        """What was used so far or is lent."""
        total = Spent(self.steps, self.cost)
        held = self.leases.held
        total.add(held.steps, held.cost)
        return total

    def left(self) -> Lease:
        """What can still be lent."""
        limits, used = self.limits, self._bound
        cost = limits.cost
        if cost is not None:
            cost = 0.0 if used.cost is None else max(0.0, cost - used.cost)
        seconds = limits.seconds
        if seconds is not None:
            seconds = max(0.0, seconds - (time.monotonic() - self.started))
        steps = None if limits.steps is None else max(0, limits.steps - used.steps)
        return Lease(steps=steps, seconds=seconds, cost=cost)

    def returned(self, child: str, report: ChildReport) -> None:
        """A sub-agent is over: what it used is this turn's, the rest of its lease returns."""
        self.leases.end(child)
        self.steps += report.steps
        self.refused += report.refused
        self.cost = None if self.cost is None or report.cost is None else self.cost + report.cost

    def spend(self, cost: Cost) -> None:
        """Count a request's price; one unknown price makes the sum unknown."""
        total = cost.total
        self.cost = None if self.cost is None or total is None else self.cost + total

    def calls(self, calls: Sequence[ToolCall]) -> None:
        """Note a step's calls, to see a model that goes round in a circle."""
        made = msgspec.json.encode([(call.name, call.args) for call in calls], order="sorted")
        self.same = self.same + 1 if calls and made == self._last else 1
        self._last = made

    def exceeded(self) -> tuple[StopReason, str] | None:
        """The limit that is reached, with a sentence that says so."""
        limits = self.limits
        if self.halted is not None and (why := self.halted()):
            return "hook", why
        used = self._bound
        if limits.steps is not None and used.steps >= limits.steps:
            return "steps", f"The limit of {limits.steps} steps is reached."
        if limits.cost is not None:
            if used.cost is None:
                return "cost", (
                    f"The provider did not report what a request used, so the limit of "
                    f"${limits.cost:g} can't be held."
                )
            if used.cost >= limits.cost:
                return (
                    "cost",
                    f"The limit of ${limits.cost:g} is reached (${self.spent.cost or 0:.4f} spent).",
                )
        if self.same >= limits.repeats:
            return "repeated", f"The same calls came {self.same} times in a row."
        return None
