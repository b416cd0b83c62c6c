"""What the model saw in one request: its sections with tokens, cost, reason and origin, and its messages."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from croze.context.check import CEILINGS, SYSTEM_TOKENS
from croze.context.head import Head
from croze.context.ledger import Ledger, Standing, ledger_of
from croze.context.requests import Call, Exactness, Moment
from croze.context.spans import SHORT, standing_text, stubs_of, text_of
from croze.types.context import Context, Layer, Section, budget_for
from croze.types.event import Event, FactAdded, ModelCalled, ModelSaid, Unknown
from croze.types.model import Prices, Usage

FIRST_WORDS = 200
"""Characters of a message that a report shows."""

GONE = ("hidden", "summarised")


class SectionRow(Struct, frozen=True, omit_defaults=True):
    """A section of the request. `tokens` are in the provider's count (`Report.counted`); `cached` of
    them were read from its cache, `written` stored there, the rest was read anew. They are None where
    the provider doesn't say, `cost` (US dollars) where a price is unknown.

    `stability` is frozen (the head), prefix (sent before, byte for byte) or new. `count` says how many
    facts of one name it sums up.
    """

    layer: Layer
    name: str
    tokens: int
    share: float
    reason: str
    origin: str
    stability: str
    count: int = 1
    cached: int | None = None
    written: int | None = None
    cost: float | None = None


class LayerRow(Struct, frozen=True, omit_defaults=True):
    """A layer's sum. `share` is of the budget; `ceiling` in tokens is None where there is none."""

    layer: Layer
    tokens: int
    share: float
    ceiling: int | None = None
    over: bool = False


class KindRow(Struct, frozen=True):
    """What the transcript is made of: one kind of message, results by tool."""

    kind: str
    name: str
    count: int
    tokens: int
    share: float


class MessageRow(Struct, frozen=True, omit_defaults=True):
    """A message and how it stands. `tokens` is what it takes now, `full` what it took at first; both are
    estimates. `event` is its sequence number, `text` its first words as the model sees them (of one that
    is gone: as it saw them)."""

    id: str
    role: str
    event: int
    step: int
    tokens: int
    full: int
    standing: Standing
    text: str
    name: str = ""
    marked: bool = False
    cut: tuple[str, ...] = ()


class AsideRow(Struct, frozen=True, omit_defaults=True):
    """Requests outside of the conversation: a summary, an edit, a commit message."""

    purpose: str
    count: int
    tokens: int
    cost: float | None


class Report(Struct, frozen=True, omit_defaults=True):
    """One request of a session. `counted` tells whether `tokens` are the provider's count or an estimate.
    `unknown` counts events that this version can't read; what they did is missing here."""

    session: str
    name: str
    steps: int
    step: int
    part: int
    parts: int
    event: int
    at: int
    model: str
    dialect: str
    exact: Exactness
    tokens: int
    counted: str
    estimated: int
    reported: int | None
    cached: int | None
    written: int | None
    window: int
    reserve: int
    prices: Prices
    cost_input: float | None
    cost_output: float | None
    sections: tuple[SectionRow, ...]
    layers: tuple[LayerRow, ...]
    kinds: tuple[KindRow, ...]
    messages: tuple[MessageRow, ...]
    asides: tuple[AsideRow, ...] = ()
    prefill: bool = False
    retries: int = 0
    unknown: int = 0

    @property
    def available(self) -> int:
        return max(0, self.window - self.reserve)


class Unrecorded(Struct, frozen=True):
    """A conversation without any recorded request: it was imported, or nothing was asked yet."""

    session: str
    name: str
    requests: int
    imported: bool
    messages: tuple[MessageRow, ...]


def unrecorded(session: str, name: str, events: Sequence[Event]) -> Unrecorded:
    """What can be told of a log that holds no request: its messages."""
    by_seq = {event.seq: event for event in events}
    rows = tuple(message_rows(ledger_of(events), by_seq))
    imported = any(isinstance(event.body, ModelSaid) for event in events)
    return Unrecorded(session, name, 0, imported, rows)


