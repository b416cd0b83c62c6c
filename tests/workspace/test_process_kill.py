"""When croze itself is killed, nothing that it started goes on: in a sandbox and without one."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sandboxes import need, running, until

RUNNER = """
import asyncio, os, sys
from pathlib import Path
from croze.workspace.process import child_environment, run
from croze.workspace.proof import Proof
from croze.workspace.wrapper import Policy

kind, program, abi, root, command = sys.argv[1:]
proof = Proof(kind=kind if kind != "off" else None, program=program, abi=int(abi))
sandbox = proof.wrapper(Policy(root=Path(root), level="workspace"))

async def main():
    await run(["/bin/bash", "-c", "true"], cwd=root, env=child_environment(os.environ), timeout=60)
    await run(
        ["/bin/bash", "-c", command], cwd=root, env=child_environment(os.environ), timeout=300, sandbox=sandbox
    )

asyncio.run(main())
"""
SRC = Path(__file__).parents[2] / "src"


@pytest.mark.parametrize("kind", ["off", "bubblewrap", "landlock"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
async def test_a_kill_of_croze_ends_what_it_was_running(kind, number, tmp_path):
    mark = 7830000 + ["off", "bubblewrap", "landlock"].index(kind) * 100 + number
    proof = None if kind == "off" else need(kind)
    program, abi = (proof.program, proof.abi) if proof else ("", 0)
    command = (
        f"sleep {mark} & setsid sleep {mark} & (setsid nohup sleep {mark} >/dev/null 2>&1 &); "
        f"env -i sleep {mark} & trap '' TERM HUP; sleep {mark}; sleep {mark}"
    )
    croze = subprocess.Popen(
        [sys.executable, "-c", RUNNER, kind, program, str(abi), str(tmp_path), command],
        env={**os.environ, "PYTHONPATH": str(SRC), "TMPDIR": str(tmp_path)}, start_new_session=True,
    )  # fmt: skip
    try:
        await until(lambda: len(running(mark)) >= 5 or croze.poll() is not None)
        assert len(running(mark)) >= 5
        croze.send_signal(number)
        croze.wait(30)
        await until(lambda: running(mark) == [])
        await until(
            lambda: (
                not [p for p in tmp_path.iterdir() if p.name in (".git", ".croze")] or kind != "off"
            )
        )
    finally:
        croze.kill()
        croze.wait()
        for pid in running(mark):
            os.kill(pid, signal.SIGKILL)


async def test_a_normal_end_takes_the_warden_along(tmp_path):
    code = (
        "import asyncio, os\n"
        "from croze.workspace import process\n"
        "asyncio.run(process.run(['/bin/true'], cwd='/', env={}, timeout=60))\n"
        "print(process._warden[0].pid, flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(SRC)}, check=True,
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    warden = Path("/proc", done.stdout.strip(), "cmdline")

    def gone():
        try:
            return warden.read_bytes() == b""
        except OSError:
            return True

    await until(gone)
