"""Commands in rules: prefixes for what is allowed, a lenient search for what is forbidden."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.tools.command_rules import (
    always_pattern,
    exact_pattern,
    is_allowed_by,
    is_exactly,
    is_touched_by,
    prefix_of,
)
from croze.tools.shell_syntax import Script, read


def test_a_pattern_is_a_prefix_or_a_command() -> None:
    assert prefix_of("npm test:*") == prefix_of("npm test *") == ["npm", "test"]
    assert prefix_of("*") == []
    assert prefix_of("npm test") is None
    assert prefix_of("=ls *") is None


def test_an_allowed_prefix_is_compared_word_by_word() -> None:
    assert is_allowed_by("git status:*", ("git", "status", "-s"), "git status -s")
    assert not is_allowed_by("git status:*", ("git", "stash"), "git stash")
    assert not is_allowed_by("git status:*", ("git status",), "'git status'")
    assert is_allowed_by("make 'a b'", ("make", "a b"), 'make "a b"')
    assert not is_allowed_by("make a b", ("make", "a b"), 'make "a b"')


@given(st.text(max_size=30))
def test_an_exact_pattern_stands_for_its_text_alone(command: str) -> None:
    pattern = exact_pattern(command)
    if command.strip():
        assert is_exactly(pattern, command)
    assert not is_exactly(pattern, command + "x")


@given(st.text(max_size=20), st.text(max_size=10))
def test_what_a_prefix_allows_begins_with_its_words(tail: str, head: str) -> None:
    script = read(f"{head}git status{tail}")
    if isinstance(script, Script):
        for part in script.parts:
            if is_allowed_by("git status:*", part.argv, part.text):
                assert part.argv[:2] == ("git", "status")


_WORDS = st.lists(st.sampled_from(["git", "push", "-c", "--x", "a", "a=b"]), max_size=8)


@given(_WORDS, _WORDS)
def test_a_forbidden_row_is_found_between_any_other_words(
    before: list[str], after: list[str]
) -> None:
    assert is_touched_by("git push:*", " ".join([*before, "git", "push", *after]))
    assert is_touched_by(
        "git push:*", " ".join([*before, "git", "-c", "a=b", "--x", "push", *after])
    )


def test_looking_for_a_forbidden_row_takes_one_pass() -> None:
    assert not is_touched_by("git -a push:*", "git -a " * 150_000)
    assert is_touched_by("git push:*", "x " * 400_000 + "git push")


@pytest.mark.parametrize(
    "argv",
    [
        ("sudo", "make"),
        ("/usr/bin/env", "make"),
        ("python3.12", "x.py"),
        ("FOO=1",),
        ("make", "a b"),
        ("git", "-c", "x", "status"),
        ("npm", "install"),
        (),
    ],
)
def test_no_lasting_rule_for_what_runs_others(argv: tuple[str, ...]) -> None:
    assert always_pattern(argv) == ""
