"""What is known of a model: window, abilities, prices; and what a call to it used."""

from typing import Literal

from msgspec import Struct, field


class Usage(Struct, frozen=True, omit_defaults=True):
    """Tokens as the provider reported them; None where it did not say.

    `input` is the whole input with `cached` (read from a cache) and `cache_write` as parts of it;
    `output` includes `thinking`.
    """

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    thinking: int | None = None


class Prices(Struct, frozen=True, omit_defaults=True):
    """US dollars a million tokens; None where unknown (never 0 for unknown)."""

    input: float | None = None
    output: float | None = None
    cached: float | None = None
    cache_write: float | None = None


class Cost(Struct, frozen=True, omit_defaults=True):
    """US dollars of one call; None where a price or a count is unknown."""

    input: float | None = None
    output: float | None = None

    @property
    def total(self) -> float | None:
        if self.input is None or self.output is None:
            return None
        return self.input + self.output


class ModelInfo(Struct, frozen=True, omit_defaults=True):
    """One model: `provider:model` is its full name.

    `window` and `max_output` are in tokens. `known` is false where defaults stand in for facts.
    `source` says where the facts come from (catalogue, user, server, default). `mid_system`: a system
    message may stand amid the conversation.
    """

    provider: str
    model: str
    window: int
    max_output: int
    wire: Literal["openai", "anthropic", "scripted", "library"] = "openai"
    prices: Prices = Prices()
    tools: bool = True
    vision: bool = False
    reasoning: bool = False
    prefill: bool = False
    mid_system: bool = False
    known: bool = True
    source: str = "catalogue"
    base_url: str = ""
    options: dict[str, float | int | str | bool] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.provider}:{self.model}"


def price(usage: Usage, prices: Prices) -> Cost:
    """What `usage` costs. Cached reads and writes are parts of the input and fall back to its price."""
    input_cost: float | None = None
    if usage.input is not None and prices.input is not None:
        cached = usage.cached or 0
        written = usage.cache_write or 0
        plain = max(0, usage.input - cached - written)
        cached_price = prices.input if prices.cached is None else prices.cached
        write_price = prices.input if prices.cache_write is None else prices.cache_write
        input_cost = (plain * prices.input + cached * cached_price + written * write_price) / 1e6
    output_cost: float | None = None
    if usage.output is not None and prices.output is not None:
        output_cost = usage.output * prices.output / 1e6
    return Cost(input=input_cost, output=output_cost)
