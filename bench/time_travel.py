"""What following changes costs: looking at a project, a command's step, keeping pre-images, undoing.

Run: python bench/time_travel.py [FILES]. Each line: name, value, unit, target.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import uuid4

from croze.agent.rewind import Rewinder
from croze.store.store import Store
from croze.types.event import FilesChanged, Stopped, UserSaid
from croze.types.ids import SystemSource
from croze.types.parts import Text
from croze.workspace.files import Files
from croze.workspace.git import Git
from croze.workspace.git_index import read_index
from croze.workspace.journal import Journal
from croze.workspace.snapshot import Scanner
from croze.workspace.track import Tracker
from croze.workspace.workspace import Workspace
from figures import figure, timed

ROUNDS = 15


def make_tree(root: Path, files: int, folders: int) -> None:
    for number in range(files):
        folder = root / f"pkg{number % folders % 23}" / f"m{number % folders}"
        if number < folders:
            folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file{number}.py").write_text(f"value = {number}\n" * 20)
    (root / ".gitignore").write_text("*.log\n/target\n__pycache__/\n*.pyc\n.coverage\n*.egg-info\n")


def git(root: Path, *args: str) -> None:
    config = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "maintenance.auto=false"]
    subprocess.run(["git", *config, *args], cwd=root, check=True, capture_output=True)


def looks(root: Path, name: str, first: str, again: str) -> None:
    scanner = Scanner(Files(root, kind="project"), root)
    figure(f"first look at {name}", timed(lambda: scanner.scan()) * 1e3, "ms", first)
    time.sleep(0.1)
    scanner.scan()
    times = [timed(lambda: scanner.scan()) for _ in range(ROUNDS)]
    figure(f"a later look at {name}", statistics.median(times) * 1e3, "ms", again)


async def median(work: Callable[[], Awaitable[object]], rounds: int = ROUNDS) -> float:
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        await work()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


async def steps(root: Path, folder: Path) -> None:
    work = Workspace("bench", root, "main")
    tracker = Tracker(work.files, root, Journal(folder / "j1"), "s", Git.of(root, dict(os.environ)))

    async def command() -> None:
        await tracker.begin("c", command=True)
        await tracker.changes()

    began = time.perf_counter()
    await command()
    figure("first command in 300 clean files", (time.perf_counter() - began) * 1e3, "ms")
    await asyncio.sleep(0.1)
    figure("a later command's two looks", await median(command) * 1e3, "ms", "< 2")
    number = 0

    async def write() -> None:
        nonlocal number
        number += 1
        await tracker.begin("w", command=False)
        path, data = f"new{number % 40}.txt", f"{number}\n".encode() * 300
        written = work.files.write(path, data)
        tracker.record(path, written.before, data)
        await tracker.changes()
        tracker.recorded()

    tracked = await median(write, 80)
    plain = Workspace("plain", root, "main").files
    bare = statistics.median(timed(lambda: plain.write("bare.txt", b"x" * 900)) for _ in range(80))
    figure("a write, followed", tracked * 1e3, "ms")
    figure("a write, not followed", bare * 1e3, "ms", "for comparison")


async def undo(folder: Path, count: int) -> None:
    root = folder / "undo"
    root.mkdir()
    for number in range(count):
        (root / f"f{number}.txt").write_text(f"old {number}\n" * 100)
    store = Store.open(folder / "store", source=SystemSource())
    log = await store.create(project=str(root))
    work, journal = Workspace("bench", root, "main"), Journal(folder / "store" / "journal")
    tracker = Tracker(work.files, root, journal, log.session, None)
    await log.append(UserSaid(message_id="m", parts=(Text(text="Do it"),)))
    await tracker.begin("c", command=True)
    for number in range(count):
        (root / f"f{number}.txt").write_text(f"new {number}\n" * 100)
    await log.append(
        FilesChanged(call_id="c", changes=await tracker.changes()), Stopped(reason="done")
    )
    rewinder = Rewinder(log, log.events, root, journal, lambda: str(uuid4()))
    began = time.perf_counter()
    await rewinder.undo()
    figure(f"undo of {count} files", (time.perf_counter() - began) * 1e3, "ms", "< 1,000")
    began = time.perf_counter()
    await rewinder.redo()
    figure(f"redo of {count} files", (time.perf_counter() - began) * 1e3, "ms", "< 1,000")
    log.close()
    store.close()


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for label, files, folders in (("small", 300, 30), ("large", count, 2300)):
            (folder / label).mkdir()
            make_tree(folder / label, files, min(folders, files))
        looks(folder / "small", "300 files", "", "< 1")
        looks(folder / "large", f"{count:,} files", "< 1,000", "< 1,000")
        git(folder / "large", "init", "-q")
        git(folder / "large", "add", "-A")
        index = folder / "large" / ".git" / "index"
        figure(f"git's index of {count:,} files", timed(lambda: read_index(index)) * 1e3, "ms")
        small = folder / "small"
        for args in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "all")):
            git(small, *args)
        time.sleep(0.1)
        git(small, "update-index", "--refresh")
        asyncio.run(steps(small, folder))
        asyncio.run(undo(folder, 100))


main()
