"""When and how the context is made smaller: a policy looks at the folded log and yields at most one event.

A policy is pure: the same `State` gives the same decision. What it needs a model for it only asks for
(`Decision.summarise`); `croze.agent.compaction` has the summary written, checked, and put into the event.
"""

import importlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from croze.types.context import Budget
from croze.types.event import Compacted
from croze.types.model import Prices

if TYPE_CHECKING:
    from croze.context.ledger import Ledger


LOW = 0.5
GAIN = 0.1
"""Of the high watermark: what a batch goes down to, and the least that it must free."""


class Zone(Struct, frozen=True, omit_defaults=True):
    """What a user may set of a policy. `zone` is the high watermark in tokens (for `digest` its whole
    budget); None is the policy's own default. `low` is the share of it that a batch goes down to,
    `gain` the least share that it must free."""

    policy: str = "batch"
    zone: int | None = None
    low: float = LOW
    gain: float = GAIN


class State(Struct, frozen=True, kw_only=True):
    """All that a policy decides by.

    `ledger` is the fold of the log: every entry of the context with its tokens and its kind. `tokens` is
    what the provider would count for the next request (its last report, and an estimate of what came
    since), `head` its share for system text and tools; `scale` turns an estimate of the ledger into the
    provider's tokens. `idle` is the time in seconds since the last request, None where there was none
    with this model and head: then nothing of it is cached. `forced` is set where the window or the
    provider's overflow error leaves no choice.
    """

    ledger: "Ledger"
    tokens: int
    head: int
    scale: float
    budget: Budget
    zone: Zone
    prices: Prices
    idle: float | None = None
    forced: bool = False


class Decision(Struct, frozen=True):
    """What a policy wants: the event, and whether a summary of the history up to `event.until` has to
    be written into it before it is appended."""

    event: Compacted
    summarise: bool = False


Policy = Callable[[State], Decision | None]

HIGH = 80_000
SHARE = 0.8
"""The high watermark of `batch`: so many tokens, and at most this share of the budget."""
LOWEST = 1_000
GROWTH = 0.1
"""After a compaction the context has to grow by this share of the watermark before the next one."""
COLD_SECONDS = 300.0
"""How long a provider keeps a prefix that is not asked for."""
COLD_SHARE = 0.75
"""The share of the watermark above which a cold cache, where nothing is lost by it, is reason enough."""

FULL = 0.9
"""Of what the window leaves for input: above that recovery begins, whatever the policy."""

POLICIES = {
    "batch": ("croze.context.batch", "batch"),
    "digest": ("croze.context.digest_policy", "digest"),
    "zone": ("croze.context.zone_policy", "zone"),
    "none": ("croze.context.policies", "keep_all"),
}
"""Where each policy is written."""

_ZONE = re.compile(r"(\d+(?:\.\d+)?)([kKmM])|(\d+)|(0?\.\d+)")


def parse_zone(text: str) -> int | float | None:
    """A zone as users write it: `80k` (k = 1,024) or `1.5M`, a number of tokens, a share above 0 and
    below 1 (given as a float); None for `auto`. Raises ValueError for anything else."""
    text = text.strip()
    if text == "auto":
        return None
    found = _ZONE.fullmatch(text)
    value: int | float = 0
    if found is not None and found[2]:
        value = int(float(found[1]) * (1024 if found[2] in "kK" else 1024 * 1024))
    elif found is not None:
        value = int(found[3]) if found[3] else float(found[4])
    if value <= 0:
        raise ValueError(f"{text!r} is no zone: 80k, 1.5M, 81920, 0.8 or auto")
    return value


def zone_of(
    policy: str, zone: str, budget: Budget, *, low: float = LOW, gain: float = GAIN
) -> Zone:
    """What an agent's policy and zone mean for a model. A session from before there were policies has
    no zone: nothing is taken from it. A batch goes low enough to free what it must."""
    if not zone:
        return Zone(policy="none")
    value = parse_zone(zone)
    if isinstance(value, float):
        value = round(value * budget.available)
    return Zone(policy=policy, zone=value, low=min(low, 1 - gain), gain=gain)


def high_of(state: State) -> int:
    """The high watermark in tokens as the provider counts."""
    available = state.budget.available
    if state.zone.zone is not None:
        return max(LOWEST, min(state.zone.zone, round(0.9 * available)))
    return max(LOWEST, min(HIGH, round(SHARE * available)))


def is_cold(state: State) -> bool:
    """Whether nothing of the context is in a cache, so that a changed prefix costs nothing."""
    return state.idle is None or state.idle > COLD_SECONDS


def has_grown(state: State, high: int) -> bool:
    """Whether enough came since the last compaction, or since one was found to be of no use."""
    ledger = state.ledger
    last = ledger.stuck
    if ledger.compactions:
        body = ledger.compactions[-1].body
        assert isinstance(body, Compacted)
        last = max(last, body.tokens_after)
    return state.tokens >= last + GROWTH * high


def is_due(state: State) -> bool:
    """Whether `batch` has to look closer: above its watermark (on a cold cache a little below), where
    there is something that it could take; or where the model has let go of messages."""
    ledger = state.ledger
    if state.forced or ledger.pending:
        return True
    high = high_of(state)
    if state.tokens <= high * (COLD_SHARE if is_cold(state) else 1):
        return False
    could = (ledger.tokens - ledger.held - ledger.summary) * state.scale
    return could >= state.zone.gain * high and has_grown(state, high)


def overflows(state: State) -> bool:
    """Whether the next request is too close to what the window takes."""
    return state.forced or state.tokens > FULL * state.budget.available


def keep_all(_state: State) -> Decision | None:
    """Never changes the context (the policy `none`)."""
    return None


def decide(state: State) -> Decision | None:
    """What the session's policy wants, if anything. Below its watermark `batch` isn't even loaded."""
    name = state.zone.policy
    if name == "none":
        return keep_all(state)
    if name == "batch" and not is_due(state):
        return None
    module, function = POLICIES[name]
    policy: Policy = getattr(importlib.import_module(module), function)
    return policy(state)
