"""What the project's tree and the shared cache cost: scans, listings and reads known and unknown, memory.

Run: python bench/tree.py [FILES]. Each line: name, value, unit, target.
"""

import asyncio
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from croze.context.tree_facts import tree_fact
from croze.workspace.cache import CachedFiles, RunCache
from croze.workspace.files import Files
from croze.workspace.listing import draw_tree
from croze.workspace.tree import TreeOptions, scan
from figures import figure, timed

ROUNDS = 7
AHEAD = 10_000_000_000


def make_tree(root: Path, count: int) -> None:
    """A project of `count` files within the depth, a tenth of them in an ignored folder."""
    (root / ".gitignore").write_text("generated/\n*.log\n/tmp*\n!keep.log\n")
    for number in range(count):
        top = "generated" if number % 10 == 0 else f"pkg{number % 23}"
        folder = root / top / f"m{number % 100}"
        if number < 2_300 * 10:
            folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file{number}.py").touch()


def median(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    return statistics.median(timed(work) for _ in range(rounds))


async def longest_stop(work: Callable[[], object]) -> float:
    """The longest time, in seconds, for which the event loop did not come round while `work` ran aside."""
    task = asyncio.create_task(asyncio.to_thread(work))
    longest, last = 0.0, time.perf_counter()
    while not task.done():
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    await task
    return longest


def scans(root: Path, count: int) -> None:
    files = Files(root, kind="project")
    options = TreeOptions(4)
    took = median(lambda: scan(files, options))
    figure(f"scan of {count:,} files, median", took, "s", "< 1")
    found = scan(files, options)
    figure("entries found", found.entries, "")
    figure("characters of its tree", len(found.text), "", "<= 3000")
    figure("tokens of its fact", tree_fact(found, "m").tokens, "")
    figure(
        "longest stop of the event loop meanwhile",
        asyncio.run(longest_stop(lambda: scan(files, options))) * 1e3,
        "ms",
        "<= 50",
    )
    tracemalloc.start()
    scan(files, options)
    figure("peak memory of a scan", tracemalloc.get_traced_memory()[1] / 1e6, "MB", "<= 60")
    tracemalloc.stop()


def small(root: Path) -> None:
    for number in range(120):
        folder = root / f"src/m{number % 12}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file{number}.py").write_text("value = 1\n" * 500)
    (root / ".gitignore").write_text("*.pyc\nnode_modules/\n/build*/\n")
    files = Files(root, kind="project")
    figure("scan of a small project, median", median(lambda: scan(files), 50) * 1e3, "ms", "<= 5")
    cache = RunCache(clock=lambda: time.time_ns() + AHEAD)
    plain = median(lambda: draw_tree(files, "src", depth=3, limit=400), 50)
    known = median(lambda: draw_tree(CachedFiles(cache, files), "src", depth=3, limit=400), 50)
    figure("listing, uncached, median", plain * 1e3, "ms", "for comparison")
    figure("listing, cached, median", known * 1e3, "ms", "<= uncached")

    def uncached() -> None:
        RunCache().document(files, "src/m0/file0.py")

    figure("read of 5 kB, uncached, median", median(uncached, 200) * 1e6, "us", "for comparison")
    known = median(lambda: cache.document(files, "src/m0/file0.py"), 200)
    figure("read of 5 kB, cached, median", known * 1e6, "us", "<= uncached")
    filled = RunCache(clock=lambda: time.time_ns() + AHEAD)
    big = root / "big"
    big.mkdir()
    tracemalloc.start()
    for number in range(60):
        (big / f"{number}.txt").write_text("x" * 1_000_000)
        filled.document(files, f"big/{number}.txt")
    figure("cache after reading 60 MB", filled.bytes / 1e6, "MB", "<= 17")
    figure("memory held by it", tracemalloc.get_traced_memory()[0] / 1e6, "MB", "<= 18")
    tracemalloc.stop()


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    with tempfile.TemporaryDirectory() as folder:
        large, little = Path(folder, "large"), Path(folder, "small")
        large.mkdir()
        little.mkdir()
        make_tree(large, count)
        scans(large, count)
        small(little)


main()
