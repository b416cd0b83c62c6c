"""Unified diffs: as git and patch apply them where they are exact, by content where they aren't."""

import difflib
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from croze.edit.patch import PatchEdit, plan_patch
from croze.edit.plan import apply
from croze.edit.values import EditPlan, Refusal

TEXT = "".join(f"line {number}\n" for number in range(1, 31))
LINE = st.sampled_from(
    [f"line {number}" for number in range(12)] + ["", "-- x", "++ y", "  z", "\\ w", "@@ -1 +1 @@"]
)


def patched(text, diff):
    planned = plan_patch(text, PatchEdit(diff))
    return planned.code if isinstance(planned, Refusal) else apply(planned)


def diffed(before, after, context=3):
    rows = difflib.unified_diff(
        before.splitlines(), after.splitlines(), "a/f", "b/f", n=context, lineterm=""
    )
    return "\n".join(rows) + "\n"


def changed(text, old, new):
    assert text.count(old) == 1
    return text.replace(old, new)


@st.composite
def two_texts(draw):
    first = draw(st.lists(LINE, max_size=30))
    second = list(first)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(second)))
        second[at : at + draw(st.integers(0, 2))] = draw(st.lists(LINE, max_size=2))
    ends = draw(st.tuples(st.booleans(), st.booleans()))
    return tuple(
        "\n".join(lines) + ("\n" if lines and final else "")
        for lines, final in zip((first, second), ends, strict=True)
    )


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(two_texts(), st.booleans())
def test_a_diff_that_git_made_gives_what_git_makes_of_it_or_is_refused(tmp_path, texts, plain):
    before, after = texts
    for name, text in zip(("a", "b"), texts, strict=True):
        (tmp_path / name).write_text(text, newline="")
    command = ["diff", "-u"] if plain else ["git", "diff", "--no-index", "--no-color"]
    run = subprocess.run([*command, "a", "b"], cwd=tmp_path, capture_output=True, text=True)
    got = patched(before, run.stdout)
    if before == after:
        assert got == "malformed_patch"
        return
    # Refused where the hunk's content fits several places that its line numbers don't tell apart, and
    # where a plan can't say that the final newline goes.
    assert got in (after, "ambiguous", "malformed_patch")
    if len(set(before.split("\n"))) == len(before.split("\n")) and before and after.endswith("\n"):
        assert got == after


@given(st.text(), st.text())
def test_no_patch_raises(text, diff):
    header = "--- a\n+++ b\n@@ -1 +1 @@\n"
    for one in (diff, header + diff, "\n".join("+" + row for row in diff.split("\n"))):
        planned = plan_patch(text.replace("\r\n", "\n"), PatchEdit(one))
        assert isinstance(planned, EditPlan | Refusal)


AFTER = changed(changed(TEXT, "line 4\n", "LINE 4\nline 4b\n"), "line 20\n", "")
DIFF = diffed(TEXT, AFTER)


@pytest.mark.parametrize(
    "diff",
    [
        DIFF,
        DIFF.replace("\n", "\r\n"),
        f"```diff\n{DIFF}```\n",
        DIFF.replace("--- a/f\n+++ b/f\n", "--- f\n+++ f\n"),
        "diff --git a/f b/f\nindex 123..456 100644\n" + DIFF,
        DIFF.replace("@@ -1,7 +1,8 @@", "@@ -1,99 +7,1 @@"),
        DIFF.replace("@@ -1,7 +1,8 @@", "@@ -100,7 +100,8 @@ def f():"),
        DIFF.replace("@@ -1,7 +1,8 @@", "@@ ... @@").replace("@@ -17,7 +18,6 @@", "@@"),
        DIFF.replace("--- a/f\n+++ b/f\n", ""),
        DIFF.rstrip("\n"),
        DIFF + "\n\n",
        DIFF + "-- \n2.39.2\n",
        "From 123\nSubject: x\n\n---\n f | 2 +-\n\n" + DIFF,
    ],
)
def test_the_many_ways_to_write_a_diff_give_the_same(diff):
    assert patched(TEXT, diff) == AFTER


def test_blanks_lost_in_a_diff_leave_the_files_own():
    text = "a = 1  \n\nb = 2\t\n\nc = 3\n"
    diff = "--- a/f\n+++ b/f\n@@ -1,5 +1,5 @@\n a = 1\n\n-b = 2\n+b = 4\n\n c = 3\n"
    assert patched(text, diff) == "a = 1  \n\nb = 4\n\nc = 3\n"


def test_removed_and_added_lines_that_look_like_headers_are_content():
    text = "x\n-- a\ny\n"
    diff = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n x\n--- a\n+++ b\n y\n"
    assert patched(text, diff) == "x\n++ b\ny\n"


REPEATED = "start\n" + "if x:\n    go\n" * 8 + "end\n"


