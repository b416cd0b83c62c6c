"""Teams at work: a hundred sub-agents at once in one process and what they leave behind, ten work trees of a
5,000-file repository that come back through the merge queue, and a word to twenty agents.

What one sub-agent costs is in sub_agents.py, the hub in hub.py, saved scans in docs_cache.py, one work tree
in worktrees.py. Run: python bench/teams.py. Each line: name, value, unit, target.
"""

import asyncio
import gc
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from croze.app.app import App, Session
from croze.app.options import RunOptions
from croze.types.agent import AgentSpec
from croze.types.event import Merged
from croze.types.team import GroupSpec, Order
from figures import figure, own_cpu_seconds, resident_mb

MANY = 100
TREES = 10
FILES = 5_000
MEMBERS = 20
APART = AgentSpec(name="apart", description="Works apart.", isolation="worktree")


def call(name: str, **args: str) -> str:
    return json.dumps({"calls": [{"name": name, "args": args}]})


def script(folder: Path) -> str:
    """Those of the crowd look and write a file each; those apart change a line of one file each; members
    answer at once."""
    crowd = [
        f'- {{agent: general, task: "number {n:03}.", replies: ['
        f"{call('list_files', path='.')}, "
        f"{call('write_to_file', path=f'made/{n:03}.txt', content=f'{n}')}, {{text: done {n}}}]}}"
        for n in range(MANY)
    ]
    apart = []
    for n in range(TREES):
        line = n * 20
        diff = f"<<<<<<< SEARCH\nline {line}\n=======\nline {line} by {n}\n>>>>>>> REPLACE"
        apart.append(
            f'- {{agent: apart, task: "number {n:03}.", replies: ['
            f"{call('replace_in_file', path='shared.txt', diff=diff)}, {{text: done}}]}}"
        )
    members = [f"- {{agent: member-{n}, replies: [{{text: ok}}]}}" for n in range(MEMBERS)]
    path = folder / "script.yaml"
    path.write_text("replies: []\nagents:\n" + "\n".join((*crowd, *apart, *members)) + "\n")
    return f"scripted:{path}"


def make(root: Path) -> None:
    for number in range(FILES):
        folder = root / f"pkg{number % 97}" / f"m{number // 97 % 53}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file{number}.py").write_text(f"value = {number}\n" * 20)
    (root / "shared.txt").write_text("".join(f"line {n}\n" for n in range(TREES * 20)))
    for args in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
        named = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-c", "maintenance.auto=false"]
        subprocess.run([*named, *args], cwd=root, check=True, capture_output=True)


def fds() -> int:
    return len(os.listdir("/proc/self/fd"))


async def crowd(session: Session) -> None:
    """A hundred at once, twice: what the second time adds is what is never given back."""
    assert session.children is not None
    orders = [Order(agent="general", task=f"number {n:03}.") for n in range(MANY)]
    await session.children.run(orders[0])
    await asyncio.sleep(0)
    held, tasks = fds(), len(asyncio.all_tasks())
    for again in ("", ", a second time"):
        before = resident_mb(os.getpid())
        begun, cpu = time.perf_counter(), own_cpu_seconds(os.getpid())
        reports = await session.children.run_all(orders, "parallel")
        taken = time.perf_counter() - begun
        assert all(report.ok and report.steps == 3 for report in reports)
        gc.collect()
        figure(f"{MANY} sub-agents at once, 3 steps each{again}", taken, "s")
        figure("  CPU of each", (own_cpu_seconds(os.getpid()) - cpu) / MANY * 1e3, "ms")
        figure("  memory added", resident_mb(os.getpid()) - before, "MB")
    figure("  file descriptors left", fds() - held, "", "0")
    figure("  tasks left", len(asyncio.all_tasks()) - tasks, "", "0")
    figure("  sub-agents left open", len(session.children.open_ones), "", "0")


async def queue(session: Session, root: Path) -> None:
    assert session.children is not None
    orders = [Order(agent="apart", task=f"number {n:03}.") for n in range(TREES)]
    begun = time.perf_counter()
    opened = [await session.children.open(order, spec=APART) for order in orders]
    figure(f"{TREES} work trees of {FILES:,} files, opened", time.perf_counter() - begun, "s")
    begun = time.perf_counter()
    await asyncio.gather(*(c.submit(o.task) for c, o in zip(opened, orders, strict=True)))
    figure("  their turns", time.perf_counter() - begun, "s")
    begun = time.perf_counter()
    reports = await asyncio.gather(*(child.close() for child in opened))
    figure("  merged into one file, in their order", time.perf_counter() - begun, "s")
    text = (root / "shared.txt").read_text()
    assert all(report.ok for report in reports), [report.notes for report in reports]
    assert all(f"line {n * 20} by {n}\n" in text for n in range(TREES))
    merges = [event.body for event in session.events if isinstance(event.body, Merged)]
    figure("  conflicts", sum(len(each.conflicts) for each in merges), "", "0")


async def broadcast(app: App, session: Session) -> None:
    hub = app.hub(session)
    names = tuple(f"member-{n}" for n in range(MEMBERS))
    for name in names:
        hub.register(AgentSpec(name=name, prompt="You say ok."))
    hub.register(GroupSpec("all", names))
    voice = hub.voice("user")
    for which in ("for the first time", "again"):
        begun = time.perf_counter()
        replies = await voice.talk_to_group("all", "Well?")
        assert all(reply.ok for reply in replies)
        figure(f"a word to {MEMBERS} agents, {which}", time.perf_counter() - begun, "s")


async def measure(folder: Path) -> None:
    root = folder / "project"
    root.mkdir()
    make(root)
    options = RunOptions(model=script(folder), mode="full", sandbox="off", headless=True)
    app = App.open(cwd=root, overrides={"store.backup_enabled": False, "teams.parallel": MANY})
    try:
        session = await app.session(options)
        await crowd(session)
        await queue(session, root)
        await broadcast(app, session)
    finally:
        await app.aclose()


def main() -> None:
    """Print the figures, in a home of their own."""
    with tempfile.TemporaryDirectory(prefix="croze-bench-") as folder:
        home = Path(folder) / "home"
        for name in ("CONFIG", "DATA", "CACHE", "STATE"):
            os.environ[f"XDG_{name}_HOME"] = str(home / name.lower())
        os.environ["HOME"] = str(home)
        asyncio.run(measure(Path(folder)))


if __name__ == "__main__":
    main()
