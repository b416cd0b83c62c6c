"""Three versions into one: held against `git merge-file`, which may merge more but never otherwise."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from croze.edit.merge import Unmergeable, merge_bytes

WORDS = ["", "    return x\n", "a = 1\n", "b = 2\n", "}\n", "\n", "if a:\n", "    pass\n"]


@st.composite
def texts(draw: st.DrawFn) -> tuple[bytes, bytes, bytes]:
    """A base and what two sides made of it, each by a few edits; few words, so that lines repeat."""
    words = st.one_of(
        st.sampled_from(WORDS), st.integers(0, draw(st.sampled_from([3, 200]))).map("v{}\n".format)
    )
    base = draw(st.lists(words, max_size=30))

    def side() -> bytes:
        lines = list(base)
        for _ in range(draw(st.integers(1, 3))):
            at = draw(st.integers(0, len(lines)))
            lines[at : at + draw(st.integers(0, 2))] = draw(st.lists(words, max_size=3))
        text = "".join(lines)
        return (text[:-1] if draw(st.booleans()) and draw(st.booleans()) else text).encode()

    return "".join(base).encode(), side(), side()


def by_git(folder: Path, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    for name, data in (("base", base), ("ours", ours), ("theirs", theirs)):
        (folder / name).write_bytes(data)
    done = subprocess.run(
        ["git", "merge-file", "-p", "ours", "base", "theirs"],
        cwd=folder, capture_output=True, check=False,
    )  # fmt: skip
    return done.stdout if done.returncode == 0 else None


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(texts())
def test_a_merge_is_what_git_makes_of_it_and_gits_conflicts_are_refused(
    tmp_path: Path, three: tuple[bytes, bytes, bytes]
) -> None:
    base, ours, theirs = three
    merged = merge_bytes(base, ours, theirs)
    if ours == theirs or base in (ours, theirs):
        assert merged == (theirs if base == ours else ours)
    elif not isinstance(merged, Unmergeable):
        assert merged == by_git(tmp_path, base, ours, theirs)


@settings(max_examples=200, deadline=None)
@given(texts())
def test_the_sides_are_equal_partners(three: tuple[bytes, bytes, bytes]) -> None:
    base, ours, theirs = three
    one, other = merge_bytes(base, ours, theirs), merge_bytes(base, theirs, ours)
    assert isinstance(one, Unmergeable) == isinstance(other, Unmergeable)
    assert isinstance(one, Unmergeable) or one == other


TEXT = b"".join(b"line %d\n" % number for number in range(1, 40))


def edited(old: bytes, new: bytes, text: bytes = TEXT) -> bytes:
    assert text.count(old) == 1
    return text.replace(old, new)


def test_changes_in_different_places_are_both_taken() -> None:
    ours, theirs = edited(b"line 5\n", b"ours\n"), edited(b"line 30\n", b"theirs\nmore\n")
    both = edited(b"line 30\n", b"theirs\nmore\n", ours)
    assert merge_bytes(TEXT, ours, theirs) == both


def test_one_line_between_two_changes_is_enough_and_none_is_not() -> None:
    ours = edited(b"line 5\n", b"ours\n")
    assert merge_bytes(TEXT, ours, edited(b"line 7\n", b"theirs\n")) == edited(
        b"line 7\n", b"theirs\n", ours
    )
    assert isinstance(merge_bytes(TEXT, ours, edited(b"line 6\n", b"theirs\n")), Unmergeable)


def test_a_clash_names_the_line_of_ours_and_what_both_made_of_it() -> None:
    ours = b"new first\n" + edited(b"line 5\n", b"ours\n")
    found = merge_bytes(TEXT, ours, edited(b"line 5\n", b"theirs\nmore\n"))
    assert isinstance(found, Unmergeable)
    assert "same lines" in found.reason
    (clash,) = found.clashes
    assert (clash.line, clash.ours, clash.theirs) == (6, ("ours",), ("theirs", "more"))


def test_the_same_change_on_both_sides_is_one_change() -> None:
    ours = edited(b"line 5\n", b"same\n")
    theirs = edited(b"line 30\n", b"theirs\n", ours)
    assert merge_bytes(TEXT, ours, theirs) == theirs


def test_what_stands_several_times_is_refused_where_its_place_is_a_guess() -> None:
    base = b"a\nb\nc\n" * 12
    ours = base[:24] + b"new\n" + base[24:]
    theirs = base.replace(b"a\n", b"A\n", 5)
    assert isinstance(merge_bytes(base, ours, theirs), Unmergeable)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_line_ends_stay_and_a_side_that_changed_all_of_them_clashes(end: bytes) -> None:
    def form(text: bytes) -> bytes:
        return text.replace(b"\n", end)

    ours, theirs = edited(b"line 5\n", b"ours\n"), edited(b"line 30\n", b"theirs\n")
    both = edited(b"line 30\n", b"theirs\n", ours)
    assert merge_bytes(form(TEXT), form(ours), form(theirs)) == form(both)
    other = TEXT.replace(b"\n", b"\r\n")
    assert isinstance(merge_bytes(TEXT, ours, other), Unmergeable)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "latin-1", "gb18030"])
def test_encodings_and_marks_stay(encoding: str) -> None:
    def form(text: bytes) -> bytes:
        return text.decode().replace("line", "é").encode(encoding)

    ours, theirs = edited(b"line 5\n", b"ours\n"), edited(b"line 30\n", b"theirs\n")
    both = edited(b"line 30\n", b"theirs\n", ours)
    assert merge_bytes(form(TEXT), form(ours), form(theirs)) == form(both)


def test_a_missing_final_newline_is_a_change_of_the_last_line() -> None:
    ours, theirs = TEXT[:-1], edited(b"line 3\n", b"theirs\n")
    assert merge_bytes(TEXT, ours, theirs) == theirs[:-1]
    assert isinstance(merge_bytes(TEXT, ours, TEXT + b"more\n"), Unmergeable)


def test_what_is_no_text_is_never_merged_by_lines() -> None:
    found = merge_bytes(b"\0a\n", b"\0b\n", b"\0c\n")
    assert isinstance(found, Unmergeable)
    assert "no text" in found.reason
    assert merge_bytes(b"\0a\n", b"\0a\n", b"\0c\n") == b"\0c\n"


def test_another_encoding_on_one_side_is_refused() -> None:
    wide = TEXT.decode().encode("utf-16")
    assert isinstance(merge_bytes(TEXT, edited(b"line 5\n", b"o\n"), wide), Unmergeable)


def test_texts_that_differ_everywhere_are_refused_in_bounded_time() -> None:
    ours = b"".join(b"ours %d\n" % number for number in range(20_000))
    theirs = b"".join(b"theirs %d\n" % number for number in range(20_000))
    base = b"".join(b"base %d\n" % number for number in range(20_000))
    assert isinstance(merge_bytes(base, ours, theirs), Unmergeable)
