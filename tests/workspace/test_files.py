"""Files below a root: nothing outside is touched, and a file is its old or its new bytes."""

import contextlib
import hashlib
import os
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.workspace import beneath
from croze.workspace.files import REWRITE_LIMIT, Entry
from croze.workspace.paths import PathError
from croze.workspace.workspace import Workspace


def code(call, *args, **kwargs):
    with pytest.raises(PathError) as caught:
        call(*args, **kwargs)
    return caught.value.code


@pytest.fixture(params=["openat2", "walk"], autouse=True)
def lookup(request, monkeypatch):
    """Every test runs with the kernel's own lookup and with the walk that stands in for it."""
    if request.param == "walk":
        monkeypatch.setattr(beneath, "_at_once", lambda *_: None)
    return request.param


def test_a_written_file_is_read_back_with_its_resolved_path(workspace):
    written = workspace.files.write("a/b/[...slug].tsx", b"\x00\xff")
    assert (written.path, written.before) == ("a/b/[...slug].tsx", None)
    read = workspace.files.read("./a//b/../b/[...slug].tsx")
    assert (read.data, read.stat.path, read.complete) == (b"\x00\xff", written.path, True)
    assert read.sha256 == hashlib.sha256(b"\x00\xff").hexdigest()


def test_a_link_that_lands_inside_is_followed_and_kept(workspace):
    workspace.files.write("real/a.txt", b"1")
    (workspace.root / "relative").symlink_to("real")
    (workspace.root / "absolute").symlink_to(workspace.root / "real")
    (workspace.root / "file.txt").symlink_to("absolute/a.txt")
    (workspace.root / "dangling").symlink_to("real/new.txt")
    for path in ("relative/a.txt", "absolute/a.txt", "file.txt", "absolute/../real/a.txt"):
        assert workspace.files.read(path).stat.path == "real/a.txt"
    assert workspace.files.write("file.txt", b"2").path == "real/a.txt"
    assert workspace.files.write("dangling", b"3").path == "real/new.txt"
    assert (workspace.root / "file.txt").is_symlink()
    assert (workspace.root / "real/a.txt").read_bytes() == b"2"


@pytest.mark.parametrize(
    "path", ["out", "up/secret", "far/secret", "../outside/secret", "in/up/secret"]
)
def test_a_link_that_leads_out_is_refused_for_every_operation(workspace, tmp_path, path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("s")
    root = workspace.root
    (root / "out").symlink_to(outside / "secret")
    (root / "up").symlink_to("../outside")
    (root / "far").symlink_to(outside)
    (root / "in").symlink_to(".")
    files = workspace.files
    assert code(files.read, path) == "path_traversal_blocked"
    assert code(files.write, path, b"x") == "path_traversal_blocked"
    assert code(files.remove, path) == "path_traversal_blocked"
    assert code(files.stat, path) == "path_traversal_blocked"
    assert code(files.list, path) == "path_traversal_blocked"
    assert (outside / "secret").read_text() == "s"


def test_link_loops_end_in_an_error(workspace):
    (workspace.root / "a").symlink_to("b")
    (workspace.root / "b").symlink_to("a")
    assert code(workspace.files.read, "a") == "read_failed"
    assert code(workspace.files.write, "a/x", b"") == "write_failed"


def test_pipes_devices_and_sockets_are_refused_without_blocking(workspace):
    os.mkfifo(workspace.root / "pipe")
    (workspace.root / "zero").symlink_to("/dev/zero")
    with contextlib.suppress(PermissionError):
        os.mknod(workspace.root / "device", 0o20600, os.makedev(1, 5))
        assert code(workspace.files.read, "device") == "not_a_file"
        assert code(workspace.files.write, "device", b"x") == "not_a_file"
    assert code(workspace.files.read, "pipe") == "not_a_file"
    assert code(workspace.files.write, "pipe", b"x") == "not_a_file"
    assert code(workspace.files.read, "zero") == "path_traversal_blocked"


def test_folders_and_missing_files_are_told_apart(workspace):
    workspace.files.write("a/b.txt", b"")
    assert code(workspace.files.read, "a") == "not_a_file"
    assert code(workspace.files.read, ".") == "not_a_file"
    assert code(workspace.files.write, "a", b"") == "not_a_file"
    assert code(workspace.files.list, "a/b.txt") == "not_a_folder"
    assert code(workspace.files.read, "a/c.txt") == "file_not_found"
    assert code(workspace.files.read, "a/b.txt/c") == "file_not_found"
    assert code(workspace.files.read, "x" * 300) == "read_failed"
    assert workspace.files.stat("a/c.txt") is None
    assert workspace.files.stat(".").kind == "folder"


def test_nothing_is_written_into_git_or_croze_folders_by_any_name(workspace):
    (workspace.root / ".git").mkdir()
    (workspace.root / "alias").symlink_to(".git")
    (workspace.root / "config").symlink_to(".git/config")
    for path in (
        ".git/config",
        "alias/config",
        "config",
        "sub/.git/x",
        ".GIT/x",
        ".croze/hooks.toml",
    ):
        assert code(workspace.files.write, path, b"x") == "permission_denied", path
    assert sorted(os.listdir(workspace.root)) == [".git", "alias", "config"]
    assert os.listdir(workspace.root / ".git") == []


def test_a_rewrite_keeps_mode_and_owner_and_leaves_hard_links_alone(workspace):
    path = workspace.root / "run.sh"
    path.write_text("old")
    path.chmod(0o751)
    if os.geteuid() == 0:
        os.chown(path, 1234, 2345)
    before = path.stat()
    os.link(path, workspace.root / "other")
    assert workspace.files.write("run.sh", b"new").before == b"old"
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    assert (workspace.root / "other").read_text() == "old"


def test_a_failed_write_leaves_the_old_file_and_no_other(workspace, monkeypatch):
    workspace.files.write("a.txt", b"old")

    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    for step in ("fsync", "rename"):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, full)
            assert code(workspace.files.write, "a.txt", b"new") == "write_failed"
        assert os.listdir(workspace.root) == ["a.txt"]
        assert workspace.files.read("a.txt").data == b"old"


