"""What a decision about a command costs: one figure a line."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from bench.figures import figure, timed

from croze.tools.approve import Approver
from croze.tools.builtin.shell import ExecuteCommand
from croze.tools.shell_syntax import MOST
from croze.types.parts import ToolCall

ROOT = Path(__file__).parent.parent
MEGABYTE = {
    "brackets": "(" * 1_000_000,
    "quotes": "'" * 1_000_001,
    "substitutions": "$(" * 500_000,
    "deny_row": "git -a " * 150_000,
}


def best(work: Callable[[], object], rounds: int) -> float:
    return min(timed(work) for _ in range(rounds))


def main() -> None:
    approver = Approver(
        root=ROOT,
        search=os.environ.get("PATH", ""),
        locate=lambda path: os.path.relpath(os.path.realpath(ROOT / path), ROOT),
        allow=tuple(f"execute_command(make {number})" for number in range(50)),
        deny=("execute_command(git push:*)",),
    )

    def decide(command: str) -> None:
        bound = ExecuteCommand(command=command)
        call = ToolCall("123456789", "execute_command", {"command": command})
        approver.decide("execute_command", bound.access(), call, bound)

    loaded = set(sys.modules)
    figure("decide_first_command", timed(lambda: decide("ls -la")) * 1e3, "ms", "50")
    assert any(name.startswith("tree_sitter") for name in set(sys.modules) - loaded)
    figure(
        "decide_short_command", best(lambda: decide("ls -la src | head"), 200) * 1e6, "us", "500"
    )
    figure("decide_git_status", best(lambda: decide("git status --short"), 200) * 1e6, "us", "500")
    parts = "; ".join(["cat README.md"] * 100)
    figure("decide_100_parts", best(lambda: decide(parts), 10) * 1e3, "ms", "20")
    longest = "ls|" * (MOST // 3 - 1) + "ls"
    figure("decide_longest_understood_50kB", best(lambda: decide(longest), 3) * 1e3, "ms", "2000")
    for name, command in MEGABYTE.items():
        seconds = best(lambda command=command: decide(command), 3)  # type: ignore[misc]
        figure(f"decide_hostile_1MB_{name}", seconds * 1e3, "ms", "2000")


if __name__ == "__main__":
    main()
