"""The place in a text that is most like some lines, for refusals that teach."""

import re
from collections import Counter
from collections.abc import Sequence

from croze.edit.lines import Lines, bare

_CONTEXT = 2
_SHOWN = 40
_WIDTH = 240
_WORDS = 8
_VOTES = 8


def nearest(lines: Lines, wanted: Sequence[str]) -> tuple[tuple[int, ...], str]:
    """The 1-based lines of the place most like `wanted`, and a text that shows it and how it differs;
    () where nothing is alike. Linear in the text."""
    start = closest(lines, wanted)
    every = lines.all
    if start is None:
        return (
            (),
            f"Nothing in the file is like it; the file has {len(every)} lines. Read it first.",
        )
    start = max(0, min(start, len(every) - 1))
    end = min(len(every), start + len(wanted))
    low, high = max(0, start - _CONTEXT), min(len(every), end + _CONTEXT)
    shown = [f"{at + 1}\t{every[at][:_WIDTH]}" for at in range(low, min(high, low + _SHOWN))]
    difference = _difference(wanted, every[start:end])
    parts = [
        f"The closest place is lines {start + 1}-{end}:",
        *shown,
        "",
        "The difference (- SEARCH, + file):",
        *difference,
    ]
    return tuple(range(start + 1, end + 1)), "\n".join(parts)


def closest(lines: Lines, wanted: Sequence[str]) -> int | None:
    """The 0-based line at which the place most like `wanted` begins (it may lie before the text)."""
    if not lines.all:
        return None
    start = _by_lines(lines, wanted)
    return _by_words(lines.text, wanted) if start is None else start


def _by_lines(lines: Lines, wanted: Sequence[str]) -> int | None:
    """By lines that are the same save blanks: each votes for where the place would start."""
    offsets: dict[str, list[int]] = {}
    for offset, line in enumerate(wanted):
        if line.strip():
            offsets.setdefault(bare(line), []).append(offset)
    hits = [(at, line) for at, line in enumerate(lines.bare) if line in offsets]
    often = Counter(line for _, line in hits)
    votes: Counter[int] = Counter()
    for at, line in hits:
        for offset in offsets[line][:_VOTES]:
            votes[at - offset] += 1 + 100 * len(line) // often[line]
    if not votes:
        return None
    # A lost or added line shifts the votes by one, so neighbours count for each other.
    return max(votes, key=lambda at: (votes[at] + votes.get(at - 1, 0) + votes.get(at + 1, 0), -at))


def _by_words(text: str, wanted: Sequence[str]) -> int | None:
    """By the rarest words that the text has of them."""
    first: dict[str, int] = {}
    for offset, line in enumerate(wanted[:200]):
        for word in re.findall(r"\w{3,}", line[: 10 * _WIDTH]):
            first.setdefault(word, offset)
    telling = sorted(first, key=lambda word: (-len(word), word))[: 2 * _WORDS]
    counts = [
        (number, first[word], word) for word in telling if 0 < (number := text.count(word)) <= 200
    ]
    votes: Counter[int] = Counter()
    for number, offset, word in sorted(counts)[:_WORDS]:
        row = last = 0
        at = text.find(word)
        while at >= 0:
            row += text.count("\n", last, at)
            votes[row - offset] += 1_000 // number
            last, at = at, text.find(word, at + 1)
    return max(votes, key=lambda at: (votes[at], -at)) if votes else None


def _difference(wanted: Sequence[str], found: Sequence[str]) -> list[str]:
    from difflib import SequenceMatcher

    first, second = wanted[:_SHOWN], found[:_SHOWN]
    rows: list[str] = []
    for kind, a, b, c, d in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        rows += [f"- {_visible(line)}" for line in first[a:b]]
        rows += [f"+ {_visible(line)}" for line in second[c:d]]
    return rows[:_SHOWN]


def _visible(line: str) -> str:
    """Blanks that can't be seen are shown: tabs, and blanks at the end."""
    line = line[:_WIDTH]
    body = line.rstrip(" ")
    return body.replace("\t", "→") + "·" * (len(line) - len(body))
