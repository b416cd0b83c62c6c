"""Ignore patterns mean what they mean to git."""

import os
import re
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.workspace.files import Files
from croze.workspace.gitignore import Patterns
from croze.workspace.ignore import EXCLUDED_FOLDERS, Ignore

FOLDERS = ("a", "a/b", "a/b/a", "b", "b/abc", "ab.c", "a/x")
FILES = (
    "a.c", "b.a", "c", "a/c", "a/b/c", "a/b/a/c", "a/b.c", "b/abc/c", "b/a", "ab.c/a", "a/x/a.c", "-",
    "a b", "a]", "b/#c", "b/!c", "a ", "B", "a/[c", "a/x/b\\c",
)  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "path", "expected"),
    [
        (["*.log"], "a.log", True), (["*.log"], "a/b.log", True), (["*.log"], "a.logs", None),
        (["build/"], "build/", True), (["build/"], "build", None), (["/x"], "a/x", None),
        (["/x"], "x", True), (["a/x"], "b/a/x", None), (["**/x"], "a/b/x", True), (["**/x"], "x", True),
        (["a/**"], "a/b/c", True), (["a/**"], "a/", None), (["a/**/z"], "a/z", True),
        (["a/**/z"], "a/b/c/z", True), (["*.log", "!keep.log"], "keep.log", False),
        (["!keep.log", "*.log"], "keep.log", True), (["\\#x"], "#x", True), (["#x"], "#x", None),
        (["\\!x"], "!x", True), (["x  "], "x", True), (["x\\ "], "x ", True), (["a?c"], "a/c", None),
        (["a[!b]c"], "axc", True), (["a[!b]c"], "a/c", None), (["[z-a]"], "m", None), (["[a"], "a", None),
        (["[[:digit:]]x"], "7x", True), (["[]]"], "]", True), (["a\\"], "a", None), (["*"], "x/", True),
        (["foo*bar"], "foo/bar", None), (["a/*"], "a/b/c", None), (["\ufeffx"], "x", True), ([".*"], ".x", True),
    ],
)  # fmt: skip
def test_the_forms_of_patterns(lines, path, expected):
    found = Patterns.of(lines)
    assert (None if found is None else found.verdict(path)) is expected


@pytest.mark.parametrize("lines", [[], ["", "# a comment", "   ", "!", "/", "[", "\\"]])
def test_lines_that_say_nothing_are_no_patterns(lines):
    assert Patterns.of(lines) is None


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    root = tmp_path_factory.mktemp("ignored")
    env = {"PATH": os.environ["PATH"], "HOME": str(root / "home"), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q", str(root)], check=True, env=env)
    for folder in FOLDERS:
        (root / folder).mkdir()
    for file in FILES:
        (root / file).touch()
    return root, env


def ignored_by_git(repository):
    root, env = repository
    paths = [*FOLDERS, *FILES]
    asked = "\0".join(paths).encode()
    done = subprocess.run(
        ["git", "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=root, env=env, input=asked, capture_output=True, timeout=60,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    return {path for path in done.stdout.decode().split("\0") if path}


def ignored_by_us(root):
    ignore = Ignore(Files(root, kind="project"))
    gone = set()
    for path in sorted([*FOLDERS, *FILES], key=lambda path: path.count("/")):
        folder, _, name = path.rpartition("/")
        is_folder = path in FOLDERS
        if folder in gone or ignore.excludes(folder or ".", name, is_folder=is_folder):
            gone.add(path)
    return gone


PIECES = st.sampled_from(
    ["a", "b", "c", "*", "**", "?", "/", ".", "[ab]", "[!a]", "[a-c]", "[^b]", "\\", "!", "#", " ", "[", "]", "-"]
)  # fmt: skip
# What stars directly after another character and before a slash mean differs between versions of git.
UNCLEAR = re.compile(r"(?<!^)(?<!^!)(?<!/)\*{2,}/")
LINES = st.lists(
    st.lists(PIECES, max_size=6).map("".join).filter(lambda line: not UNCLEAR.search(line)),
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@given(top=LINES, below=LINES)
def test_the_same_is_passed_over_as_by_git(repository, top, below):
    root, _ = repository
    assert EXCLUDED_FOLDERS.isdisjoint(FOLDERS)
    (root / ".gitignore").write_text("\n".join(top) + "\n")
    (root / "a/.gitignore").write_text("\n".join(below) + "\n")
    assert ignored_by_us(root) == ignored_by_git(repository)
