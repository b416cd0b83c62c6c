"""Runs every bench, one after the other, each in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

NOT_BENCHES = {"all.py", "figures.py"}

folder = Path(__file__).parent
root = folder.parent
env = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"}
failed = 0
for bench in sorted(folder.glob("*.py")):
    if bench.name in NOT_BENCHES:
        continue
    print(f"# {bench.stem}", flush=True)
    failed += subprocess.run([sys.executable, str(bench)], cwd=root, env=env).returncode != 0
sys.exit(failed)
