"""The patterns by which a rule says for which files it holds, as other agents' users write them.

`*`, `?`, `[…]`, `**` and `{a,b}`; a pattern without a slash holds at any depth, one that names a folder for
all below it, and `!` takes away again. Paths are relative to the project and are compared exactly.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from croze.workspace.gitignore import Patterns

_MOST = 200
"""Patterns of one rule, with what their braces stand for."""
_LONGEST = 500
_META = frozenset("*?[\\")


class Globs(Struct, frozen=True):
    """`unusable` are those that can match nothing."""

    patterns: tuple[str, ...] = ()
    unusable: tuple[str, ...] = ()

    def matches(self, path: str) -> bool:
        compiled = _compiled(self.patterns)
        return compiled is not None and compiled.verdict(path) is True


def read_globs(values: Sequence[str]) -> Globs:
    """The patterns that a rule's `globs` hold: a list, or texts with commas."""
    usable: list[str] = []
    unusable: list[str] = []
    for value in (part for text in values for part in split(text)):
        variants = list(_variants(value))
        known = all(_usable(each) for each in variants)
        if not known or len(usable) + len(variants) > _MOST:
            unusable.append(value[:80])
        else:
            usable += variants
    return Globs(tuple(dict.fromkeys(usable)), tuple(dict.fromkeys(unusable)))


def split(text: str) -> list[str]:
    """The parts between commas, but for commas in braces and brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char in "{[":
            depth += 1
        elif char in "}]":
            depth = max(0, depth - 1)
        elif char == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return [part for each in parts if (part := each.strip())]


def _variants(text: str) -> Iterator[str]:
    """A pattern without its braces, in all forms that they stand for; at most one more than counts."""
    if len(text) > _LONGEST:
        yield ""
        return
    for number, each in enumerate(_unfolded([text])):
        if number > _MOST:
            return
        pattern = each.strip()
        sign = "!" if pattern.startswith("!") else ""
        pattern = pattern[len(sign) :].removeprefix("./")
        if pattern.startswith("#"):
            pattern = f"\\{pattern}"
        if pattern.endswith("/"):
            pattern += "**"
        yield f"{sign}{pattern}"
        if pattern and _META.isdisjoint(pattern):
            yield f"{sign}{pattern}/**"


def _unfolded(waiting: list[str]) -> Iterator[str]:
    while waiting:
        text = waiting.pop()
        span = _innermost(text)
        if span is None:
            yield text
            continue
        start, end = span
        inner = text[start + 1 : end].split(",")
        waiting += [f"{text[:start]}{each}{text[end + 1 :]}" for each in reversed(inner)]
        if len(waiting) > 2 * _MOST:
            yield ""  # more than anybody writes
            return


def _innermost(text: str) -> tuple[int, int] | None:
    """The first pair of braces without any in it."""
    start = -1
    for at, char in enumerate(text):
        if char == "{":
            start = at
        elif char == "}" and start >= 0:
            return start, at
    return None


def _usable(pattern: str) -> bool:
    parts: Iterable[str] = pattern.removeprefix("!").split("/")
    if any(part in ("..", "~") for part in parts) or "\n" in pattern:
        return False
    return Patterns.of([pattern]) is not None


@lru_cache(maxsize=1_024)
def _compiled(patterns: tuple[str, ...]) -> Patterns | None:
    return Patterns.of(patterns)
