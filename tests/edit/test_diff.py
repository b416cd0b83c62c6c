"""The unified diff, against the program `patch` reads it with: applying it gives the new text."""

import re

from hypothesis import given
from hypothesis import strategies as st

from croze.edit.diff import unified

LINES = st.lists(st.sampled_from("abcdef"), max_size=30)


def applied(before, diff):
    """Apply a diff strictly: every hunk at its line, every context line as it says."""
    lines, out, at = before.splitlines(), [], 0
    for row in diff.splitlines()[2:]:
        hunk = re.match(r"@@ -(\d+)(?:,(\d+))? \+", row)
        if hunk:
            start = int(hunk[1]) - (hunk[2] != "0")
            out += lines[at:start]
            at = start
        elif row[0] == "+":
            out.append(row[1:])
        else:
            assert lines[at] == row[1:]
            at += 1
            out += [row[1:]] if row[0] == " " else []
    return "".join(f"{line}\n" for line in out + lines[at:])


@given(LINES, LINES, st.lists(st.tuples(st.integers(0, 30), st.sampled_from("xyz")), max_size=3))
def test_applying_the_diff_gives_the_new_text(first, other, changes):
    edited = list(first)
    for at, letter in changes:
        edited[at : at + 1] = [letter]
    before = "".join(f"{line}\n" for line in first)
    for lines in (edited, other):
        after = "".join(f"{line}\n" for line in lines)
        diff = unified(before, after, "f")
        assert applied(before, diff.text) == after
        assert diff.added - diff.removed == len(lines) - len(first)


def test_new_and_removed_files_name_dev_null():
    assert unified("", "a\n", "f").text == "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"
    assert unified("a\n", "", "f").text == "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"


def test_a_missing_final_newline_is_shown():
    assert "-b\n\\ No newline at end of file\n+b\n" in unified("a\nb", "a\nb\n", "f").text


def test_a_long_diff_is_cut_but_counted_in_full():
    diff = unified("", "x\n" * 50_000, "f", limit=10)
    assert (diff.added, diff.text.count("\n")) == (50_000, 13)
    assert diff.text.endswith("more lines\n")
