"""How one entry of the log stands in the context: whole, as a stub, as its digest, with less of its calls,
or not at all."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from croze.context.shape import Shape, cut_call, reply_tokens
from croze.text.tokens import estimate
from croze.types.context import Message
from croze.types.event import FactAdded, ModelSaid, ToolReturned, UserSaid
from croze.types.parts import CallResult, Image, Part, Text, Thinking, ToolCall

HINT_TOKENS = 150
"""Results above this many tokens carry their message id, so that the model can let go of them."""

NO_RESULT = "no result of this call was recorded"

SUMMARY_HEADING = "[History Summary]"


class Said(Struct, frozen=True):
    """One entry of the open group; `result` marks a tool's, `fact` what a section accounts for. `place`
    is that of a result's call in its reply: what ends the turn runs last wherever it stands."""

    seq: int
    parts: tuple[Part, ...]
    tokens: int
    result: bool = False
    fact: bool = False
    place: int = 0


class Mark(Struct, frozen=True):
    """The fold as it stood before the event at `index`."""

    index: int
    messages: int
    facts: int
    history: int
    rolling: Any
    entries: tuple[Said, ...]
    last_said: str
    newest: int
    asked: bool
    waiting: dict[str, tuple[int, str]]


def facts_of(entries: Sequence[Said]) -> int:
    """The tokens that the sections of facts account for."""
    return sum(entry.tokens for entry in entries if entry.fact)


def same(one: Message, other: Message) -> bool:
    """Whether two messages are the same but for where they come from."""
    return one.parts == other.parts and (one.last, one.layer, one.tokens) == (
        other.last,
        other.layer,
        other.tokens,
    )


def no_result(call_id: str, name: str) -> CallResult:
    """What stands for a result that a damaged log doesn't have."""
    return CallResult(call_id=call_id, name=name, ok=False, message=NO_RESULT, text="")


def hint(text: str, message_id: str) -> str:
    """`text` with the first eight characters of its message's id at the end."""
    return f"{text}\n\n[Hint: message_id: {message_id[:8]}]"


def summary_text(summary: str, receipt: str) -> str:
    """A summary as the model sees it: under its heading, above the receipt."""
    if not summary.startswith(SUMMARY_HEADING):
        summary = f"{SUMMARY_HEADING}\n{summary}"
    return f"{summary}\n\n{receipt}" if receipt else summary


def user_parts(body: UserSaid, shape: Shape) -> tuple[tuple[Part, ...], int] | None:
    """What a user said, with its message id, and its tokens; None where it is gone."""
    if body.message_id in shape.hidden:
        return None
    stub = shape.replaced.get(body.message_id)
    if stub is not None:
        return (Text(text=stub),), estimate(stub)
    parts = list(body.parts)
    for i in range(len(parts) - 1, -1, -1):
        part = parts[i]
        if isinstance(part, Text):
            parts[i] = Text(text=hint(part.text, body.message_id))
            break
    return tuple(parts), body.tokens


def fact_text(seq: int, body: FactAdded, shape: Shape) -> tuple[str, int] | None:
    """A fact's text and its tokens; None where it is gone, as facts of the tail are after a compaction."""
    if body.message_id in shape.hidden or (body.place == "tail" and seq < shape.tails):
        return None
    stub = shape.replaced.get(body.message_id)
    return (body.text, body.tokens) if stub is None else (stub, estimate(stub))


def result_parts(
    body: ToolReturned, shape: Shape
) -> tuple[CallResult, int, tuple[Image, ...]] | None:
    """A result, its tokens and its images; None where it is gone with its call. Whatever stands for its
    text, the tool, the message and the success stay; images stand only with the whole text."""
    if body.call_id in shape.gone:
        return None
    stub = shape.replaced.get(body.call_id)
    text, tokens, images = body.text, body.tokens, body.images
    if stub is not None:
        text, tokens, images = stub, estimate(stub), ()
    elif body.call_id in shape.digested and body.digest:
        text, tokens, images = body.digest, estimate(body.digest), ()
    if body.tokens > HINT_TOKENS and stub is None:
        text = hint(text, body.message_id)
    result = CallResult(
        call_id=body.call_id, name=body.name, ok=body.ok, message=body.message, text=text
    )
    return result, tokens, images


def reply_parts(body: ModelSaid, shape: Shape) -> tuple[tuple[Part, ...], int]:
    """A reply's parts and its tokens; no parts where it is gone. Thinking goes back only where a
    provider signed it and it led to a call that still stands."""
    if body.message_id in shape.hidden:
        return (), 0
    calls = {part.id for part in body.parts if isinstance(part, ToolCall)}
    left = calls - shape.gone if shape.gone else calls
    stub = shape.replaced.get(body.message_id)
    parts: list[Part] = []
    for part in body.parts:
        match part:
            case ToolCall():
                if part.id in left:
                    cut = shape.cut.get(part.id)
                    parts.append(part if cut is None else cut_call(part, cut))
            case Thinking():
                if part.opaque is not None and left:
                    parts.append(part)
            case Text() if stub is not None:
                pass
            case _:
                parts.append(part)
    if stub:
        parts.insert(sum(isinstance(part, Thinking) for part in parts), Text(text=stub))
    if stub is None and len(left) == len(calls) and shape.cut.keys().isdisjoint(calls):
        return tuple(parts), body.tokens
    return tuple(parts), reply_tokens(body, shape.gone, shape.cut, stub)
