"""Token counts without a network: an estimate by characters whose ratio is learned, and exact BPE.

Provider counts are facts, everything here is an estimate or (with the `[tokens]` extra) a count of the
text alone. Every counter has a name, so that reports can say where a number comes from.
"""

import math
import re
from collections.abc import Callable

from msgspec import Struct

RATIO = 3.3
"""Characters a token for English prose and source code; rather low, so that estimates run high."""
LOWEST_RATIO = 1.5
HIGHEST_RATIO = 6.0

# What a character counts for in ASCII characters, by the length of its UTF-8 form. o200k_base takes
# 2.8 to 4.7 characters a token for Greek, Arabic and Cyrillic, 1.4 to 2.2 for CJK, 0.7 for emoji; older
# tables take fewer, so these run high.
_TWO_BYTES = 1.4
_THREE_BYTES = 3.0
_FOUR_BYTES = 6.0

_MEMORY = 0.8
"""How much of what was learned survives an update: a request counts about five requests long."""


def weigh(text: str) -> float:
    """The length of `text` in ASCII characters that would cost as many tokens.

    Counts by codecs instead of character by character: 10 MB take milliseconds.
    """
    count = len(text)
    if text.isascii():
        return float(count)
    ascii_count = len(text.encode("ascii", "ignore"))
    latin_count = len(text.encode("latin-1", "ignore")) - ascii_count
    four = len(text.encode("utf-16-le", "surrogatepass")) // 2 - count
    high = count - ascii_count - latin_count
    # Of the characters past Latin-1, two bytes give one more byte than characters, three give two.
    extra = len(text.encode("utf-8", "surrogatepass")) - count - latin_count
    three = extra - high - 2 * four
    two = high - three - four
    return (
        ascii_count + _TWO_BYTES * (latin_count + two) + _THREE_BYTES * three + _FOUR_BYTES * four
    )


def estimate(text: str, ratio: float = RATIO) -> int:
    """About how many tokens `text` takes at `ratio` ASCII characters a token; 0 for nothing."""
    return math.ceil(weigh(text) / ratio)


class Ratio(Struct, frozen=True):
    """Characters a token for one model, learned from what its provider reports.

    Starts as a guess worth `tokens` tokens; later figures weigh more than earlier ones.
    """

    characters: float = RATIO * 2_000
    tokens: float = 2_000.0

    @property
    def value(self) -> float:
        return min(HIGHEST_RATIO, max(LOWEST_RATIO, self.characters / self.tokens))

    def update(self, characters: float, reported_tokens: int) -> "Ratio":
        """The ratio after a request of `characters` (as `weigh` counts them: an estimate times the
        ratio it was made with) that the provider counted as `reported_tokens` of input.

        Figures that say nothing (none, or below a token) change nothing.
        """
        if characters <= 0 or reported_tokens < 1:
            return self
        # One absurd report (a proxy that counts nothing, images) must not outweigh all others.
        bounded = min(HIGHEST_RATIO, max(LOWEST_RATIO, characters / reported_tokens))
        return Ratio(
            characters=self.characters * _MEMORY + bounded * reported_tokens,
            tokens=self.tokens * _MEMORY + reported_tokens,
        )


class Counter(Struct, frozen=True):
    """A way to count tokens; `name` tells a report's reader which, `exact` whether it is BPE."""

    name: str
    count: Callable[[str], int]
    exact: bool

    def __call__(self, text: str) -> int:
        return self.count(text)


# Which published vocabulary a model uses, by its name; the first match counts. Names as in splintr's
# `Tokenizer.from_pretrained`. Claude, Gemini 1+ and Grok publish none.
_VOCABULARIES: tuple[tuple[str, str], ...] = (
    (r"gpt-oss", "gpt-oss"),
    (r"gpt-4o|gpt-4\.[1-9]|gpt-[5-9]|chatgpt-4o|\bo[134](-|$)", "o200k_base"),
    (r"gpt-4|gpt-3\.5|text-embedding-(3|ada)", "cl100k_base"),
    (r"deepseek.*distill.*llama|llama-?3", "llama3"),
    (r"deepseek.*distill.*qwen|qwen-?[23]|qwq", "qwen3"),
    (r"deepseek-?(v3|r1|chat|reasoner|coder-v3)", "deepseek_v3"),
    (r"glm-?4", "glm4"),
    (r"kimi-?k2", "kimi_k2"),
    (r"phi-?4", "phi4"),
    (r"olmo-?2", "olmo2"),
    (r"gemma-?3", "gemma3"),
    (r"gemma-?2", "gemma2"),
    (r"codellama", "codellama"),
    (r"llama-?2|tinyllama|vicuna", "llama2"),
    (r"mistral-(nemo|large)|pixtral|devstral|ministral", "mistral_v3"),
    (r"codestral|mixtral-8x22b", "mistral_v2"),
    (r"mixtral|mistral-7b", "mistral_v1"),
)


def vocabulary(model: str) -> str | None:
    """The name of the published vocabulary that `model` uses, None where none is known."""
    name = model.lower()
    for pattern, vocabulary_name in _VOCABULARIES:
        if re.search(pattern, name):
            return vocabulary_name
    return None


def exact_counter(model: str) -> Counter | None:
    """A counter with the model's own BPE table, None where the table is not published or the
    `[tokens]` extra is not installed. Special tokens in the text count as the text they are."""
    name = vocabulary(model)
    if name is None:
        return None
    try:
        from splintr import Tokenizer
    except ImportError:
        return None
    try:
        tokenizer = Tokenizer.from_pretrained(name)
    except ValueError:  # an older splintr that does not have this table
        return None
    encode = tokenizer.encode_ordinary
    return Counter(name=f"exact ({name})", count=lambda text: len(encode(text)), exact=True)


def counter_for(model: str, ratio: float = RATIO) -> Counter:
    """The best counter there is for `model`: its BPE table, else the estimate at `ratio`."""
    exact = exact_counter(model)
    if exact is not None:
        return exact
    return Counter(
        name=f"estimate ({ratio:.1f} characters a token)",
        count=lambda text: estimate(text, ratio),
        exact=False,
    )
