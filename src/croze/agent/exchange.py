"""One exchange with the model: encode, record, stream, decode, record; with retries made visible and a
reply that was cut by its length continued."""

import asyncio
import time
from contextlib import aclosing

import msgspec
from msgspec import Struct, field

from croze.agent.deltas import RedactedDeltas
from croze.agent.live import Live
from croze.context.check import check_usage
from croze.dialect.base import Decoder, Reply
from croze.llm.continuation import CONTINUE, Continuation, join, plan
from croze.llm.model import ENCODER_VERSION
from croze.text.redact import redact, redact_value
from croze.text.tokens import estimate
from croze.types.event import ModelCalled, ModelSaid, Notice, Retried
from croze.types.model import Cost, Usage, price
from croze.types.parts import CallError, Part, Text, Thinking, ToolCall
from croze.types.stream import (
    Delta,
    FinishChunk,
    FinishReason,
    RetryChunk,
    TextChunk,
    UsageChunk,
)

PRICE_UNKNOWN = "price_unknown"
WROTE_RESULT = "wrote_result"
"""Marks a reply that was ended where the model wrote a tool's result: its parts don't show it."""


class Said(Struct, frozen=True):
    """A complete exchange: the reply as decoded (not redacted), how it ended and what it cost.

    `text` is what the model said in words, the pieces of a continued reply joined.
    """

    reply: Reply
    finish: FinishReason | None
    cost: Cost
    message_id: str
    text: str


class _Stream(Struct):
    """What has arrived of a reply so far."""

    decoder: Decoder
    shown: RedactedDeltas
    usage: Usage = field(default_factory=Usage)
    finish: FinishReason | None = None
    first: float | None = None


async def exchange(live: Live, step: int) -> Said:
    """Ask the model for its next reply. Raises ModelError when every try failed; a cancelled exchange
    keeps what arrived, marked partial."""
    said = await _request(live, step, None, None)
    count = 0
    cost, text = said.cost, said.text
    while said.finish == "length":
        how = plan(said.reply, live.model.info, count=count, most=live.max_continuations)
        if how is Continuation.STOP or (how is Continuation.MESSAGE and said.reply.calls):
            break
        count += 1
        if how is Continuation.PREFIX:
            said = await _request(live, step, said, said.message_id)
            text = said.text
        else:
            await live.tell("continue", CONTINUE, "the reply was cut by its length")
            said = await _request(live, step, None, said.message_id)
            text = join(text, said.text)
        cost = _sum(cost, said.cost)
    return Said(
        reply=said.reply, finish=said.finish, cost=cost, message_id=said.message_id, text=text
    )


async def _request(live: Live, step: int, prefix: Said | None, continues: str | None) -> Said:
    """One request. `prefix` is the reply that the model itself goes on with."""
    prefill = prefix is not None
    context = live.context(prefill=prefill)
    prompt = await live.with_images(live.dialect.encode(context, prefill=prefill))
    body = live.model.encode(prompt)
    estimated = live.tokens(context)
    await live.append(
        ModelCalled(
            step=step,
            model=live.model.info.name,
            head=live.head.digest,
            history=live.log.events[-1].seq,
            body=live.digest(body),
            rolling=live.projection.rolling(prefill=prefill),
            encoder=ENCODER_VERSION,
            tokens=estimated,
            size=len(body),
            prefill=prefill,
        )
    )
    started = time.monotonic()
    message_id = ""
    shown = RedactedDeltas(live.publish, before="" if prefix is None else prefix.text)
    stream = _Stream(decoder=_decoder(live, prefix), shown=shown)
    error: BaseException | None = None
    try:
        await _read(live, body, stream, prefix)
    except BaseException as caught:
        error = caught
        raise
    finally:
        stream.shown.finish()
        cut = stream.finish in (None, "length")
        reply = stream.decoder.finish(cut=cut and not stream.decoder.halted)
        cost = price(stream.usage, live.model.info.prices)
        if error is None or reply.parts or prefill:
            message_id = live.new_id()
            parts, redacted = _redacted(reply.parts, live.model.info.name)
            notices = [] if error is not None else _notices(live, estimated, stream.usage)
            await asyncio.shield(
                live.append(
                    ModelSaid(
                        message_id=message_id,
                        step=step,
                        model=live.model.info.name,
                        parts=parts,
                        finish=stream.finish,
                        usage=stream.usage,
                        cost=cost,
                        partial=error is not None,
                        continues=continues,
                        joined=prefill,
                        redacted=redacted,
                        seconds=round(time.monotonic() - started, 6),
                        first_token=None if stream.first is None else stream.first - started,
                        tokens=_tokens(parts),
                        metadata={WROTE_RESULT: True} if reply.problem == WROTE_RESULT else {},
                    ),
                    *notices,
                )
            )
    return Said(
        reply=reply,
        finish=stream.finish,
        cost=cost,
        message_id=message_id,
        text="".join(part.text for part in reply.parts if isinstance(part, Text)),
    )


