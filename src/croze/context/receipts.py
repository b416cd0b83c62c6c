"""Receipts: what each compaction took out of the context, why, and what that saved or cost up to now."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from croze.context.breaks import Break, extra_price
from croze.context.requests import Call
from croze.context.shape import stays
from croze.context.spans import calls_in, kind_of, origin_of, text_of
from croze.text.tokens import estimate
from croze.types.event import (
    Compacted,
    Event,
    FactAdded,
    MessagesMarked,
    ModelSaid,
    ToolReturned,
    Undone,
    UserSaid,
)
from croze.types.parts import ToolCall

RESTORED = "restored"
"""The key of the fact that brings a span back."""


class Pruned(Struct, frozen=True, omit_defaults=True):
    """One message that a compaction changed. `how` is replaced, digested, cut, hidden or summarised;
    `tokens` what it took at first, `left` what stands for it (estimates)."""

    id: str
    how: str
    kind: str
    origin: str
    tokens: int
    left: int = 0
    restored: bool = False


class Receipt(Struct, frozen=True, omit_defaults=True):
    """One compaction. `before` and `after` are the whole request's tokens as the policy counted them.
    `step` is the first one without what it took; the last one with it where no request came since.

    Since then `requests` have been sent, each without the `freed` tokens. `saved` are their tokens in
    all; `rewritten` had to be written again because the prefix broke here. `money` is what the one saved
    less what the other cost, in US dollars at the prices of the calls: below 0 it was dear. `undone`: an
    undo has taken the compaction back.
    """

    event: int
    at: int
    step: int
    policy: str
    reason: str
    before: int
    after: int
    freed: int
    requests: int
    saved: int
    rewritten: int
    money: float | None
    spans: tuple[Pruned, ...]
    summary: str = ""
    receipt: str = ""
    figures: dict[str, float] = {}
    undone: bool = False


class Receipts(Struct, frozen=True):
    """All of a session's, the oldest first. `marked` are messages that the model has let go of and no
    compaction has taken yet."""

    session: str
    receipts: tuple[Receipt, ...]
    saved: int
    rewritten: int
    money: float | None
    marked: tuple[str, ...]


def receipts_of(
    session: str, events: Sequence[Event], calls: Sequence[Call], breaks: Sequence[Break]
) -> Receipts:
    """The receipts of a log; `breaks` say what each compaction made to be written again."""
    known = _Known(events)
    undone = [e for e in events if isinstance(e.body, Undone)]
    last = undone[-1] if undone else None
    by_event = {item.event: item for item in breaks}
    found: list[Receipt] = []
    gone: set[str] = set()
    for event in events:
        body = event.body
        if not isinstance(body, Compacted):
            continue
        taken_back = (
            last is not None and isinstance(last.body, Undone) and last.body.hides(event.seq)
        )
        end = last.seq if taken_back and last is not None else None
        later = [c for c in calls if c.event.seq > event.seq and (end is None or c.event.seq < end)]
        broke = by_event.get(later[0].event.seq) if later else None
        if broke is not None and broke.cause != "compaction":
            broke = None
        spans = tuple(known.pruned(event, body, gone))
        freed = max(0, body.tokens_before - body.tokens_after)
        found.append(
            Receipt(
                event=event.seq,
                at=event.at,
                step=later[0].step if later else _last_step(event, calls),
                policy=body.policy,
                reason=body.reason,
                before=body.tokens_before,
                after=body.tokens_after,
                freed=freed,
                requests=len(later),
                saved=freed * len(later),
                rewritten=broke.again if broke is not None else 0,
                money=_money(later, freed, broke.again if broke is not None else 0),
                spans=spans,
                summary=body.summary,
                receipt=body.receipt,
                figures=body.figures,
                undone=taken_back,
            )
        )
        if not taken_back:
            gone.update(span.id for span in spans)
    money = [receipt.money for receipt in found]
    known_money = [amount for amount in money if amount is not None]
    return Receipts(
        session=session,
        receipts=tuple(found),
        saved=sum(receipt.saved for receipt in found),
        rewritten=sum(receipt.rewritten for receipt in found),
        money=sum(known_money) if len(known_money) == len(money) else None,
        marked=_marked(events, gone),
    )


def _last_step(event: Event, calls: Sequence[Call]) -> int:
    """The step of the last request before an event; 0 where there was none."""
    return next((call.step for call in reversed(calls) if call.event.seq < event.seq), 0)


def _money(later: Sequence[Call], freed: int, again: int) -> float | None:
    """What was saved: the freed tokens at the price of each later call (that of a cache read where the
    provider reported any), less what was written again."""
    money = 0.0
    for number, call in enumerate(later):
        prices = call.prices
        if prices.input is None:
            return None
        rate = prices.input
        if call.usage.cached and prices.cached is not None:
            rate = prices.cached
        money += freed * rate / 1e6
        if number == 0:
            extra = extra_price(call, again)
            money -= extra or 0.0
    return money


def _marked(events: Iterable[Event], gone: set[str]) -> tuple[str, ...]:
    marked: tuple[str, ...] = ()
    for event in events:
        if isinstance(event.body, MessagesMarked):
            marked = event.body.ids
    return tuple(name for name in marked if name not in gone)


class _Known:
    """The log's messages by the names that compactions use."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._calls: Mapping[str, ToolCall] = calls_in(events)
        self._named: dict[str, Event] = {}
        self._makers: dict[str, Event] = {}
        self._said: list[Event] = []
        self._restored: set[str] = set()
        for event in events:
            match event.body:
                case ToolReturned() as body:
                    self._named[body.message_id] = self._named[body.call_id] = event
                    self._said.append(event)
                case ModelSaid(purpose="main") as body:
                    self._named[body.message_id] = event
                    self._makers |= {p.id: event for p in body.parts if isinstance(p, ToolCall)}
                    self._said.append(event)
                case FactAdded() as body:
                    self._named[body.message_id] = event
                    self._said.append(event)
                    if body.key == RESTORED:
                        self._restored.add(body.origin.removeprefix("message "))
                case UserSaid() as body:
                    self._named[body.message_id] = event
                case _:
                    pass

    def pruned(self, event: Event, body: Compacted, gone: set[str]) -> Iterable[Pruned]:
        """Each message that this compaction changed; `gone` are those that earlier ones had taken."""
        for name, text in body.replaced.items():
            yield from self._one(name, "replaced", estimate(text))
        for name in body.digested:
            found = self._named.get(name)
            digest = found.body.digest if found and isinstance(found.body, ToolReturned) else ""
            yield from self._one(name, "digested", estimate(digest))
        for name, args in body.cut.items():
            yield from self._cut(name, args)
        for name in body.hidden:
            yield from self._one(name, "hidden", 0)
        if not body.until:
            return
        pinned = set(body.pinned)
        for said in self._said:
            if said.seq > body.until or said.seq > event.seq:
                break
            name = getattr(said.body, "message_id", "")
            kept = isinstance(said.body, FactAdded) and stays(said.body)
            if not kept and name not in pinned and name not in gone:
                yield from self._one(name, "summarised", 0)

    def _one(self, name: str, how: str, left: int) -> Iterable[Pruned]:
        found = self._named.get(name)
        if found is None:
            return
        body = found.body
        yield Pruned(
            id=getattr(body, "message_id", ""),
            how=how,
            kind=kind_of(body)[0],
            origin=origin_of(body, self._calls),
            tokens=getattr(body, "tokens", 0) or estimate(text_of(body)),
            left=left,
            restored=getattr(body, "message_id", "") in self._restored,
        )

    def _cut(self, name: str, args: Mapping[str, str]) -> Iterable[Pruned]:
        call, maker = self._calls.get(name), self._makers.get(name)
        if call is None or maker is None:
            return
        was = sum(estimate(str(call.args.get(key, ""))) for key in args)
        yield Pruned(
            id=getattr(maker.body, "message_id", ""),
            how="cut",
            kind=kind_of(maker.body)[0],
            origin=f"{call.name}: {', '.join(args)}",
            tokens=was,
            left=sum(map(estimate, args.values())),
        )
