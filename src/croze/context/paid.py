"""What a message has cost so far: the requests that it was sent in, their tokens, their price."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from croze.context.breaks import idle_seconds, is_cold
from croze.context.ledger import Entry, Ledger
from croze.context.requests import Call
from croze.types.event import Event


@dataclass(slots=True)
class Paid:
    """What a message has cost over the requests that it stood in."""

    since: int | None = None
    requests: int = 0
    tokens: float = 0.0
    cost: float | None = 0.0
    last: float = 0.0
    left: int | None = None
    seen: bool = False


def follow(
    events: Sequence[Event], calls: Sequence[Call], watched: Mapping[int, str]
) -> dict[int, Paid]:
    """Go through all requests and add up what the watched messages cost in each; `watched` maps their
    events to their message ids."""
    paid = {seq: Paid() for seq in watched}
    if not watched:
        return paid
    cuts: dict[int, list[Call]] = {}
    for call in calls:
        cuts.setdefault(call.body.history, []).append(call)
    ledger = Ledger()
    before: Call | None = None
    said: list[int] = []
    for event in events:
        ledger.feed(event)
        if event.seq in watched:
            said.append(event.seq)
        for call in cuts.get(event.seq, ()):
            estimated = ledger.tokens + (call.head.tokens if call.head else 0)
            scale = call.tokens / estimated if estimated else 1.0
            broken = before is not None and before.body.head != call.body.head
            cold = before is None or broken or is_cold(idle_seconds(before, call))
            for seq in said:
                _pay(paid[seq], ledger.by_id.get(watched[seq]), call, scale, cold=cold)
            before = call
    return paid


def _pay(paid: Paid, entry: Entry | None, call: Call, scale: float, *, cold: bool) -> None:
    stands = entry is not None and entry.standing not in ("hidden", "summarised")
    if paid.seen and paid.left is None and (entry is None or entry.standing != "full"):
        paid.left = call.step
    if paid.left is not None and entry is not None and entry.standing == "full":
        paid.left = None
    if not stands or entry is None:
        paid.last = 0.0
        return
    if not paid.seen:
        paid.seen, paid.since = True, call.step
    tokens = entry.tokens * scale
    paid.requests += 1
    paid.tokens += tokens
    prices = call.prices
    fresh = cold or paid.last != entry.tokens
    paid.last = float(entry.tokens)
    rate = prices.input
    if fresh and prices.cache_write is not None and call.usage.cache_write:
        rate = prices.cache_write
    elif not fresh and call.usage.cached:
        rate = prices.input if prices.cached is None else prices.cached
    if rate is None or paid.cost is None:
        paid.cost = None
    else:
        paid.cost += tokens * rate / 1e6
