"""Agents that speak with each other: a message to one, and to a hundred at once, with a model that answers
at once. Run: python bench/hub.py. Each line: name, value, unit.
"""

import asyncio
import os
import tempfile
import time
from pathlib import Path

from croze.app.app import App
from croze.app.options import RunOptions
from croze.types.agent import AgentSpec
from croze.types.team import GroupSpec
from figures import figure, resident_mb

MEMBERS = 100
MESSAGES = 30


async def measure(folder: Path) -> None:
    names = [f"agent-{number}" for number in range(MEMBERS)]
    script = folder / "script.yaml"
    roles = "".join(f"- {{agent: {name}, replies: [{{text: ok}}]}}\n" for name in names)
    script.write_text(f"replies: []\nagents:\n{roles}")
    project = folder / "project"
    project.mkdir()
    app = App.open(cwd=project)
    try:
        session = await app.session(RunOptions(model=f"scripted:{script}", headless=True))
        hub = app.hub(session)
        for name in names:
            hub.register(AgentSpec(name=name, prompt="You say ok."))
        hub.register(GroupSpec("all", tuple(names), messages=MEMBERS + 1))
        voice = hub.voice("user")
        taken = []
        for _ in range(MESSAGES):
            begun = time.perf_counter()
            reply = await voice.talk(names[0], "Well?")
            assert reply.ok, reply.error
            taken.append((time.perf_counter() - begun) * 1e3)
        figure("an agent's first message to its answer", taken[0], "ms")
        figure("a later one, median", sorted(taken[1:])[len(taken) // 2], "ms")
        before = resident_mb(os.getpid())
        begun, cpu = time.perf_counter(), time.process_time()
        replies = await voice.talk_to_group("all", "Well?")
        assert len(replies) == MEMBERS
        assert all(reply.ok for reply in replies)
        figure(f"a group of {MEMBERS}, all asked", time.perf_counter() - begun, "s")
        figure("  CPU for each", (time.process_time() - cpu) / MEMBERS * 1e3, "ms")
        figure("  memory for all", resident_mb(os.getpid()) - before, "MB")
    finally:
        await app.aclose()


def main() -> None:
    """Print the figures, in a home of their own."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        for name in ("CONFIG", "DATA", "CACHE", "STATE"):
            os.environ[f"XDG_{name}_HOME"] = str(home / name.lower())
        asyncio.run(measure(Path(folder)))


if __name__ == "__main__":
    main()
