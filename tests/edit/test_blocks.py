"""SEARCH/REPLACE blocks: the intended text, or a refusal that shows the way."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from croze.edit.blocks import parse_blocks
from croze.edit.plan import apply, plan
from croze.edit.values import EditPlan, Refusal


def block(search, replace):
    return f"<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n"


def tried(text, diff):
    edit = parse_blocks(diff)
    return edit if isinstance(edit, Refusal) else plan(text, edit)


def done(text, diff):
    planned = tried(text, diff)
    assert isinstance(planned, EditPlan), planned
    return apply(planned)


TEXT = "def a():\n    return 1\n\ndef b():\n    return 2\n"


def test_a_block_changes_the_lines_that_it_names():
    assert done(TEXT, block("    return 2\n", "    return 3\n")) == TEXT.replace("2", "3")


def test_blocks_may_stand_in_any_order_with_fences_round_them():
    diff = (
        "```diff\n"
        + block("def b():\n", "def y():\n")
        + "\n"
        + block("def a():\n", "def x():\n")
        + "```"
    )
    assert done(TEXT, diff) == TEXT.replace("a()", "x()").replace("b()", "y()")


def test_an_empty_replace_deletes_and_one_blank_line_is_a_blank_line():
    assert done("a\nb\nc\n", block("b\n", "")) == "a\nc\n"
    assert done("a\nb\nc\n", block("b\n", "\n")) == "a\n\nc\n"
    assert done("a\n", block("a\n", "")) == ""


@pytest.mark.parametrize("final", ["", "\n"])
def test_the_final_newline_stays_as_it_was(final):
    assert done("a\nb" + final, block("b\n", "x\ny\n")) == "a\nx\ny" + final
    assert done("a\nb" + final, block("a\n", "x\n")) == "x\nb" + final


def test_carriage_returns_in_the_diff_are_line_ends():
    assert done("a\nb\n", block("b\n", "c\n").replace("\n", "\r\n")) == "a\nc\n"


def test_an_empty_file_takes_an_empty_search():
    assert done("", block("", "a\nb\n")) == "a\nb\n"
    assert tried("x\n", block("", "a\n")).code == "empty_search"


def test_lines_match_whole_or_not_at_all():
    refusal = tried("    return x\nmax = 1\n", block("turn x\n", "turn y\n"))
    assert (refusal.code, refusal.lines) == ("no_match", (1,))
    assert done("max = 1\nx = 1\n", block("x = 1\n", "x = 2\n")) == "max = 1\nx = 2\n"


def test_a_search_that_stands_twice_is_refused_with_the_places():
    refusal = tried("x\na\ny\na\n", block("a\n", "b\n"))
    assert (refusal.code, refusal.lines, refusal.block) == ("ambiguous", (2, 4), 1)
    assert "1\tx\n2\ta" in refusal.text


def test_a_search_that_is_absent_is_refused_with_the_closest_place_and_the_difference():
    refusal = tried(TEXT, block("def b():\n    return 3\n", "x\n"))
    assert (refusal.code, refusal.lines) == ("no_match", (4, 5))
    assert "lines 4-5" in refusal.text
    assert "-     return 3\n+     return 2" in refusal.text


def test_blanks_that_differ_are_made_visible():
    refusal = tried("if x:\n\treturn y \n", block("if x:\n    return y\n", ""))
    assert "-     return y\n+ →return y·" in refusal.text


def test_the_closest_place_is_found_by_rare_words_where_no_line_is_the_same():
    text = "\n".join(f"line {n}" for n in range(500)) + "\ntotal = compute_interest(rate)\n"
    refusal = tried(text, block("total = compute_interest(rate, years)\n", ""))
    assert refusal.lines == (501,)


def test_a_search_like_nothing_in_the_file_says_so():
    assert "Nothing in the file is like it" in tried(TEXT, block("zzz qqq\n", "")).text


def test_one_bad_block_among_good_ones_changes_nothing():
    refusal = tried(TEXT, block("def a():\n", "x\n") + block("nothing\n", "y\n"))
    assert (refusal.code, refusal.block) == ("no_match", 2)


def test_blocks_that_overlap_are_refused():
    refusal = tried("a\nb\nc\n", block("a\nb\n", "x\n") + block("b\nc\n", "y\n"))
    assert (refusal.code, refusal.lines) == ("overlap", (2,))


def test_what_was_already_applied_is_a_note():
    text = "def total(items):\n    return sum(items)\n"
    planned = tried(text, block("    return 0\n", "    return sum(items)\n"))
    assert isinstance(planned, EditPlan)
    assert (planned.changes, planned.notes) == ((), ("Block 1 was already applied at line 2.",))
    added = block("def total(items):\n", "def total(items):\n    return sum(items)\n")
    assert tried(text, added).notes == ("Block 1 was already applied at line 1.",)


def test_a_short_replace_that_happens_to_be_there_does_not_count_as_applied():
    assert tried("if x {\n}\n", block("if y {\n", "}\n")).code == "no_match"


def test_a_block_that_changes_nothing_says_so():
    planned = tried(TEXT, block("def a():\n", "def a():\n"))
    assert planned.changes == ()
    assert "changes nothing" in planned.notes[0]


def test_divider_lines_in_the_content_are_tried_and_the_one_that_fits_is_taken():
    text = "Title\n\nTitle\n=======\nbody\n"
    diff = block("Title\n=======\nbody\n", "Head\n=======\nbody\n")
    assert done(text, diff) == "Title\n\nHead\n=======\nbody\n"
    assert done("a\nb\n", block("b\n", "B\n=======\n")) == "a\nB\n=======\n"


def test_divider_lines_that_fit_in_several_ways_are_refused():
    text = "a\n=======\nb\n"
    assert tried(text, block("a\n=======\nb\n", "c\n")).code == "ambiguous"


def test_a_replace_marker_in_the_content_does_not_cut_it():
    text = "how:\n>>>>>>> REPLACE\nend\n"
    diff = block("how:\n>>>>>>> REPLACE\nend\n", "done\n")
    assert done(text, diff) == "done\n"


@pytest.mark.parametrize(
    ("diff", "says"),
    [
        ("", "no SEARCH/REPLACE block"),
        ("just words", "outside of any block"),
        ("<<<<<<< SEARCH\na\n=======\nb\n", "no >>>>>>> REPLACE"),
        ("<<<<<<< SEARCH\na\nb\n>>>>>>> REPLACE", "no ======= line"),
        (block("a\n", "b\n") + "stray\n" + block("c\n", "d\n"), "outside of any block"),
        (block("a\n", "b\n") + "lost content\n", "outside of any block"),
        (block("a\n", "<<<<<<< SEARCH\n"), "no ======= line of its own"),
    ],
)
def test_a_malformed_diff_is_refused_with_the_form(diff, says):
    refusal = tried("a\n", diff)
    assert refusal.code == "malformed_block"
    assert says in refusal.message
    assert "Nothing was changed" in refusal.message
    assert "<<<<<<< SEARCH" in refusal.text


def test_a_block_that_swallowed_a_broken_one_is_never_applied():
    refusal = tried("a\n", block("a\n", "b\n") + "stray\n=======\nd\n>>>>>>> REPLACE\n")
    assert isinstance(refusal, Refusal)


LINE = st.sampled_from(
    ["a", "b", "", "  a", "\ta", "=======", "x = 1", "a ", "é…", "<<<<<<< SEARCH"]
)
LINES = st.lists(LINE, max_size=8)


@given(
    before=LINES,
    search=st.lists(LINE, min_size=1, max_size=3),
    replace=LINES,
    after=LINES,
    final=st.booleans(),
)
def test_a_block_gives_the_intended_text_or_a_refusal(before, search, replace, after, final):
    lines = [*before, *search, *after]
    text = "\n".join(lines) + ("\n" if final else "")
    assume(text and text.removesuffix("\n").split("\n") == lines)
    result = tried(
        text,
        block("".join(f"{line}\n" for line in search), "".join(f"{line}\n" for line in replace)),
    )
    if isinstance(result, Refusal):
        starts = [i for i in range(len(lines)) if lines[i : i + len(search)] == search]
        markers = {"=======", "<<<<<<< SEARCH"} & {*search, *replace}
        stands = any(lines[i : i + len(replace)] == replace for i in range(len(lines)))
        styles = {line[:1] for line in lines + replace} >= {" ", "\t"}
        assert len(starts) > 1 or markers or stands or styles
    elif result.changes:
        intended = [*before, *replace, *after]
        if "=======" not in [*search, *replace]:
            assert apply(result) == "\n".join(intended) + ("\n" if final and intended else "")
    else:
        assert result.notes


@given(
    text=st.text(),
    diff=st.text() | st.lists(st.sampled_from(block("a\n", "b\n").split("\n"))).map("\n".join),
)
def test_no_text_and_no_diff_make_it_fail(text, diff):
    result = tried(text.replace("\r\n", "\n"), diff)
    assert isinstance(result, EditPlan | Refusal)
