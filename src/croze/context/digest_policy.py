"""The policy `digest`: digests stand for results from the next step on, old rounds become a summary at half
of a small budget."""

from bisect import bisect_right
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from croze.context.ledger import Entry
from croze.context.plan import Plan, digest_in, text_in
from croze.context.policies import Decision, State
from croze.context.receipt import LIMIT as RECEIPT_TOKENS
from croze.context.shorten import digest_of, piece
from croze.context.summary import SUMMARY_TOKENS, one_sentence
from croze.text.tokens import estimate
from croze.types.event import Compacted, ModelSaid

BUDGET = 16_000
"""Tokens of the whole request that the policy works for where nothing else is set."""
SUMMARY_SHARE = 0.5
RAW_ROUNDS = 5
LEAST_ROUNDS = 2
SHORT_SUMMARY = 300
"""What a summary of little takes with its receipt; of more it takes a third, up to its bound."""


def digest(state: State) -> Decision | None:
    """What the next request should look like: results of earlier steps as their digests; from half of
    the budget on a summary of all but the last five rounds; above the budget shorter pieces of
    results, then a summary of one sentence a line, then fewer rounds, down to two.

    Only what stands behind the last summary is looked at, results only since the last decision. What
    the user said, rules and documentation are never touched, results of the current step only where
    the window leaves no choice.
    """
    return _Digest(state).decide()


class _Digest:
    """One decision in the making. `standing` is the summary that stands now, `until` the event up to
    which the new one will reach."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.plan = Plan(state, "digest")
        self.budget = min(state.zone.zone or BUDGET, state.budget.available or BUDGET)
        self.standing = _last(state, lambda body: bool(body.summary))
        own = _last(state, lambda body: body.policy == "digest")
        self.since = int(own.figures.get("step", 0)) if own is not None else 0
        self.start = bisect_right(state.ledger.entries, state.ledger.until, key=_seq)
        self.until = 0
        self.shorter = ""

    def decide(self) -> Decision | None:
        plan, forced = self.plan, self.state.forced
        plan.let_go()
        self._digest()
        if forced or plan.tokens >= SUMMARY_SHARE * self.budget:
            self._summarise(RAW_ROUNDS)
        if self._is_over:
            self._shorten()
        if self._is_over and not self.until:
            self._fewer_words()
        for rounds in range(RAW_ROUNDS - 1, LEAST_ROUNDS - 1, -1):
            if self._is_over:
                self._summarise(rounds)
        if plan.is_empty and not self.until and not self.shorter:
            return None
        plan.drop_tail()
        return Decision(self._event(), summarise=bool(self.until))

    @property
    def _entries(self) -> list[Entry]:
        """What stands behind the last summary."""
        return self.state.ledger.entries[self.start :]

    def _newest_first(self) -> Iterator[Entry]:
        entries = self.state.ledger.entries
        return (entries[index] for index in range(len(entries) - 1, self.start - 1, -1))

    @property
    def _is_over(self) -> bool:
        return self.plan.tokens > self.budget

    def _digest(self) -> None:
        """Digests for the results of all steps since the last decision but the current one."""
        for entry in self._newest_first():
            if entry.step < self.since:
                break
            if entry.standing == "full" and self._is_old_result(entry):
                if digest_in(entry):
                    done = self.plan.digest(entry)
                else:
                    text = digest_of(entry.name, entry.args, text_in(entry))
                    done = self.plan.replace(entry, text)
                if done:
                    self.plan.because("digests of earlier results")

    def _is_old_result(self, entry: Entry) -> bool:
        if entry.kind != "result" or entry.pinned or not self.plan.stands(entry):
            return False
        return entry.step < self.state.ledger.step or self.state.forced

    def _summarise(self, rounds: int) -> None:
        """Let a summary stand for all but the last rounds, where that frees enough."""
        until = self._before(rounds)
        if until <= self.until:
            return
        plan = self.plan
        gone = [
            entry
            for entry in self._entries
            if entry.seq <= until
            and entry.kind != "user"
            and not entry.pinned
            and plan.stands(entry)
        ]
        if not self.until:
            replaced = sum(plan.cost(entry) for entry in gone) + self.state.ledger.summary
            written = min(SUMMARY_TOKENS + RECEIPT_TOKENS, max(SHORT_SUMMARY, replaced // 3))
            freed = replaced - written
            least = self.state.zone.gain * self.budget
            if freed <= 0 or (freed * self.state.scale < least and not self.state.forced):
                return
            plan.freed += self.state.ledger.summary - written
        for entry in gone:
            plan.drop(entry)
        self._undo_fewer_words()
        self.until = until
        plan.because("a summary of the older rounds")

    def _before(self, rounds: int) -> int:
        """The event before the last `rounds` rounds; 0 where there are no more than these."""
        found = first = 0
        for entry in self._newest_first():
            if entry.kind != "reply":
                continue
            body = entry.event.body if entry.event is not None else None
            first = entry.seq
            if isinstance(body, ModelSaid) and body.continues:
                continue
            found += 1
            if found == rounds:
                return first - 1
        return 0

    def _shorten(self) -> None:
        """Shorter pieces of results, the oldest first, until the budget holds."""
        for entry in self._entries:
            if not self._is_over:
                return
            if self._is_old_result(entry) and entry.standing != "replaced":
                text = self.plan.replaced.get(entry.call_id)
                shown = text or digest_in(entry) or text_in(entry)
                if self.plan.replace(entry, piece(shown)):
                    self.plan.because("shorter pieces of results")

    def _fewer_words(self) -> None:
        """One sentence a line for the summary that stands."""
        if self.standing is None:
            return
        text = one_sentence(self.standing.summary)
        freed = estimate(self.standing.summary) - estimate(text)
        if freed > 0:
            self.shorter = text
            self.plan.freed += freed
            self.plan.because("a shorter summary")

    def _undo_fewer_words(self) -> None:
        if self.standing is not None and self.shorter:
            self.plan.freed -= estimate(self.standing.summary) - estimate(self.shorter)
            self.plan.why.remove("a shorter summary")
            self.shorter = ""

    def _event(self) -> Compacted:
        figures = {"step": float(self.state.ledger.step), "budget": float(self.budget)}
        event = self.plan.event(figures)
        if self.until:
            return replace(event, until=self.until)
        if self.standing is None or not self.shorter:
            return event
        old = self.standing
        return replace(
            event, until=old.until, pinned=old.pinned, summary=self.shorter, receipt=old.receipt
        )


def _seq(entry: Entry) -> int:
    return entry.seq


def _last(state: State, wanted: Callable[[Compacted], bool]) -> Compacted | None:
    for event in reversed(state.ledger.compactions):
        if isinstance(event.body, Compacted) and wanted(event.body):
            return event.body
    return None
