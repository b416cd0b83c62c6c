"""Recovery: whatever the policy, a context that is about to overflow the model's window is cut down, from
what is missed least to the bare request."""

from collections.abc import Iterator

from croze.context.batch import KEEP_MESSAGES, KEEP_STEPS, Draft, first_of_last
from croze.context.law import LAW, RULES
from croze.context.ledger import Entry
from croze.context.policies import Decision, State, overflows
from croze.context.rank import SMALL, candidates
from croze.types.event import ToolReturned

TARGET = 0.8
"""Of what the window leaves for input: recovery ends there."""
EXTRAS = ("examples", "active_context")
"""Keys of facts that only help: they go first."""
KEPT = (LAW, RULES)
"""Keys of facts that stay to the last, or what they begin with."""
_RATIO = 3.0
"""Characters a token by which a piece is cut: low, so that it fits."""


def recover(state: State) -> Decision | None:
    """The gentlest compaction that brings the context down to 80 % of the window; where none does, the
    harshest: core prompt, law, last assistant message, request. None where even that doesn't fit.

    Where the provider says that it overflows (`forced`), its count is higher than ours: then 80 % of
    what we counted.
    """
    if not overflows(state):
        return None
    most = state.budget.available
    target = round(TARGET * (min(most, state.tokens) if state.forced else most))
    draft: Draft | None = None
    for draft in _drafts(state, target):
        if draft.tokens <= target:
            break
    if draft is None or draft.saved <= 0 or (draft.tokens > most and not state.forced):
        return None  # nothing helps: the check before the request says so
    reason = "the provider says that it overflows" if state.forced else "the window is full"
    return draft.decision("recovery", reason, target)


def _drafts(state: State, target: int) -> Iterator[Draft]:
    ledger = state.ledger
    for messages, steps in ((KEEP_MESSAGES, 0), (KEEP_MESSAGES, KEEP_STEPS), (4, 3), (2, 1)):
        draft = _without_extras(state)
        before = first_of_last(ledger.entries, messages)
        ranked = candidates(ledger.entries, ledger.step, before)
        draft.clear(ranked, target)
        if steps and draft.tokens > target:
            draft.summarise(steps, ranked, hot=0)
        if draft.tokens > target:
            draft.cut_arguments(before, target)
        yield draft
    yield _bare(state, target)


def _without_extras(state: State) -> Draft:
    draft = Draft(state)
    draft.drop_outdated()
    for entry in state.ledger.entries:
        if entry.kind == "fact" and entry.key.partition(":")[0] in EXTRAS and entry.tokens:
            draft.hide(entry)
    return draft


def _bare(state: State, target: int) -> Draft:
    """The last step and what was asked last; documents but for the law go too, results are cut to what
    fits."""
    ledger = state.ledger
    draft = _without_extras(state)
    draft.summarise(1, [], hot=0)
    draft.cut_arguments(ledger.entries[-1].seq + 1, target)
    users = [e for e in ledger.entries if e.kind == "user" and draft.cost(e)]
    others = [
        e
        for e in ledger.entries
        if e.pinned and e.key.partition(":")[0] not in KEPT and draft.cost(e)
    ]
    for entry in (*users[:-1], *others):
        if draft.tokens <= target:
            return draft
        draft.hide(entry)
    results = [e for e in ledger.entries if e.kind == "result" and draft.cost(e) >= SMALL]
    for entry in sorted(results, key=lambda e: -draft.cost(e)):
        if draft.tokens <= target:
            break
        over = (draft.tokens - target) / state.scale
        draft.shorten(entry, _piece(entry, max(SMALL, draft.cost(entry) - round(over))))
    return draft


def _piece(entry: Entry, tokens: int) -> str:
    """Start and end of a result in about so many tokens, and how to see the rest."""
    body = entry.event.body if entry.event is not None else None
    text = body.text if isinstance(body, ToolReturned) else ""
    room = max(200, round((tokens - 40) * _RATIO))
    if len(text) <= room:
        return text
    head, tail = text[: room * 2 // 3], text[-(room // 3) :]
    left = len(text) - len(head) - len(tail)
    note = (
        f"[{left:,} characters left out to fit the window; read_result {entry.id[:8]} shows them]"
    )
    return f"{head}\n{note}\n{tail}"
