"""A recorded session's model and protocol: they encode as they did, and say what the record says."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from croze.agent.exchange import WROTE_RESULT
from croze.agent.recorded import Ended, RecordedLog
from croze.dialect.base import Decoder, Dialect, Reply
from croze.llm.model import Model
from croze.types.context import Context, Prompt
from croze.types.errors import ModelError, RetriesExhausted
from croze.types.event import Event, ModelCalled, ModelSaid, Notice, Retried, Stopped, UserSaid
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
                case Notice(code="summary_failed") as notice:
                    return ModelError(str(notice.params.get("error", "")))
                case Notice(code="window_overflow") as notice:
                    return ModelError(str(notice.params.get("error", "")), overflow=True)
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
