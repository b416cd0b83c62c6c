"""What redaction, display and token-free parts of a tool result cost: one figure a line."""

import time
from collections.abc import Callable

from croze.text.display import safe
from croze.text.redact import redact
from croze.tools.registry import builtin

CODE = """
def find(items: list[str], wanted: str) -> int | None:
    for index, item in enumerate(items):
        if item == wanted and not item.startswith("#"):
            return index
    return None
"""
MEGABYTE = (CODE * (1_000_000 // len(CODE) + 1))[:1_000_000]
DIRTY = MEGABYTE[:500_000] + "\npassword: hunter2\n" * 500 + MEGABYTE[500_000:-10_000]


def milliseconds(work: Callable[[], object], rounds: int = 7) -> float:
    best = float("inf")
    for _ in range(rounds):
        begun = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begun)
    return best * 1000


def main() -> None:
    print(f"redact_clean_1MB {milliseconds(lambda: redact(MEGABYTE)):.1f} ms (target 20)")
    print(f"redact_500_secrets_1MB {milliseconds(lambda: redact(DIRTY)):.1f} ms (target 100)")
    print(f"redact_result_8kB {milliseconds(lambda: redact(MEGABYTE[:8_000])):.3f} ms (target 0.5)")
    print(f"display_clean_1MB {milliseconds(lambda: safe(MEGABYTE)):.1f} ms (target 20)")
    print(f"registry_builtin {milliseconds(builtin):.1f} ms (target 5)")


if __name__ == "__main__":
    main()