def report_of(
    moment: Moment,
    head: Head | None,
    exact: Exactness,
    *,
    calls: Sequence[Call],
    events: Sequence[Event],
    name: str = "",
) -> Report:
    """The report of one request. `events` is the whole log."""
    call = moment.call
    context = moment.context(head)
    by_seq = {event.seq: event for event in events}
    before = calls[call.index - 1].body.history if call.index else 0
    usage, prices = call.usage, call.prices
    rows = tuple(_sections(moment, context, by_seq, before))
    info = call.head.model if call.head is not None else None
    budget = budget_for(info.window, info.max_output) if info is not None else budget_for(0, 0)
    reply = call.reply
    return Report(
        session=call.event.session,
        name=name,
        steps=calls[-1].step,
        step=call.step,
        part=call.part,
        parts=sum(other.step == call.step for other in calls),
        event=call.event.seq,
        at=call.event.at,
        model=call.body.model,
        dialect=call.head.dialect if call.head is not None else "",
        exact=exact,
        tokens=call.tokens,
        counted="provider" if usage.input else "estimate",
        estimated=call.body.tokens,
        reported=usage.input,
        cached=usage.cached,
        written=usage.cache_write,
        window=budget.window,
        reserve=budget.reserve,
        prices=prices,
        cost_input=reply.cost.input if reply is not None else None,
        cost_output=reply.cost.output if reply is not None else None,
        sections=rows,
        layers=tuple(_layers(rows, budget.available)),
        kinds=tuple(_kinds(moment.ledger)),
        messages=tuple(message_rows(moment.ledger, by_seq)),
        asides=asides_of(events),
        prefill=call.body.prefill,
        retries=_retries(by_seq, call),
        unknown=sum(isinstance(event.body, Unknown) for event in events),
    )


def _sections(
    moment: Moment,
    context: Context,
    by_seq: Mapping[int, Event],
    before: int,
) -> Iterable[SectionRow]:
    """The rows in the order of the request: what is frozen, what was sent before, what is new."""
    facts = _facts(moment.ledger, context)
    spans = [entry.seq for entry in moment.ledger.entries if entry.standing not in GONE]
    merged: dict[tuple[str, str, str], list[tuple[Section, str]]] = {}
    for number, section in enumerate(context.sections):
        if section.place == "head":
            stability, origin = "frozen", f"head {moment.call.body.head[:SHORT]}"
        elif number in facts:
            seq = facts[number]
            stability = "new" if seq > before else "prefix"
            body = by_seq[seq].body if seq in by_seq else None
            named = body.origin if isinstance(body, FactAdded) else ""
            origin = f"{named}, event {seq}" if named else f"event {seq}"
        else:
            new = section.layer == "current"
            stability = "new" if new else "prefix"
            seqs = [seq for seq in spans if (seq > before) is new]
            origin = _range(seqs)
        merged.setdefault((section.layer, section.key, stability), []).append((section, origin))
    order = {"frozen": 0, "prefix": 1, "new": 2}
    groups = sorted(merged.items(), key=lambda item: (order[item[0][2]], _LAYERS[item[0][0]]))
    total = sum(section.tokens for section in context.sections)
    account = _Account(moment.call.tokens, total, moment.call.usage, moment.call.prices)
    dealt = {
        group: account.take(sum(s.tokens for s, _ in found))
        for group, found in sorted(merged.items(), key=lambda item: order[item[0][2]])
    }
    for group, found in groups:
        _layer, key, stability = group
        section, origin = found[-1]
        tokens, cached, written, cost = dealt[group]
        yield SectionRow(
            layer=section.layer,
            name=key,
            tokens=tokens,
            share=tokens / account.all if account.all else 0.0,
            reason=section.reason,
            origin=origin,
            stability=stability,
            count=len(found),
            cached=cached,
            written=written,
            cost=cost,
        )


_LAYERS: Mapping[str, int] = {"system": 0, "documentation": 1, "history": 2, "current": 3}


class _Account:
    """Deals a request's tokens and money out to its sections in order, so that the sums come out even:
    what was cached lies in front, what was stored there behind it."""

    def __init__(self, tokens: int, estimated: int, usage: Usage, prices: Prices) -> None:
        self.all = tokens
        self._scale = tokens / estimated if estimated else 0.0
        self._usage, self._prices = usage, prices
        self._raw = 0
        self._at = 0

    def take(self, estimated: int) -> tuple[int, int | None, int | None, float | None]:
        start = self._at
        self._raw += estimated
        self._at = round(self._raw * self._scale)
        tokens = self._at - start
        if self._usage.input is None:
            return tokens, None, None, None
        said = self._usage.cached is not None or self._usage.cache_write is not None
        reads = self._usage.cached or 0
        cached = _overlap(start, self._at, 0, reads)
        written = _overlap(start, self._at, reads, reads + (self._usage.cache_write or 0))
        cost = _price(self._prices, cached, written, tokens - cached - written)
        return tokens, cached if said else None, written if said else None, cost


