"""The policy `batch`: nothing changes until a high watermark is passed; then one batch clears results down
to a low one, and only where that isn't enough the history is summarised, calls' arguments cut last."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from croze.context.law import LAW, RULES
from croze.context.ledger import Entry
from croze.context.policies import COLD_SHARE, Decision, State, has_grown, high_of, is_cold, is_due
from croze.context.rank import SMALL, Candidate, called, candidates
from croze.context.shape import argument_text, reply_tokens
from croze.context.shorten import CUT, cleared, cut_argument
from croze.text.tokens import estimate
from croze.types.event import Compacted, ModelSaid, Notice

KEEP_MESSAGES = 6
KEEP_STEPS = 6
SUMMARISE_ABOVE = 0.75
"""The share of the watermark above which clearing has not been enough."""
SUMMARY_TOKENS = 1_200
"""What a summary takes (800) with its receipt (400)."""
HOT_SHARE = 0.2
HOT_MOST = 6_000
"""Results that stay verbatim beside a summary: together so much of the watermark, each so many tokens."""
READ_PRICE = 0.1
WRITE_PRICE = 1.25
"""What the cache costs where the price is unknown, as shares of the input's price."""
CALLS = 3
"""Calls that are always expected to come."""


def batch(state: State) -> Decision | None:
    """One batch where the watermark is passed, the cache is cold, or what the model has let go of
    pays for the prefix that goes with it."""
    high = high_of(state)
    cold = is_cold(state) and state.ledger.last is not None
    if not state.forced and not _above(state, high):
        return _let_go(state, cold=cold)
    draft = Draft(state)
    draft.let_go(list(state.ledger.pending.values()))
    draft.drop_outdated()
    above = state.forced or state.tokens > high
    low = round(state.zone.low * high)
    before = first_of_last(state.ledger.entries, KEEP_MESSAGES)
    ranked = candidates(state.ledger.entries, state.ledger.step, before)
    draft.clear(ranked, low)
    enough = round(max(SUMMARISE_ABOVE, state.zone.low) * high)
    if above and draft.tokens > enough:
        draft.summarise(KEEP_STEPS, ranked, hot=HOT_SHARE * high)
        if draft.tokens > enough:
            draft.cut_arguments(before, enough)
    if draft.saved < state.zone.gain * high and not state.forced:
        return None
    return draft.decision("batch", "above the watermark" if above else "the cache is cold", high)


def diagnosis(state: State) -> Notice | None:
    """Why a batch came to nothing though the watermark is passed; None where none was wanted."""
    high = high_of(state)
    if state.zone.policy != "batch" or state.tokens <= high or not is_due(state):
        return None
    ledger = state.ledger
    held = round(ledger.held * state.scale)
    rest = max(0, state.tokens - state.head - held)
    text = (
        f"The context has {state.tokens:,} tokens, above its watermark of {high:,}, and less than "
        f"{state.zone.gain:.0%} of that could be freed: {state.head:,} are the system prompt and the "
        f"tools, {held:,} your messages and the project's documents, {rest:,} recent work and small "
        "results. It is left as it is until there is more to free."
    )
    params = {"tokens": state.tokens, "high": high, "head": state.head, "held": held, "rest": rest}
    return Notice(level="warning", code="compaction_stuck", text=text, params=params)


def calls_left(state: State) -> int:
    """How many calls the session is expected to go on for, from the log alone: as many as this turn has
    taken (work tends to last as long again), or what its turns have taken on average, at least 3."""
    ledger = state.ledger
    if not ledger.asked:
        return CALLS
    done = ledger.step - ledger.asked[-1]
    typical = ledger.step // len(ledger.asked)
    return max(CALLS, done, typical - done)


def break_even(state: State, behind: int, freed: int) -> float:
    """How many more calls it takes until freeing `freed` tokens has paid for writing the `behind`
    tokens after the first change into the cache anew: (w - r)/r · A/D."""
    prices = state.prices
    base = prices.input or 1.0
    read = READ_PRICE * base if prices.cached is None else prices.cached
    write = WRITE_PRICE * base if prices.cache_write is None else prices.cache_write
    if freed <= 0 or (read <= 0 and behind):
        return float("inf")
    return max(0.0, (write - read) / read * behind / freed) if behind else 0.0


def first_of_last(entries: list[Entry], messages: int) -> int:
    """The event from which on the last so many messages stand: a reply is one, what stands between two
    replies is one."""
    count, ours = 0, False
    for entry in reversed(entries):
        if entry.standing in ("hidden", "summarised"):
            continue
        if entry.kind == "reply" or not ours:
            count += 1
        ours = entry.kind != "reply"
        if count > messages:
            return entry.seq + 1
    return 0


