"""Whole files as models write them: as written, merged, or refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.edit.plan import apply
from croze.edit.source import edited, read_source
from croze.edit.values import EditPlan, Refusal
from croze.edit.whole import WholeEdit, plan_whole

CODE = """import os
import sys


def first(value):
    total = value + 1
    return total


def second(value):
    other = value - 1
    return other
"""


def written(text, new, path="a.py"):
    planned = plan_whole(text, WholeEdit(new, path))
    return planned.code if isinstance(planned, Refusal) else apply(planned)


@given(st.text(st.sampled_from("ab\n ")), st.text(st.sampled_from("ab\n ")))
def test_the_file_becomes_what_was_written(before, after):
    got = written(before, after, "notes.txt")
    unsaid = after and not after.endswith("\n") and (not before or before.endswith("\n\n"))
    assert got == after or (unsaid or before == "\n")


@given(st.text(), st.text())
def test_no_content_raises(before, after):
    planned = plan_whole(before.replace("\r\n", "\n"), WholeEdit(after, "a.py"))
    assert isinstance(planned, EditPlan | Refusal)


def test_lines_that_stay_keep_their_own_ends():
    source = read_source(b"a\r\nb\nc\r\n")
    planned = plan_whole(source.text, WholeEdit("a\nB\nc\n", "f"))
    assert edited(source, planned) == b"a\r\nB\nc\r\n"


@pytest.mark.parametrize(
    "marker",
    [
        "# ... existing code ...",
        "// ... existing code ...",
        "/* ... rest of the file ... */",
        "<!-- ... existing code ... -->",
        "-- ... unchanged ...",
        "; ... rest of code ...",
        "% ... existing code ...",
        '""" ... existing code ... """',
        "{/* ... existing code ... */}",
        "    # ...",
        "// …",
        "# rest of the code unchanged",
        "// rest unchanged",
        "# The rest of the file remains the same.",
        "# ... (other methods unchanged) ...",
        "... existing code ...",
        "[... rest of code ...]",
        "x = 1  # ... existing code ...",
    ],
)
def test_a_marker_is_never_written(marker):
    for new in (f"import re\n{marker}\n", f"{marker}\nimport re\n", f"import re\n{marker}\nx\n"):
        got = written(CODE, new)
        assert got == "elision_marker"
    assert written("", f"x = 1\n{marker}\n") == "elision_marker"


@pytest.mark.parametrize(
    "line",
    [
        "# REST", "# rest of us", "...", "    ...", "x = [...]", "...rest,", "  ...existing,",
        "# other tests", "# see the existing users", "def f(*args): ...", "# done ...", "// TODO...",
        "## Existing code of conduct rules apply", "print('...')", "# ...but not here", "go...",
    ],
)  # fmt: skip
def test_lines_that_only_look_like_markers_are_content(line):
    new = CODE + line + "\n"
    assert written(CODE, new) == new


def test_a_marker_that_the_file_has_already_is_content():
    text = CODE + "# ... existing code ...\n"
    assert written(text, text + "x = 1\n") == text + "x = 1\n"
    assert written("", "Write `x` or\n... existing code ...\n", "a.md").startswith("Write")


def test_a_marker_whose_place_is_clear_is_merged():
    new = "import os\nimport sys\n\n\ndef first(value):\n# ... existing code ...\n    other = value - 2\n    return other\n"
    assert written(CODE, new) == "elision_marker"
    clear = (
        "import os\nimport sys\n\n\ndef first(value):\n    total = value + 2\n    return total\n\n\n"
        "def second(value):\n    other = value - 1\n# ... existing code ...\n"
    )
    assert written(CODE, clear) == CODE.replace("value + 1", "value + 2")


def test_a_fence_round_the_content_is_left_out():
    assert written(CODE, f"```python\n{CODE}x = 1\n```\n") == CODE + "x = 1\n"
    assert written("# t\n", "```\nx\n```\n", "a.md") == "```\nx\n```\n"


def test_content_that_breaks_off_is_refused():
    pytest.importorskip("tree_sitter_python", exc_type=ImportError)
    cut = CODE[: CODE.index("total = value") + 10] + "(1 +"
    assert written(CODE * 3, cut) == "elision_marker"
    assert written(CODE * 3, CODE) == CODE
