"""What must hold of a log's events, whoever wrote them: each finding is told once, nothing is raised."""

from collections.abc import Iterable

from croze.types.context import Check
from croze.types.event import (
    Body,
    Compacted,
    Event,
    FactAdded,
    ModelCalled,
    ModelSaid,
    ToolReturned,
    ToolStarted,
    Unknown,
    UserSaid,
)
from croze.types.parts import ToolCall

_OF_OTHERS = frozenset(
    ("start_without_call", "result_without_call", "continues_nothing", "compacts_nothing")
)
"""Findings that look back to another event."""
WARNINGS = _OF_OTHERS | {"event_order", "message_twice", "result_twice", "history_ahead"}
"""The codes of all findings."""


class EventChecks:
    """A fold: `feed` costs what the event holds, `take` gives what was found since the last time.

    Behind an event that this version can't read, nobody can say what isn't there.
    """

    def __init__(self) -> None:
        self._found: list[Check] = []
        self._calls: set[str] = set()
        self._returned: set[str] = set()
        self._messages: set[str] = set()
        self._last = 0
        self._blind = False

    def feed(self, event: Event) -> None:
        """Check one event against those before it."""
        for code, text in self._wrong(event):
            if self._blind and code in _OF_OTHERS:
                continue
            self._found.append(
                Check(level="warning", code=code, text=text, params={"event": event.seq})
            )
        self._last = event.seq
        self._learn(event.body)

    def take(self) -> list[Check]:
        """The findings that are new."""
        found, self._found = self._found, []
        return found

    def _wrong(self, event: Event) -> Iterable[tuple[str, str]]:
        seq = event.seq
        if seq != self._last + 1:
            yield "event_order", f"Event {seq} follows event {self._last}: the log has a gap."
        message_id = _message_id(event.body)
        if message_id and message_id in self._messages:
            yield "message_twice", f"Event {seq} has the message id {message_id} of an earlier one."
        match event.body:
            case ToolStarted() as body if body.call_id not in self._calls:
                yield "start_without_call", f"Event {seq} starts a call that nobody made."
            case ToolReturned() as body if body.call_id not in self._calls:
                yield (
                    "result_without_call",
                    f"Event {seq} is the result of a call that nobody made.",
                )
            case ToolReturned() as body if body.call_id in self._returned:
                yield "result_twice", f"Event {seq} is a second result of one call ({body.name})."
            case ModelSaid(purpose="main") as body:
                if body.continues is not None and body.continues not in self._messages:
                    yield "continues_nothing", f"Event {seq} goes on with a reply that isn't there."
            case ModelCalled() as body if body.history >= seq:
                yield "history_ahead", f"Event {seq} names a history that comes after it."
            case Compacted() as body:
                names = {*body.replaced, *body.digested, *body.hidden, *body.cut, *body.pinned}
                unknown = names - self._messages - self._calls
                if unknown or body.until >= seq:
                    text = f"Event {seq} compacts what isn't there ({len(unknown)} unknown ids)."
                    yield "compacts_nothing", text
            case _:
                pass

    def _learn(self, body: Body) -> None:
        message_id = _message_id(body)
        if message_id:
            self._messages.add(message_id)
        if isinstance(body, Unknown):
            self._blind = True
        elif isinstance(body, ModelSaid):
            self._calls.update(part.id for part in body.parts if isinstance(part, ToolCall))
        elif isinstance(body, ToolReturned):
            self._returned.add(body.call_id)


def _message_id(body: Body) -> str:
    if isinstance(body, UserSaid | FactAdded | ModelSaid | ToolReturned):
        return body.message_id
    return ""
