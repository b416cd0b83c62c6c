"""The exit codes of `croze`, part of its contract with scripts."""

from enum import IntEnum

from croze.types.agent import StopReason
from croze.types.errors import CrozeError, RetriesExhausted, UsageError
from croze.types.event import Stopped


class Exit(IntEnum):
    DONE = 0
    FAILED = 1
    USAGE = 2
    LIMIT = 3
    REFUSED = 4
    RETRIES = 75
    HUNG_UP = 129
    INTERRUPTED = 130
    PIPE_CLOSED = 141
    TERMINATED = 143


_REASONS: dict[StopReason, Exit] = {
    "done": Exit.DONE,
    "cancelled": Exit.INTERRUPTED,
    "steps": Exit.LIMIT,
    "seconds": Exit.LIMIT,
    "cost": Exit.LIMIT,
    "repeated": Exit.LIMIT,
    "hook": Exit.REFUSED,
    "failed": Exit.FAILED,
    "retries_exhausted": Exit.RETRIES,
}


def exit_of_turn(stopped: Stopped) -> Exit:
    """A turn that is done while a refusal stands is not a success."""
    code = _REASONS[stopped.reason]
    return Exit.REFUSED if code is Exit.DONE and stopped.refused else code


def exit_of_error(error: CrozeError) -> Exit:
    if isinstance(error, UsageError):
        return Exit.USAGE
    return Exit.RETRIES if isinstance(error, RetriesExhausted) else Exit.FAILED
