"""Sandboxes for tests: proven once a process; what can't be proven here is skipped with the reason."""

import asyncio
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from croze.workspace import probe
from croze.workspace.proof import Proof


@cache
def proof(kind: str) -> Proof:
    """What holds on this machine; for `landlock` as if bubblewrap were not installed."""

    async def find() -> Proof:
        with tempfile.TemporaryDirectory() as folder:
            prober = probe.Prober(Path(folder), dict(os.environ))
            return await prober._find(
                probe.find_bwrap(os.environ) if kind == "bubblewrap" else None
            )

    with ThreadPoolExecutor(1) as pool:  # a test's own loop may be running in this thread
        return pool.submit(lambda: asyncio.run(find())).result()


def need(kind: str) -> Proof:
    """The proven sandbox, or a skip."""
    found = proof(kind)
    if found.kind != kind:
        pytest.skip(f"no {kind} here: {'; '.join(found.reasons)}")
    return found


def running(mark: object) -> list[int]:
    """Processes with `mark` as an argument of their own (zombies have none)."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(mark).encode() in arguments:
                found.append(int(entry.name))
    return found


async def until(condition, seconds=30):
    """Wait with a bound for something that happens."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
