"""Speed of the xml protocol's parser, by chunk size and by the size of one body.

Run: python bench/parser.py [--quick]. Each line: name, value, unit, target.
"""

import sys
import time
from itertools import count

from croze.dialect.xml import XmlDialect
from croze.types.stream import TextChunk
from croze.types.tool import ToolShape

TARGET = 5e6
PROSE = (
    "The loader reads the file once and keeps what it needs.\nIt is `fast`, and a < b holds.\n"
    "- first, look at the cache;\n- then at the *index*.\n\n```python\nprint('hello')\n```\n\n"
)
CODE = (
    "def total(rows: list[int]) -> int:\n    return sum(row for row in rows if row < 10)\n\n\n"
    "class Table:\n    title = '<b>totals</b>'\n    rows: list[int]\n\n"
)
MARKUP = "<li class='x'><a href='/p'>item</a></li>\n<content>text</content>\n"
SHAPES = {
    "write_to_file": ToolShape(name="write_to_file", params=frozenset({"path", "content", "mode"})),
    "read_file": ToolShape(name="read_file", params=frozenset({"path"})),
}


def body(size: int, filler: str = CODE) -> str:
    """A call with `size` characters of content."""
    content = (filler * (size // len(filler) + 1))[:size]
    return (
        f"I write it.\n\n<write_to_file>\n<path>a.py</path>\n<content>\n{content}\n</content>\n"
        "</write_to_file>"
    )


def seconds(text: str, size: int) -> float:
    """CPU seconds of feeding and finishing `text` in chunks of `size`; the chunks are made before."""
    chunks = [TextChunk(text[start : start + size]) for start in range(0, len(text), size)]
    ids = count()
    decoder = XmlDialect().decoder(SHAPES, lambda: str(next(ids)))
    feed = decoder.feed
    started = time.process_time()
    for chunk in chunks:
        feed(chunk)
    decoder.finish(cut=False)
    return time.process_time() - started


def rate(text: str, size: int) -> float:
    """Characters a CPU second: the best of three runs."""
    return len(text) / min(seconds(text, size) for _ in range(3))


def main() -> None:
    scale = 10 if "--quick" in sys.argv else 1
    prose = PROSE * (1_000_000 // scale // len(PROSE))
    for size in (1, 20, 4096):
        target = f" (target {TARGET:.0f})" if size == 20 else ""
        print(f"parser.prose.chunk_{size} {rate(prose, size):.0f} chars/s{target}")
    rates: dict[str, float] = {}
    for label, length in (("10kB", 10_000), ("1MB", 1_000_000), ("10MB", 10_000_000)):
        text = body(length // scale)
        for size in (1, 20, 4096):
            if size == 1 and length > 1_000_000:
                continue
            got = rates[f"{label}.{size}"] = rate(text, size)
            target = f" (target {TARGET:.0f})" if size == 20 else ""
            print(f"parser.body_{label}.chunk_{size} {got:.0f} chars/s{target}")
    for size in (20, 4096):
        ratio = rates[f"1MB.{size}"] / rates[f"10MB.{size}"]
        target = " (target 1.20)" if size == 20 else ""
        print(f"parser.body_linear.chunk_{size} {ratio:.2f} ratio{target}")
    print(f"parser.markup_1MB.chunk_20 {rate(body(1_000_000 // scale, MARKUP), 20):.0f} chars/s")
    blanks = body(1_000_000 // scale, "</content>" + " " * 90_000)
    print(f"parser.blanks_1MB.chunk_20 {rate(blanks, 20):.0f} chars/s")


if __name__ == "__main__":
    main()