def _overlap(start: int, end: int, low: int, high: int) -> int:
    return max(0, min(end, high) - max(start, low))


def _price(prices: Prices, cached: int, written: int, fresh: int) -> float | None:
    if prices.input is None:
        return None
    read = prices.input if prices.cached is None else prices.cached
    write = prices.input if prices.cache_write is None else prices.cache_write
    return (cached * read + written * write + fresh * prices.input) / 1e6


def _facts(ledger: Ledger, context: Context) -> dict[int, int]:
    """The event of each of the context's sections that is a fact: those of one key stand in the log's
    order."""
    waiting: dict[str, list[int]] = {}
    for entry in ledger.entries:
        if entry.kind == "fact" and entry.standing not in GONE:
            waiting.setdefault(entry.key, []).append(entry.seq)
    found: dict[int, int] = {}
    for number in range(len(context.sections) - 1, -1, -1):
        section = context.sections[number]
        if section.place != "head" and waiting.get(section.key):
            found[number] = waiting[section.key].pop()
    return found


def _range(seqs: Sequence[int]) -> str:
    if not seqs:
        return ""
    first, last = min(seqs), max(seqs)
    return f"event {first}" if first == last else f"events {first}–{last}"


def _layers(rows: Sequence[SectionRow], available: int) -> Iterable[LayerRow]:
    for layer in _LAYERS:
        found = [row for row in rows if row.layer == layer]
        if not found:
            continue
        tokens = sum(row.tokens for row in found)
        share = CEILINGS.get(layer)
        ceiling = None
        if share is not None and available:
            ceiling = round(share * available)
            ceiling = min(ceiling, SYSTEM_TOKENS) if layer == "system" else ceiling
        yield LayerRow(
            layer=found[0].layer,
            tokens=tokens,
            share=tokens / available if available else 0.0,
            ceiling=ceiling,
            over=ceiling is not None and tokens > ceiling,
        )


def _kinds(ledger: Ledger) -> Iterable[KindRow]:
    sums: dict[tuple[str, str], list[int]] = {}
    for entry in ledger.entries:
        if entry.standing not in GONE:
            name = entry.name if entry.kind == "result" else entry.key
            sums.setdefault((entry.kind, name), []).append(entry.tokens)
    total = sum(map(sum, sums.values()))
    ranked = sorted(sums.items(), key=lambda item: (-sum(item[1]), item[0]))
    for (kind, name), tokens in ranked:
        part = sum(tokens)
        yield KindRow(kind, name, len(tokens), part, part / total if total else 0.0)


def message_rows(ledger: Ledger, by_seq: Mapping[int, Event]) -> Iterable[MessageRow]:
    """Every message of the log up to here and how it stands."""
    stubs = stubs_of(ledger.compactions)
    marked = set(ledger.marked)
    for entry in ledger.entries:
        event = by_seq.get(entry.seq)
        text = ""
        if event is not None:
            text = standing_text(entry, event.body, stubs) or text_of(event.body)
        yield MessageRow(
            id=entry.id,
            role=entry.kind,
            event=entry.seq,
            step=entry.step,
            tokens=entry.tokens,
            full=entry.full,
            standing=entry.standing,
            text=" ".join(text[: 2 * FIRST_WORDS].split())[:FIRST_WORDS],
            name=entry.name or entry.key,
            marked=entry.id in marked,
            cut=tuple(sorted(entry.cut)),
        )


def asides_of(events: Iterable[Event]) -> tuple[AsideRow, ...]:
    """The requests that were asked beside the conversation, by their purpose."""
    sums: dict[str, tuple[int, int, float | None]] = {}
    for event in events:
        match event.body:
            case ModelCalled(purpose=purpose) if purpose != "main":
                count, tokens, cost = sums.get(purpose, (0, 0, 0.0))
                sums[purpose] = count + 1, tokens, cost
            case ModelSaid(purpose=purpose) as body if purpose != "main":
                count, tokens, cost = sums.get(purpose, (0, 0, 0.0))
                more = body.cost.total
                cost = None if cost is None or more is None else cost + more
                sums[purpose] = count, tokens + (body.usage.input or 0), cost
            case _:
                pass
    return tuple(AsideRow(purpose, *sums[purpose]) for purpose in sorted(sums))


def _retries(by_seq: Mapping[int, Event], call: Call) -> int:
    end = call.said.seq if call.said is not None else call.event.seq
    seqs = range(call.event.seq, end)
    return sum(s in by_seq and by_seq[s].type == "Retried" for s in seqs)
