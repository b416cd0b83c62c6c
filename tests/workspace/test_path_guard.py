"""The path guard, by incident: whatever a model writes as a path, nothing outside is read or changed."""

import contextlib
import hashlib
import os
import socket
import string
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.app.assemble import real_path
from croze.tools.approve import Approver
from croze.tools.registry import builtin
from croze.types.parts import ToolCall
from croze.workspace.paths import PathError
from croze.workspace.workspace import Workspace


def code(call, *arguments):
    try:
        call(*arguments)
    except PathError as error:
        str(error).encode()
        return error.code
    return None


def fingerprint(folder):
    """Every name below a folder with its kind, mode, links and content."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        digest.update(f"{path.relative_to(folder)} {about.st_mode} {about.st_nlink}\n".encode())
        if path.is_file() and not path.is_symlink():
            digest.update(path.read_bytes())
    return digest.hexdigest()


class Ground:
    """A workspace with neighbours that have secrets, one of whose names begins like the workspace's."""

    def __init__(self, base):
        self.base = Path(os.path.realpath(base))
        self.root = self.base / "project"
        self.root.mkdir()
        self.outside = self.base / "project-secrets"
        (self.outside / "deep").mkdir(parents=True)
        (self.outside / "key").write_text("secret")
        (self.outside / "deep" / "key").write_text("secret")
        self.work = Workspace("w", self.root, "main")
        self.before = fingerprint(self.outside)

    def attack(self, path):
        """Do all there is to do with a path; what was read."""
        files = self.work.files
        found = []
        for call, *arguments in (
            (files.read, path), (files.list, path), (files.stat, path), (files.write, path, b"attack"),
            (files.write, f"{path}/new", b"attack"), (files.remove, path),
        ):  # fmt: skip
            with contextlib.suppress(PathError):
                found.append(repr(call(*arguments)))
        return "".join(found)

    def check(self, found=""):
        assert "secret" not in found.replace("project-secrets", "")
        assert fingerprint(self.outside) == self.before


@pytest.fixture
def ground(tmp_path):
    return Ground(tmp_path)


@pytest.mark.parametrize(
    "path",
    ["{base}/project-secrets/key", "../project-secrets/key", "./../project-secrets/key", "{root}-secrets/key",
     "{root}/../project-secrets/key", "a/../../project-secrets/key", "//{base}/project-secrets/key", "{root}/./../project-secrets",
     "/proc/self/root{base}/project-secrets/key", "/proc/self/cwd/x", "/proc/self/fd/0", "/dev/stdin", "~root/.ssh",
     "file://{base}/project-secrets/key", "..\\project-secrets\\key", "{base}/PROJECT-SECRETS/key", "/etc/passwd"],
)  # fmt: skip
def test_incident_1_a_path_that_only_begins_like_the_workspace_is_outside(ground, path):
    """CVE-2025-53110, CVE-2025-54794."""
    path = path.format(base=ground.base, root=ground.root)
    assert code(ground.work.files.read, path) in ("path_traversal_blocked", "file_not_found")
    ground.check(ground.attack(path))


@pytest.mark.parametrize(
    "target",
    ["{outside}", "../project-secrets", "/proc/self/root{outside}", "chain", "/proc/self/cwd"],
)
@pytest.mark.parametrize("last", ["", "/key", "/deep/key", "/deep/../key", "/new"])
def test_incident_2_no_link_leads_out(ground, target, last):
    """CVE-2025-53109, CVE-2026-39861."""
    (ground.root / "chain").symlink_to(ground.outside)
    (ground.root / "link").symlink_to(target.format(outside=ground.outside))
    ground.check(ground.attack("link" + last))


@pytest.mark.parametrize(
    "path", ["link", "sub/../link", "./link", "hidden/../link", "alias/secret.txt", "secret.txt"]
)
def test_incident_3_a_deny_rule_holds_for_every_name_of_the_file(ground, path):
    """CVE-2026-25724: deny X, read a link to X."""
    (ground.root / "sub").mkdir()
    (ground.root / "hidden").symlink_to("sub")
    (ground.root / "alias").symlink_to(".")
    (ground.root / "secret.txt").write_text("secret")
    (ground.root / "link").symlink_to("secret.txt")
    approver = Approver(
        deny=("read_file(secret.txt)",), locate=lambda path: real_path(path, ground.root), root=ground.root
    )  # fmt: skip
    kind = builtin().get("read_file")
    call = ToolCall("1", "read_file", {"path": path})
    bound = kind.bind(call.args)
    assert approver.decide("read_file", bound.access(), call, bound).verdict == "deny"


@pytest.mark.slow
def test_incident_4_a_folder_swapped_for_a_link_during_500_writes_and_reads(ground):
    """ducks/claux #32, inflexa #71."""
    root, stop = ground.root, threading.Event()
    (root / "real").mkdir()
    (root / "real" / "key").write_text("inside")
    (root / "link").symlink_to(ground.outside)
    (root / "spot").symlink_to("real")
    swaps = 0

    def swap():
        nonlocal swaps
        while not stop.is_set():
            for target in (ground.outside, "real"):
                (root / "next").symlink_to(target)
                os.replace(root / "next", root / "spot")
                swaps += 1

    thread = threading.Thread(target=swap)
    thread.start()
    read = set()
    try:
        for number in range(500):
            with contextlib.suppress(PathError):
                ground.work.files.write(f"spot/{number % 5}", b"x")
            with contextlib.suppress(PathError):
                read.add(ground.work.files.read("spot/key").data)
    finally:
        stop.set()
        thread.join()
    assert swaps > 10
    assert read <= {b"inside"}
    ground.check()


