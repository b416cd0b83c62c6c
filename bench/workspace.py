"""What the file, edit, search and shell tools cost, beside the programs that they stand on.

Run: python bench/workspace.py [FILES]. Each line: name, value, unit, target.
"""

import asyncio
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from croze.edit.blocks import parse_blocks
from croze.edit.plan import apply, plan
from croze.edit.values import EditPlan
from croze.workspace.listing import draw_tree
from croze.workspace.process import child_environment, run
from croze.workspace.search import Query, list_files, ripgrep, search
from croze.workspace.workspace import Workspace
from figures import figure, timed

ENV = child_environment(os.environ)
ROUNDS = 9
WORDS = [
    "the",
    "parser",
    "reads",
    "a",
    "token",
    "and",
    "returns",
    "its",
    "node",
    "while",
    "errors",
    "are",
    "kept",
    "in",
    "order",
    "of",
    "lines",
]


def make_tree(root: Path, count: int) -> None:
    """A project of `count` small source files, a tenth of them in an ignored folder."""
    chance = random.Random(1)
    for number in range(count):
        top = "node_modules" if number % 10 == 0 else f"pkg{number % 23}"
        folder = root / top / f"m{number % 400}"
        if number < 10_000:
            folder.mkdir(parents=True, exist_ok=True)
        lines = [" ".join(chance.choices(WORDS, k=9)) for _ in range(20)]
        if number % 5_000 == 1:
            lines.append("def the_rare_name():")
        (folder / f"file{number}.py").write_text("\n".join(lines) + "\n")
    (root / ".gitignore").write_text("node_modules/\n*.log\n")


async def median(work: Callable[[], Awaitable[object]], rounds: int = ROUNDS) -> float:
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        await work()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


async def processes() -> None:
    async def echo() -> None:
        await run(["/bin/bash", "-c", "echo hi"], cwd="/", env=ENV, timeout=5)

    await echo()
    began = time.process_time()
    figure("echo through process.run", await median(echo, 200) * 1e3, "ms", "<= 3")
    figure("its CPU here", (time.process_time() - began) / 200 * 1e3, "ms", "<= 1.5")
    bare = [
        timed(lambda: subprocess.run(["/bin/bash", "-c", "echo hi"], capture_output=True))
        for _ in range(100)
    ]
    figure("echo through subprocess.run", statistics.median(bare) * 1e3, "ms", "for comparison")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    ended = await run(["/bin/bash", "-c", "head -c 100M /dev/zero"], cwd="/", env=ENV, timeout=60)
    speed = ended.total / 1e6 / (time.perf_counter() - began)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    figure("100 MB of output", speed, "MB/s", "> 100")
    figure("memory grown by it", grown * 1024 / 1e6, "MB", "< 50")


async def searches(root: Path) -> None:
    workspace = Workspace("bench", root, "main")
    rg = ripgrep(os.environ)
    assert rg is not None, "ripgrep is not installed"
    for name, regex in (("few matches", "the_rare_name"), ("many matches", "parser reads")):

        async def ours(regex: str = regex) -> None:
            await search(workspace, Query(regex), os.environ)

        async def theirs(regex: str = regex) -> None:
            argv = [rg, "--no-config", "-n", "--hidden", "--no-require-git", regex, "./"]
            subprocess.run(argv, cwd=root, capture_output=True)

        await ours()
        both = [(await median(ours, 1), await median(theirs, 1)) for _ in range(ROUNDS)]
        mine, other = (statistics.median(times) for times in zip(*both, strict=True))
        figure(f"search, {name}", mine * 1e3, "ms")
        figure(f"search, {name}, against rg itself", mine / other, "x", "<= 1.3")

    async def names() -> None:
        await list_files(workspace, ".", os.environ)

    figure("all file names", await median(names) * 1e3, "ms", "< 1,000")

    def tree() -> None:
        draw_tree(workspace.files, ".", depth=3, limit=400)

    figure(
        "list_files, recursive", statistics.median(timed(tree) for _ in range(ROUNDS)) * 1e3, "ms"
    )


def files(root: Path) -> None:
    area = Workspace("bench", root, "main").files
    area.write("a/b/c/file.py", b"x" * 10_000)
    for name, work, rounds in (
        ("stat", lambda: area.stat("a/b/c/file.py"), 2_000),
        ("read 10 kB with its hash", lambda: area.read("a/b/c/file.py").sha256, 2_000),
        ("write 10 kB, synced", lambda: area.write("a/b/c/file.py", b"y" * 10_000), 50),
    ):
        median_time = statistics.median(timed(work) for _ in range(rounds))
        figure(f"files: {name}", median_time * 1e6, "us")


def edits() -> None:
    chance = random.Random(2)
    source = "".join(f"    {' '.join(chance.choices(WORDS, k=7))} {n}\n" for n in range(1_200))
    lines = source.split("\n")
    times = []
    for _ in range(200):
        at = chance.randrange(1_190)
        old = "\n".join(lines[at : at + 5])
        diff = f"<<<<<<< SEARCH\n{old}\n=======\n{old}!\n>>>>>>> REPLACE"

        def work(diff: str = diff) -> None:
            planned = plan(source, parse_blocks(diff))  # type: ignore[arg-type]
            assert isinstance(planned, EditPlan)
            apply(planned)

        times.append(timed(work) * 1e3)
    figure(f"edit in {len(source) // 1000} kB, median", statistics.median(times), "ms", "< 1")
    figure("edit, 95th of 100", statistics.quantiles(times, n=20)[-1], "ms", "< 10")
    huge = "".join(f"    line {n} = value({n * 7})\n" for n in range(100_000))
    wrong = parse_blocks("<<<<<<< SEARCH\n    line 500 = valu(3500)\n=======\nx\n>>>>>>> REPLACE")
    refusing = statistics.median(timed(lambda: plan(huge, wrong)) for _ in range(ROUNDS))  # type: ignore[arg-type]
    figure("refusing in 100,000 lines", refusing * 1e3, "ms", "< 100")


async def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        await processes()
        edits()
        files(root)
        make_tree(root, count)
        figure("files in the tree", count, "files")
        await searches(root)


if __name__ == "__main__":
    asyncio.run(main())
