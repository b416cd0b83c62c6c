"""The shared cache of a run: never stale, bounded, and free of secrets."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.workspace.cache import HOT, LARGEST, WHOLE, CachedFiles, RunCache
from croze.workspace.files import Files
from croze.workspace.paths import PathError
from croze.workspace.snapshot import RACY_NS
from croze.workspace.tree import TreeOptions

LATER = 10_000_000_000
"""Nanoseconds by which the tests' clock is ahead: what was just written is not new to it."""


@pytest.fixture
def cache():
    return RunCache(clock=lambda: time.time_ns() + LATER)


@pytest.fixture
def files(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.py").write_text("a = 1\n")
    (root / "src").mkdir()
    (root / "src/b.py").write_text("b = 2\n")
    return Files(root, kind="project")


def text(cache, files, path):
    document = cache.document(files, path)
    assert document is not None
    assert document.source is not None
    return document.source.text


def hit(cache, files, path):
    return cache.document(files, path).hit


def listed(cache, files, path="."):
    entries, known = cache.entries(files, path)
    return [entry.name for entry in entries], known


def test_a_file_is_read_once_and_then_known(cache, files):
    assert [hit(cache, files, "a.py") for _ in range(3)] == [False, True, True]
    assert text(cache, files, "./src/../a.py") == "a = 1\n"
    assert (cache.stats.hits, cache.stats.misses) == (3, 1)
    assert cache.stats.hit_rate == 0.75
    assert cache.stats.accesses == {"a.py": 4}


def test_a_folder_is_listed_once_and_then_known(cache, files):
    assert listed(cache, files) == (["a.py", "src"], False)
    assert listed(cache, files) == (["a.py", "src"], True)
    assert listed(cache, files, "src") == (["b.py"], False)
    assert cache.stats.accesses == {"./": 2, "src/": 1}


def test_nothing_asked_is_no_rate(cache):
    assert cache.stats.hit_rate is None


def test_agents_with_the_same_cache_share_what_one_of_them_read(cache, files):
    other = Files(files.root, kind="project")
    assert not hit(cache, files, "a.py")
    assert hit(cache, other, "a.py")


def test_workspaces_with_other_roots_are_told_apart(cache, files, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.py").write_text("other\n")
    assert text(cache, files, "a.py") == "a = 1\n"
    assert text(cache, Files(other, kind="task"), "a.py") == "other\n"
    assert text(cache, files, "a.py") == "a = 1\n"


def rewrite(root, path, data):
    (root / path).write_text(data)


def rewrite_with_the_old_times(root, path, data):
    before = os.stat(root / path)
    (root / path).write_text(data)
    os.utime(root / path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_by_rename(root, path, data):
    (root / "new").write_text(data)
    os.rename(root / "new", root / path)


@pytest.mark.parametrize("change", [rewrite, rewrite_with_the_old_times, replace_by_rename])
def test_what_was_changed_from_outside_is_read_again(cache, files, change):
    assert text(cache, files, "a.py") == "a = 1\n"
    change(files.root, "a.py", "a = 7\n")
    document = cache.document(files, "a.py")
    assert (document.source.text, document.hit) == ("a = 7\n", False)


def test_a_removed_file_is_gone_and_a_new_one_in_its_place_is_read(cache, files):
    text(cache, files, "a.py")
    (files.root / "a.py").unlink()
    with pytest.raises(PathError):
        cache.document(files, "a.py")
    (files.root / "a.py").mkdir()
    with pytest.raises(PathError):
        cache.document(files, "a.py")


def test_a_link_that_is_turned_elsewhere_gives_what_it_leads_to_now(cache, files):
    (files.root / "link").symlink_to("a.py")
    assert text(cache, files, "link") == "a = 1\n"
    assert hit(cache, files, "a.py")
    (files.root / "link").unlink()
    (files.root / "link").symlink_to("src/b.py")
    assert text(cache, files, "link") == "b = 2\n"


@pytest.mark.parametrize("name", ["new.py", "folder/"])
def test_a_folder_that_was_changed_is_listed_again(cache, files, name):
    listed(cache, files)
    if name.endswith("/"):
        (files.root / name).mkdir()
    else:
        (files.root / name).touch()
    names, known = listed(cache, files)
    assert name.rstrip("/") in names
    assert not known


def test_what_was_written_just_before_is_not_trusted(files):
    (files.root / "a.py").write_text("fresh\n")
    changed = max(os.stat(files.root / path).st_ctime_ns for path in ("a.py", "."))
    soon, late = (
        RunCache(clock=lambda: changed + RACY_NS // 2),
        RunCache(clock=lambda: changed + LATER),
    )
    for cache, known in ((soon, False), (late, True)):
        assert [hit(cache, files, "a.py") for _ in range(2)] == [False, known]
        assert [listed(cache, files)[1] for _ in range(2)] == [False, known]
    assert soon.bytes == 0


def test_a_file_from_the_future_is_never_trusted(files):
    cache = RunCache()
    ahead = time.time_ns() + 3_600_000_000_000
    os.utime(files.root / "a.py", ns=(ahead, ahead))
    assert [hit(cache, files, "a.py") for _ in range(2)] == [False, False]


def test_a_disk_that_counts_whole_seconds_is_given_two_of_them(files):
    second = 1_000_000_000
    now = os.stat(files.root / "a.py").st_ctime_ns
    whole = now // second * second
    os.utime(files.root / "a.py", ns=(whole, whole))
    changed = os.stat(files.root / "a.py").st_ctime_ns
    soon, late = (
        RunCache(clock=lambda: changed + second),
        RunCache(clock=lambda: changed + 3 * second),
    )
    assert [hit(soon, files, "a.py") for _ in range(2)] == [False, False]
    assert [hit(late, files, "a.py") for _ in range(2)] == [False, True]


def test_a_file_that_changes_while_it_is_read_is_not_kept(cache, files, monkeypatch):
    reading, looks = os.fstat, []

    def change_first(descriptor):
        looks.append(descriptor)
        if len(looks) == 2:  # the first is before the content is read, the second after
            (files.root / "a.py").write_text("a = 9, and more\n")
        return reading(descriptor)

    monkeypatch.setattr("croze.workspace.cache.os.fstat", change_first)
    assert text(cache, files, "a.py") == "a = 1\n"
    monkeypatch.undo()
    assert len(looks) >= 2
    assert not hit(cache, files, "a.py")
    assert text(cache, files, "a.py") == "a = 9, and more\n"


def test_own_writes_are_forgotten_at_once(cache, files):
    cache.watch(files)
    text(cache, files, "a.py")
    listed(cache, files)
    listed(cache, files, "src")
    before = cache.bytes
    files.write("a.py", b"a = 3\n")
    assert cache.bytes < before
    assert text(cache, files, "a.py") == "a = 3\n"
    files.write("src/deep/new.py", b"")
    assert listed(cache, files, "src")[0] == ["b.py", "deep"]
    files.remove("src/b.py")
    assert listed(cache, files, "src")[0] == ["deep"]


@pytest.mark.parametrize(
    "path", [".env", ".env.local", "id_rsa", "tls.key", "credentials.json", "src/.npmrc"]
)
def test_sensitive_files_are_read_and_never_kept(cache, files, path):
    (files.root / path).write_text("secret\n")
    assert [text(cache, files, path) for _ in range(2)] == ["secret\n"] * 2
    assert not hit(cache, files, path)
    assert cache.bytes == 0
    assert cache.stats.accesses == {}
    assert cache.preload(files, [path]) == 0


def test_a_folder_with_sensitive_names_is_not_kept_and_shows_no_env_file(cache, files):
    (files.root / ".env").write_text("secret\n")
    assert listed(cache, files) == (["a.py", "src"], False)
    assert listed(cache, files) == (["a.py", "src"], True)
    (files.root / "id_rsa").write_text("secret\n")
    for _ in range(2):
        assert listed(cache, files) == (["a.py", "id_rsa", "src"], False)
    cache.visit(files, {".": ("src/", "a.py", "id_rsa")})
    assert cache.visited(files)[0].items == ("src/", "a.py")


def test_look_alikes_of_sensitive_files_are_kept(cache, files):
    (files.root / ".env.example").write_text("KEY=\n")
    assert [hit(cache, files, ".env.example") for _ in range(2)] == [False, True]


def test_large_files_are_read_but_not_kept(cache, files):
    (files.root / "large").write_bytes(b"x" * (LARGEST + 1))
    assert [hit(cache, files, "large") for _ in range(2)] == [False, False]
    with open(files.root / "huge", "wb") as huge:
        huge.truncate(WHOLE + 1)
    assert cache.document(files, "huge") is None


def test_a_binary_file_is_known_by_how_it_begins(cache, files):
    (files.root / "x.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 10_000)
    for _ in range(2):
        document = cache.document(files, "x.png")
        assert document.source is None
        assert document.head.startswith(b"\x89PNG")
    assert document.hit
    assert cache.bytes < 10_000


def test_the_least_recently_used_go_first(files):
    for number in range(6):
        (files.root / f"{number}.txt").write_text("x" * 10_000)
    cache = RunCache(limit=35_000, clock=lambda: time.time_ns() + LATER)
    for number in (0, 1, 2, 0, 3):
        cache.document(files, f"{number}.txt")
    assert cache.bytes <= 35_000
    known = [number for number in (0, 2, 3) if hit(cache, files, f"{number}.txt")]
    assert known == [0, 2, 3]
    assert not hit(cache, files, "1.txt")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["read", "write", "list", "outside", "remove", "touch"]),
            st.sampled_from(["a.py", "src/b.py", "src/c.py"]),
            st.text(st.characters(codec="ascii", exclude_characters="\r\x00"), max_size=20),
        ),
        max_size=25,
    )
)
def test_whatever_happens_the_cache_says_what_the_disk_says(tmp_path_factory, steps):
    root = tmp_path_factory.mktemp("mixed")
    (root / "src").mkdir()
    files = Files(root, kind="project")
    cache = RunCache()  # with its real clock: whatever is fresh is not trusted
    cache.watch(files)
    for what, path, data in steps:
        if what == "write":
            files.write(path, data.encode())
        elif what == "outside":
            (root / path).write_text(data)
        elif what == "remove" and (root / path).exists():
            files.remove(path)
        elif what == "touch" and (root / path).exists():
            os.utime(root / path, ns=(0, 0))
        elif what == "list":
            assert listed(cache, files, "src")[0] == sorted(os.listdir(root / "src"))
        elif (root / path).exists():
            document = cache.document(files, path)
            assert document.sha256 == files.read(path).sha256


def test_the_tree_is_scanned_once_however_many_ask(cache, files):
    gate = threading.Barrier(5)

    def ask():
        gate.wait(10)
        return cache.tree(files, TreeOptions())

    with ThreadPoolExecutor(5) as pool:
        answers = [future.result(20) for future in [pool.submit(ask) for _ in range(5)]]
    assert sum(scanned for _, scanned in answers) == 1
    assert len({id(tree) for tree, _ in answers}) == 1
    assert (cache.stats.scans, cache.stats.shared) == (1, 4)
    (files.root / "new.py").touch()
    assert "new.py" not in cache.tree(files, TreeOptions())[0].text
    assert "new.py" in cache.tree(files, TreeOptions(), fresh=True)[0].text


def test_the_folders_visited_are_told_as_long_as_they_are_as_they_were(cache, files):
    cache.visit(files, {".": ("src/", "a.py"), "src": ("b.py",), "gone": ("x",)})
    assert [(each.path, each.items) for each in cache.visited(files)] == [
        (".", ("src/", "a.py")),
        ("src", ("b.py",)),
    ]
    (files.root / "src/new.py").touch()
    assert [each.path for each in cache.visited(files)] == ["."]


def test_the_record_has_the_tree_the_folders_visited_and_how_it_was_made(cache, files):
    options = TreeOptions()
    empty = cache.record(files, options)
    assert empty == {"tree": "", "dynamic": {}, "metadata": {}}
    cache.tree(files, options)
    cache.visit(files, {"src": ("b.py",)})
    record = cache.record(files, options)
    assert record["tree"] == "├── src/\n│   └── b.py\n└── a.py"
    assert record["dynamic"]["src"]["items"] == ["b.py"]
    assert record["dynamic"]["src"]["cached_at"].endswith("Z")
    metadata = record["metadata"]
    assert (metadata["size"], metadata["max_depth"], metadata["error"]) == (
        len(record["tree"]),
        4,
        None,
    )
    assert metadata["cached_at"].endswith("Z")


def test_a_failed_scan_is_recorded_with_its_reason(cache, files):
    missing = Files(files.root / "a.py", kind="project")
    tree, _ = cache.tree(missing, TreeOptions())
    assert tree.error
    assert cache.record(missing, TreeOptions())["metadata"]["error"] == tree.error


def test_hot_files_are_those_read_most_and_can_be_loaded_before_they_are_asked_for(cache, files):
    for _ in range(HOT):
        cache.document(files, "src/b.py")
        cache.entries(files, ".")
    cache.document(files, "a.py")
    assert cache.hot() == ["src/b.py"]
    other = RunCache(clock=lambda: time.time_ns() + LATER)
    assert other.preload(files, [*cache.hot(), "missing", "src", "../outside"]) == 1
    assert other.stats.accesses == {}
    assert hit(other, files, "src/b.py")


def test_a_listing_through_the_cache_is_the_same_and_says_whether_all_was_known(cache, files):
    from croze.workspace.listing import draw_tree

    plain = draw_tree(files, ".", depth=3, limit=100)
    first, second = CachedFiles(cache, files), CachedFiles(cache, files)
    for cached in (first, second):
        assert draw_tree(cached, ".", depth=3, limit=100) == plain
    assert (first.hit, second.hit) == (False, True)
    assert plain.contents == {".": ("src/", "a.py"), "src": ("b.py",)}
