"""Plays a recorded log under another policy: its events as they were, its compactions as the policy wants
them, its cache as a provider would keep it."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec import Struct

from croze.context.account import Account, Accounting
from croze.context.breaks import SMALLEST_CACHED, idle_seconds, is_cold
from croze.context.evidence import Evidence, Score, add_stubs
from croze.context.ledger import Ledger
from croze.context.policies import Decision, Policy, State, Zone, overflows, zone_of
from croze.context.receipt import receipt_of
from croze.context.recover import recover
from croze.context.requests import Call
from croze.context.summary import REQUEST_TOKENS, SUMMARY_TOKENS, fallback_of
from croze.types.agent import AgentSpec
from croze.types.context import Budget, budget_for
from croze.types.event import Compacted, Event, FactAdded, ModelCalled, ModelSaid, Notice, Undone
from croze.types.model import Prices


class Scenario(Struct, frozen=True, kw_only=True):
    """What is to be tried: a policy by name with its zone as users write it. None takes what the log
    has; `prices_of` names whose prices they are. How low a batch goes and what it must free are the log's."""

    policy: str
    zone: str | None = None
    window: int | None = None
    prices: Prices | None = None
    prices_of: str = ""


def head_tokens(call: Call) -> int:
    return call.head.tokens if call.head is not None else 0


def budget_of(call: Call, window: int | None) -> Budget:
    if call.head is None:
        return budget_for(window or 0, 0)
    return budget_for(window or call.head.model.window, call.head.model.max_output)


def _zone(call: Call, scenario: Scenario, budget: Budget) -> Zone:
    """The scenario's zone, else the session's own; `auto` where it is from before there were zones."""
    spec = AgentSpec() if call.head is None else call.head.agent
    high = scenario.zone or spec.zone or "auto"
    return zone_of(scenario.policy, high, budget, low=spec.low, gain=spec.gain)


def output_of(call: Call) -> int:
    """A reply's tokens: as reported, else as estimated."""
    reply = call.reply
    if reply is None:
        return 0
    return reply.tokens if reply.usage.output is None else reply.usage.output


class Spread:
    """The log with room between its events for those of a simulation: every sequence number is doubled,
    what the recorded policy did is left out."""

    def __init__(self, events: Sequence[Event], calls: Sequence[Call]) -> None:
        self.session = calls[0].event.session
        self.calls = calls
        self.events = [self._spread(event) for event in events if not self._is_shape(event)]
        seqs = [event.seq for event in self.events]
        self.cuts: dict[int, list[Call]] = {}
        for call in calls:
            at = bisect_right(seqs, 2 * call.body.history) - 1
            self.cuts.setdefault(seqs[at], []).append(call)

    @staticmethod
    def _is_shape(event: Event) -> bool:
        body = event.body
        return isinstance(body, Compacted) or (
            isinstance(body, Notice) and body.code == "compaction_stuck"
        )

    @staticmethod
    def _spread(event: Event) -> Event:
        body = event.body
        if isinstance(body, Undone):
            hidden = tuple((2 * first, 2 * last + 1) for first, last in body.hidden)
            body = msgspec.structs.replace(body, hidden=hidden)
        elif isinstance(body, ModelCalled):
            body = msgspec.structs.replace(body, history=2 * body.history)
        return Event(session=event.session, seq=2 * event.seq, at=event.at, body=body, v=event.v)


@dataclass(slots=True)
class Sums:
    """What a scenario has come to so far."""

    tokens: int = 0
    cached: int = 0
    output: int = 0
    cost: float | None = 0.0
    summary_cost: float | None = 0.0
    compactions: int = 0
    summaries: int = 0
    recoveries: int = 0
    peak: int = 0
    over: int = 0


