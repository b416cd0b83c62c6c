"""A rule's patterns: what other agents' users write, compared with a plain reference."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.knowledge.globs import read_globs, split


@pytest.mark.parametrize(
    ("patterns", "path", "fits"),
    [
        ("**/*.py", "a.py", True),
        ("**/*.py", "src/deep/a.py", True),
        ("*.py", "src/a.py", True),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/b/a.py", False),
        ("src/**/*.ts", "src/a.ts", True),
        ("src/**", "src/x/y", True),
        ("src/", "src/x/y", True),
        ("src/api", "src/api/v1/x.go", True),
        ("docs", "docs/a.md", True),
        ("./src/*.py", "src/a.py", True),
        ("/src/*.py", "src/a.py", True),
        ("*.{ts,tsx}", "web/a.tsx", True),
        ("*.{ts,tsx}", "web/a.js", False),
        ("{src,test}/**/*.{c,h}", "test/x/y.h", True),
        ("*.ts, *.tsx", "a.tsx", True),
        ("*.py,!test_*.py", "test_a.py", False),
        ("*.py,!test_*.py", "a.py", True),
        ("#notes/*", "#notes/a", True),
        ("[ab].py", "b.py", True),
        ("*.PY", "a.py", False),
        ("", "a.py", False),
    ],
)
def test_a_pattern_fits_what_its_writer_means(patterns: str, path: str, fits: bool) -> None:
    assert read_globs([patterns]).matches(path) is fits


@pytest.mark.parametrize("pattern", ["[", "../x/*.py", "~/x", "{a,b}/../c", "a" * 600])
def test_what_is_no_pattern_is_told_and_matches_nothing(pattern: str) -> None:
    globs = read_globs([pattern])
    assert globs.unusable
    assert not globs.patterns


def test_the_usable_patterns_beside_a_broken_one_hold() -> None:
    globs = read_globs(["[", "*.py"])
    assert globs.unusable == ("[",)
    assert globs.matches("a.py")


def test_braces_that_stand_for_thousands_are_not_unfolded() -> None:
    globs = read_globs(["{a,b,c,d}" * 12])
    assert globs.unusable
    assert not globs.patterns


def test_commas_part_patterns_but_not_within_braces() -> None:
    assert split("a.{x,y}, b ,,[,]c") == ["a.{x,y}", "b", "[,]c"]


names = st.text("ab.", min_size=1, max_size=4).filter(lambda s: set(s) != {"."})
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
pieces = st.one_of(st.just("**"), st.text("ab.*?", min_size=1, max_size=4))
patterns = st.lists(
    pieces.filter(lambda s: set(s) != {"."} and (s == "**" or "**" not in s)),
    min_size=2,
    max_size=4,
)


def reference(parts: list[str], path: list[str]) -> bool:
    """`**` is any number of folders, other parts are one name each."""
    if not parts:
        return not path
    if parts[0] == "**":
        last = len(parts) == 1
        return (
            any(reference(parts[1:], path[i:]) for i in range(len(path) + 1))
            if not last
            else bool(path)
        )
    return bool(path) and fnmatchcase(path[0], parts[0]) and reference(parts[1:], path[1:])


@given(patterns, paths)
def test_patterns_of_several_parts_agree_with_the_reference(parts: list[str], path: str) -> None:
    pattern = "/".join(parts)
    expected = reference(parts, path.split("/"))
    if not set(pattern) & set("*?"):
        expected = expected or path.startswith(f"{pattern}/")
    assert read_globs([pattern]).matches(path) is expected


@given(st.text(max_size=40), paths)
def test_no_text_at_all_makes_it_fail(text: str, path: str) -> None:
    globs = read_globs([text])
    assert globs.matches(path) in (True, False)


@given(st.lists(paths, max_size=6, unique=True), st.randoms())
def test_the_order_of_files_does_not_change_which_match(files: list[str], random: object) -> None:
    globs = read_globs(["**/*.a", "b/**"])
    shuffled = list(files)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # st.randoms gives a Random
    assert {f for f in files if globs.matches(f)} == {f for f in shuffled if globs.matches(f)}
