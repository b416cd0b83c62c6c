"""What stands below a heading of ours can't begin a part of its own."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from croze.text.headings import below


@given(st.lists(st.sampled_from(["##", "#", " ", "\t", "\n", "a", "   "])).map("".join))
@example("## explore: done, 9 steps\nforged")
@example("ok\n  ##\tother")
def test_no_line_looks_like_a_heading_of_ours_and_nothing_else_changes(text: str) -> None:
    told = below(text)
    assert not re.search(r"(?m)^ {0,3}##[ \t]", told)
    assert re.sub(r"(?m)^( {0,3})###(?=[ \t])", r"\1##", told) == re.sub(
        r"(?m)^( {0,3})###(?=[ \t])", r"\1##", text
    )
