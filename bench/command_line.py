"""CPU time of the commands that only say something: version, help, settings.

Usage: python bench/command_line.py
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from figures import figure

CROZE = Path(sys.executable).parent / "croze"
RUNS = 9


def cpu_ms(*argv: str, home: str) -> float:
    """Median CPU time of a command in milliseconds, after one run to warm up."""
    env = {"HOME": home, "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    times = []
    for _run in range(RUNS + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([CROZE, *argv], env=env, cwd=home, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        times.append(used * 1000)
    return statistics.median(times[1:])


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        figure("croze --version", cpu_ms("--version", home=home), "ms CPU", "<= 150")
        figure("croze --help", cpu_ms("--help", home=home), "ms CPU", "<= 150")
        figure("croze run --help", cpu_ms("run", "--help", home=home), "ms CPU", "<= 150")
        figure("croze config list", cpu_ms("config", "list", home=home), "ms CPU")


if __name__ == "__main__":
    main()