@dataclass(slots=True)
class Simulation:
    """One scenario, played from the log's first event to its last."""

    log: Spread
    scales: Sequence[float]
    found: Evidence
    scenario: Scenario
    policy: Policy
    ledger: Ledger = field(default_factory=Ledger)
    score: Score = field(default_factory=Score)
    sums: Sums = field(default_factory=Sums)
    stubs: dict[str, str] = field(default_factory=dict)
    played: list[Event] = field(default_factory=list)
    tails: list[int] = field(default_factory=list)
    undone: Undone | None = None
    accounting: Accounting = field(default_factory=Accounting)
    accounted: int = 0
    accounted_to: int = 0
    summary: str = ""
    before: Call | None = None
    sent: int = 0
    changed: int | None = None
    rewritten: bool = False

    def run(self) -> Sums:
        """Play every event; gives the sums, with what quotes found and missed."""
        for event in self.log.events:
            self._feed(event)
            for call in self.log.cuts.get(event.seq, ()):
                self._request(call)
        return self.sums

    def _feed(self, event: Event) -> None:
        body = event.body
        if isinstance(body, ModelSaid) and body.joined and body.continues:
            self._change(self._seq_of(body.continues))
        elif isinstance(body, FactAdded) and body.place == "tail":
            self.tails.append(event.seq)
        elif isinstance(body, Undone):
            old = self.ledger.entries
            self.undone = body
            self.accounted, self.accounting = 0, Accounting(body)
            hidden = [entry.seq for entry in old if body.hides(entry.seq)]
            self._change(min(hidden, default=None))
        self.ledger.feed(event)
        self.played.append(event)

    def _seq_of(self, message_id: str) -> int | None:
        entry = self.ledger.by_id.get(message_id)
        return None if entry is None else entry.seq

    def _change(self, seq: int | None) -> None:
        """Something before the end of what was sent isn't what it was, from the event `seq` on."""
        if seq is not None:
            self.changed = seq if self.changed is None else min(self.changed, seq)

    def _request(self, call: Call) -> None:
        scale, head = self.scales[call.index], head_tokens(call)
        prices = self.scenario.prices or call.prices
        budget = budget_of(call, self.scenario.window)
        idle = self._idle(call)
        if call.part == 1:
            self._shape(call, scale, head, prices, budget)
        estimated = self.ledger.tokens + head
        tokens = round(estimated * scale)
        cached = 0 if is_cold(idle) else round(self._kept(head) * scale)
        if cached < SMALLEST_CACHED:
            cached = 0
        cached = min(cached, tokens)
        self.score.judge(
            self.found, call, self.ledger, self.stubs, self.summary, upto=call.body.history
        )
        sums = self.sums
        sums.tokens += tokens
        sums.cached += cached
        sums.output += output_of(call)
        sums.peak = max(sums.peak, tokens)
        sums.over += 0 < budget.available < tokens
        sums.cost = _plus(sums.cost, _cost(prices, tokens, cached, output_of(call)))
        self.before, self.sent, self.changed, self.rewritten = call, estimated, None, False

    def _idle(self, call: Call) -> float | None:
        """Seconds since the last request; None where nothing of it can be cached."""
        before = self.before
        if (
            before is None
            or before.body.head != call.body.head
            or before.body.model != call.body.model
        ):
            return None
        return idle_seconds(before, call)

    def _kept(self, head: int) -> int:
        """The estimated tokens that this request begins with as the one before did."""
        if self.changed is None:
            return self.sent
        behind = 0
        for entry in reversed(self.ledger.entries):
            if entry.seq < self.changed:
                break
            behind += entry.tokens
        new = self.ledger.summary if self.rewritten else 0
        return min(self.sent, max(head, head + self.ledger.tokens - new - behind))

    def _shape(self, call: Call, scale: float, head: int, prices: Prices, budget: Budget) -> None:
        """What happens before a request: the policy's step, and recovery where the window is full."""
        decision = self.policy(self._state(call, scale, head, prices, budget))
        if decision is not None:
            self._apply(decision, call, scale, prices)
        state = self._state(call, scale, head, prices, budget)
        if overflows(state):
            rescue = recover(state)
            if rescue is not None:
                self._apply(rescue, call, scale, prices)
                self.sums.recoveries += 1

    def _state(self, call: Call, scale: float, head: int, prices: Prices, budget: Budget) -> State:
        ledger = self.ledger
        idle = None
        if ledger.last is not None and ledger.newest is not None and not ledger.cold:
            idle = max(0.0, (ledger.newest.at - ledger.last.at) / 1e6)
        return State(
            ledger=ledger,
            tokens=round((ledger.tokens + head) * scale),
            head=round(head * scale),
            scale=scale,
            budget=budget,
            zone=_zone(call, self.scenario, budget),
            prices=prices,
            idle=idle,
        )

    def _apply(self, decision: Decision, call: Call, scale: float, prices: Prices) -> None:
        ledger, body = self.ledger, decision.event
        seq = self.played[-1].seq + (0 if self.played[-1].seq % 2 else 1)

        def event_of(body: Compacted) -> Event:
            return Event(session=self.log.session, seq=seq, at=call.event.at, body=body)

        if decision.summarise:
            found = self._account(body.until)
            text = fallback_of(found, self.summary)
            body = msgspec.structs.replace(body, summary=text, receipt=receipt_of(found))
            self.summary = f"{text}\n{body.receipt}"
            self.sums.summaries += 1
            self.rewritten = True
            asked = min(round(ledger.tokens * scale), REQUEST_TOKENS)
            price = _cost(prices, asked, 0, SUMMARY_TOKENS)
            self.sums.summary_cost = _plus(self.sums.summary_cost, price)
        add_stubs(self.stubs, body)
        was = ledger.tokens
        self._change(self._first_of(body))
        self._feed(event_of(body))
        if decision.summarise:  # what the summary takes is known only now
            after = max(0, body.tokens_before - round((was - ledger.tokens) * scale))
            ledger.compactions[-1] = event_of(msgspec.structs.replace(body, tokens_after=after))
        self.sums.compactions += 1

    def _account(self, until: int) -> Account:
        """What was done up to an event. Each summary reaches further than the last, so the account only
        grows; after an undo it is made anew."""
        if until < self.accounted_to:
            self.accounted, self.accounting = 0, Accounting(self.undone)
        while self.accounted < len(self.played) and self.played[self.accounted].seq <= until:
            self.accounting.feed(self.played[self.accounted])
            self.accounted += 1
        self.accounted_to = until
        return self.accounting.found

    def _first_of(self, body: Compacted) -> int | None:
        """The first event whose bytes a compaction changes; None where it changes none."""
        ledger = self.ledger
        seqs = list(self.tails)
        self.tails.clear()
        for name in (*body.replaced, *body.digested, *body.hidden):
            entry = ledger.by_call.get(name) or ledger.by_id.get(name)
            if entry is None:
                continue
            seqs.append(entry.seq)
            made = ledger.call_of(entry.call_id) if name in body.hidden else None
            if made is not None:
                seqs.append(made[0].seq)
        for name in body.cut:
            made = ledger.call_of(name)
            if made is not None:
                seqs.append(made[0].seq)
        if body.summary:  # it stands where the first of what it stands for stood
            first = next((e.seq for e in ledger.entries if e.kind != "user" and not e.pinned), None)
            seqs += [] if first is None else [first]
        return min(seqs, default=None)


def _plus(total: float | None, more: float | None) -> float | None:
    return None if total is None or more is None else total + more


def _cost(prices: Prices, tokens: int, cached: int, output: int) -> float | None:
    """What a request would cost where all that isn't cached is written to the cache."""
    if prices.input is None or prices.output is None:
        return None
    read = prices.input if prices.cached is None else prices.cached
    write = prices.input if prices.cache_write is None else prices.cache_write
    return (cached * read + (tokens - cached) * write + output * prices.output) / 1e6
