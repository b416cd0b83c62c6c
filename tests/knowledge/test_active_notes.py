"""Where notes on folders lie, and that nothing leads croze to write elsewhere."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.knowledge.active import ActiveContext
from croze.workspace.paths import PathError


def test_a_note_lies_below_its_folders_path(tmp_path: Path) -> None:
    active = ActiveContext(tmp_path)
    active.write("src/lib", "One.\n")
    active.write(".", "Root.")
    assert (tmp_path / ".croze/active-context/src/lib/active.md").read_text() == "One.\n"
    assert (tmp_path / ".croze/active-context/active.md").read_text() == "Root.\n"
    assert active.read("src/lib") == "One."
    assert active.read("") == active.read(".") == "Root."
    assert active.read("no/such") == ""


@pytest.mark.parametrize("link", [".croze", ".croze/active-context", ".croze/active-context/src"])
def test_a_link_out_of_the_project_is_not_written_through(tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    project = tmp_path / "project"
    (project / link).parent.mkdir(parents=True, exist_ok=True)
    (project / link).symlink_to(outside)
    with pytest.raises(PathError):
        ActiveContext(project).write("src", "x")
    assert not list(outside.iterdir())


@pytest.mark.parametrize("folder", ["../x", "/etc", ".git", "a/.croze/b", "src/../../x"])
def test_a_folder_that_no_tool_may_write_gets_no_note(tmp_path: Path, folder: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with pytest.raises(PathError):
        ActiveContext(project).write(folder, "x")
    assert [path.name for path in tmp_path.iterdir()] == ["project"]


def test_a_note_that_can_not_be_read_is_none(tmp_path: Path) -> None:
    active = ActiveContext(tmp_path)
    for folder, data in (("a", b"\0\1"), ("b", b"x" * 200_000)):
        active.write(folder, "x")
        (tmp_path / active.path(folder)).write_bytes(data)
        assert active.read(folder) == ""


names = st.text("ab. é", min_size=1, max_size=6).filter(
    lambda s: s.strip() == s and set(s) != {"."}
)


@given(st.lists(names, min_size=1, max_size=3).map("/".join))
def test_what_was_written_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, folder: str
) -> None:
    active = ActiveContext(tmp_path_factory.mktemp("notes"))
    active.write(folder, "Note.")
    assert active.read(folder) == "Note."