@pytest.mark.parametrize(
    "path",
    [".GIT/config", ".Git/hooks/x", "sub/.gIt/x", ".git /config", ".git./config", "GIT~1/config", ".g\u200dit/config",
     ".CROZE/config.toml", ".croze./x", ".git\u200b/x", "link/config", "a/../.git/config", "{root}/.git/config"],
)  # fmt: skip
def test_incident_5_protected_folders_are_protected_in_every_spelling(ground, path):
    """CVE-2025-59944, CVE-2014-9390; and 21: the agent's own configuration."""
    (ground.root / ".git").mkdir()
    (ground.root / ".git" / "config").write_text("good")
    (ground.root / "a").mkdir()
    (ground.root / "link").symlink_to(".git")
    path = path.format(root=ground.root)
    assert code(ground.work.files.write, path, b"bad") in (
        "permission_denied",
        "path_traversal_blocked",
    )
    assert (ground.root / ".git" / "config").read_text() == "good"


@pytest.mark.parametrize(
    "name",
    [
        "$(touch pwned)",
        "`touch pwned`",
        "a;touch pwned",
        "a\ntouch pwned\n",
        "--help",
        "-rf",
        "a b",
        "'\"",
        "*",
    ],
)
def test_incident_7_a_name_is_only_a_name(ground, name, monkeypatch):
    """CVE-2026-35020 to 35022."""
    monkeypatch.chdir(ground.root)
    files = ground.work.files
    assert files.read(files.write(name, b"x").path).data == b"x"
    files.write(f"folder/{name}", b"y")
    files.remove(name)
    assert os.listdir(ground.root) == ["folder"]
    assert os.listdir(ground.root / "folder") == [name]


def test_a_hard_link_to_a_file_outside_is_replaced_not_written_through(ground):
    os.link(ground.outside / "key", ground.root / "hard")
    before = (ground.outside / "key").read_bytes()
    ground.work.files.write("hard", b"new")
    assert (ground.outside / "key").read_bytes() == before
    assert (ground.root / "hard").read_bytes() == b"new"
    assert (ground.root / "hard").stat().st_nlink == 1


@pytest.mark.parametrize("path", ["a\0b", "a\0/../../x", "\0", "", " ", "\ud800", "a/\udfff/b"])
def test_what_is_no_name_is_refused(ground, path):
    for kind in ("project", "task"):
        files = Workspace("w", ground.root, "main", kind=kind).files
        for call, *arguments in (
            (files.read,),
            (files.write, b"x"),
            (files.remove,),
            (files.list,),
        ):
            leads_out = kind == "task" and ".." in path
            wanted = "path_traversal_blocked" if leads_out else "invalid_path"
            assert code(call, path, *arguments) == wanted


@pytest.mark.parametrize(
    "path", ["x" * 300, "x/" * 3000 + "x", "ü" * 200, "x" * 100_000, "../" * 2000 + "etc/passwd"]
)
def test_names_that_are_too_long_are_errors_for_the_model(ground, path):
    for call, *arguments in ((ground.work.files.read,), (ground.work.files.write, b"x")):
        assert code(call, path, *arguments) is not None
    assert os.listdir(ground.root) == []
    ground.check(ground.attack(path))


def test_devices_pipes_sockets_and_endless_files_are_never_opened(ground):
    root = ground.root
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        with contextlib.suppress(OSError):  # a temporary folder's name may be too long for one
            server.bind(str(root / "socket"))
        for name, target in (
            ("zero", "/dev/zero"),
            ("tty", "/dev/tty"),
            ("mem", "/proc/self/mem"),
            ("fd", "/dev/fd/0"),
        ):
            (root / name).symlink_to(target)
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):
                os.mknod(root / "device", 0o20666, os.makedev(1, 5))
        for name in os.listdir(root):
            assert code(ground.work.files.read, name) in ("not_a_file", "path_traversal_blocked"), (
                name
            )
            assert code(ground.work.files.write, name, b"x") in (
                "not_a_file",
                "path_traversal_blocked",
            ), name


PARTS = st.one_of(
    st.sampled_from(["..", ".", "", "a", "b", "link", "up", "loop", "key", "project", "project-secrets", "…", "proc", "self", "root"]),
    st.text(string.printable, max_size=6),
    st.text(max_size=4),
)  # fmt: skip
WHOLE = st.lists(PARTS, max_size=8).map("/".join)
TARGETS = st.one_of(
    WHOLE, WHOLE.map(lambda path: "OUT/" + path), WHOLE.map(lambda path: "/" + path)
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["link", "folder", "file", "hard", "move"]), st.sampled_from("ab"), TARGETS), max_size=8
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    steps=STEPS,
    paths=st.lists(st.one_of(WHOLE, TARGETS), min_size=1, max_size=4),
    kind=st.sampled_from(["project", "task"]),
)
def test_no_tree_of_folders_links_and_names_lets_anything_out(tmp_path_factory, steps, paths, kind):
    ground = Ground(tmp_path_factory.mktemp("tree"))
    ground.work = Workspace("w", ground.root, "main", kind=kind)
    here = ground.root
    for what, name, target in steps:
        place = here / name
        with contextlib.suppress(OSError, ValueError):
            if what == "link":
                place.symlink_to(target.replace("OUT", str(ground.outside)) or ".")
            elif what == "folder":
                place.mkdir()
                here = place
            elif what == "file":
                place.write_text("inside")
            elif what == "hard":
                os.link(ground.root / "a", place)
            else:
                here = ground.root
    ground.before = fingerprint(ground.outside)  # a step may have written through a link itself
    found = "".join(ground.attack(path.replace("OUT", str(ground.outside))) for path in paths)
    ground.check(found)
    assert sorted(os.listdir(ground.base)) == ["project", "project-secrets"]