@pytest.mark.parametrize(
    ("header", "line"),
    [("@@ -4,2 +4,2 @@", 4), ("@@ -3,2 +3,2 @@", None), ("@@ -40,2 @@", None), ("@@", None)],
)
def test_a_hunk_that_fits_several_places_needs_a_near_number(header, line):
    sparse = REPEATED.replace("    go\n", "    go\n\n\n\n\n")
    diff = f"--- a/f\n+++ b/f\n{header}\n if x:\n-    go\n+    stop\n"
    near = header.replace("-4", "-8").replace("-3", "-5")
    assert patched(REPEATED, diff) == "ambiguous"
    if line is None:
        assert patched(sparse, diff.replace(header, near)) == "ambiguous"
    else:
        lines = sparse.split("\n")
        lines[8] = "    stop"
        assert patched(sparse, diff.replace(header, near)) == "\n".join(lines)


def test_a_diff_is_not_applied_twice():
    planned = plan_patch(AFTER, PatchEdit(DIFF))
    assert (planned.changes, len(planned.notes)) == ((), 2)
    added = "--- a/f\n+++ b/f\n@@ -30 +30,2 @@\n line 30\n+a new last line\n"
    once = patched(TEXT, added)
    assert once == TEXT + "a new last line\n"
    assert patched(once, added) == once


def test_files_are_made_and_emptied():
    new = "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    assert patched("", new) == "one\ntwo\n"
    assert patched("one\ntwo\n", new) == "one\ntwo\n"
    assert patched("other\n", new) == "no_match"
    gone = "--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n"
    assert patched("one\ntwo\n", gone) == ""
    assert patched("one\ntwo\nthree\n", gone) == "no_match"


@pytest.mark.parametrize(
    ("before", "rows", "after"),
    [
        ("a\nb", "-b\n\\ No newline at end of file\n+b\n", "a\nb\n"),
        ("a\nb\n", "-b\n+c\n\\ No newline at end of file\n", "a\nc"),
        ("a\nb", "-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n", "a\nc"),
        ("a\nb", "-b\n+c\n", "a\nc"),
        (
            "a\nb\n",
            "-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n",
            "a\nc\n",
        ),
    ],
)
def test_the_final_newline_is_as_the_diff_says_where_it_changes_it(before, rows, after):
    assert patched(before, f"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n{rows}") == after


@pytest.mark.parametrize(
    ("diff", "code", "told"),
    [
        (DIFF + DIFF.replace("a/f", "a/g").replace("b/f", "b/g"), "malformed_patch", "f, g"),
        ("no diff at all\n", "malformed_patch", "no hunk"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n line 1\n", "malformed_patch", "no hunk"),
        (DIFF + "what is this\n", "malformed_patch", "belongs to no hunk"),
        ("Binary files a/f and b/f differ\n", "malformed_patch", "binary"),
        ("@@@ -1 -1 +1 @@@\n--x\n++y\n", "malformed_patch", "combined"),
        ("--- a/f\n+++ b/f\n@@ -3,0 +4 @@\n+new\n", "ambiguous", "number"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-lime 1\n+x\n", "no_match", "not found"),
        (DIFF.replace("-line 20", "-line 21"), "no_match", "Hunk 2"),
    ],
)
def test_what_cant_be_applied_is_refused_with_the_reason(diff, code, told):
    planned = plan_patch(TEXT, PatchEdit(diff))
    assert (planned.code, told in planned.message) == (code, True)


def test_hunks_that_change_the_same_lines_are_refused():
    hunk = "@@ -2,3 +2,3 @@\n line 2\n-line 3\n+line x\n line 4\n"
    other = hunk.replace("line x", "line y")
    assert patched(TEXT, f"--- a/f\n+++ b/f\n{hunk}{other}") == "overlap"


CODE = "def run(self, items):\n    total = 0\n    for item in items:\n        total += item.price\n    return total\n"


@pytest.mark.parametrize(
    ("rows", "after"),
    [
        # the whole hunk set in too deep
        (
            ["     def run(self, items):", "-        total = 0", "+        total = 1",
             "         for item in items:"],
            CODE.replace("= 0", "= 1"),
        ),
        # a slip in a removed line
        (
            [" def run(self, items):", "     total = 0", "     for item in items:",
             "-        total += item.prize", "+        total += item.cost", "     return total"],
            CODE.replace("price", "cost"),
        ),
        # a lost context line may be a lost change
        (
            [" def run(self, items):", "     for item in items:", "-        total += item.price",
             "+        total += item.cost", "     return total"],
            "no_match",
        ),
        # another name than the file's is no slip
        (
            [" def run(self, items):", "     total = 0", "-    for thing in items:",
             "+    for one in items:"],
            "no_match",
        ),
    ],
)  # fmt: skip
def test_a_hunk_that_is_slightly_off_is_placed_as_a_block_is(rows, after):
    assert patched(CODE, "--- a/f\n+++ b/f\n@@ -1,5 +1,5 @@\n" + "\n".join(rows) + "\n") == after
