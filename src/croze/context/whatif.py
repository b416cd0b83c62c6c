"""What if: the same log under another policy, window or price table.

The recorded replies and results are played as they are; only the context is shaped anew, by the real
policy functions. What another model, or this one with another context, would have said can't be foreseen.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from croze.context.evidence import Evidence, Score, add_stubs, evidence_of
from croze.context.ledger import Ledger
from croze.context.policies import Policy, decide
from croze.context.requests import Call
from croze.context.simulate import (
    Scenario,
    Simulation,
    Spread,
    budget_of,
    head_tokens,
    output_of,
)
from croze.types.event import Compacted, Event, ModelSaid
from croze.types.model import Prices

__all__ = ["NOTE", "Outcome", "Scenario", "WhatIf", "what_if"]

LOST_SHOWN = 5
RECORDED = "recorded"

NOTE = (
    "The recorded replies are played as they are: what the model would have said to another context, or "
    "another model to this one, can't be foreseen."
)


class Outcome(Struct, frozen=True, omit_defaults=True):
    """What a scenario would have come to. Money is in US dollars, None where a price is unknown.

    `tokens` is the input of all requests, `cached` of it read from a cache, `output` the replies as
    recorded. `summary_cost` is what summaries would have cost. `peak` is the largest request, `over`
    counts those that the window wouldn't have taken, `recoveries` the compactions that only a full window
    forced. `evidence` is the share of the text which calls
    quote that still stood in the context (None where none is quoted), `lost` the longest of the rest.
    """

    policy: str
    window: int
    prices: Prices
    prices_of: str
    requests: int
    tokens: int
    cached: int
    output: int
    cost: float | None
    summary_cost: float | None
    compactions: int
    summaries: int
    peak: int
    over: int
    evidence: float | None
    recoveries: int = 0
    lost: tuple[str, ...] = ()


class WhatIf(Struct, frozen=True):
    """The session as it was, and each scenario. `quoted` counts the characters that calls quote."""

    session: str
    recorded: Outcome
    outcomes: tuple[Outcome, ...]
    quoted: int
    note: str = NOTE


def what_if(
    session: str,
    events: Sequence[Event],
    calls: Sequence[Call],
    scenarios: Sequence[Scenario],
    *,
    policy: Policy = decide,
) -> WhatIf:
    """Play the log under each scenario. `policy` decides by the zone that it is given."""
    found = evidence_of(events, calls)
    recorded, quoted, scales = _recorded(events, calls, found)
    log = Spread(events, calls)
    outcomes = [
        _outcome(Simulation(log, scales, found, scenario, policy), calls[-1])
        for scenario in scenarios
    ]
    return WhatIf(session, recorded, tuple(outcomes), quoted)


def _recorded(
    events: Sequence[Event], calls: Sequence[Call], found: Evidence
) -> tuple[Outcome, int, list[float]]:
    """The session as it was; and how many of the provider's tokens an estimated one was at each
    request."""
    ledger, score, scales = Ledger(), Score(), list[float]()
    stubs: dict[str, str] = {}
    summary = ""
    cuts: dict[int, list[Call]] = {}
    for call in calls:
        cuts.setdefault(call.body.history, []).append(call)
    compactions = summaries = over = 0
    for event in events:
        ledger.feed(event)
        if isinstance(event.body, Compacted):
            compactions += 1
            add_stubs(stubs, event.body)
            if event.body.summary:
                summaries += 1
                summary = f"{event.body.summary}\n{event.body.receipt}"
        for call in cuts.get(event.seq, ()):
            estimated = ledger.tokens + head_tokens(call)
            scales.append(call.tokens / estimated if estimated else 1.0)
            over += call.tokens > budget_of(call, None).available > 0
            score.judge(found, call, ledger, stubs, summary, upto=call.body.history)
    replies = [call.reply for call in calls if call.reply is not None]
    costs = [reply.cost.total for reply in replies]
    known = [cost for cost in costs if cost is not None]
    asides = [
        event.body.cost.total
        for event in events
        if isinstance(event.body, ModelSaid) and event.body.purpose in ("summary", "summarize")
    ]
    told = [cost for cost in asides if cost is not None]
    outcome = Outcome(
        policy=RECORDED,
        window=budget_of(calls[-1], None).window,
        prices=calls[-1].prices,
        prices_of=calls[-1].body.model,
        requests=len(calls),
        tokens=sum(call.tokens for call in calls),
        cached=sum(call.usage.cached or 0 for call in calls),
        output=sum(output_of(call) for call in calls),
        cost=sum(known) if known and len(known) == len(costs) else None,
        summary_cost=sum(told) if len(told) == len(asides) else None,
        compactions=compactions,
        summaries=summaries,
        peak=max(call.tokens for call in calls),
        over=over,
        evidence=score.share,
        lost=_longest(score.lost),
    )
    return outcome, score.quoted, scales


def _longest(lost: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(sorted(lost, key=lambda quote: (-len(quote), quote))[:LOST_SHOWN])


def _outcome(simulation: Simulation, last: Call) -> Outcome:
    sums, scenario = simulation.run(), simulation.scenario
    return Outcome(
        policy=scenario.policy,
        window=budget_of(last, scenario.window).window,
        prices=scenario.prices or last.prices,
        prices_of=scenario.prices_of or last.body.model,
        requests=len(simulation.log.calls),
        tokens=sums.tokens,
        cached=sums.cached,
        output=sums.output,
        cost=sums.cost,
        summary_cost=sums.summary_cost,
        compactions=sums.compactions,
        summaries=sums.summaries,
        recoveries=sums.recoveries,
        peak=sums.peak,
        over=sums.over,
        evidence=simulation.score.share,
        lost=_longest(simulation.score.lost),
    )
