"""What searching and outlines cost: search beside `rg` itself, names, outlines, maps of repositories.

Run: python bench/search.py [FILES]. Each line: name, value, unit, target.
"""

import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path

from croze.retrieval.outline import outline
from croze.retrieval.outlines import OutlineCache, outlines
from croze.retrieval.repomap import draw, rank
from croze.text.tokens import estimate
from croze.tools.builtin.search import rank as by_name
from croze.workspace import grep
from croze.workspace.matches import KEPT, Collector
from croze.workspace.search import Query, list_files, ripgrep, search
from croze.workspace.workspace import Workspace
from figures import figure, timed

ROUNDS = 7
ENV = dict(os.environ)
SEARCHES = {
    "a rare word": "needle_in_the_hay",
    "a common word": r"\breturn\b",
    "an expression": r"def \w+_(one|two)\(",
}


def make_tree(root: Path, count: int) -> None:
    """A project of `count` files of code, and as many lines in ignored folders as in a tenth of it."""
    (root / ".gitignore").write_text("generated/\n")
    body = "".join(
        f"def f{n}_{'one' if n % 7 else 'two'}(a, b):\n    x = a + {n}\n    y = b\n"
        for n in range(12)
    )
    for number in range(count):
        top = "generated" if number % 10 == 0 else f"pkg{number % 23}"
        folder = root / top / f"m{number % 100}"
        folder.mkdir(parents=True, exist_ok=True)
        hit = "needle_in_the_hay = 1\n" if number % 997 == 1 else ""
        again = "    return x\n" if number % 5 == 1 else ""
        (folder / f"file{number}.py").write_text(body + again + hit)


def processor() -> float:
    """Seconds of processor time, of this process and its ended children."""
    return sum(os.times()[:4])


def searches(root: Path, count: int) -> None:
    workspace = Workspace("bench", root, "bench")
    rg = ripgrep(ENV)
    assert rg is not None, "this bench needs ripgrep"
    for name, regex in SEARCHES.items():
        command = [rg, "--hidden", "--no-config", "--line-number", "--with-filename", regex, "./"]
        plain, ours = [], []
        cpu_plain, cpu_ours = [], []
        found = None
        for _ in range(ROUNDS):  # in turns, so that both meet the same load
            used = processor()
            plain.append(timed(lambda c=command: subprocess.run(c, cwd=root, capture_output=True)))
            cpu_plain.append(processor() - used)
            used, began = processor(), time.perf_counter()
            found = asyncio.run(search(workspace, Query(regex), ENV))
            ours.append(time.perf_counter() - began)
            cpu_ours.append(processor() - used)
        assert found is not None
        own, theirs = min(ours), min(plain)
        figure(f"{name}: matches in {count:,} files", found.total, "")
        figure(f"{name}: rg itself, best", theirs * 1e3, "ms", "for comparison")
        figure(f"{name}: search, best", own * 1e3, "ms")
        figure(f"{name}: beside rg itself", own / theirs, "x", "<= 1.3")
        beside = min(cpu_ours) / min(cpu_plain)
        figure(f"{name}: processor time beside rg itself", beside, "x", "for a busy machine")


def names(root: Path) -> None:
    workspace = Workspace("bench", root, "bench")
    took = []
    known: list[str] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        known, _ = asyncio.run(list_files(workspace, ".", ENV))
        took.append(time.perf_counter() - began)
    figure(f"list of {len(known):,} files, median", statistics.median(took) * 1e3, "ms")
    touched = known[:200:10]
    for what, pattern in (("name", "file77"), ("letters", "pk2fl9"), ("glob", "**/m7/*.py")):
        took = [timed(lambda p=pattern: by_name(p, known, touched)) for _ in range(ROUNDS)]
        figure(f"ranking by {what}, median", statistics.median(took) * 1e3, "ms", "<= 500")


