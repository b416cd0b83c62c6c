"""The policy `zone`: at each step above a safe zone just enough is cleared, the oldest first."""

from bisect import bisect_right
from collections.abc import Iterator

from croze.context.ledger import Entry
from croze.context.plan import Plan, long_arguments
from croze.context.policies import Decision, State
from croze.context.shorten import CUT, cleared, cut_argument
from croze.types.event import Compacted

SAFE_ZONE = 80 * 1024
SHARE = 0.8
"""Of what the window leaves for input: the safe zone is never above that."""
KEPT = 6
"""Clearable messages that stay."""
ARGUMENTS = ("content", "diff", "path", "command")


def zone(state: State) -> Decision | None:
    """What has to go so that the next request is in the safe zone: first what the model let go of, then
    results, the oldest first, then long arguments of calls, the oldest first.

    The six newest of what can be cleared stay, and what the model has not seen yet; only where the
    window leaves no choice those go too. A cleared result keeps its call, its tag and its success.
    """
    safe = _safe(state)
    if state.tokens <= safe and not state.forced:
        return None
    plan = Plan(state, "zone")
    plan.let_go()
    results, calls = _cursors(state)
    last = _last_clearable(state)
    for entry in _after(state, results):
        if plan.tokens <= safe or entry.seq > last:
            break
        if not _is_result(entry, plan) or not (entry.step < state.ledger.step or state.forced):
            continue
        text = cleared(entry.name, entry.args, entry.full, entry.id)
        if plan.replace(entry, text):
            plan.because("results cleared")
            results = entry.seq
    for entry in _after(state, calls):
        if plan.tokens <= safe or entry.seq > last:
            break
        if entry.kind != "reply" or not plan.stands(entry):
            continue
        for call_id, texts in long_arguments(entry, ARGUMENTS, CUT).items():
            cut = {name: cut_argument(text) for name, text in texts.items()}
            short = {name: text for name, text in cut.items() if len(text) < len(texts[name])}
            if short:
                plan.shorten_call(entry, call_id, short)
                plan.because("arguments cut")
        calls = entry.seq
    if plan.is_empty:
        return None
    plan.drop_tail()
    figures = {"zone": float(safe), "results": float(results), "calls": float(calls)}
    return Decision(plan.event(figures))


def _safe(state: State) -> int:
    available = state.budget.available
    most = int(SHARE * available) if available else SAFE_ZONE
    if state.zone.zone is not None:
        return min(state.zone.zone, available or state.zone.zone)
    return min(SAFE_ZONE, most)


def _cursors(state: State) -> tuple[int, int]:
    """Up to which events results and calls have been cleared, as the last decision left it."""
    for event in reversed(state.ledger.compactions):
        if isinstance(event.body, Compacted) and event.body.policy == "zone":
            figures = event.body.figures
            return int(figures.get("results", 0)), int(figures.get("calls", 0))
    return 0, 0


def _after(state: State, seq: int) -> Iterator[Entry]:
    entries = state.ledger.entries
    start = bisect_right(entries, max(seq, 0), key=lambda entry: entry.seq)
    return (entries[index] for index in range(start, len(entries)))


def _is_result(entry: Entry, plan: Plan) -> bool:
    return entry.kind == "result" and entry.standing in ("full", "digested") and plan.stands(entry)


def _last_clearable(state: State) -> int:
    """The event up to which may be cleared: behind it stand the newest six messages that could be."""
    entries = state.ledger.entries
    if state.forced:
        return entries[-1].seq if entries else 0
    kept = 0
    for entry in reversed(entries):
        if entry.tokens and (entry.kind == "result" or (entry.kind == "reply" and entry.calls)):
            kept += 1
        if kept == KEPT:
            return entry.seq - 1
    return 0
