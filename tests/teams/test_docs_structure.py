"""What agents and people answer for the brief and the structure."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.teams.docs.manifest import Manifest, listing_digest, read_manifest
from croze.teams.docs.structure import matches, read_brief, read_structure, shown
from croze.teams.docs.values import Brief
from croze.types.errors import CrozeError
from tests.teams.docs_fakes import BRIEF, HOOPS, START


def there(path: str) -> str:
    return "" if path in ("README.md", "src/barrel.py", "src/hoops.py") else "does not exist"


def structure(*pages: dict[str, Any]) -> str:
    return json.dumps({"pages": pages})


@pytest.mark.parametrize(
    "answer",
    [
        structure(START, HOOPS),
        f"```json\n{structure(START, HOOPS)}\n```",
        f"Here it is:\n\n{structure(START, HOOPS)}\n\nDone.",
        f"Here:\n```\n{structure(START, HOOPS)}\n```\nThat is all.",
    ],
)
def test_a_structure_is_read_in_a_fence_amid_prose_or_alone(answer: str) -> None:
    found = read_structure(answer, there)
    assert not isinstance(found, str), found
    assert [page.path for page in found] == ["guide/start.md", "hoops.md"]


def test_what_is_shown_to_a_person_is_read_back_as_the_same() -> None:
    pages = read_structure(structure(START, HOOPS), there)
    assert not isinstance(pages, str)
    text = shown(Brief(**BRIEF), pages)
    assert text.startswith("# Cooper: Cooper makes barrels.\n")
    assert read_structure(text, there) == pages


@pytest.mark.parametrize(
    ("pages", "told"),
    [
        ([], "there are 0 pages"),
        ([{**START, "path": "../out.md"}], "the path must be relative"),
        ([{**START, "path": "/etc/x.md"}], "the path must be relative"),
        ([{**START, "path": "start.txt"}], "end in .md"),
        ([{**START, "path": "Index.md"}], "written from the structure"),
        ([START, {**HOOPS, "path": "Guide/Start.md"}], "two pages have this path"),
        ([{**START, "path": "a.md"}, {**HOOPS, "path": "a.md/b.md"}], "lies below a path"),
        ([{**START, "title": " "}], "title and purpose"),
        ([{**START, "sources": []}], "1 to 20 sources"),
        ([{**START, "sources": ["none.py"]}], "source 'none.py' does not exist"),
        ([{**START, "sources": "README.md"}], "Expected `array`"),
    ],
)
def test_what_is_wrong_with_a_structure_is_said(pages: list[dict[str, Any]], told: str) -> None:
    found = read_structure(structure(*pages), there)
    assert isinstance(found, str)
    assert told in found


def test_many_problems_are_cut_with_their_number() -> None:
    pages = [{**START, "path": f"p{n}.md", "sources": ["none"]} for n in range(20)]
    found = read_structure(structure(*pages), there)
    assert isinstance(found, str)
    assert found.endswith("… 8 more")


@pytest.mark.parametrize("answer", ["", "I don't know.", "[1, 2]", "{", "pages: [", "{'a': 1}"])
def test_an_answer_that_is_no_structure_is_told(answer: str) -> None:
    assert isinstance(read_structure(answer, there), str)


def test_a_brief_needs_all_of_its_parts() -> None:
    assert read_brief(json.dumps(BRIEF)) == Brief(**BRIEF)
    found = read_brief(json.dumps({**BRIEF, "scope": " "}))
    assert found == "scope: must not be empty"


@given(st.text(max_size=300))
def test_no_answer_breaks_the_reader(answer: str) -> None:
    assert isinstance(read_brief(answer), str)
    read_structure(answer, there)


def test_globs_are_those_of_gitignore() -> None:
    assert matches("src/a/b.py", ["*.py"])
    assert matches("src/a/b.py", ["src/"])
    assert not matches("lib/b.py", ["/src"])
    assert not matches("src/test_a.py", ["*.py", "!test_*"])
    assert matches("any", [])


def test_the_listing_does_not_change_by_the_set_itself() -> None:
    before = {".": ("src/", "README.md"), "src": ("a.py",)}
    after = {
        **before,
        ".": ("docs/", "src/", "README.md"),
        "docs": ("ref/",),
        "docs/ref": ("x.md",),
    }
    assert listing_digest(before, "docs/ref") == listing_digest(after, "docs/ref")
    other = {**after, "docs": ("ref/", "mine.md")}
    assert listing_digest(before, "docs/ref") != listing_digest(other, "docs/ref")
    assert listing_digest({**before, "src": ("a.py", "b.py")}, "docs/ref") != listing_digest(
        before, "docs/ref"
    )


def test_a_manifest_that_can_not_be_read_is_an_error_that_names_it() -> None:
    assert read_manifest(None, "m") == Manifest()
    with pytest.raises(CrozeError, match=r"m can't be read"):
        read_manifest(b"{", "m")
    with pytest.raises(CrozeError, match="newer croze"):
        read_manifest(b'{"version": 9}', "m")