def kept() -> None:
    """Memory and speed of taking rows, far more than are kept, in an order that is none."""
    blocks = [
        f"./dir{n % 97}/file{n}.py\0".encode()
        + b"".join(b"%d:some matching line of code\n" % row for row in range(1, 41))
        + b"\n"
        for n in range(20_000)
    ]
    random.Random(7).shuffle(blocks)
    output = b"".join(blocks)
    pieces = [output[at : at + 65_536] for at in range(0, len(output), 65_536)]
    collector = Collector()
    took = timed(lambda: [collector.feed(piece) for piece in pieces])
    assert len(collector.lines("")) == KEPT
    assert collector.total == 800_000
    figure("rows taken", 0.8 / took, "M/s")
    tracemalloc.start()
    collector = Collector()
    for piece in pieces:
        collector.feed(piece)
    collector.lines("")
    figure("memory for 800,000 rows", tracemalloc.get_traced_memory()[1] / 1e6, "MB", "<= 5")
    tracemalloc.stop()


def slow(root: Path) -> None:
    data = (root / "pkg1/m1/file1.py").read_bytes() * 200
    took = timed(lambda: grep.matching(data, r"\bx\b", ignore_case=False, around=0))
    figure("search without ripgrep", len(data) / 1e6 / took, "MB/s")


def parsing() -> None:
    source = b"".join(p.read_bytes() for p in sorted(Path("src/croze/edit").glob("*.py")))
    took = statistics.median(timed(lambda: outline(source, "python")) for _ in range(3))
    figure("outline of Python", len(source) / 1e6 / took, "MB/s")


def repository(root: Path, count: int) -> None:
    """`count` files that use each other's functions, the earlier ones more often."""
    chance = random.Random(count)
    body = "".join(f"    total_{n} = value + {n}\n    check(total_{n})\n" for n in range(60))
    for number in range(count):
        used = {int(number * chance.random() ** 2) for _ in range(6)} if number else set()
        lines = [f"from pkg{n % 50}.mod{n} import handle_{n}, Thing{n}\n" for n in sorted(used)]
        calls = "".join(f"    handle_{n}(Thing{n}())\n" for n in sorted(used))
        folder = root / f"pkg{number % 50}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"mod{number}.py").write_text(
            f"{''.join(lines)}\n\nclass Thing{number}:\n    def go(self):\n        pass\n\n\n"
            f"def handle_{number}(value):\n{calls}{body}"
        )


async def longest_stop(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """How long `work` took, and the longest time for which the event loop did not come round (s)."""
    task = asyncio.ensure_future(work())
    longest, began = 0.0, time.perf_counter()
    last = began
    while not task.done():
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    await task
    return last - began, longest


def maps(root: Path, count: int) -> None:
    repository(root, count)
    workspace = Workspace("bench", root, "bench")
    cache = OutlineCache()

    async def work() -> object:
        paths, _ = await list_files(workspace, ".", ENV)
        found = await outlines(workspace, paths, ENV, cache)
        assert len(found.found) == count, found.skipped
        ranked = await asyncio.to_thread(rank, found.found)
        return await asyncio.to_thread(draw, ranked, 1_000, estimate)

    size = sum(path.stat().st_size for path in root.rglob("*.py")) / 1e6
    took, stop = asyncio.run(longest_stop(work))
    figure(f"map of {count:,} files ({size:.0f} MB)", took, "s", "< 30")
    figure("longest stop of the event loop meanwhile", stop * 1e3, "ms", "<= 50")
    time.sleep(2.1)  # what was just written is not trusted to stay
    asyncio.run(longest_stop(work))
    took, stop = asyncio.run(longest_stop(work))
    figure("the same again, files known", took, "s", "< 3")
    figure("longest stop of the event loop meanwhile", stop * 1e3, "ms", "<= 50")
    figure("memory that the known files are counted with", cache.bytes / 1e6, "MB", "<= 50")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    with tempfile.TemporaryDirectory() as folder:
        tree, few, many = (Path(folder, name) for name in ("tree", "few", "many"))
        for each in (tree, few, many):
            each.mkdir()
        make_tree(tree, count)
        searches(tree, count)
        names(tree)
        kept()
        slow(tree)
        parsing()
        maps(few, min(1_000, count))
        maps(many, min(5_000, count))


main()
