import sys
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.text.tokens import (
    HIGHEST_RATIO,
    LOWEST_RATIO,
    RATIO,
    Ratio,
    counter_for,
    estimate,
    exact_counter,
    vocabulary,
    weigh,
)

any_text = st.text(st.characters(exclude_categories=()))


@given(any_text)
def test_every_character_weighs_by_the_length_of_its_utf8_form(text):
    weights = {1: 1.0, 2: 1.4, 3: 3.0, 4: 6.0}
    slow = sum(weights[len(c.encode("utf-8", "surrogatepass"))] for c in text)
    assert weigh(text) == pytest.approx(slow)


@given(any_text, any_text, st.floats(LOWEST_RATIO, HIGHEST_RATIO))
def test_an_estimate_is_positive_and_nearly_additive(first, second, ratio):
    both = estimate(first + second, ratio)
    apart = estimate(first, ratio) + estimate(second, ratio)
    assert (both == 0) == (first + second == "")
    assert both - 1 <= apart <= both + 1


def test_english_counts_by_the_ratio_and_chinese_nearly_by_the_character():
    assert estimate("x" * 3300) == 1000
    assert estimate("x" * 3000, 3.0) == 1000
    assert 800 <= estimate("汉" * 1000) <= 1100


def test_ten_megabytes_of_mixed_text_are_counted_whole():
    line = "naïve 汉字 😀\n"
    assert weigh(line * 800_000) == pytest.approx(weigh(line) * 800_000)


@given(st.lists(st.tuples(st.floats(-10, 1e9), st.integers(-5, 10**9))))
def test_a_learned_ratio_stays_within_its_bounds(reports):
    ratio = Ratio()
    for characters, tokens in reports:
        ratio = ratio.update(characters, tokens)
        assert LOWEST_RATIO <= ratio.value <= HIGHEST_RATIO


@given(st.floats(1.6, 5.9), st.integers(500, 200_000))
def test_a_ratio_learns_what_the_provider_reports(true_ratio, tokens):
    ratio = Ratio()
    for _ in range(25):
        ratio = ratio.update(true_ratio * tokens, tokens)
    assert ratio.value == pytest.approx(true_ratio, rel=0.05)


def test_one_absurd_report_does_not_take_the_ratio_far():
    ratio = Ratio()
    for _ in range(10):
        ratio = ratio.update(40_000, 10_000)
    assert ratio.update(1_000_000, 1).value == pytest.approx(4.0, rel=0.01)
    assert ratio.update(0, 100) == ratio
    assert ratio.update(100, 0) == ratio


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gpt-5-mini", "o200k_base"),
        ("openai/gpt-4.1", "o200k_base"),
        ("o3", "o200k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("openai/gpt-oss-120b", "gpt-oss"),
        ("qwen3-coder:30b", "qwen3"),
        ("deepseek-r1-distill-llama-70b", "llama3"),
        ("deepseek-reasoner", "deepseek_v3"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama3"),
        ("claude-sonnet-4-5", None),
        ("foo3", None),
    ],
)
def test_a_model_is_matched_to_its_published_vocabulary(model, expected):
    assert vocabulary(model) == expected


def test_without_the_extra_the_estimate_counts_and_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "splintr", None)
    assert exact_counter("gpt-5-mini") is None
    counter = counter_for("gpt-5-mini", 3.0)
    assert not counter.exact
    assert counter.name == "estimate (3.0 characters a token)"
    assert counter("x" * 300) == 100


def test_a_table_that_the_installed_splintr_lacks_falls_back_to_the_estimate(monkeypatch):
    class Tokenizer:
        @staticmethod
        def from_pretrained(name):
            raise ValueError(f"Unknown pretrained model: {name}")

    module = ModuleType("splintr")
    module.Tokenizer = Tokenizer
    monkeypatch.setitem(sys.modules, "splintr", module)
    assert exact_counter("gpt-5-mini") is None
    assert counter_for("gpt-5-mini").name == f"estimate ({RATIO} characters a token)"


def test_with_the_extra_counts_are_exact_and_special_tokens_are_plain_text():
    pytest.importorskip("splintr", reason="the [tokens] extra is not installed")
    counter = exact_counter("gpt-5-mini")
    assert counter is not None
    assert counter.exact
    assert counter.name == "exact (o200k_base)"
    assert counter("hello world") == 2
    assert counter("<|endoftext|>") > 1
    assert exact_counter("claude-sonnet-4-5") is None


def test_the_estimate_is_near_the_exact_count_on_code_and_prose():
    pytest.importorskip("splintr", reason="the [tokens] extra is not installed")
    counter = exact_counter("gpt-5-mini")
    assert counter is not None
    with open(__file__, encoding="utf-8") as file:
        text = file.read()
    assert 0.8 <= estimate(text) / counter(text) <= 1.6
