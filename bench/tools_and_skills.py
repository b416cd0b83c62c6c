"""What external tools and skills cost before each request: looking at them for the first time on this
machine, at a later start, and again before a later request.

Run: python bench/tools_and_skills.py. Each line: name, value, unit, target.
"""

import asyncio
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from croze.context.skills_facts import lines
from croze.context.tools_facts import listing
from croze.knowledge.external_tools import ExternalTools
from croze.knowledge.find import Finder, Places
from croze.knowledge.kinds import SKILLS, TOOLS
from croze.knowledge.skills import Skills
from croze.text.tokens import estimate
from croze.workspace.wrapper import Entrance
from figures import figure, timed

ROUNDS = 30
MANY = 50


async def unconfined() -> tuple[bool, Entrance | None]:
    return True, None


def measured(name: str, made: Callable[[], ExternalTools | Skills]) -> None:
    figure(f"{MANY} {name}, first time", timed(lambda: made().look()) * 1e3, "ms")
    later = min(timed(lambda: made().look()) for _ in range(ROUNDS))
    figure(f"{MANY} {name}, at a later start", later * 1e3, "ms", "< 5")
    there = made()
    there.look()
    again = min(timed(lambda: there.look()) for _ in range(ROUNDS))
    figure(f"{MANY} {name}, before a later request", again * 1e3, "ms", "< 3")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        finder = Finder(
            Places(root / "project", root / "home", root / "config"), lambda _path, _data: True
        )
        (root / "project").mkdir()

        def tools() -> ExternalTools:
            return ExternalTools(finder, root / "cache", os.environ, unconfined, lambda _path: "")

        def skills() -> Skills:
            return Skills(finder, root / "cache", lambda _path: "")

        nothing = min(
            timed(lambda: (finder.is_there(TOOLS), finder.is_there(SKILLS))) for _ in range(ROUNDS)
        )
        figure("no such folders: before each request", nothing * 1e3, "ms", "< 0.1")
        for number in range(MANY):
            tool = root / f"config/tools/t{number}.sh"
            tool.parent.mkdir(parents=True, exist_ok=True)
            tool.write_text(f"#!/bin/sh\necho 'Usage: t{number} FILE'\n")
            tool.chmod(0o755)
            skill = root / f"config/skills/s{number}/SKILL.md"
            skill.parent.mkdir(parents=True)
            front = f"name: s{number}\ndescription: {'Does something well. ' * 8}"
            skill.write_text(f"---\n{front}\n---\n" + "A line of the body.\n" * 300)
        measured("tools", tools)
        known = tools()
        asking = timed(lambda: asyncio.run(known.ask(known.look())))
        figure(f"{MANY} tools, asked for their help (beside)", asking * 1e3, "ms")
        measured("skills", skills)
        told = estimate(listing(tools().look(), root / "project", 100_000))
        figure(f"{MANY} tools as they are told", told, "tokens")
        figure(
            f"{MANY} skills as they are told",
            estimate("\n".join(lines(skills().look(), 100_000))),
            "tokens",
        )


main()
