"""What a session has to say when it is opened, before anybody watches it."""

from collections.abc import Sequence

from croze.types.event import Event, Notice, Stopped


def opening_notices(events: Sequence[Event]) -> list[Event]:
    """The notices since the last turn, in their order."""
    found: list[Event] = []
    for event in reversed(events):
        if isinstance(event.body, Stopped):
            break
        if isinstance(event.body, Notice):
            found.append(event)
    return found[::-1]
