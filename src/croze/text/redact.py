"""Takes secrets out of text before anything stores, shows or sends it.

Provider keys are known by their prefixes, other secrets by what stands before them. Every rule has an
anchor, a short literal that is searched for first; its pattern is tried only there and looks at a bounded
piece of the text, so clean text costs little and no text costs more than its length. Values of fields
such as `password` are secrets unless they look like code, a placeholder or a reference.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from croze.text.regex import Regex
from croze.text.secret_blocks import (
    COOKIE,
    KEY_BEGIN,
    MANIFEST,
    PUTTY,
    Span,
    cookies,
    manifest,
    private_key,
    putty_key,
)
from croze.text.secret_fields import field, is_secret_item
from croze.text.secret_rules import (
    DOT,
    FIELDS,
    GROUPS,
    NEAR,
    PIVOTS,
    PREFIXES,
    RULES,
    Rule,
    dotted,
    prefixed,
)
from croze.text.secret_values import MARK, is_basic, is_placeholder, is_reference, looks_random

_PASSES = 6
"""A replacement can expose a new left edge; the second pass finds it, more are for made-up text."""

_BROKEN = 2_000
_LINE_END = Regex(r"\r?\n|\r")
_HEADLESS = Regex(r"(?:[ \t\d|]{0,12}[A-Za-z0-9+/]{40,}={0,2}[ \t]*\r?\n){2,}")

_Tried = list[tuple[Rule, "re.Pattern[str]", str | int]]


def _by_anchor() -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for rule in RULES:
        found.setdefault(rule.anchor, []).append(rule)
    return found


@cache
def _tried(anchor: str) -> _Tried:
    """The rules of an anchor, compiled when it is met first: most never are."""
    tried: _Tried = []
    for rule in _RULES[anchor]:
        flags = re.ASCII | (re.IGNORECASE if rule.anchor.islower() else 0)
        pattern = re.compile(rule.pattern, flags)
        tried.append((rule, pattern, "v" if "v" in pattern.groupindex else 0))
    return tried


_RULES = _by_anchor()
_GROUPED = frozenset(anchor for anchor in _RULES if any(g.fullmatch(anchor) for g in GROUPS))
_BLOCKS: tuple[tuple[str, Callable[[str, int], Iterator[Span]]], ...] = (
    (KEY_BEGIN, private_key),
    (PUTTY, putty_key),
    *((anchor, manifest) for anchor in MANIFEST),
    (COOKIE, cookies),
)
_GATES = ("pass", "auth", "data")
"""What stands in several literals: where it is missing, none of them needs to be looked for."""


def _by_gate() -> tuple[tuple[str, bool, tuple[str, ...]], ...]:
    """The literals that are looked for by what has to be there for them; whether in lower case."""
    found: dict[str, list[str]] = {}
    anchors = (anchor for anchor in _RULES if anchor not in _GROUPED)
    for literal in (*anchors, *(anchor for anchor, _ in _BLOCKS), *FIELDS):
        gate = next((gate for gate in _GATES if gate in literal), literal)
        found.setdefault(gate, []).append(literal)
    return tuple((gate, gate.islower(), tuple(all_)) for gate, all_ in found.items())


_LITERALS = _by_gate()


def redact(text: str) -> tuple[str, int]:
    """The text with every secret replaced by `<REDACTED>`, and how many there were.

    Only the secret part is replaced; names, quotes and hosts stay. Redacting twice changes nothing.
    """
    spans = secret_spans(text)
    return (masked(text, spans), len(spans)) if spans else (text, 0)


def begun_anew(text: str) -> str:
    """A text that was cut off at its front, from its first whole line on: of what stood on the broken
    line, and of a private key whose head is missing, nothing stays. All of it where there is no line."""
    line = _LINE_END.search(text, 0, _BROKEN)
    text = text[line.end() :] if line else text
    headless = _HEADLESS.match(text)
    return f"{MARK}\n{text[headless.end() :]}" if headless else text


def ended_early(text: str) -> str:
    """A text that was cut off at its end, without the line that is broken off there."""
    end = text.rfind("\n", len(text) - _BROKEN if len(text) > _BROKEN else 0)
    return text[: end + 1] if end >= 0 else text


def masked(text: str, spans: Iterable[Span]) -> str:
    """The text with the spans replaced by the mark."""
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        pieces += (text[at:start], MARK)
        at = end
    return "".join((*pieces, text[at:]))


def secret_spans(text: str) -> list[Span]:
    """Where the secrets stand: in order, apart from each other."""
    spans = _merge(_find(text))
    for _ in range(_PASSES if spans else 0):
        found = list(_find(masked(text, spans)))
        more = _merge([*spans, *_unmasked(found, spans)])
        if more == spans:
            break
        spans = more
    return spans


def redact_value(value: Any) -> tuple[Any, int]:
    """The same for JSON-like values: strings anywhere, and values under a secret's key."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        total = 0
        pairs: dict[Any, Any] = {}
        for key, item in value.items():
            if isinstance(item, str) and isinstance(key, str) and is_secret_item(key, item):
                pairs[key], count = MARK, 1
            else:
                pairs[key], count = redact_value(item)
            total += count
        return pairs, total
    if isinstance(value, list | tuple):
        done = [redact_value(item) for item in value]
        items = [item for item, _ in done]
        return (items if isinstance(value, list) else tuple(items)), sum(n for _, n in done)
    return value, 0


