"""What redaction, display and token-free parts of a tool result cost: one figure a line."""

import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

from croze.text.display import safe
from croze.text.redact import redact, secret_spans
from croze.text.stream_redact import StreamRedactor
from croze.tools.registry import builtin

CODE = """
def find(items: list[str], wanted: str) -> int | None:
    for index, item in enumerate(items):
        if item == wanted and not item.startswith("#"):
            return index
    return None
"""
PROSE = "The parser reads one token at a time, and it asks the user for a key when none was set.\n"
MEGABYTE = (CODE * (1_000_000 // len(CODE) + 1))[:1_000_000]
DIRTY = MEGABYTE[:500_000] + "\npassword: hunter2\n" * 500 + MEGABYTE[500_000:-10_000]
HOSTILE = (
    "password=", 'password="', ":::::", "====", "-----BEGIN " + "PRIVATE KEY-----", "://a:", "eyJa.",
    "api_key: ", "data:\n  a", "secret={a_", "Cookie: a=1;", "sk-a1", "AKIA", "token: '", "<password ",
)  # fmt: skip
SOURCES = {".py", ".pyi", ".js", ".json", ".toml", ".md", ".txt", ".css", ".html", ".yaml", ".cfg"}


def milliseconds(work: Callable[[], object], rounds: int = 7) -> float:
    best = float("inf")
    for _ in range(rounds):
        begun = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begun)
    return best * 1000


def stream(text: str, step: int) -> int:
    """Redact a text in pieces; gives the longest stretch that was held back on the way."""
    redactor = StreamRedactor()
    given = got = held = 0
    for at in range(0, len(text), step):
        piece = text[at : at + step]
        given += len(piece)
        got += len(redactor.feed(piece))
        held = max(held, given - got)
    redactor.finish()
    return held


def false_positives() -> tuple[float, int]:
    """Megabytes of installed packages' sources, and how often something in them is taken."""
    size = found = 0
    for path in sorted(Path(sysconfig.get_path("purelib")).rglob("*")):
        if path.suffix in SOURCES and path.is_file():
            text = path.read_text("utf-8", "replace")
            size += len(text)
            found += len(secret_spans(text))
    return size / 1e6, found


def main() -> None:
    print(f"redact_clean_1MB {milliseconds(lambda: redact(MEGABYTE)):.1f} ms (target 20)")
    print(f"redact_500_secrets_1MB {milliseconds(lambda: redact(DIRTY)):.1f} ms (target 100)")
    print(f"redact_result_8kB {milliseconds(lambda: redact(MEGABYTE[:8_000])):.3f} ms (target 0.5)")
    rates = []
    for piece in HOSTILE:
        text = piece * (500_000 // len(piece))
        rates.append(500 / milliseconds(lambda t=text: redact(t), 1))  # type: ignore[misc]
    print(f"redact_hostile_slowest {min(rates):.2f} MB/s (target above 0.2)")
    words = (PROSE * (200_000 // len(PROSE)))[:200_000]
    code = MEGABYTE[:200_000]
    for name, text in (("prose", words), ("code", code)):
        took = milliseconds(lambda t=text: stream(t, 20), 3)  # type: ignore[misc]
        each = took / (len(text) / 20) * 1000
        print(f"stream_{name}_delta_of_20 {each:.1f} us (target 50)")
    print(
        f"stream_output_64kB_pieces {1000 / milliseconds(lambda: stream(MEGABYTE, 65_536), 3):.1f} MB/s (target 10)"
    )
    print(f"stream_prose_held_back {stream(words, 4)} characters (target 24)")
    size, found = false_positives()
    print(f"false_positives {found / size:.2f} per MB of {size:.0f} MB of packages (target 0.5)")
    print(f"display_clean_1MB {milliseconds(lambda: safe(MEGABYTE)):.1f} ms (target 20)")
    print(f"registry_builtin {milliseconds(builtin):.1f} ms (target 5)")


if __name__ == "__main__":
    main()