def _above(state: State, high: int) -> bool:
    limit = high * (COLD_SHARE if is_cold(state) else 1)
    return state.tokens > limit and has_grown(state, high)


def _let_go(state: State, *, cold: bool) -> Decision | None:
    """What the model has let go of: all of it on a cold cache, else the newest of it that pays."""
    ledger = state.ledger
    gains = {e.id: g for e in ledger.pending.values() if (g := _gain(e, ledger.step)) > 0}
    if not gains:
        return None
    most = sum(gains.values())
    left, sent = calls_left(state), ledger.last.seq if ledger.last is not None else 0
    tail = min((e.seq for e in ledger.tails), default=sent)  # goes with any compaction
    chosen: list[Entry] = []
    best = behind = freed = 0
    least = sum(e.tokens for e in reversed_until(ledger.entries, tail) if e.seq <= sent)
    for entry in reversed(ledger.entries):
        if entry.id in gains:
            chosen.append(entry)
            freed += gains[entry.id]
            if cold or left > break_even(state, max(behind, least), freed):
                best = len(chosen)
            if len(chosen) == len(gains):
                break
        elif entry.seq <= sent:
            behind += entry.tokens
            if not cold and left <= break_even(state, behind, most):
                break  # however much goes, from here on it doesn't pay
    if not best:
        return None
    draft = Draft(state)
    draft.let_go(chosen[:best])
    return draft.decision("batch", "messages that the model let go of", high_of(state))


def reversed_until(entries: list[Entry], seq: int) -> Iterator[Entry]:
    """The entries behind the event `seq`, the newest first."""
    return takewhile(lambda entry: entry.seq > seq, reversed(entries))


def _gain(entry: Entry, step: int) -> int:
    """What is freed where the model's own mark is followed; nothing of what it hasn't seen yet."""
    if entry.kind != "result":
        return entry.tokens
    return entry.tokens - estimate(stub_of(entry)) if entry.step < step else 0


def stub_of(entry: Entry) -> str:
    """What stands where a result was."""
    return cleared(*called(entry), entry.full, entry.id)


