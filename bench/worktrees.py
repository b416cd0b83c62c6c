"""What a work tree of its own costs: made, asked for its changes, merged, removed; and blame.

Run: python bench/worktrees.py [FILES …]. Each line: name, value, unit, target.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from croze.app.blame_fold import Fold, Origin, Version
from croze.edit.merge import merge_bytes
from croze.workspace.files import sha256
from croze.workspace.isolate import open_worktree
from figures import figure, timed


def git(root: Path, *args: str) -> None:
    named = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-c", "maintenance.auto=false"]
    subprocess.run([*named, *args], cwd=root, check=True, capture_output=True)


def make(root: Path, files: int) -> None:
    for number in range(files):
        folder = root / f"pkg{number % 97}" / f"m{number // 97 % 53}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file{number}.py").write_text(f"value = {number}\n" * 100)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")


async def seconds(work: Callable[[], Awaitable[object]]) -> float:
    begun = time.perf_counter()
    await work()
    return time.perf_counter() - begun


async def measure(folder: Path, files: int) -> None:
    root = folder / "project"
    root.mkdir()
    make(root, files)
    (root / "pkg0" / "m0" / "file0.py").write_text("dirty\n")
    (root / "untracked.py").write_text("new\n")
    begun = time.perf_counter()
    tree = await open_worktree(root, folder / "worktrees" / "one", dict(os.environ))
    size = f"{files:,} files"
    figure(f"{size}: a work tree is made", time.perf_counter() - begun, "s")
    plain = timed(lambda: git(root, "worktree", "add", "-q", str(folder / "plain")))
    figure(f"{size}: git worktree add (committed files only)", plain, "s")
    figure(f"{size}: changes, none", await seconds(tree.changes), "s")
    for number in range(1, 4):
        (tree.root / f"pkg{number}" / "m0" / f"file{number}.py").write_text("changed\n")
    figure(f"{size}: changes, three", await seconds(tree.changes), "s")
    figure(f"{size}: the patch", await seconds(tree.patch), "s")
    figure(f"{size}: removed", await seconds(tree.close), "s")


def lines() -> None:
    base = b"".join(b"line %d\n" % number for number in range(10_000))
    ours = base.replace(b"line 9000\n", b"ours\n")
    theirs = base.replace(b"line 100\n", b"theirs\n")
    figure("three-way merge of 10,000 lines", timed(lambda: merge_bytes(base, ours, theirs)), "s")
    contents = [base]
    for number in range(200):
        at = 47 * number
        contents.append(contents[-1].replace(b"line %d\n" % at, b"edit %d\nmore\n" % number))
    store = {sha256(data): data for data in contents}

    def fold() -> None:
        made = Fold(store.get)
        for number in range(200):
            before, after = sha256(contents[number]), sha256(contents[number + 1])
            made.feed(Version(number, number, before, after, Origin(by="croze", turn=number)))
        made.finish(contents[-1])

    figure("blame's fold: 10,000 lines, 200 changes", timed(fold), "s", "under 2")


for count in map(int, sys.argv[1:] or ["5000", "50000"]):
    with tempfile.TemporaryDirectory(prefix="croze-bench-") as made:
        asyncio.run(measure(Path(made), count))
lines()
