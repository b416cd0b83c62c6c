"""What sharing one tree and one file cache saves `croze docs`, on a project of some 60 files and with agents
that list folders where they see no tree.

.venv/bin/python bench/docs_cache.py
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from figures import figure
from tests.teams.docs_server import COMMON, make_project, measure


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for name in ("shared", "alone"):
            root = Path(folder) / name
            root.mkdir()
            os.environ["HOME"] = str(root / "home")
            make_project(root)
            found[name] = await measure(root, shared=name == "shared")
        shared, alone = found["shared"], found["alone"]
        looks = ("list_files", "read_file")
        figure("agents of the run", shared.agents, "")
        figure("scans of the project, shared", shared.scans, "", "1")
        figure("listings by agents, each for itself", alone.calls["list_files"], "", ">= 20")
        figure("listings by agents, shared", shared.calls["list_files"], "", "0")
        figure("readings of one file from disk, alone", alone.disk[f"read {COMMON}"], "")
        figure("readings of one file from disk, shared", shared.disk[f"read {COMMON}"], "", "<= 5")
        calls = sum(alone.calls[name] - shared.calls[name] for name in looks)
        figure("tool calls saved", calls, "")
        figure("model requests, each for itself", alone.requests, "")
        figure("model requests, shared", shared.requests, "")
        figure("input tokens, each for itself", alone.tokens, "")
        figure("input tokens, shared", shared.tokens, "")
        saved = 100 * (1 - shared.tokens / alone.tokens)
        figure("input tokens saved", saved, "%", "> 0")


asyncio.run(main())