@dataclass(slots=True)
class Draft:
    """A compaction in the making. `freed` counts as the ledger does, `tokens` as the provider."""

    state: State
    replaced: dict[str, str] = field(default_factory=dict)
    hidden: dict[str, Entry] = field(default_factory=dict)
    cut: dict[str, dict[str, str]] = field(default_factory=dict)
    pinned: list[str] = field(default_factory=list)
    until: int = 0
    freed: int = 0
    _costs: dict[str, int] = field(default_factory=dict)
    _first: int | None = None

    def __post_init__(self) -> None:
        for entry in self.state.ledger.tails:
            self.weigh(entry, 0)

    @property
    def tokens(self) -> int:
        return max(0, self.state.tokens - round(self.freed * self.state.scale))

    @property
    def saved(self) -> int:
        return self.state.tokens - self.tokens

    @property
    def behind(self) -> int:
        """Tokens that the cache holds behind the first changed byte, and that stay."""
        ledger, scale = self.state.ledger, self.state.scale
        if is_cold(self.state) or self._first is None:
            return 0
        first = 0 if self.until else self._first
        sent = ledger.last.seq if ledger.last is not None else 0
        total = 0
        for entry in reversed(ledger.entries):
            if entry.seq < first:
                break
            if entry.seq <= sent:
                total += self.cost(entry)
        return round(total * scale)

    @property
    def break_even(self) -> float:
        return break_even(self.state, self.behind, self.saved)

    def cost(self, entry: Entry) -> int:
        return self._costs.get(entry.id, entry.tokens)

    def weigh(self, entry: Entry, tokens: int) -> None:
        self.freed += self.cost(entry) - tokens
        self._costs[entry.id] = tokens
        self._first = entry.seq if self._first is None else min(self._first, entry.seq)

    def let_go(self, entries: list[Entry]) -> None:
        """Results become stubs, facts go; what the user said, and what the model hasn't seen, stays."""
        for entry in entries:
            if entry.kind == "fact":
                self.hide(entry)
            elif _gain(entry, self.state.ledger.step) > 0:
                self.stub(entry)

    def stub(self, entry: Entry) -> None:
        self.shorten(entry, stub_of(entry))

    def shorten(self, entry: Entry, text: str) -> None:
        tokens = estimate(text)
        if tokens < self.cost(entry):
            self.replaced[entry.call_id] = text
            self.weigh(entry, tokens)

    def hide(self, entry: Entry) -> None:
        self.hidden[entry.id] = entry
        self.weigh(entry, 0)

    def drop_outdated(self) -> None:
        """Law and rules as they were go where newer ones stand; the newest never do."""
        newer: set[str] = set()
        for entry in reversed(self.state.ledger.entries):
            law = entry.key == LAW or entry.key.startswith(f"{RULES}:")
            if law and entry.pinned and self.cost(entry):
                if entry.key in newer and self.cost(entry) >= SMALL:
                    self.hide(entry)
                newer.add(entry.key)

    def clear(self, ranked: list[Candidate], low: int) -> None:
        """Stubs for results in their order until the context is down at `low`."""
        left = self.tokens - low
        for candidate in ranked:
            if left <= 0:
                break
            entry = candidate.entry
            before = self.cost(entry)
            if entry.call_id not in self.replaced:
                self.stub(entry)
                left -= round((before - self.cost(entry)) * self.state.scale)

    def summarise(self, steps: int, ranked: list[Candidate], *, hot: float) -> None:
        """A summary in place of all but the last `steps` steps, with the results beside it that were
        quoted last, as long as they take at most `hot` tokens."""
        ledger = self.state.ledger
        early = [
            e for e in ledger.entries if e.step <= ledger.step - steps and e.seq > ledger.until
        ]
        gone = [e for e in early if not (e.kind == "user" or e.pinned)]
        if not gone:
            return
        self.until = early[-1].seq
        self.freed -= round(SUMMARY_TOKENS / self.state.scale) - ledger.summary
        stays = self._hottest(ranked, hot)
        for entry in ledger.entries:
            if entry.seq > self.until:
                break
            if entry.kind == "user" or entry.pinned or entry.standing in ("hidden", "summarised"):
                continue
            if entry.id not in stays:
                self.weigh(entry, 0)
                self.replaced.pop(entry.call_id, None)
                self.hidden.pop(entry.id, None)

    def _hottest(self, ranked: list[Candidate], hot: float) -> set[str]:
        """The ids of what stays: hot results, their replies, and stubs of what those called beside."""
        ledger, scale = self.state.ledger, self.state.scale
        stays: set[str] = set()
        for candidate in reversed(ranked):
            entry = candidate.entry
            made = ledger.call_of(entry.call_id)
            if candidate.group < 2:
                break  # superseded, as all that follow
            if entry.seq > self.until or made is None or not entry.ok or entry.id in stays:
                continue
            if entry.tokens * scale > HOT_MOST or entry.standing != "full":
                continue
            reply = made[0]
            results = [r for call in reply.calls if (r := ledger.result_of(call.id)) is not None]
            beside = [r for r in results if r is not entry]
            cost = (reply.tokens + entry.tokens + sum(min(r.tokens, 60) for r in beside)) * scale
            if cost > hot or reply.seq > self.until:
                continue
            hot -= cost
            self.replaced.pop(entry.call_id, None)
            self.weigh(entry, entry.tokens)
            self.pinned.append(entry.id)
            stays |= {reply.id, entry.id, *(r.id for r in beside)}
            for result in beside:
                if result.tokens >= SMALL and result.id not in self.pinned:
                    self.stub(result)
        return stays

    def cut_arguments(self, before: int, target: int) -> None:
        """The last resort: long arguments of calls, the oldest first, until the context fits."""
        ledger = self.state.ledger
        for entry in ledger.entries:
            if self.tokens <= target or entry.seq >= before:
                break
            if entry.kind != "reply" or not self.cost(entry) or entry.seq <= self.until:
                continue
            body = entry.event.body if entry.event is not None else None
            assert isinstance(body, ModelSaid)
            found: dict[str, dict[str, str]] = dict(entry.cut)
            for call in entry.calls:
                texts = {
                    name: cut_argument(text)
                    for name in call.args
                    if name not in entry.cut.get(call.id, {})
                    and len(text := argument_text(call, name)) > CUT + 60
                }
                if texts:
                    self.cut[call.id] = texts
                    found[call.id] = {**entry.cut.get(call.id, {}), **texts}
            if found != entry.cut:
                self.weigh(entry, reply_tokens(body, entry.gone, found, entry.stub))

    def decision(self, policy: str, reason: str, high: int) -> Decision:
        """The event as it stands, with the numbers that it was decided by."""
        state = self.state
        even = self.break_even
        figures = {
            "high": float(high),
            "freed": float(self.saved),
            "behind": float(self.behind),
            "calls_left": float(calls_left(state)),
            "cleared": float(len(self.replaced)),
        }
        if even != float("inf"):
            figures["break_even"] = round(even, 2)
        event = Compacted(
            policy=policy,
            reason=reason,
            replaced=self.replaced,
            cut=self.cut,
            hidden=tuple(self.hidden),
            until=self.until,
            pinned=tuple(self.pinned),
            tokens_before=state.tokens,
            tokens_after=self.tokens,
            figures=figures,
        )
        return Decision(event, summarise=self.until > 0)
