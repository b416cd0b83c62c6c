"""What rules cost before each request: looking at the files again, and matching the files in play.

Run: python bench/rules.py. Each line: name, value, unit, target.
"""

import tempfile
from pathlib import Path

from croze.context.in_play import InPlay
from croze.context.rules_facts import Rules
from croze.knowledge.find import Finder, Places
from croze.knowledge.rules import RuleFiles
from figures import figure, timed

ROUNDS = 30
FILES = 10_000


def rules_of(root: Path, rules: int, nested: int) -> Rules:
    """A project with so many conditional rules and so many folders with an AGENTS.md."""
    for number in range(rules):
        file = root / f"project/.croze/rules/r{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\nglobs: '**/*.x{number}'\n---\nRule {number}.\n")
    for number in range(nested):
        file = root / f"project/d{number}/AGENTS.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"Folder {number}.\n")
    (root / "project").mkdir(exist_ok=True)
    places = Places(root / "project", root / "home", root / "config")
    play = InPlay()
    play.fresh = dict.fromkeys(f"d{number}" for number in range(nested))
    return Rules(RuleFiles(Finder(places, lambda _path, _data: True)), play)


def main() -> None:
    for rules, nested, target in ((0, 0, "< 1"), (20, 5, "< 3"), (1_000, 0, "")):
        with tempfile.TemporaryDirectory() as folder:
            known = rules_of(Path(folder), rules, nested)
            first = timed(lambda known=known: known.now())  # type: ignore[misc]  # bound at once
            again = min(timed(lambda known=known: known.now()) for _ in range(ROUNDS))  # type: ignore[misc]  # as above
            name = f"{rules:,} rules, {nested} nested files"
            figure(f"looked at for the first time, {name}", first * 1e3, "ms")
            figure(f"looked at again, {name}", again * 1e3, "ms", target)
    with tempfile.TemporaryDirectory() as folder:
        known = rules_of(Path(folder), 20, 0)
        known.now()
        known.play.files = {f"src/m{number % 50}/f{number}.py": None for number in range(FILES)}
        figure(f"20 rules against {FILES:,} new files", timed(lambda: known.now()) * 1e3, "ms")
        figure("the same files again", timed(lambda: known.now()) * 1e3, "ms", "< 3")


main()
