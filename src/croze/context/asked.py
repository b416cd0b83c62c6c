"""A compaction that the user asks for: at once and by the session's policy, however small the context is."""

from msgspec.structs import replace

from croze.context.batch import KEEP_MESSAGES, Draft, first_of_last
from croze.context.policies import Decision, State, decide, high_of
from croze.context.rank import candidates

REASON = "the user asked for it"
KEEP_STEPS = (6, 3, 1)
"""How many steps a summary leaves standing: as many as still make it worth while."""


def asked(state: State) -> Decision | None:
    """Results down to the low watermark of what there is; where little can be cleared, a summary of what
    came before the last steps. The policies `digest` and `zone` do it their way where that frees
    enough. None where nothing is to be gained."""
    forced = replace(state, forced=True)
    least = state.zone.gain * state.tokens
    if state.zone.policy in ("digest", "zone"):
        decision = decide(forced)
        if decision is not None and _saved(decision) >= least:
            return replace(decision, event=replace(decision.event, reason=REASON))
    high = min(high_of(state), state.tokens)
    low = round(state.zone.low * high)
    ledger = state.ledger
    ranked = candidates(ledger.entries, ledger.step, first_of_last(ledger.entries, KEEP_MESSAGES))
    best = Draft(forced)
    best.let_go(list(ledger.pending.values()))
    best.drop_outdated()
    best.clear(ranked, low)
    for steps in KEEP_STEPS:
        if best.saved >= least:
            break
        draft = Draft(forced)
        draft.let_go(list(ledger.pending.values()))
        draft.drop_outdated()
        draft.clear(ranked, low)
        draft.summarise(steps, ranked, hot=0)
        if draft.saved > best.saved:
            best = draft
    if best.saved <= 0:
        return None
    return best.decision("batch", REASON, high)


def _saved(decision: Decision) -> int:
    return decision.event.tokens_before - decision.event.tokens_after
