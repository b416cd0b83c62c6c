"""A recorded session as the parts of a live one: its log, its times and identities.

Every event that the loop comes to is compared with the recorded one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from croze.agent.resume import BREAK
from croze.context.check import WARNINGS as CHECKS
from croze.context.invariants import WARNINGS as EVENT_CHECKS
from croze.context.receipts import RESTORED
from croze.tools.hooks import FACT
from croze.types.errors import StoreError
from croze.types.event import (
    Annotated,
    Answered,
    BackgroundTask,
    Body,
    Event,
    FactAdded,
    HeadSet,
    HooksRan,
    Merged,
    ModelCalled,
    ModelSaid,
    Notice,
    SessionOpened,
    Stopped,
    Undoing,
    Undone,
    Unknown,
    UserSaid,
    encode_body,
)
from croze.types.team import INHERITED

OUTSIDE = (
    SessionOpened, HeadSet, UserSaid, Annotated, Answered, BackgroundTask, HooksRan, Merged, Undoing, Undone,
    Unknown,
)  # fmt: skip
"""What comes from outside of the loop: taken from the record wherever it stands there."""

BROKEN_OFF = ("cancelled", "steps", "seconds", "cost", "repeated", "hook")
"""Ends of a turn that no replay can come to by itself."""

FINDINGS = CHECKS | EVENT_CHECKS
"""Codes of the notices that checks give: the record may have others than the replay comes to."""

NEW_SERVERS = "mcp_servers"
"""The key of the fact that tells a session of MCP servers that came since its head was rendered."""

WORK_KEPT = "work_kept"
"""The notice that a sub-agent's work which a crash kept from coming back lies in a file."""

LEFT_OUT = ("seconds", "first_token", "redacted")
"""Fields that are not compared: measured durations, and that something was taken out of a reply, of
which the record has only the rest."""


def is_told(fact: FactAdded) -> bool:
    """Whether this came from outside: from a hook (they don't run in a replay), as a message that the
    user brought back, or at a session's opening (of MCP servers that came since, to a sub-agent)."""
    told = fact.key in (RESTORED, NEW_SERVERS) or INHERITED in fact.data
    return told or fact.key.startswith(FACT)


def is_finding(body: Body | None) -> bool:
    """Whether a check warned of this. No request depends on it, and later versions check other things."""
    return isinstance(body, Notice) and body.level != "error" and body.code in FINDINGS


class Diverged(StoreError):
    """The replay came to something else than the record: the log takes no such event."""

    code = "replay_diverged"


class Ended(BaseException):
    """The recorded turn ended here for a reason from outside (a limit, a cancel, a crash). Like a
    cancellation it is no failure of the turn's own, so no handler of failures may take it."""


