"""What `croze context --what-if` takes: policies by name, windows, prices or a model's name."""

from typing import TYPE_CHECKING

from croze.app.models import environment_with_keys, open_catalog
from croze.context.policies import POLICIES, parse_zone
from croze.context.whatif import Scenario
from croze.types.errors import UsageError
from croze.types.model import Prices

if TYPE_CHECKING:
    from croze.app.app import App

_KEYS = ("policy", "window", "zone", "prices")
NAMES = ("none", *(name for name in POLICIES if name != "none"))
"""The policies in the order in which they are compared."""


def parse_what_if(app: "App", spec: str) -> list[Scenario]:
    """The scenarios of `policy=NAME,window=SIZE,zone=SIZE,prices=IN/CACHED/WRITE/OUT` (or a model's name
    for its prices); `policy` may name several, joined by +, and `all` stands for each. A bare word is a
    policy. Raises UsageError."""
    given: dict[str, str] = {}
    for piece in filter(None, (piece.strip() for piece in spec.split(","))):
        key, equals, value = piece.partition("=")
        if not equals:
            key, value = "policy", piece
        if key not in _KEYS or not value.strip():
            raise _wrong(spec, f"{', '.join(f'{name}=…' for name in _KEYS)}")
        given[key] = value.strip()
    names = given.get("policy", "all").split("+")
    if names == ["all"]:
        names = list(NAMES)
    for name in names:
        if name not in NAMES:
            raise _wrong(spec, f"policy={' | '.join(NAMES)} | all")
    window = _size(given["window"], spec) if "window" in given else None
    high = given.get("zone")
    if high is not None:
        _checked(high, spec)
    prices, source = _prices(app, given["prices"], spec) if "prices" in given else (None, "")
    return [
        Scenario(policy=name, zone=high, window=window, prices=prices, prices_of=source)
        for name in names
    ]


def _checked(text: str, spec: str) -> int | float | None:
    try:
        return parse_zone(text)
    except ValueError as error:
        raise _wrong(spec, "sizes such as 81920, 80k, 1.5M") from error


def _size(text: str, spec: str) -> int:
    value = _checked(text, spec)
    if not isinstance(value, int):
        raise _wrong(spec, "windows such as 32768, 32k, 1M")
    return value


def _prices(app: "App", text: str, spec: str) -> tuple[Prices, str]:
    """US dollars a million tokens, `-` where one is unknown; or those of a model."""
    if "/" in text and ":" not in text:
        numbers: list[float | None] = []
        for piece in text.split("/"):
            try:
                numbers.append(None if piece.strip() in ("", "-") else float(piece))
            except ValueError:
                numbers.append(-1)
        if len(numbers) == 4 and all(n is None or 0 <= n < 1e6 for n in numbers):
            read, cached, write, out = numbers
            return Prices(input=read, cached=cached, cache_write=write, output=out), text
        raise _wrong(spec, "prices=IN/CACHED/WRITE/OUT in dollars a million tokens, or a model")
    catalog = open_catalog(app.config, environment_with_keys(app.config, app.env))
    info = catalog.find(text)
    if info.prices.input is None:
        raise UsageError(
            f"The price of {info.name} is unknown.",
            hint="Give the prices themselves: prices=IN/CACHED/WRITE/OUT.",
            code="what_if_price",
            model=info.name,
        )
    return info.prices, info.name


def _wrong(spec: str, allowed: str) -> UsageError:
    return UsageError(
        f"--what-if can't be {spec!r}",
        hint=f"allowed: {allowed}",
        code="what_if",
        spec=spec,
        allowed=allowed,
    )
