"""What a sub-agent costs beside a session: from its order to its first request, in CPU and in memory; and a
hundred of them open in one process. Run: python bench/sub_agents.py. Each line: name, value, unit.
"""

import asyncio
import gc
import os
import tempfile
import time
from pathlib import Path

from croze.app.app import App
from croze.app.options import RunOptions
from croze.types.event import ModelCalled
from croze.types.news import ChildNews
from croze.types.team import Order
from figures import figure, resident_mb

RUNS = 30
MANY = 100
SCRIPT = """\
replies: [{text: hello}, {text: hello}]
agents:
- {agent: general, replies: [{text: done}]}
- {agent: explore, replies: [{text: done}]}
"""


async def measure(folder: Path) -> None:
    script, project = folder / "script.yaml", folder / "project"
    script.write_text(SCRIPT)
    project.mkdir()
    (project / "AGENTS.md").write_text("Be brief.\n" * 50)
    options = RunOptions(model=f"scripted:{script}", mode="full", sandbox="off", headless=True)
    app = App.open(cwd=project, overrides={"store.backup_enabled": False})
    try:
        await app.leave(await app.session(options))  # what is loaded once is loaded
        begun = time.perf_counter()
        session = await app.session(options)
        opened = time.perf_counter()
        await session.submit("hello")
        figure("a session, opened", (opened - begun) * 1e3, "ms")
        figure("  its first turn", (time.perf_counter() - opened) * 1e3, "ms")
        asked: list[float] = []

        def watch(item: object) -> None:
            if isinstance(item, ChildNews) and isinstance(
                getattr(item.item, "body", None), ModelCalled
            ):
                asked.append(time.perf_counter())

        session.subscribe(watch)
        assert session.children is not None
        for agent in ("general", "explore"):
            order = Order(agent=agent, task="say done")
            await session.children.run(order)
            first: list[float] = []
            cpu: list[float] = []
            for _ in range(RUNS):
                begun, used = time.perf_counter(), time.process_time()
                report = await session.children.run(order)
                assert report.ok, report.error
                first.append((asked[-1] - begun) * 1e3)
                cpu.append((time.process_time() - used) * 1e3)
            figure(f"{agent}, order to first request, median", sorted(first)[RUNS // 2], "ms")
            figure("  all of it, CPU, median", sorted(cpu)[RUNS // 2], "ms")
        gc.collect()
        before = resident_mb(os.getpid())
        for number in range(MANY):
            child = await session.children.open(Order(agent="general", task=f"{number}"))
            await child.submit(f"task {number}")
        gc.collect()
        figure(
            f"{MANY} open, memory of each", (resident_mb(os.getpid()) - before) / MANY * 1e3, "kB"
        )
        begun = time.perf_counter()
        orders = [Order(agent="general", task=f"{number}") for number in range(MANY)]
        reports = await session.children.run_all(orders, "parallel")
        assert all(report.ok for report in reports)
        figure(f"{MANY} in parallel, four at a time", time.perf_counter() - begun, "s")
    finally:
        await app.aclose()


def main() -> None:
    """Print the figures, in a home of their own."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        for name in ("CONFIG", "DATA", "CACHE", "STATE"):
            os.environ[f"XDG_{name}_HOME"] = str(home / name.lower())
        os.environ["HOME"] = str(home)
        asyncio.run(measure(Path(folder)))


if __name__ == "__main__":
    main()
