"""The patterns of one `.gitignore`, matched as git does. Source: gitignore(5), and git's wildmatch.

Most patterns are names or endings and need no regular expression; that keeps the start of a session short.
"""

import re
from collections.abc import Iterable

from msgspec import Struct, field

_META = frozenset("*?[\\")
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}


class _Never(Exception):
    """A pattern that matches nothing, such as one with an open bracket."""


class _Pattern(Struct, frozen=True):
    """`order` is its place among the others: the last that matches decides. `excludes` is false after `!`."""

    order: int
    excludes: bool
    folders_only: bool


class Patterns(Struct):
    """The patterns of one file, for paths relative to its folder."""

    _names: dict[str, list[_Pattern]] = field(default_factory=dict)
    _endings: list[tuple[str, _Pattern]] = field(default_factory=list)
    _regexes: list[tuple[str, bool, _Pattern]] = field(default_factory=list)
    _all_endings: tuple[str, ...] = ()
    _any_name: re.Pattern[str] | None = None
    _any_path: re.Pattern[str] | None = None

    @classmethod
    def of(cls, lines: Iterable[str]) -> "Patterns | None":
        """The patterns that these lines hold, None where they hold none."""
        found = cls()
        for order, line in enumerate(lines):
            found._add(order, line.removeprefix("\ufeff") if order == 0 else line)
        found._all_endings = tuple(ending for ending, _ in found._endings)
        found._any_name = _any_of(text for text, anchored, _ in found._regexes if not anchored)
        found._any_path = _any_of(text for text, anchored, _ in found._regexes if anchored)
        return found if found._names or found._endings or found._regexes else None

    def verdict(self, path: str) -> bool | None:
        """Whether the last pattern that matches a path (a folder's ends in `/`) excludes it; None where
        none does. What lies in an excluded folder is not looked at here."""
        is_folder = path.endswith("/")
        if is_folder:
            path = path[:-1]
        name = path[path.rfind("/") + 1 :]
        hits = list(self._names.get(name, ()))
        if self._all_endings and name.endswith(self._all_endings):
            hits += [pattern for ending, pattern in self._endings if name.endswith(ending)]
        if self._any_name is not None and self._any_name.fullmatch(name):
            hits += [p for text, anchored, p in self._regexes if not anchored and _fits(text, name)]
        if self._any_path is not None and self._any_path.fullmatch(path):
            hits += [p for text, anchored, p in self._regexes if anchored and _fits(text, path)]
        last: _Pattern | None = None
        for pattern in hits:
            if (is_folder or not pattern.folders_only) and (
                last is None or pattern.order > last.order
            ):
                last = pattern
        return None if last is None else last.excludes

    def _add(self, order: int, line: str) -> None:
        text = _trimmed(line)
        if not text or text.startswith("#"):
            return
        excludes = not text.startswith("!")
        text = text if excludes else text[1:]
        folders_only = text.endswith("/")
        text = text.removesuffix("/")
        anchored = "/" in text
        text = text.removeprefix("/")
        if not text:
            return
        pattern = _Pattern(order, excludes, folders_only)
        if not anchored and _META.isdisjoint(text):
            self._names.setdefault(text, []).append(pattern)
        elif not anchored and text[0] == "*" and len(text) > 1 and _META.isdisjoint(text[1:]):
            self._endings.append((text[1:], pattern))
        else:
            try:
                self._regexes.append((_regex(text), anchored, pattern))
            except _Never:
                return


def _trimmed(line: str) -> str:
    """Without trailing spaces, save one that a backslash keeps."""
    text = line.rstrip("\r\n")
    bare = text.rstrip(" ")
    slashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if slashes % 2 and len(bare) < len(text) else bare


def _fits(text: str, subject: str) -> bool:
    return re.fullmatch(text, subject, re.DOTALL) is not None


def _any_of(texts: Iterable[str]) -> re.Pattern[str] | None:
    every = "|".join(texts)
    return re.compile(every, re.DOTALL) if every else None


def _regex(text: str) -> str:
    """A pattern as a regular expression for a whole path (or name)."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == "*":
            end = at
            while end < len(text) and text[end] == "*":
                end += 1
            part, at = _stars(text, at, end)
            parts.append(part)
            continue
        at += 1
        if char == "?":
            parts.append("[^/]")
        elif char == "[":
            part, at = _bracket(text, at)
            parts.append(part)
        elif char == "\\":
            if at == len(text):
                raise _Never
            parts.append(re.escape(text[at]))
            at += 1
        else:
            parts.append(re.escape(char))
    return "".join(parts)


def _stars(text: str, start: int, end: int) -> tuple[str, int]:
    """Stars from `start` to `end`: two that stand for whole components, or else like one."""
    opens = start == 0 or text[start - 1] == "/"
    if end - start == 2 and opens:
        if end < len(text) and text[end] == "/":
            return "(?:.*/)?", end + 1
        if end == len(text) and start:
            return ".+", end
    return "[^/]*", end


def _bracket(text: str, at: int) -> tuple[str, int]:
    """The set of characters that begins after its bracket; never one with a slash in it."""
    negated = at < len(text) and text[at] in "!^"
    at += negated
    items: list[str] = []
    first = True
    while True:
        if at >= len(text):
            raise _Never
        if text[at] == "]" and not first:
            break
        first = False
        if text.startswith("[:", at):
            end = text.find(":]", at)
            if end < 0 or text[at + 2 : end] not in _CLASSES:
                raise _Never
            items.append(_CLASSES[text[at + 2 : end]])
            at = end + 2
            continue
        low, at = _one(text, at)
        if at + 1 < len(text) and text[at] == "-" and text[at + 1] != "]":
            high, at = _one(text, at + 1)
            if low <= high:
                items.append(f"{re.escape(low)}-{re.escape(high)}")
        else:
            items.append(re.escape(low))
    if not items:
        return ("[^/]" if negated else "(?!)"), at + 1
    return f"(?!/)[{'^' if negated else ''}{''.join(items)}]", at + 1


def _one(text: str, at: int) -> tuple[str, int]:
    """One character of a set, a backslash taken off."""
    if text[at] == "\\":
        at += 1
        if at >= len(text):
            raise _Never
    return text[at], at + 1
