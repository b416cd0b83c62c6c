"""Spans of the log: the text of each message in full, how it is named, and where it came from."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from croze.context.ledger import Entry
from croze.text.tokens import estimate
from croze.types.errors import MessageNotFound
from croze.types.event import (
    Body,
    Compacted,
    Event,
    FactAdded,
    ModelSaid,
    ToolReturned,
    Undone,
    UserSaid,
)
from croze.types.parts import Text, Thinking, ToolCall

SHORT = 8
"""Characters of an id that people and models see."""
SHORTEST = 4
"""Characters of an id that are enough where they are unique."""
_ARGS = 160


class Span(Struct, frozen=True, omit_defaults=True):
    """One message of the log as it was recorded, in full.

    `kind` is user, fact, reply, result or summary; `name` its tool or the fact's key. `whole` is the blob
    that holds all of a result whose text was cut when it came.
    """

    id: str
    seq: int
    at: int
    kind: str
    text: str
    tokens: int
    name: str = ""
    origin: str = ""
    reason: str = ""
    whole: str = ""


def text_of(body: Body, *, thinking: bool = False) -> str:
    """What an event says in the conversation, in full; empty for one that says nothing. Thinking is not
    sent again, so it counts only where it is asked for, or where its maker signed it."""
    match body:
        case UserSaid() | ModelSaid():
            texts = [_part_text(part, thinking=thinking) for part in body.parts]
            return "\n".join(text for text in texts if text)
        case FactAdded() | Undone():
            return body.text
        case ToolReturned():
            return "\n".join(text for text in (body.message, body.text) if text)
        case Compacted():
            return "\n\n".join(text for text in (body.summary, body.receipt) if text)
        case _:
            return ""


def _part_text(part: object, *, thinking: bool) -> str:
    match part:
        case Text():
            return part.text
        case Thinking() if thinking or part.opaque is not None:
            return part.text
        case ToolCall():
            return part.raw or msgspec.json.encode(part.args).decode()
        case _:
            return ""


def calls_in(events: Iterable[Event]) -> dict[str, ToolCall]:
    """Every call of the conversation by its id."""
    return {
        part.id: part
        for event in events
        if isinstance(event.body, ModelSaid)
        for part in event.body.parts
        if isinstance(part, ToolCall)
    }


def called(name: str, args: Mapping[str, object]) -> str:
    """A call in a line: the tool and what it was given."""
    given = msgspec.json.encode(dict(args)).decode() if args else ""
    if len(given) > _ARGS:
        given = given[: _ARGS - 1] + "…"
    return f"{name} {given}".rstrip()


def origin_of(body: Body, calls: Mapping[str, ToolCall]) -> str:
    """Who or what said it: the user, a call with its arguments, a fact's key and file, a model."""
    match body:
        case UserSaid():
            return "user"
        case FactAdded():
            return f"{body.key}: {body.origin}" if body.origin else body.key
        case ToolReturned():
            call = calls.get(body.call_id)
            return called(body.name, call.args if call is not None else {})
        case ModelSaid():
            return body.model
        case Compacted():
            return f"summary by {body.policy}"
        case Undone():
            return body.kind
        case _:
            return ""


def reason_of(body: Body) -> str:
    """Why a message is in the context."""
    match body:
        case UserSaid():
            return "what the user said"
        case FactAdded():
            return body.reason or "an observed fact"
        case ToolReturned():
            return "the result of a call"
        case ModelSaid():
            return "what the model said"
        case Compacted():
            return body.reason
        case Undone():
            return "what was undone"
        case _:
            return ""


def stubs_of(compactions: Sequence[Event]) -> dict[str, str]:
    """What stands for each message or call that was replaced."""
    stubs: dict[str, str] = {}
    for event in compactions:
        if isinstance(event.body, Compacted):
            stubs.update(event.body.replaced)
    return stubs


def standing_text(entry: Entry, body: Body, stubs: Mapping[str, str]) -> str:
    """An entry's text as the model sees it; empty where it is gone."""
    match entry.standing:
        case "full":
            return text_of(body)
        case "replaced":
            return stubs.get(entry.call_id) or stubs.get(entry.id) or ""
        case "digested":
            return body.digest if isinstance(body, ToolReturned) else ""
        case _:
            return ""


def id_of(body: Body) -> str:
    """The message id of an event that has one."""
    if isinstance(body, Undone):
        return body.undo_id
    found = getattr(body, "message_id", "")
    return found if isinstance(found, str) else ""


def find_span(events: Sequence[Event], wanted: str) -> Span:
    """The span whose message id or call id is or begins with `wanted`; a compaction's summary is named
    by its policy's event, `event:SEQ`, as any event is. Raises MessageNotFound."""
    found: dict[int, Event] = {}
    if wanted.startswith("event:"):
        number = wanted.partition(":")[2]
        found = {e.seq: e for e in events if str(e.seq) == number and text_of(e.body)}
    elif len(wanted) >= SHORTEST:
        for event in events:
            call = event.body.call_id if isinstance(event.body, ToolReturned) else ""
            if (id_of(event.body) or "").startswith(wanted) or call.startswith(wanted):
                found[event.seq] = event
    exact = [e for e in found.values() if wanted in (id_of(e.body), _call_of(e.body))]
    chosen = exact or list(found.values())
    if len(chosen) == 1:
        return span_of(chosen[0], calls_in(events))
    if not chosen:
        raise MessageNotFound(
            f"There is no message {wanted!r} in this conversation.",
            hint="`croze context --messages 1000` lists them with their ids.",
            code="no_span",
            id=wanted,
        )
    names = ", ".join(sorted({id_of(e.body)[:12] for e in chosen})[:4])
    raise MessageNotFound(
        f"{wanted!r} stands for several messages: {names}.",
        hint="Give more of the id.",
        code="several_spans",
        id=wanted,
        names=names,
    )


def _call_of(body: Body) -> str:
    return body.call_id if isinstance(body, ToolReturned) else ""


def span_of(event: Event, calls: Mapping[str, ToolCall]) -> Span:
    """The span that an event is."""
    body = event.body
    text = text_of(body, thinking=True)
    kind, name = kind_of(body)
    whole = ""
    if isinstance(body, ToolReturned):
        whole = body.whole or (body.blobs[-1] if body.truncated and body.blobs else "")
    return Span(
        id=id_of(body) or f"event:{event.seq}",
        seq=event.seq,
        at=event.at,
        kind=kind,
        text=text,
        tokens=getattr(body, "tokens", 0) or estimate(text),
        name=name,
        origin=origin_of(body, calls),
        reason=reason_of(body),
        whole=whole,
    )


def kind_of(body: Body) -> tuple[str, str]:
    """What an event is in the conversation, and its name."""
    match body:
        case UserSaid():
            return "user", ""
        case FactAdded():
            return "fact", body.key
        case ToolReturned():
            return "result", body.name
        case ModelSaid():
            return "reply", body.model
        case Compacted():
            return "summary", body.policy
        case _:
            return "fact", "undone"
