"""Repair of a log that ended in the middle of something: an append, never a rewrite."""

from collections.abc import Callable, Sequence

from croze.text.tokens import estimate
from croze.types.event import (
    Body,
    Event,
    ModelCalled,
    ModelSaid,
    Notice,
    Stopped,
    ToolReturned,
    ToolStarted,
    UserSaid,
)
from croze.types.parts import ToolCall
from croze.types.team import TeamSaid

INTERRUPTED = (
    "This call was interrupted before its outcome was recorded. Whether it took effect is unknown: "
    "look before you rely on it or repeat it."
)
NOT_RUN = "This call was not run: the session was interrupted before it began."
GO_ON = (
    "Your last reply was interrupted, or the session was. Go on from where you were; if the task is "
    "done, say so."
)
BREAK = Notice(
    level="info",
    code="interrupted",
    text="The last turn did not come to its end. What it left open is closed; the session goes on here.",
)
"""Stands where a turn broke off that never stopped: what follows is another turn's."""


def used(events: Sequence[Event]) -> bool:
    """Whether anything was ever said in this log."""
    return any(isinstance(event.body, UserSaid | TeamSaid) for event in events)


def unpaired(events: Sequence[Event]) -> list[tuple[ToolCall, bool]]:
    """The calls of the log that have no result, oldest first; True where the call had begun.

    Only the last reply can have any: a new request is never sent before every call is paired.
    """
    pending: dict[str, ToolCall] = {}
    started: set[str] = set()
    for event in reversed(events):
        match event.body:
            case ToolStarted(call_id=call_id):
                started.add(call_id)
            case ModelSaid(purpose="main"):
                pending = {call.id: call for call in event.body.parts if isinstance(call, ToolCall)}
                break
            case _:
                pass
    for event in reversed(events):
        match event.body:
            case ToolReturned(call_id=call_id):
                pending.pop(call_id, None)
            case ModelSaid(purpose="main"):
                break
            case _:
                pass
    return [(call, call.id in started) for call in pending.values()]


def repairs(events: Sequence[Event], new_id: Callable[[], str]) -> list[Body]:
    """The results that close the unpaired calls of an interrupted log."""
    bodies: list[Body] = []
    for call, begun in unpaired(events):
        from croze.agent.child import left_behind  # only where something was interrupted

        text = INTERRUPTED if begun else NOT_RUN
        text = "\n\n".join(filter(None, (text, left_behind(events, call.id))))
        bodies.append(
            ToolReturned(
                call_id=call.id,
                message_id=new_id(),
                name=call.name,
                ok=False,
                message="interrupted, outcome unknown" if begun else "not run",
                text=text,
                code="interrupted" if begun else "not_run",
                tokens=estimate(text),
            )
        )
    return bodies


def closing(events: Sequence[Event], new_id: Callable[[], str]) -> list[Body]:
    """What brings an interrupted log into a state to go on from; nothing where it is in one."""
    bodies = repairs(events, new_id)
    if bodies or (unfinished(events) and events[-1].body != BREAK):
        bodies.append(BREAK)
    return bodies


def unfinished(events: Sequence[Event]) -> bool:
    """Whether something was said or begun that no turn has brought to an end. A conversation that was
    imported with its replies has no open turn."""
    answered = False
    for event in reversed(events):
        match event.body:
            case Stopped():
                return False
            case ModelCalled(purpose="main"):
                return True
            case UserSaid() if not answered:
                return True
            case ModelSaid(purpose="main"):
                answered = True
            case _:
                pass
    return False