@dataclass(slots=True)
class RecordedLog:
    """A log in memory that accepts only what the record says. `on_head` is told of every `HeadSet`."""

    recorded: Sequence[Event]
    session: str
    events: list[Event]
    on_head: Callable[[HeadSet], None]
    _after_head: bool = False
    _asked: bool = False

    def peek(self, ahead: int = 0) -> Body | None:
        """The next recorded body (or the one so many further on); None at the record's end."""
        at = len(self.events) + ahead
        return self.recorded[at].body if at < len(self.recorded) else None

    def take(self) -> Event:
        event = self.recorded[len(self.events)]
        self.events.append(event)
        match event.body:
            case HeadSet():
                self.on_head(event.body)
            case ModelCalled():
                self._asked = True
            case ModelSaid():
                self._asked = False
            case _:
                pass
        self._after_head = isinstance(event.body, HeadSet) or (
            self._after_head and isinstance(event.body, Notice)
        )
        return event

    def take_outside(self) -> None:
        """Take over what came from outside and stands next in the record."""
        while self._is_outside(self.peek()):
            self.take()

    def ahead(self) -> Body | None:
        """The next recorded body that does not come from outside."""
        at = 0
        while self._is_outside(self.peek(at)):
            at += 1
        return self.peek(at)

    def _is_outside(self, body: Body | None) -> bool:
        """A reply that no request asked for was imported."""
        if isinstance(body, OUTSIDE) or (isinstance(body, ModelSaid) and not self._asked):
            return True
        if isinstance(body, Notice):
            return body.code == WORK_KEPT
        return isinstance(body, FactAdded) and is_told(body)

    async def append(self, *bodies: Body, durable: bool = False) -> tuple[Event, ...]:
        del durable
        accepted = (self._accept(body) for body in bodies)
        return tuple(event for event in accepted if event is not None)

    def _accept(self, body: Body) -> Event | None:
        """The recorded event that this is; None where it is a finding of a check that the record
        doesn't have."""
        if not isinstance(body, OUTSIDE):
            self.take_outside()
        while self._is_of_another_time() and not self._next_is(body):
            self.take()
            if not isinstance(body, OUTSIDE):
                self.take_outside()
        if is_finding(body) and not self._next_is(body):
            return None
        expected = self.peek()
        at = len(self.events) + 1
        if expected is None:
            raise Diverged(f"event {at}: the record ends, the replay goes on with {_name(body)}")
        if expected == BREAK:
            raise Ended
        if isinstance(expected, Stopped) and expected.reason in BROKEN_OFF:
            if not isinstance(body, Stopped):
                raise Ended
        elif not self._next_is(body):
            raise Diverged(f"event {at}: {_difference(expected, body)}")
        return self.take()

    def _is_of_another_time(self) -> bool:
        """Whether the next event was said of a new head when that was made, or by a check that finds
        more or less today."""
        body = self.peek()
        return isinstance(body, Notice) and (self._after_head or is_finding(body))

    def take_findings(self) -> None:
        """Take over what checks found that stands before a fact or a request: what counts from the
        log's end comes out the same, whatever checks find today."""
        ahead = 0
        while is_finding(self.peek(ahead)):
            ahead += 1
        if isinstance(self.peek(ahead), FactAdded | ModelCalled):
            for _ in range(ahead):
                self.take()

    def _next_is(self, body: Body) -> bool:
        expected = self.peek()
        return expected is not None and _comparable(expected) == _comparable(body)

    def close(self) -> None:
        pass


class RecordedSource:
    """Times and identities in the order in which the record uses them."""

    def __init__(self, log: RecordedLog) -> None:
        self._log = log
        self._calls = 0
        self._given = len(log.events)

    def now(self) -> int:
        at = min(len(self._log.events), len(self._log.recorded) - 1)
        return self._log.recorded[at].at

    def uuid(self) -> str:
        recorded = self._log.recorded
        self._given = max(self._given, len(self._log.events))
        while self._given < len(recorded):
            body = recorded[self._given].body
            self._given += 1
            if isinstance(body, UserSaid) or (isinstance(body, FactAdded) and is_told(body)):
                continue
            found = getattr(body, "message_id", None) or getattr(body, "ask_id", None)
            if isinstance(found, str):
                return found
        return "00000000-0000-0000-0000-000000000000"

    def call_id(self) -> str:
        """Some id: the recorded ones are put into the whole reply, since a decoder does not ask for
        them in the order in which the calls stand."""
        self._calls += 1
        return f"{self._calls:09d}"


def _name(body: Body) -> str:
    return type(body).__name__


def _comparable(body: Body) -> bytes:
    value = msgspec.json.decode(encode_body(body))
    if isinstance(value, dict):
        for key in LEFT_OUT:
            value.pop(key, None)
        value["type"] = _name(body)
    return msgspec.json.encode(value, order="deterministic")


def _difference(expected: Body, got: Body) -> str:
    if type(expected) is not type(got):
        return f"the record has {_name(expected)}, the replay {_name(got)}"
    was = msgspec.to_builtins(expected)
    now = msgspec.to_builtins(got)
    for key in was:
        if key not in LEFT_OUT and was[key] != now[key]:
            what = "the request's bytes differ" if key == "body" else f"{key} differs"
            return f"{_name(got)}: {what}: recorded {str(was[key])[:200]!r}, now {str(now[key])[:200]!r}"
    return f"{_name(got)} differs"
