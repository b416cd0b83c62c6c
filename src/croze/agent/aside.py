"""Asking a model aside: one question with its own purpose (edit, commit, summary), recorded and priced
like every request, outside of the conversation that the main model sees."""

import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing

from msgspec import Struct

from croze.agent.live import Live
from croze.llm.model import ENCODER_VERSION, Model
from croze.text.redact import redact
from croze.text.tokens import estimate
from croze.types.context import Message, Prompt
from croze.types.event import Event, ModelCalled, ModelSaid, Retried
from croze.types.model import ModelInfo, Usage, price
from croze.types.parts import Text
from croze.types.stream import FinishChunk, FinishReason, RetryChunk, TextChunk, UsageChunk


class Record(Struct, frozen=True, kw_only=True):
    """Where a question aside is recorded: a live session's log, or one that is only held open. `main` is
    the session's own model."""

    events: Sequence[Event]
    append: Callable[..., Awaitable[object]]
    new_id: Callable[[], str]
    main: ModelInfo | None = None

    @staticmethod
    def of(live: Live) -> "Record":
        return Record(
            events=live.log.events, append=live.append, new_id=live.new_id, main=live.model.info
        )

    @property
    def step(self) -> int:
        """The step of the conversation that the question belongs to."""
        for event in reversed(self.events):
            if isinstance(event.body, ModelCalled):
                return event.body.step
        return 0


async def ask_aside(record: Record, model: Model, purpose: str, system: str, question: str) -> str:
    """The answer's text. Raises ModelError where every try failed; a question that was cancelled leaves
    its request in the log and no reply."""
    parts = (Text(text=question),)
    tokens = estimate(system) + estimate(question)
    message = Message(key=0, last=0, role="user", parts=parts, layer="current", tokens=tokens)
    body = model.encode(Prompt(system=system, messages=(message,)))
    step = record.step
    await record.append(
        ModelCalled(
            step=step,
            model=model.info.name,
            head="",
            history=record.events[-1].seq,
            body=hashlib.sha256(body).hexdigest(),
            rolling="",
            encoder=ENCODER_VERSION,
            tokens=tokens,
            size=len(body),
            purpose=purpose,
            info=None if model.info == record.main else model.info,
        )
    )
    started = time.monotonic()
    pieces: list[str] = []
    usage = Usage()
    finish: FinishReason | None = None
    async with aclosing(model.stream(body)) as chunks:
        async for chunk in chunks:
            match chunk:
                case TextChunk():
                    pieces.append(chunk.text)
                case UsageChunk():
                    usage = chunk.usage
                case FinishChunk():
                    finish = chunk.reason
                case RetryChunk():
                    pieces.clear()
                    usage, finish = Usage(), None
                    await record.append(
                        Retried(
                            attempt=chunk.attempt,
                            delay=chunk.delay,
                            error=chunk.code,
                            message=chunk.message,
                        )
                    )
                case _:
                    pass
    answer = "".join(pieces)
    shown, found = redact(answer)
    await record.append(
        ModelSaid(
            message_id=record.new_id(),
            step=step,
            model=model.info.name,
            parts=(Text(text=shown),),
            purpose=purpose,
            finish=finish,
            usage=usage,
            cost=price(usage, model.info.prices),
            redacted=found > 0,
            seconds=round(time.monotonic() - started, 6),
            tokens=estimate(shown),
        )
    )
    return answer