def lowered(text: str) -> str:
    """In lower case, each character at its place."""
    low = text.lower()
    if len(low) != len(text):  # a few letters grow when lowered; positions would not fit
        low = "".join(char.lower() if char.isascii() else char for char in text)
    return low


def _find(text: str) -> Iterator[Span]:
    for pivot in PIVOTS:
        for hit in pivot.finditer(text):
            if span := _prefixed(text, hit.start()):
                yield span
    for hit in DOT.finditer(text):
        if span := _dotted(text, hit.start()):
            yield span
    low = lowered(text)
    present = _present(text, low)
    for anchor in present:
        if anchor in _RULES:
            yield from _ruled(text, low, _hits(low if anchor.islower() else text, anchor), anchor)
    for group in GROUPS:
        ends: dict[str, int] = {}
        for hit in group.finditer(text):
            start, anchor = hit.start(), hit.group()
            if start >= ends.get(anchor, 0):
                for span in _ruled(text, low, (start,), anchor):
                    ends[anchor] = span[1]
                    yield span
    for anchor, find in _BLOCKS:
        if anchor not in present:
            continue
        after = 0
        for start in _hits(low if anchor.islower() else text, anchor):
            if start >= after:
                for span in find(text, start):
                    after = span[1]
                    yield span
    for word in FIELDS:
        if word not in present:
            continue
        after = 0
        for start in _hits(low, word):
            found = field(text, low, start, word) if start >= after else None
            if found:
                after = found[1]
                yield found


def _present(text: str, low: str) -> set[str]:
    """Which of the literals stand in the text: most never do, and that is quickly seen."""
    return {
        literal
        for gate, in_low, literals in _LITERALS
        if gate in (low if in_low else text)
        for literal in literals
        if literal is gate or literal in (low if in_low else text)
    }


def _ruled(text: str, low: str, starts: Iterable[int], anchor: str) -> Iterator[Span]:
    """What the rules of one anchor find at its places."""
    after = 0
    for start in starts:
        if start < after:
            continue
        for rule, pattern, value in _tried(anchor):
            match = pattern.match(text, start)
            if match is None or (rule.near and not _near(low, start, rule.near)):
                continue
            after = max(after, match.end(value))
            if _is_known_secret(match.group(value), rule):
                yield match.span(value)


def _hits(text: str, literal: str) -> Iterator[int]:
    at = text.find(literal)
    while at >= 0:
        yield at
        at = text.find(literal, at + len(literal))


def _near(low: str, start: int, word: str) -> bool:
    """Whether `word` stands before, in the same command (a line that ends with `\\` goes on)."""
    line = low[max(0, start - NEAR) : start]
    cut = line.rfind("\n")
    while cut > 0 and line[cut - 1] in "\\\r":
        cut = line.rfind("\n", 0, cut)
    return word in line[cut + 1 :]


def _prefixed(text: str, pivot: int) -> Span | None:
    start = pivot
    while start > pivot - 16 and start > 0 and _in_name(text[start - 1]):
        start -= 1
    if text[start - 1 : start] == "\\" and text[start] in "nrt":  # an escape in quoted text
        start += 1
    match = prefixed().match(text, start)
    if not match or match.lastgroup is None:
        return None
    random = PREFIXES[int(match.lastgroup[1:])].random
    value = match.group()
    if is_placeholder(value) or (random and not looks_random(value)):
        return None
    return match.span()


def _in_name(char: str) -> bool:
    return char == "_" or (char.isascii() and char.isalnum())


def _dotted(text: str, dot: int) -> Span | None:
    start = dot
    while start > dot - 28 and start > 0 and (_in_name(text[start - 1]) or text[start - 1] == "-"):
        start -= 1
    if text[start - 1 : start] == "\\" and text[start] in "nrt":
        start += 1
    match = dotted().match(text, start)
    if match is None or not looks_random(match.group()) or is_placeholder(match.group()):
        return None
    return match.span()


def _is_known_secret(value: str, rule: Rule) -> bool:
    if is_placeholder(value):
        return False
    if (rule.anchor == "://" or rule.near) and (is_reference(value) or value.isdecimal()):
        return value.isdecimal() and len(value) > 5
    return looks_random(value) or not rule.random or is_basic(value)


def _unmasked(found: Iterable[Span], spans: list[Span]) -> Iterator[Span]:
    """Spans of the masked text as spans of the text itself."""
    marks: list[int] = []
    shift = 0
    for start, end in spans:
        marks.append(start + shift)
        shift += len(MARK) - (end - start)

    def place(position: int, *, last: bool) -> int:
        number = (bisect_left if last else bisect_right)(marks, position) - 1
        if number < 0:
            return position
        start, end = spans[number]
        over = position - marks[number] - len(MARK)
        if over < 0 or (over == 0 and last):
            return end if last else start
        return end + over

    for start, end in found:
        yield place(start, last=False), place(end, last=True)


def _merge(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
