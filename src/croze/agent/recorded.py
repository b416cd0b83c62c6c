"""A recorded session as the parts of a live one: its log, its times and identities, its model and protocol.

Every event that the loop comes to is compared with the recorded one.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from croze.agent.exchange import WROTE_RESULT
from croze.agent.resume import BREAK
from croze.dialect.base import Decoder, Dialect, Reply
from croze.llm.model import Model
from croze.types.context import Context, Prompt
from croze.types.errors import ModelError, RetriesExhausted, StoreError
from croze.types.event import (
    Annotated,
    Answered,
    Body,
    Event,
    HeadSet,
    ModelCalled,
    ModelSaid,
    Notice,
    Retried,
    SessionOpened,
    Stopped,
    Undoing,
    Undone,
    Unknown,
    UserSaid,
    encode_body,
)
from croze.types.model import ModelInfo
from croze.types.parts import Part, Text, Thinking, ToolCall
from croze.types.stream import (
    CallChunk,
    Chunk,
    Delta,
    FinishChunk,
    RetryChunk,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
)
from croze.types.tool import ToolDoc, ToolShape

OUTSIDE = (SessionOpened, HeadSet, UserSaid, Annotated, Answered, Undoing, Undone, Unknown)
"""What comes from outside of the loop: taken from the record wherever it stands there."""

BROKEN_OFF = ("cancelled", "steps", "seconds", "cost", "repeated")
"""Ends of a turn that no replay can come to by itself."""

LEFT_OUT = ("seconds", "first_token", "redacted")
"""Fields that are not compared: measured durations, and that something was taken out of a reply, of
which the record has only the rest."""


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
        return isinstance(body, OUTSIDE) or (isinstance(body, ModelSaid) and not self._asked)

    async def append(self, *bodies: Body, durable: bool = False) -> tuple[Event, ...]:
        del durable
        return tuple(self._accept(body) for body in bodies)

    def _accept(self, body: Body) -> Event:
        if not isinstance(body, OUTSIDE):
            self.take_outside()
        while self._after_head and isinstance(self.peek(), Notice) and not self._next_is(body):
            self.take()  # said of the new head when it was made
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
            if isinstance(body, UserSaid):
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


@dataclass(slots=True)
class RecordedDialect:
    """A protocol whose decoder gives the calls of a reply the ids that they have in the record."""

    dialect: Dialect
    log: RecordedLog
    name: Literal["xml", "native"] = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.dialect.name

    def advertise(self, core: Sequence[ToolDoc], others: Sequence[ToolDoc]) -> str:
        return self.dialect.advertise(core, others)

    def describe(self, tools: Sequence[ToolDoc]) -> str:
        return self.dialect.describe(tools)

    def example(self, name: str, args: Mapping[str, object]) -> str:
        return self.dialect.example(name, args)

    def encode(self, context: Context, *, prefill: bool = False) -> Prompt:
        return self.dialect.encode(context, prefill=prefill)

    def decoder(self, tools: Mapping[str, ToolShape], new_id: Callable[[], str]) -> Decoder:
        return RecordedDecoder(self.dialect.decoder(tools, new_id), self.log)


@dataclass(slots=True)
class RecordedDecoder:
    """The protocol's decoder, with the recorded ids."""

    decoder: Decoder
    log: RecordedLog
    halted: bool = False

    def feed(self, chunk: Chunk) -> list[Delta]:
        deltas = self.decoder.feed(chunk)
        self.halted = self.decoder.halted
        return deltas

    def finish(self, *, cut: bool) -> Reply:
        reply = self.decoder.finish(cut=cut)
        said = self.log.ahead()
        if not isinstance(said, ModelSaid):
            return reply
        if said.metadata.get(WROTE_RESULT):
            reply = msgspec.structs.replace(reply, problem=WROTE_RESULT)
        ids = [part.id for part in said.parts if isinstance(part, ToolCall)]
        if len(ids) != len(reply.calls):
            return reply  # the comparison will say what differs
        left = iter(ids)
        parts = (
            msgspec.structs.replace(part, id=next(left)) if isinstance(part, ToolCall) else part
            for part in reply.parts
        )
        return msgspec.structs.replace(reply, parts=tuple(parts))


class RecordedModel:
    """Encodes as the real model does; what it says comes from the record. `on_reply` is told how many
    continuations a reply has there."""

    def __init__(
        self,
        encoder: Model,
        log: RecordedLog,
        *,
        native: bool,
        on_reply: Callable[[int], None],
    ) -> None:
        self._encoder = encoder
        self._log = log
        self._native = native
        self._on_reply = on_reply

    @property
    def info(self) -> ModelInfo:
        return self._encoder.info

    def encode(self, prompt: Prompt) -> bytes:
        return self._encoder.encode(prompt)

    async def stream(self, body: bytes) -> AsyncGenerator[Chunk, None]:
        del body  # its hash has been compared when the request was recorded
        log = self._log
        log.take_outside()
        while isinstance(retried := log.peek(), Retried):
            yield RetryChunk(retried.attempt, retried.delay, retried.error, retried.message)
            log.take_outside()
        said = log.peek()
        if isinstance(said, ModelSaid):
            if said.continues is None:
                self._on_reply(self._continuations())
            for chunk in _chunks(said, log.events, native=self._native):
                yield chunk
            if said.partial:
                raise self._failure(len(log.events) + 1)
        else:
            raise self._failure(len(log.events))

    def _continuations(self) -> int:
        count = 0
        for event in self._log.recorded[len(self._log.events) + 1 :]:
            if isinstance(event.body, ModelSaid):
                if event.body.continues is None:
                    break
                count += 1
            elif isinstance(event.body, Stopped):
                break
        return count

    def _failure(self, at: int) -> BaseException:
        for event in self._log.recorded[at:]:
            match event.body:
                case Notice(level="error") as notice:
                    kind = RetriesExhausted if notice.code == "retries_exhausted" else ModelError
                    hint = str(notice.params.get("hint", ""))
                    return kind(notice.text, code=notice.code, hint=hint)
                case Notice(code="tools_refused") as notice:
                    return ModelError(str(notice.params.get("error", "")), tools_refused=True)
                case Stopped() | ModelCalled() | UserSaid():
                    break
                case _:
                    pass
        return Ended()

    async def aclose(self) -> None:
        await self._encoder.aclose()


def _chunks(said: ModelSaid, before: Sequence[Event], *, native: bool) -> list[Chunk]:
    """The recorded reply as a model's stream; of a joined one only what the model went on with."""
    chunks: list[Chunk] = []
    index = 0
    skip = 0
    if said.joined:
        for event in reversed(before):
            if isinstance(event.body, ModelSaid):
                skip = sum(len(_verbatim(part)) for part in event.body.parts)
                break
    for part in said.parts:
        match part:
            case Thinking():
                chunks.append(ThinkingChunk(text=part.text, opaque=part.opaque))
            case ToolCall() if native:
                chunks.append(CallChunk(index, part.provider_id, part.name, part.raw))
                index += 1
            case Text() | ToolCall():
                text = _verbatim(part)
                skipped = min(skip, len(text))
                skip -= skipped
                if text[skipped:]:
                    chunks.append(TextChunk(text[skipped:]))
            case _:
                pass
    chunks.append(UsageChunk(said.usage))
    if said.finish is not None:
        chunks.append(FinishChunk(said.finish))
    return chunks


def _verbatim(part: Part) -> str:
    if isinstance(part, Text):
        return part.text
    return part.raw if isinstance(part, ToolCall) else ""


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
