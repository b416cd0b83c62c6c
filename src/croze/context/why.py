"""Why a text is in the context, or how it went: the messages that hold it, since when, at what cost."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from croze.context.head import Head
from croze.context.ledger import Entry
from croze.context.paid import Paid, follow
from croze.context.requests import Call, Moment
from croze.context.spans import (
    calls_in,
    id_of,
    kind_of,
    origin_of,
    reason_of,
    standing_text,
    stubs_of,
    text_of,
)
from croze.text.tokens import estimate
from croze.types.event import Compacted, Event, Undone
from croze.types.parts import CallResult, ToolCall

AROUND = 40
"""Characters that are shown on both sides of what was found."""


class Holder(Struct, frozen=True, omit_defaults=True):
    """A message (or a part of the head) of a request that holds the text.

    `requests` counts those that it has been sent in, up to the end of the log; `paid` is what that cost
    in tokens and `cost` in US dollars (None where the price is unknown): the first time as fresh input,
    from then on as the provider's cache charges it, and anew where the cache was lost.
    """

    layer: str
    section: str
    id: str
    event: int
    kind: str
    origin: str
    reason: str
    excerpt: str
    tokens: int
    since: int | None
    requests: int
    paid: int
    cost: float | None


class Gone(Struct, frozen=True, omit_defaults=True):
    """A message of the log that held the text and doesn't stand as it was. `at` is the step from which
    on it was missing; `by` names the policy or undo, `event` that event; `restore` is the id to bring
    it back by."""

    id: str
    event: int
    kind: str
    origin: str
    excerpt: str
    standing: str
    since: int | None
    at: int | None
    by: str
    by_event: int | None
    reason: str
    tokens: int


class Later(Struct, frozen=True):
    """A message that came only after the request in question."""

    id: str
    event: int
    kind: str
    origin: str
    excerpt: str


class Answer(Struct, frozen=True):
    """What is known of a text at one step of a session."""

    session: str
    text: str
    step: int
    here: tuple[Holder, ...]
    gone: tuple[Gone, ...]
    later: tuple[Later, ...]


def why(
    events: Sequence[Event], calls: Sequence[Call], moment: Moment, head: Head | None, text: str
) -> Answer:
    """Where `text` stands in the request of `moment`, where it went, and where it comes later."""
    made = calls_in(events)
    stubs = stubs_of(moment.ledger.compactions)
    standing = {entry.seq: entry for entry in moment.ledger.entries}
    compactions = list(moment.ledger.compactions)
    shown = _shown(moment)
    here: list[tuple[Entry, Event, str]] = []
    gone: list[tuple[Entry | None, Event, str]] = []
    later: list[Later] = []
    for event in events:
        full = text_of(event.body)
        if text not in full and not _stub_holds(standing.get(event.seq), event, stubs, text):
            continue
        if isinstance(event.body, Compacted):
            continue
        entry = standing.get(event.seq)
        if event.seq > moment.call.body.history:
            later.append(_later(event, made, full, text))
            continue
        now = "" if entry is None else standing_text(entry, event.body, stubs)
        if entry is not None and text in now and _is_sent(entry, shown):
            here.append((entry, event, now))
        elif entry is not None or _says(event):
            gone.append((entry, event, full))
    watched = {event.seq: id_of(event.body) for _, event, _ in (*here, *gone)}
    paid = follow(events, calls, watched)
    holders = list(_head_holders(calls, head, moment.call, text))
    holders += [_holder(*found, paid, made, text) for found in here]
    holders += _summaries(compactions, moment, text)
    lost = [_gone(*found, paid, made, text, events, compactions) for found in gone]
    return Answer(
        session=moment.call.event.session,
        text=text,
        step=moment.call.step,
        here=tuple(holders),
        gone=tuple(lost),
        later=tuple(later),
    )


def _says(event: Event) -> bool:
    return bool(text_of(event.body)) and getattr(event.body, "purpose", "main") == "main"


def _shown(moment: Moment) -> tuple[set[str], set[int]]:
    """The calls whose results, and the replies that, stand in the request."""
    messages = moment.context(None).messages
    results = {p.call_id for m in messages for p in m.parts if isinstance(p, CallResult)}
    calls = {p.id for m in messages for p in m.parts if isinstance(p, ToolCall)}
    replies = {message.key for message in messages if message.role == "assistant"}
    return results | calls, replies


def _is_sent(entry: Entry, shown: tuple[set[str], set[int]]) -> bool:
    """Whether an entry of the ledger stands in the messages: one that says nothing doesn't."""
    ids, replies = shown
    if entry.kind == "result":
        return entry.call_id in ids
    if entry.kind == "reply":
        return entry.seq in replies
    return True


def _stub_holds(entry: Entry | None, event: Event, stubs: Mapping[str, str], text: str) -> bool:
    """Whether what stands in a message's stead holds the text, though the message never did."""
    if entry is None or entry.standing not in ("replaced", "digested"):
        return False
    return text in standing_text(entry, event.body, stubs)


def _holder(
    entry: Entry,
    event: Event,
    now: str,
    paid: Mapping[int, Paid],
    made: Mapping[str, ToolCall],
    text: str,
) -> Holder:
    sums = paid[event.seq]
    layer = "documentation" if entry.pinned else "history"
    section = entry.key if entry.kind == "fact" else entry.name or entry.kind
    return Holder(
        layer=layer,
        section=section,
        id=entry.id,
        event=event.seq,
        kind=entry.kind,
        origin=origin_of(event.body, made),
        reason=reason_of(event.body),
        excerpt=excerpt(now, text),
        tokens=entry.tokens,
        since=sums.since,
        requests=sums.requests,
        paid=round(sums.tokens),
        cost=sums.cost,
    )


