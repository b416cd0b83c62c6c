"""What MCP servers cost: their first start with the library, a call, and croze's memory with one.

Run: python bench/mcp_servers.py. Each line: name, value, unit, target.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from croze.mcp.config import ServerSpec
from croze.mcp.server import Surroundings
from croze.mcp.servers import Servers
from figures import figure, resident_mb

ROUNDS = 200
SERVER = Path(__file__).parent.parent / "tests" / "mcp" / "servers" / "odd.py"


class Nobody:
    """Who asks, and answers nothing."""

    def output(self, text: str) -> None:
        pass

    async def ask(self, text: str, options: object = ()) -> None:
        return None


async def measure(folder: Path) -> None:
    import croze.app.app  # what a session has loaded without any server
    import croze.tools.mcp  # noqa: F401

    figure("memory before a server is used", resident_mb(os.getpid()), "MB")
    specs = [
        ServerSpec(
            name=name,
            command=sys.executable,
            args=(str(SERVER),),
            env={"ODD_FOLDER": str(folder)},
        )
        for name in ("first", "second")
    ]
    servers = Servers(specs, Surroundings(folder, dict(os.environ), folder / "c", folder / "s"))
    for name, what in (
        ("first", "the first server, with the library"),
        ("second", "another server"),
    ):
        begun = time.perf_counter()
        await servers.get(name).listing()
        figure(f"{what}: start and tools", time.perf_counter() - begun, "s")
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        await servers.get("first").call("echo", {"text": "x"}, Nobody())
        times.append(time.perf_counter() - begun)
    figure("a call", statistics.median(times) * 1000, "ms")
    figure("memory with two servers", resident_mb(os.getpid()), "MB", "120")
    begun = time.perf_counter()
    await servers.close()
    figure("closing both", time.perf_counter() - begun, "s")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(measure(Path(name)))
