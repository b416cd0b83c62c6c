"""Where a request's bytes don't begin with those of the request before: the first byte, the cause, the
price; and whether the provider's cache held what it could."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec import Struct

from croze.context.head import Head
from croze.context.policies import COLD_SECONDS
from croze.context.requests import Call, Wires, moments
from croze.text.tokens import estimate
from croze.types.context import Message
from croze.types.errors import CrozeError
from croze.types.event import Compacted, Event, FactAdded, HeadSet, ModelSaid, Undone
from croze.types.parts import CallResult, Text

Cause = Literal[
    "compaction", "undo", "redo", "model", "protocol", "head", "joined", "facts", "other"
]

Verdict = Literal["hit", "cold", "broken", "small", "first", "unreported"]

SMALLEST_CACHED = 1_024
"""Providers cache no prefix below about this many tokens."""

_CLOSE = b"]}"
_MARKS = (b',"cache_control":{"type":"ephemeral"}', b'"cache_control":{"type":"ephemeral"},')


class Break(Struct, frozen=True, omit_defaults=True):
    """A request that doesn't go on where the one before ended.

    `byte` is the first that differs, cache markers left out (None where the bytes can't be made).
    `section` and, inside of the conversation, `message` (its place) and `event` say what stands there.
    `cause` names what did it, `detail` more of it. `again` are tokens, in the provider's count, that were
    sent before and had to be written again; `price` what that cost more than reading them from the cache.
    """

    step: int
    part: int
    event: int
    section: str
    cause: Cause
    detail: str
    again: int
    byte: int | None = None
    message: int | None = None
    message_event: int | None = None
    price: float | None = None


class Hit(Struct, frozen=True, omit_defaults=True):
    """What the cache held of a request: `expected` tokens stood in the request before, byte for byte.

    `verdict` is hit, cold (the cache held less than half of it though nothing broke: `idle` seconds had
    gone by), broken (a break stands in front of the rest), small (too little to be cached), first, or
    unreported.
    """

    step: int
    part: int
    expected: int
    reported: int | None
    verdict: Verdict
    idle: float | None = None
    price: float | None = None


class Breaks(Struct, frozen=True):
    """All of a session: its breaks, what the cache did at each request, and the sums."""

    requests: int
    breaks: tuple[Break, ...]
    hits: tuple[Hit, ...]
    again: int
    price: float | None
    expected: int
    reported: int | None
    cold: int
    cold_price: float | None


@dataclass(frozen=True, slots=True)
class _Seen:
    """A request as it is compared: its head, its messages and its size in estimated tokens."""

    call: Call
    head: Head | None
    messages: tuple[Message, ...]
    tokens: int


def breaks_of(
    events: Sequence[Event], calls: Sequence[Call], heads: Mapping[str, Head], wires: Wires
) -> Breaks:
    """Compare every request with the one before it. `heads` are the stored heads by their hash."""
    found: list[Break] = []
    hits: list[Hit] = []
    before: _Seen | None = None
    for moment in moments(events, calls):
        head = heads.get(moment.call.body.head)
        context = moment.context(head)
        seen = _Seen(moment.call, head, context.messages, context.tokens)
        if before is None:
            hits.append(_hit(None, seen, 0, broken=False))
            before = seen
            continue
        at = _first_change(before, seen)
        shared = _shared_tokens(before, seen, at)
        if at is not None:
            found.append(_explain(before, seen, at, shared, events, wires))
        hits.append(_hit(before, seen, shared, broken=at is not None))
        before = seen
    prices = [item.price for item in found]
    cold = [hit for hit in hits if hit.verdict == "cold"]
    told = [hit.reported for hit in hits if hit.reported is not None]
    return Breaks(
        requests=len(calls),
        breaks=tuple(found),
        hits=tuple(hits),
        again=sum(item.again for item in found),
        price=_sum(prices),
        expected=sum(hit.expected for hit in hits),
        reported=sum(told) if told else None,
        cold=len(cold),
        cold_price=_sum([hit.price for hit in cold]),
    )


def _sum(prices: Sequence[float | None]) -> float | None:
    known = [price for price in prices if price is not None]
    return sum(known) if len(known) == len(prices) else None


def _first_change(before: _Seen, now: _Seen) -> int | None:
    """The first message that isn't what it was; -1 for the head, None where all stand as before."""
    old, new = before.call.head, now.call.head
    if before.call.body.head != now.call.body.head or (
        old is not new
        and old is not None
        and new is not None
        and (old.model != new.model or old.dialect != new.dialect)
    ):
        return -1
    sent = len(before.messages)
    if now.messages[:sent] == before.messages:
        return None
    for number, message in enumerate(before.messages):
        if number >= len(now.messages) or not _same(message, now.messages[number]):
            return number
    return None


def _same(one: Message, other: Message) -> bool:
    return one is other or (one.role == other.role and one.parts == other.parts)


def _scale(seen: _Seen) -> float:
    return seen.call.tokens / seen.tokens if seen.tokens else 1.0


def _shared_tokens(before: _Seen, now: _Seen, at: int | None) -> int:
    """The tokens, as the provider counts this request's, that both requests begin with."""
    if at == -1:
        return 0
    if at is None:
        shared = before.tokens
    else:
        head = now.head.tokens if now.head is not None else 0
        shared = head + sum(message.tokens for message in now.messages[:at])
        shared += _begun(before, now, at)
    return min(round(shared * _scale(now)), now.call.tokens)


def _begun(before: _Seen, now: _Seen, at: int) -> int:
    """The estimated tokens of the parts that the first message which isn't the same begins with as it
    did before: a request's results stay though what was said below them is undone."""
    if not 0 <= at < min(len(before.messages), len(now.messages)):
        return 0
    old, new = before.messages[at], now.messages[at]
    same = 0
    for one, other in zip(old.parts, new.parts, strict=False):
        if old.role != new.role or one != other:
            break
        match one:
            case CallResult():
                same += estimate(one.message) + estimate(one.text)
            case Text():
                same += estimate(one.text)
            case _:
                pass
    return min(same, new.tokens)


def _explain(
    before: _Seen,
    now: _Seen,
    at: int,
    shared: int,
    events: Sequence[Event],
    wires: Wires,
) -> Break:
    cause, detail = _cause(before, now, at, events)
    last = before.call.body.history
    behind = sum(m.tokens for m in now.messages[max(at, 0) :] if m.key <= last)
    if at == -1 and now.head is not None:
        behind += now.head.tokens
    elif cause == "joined":
        behind += before.messages[at].tokens
    elif at < len(now.messages) and now.messages[at].key <= last:
        behind -= _begun(before, now, at)
    again = round(min(behind * _scale(now), max(0, now.call.tokens - shared)))
    section, message, event = _place(before, now, at)
    return Break(
        step=now.call.step,
        part=now.call.part,
        event=now.call.event.seq,
        section=section,
        cause=cause,
        detail=detail,
        again=again,
        byte=_first_byte(before, now, wires),
        message=message,
        message_event=event,
        price=extra_price(now.call, again),
    )


def extra_price(call: Call, tokens: int) -> float | None:
    """What writing tokens again costs more than reading them from the cache, in US dollars."""
    prices = call.prices
    if prices.input is None:
        return None
    write = prices.input if prices.cache_write is None else prices.cache_write
    read = prices.input if prices.cached is None else prices.cached
    return tokens * (write - read) / 1e6


def _place(before: _Seen, now: _Seen, at: int) -> tuple[str, int | None, int | None]:
    if at == -1:
        return _head_section(before.head, now.head), None, None
    messages = now.messages if at < len(now.messages) else before.messages
    message = messages[at]
    return message.layer, at, message.key


def _head_section(old: Head | None, new: Head | None) -> str:
    """The first part of the head that isn't the same; `model` where only who is asked has changed."""
    if old is None or new is None:
        return "head"
    was = {section.key: section.digest for section in old.sections}
    for section in new.sections:
        if was.get(section.key) != section.digest:
            return section.key
    return "model" if old.digest == new.digest else "tools"


def _cause(before: _Seen, now: _Seen, at: int, events: Sequence[Event]) -> tuple[Cause, str]:
    """What happened between the two requests that explains it, the last of its kind."""
    low, high = before.call.body.history, now.call.body.history
    between = [event.body for event in events if low < event.seq <= high]
    old, new = before.call.head, now.call.head
    if at == -1:
        if old is None or new is None or not any(isinstance(b, HeadSet) for b in between):
            return "head", ""
        if old.model.name != new.model.name:
            return "model", f"{old.model.name} → {new.model.name}"
        if old.dialect != new.dialect:
            return "protocol", f"{old.dialect} → {new.dialect}"
        return "head", _head_section(before.head, now.head)
    for body in reversed(between):
        match body:
            case Compacted():
                return "compaction", f"{body.policy}: {body.reason}"
            case Undone():
                return body.kind, f"turns {', '.join(map(str, body.turns))}"
            case _:
                pass
    joined = [b for b in between if isinstance(b, ModelSaid) and b.joined]
    if joined or now.call.body.prefill or before.call.body.prefill:
        return "joined", "the model went on with its own reply, which stands once, whole"
    if any(isinstance(b, FactAdded) and b.reply for b in between):
        return "facts", "documentation was put in front of what was being said"
    return "other", ""


def _first_byte(before: _Seen, now: _Seen, wires: Wires) -> int | None:
    """The first byte that differs, cache markers and the closing brackets left out."""
    if before.head is None or now.head is None:
        return None
    try:
        old = _plain(wires.encode(before.call, before.head, before.messages))
        new = _plain(wires.encode(now.call, now.head, now.messages))
    except (CrozeError, ImportError, ValueError, TypeError):
        return None
    return _common(old, new)


def _common(one: bytes, other: bytes) -> int:
    """How many bytes two bodies begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _plain(body: bytes) -> bytes:
    for mark in _MARKS:
        body = body.replace(mark, b"")
    return body.removesuffix(_CLOSE)


def _hit(before: _Seen | None, now: _Seen, shared: int, *, broken: bool) -> Hit:
    call = now.call
    reported = call.usage.cached
    idle = None if before is None else idle_seconds(before.call, call)
    missed = shared - (reported or 0)
    verdict: Verdict
    if before is None:
        verdict = "first"
    elif reported is None:
        verdict = "unreported"
    elif reported * 2 >= shared and reported:
        verdict = "hit"
    elif shared < SMALLEST_CACHED:
        verdict = "broken" if broken else "small"
    else:
        verdict = "cold"
    price = extra_price(call, missed) if verdict == "cold" else None
    return Hit(call.step, call.part, shared, reported, verdict, idle, price)


def idle_seconds(before: Call, now: Call) -> float:
    """How long the provider heard nothing between two requests, in seconds."""
    end = before.said.at if before.said is not None else before.event.at
    return max(0.0, (now.event.at - end) / 1e6)


def is_cold(idle: float | None) -> bool:
    """Whether a cache that was unused for so many seconds is surely gone."""
    return idle is None or idle > COLD_SECONDS