def _head_holders(
    calls: Sequence[Call], head: Head | None, call: Call, text: str
) -> Iterable[Holder]:
    """The parts of the head that hold the text: in every request with this head."""
    if head is None:
        return
    pieces = _pieces(head)
    with_it = [c for c in calls if c.body.head == call.body.head]
    for key, piece in pieces:
        if text not in piece:
            continue
        tokens = estimate(piece)
        yield Holder(
            layer="system",
            section=key,
            id="",
            event=0,
            kind="head",
            origin=f"head {call.body.head[:8]}",
            reason=next((s.reason for s in head.sections if s.key == key), ""),
            excerpt=excerpt(piece, text),
            tokens=tokens,
            since=with_it[0].step if with_it else None,
            requests=len(with_it),
            paid=tokens * len(with_it),
            cost=_head_cost(with_it, tokens),
        )


def _head_cost(calls: Sequence[Call], tokens: int) -> float | None:
    cost = 0.0
    for number, call in enumerate(calls):
        prices = call.prices
        if prices.input is None:
            return None
        rate = prices.input
        if number and call.usage.cached and prices.cached is not None:
            rate = prices.cached
        cost += tokens * rate / 1e6
    return cost


def _pieces(head: Head) -> list[tuple[str, str]]:
    """The head's parts by their names, and what is sent of each tool."""
    named = [section.key for section in head.sections if section.key != "tools"]
    texts = head.system.split("\n\n====\n\n")
    if len(texts) != len(named):
        named, texts = ["system"], [head.system]
    tools = [
        (f"tool {doc.name}", f"{doc.name}\n{doc.description or doc.summary}\n{doc.parameters}")
        for doc in head.core
        if any(section.key == "tools" for section in head.sections)
    ]
    return [*zip(named, texts, strict=True), *tools]


def _summaries(compactions: Sequence[Event], moment: Moment, text: str) -> list[Holder]:
    """The compaction whose summary stands in the request and holds the text."""
    for event in reversed(compactions):
        body = event.body
        if not isinstance(body, Compacted) or not body.summary:
            continue
        if text not in text_of(body):
            return []
        later = [moment.call] if moment.call.event.seq > event.seq else []
        return [
            Holder(
                layer="history",
                section="summary",
                id=f"event:{event.seq}",
                event=event.seq,
                kind="summary",
                origin=f"summary by {body.policy}",
                reason=body.reason,
                excerpt=excerpt(text_of(body), text),
                tokens=estimate(text_of(body)),
                since=later[0].step if later else None,
                requests=len(later),
                paid=estimate(text_of(body)) * len(later),
                cost=None,
            )
        ]
    return []


def _gone(
    entry: Entry | None,
    event: Event,
    full: str,
    paid: Mapping[int, Paid],
    made: Mapping[str, ToolCall],
    text: str,
    events: Sequence[Event],
    compactions: Sequence[Event],
) -> Gone:
    sums = paid[event.seq]
    taker = _undone_by(event, events) if entry is None else taken_by(entry, compactions)
    by, reason = "", ""
    match taker.body if taker is not None else None:
        case Compacted() as body:
            by, reason = body.policy, body.reason
        case Undone() as undone:
            by = undone.kind
        case _:
            pass
    return Gone(
        id=getattr(event.body, "message_id", ""),
        event=event.seq,
        kind=entry.kind if entry is not None else kind_of(event.body)[0],
        origin=origin_of(event.body, made),
        excerpt=excerpt(full, text),
        standing=entry.standing if entry is not None else "undone",
        since=sums.since,
        at=sums.left,
        by=by,
        by_event=taker.seq if taker is not None else None,
        reason=reason,
        tokens=entry.full if entry is not None else getattr(event.body, "tokens", 0),
    )


def taken_by(entry: Entry, compactions: Sequence[Event]) -> Event | None:
    """The last compaction that changed how an entry stands."""
    names = {entry.id, entry.call_id} - {""}
    for event in reversed(compactions):
        body = event.body
        if not isinstance(body, Compacted):
            continue
        if names & {*body.replaced, *body.digested, *body.hidden, *body.cut}:
            return event
        if entry.standing == "summarised" and entry.seq <= body.until:
            return event
    if entry.standing == "full":
        return None
    # What isn't named went with something: a call's result, the tail of the time.
    return next((event for event in compactions if event.seq > entry.seq), None)


def _undone_by(event: Event, events: Sequence[Event]) -> Event | None:
    found = None
    for other in events:
        if isinstance(other.body, Undone) and other.seq > event.seq and other.body.hides(event.seq):
            found = found or other
    return found


def _later(event: Event, made: Mapping[str, ToolCall], full: str, text: str) -> Later:
    return Later(
        id=getattr(event.body, "message_id", ""),
        event=event.seq,
        kind=kind_of(event.body)[0],
        origin=origin_of(event.body, made),
        excerpt=excerpt(full, text),
    )


def excerpt(full: str, text: str) -> str:
    """The place in a line, with a little of what stands around it."""
    at = full.find(text)
    if at < 0:
        return ""
    start, end = max(0, at - AROUND), at + len(text) + AROUND
    shown = " ".join(full[start:end].split())
    return f"{'…' if start else ''}{shown}{'…' if end < len(full) else ''}"
