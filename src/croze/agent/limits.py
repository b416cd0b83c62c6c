"""How far a turn may go: steps, money, and the same calls over and over.

Time is a deadline over the whole turn, kept by the session: it ends a running step too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from croze.types.agent import Limits, StopReason
from croze.types.model import Cost
from croze.types.parts import ToolCall


@dataclass(slots=True)
class Meter:
    """What a turn has used so far, held against its limits. `started` is monotonic, in seconds. `halted`
    says why a hook wants the turn to end; empty where none does."""

    limits: Limits
    started: float
    steps: int = 0
    cost: float | None = 0.0
    same: int = 0
    halted: Callable[[], str] | None = None
    _last: bytes = field(default=b"", repr=False)

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
        if limits.steps is not None and self.steps >= limits.steps:
            return "steps", f"The limit of {limits.steps} steps is reached."
        if limits.cost is not None:
            if self.cost is None:
                return "cost", (
                    f"The provider did not report what a request used, so the limit of "
                    f"${limits.cost:g} can't be held."
                )
            if self.cost >= limits.cost:
                return "cost", f"The limit of ${limits.cost:g} is reached (${self.cost:.4f} spent)."
        if self.same >= limits.repeats:
            return "repeated", f"The same calls came {self.same} times in a row."
        return None
