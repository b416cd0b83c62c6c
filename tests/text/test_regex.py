"""A regular expression that is compiled late does what `re.compile`'s does."""

import re

import pytest

from croze.text.regex import Regex


def test_its_methods_are_those_of_the_compiled_pattern() -> None:
    late, compiled = Regex(r"(?P<v>a+)\d", re.IGNORECASE), re.compile(r"(?P<v>a+)\d", re.IGNORECASE)
    text = "xAa1 aaa2 b3"
    for found, wanted in (
        (late.search(text), compiled.search(text)),
        (late.match(text, 1), compiled.match(text, 1)),
        (late.fullmatch("AA7"), compiled.fullmatch("AA7")),
    ):
        assert found is not None
        assert wanted is not None
        assert (found.span("v"), found.group()) == (wanted.span("v"), wanted.group())
    assert late.sub("-", text) == compiled.sub("-", text)
    assert late.split(text) == compiled.split(text)
    assert late.findall(text) == compiled.findall(text)
    assert [m.span() for m in late.finditer(text)] == [m.span() for m in compiled.finditer(text)]


def test_a_wrong_pattern_shows_at_its_first_use_and_another_attribute_is_an_error() -> None:
    late = Regex("(")
    with pytest.raises(re.error):
        late.search("x")
    with pytest.raises(AttributeError):
        late.groups  # type: ignore[attr-defined]  # noqa: B018
