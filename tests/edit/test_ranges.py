"""Edits by line numbers: as a naive model does them, moved with their lines, or refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.edit.plan import apply
from croze.edit.ranges import LineRange, RangeEdit, plan_ranges
from croze.edit.values import EditPlan, Refusal

TEXT = "".join(f"line {number}\n" for number in range(1, 11))
LINE = st.sampled_from(["", "a", "  b", "line 3", "}", "ä→"])


def edited(text, *ranges):
    return result(plan_ranges(text, RangeEdit(tuple(LineRange(*one) for one in ranges))))


def result(planned):
    return planned.code if isinstance(planned, Refusal) else apply(planned)


@st.composite
def texts_and_ranges(draw):
    lines = draw(st.lists(LINE, max_size=12))
    final = draw(st.booleans())
    text = "\n".join(lines) + ("\n" if lines and final else "")
    count = len(text.removesuffix("\n").split("\n")) if text else 0
    ranges, at = [], 1
    while at <= count + 1 and draw(st.booleans()):
        start = draw(st.integers(at, count + 1))
        end = draw(st.integers(start - 1, min(count, start + 3)))
        ranges.append(LineRange(start, end, "\n".join(draw(st.lists(LINE, max_size=3)))))
        at = max(end + 1, start) + 1
    return text, draw(st.permutations(ranges))


@given(texts_and_ranges())
def test_ranges_are_applied_as_from_the_bottom_up(case):
    text, ranges = case
    lines = text.removesuffix("\n").split("\n") if text else []
    for one in sorted(ranges, key=lambda one: one.start, reverse=True):
        lines[one.start - 1 : one.end] = one.text.removesuffix("\n").split("\n") if one.text else []
    expected = "\n".join(lines) + ("\n" if lines and (text.endswith("\n") or not text) else "")
    planned = plan_ranges(text, RangeEdit(tuple(ranges)))
    if ranges:
        assert result(planned) == expected
    else:
        assert planned.code == "malformed_range"


@given(
    st.text(),
    st.lists(
        st.builds(
            LineRange, st.integers(-3, 9), st.integers(-3, 9), st.text(), st.none() | st.text()
        )
    ),
)
def test_no_ranges_raise_and_refused_ones_change_nothing(text, ranges):
    planned = plan_ranges(text.replace("\r\n", "\n"), RangeEdit(tuple(ranges)))
    assert isinstance(planned, EditPlan | Refusal)
    if isinstance(planned, Refusal):
        assert planned.message.endswith("Nothing was changed.")


def test_ranges_replace_delete_and_insert_in_the_original_numbering():
    after = edited(
        TEXT, (2, 3, "new\r\nlines\r\n"), (5, 5, ""), (8, 7, "before 8"), (11, 10, "end")
    )
    expected = ["line 1", "new", "lines", "line 4", "line 6", "line 7", "before 8", "line 8"]
    assert after == "\n".join([*expected, "line 9", "line 10", "end"]) + "\n"


def test_an_empty_file_takes_lines_and_a_file_can_be_emptied():
    assert edited("", (1, 0, "a\nb")) == "a\nb\n"
    assert edited("a\nb", (1, 2, "")) == ""
    assert edited("a", (2, 1, "b")) == "a\nb"


@pytest.mark.parametrize(
    ("ranges", "code"),
    [
        ([(2, 4, "x"), (4, 5, "y")], "overlap"),
        ([(2, 4, "x"), (3, 2, "y")], "overlap"),
        ([(0, 1, "x")], "malformed_range"),
        ([(5, 3, "x")], "malformed_range"),
        ([(10, 11, "x")], "out_of_range"),
        ([(12, 11, "x")], "out_of_range"),
        ([(5, 4, "x", "line 5")], "malformed_range"),
        ([(5, 6, "x", "line 5")], "malformed_range"),
        ([(5, 5, "x", "line")], "stale"),
        ([], "malformed_range"),
    ],
)
def test_wrong_ranges_are_refused(ranges, code):
    assert edited(TEXT, *ranges) == code


def test_a_refusal_shows_the_current_lines():
    planned = plan_ranges(TEXT, RangeEdit((LineRange(5, 6, "x", "gone\nagain"),)))
    assert planned.lines == (5, 6)
    assert "5\tline 5\n6\tline 6" in planned.text


@given(st.integers(0, 20), st.integers(1, 9), st.booleans())
def test_expected_lines_are_followed_to_where_they_stand_now(above, start, blanks):
    shifted = "new\n" * above + TEXT
    expect = f"line {start}\nline {start + 1}" + ("  \n" if blanks else "")
    planned = plan_ranges(shifted, RangeEdit((LineRange(start, start + 1, "X", expect),)))
    lines = TEXT.split("\n")
    lines[start - 1 : start + 1] = ["X"]
    assert apply(planned) == "new\n" * above + "\n".join(lines)
    assert planned.strategy == ("relocated" if above else "exact")


def test_expected_lines_that_stand_twice_or_in_another_order_are_refused():
    assert edited("a\n" + TEXT + TEXT, (1, 1, "X", "line 1")) == "stale"
    assert edited("}\nx\ny\n", (3, 3, "X", "}")) == "stale"
    swapped = "line b\nline a\nz\nz\n"
    assert edited(swapped, (3, 3, "A", "line a"), (4, 4, "B", "line b")) == "stale"


def test_an_edit_with_expected_lines_is_not_made_twice():
    ranges = RangeEdit(
        (
            LineRange(2, 2, "another line\nand one more", "line 2"),
            LineRange(4, 4, "the fourth line", "line 4"),
        )
    )
    once = apply(plan_ranges(TEXT, ranges))
    again = plan_ranges(once, ranges)
    assert (apply(again), again.changes, len(again.notes)) == (once, (), 2)
    # Its line is at another place now, where replacing it would be wrong.
    assert edited(
        "another line of it\nx\nold line\n", (1, 1, "another line of it", "old line")
    ) == ("another line of it\nx\nold line\n")
