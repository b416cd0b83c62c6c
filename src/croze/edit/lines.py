"""A text's lines, and the looser readings of them, each made when it is first needed."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property

TOO_LONG = 2_000
"""Characters above which a line is matched exactly or not at all."""

_FOLDED = {
    "'": "‘’‚‛′",
    '"': "“”„‟″",
    "-": "‐‑‒–—―−",
    "...": "…",
    " ": "\u00a0\u2007\u2009\u202f",
}
TYPOGRAPHIC = {odd: plain for plain, all_odd in _FOLDED.items() for odd in all_odd}
_TYPOGRAPHIC = re.compile("[" + "".join(TYPOGRAPHIC) + "]")
_HITS = 1_000

_COMMENT = re.compile(
    r"//|/\*|\*/|\* |\*$|<!--|--\s|;|%|\"\"\"|#(?!(?:include|define|undef|if|ifdef|ifndef|else|elif|endif|pragma|error)\b)"
)


class Lines:
    """The lines of a text (LF), without the empty one after a final newline."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.all: list[str] = text.removesuffix("\n").split("\n") if text else []
        self._places: dict[tuple[str, ...], list[int]] = {}

    @cached_property
    def bare(self) -> list[str]:
        """Without blanks at their ends, and with plain quotes and dashes."""
        if max(map(len, self.all), default=0) > TOO_LONG:
            return [line if len(line) > TOO_LONG else bare(line) for line in self.all]
        return [line.strip(" \t") for line in fold(self.text).removesuffix("\n").split("\n")]

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the text, as identifiers are written."""
        return frozenset(re.findall(r"[^\W\d]\w*", self.text))

    @cached_property
    def _joined(self) -> str:
        return f"\n{self.text}" if self.text.endswith("\n") else f"\n{self.text}\n"

    @cached_property
    def _bare(self) -> str:
        return _framed(self.bare)

    @cached_property
    def _solid(self) -> tuple[list[int], str]:
        """The lines that aren't blank."""
        places = [at for at, line in enumerate(self.bare) if line]
        return places, _framed(filter(None, self.bare))

    @cached_property
    def _code(self) -> tuple[list[int], str]:
        """The lines that are neither blank nor a comment."""
        places = [at for at, line in enumerate(self.bare) if line and not is_comment(line)]
        return places, _framed(self.bare[at] for at in places)

    def exact(self, wanted: Sequence[str]) -> list[int]:
        """The 0-based lines at which `wanted` stands as whole lines; no lines stand only in no text."""
        if not wanted:
            return [] if self.all else [0]
        return _find(self._joined, wanted) if self.all else []

    def loose(self, wanted: Sequence[str]) -> list[int]:
        """As `exact`, by bare lines; `wanted` are bare lines."""
        if not self.all:
            return []
        key = tuple(wanted)
        if key not in self._places:
            self._places[key] = _find(self._bare, key)
        return self._places[key]

    def has(self, line: str) -> bool:
        """True where a bare line stands somewhere."""
        return f"\n{line}\n" in self._bare

    def sparse(self, wanted: Sequence[str], *, comments: bool) -> list[list[int]]:
        """The lines at which `wanted` (bare, none blank) stands when blank lines, and with `comments`
        also comment lines, are left out."""
        if not self.all or not wanted or not all(map(self.has, wanted)):
            return []
        places, text = self._code if comments else self._solid
        return [places[at : at + len(wanted)] for at in _find(text, wanted)]


def fold(text: str) -> str:
    """`text` with plain quotes, dashes and spaces for typographic ones."""
    if text.isascii():
        return text
    return _TYPOGRAPHIC.sub(lambda found: TYPOGRAPHIC[found[0]], text)


def typographic(text: str) -> set[str]:
    """The typographic characters in `text`."""
    return set() if text.isascii() else set(_TYPOGRAPHIC.findall(text))


def bare(line: str) -> str:
    return fold(line).strip(" \t")


def indent(line: str) -> str:
    """The blanks before a line's text."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def is_comment(line: str) -> bool:
    """True of a line (bare) that is nothing but a comment in some usual language."""
    return _COMMENT.match(line) is not None


def _framed(lines: Iterable[str]) -> str:
    return "\n" + "\n".join(lines) + "\n"


def _find(text: str, wanted: Sequence[str]) -> list[int]:
    needle = _framed(wanted)
    starts: list[int] = []
    line = last = 0
    at = text.find(needle)
    while at >= 0 and len(starts) < _HITS:
        line += text.count("\n", last, at)
        starts.append(line)
        last, at = at, text.find(needle, at + 1)
    return starts