def test_file_and_folder_are_synced_before_a_write_returns(workspace, monkeypatch):
    synced, real = [], os.fsync

    def fsync(descriptor):
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    workspace.files.write("sub/a.txt", b"new")
    assert os.path.dirname(synced[0]) == synced[1] == str(workspace.root / "sub")


def test_a_write_or_removal_that_expects_other_bytes_is_refused(workspace):
    workspace.files.write("a.txt", b"one", expect="")
    digest = hashlib.sha256(b"one").hexdigest()
    assert code(workspace.files.write, "a.txt", b"x", expect="") == "file_changed"
    assert code(workspace.files.write, "new.txt", b"x", expect=digest) == "file_changed"
    assert code(workspace.files.remove, "a.txt", expect="0" * 64) == "file_changed"
    assert workspace.files.remove("a.txt", expect=digest).before == b"one"
    assert workspace.files.list() == []
    assert code(workspace.files.remove, "a.txt") == "file_not_found"


def test_too_large_a_file_is_not_rewritten_but_can_be_read_in_part(workspace):
    with (workspace.root / "big").open("wb") as stream:
        stream.truncate(REWRITE_LIMIT + 1)
    assert code(workspace.files.write, "big", b"x") == "write_failed"
    read = workspace.files.read("big", 10)
    assert (len(read.data), read.complete) == (10, False)


def test_listing_names_kinds_without_following_links(workspace):
    workspace.files.write("b.txt", b"")
    (workspace.root / "a").mkdir()
    (workspace.root / "c").symlink_to("/")
    os.mkfifo(workspace.root / "d")
    kinds = [("a", "folder"), ("b.txt", "file"), ("c", "link"), ("d", "other")]
    assert workspace.files.list() == [Entry(*kind) for kind in kinds]


def test_an_unwritten_workspace_is_empty_and_stays_unmade(tmp_path):
    lazy = Workspace("t", tmp_path / "deep" / "lazy", "agent", kind="task")
    assert lazy.files.list() == []
    assert lazy.files.stat("a.txt") is None
    assert code(lazy.files.read, "a.txt") == "file_not_found"
    assert not (tmp_path / "deep").exists()
    lazy.files.write("x/a.txt", b"1")
    assert lazy.files.list() == [Entry("x", "folder")]


NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(st.sampled_from(["a", "b", "c", "..", "."]), min_size=1, max_size=6).map("/".join)
TARGETS = st.one_of(
    PATHS,
    PATHS.map("../".__add__),
    PATHS.map("ABS/".__add__),
    st.sampled_from(["/", "/etc", "OUT", "OUT/a"]),
)
TREES = st.lists(
    st.tuples(st.lists(NAMES, min_size=1, max_size=3), st.none() | TARGETS), max_size=8
)


@settings(max_examples=100, deadline=None)
@given(tree=TREES, paths=st.lists(PATHS, min_size=1, max_size=5))
def test_no_tree_of_links_leads_out(tmp_path_factory, tree, paths):
    base = tmp_path_factory.mktemp("links")
    outside, root = base / "outside", base / "root"
    (outside / "a").mkdir(parents=True)
    (outside / "b").write_text("secret")
    root.mkdir()
    for names, target in tree:
        place = root.joinpath(*names)
        with contextlib.suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            if not os.path.realpath(place.parent).startswith(str(root)) or place.is_symlink():
                continue
            if target is None:
                place.write_text("inside")
            else:
                place.symlink_to(target.replace("ABS", str(root)).replace("OUT", str(outside)))
    before = sorted(str(p) for p in base.rglob("*") if root not in p.parents)
    files = Workspace("w", root, "main").files
    for path in paths:
        with contextlib.suppress(PathError):
            read = files.read(path)
            assert read.data in (b"inside", b"written")
            assert os.path.realpath(root / read.stat.path) == str(root / read.stat.path)
        with contextlib.suppress(PathError):
            written = files.write(path, b"written")
            assert os.path.realpath(root / written.path) == str(root / written.path)
            assert (root / written.path).read_text() == "written"
        with contextlib.suppress(PathError):
            files.list(path)
    assert (outside / "b").read_text() == "secret"
    assert sorted(str(p) for p in base.rglob("*") if root not in p.parents) == before


@pytest.mark.slow
def test_a_folder_that_keeps_turning_into_a_link_never_lets_a_write_out(workspace, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    root, stop = workspace.root, threading.Event()
    (root / "real").mkdir()
    (root / "link").symlink_to(outside)

    def flip():
        while not stop.is_set():
            for source in ("real", "link"):
                with contextlib.suppress(OSError):
                    os.rename(root / source, root / "spot")
                    os.rename(root / "spot", root / source)

    thread = threading.Thread(target=flip)
    thread.start()
    end = time.monotonic() + 2
    try:
        number = 0
        while time.monotonic() < end or number < 500:
            number += 1
            with contextlib.suppress(PathError):
                workspace.files.write(f"spot/{number % 7}.txt", b"x")
    finally:
        stop.set()
        thread.join()
    assert os.listdir(outside) == []
