"""Task workspaces under attack: what a model or a command may try, nothing outside is read or changed, and
every failure is one of six codes."""

import os
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.workspace.task import BadAgentId, task_workspace
from croze.workspace.task_files import list_files, read_file, workspace_info, write_file

CODES = {
    "workspace_not_assigned",
    "path_traversal_blocked",
    "file_not_found",
    "permission_denied",
    "write_failed",
    "read_failed",
}
BLOCKED = "path_traversal_blocked"


@pytest.fixture
def data(tmp_path):
    (tmp_path / "secret").write_text("secret")
    return tmp_path / "data"


@pytest.fixture
def workspace(data):
    made = task_workspace(data, "agent-1")
    assert write_file(made, "inside.txt", "inside") == {"ok": True}
    return made


@pytest.mark.parametrize(
    "path",
    ["..", "../secret", "../../../secret", "a/../../x", "a\\..\\..\\x", "..\\x", "a/..", "./..", "a//../x", "a\\../x",
     "/etc/passwd", "//etc", "\\windows", "\\\\server\\share", "C:\\x", "c:x", "Z:/x", "../\0", "\0/../x", "/\0",
     "..\ud800/../x", "../" * 3000],
)  # fmt: skip
def test_what_could_lead_out_is_blocked_by_its_text_alone(workspace, path, tmp_path):
    assert write_file(workspace, path, "x") == {"ok": False, "error": BLOCKED}
    assert read_file(workspace, path) == {"error": BLOCKED}
    assert list_files(workspace, path) == {"error": BLOCKED}
    assert (tmp_path / "secret").read_text() == "secret"


@pytest.mark.parametrize(
    "path",
    ["a..b", "[...slug].tsx", "app/[...slug]/page.tsx", "..a", "b..", "...", "a/...b", "~/x", "%2e%2e/x", "．．/x",
     "a b", "$HOME", "-rf", ".hidden", "con", "a\\b", "x:y.txt".replace("x", "long")],
)  # fmt: skip
def test_odd_names_are_legal(workspace, path):
    assert write_file(workspace, path, "text") == {"ok": True}
    assert read_file(workspace, path) == {"content": "text"}


@pytest.mark.parametrize("target", ["../../../secret", "{out}", "/etc/passwd", "chain"])
def test_links_that_commands_make_lead_nowhere_outside(workspace, target, tmp_path):
    out = tmp_path / "secret"
    script = f"ln -s {out} chain; ln -s {target.format(out=out)} link; ln -s {tmp_path} folder"
    subprocess.run(["sh", "-c", script], cwd=workspace.root, check=True)
    for path in ("link", "folder/secret"):
        assert read_file(workspace, path) == {"error": BLOCKED}
        assert write_file(workspace, path, "attack") == {"ok": False, "error": BLOCKED}
    assert list_files(workspace, "folder") == {"error": BLOCKED}
    assert out.read_text() == "secret"
    kinds = {each["name"]: each["type"] for each in list_files(workspace)["files"]}
    assert kinds == {"chain": "link", "folder": "link", "inside.txt": "file", "link": "link"}
    assert workspace_info(workspace)["fileCount"] == 1


def test_a_link_that_stays_inside_is_followed(workspace):
    os.symlink("inside.txt", workspace.root / "link")
    assert read_file(workspace, "link") == {"content": "inside"}


def test_a_hard_link_to_a_file_outside_is_replaced_and_not_written_through(workspace, tmp_path):
    os.link(tmp_path / "secret", workspace.root / "hard")
    assert write_file(workspace, "hard", "new") == {"ok": True}
    assert (tmp_path / "secret").read_text() == "secret"


def test_other_agents_folders_can_not_be_reached(data, workspace):
    other = task_workspace(data, "agent-10")
    write_file(other, "x", "theirs")
    for path in ("../agent-10/x", str(other.root / "x"), f"{workspace.root}0/x"):
        assert read_file(workspace, path) == {"error": BLOCKED}


@pytest.mark.parametrize(
    "agent",
    ["", ".", "..", "../x", "a/b", "a\\b", "/x", ".hidden", "-rf", "a\0", "ü", "x" * 101, "a\n"],
)
def test_an_agents_id_that_is_no_folders_name_is_refused(data, agent):
    with pytest.raises(BadAgentId):
        task_workspace(data, agent)


def test_each_failure_has_its_code(workspace):
    (workspace.root / "folder").mkdir()
    (workspace.root / "latin").write_bytes(b"caf\xe9")
    os.mkfifo(workspace.root / "pipe")
    assert read_file(workspace, "none") == {"error": "file_not_found"}
    assert list_files(workspace, "none") == {"error": "file_not_found"}
    assert read_file(workspace, "inside.txt/x") == {"error": "file_not_found"}
    for path in ("folder", "latin", "pipe", "", "a\0b", "\ud800", "x" * 5000):
        assert read_file(workspace, path) == {"error": "read_failed"}, path
    for path in ("inside.txt", "", "a\0b"):
        assert list_files(workspace, path) == {"error": "read_failed"}, path
    for path in (
        "folder",
        "pipe",
        "inside.txt/x",
        "",
        " ",
        "a\0b",
        "\ud800",
        "x" * 5000,
        "x" * 300,
    ):
        assert write_file(workspace, path, "") == {"ok": False, "error": "write_failed"}, path
    assert write_file(workspace, "new", "\ud800") == {"ok": False, "error": "write_failed"}
    assert write_file(workspace, "../new", "\ud800") == {"ok": False, "error": BLOCKED}
    assert write_file(workspace, ".git/config", "x")["error"] == "permission_denied"
    assert not (workspace.root / "new").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
def test_what_the_system_refuses_is_permission_denied(workspace):
    (workspace.root / "inside.txt").chmod(0)
    assert read_file(workspace, "inside.txt") == {"error": "permission_denied"}
    workspace.root.chmod(0o500)
    assert write_file(workspace, "new", "x") == {"ok": False, "error": "permission_denied"}
    workspace.root.chmod(0o700)


def test_an_agent_without_a_workspace_is_told_so():
    assert write_file(None, "x", "x") == {"ok": False, "error": "workspace_not_assigned"}
    for result in (read_file(None, "x"), list_files(None), workspace_info(None)):
        assert result == {"error": "workspace_not_assigned"}


def test_a_name_that_is_no_text_is_listed_and_harms_nothing(workspace):
    (workspace.root / os.fsdecode(b"caf\xe9")).write_bytes(b"x")
    names = [each["name"] for each in list_files(workspace)["files"]]
    assert names == ["caf?", "inside.txt"]
    assert workspace_info(workspace)["fileCount"] == 2


@settings(max_examples=200, deadline=None)
@given(
    path=st.one_of(st.text(max_size=30), st.none(), st.integers(), st.binary(max_size=5)),
    content=st.one_of(st.text(), st.none(), st.integers(), st.binary(max_size=5)),
)
def test_nothing_raises_for_what_a_model_writes(tmp_path_factory, path, content):
    workspace = task_workspace(tmp_path_factory.getbasetemp() / "any", "agent")
    results = [
        write_file(workspace, path, content),
        read_file(workspace, path),
        list_files(workspace, path),
    ]
    for result in results:
        assert result.get("error", "read_failed") in CODES
        assert str(workspace.root) not in str(result)
