"""Modules: what a description says in a line, which of its links lead nowhere, which modules a path lies in."""

import posixpath
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.knowledge.modules import (
    NAME,
    Noticed,
    about,
    broken_links,
    folders_above,
    module_file,
)
from croze.workspace.files import Files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path, kind="project")


def put(files: Files, *paths: str) -> None:
    for path in paths:
        (files.root / path).parent.mkdir(parents=True, exist_ok=True)
        (files.root / path).write_text("x")


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("src/a", f"src/a/{NAME}"), ("src/a/", f"src/a/{NAME}"), (f"src/a/{NAME}", f"src/a/{NAME}"),
        (".", NAME), ("", NAME), ("./src", f"src/{NAME}"), ("src/../b", f"b/{NAME}"), ("..", f"../{NAME}"),
    ],
)  # fmt: skip
def test_a_module_is_named_by_its_folder_or_its_file(path: str, file: str) -> None:
    assert module_file(path) == file


def test_what_a_module_is_comes_from_its_title_and_first_paragraph() -> None:
    text = "\n```\n# no title\n```\n# Billing\n\n- ---\nInvoices and numbers.\n"
    assert about(text) == "Billing: - ---"
    assert about("# Billing\n\nInvoices.\n\nMore.") == "Billing: Invoices."
    assert about("Only words.") == "Only words."
    assert about("") == ""
    assert len(about("# A\n\n" + "b" * 500)) == 160


def test_only_relative_links_that_lead_nowhere_are_told(files: Files) -> None:
    put(files, "src/a/x.py", "src/b/.ac.mod.md", "with space.md", "src/a/para(1).md")
    text = """\
[here](x.py) [up](../b/.ac.mod.md) [root](../../with%20space.md) [part](x.py#L3) [anchor](#usage)
[web](https://example.org/x) [mail](mailto:a@b) [gone](y.py) [out](../../../etc/passwd) ![pic](pic.png "t")
[angle](<../../with space.md>) `[code](no.py)`
```
[fenced](no.py)
```
[ref]: ../c/.ac.mod.md
"""
    assert broken_links(files, f"src/a/{NAME}", text) == [
        "y.py", "../../../etc/passwd", "pic.png", "../c/.ac.mod.md",
    ]  # fmt: skip


def test_modules_are_met_once_a_session_the_nearest_first(files: Files) -> None:
    put(files, NAME, f"a/b/{NAME}", "a/b/c/x.py", "a/y.py")
    noticed = Noticed()
    assert noticed.fresh("one", files, "a/b/c/x.py") == ["a/b", "."]
    assert noticed.fresh("one", files, "a/b/c/x.py") == []
    assert noticed.fresh("one", files, "a/y.py") == []
    assert noticed.fresh("two", files, "a/y.py") == ["."]
    assert noticed.fresh("two", files, "a/b/x") == ["a/b"]
    assert noticed.fresh("three", files, f"a/b/{NAME}") == []


def test_a_folder_or_a_link_out_is_no_module(files: Files, tmp_path: Path) -> None:
    (files.root / "a" / NAME).mkdir(parents=True)
    (files.root / "b").mkdir()
    (files.root / "b" / NAME).symlink_to("/etc/passwd")
    assert Noticed().fresh("s", files, "a/x") == []
    assert Noticed().fresh("s", files, "b/x") == []


@given(st.lists(st.sampled_from(["a", "b", "..", ".", "c.d"]), min_size=1, max_size=6))
def test_the_folders_above_a_path_end_at_the_root(parts: list[str]) -> None:
    path = posixpath.join(*parts)
    found = list(folders_above(path))
    inside = not posixpath.normpath(path).startswith("..")
    assert len(found) == len(set(found))
    if inside and posixpath.normpath(path) != ".":
        assert found[-1] == "."
        lengths = [len(each) for each in found[:-1]]
        assert lengths == sorted(lengths, reverse=True)
    else:
        assert all(not each.startswith("/") for each in found)


@given(st.text(max_size=300))
def test_any_text_can_be_looked_through(text: str) -> None:
    assert len(about(text)) <= 160
    assert isinstance(broken_links(Files(Path("/nonexistent"), kind="project"), NAME, text), list)
