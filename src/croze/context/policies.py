"""When and how the context is made smaller: a policy looks at the log and yields at most one event."""

from collections.abc import Callable, Sequence

from croze.types.context import Budget, Context
from croze.types.event import Compacted, Event

Policy = Callable[[Sequence[Event], Context, Budget], Compacted | None]
"""A pure decision: the log, the context as it would be sent, and the budget."""


def keep_all(_events: Sequence[Event], _context: Context, _budget: Budget) -> Compacted | None:
    """Never changes the context (the policy `none`)."""
    return None
