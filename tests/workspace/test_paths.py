"""What a model may write as a path."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.workspace.paths import PathError, normalise, refuse_protected

ROOT = Path("/work/space")


@pytest.mark.parametrize("kind", ["project", "task"])
@pytest.mark.parametrize(
    "path",
    ["a..b", "[...slug].tsx", "..a/b..", "...", "a b/ü\n.txt", "-rf", "$(touch pwned)", "~/x"],
)
def test_odd_but_legal_names_stay_as_they_are(path, kind):
    assert normalise(path, root=ROOT, kind=kind) == path


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../x",
        "a/../b",
        "a\\..\\b",
        "..\\x",
        "/etc/passwd",
        "\\\\host\\x",
        "C:\\x",
        "c:x",
        "/work/space/a",
    ],
)
def test_a_task_workspace_blocks_what_could_lead_out(path):
    with pytest.raises(PathError) as caught:
        normalise(path, root=ROOT, kind="task")
    assert caught.value.code == "path_traversal_blocked"


@pytest.mark.parametrize("path", ["", "  ", "a\0b", "\ud800", None, 3])
def test_what_is_no_path_at_all_is_refused(path):
    with pytest.raises(PathError) as caught:
        normalise(path, root=ROOT, kind="project")
    assert caught.value.code == "invalid_path"
    str(caught.value).encode()


def test_a_project_takes_absolute_paths_inside_and_refuses_others():
    assert normalise("/work/space/a/b", root=ROOT, kind="project") == "a/b"
    assert normalise("/work/space", root=ROOT, kind="project") == "."
    for outside in ("/work/spaceship/a", "/work", "/"):
        with pytest.raises(PathError) as caught:
            normalise(outside, root=ROOT, kind="project")
        assert caught.value.code == "path_traversal_blocked", outside


def test_an_absolute_path_through_an_alias_of_the_root_is_inside(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    path = str(tmp_path / "alias" / "a.txt")
    assert normalise(path, root=tmp_path / "real", kind="project") == "a.txt"


@pytest.mark.parametrize(
    "path",
    [
        ".git",
        "a/.git/hooks/x",
        ".GIT/config",
        ".git./x",
        ".g\u200cit/x",
        "GIT~1/x",
        ".croze/config.toml",
    ],
)
def test_folders_that_are_run_by_git_or_croze_are_protected(path):
    with pytest.raises(PathError) as caught:
        refuse_protected(path)
    assert caught.value.code == "permission_denied"


@pytest.mark.parametrize(
    "path", [".github/x", ".gitignore", "a/.gitkeep", "git", "x.git", ".crozerc"]
)
def test_names_that_only_look_like_them_are_not(path):
    refuse_protected(path)


@given(st.text())
def test_every_text_is_a_path_or_a_path_error(path):
    for kind in ("project", "task"):
        try:
            assert not normalise(path, root=ROOT, kind=kind).startswith("/")
        except PathError as error:
            str(error).encode()
