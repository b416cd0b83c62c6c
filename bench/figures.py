"""What the benches share: one figure a line with its target, and a look at a process from outside."""

import os
import time
from collections.abc import Callable
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def figure(name: str, value: float, unit: str, target: str = "") -> None:
    """Print one figure: name, value, unit, and the target where there is one."""
    shown = f"{value:,.3f}" if abs(value) < 10 else f"{value:,.1f}"
    print(
        f"{name:<58} {shown:>14} {unit:<10}" + (f" (target {target})" if target else ""), flush=True
    )


def cpu_seconds(pid: int) -> float:
    """User and system time that a process and its reaped children have used, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / TICKS


def own_cpu_seconds(pid: int) -> float:
    """User and system time of the process alone, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:13]) / TICKS


def resident_mb(pid: int) -> float:
    """Resident memory of a process in MB (10^6 bytes)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def timed(work: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