async def _read(live: Live, body: bytes, stream: _Stream, prefix: Said | None) -> None:
    async with aclosing(live.model.stream(body)) as chunks:
        async for chunk in chunks:
            match chunk:
                case RetryChunk():
                    await live.append(
                        Retried(
                            attempt=chunk.attempt,
                            delay=chunk.delay,
                            error=chunk.code,
                            message=chunk.message,
                        )
                    )
                    stream.decoder = _decoder(live, prefix)
                    stream.usage, stream.finish = Usage(), None
                    stream.shown.publish(Delta(kind="reset", session=live.log.session))
                case UsageChunk():
                    stream.usage = chunk.usage
                case FinishChunk():
                    stream.finish = chunk.reason
                    for delta in stream.decoder.feed(chunk):
                        stream.shown.publish(delta)
                case _:
                    if stream.first is None:
                        stream.first = time.monotonic()
                    for delta in stream.decoder.feed(chunk):
                        stream.shown.publish(delta)
                    if stream.decoder.halted:
                        stream.finish = "stop"
                        break


def _decoder(live: Live, prefix: Said | None) -> Decoder:
    """A decoder for a reply; for a continued one it has already read what the model begins with."""
    decoder = live.dialect.decoder(live.shapes(), live.source.call_id)
    if prefix is not None:
        for part in prefix.reply.parts:
            text = part.raw if isinstance(part, ToolCall) else getattr(part, "text", "")
            if text and not isinstance(part, Thinking):
                decoder.feed(TextChunk(text))
    return decoder


def _redacted(parts: tuple[Part, ...], model: str) -> tuple[tuple[Part, ...], bool]:
    """The parts as they are recorded and seen: without secrets, thinking with its maker's name."""
    out: list[Part] = []
    found = 0
    for part in parts:
        match part:
            case Text():
                text, count = redact(part.text)
                out.append(Text(text=text))
            case Thinking():
                text, count = redact(part.text)
                out.append(Thinking(text=text, opaque=part.opaque, model=model))
            case ToolCall():
                call, count = _redacted_call(part)
                out.append(call)
            case _:
                count = 0
                out.append(part)
        found += count
    return tuple(out), found > 0


def _redacted_call(call: ToolCall) -> tuple[ToolCall, int]:
    """A call without secrets. Its source keeps saying what its arguments say, also where a secret can
    be seen in one of them only: under a telling name, or through the escapes of JSON."""
    args, count = redact_value(call.args)
    raw = call.raw
    if count and not raw.lstrip().startswith("<"):
        raw = msgspec.json.encode(args).decode()
    elif count:
        for name, value in call.args.items():
            if isinstance(value, str) and value and value != args[name]:
                raw = raw.replace(value, args[name])
    raw, more = redact(raw)
    error = call.error
    if error is not None:
        error = CallError(code=error.code, message=redact(error.message)[0])
    name, named = redact(call.name)
    cleaned = msgspec.structs.replace(call, name=name, args=args, raw=raw, error=error)
    return cleaned, count + more + named


def _tokens(parts: tuple[Part, ...]) -> int:
    total = 0
    for part in parts:
        if isinstance(part, Text):
            total += estimate(part.text)
        elif isinstance(part, ToolCall):
            total += estimate(part.raw) + 8
    return total


def _sum(first: Cost, second: Cost) -> Cost:
    def add(a: float | None, b: float | None) -> float | None:
        return None if a is None or b is None else a + b

    return Cost(input=add(first.input, second.input), output=add(first.output, second.output))


def _notices(live: Live, estimated: int, usage: Usage) -> list[Notice]:
    """What a reply shows of the model, told once: no price, a count far from the estimate."""
    name = live.model.info.name
    found: list[Notice] = []
    if live.model.info.prices.input is None and PRICE_UNKNOWN not in live.warned:
        found.append(
            Notice(
                level="info",
                code=PRICE_UNKNOWN,
                text=f"The price of {name} is unknown: costs are not counted.",
                params={"model": name},
            )
        )
    check = check_usage(estimated, usage.input)
    if check is not None and check.code not in live.warned:
        found.append(Notice(level="info", code=check.code, text=check.text, params=check.params))
    return found
