"""Fails where a source file is longer than it should be: one subject, at most 400 lines."""

import sys
from pathlib import Path

LIMIT = 400

root = Path(__file__).resolve().parent.parent
long = [
    f"{path.relative_to(root)}: {count} lines (at most {LIMIT}); split it by subject"
    for folder in ("src", "bench", "scripts")
    for path in sorted((root / folder).rglob("*.py"))
    if (count := len(path.read_text("utf-8").splitlines())) > LIMIT
]
print("\n".join(long))
sys.exit(bool(long))
