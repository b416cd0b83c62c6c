"""What the sandbox costs: a command in it against one without, by the runner alone and in a step of the
real program; and the price of finding out whether it holds.

Usage: python bench/sandbox.py [STEPS]
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from croze.workspace.probe import Prober
from croze.workspace.process import child_environment
from croze.workspace.process import run as run_program
from croze.workspace.sandbox import Confinement
from croze.workspace.wrapper import Wrapper
from figures import figure
from start_and_step import overheads, run

COMMANDS = 60


async def command(sandbox: Wrapper | None, root: Path) -> float:
    """Milliseconds of one `echo`."""
    began = time.perf_counter()
    await run_program(
        ["/bin/bash", "-c", "echo x"], cwd=root, env=child_environment(os.environ), timeout=60, sandbox=sandbox
    )  # fmt: skip
    return (time.perf_counter() - began) * 1000


async def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        home, project, cache = base / "home", base / "project", base / "cache"
        for each in (home, project):
            each.mkdir()
        prober = Prober(cache, dict(os.environ))
        began = time.perf_counter()
        proof = await prober.prove()
        figure("proving the sandbox, once a machine", (time.perf_counter() - began) * 1000, "ms")
        began = time.perf_counter()
        await prober.prove()
        figure("knowing it from then on", (time.perf_counter() - began) * 1000, "ms", "<= 1")
        print(f"# {proof.about}")
        confinement = Confinement(root=project, env=dict(os.environ), cache=cache)
        inside, outside = [], []
        for number in range(COMMANDS + 2):
            wrapper = await confinement.wrapper()
            taken = await command(wrapper, project), await command(None, project)
            if number > 1:
                inside.append(taken[0])
                outside.append(taken[1])
        figure("a command, sandbox off, median", statistics.median(outside), "ms")
        figure("a command in the sandbox, median", statistics.median(inside), "ms")
        more = statistics.median(inside) - statistics.median(outside)
        figure("what the sandbox costs a command", more, "ms", "<= 25")
        for sandbox, target in (("off", "<= 6"), ("workspace", "<= 12")):
            record, cpu, _memory, _started = await run(home, project, steps, sandbox)
            times = overheads(record)[2:]
            name = f"step overhead, sandbox {sandbox}, median"
            figure(name, statistics.median(times), "ms", target)
            if {51, 101} <= cpu.keys():
                spent = (cpu[101] - cpu[51]) / 50 * 1000
                figure(f"CPU a step, sandbox {sandbox}", spent, "ms", "<= 4")


asyncio.run(main())
