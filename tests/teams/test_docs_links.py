"""Links of Markdown pages: found outside of code, checked, taken out."""

from hypothesis import given
from hypothesis import strategies as st

from croze.teams.docs.links import Broken, anchors, broken, links, slugged, without

TEXT = """\
# A page

See [other](other.md "title"), ![drawing](pic.png) and <https://a.b>. `[no](code.md)`

```
[no](fenced.md)
```

[use][ref] and [ref] alone, [deep](a(b).md).
<!-- [no](comment.md) -->

[ref]: ./there.md#part
"""


def targets(text: str) -> list[str]:
    return [link.target for link in links(text)]


def test_inline_links_images_and_definitions_are_found_and_none_in_code_or_comments() -> None:
    assert targets(TEXT) == ["other.md", "pic.png", "a(b).md", "./there.md#part"]


def test_a_fence_ends_only_at_one_as_long_and_an_open_one_at_the_end() -> None:
    assert targets("````\n```\n[a](b)\n````\n[c](d)\n~~~\n[e](f)\n") == ["d"]


def test_a_stray_backtick_hides_no_link_of_a_later_paragraph() -> None:
    assert targets("A ` here [a](b).\n\nAnd `one` [c](d).\n") == ["b", "d"]


def test_headings_make_the_anchors_that_github_makes() -> None:
    page = "# One `two`!\n\n## Same\n\n## Same ##\n\nSet *text*\n---\n\n<a id='own'></a>\n```\n# no\n```\n"
    assert anchors(page) == {"one-two", "same", "same-1", "set-text", "own"}
    assert slugged("Über [den](x) Zaun & 桶") == "über-den-zaun--桶"


def check(page: str, **others: str) -> list[str]:
    pages = {"guide/a.md": page, "b.md": "# B\n\n## Part\n", **others}
    there = {"src/x.py", "src", "docs"}
    found = broken(pages, "docs/ref", lambda path: path in there, ["guide/a.md"])
    return [each.target for each in found]


def test_links_to_pages_anchors_and_files_of_the_project_are_followed() -> None:
    good = "# T\n[1](../b.md) [2](../b.md#part) [3](#t) [4](../../../src/x.py#L3) [5](../../../src/) [6](https://x) [7](mailto:a@b)"
    assert check(good) == []


def test_links_that_lead_nowhere_are_told() -> None:
    bad = "# T\n[1](b.md) [2](../b.md#none) [3](#u) [4](../../src/x.py) [5](/src/x.py) [6](../../../../etc) [7]() [8](../../../src/x.py#half)"
    assert check(bad) == [
        "b.md", "../b.md#none", "#u", "../../src/x.py", "/src/x.py", "../../../../etc", "",
        "../../../src/x.py#half",
    ]  # fmt: skip


def test_escaped_and_encoded_targets_are_read() -> None:
    assert check("# T\n[1](<../b.md>) [2](../%62.md)") == []


def test_a_link_that_is_taken_out_leaves_its_text() -> None:
    page = "See [the other](gone.md) and [a][x], [x].\n\n[x]: gone.md\n\nEnd, `[k](gone.md)`.\n"
    assert without(page, {"gone.md"}) == "See the other and a, x.\n\n\nEnd, `[k](gone.md)`.\n"


def test_other_links_stay_as_they_are() -> None:
    assert without(TEXT, {"none.md"}) == TEXT


@given(st.text(alphabet="[]()`~#<>! \nab.md:/-", max_size=200))
def test_whatever_a_page_holds_its_broken_links_can_be_taken_out(text: str) -> None:
    def left(page: str) -> list[Broken]:
        return broken({"p.md": page}, "out", lambda _path: False)

    for _ in range(60):  # taking a link out may join what is left to another
        found = left(text)
        if not found:
            break
        text = without(text, {each.target for each in found})
    assert left(text) == []


@given(st.text(alphabet="[]()`~#<>! \nab", max_size=200))
def test_links_stand_where_they_are_said_to_stand(text: str) -> None:
    for link in links(text):
        assert link.text in text[link.start : link.end]
        assert link.target in text[link.start : link.end]
