"""Regular expressions that a model writes: only those that can't keep the whole program busy."""

import re

LONGEST = 300
MOST_REPEATS = 3
MOST_LINES = 60
LONGEST_LINE = 500
"""How much is looked at: the last lines of a text, and the end of each."""


class Pattern:
    """A regular expression that is looked for line by line, `^` and `$` being a line's ends.

    Raises ValueError, with a text for the model, for one that is wrong or could take too long: with a
    repeat of a group that itself holds a repeat or a choice, or with too many repeats.
    """

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise ValueError(f"it is longer than {LONGEST} characters")
        _check(text)
        try:
            self._compiled = re.compile(text)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(str(error)) from error

    def found_in(self, text: str) -> bool:
        """Whether one of the last lines matches."""
        lines = text.split("\n")[-MOST_LINES:]
        return any(self._compiled.search(line[-LONGEST_LINE:]) for line in lines)


def _check(text: str) -> None:
    repeats, in_class, at = 0, False, 0
    heavy = [False]
    closed = False
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 2
            closed = False
            continue
        if in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
            at += text[at + 1 : at + 2] == "^"
            at += text[at + 1 : at + 2] == "]"
        elif char in "*+" or re.match(r"\{\d*,?\d*\}", text[at:]):
            repeats += 1
            if closed or repeats > MOST_REPEATS:
                raise ValueError(
                    f"it may hold at most {MOST_REPEATS} repeats, and none of a group with a repeat or "
                    "a choice in it"
                )
            heavy[-1] = True
        elif char == "(":
            heavy.append(False)
        elif char == "|":
            heavy[-1] = True
        closed = False
        if char == ")" and not in_class and len(heavy) > 1:
            closed = heavy.pop()
            heavy[-1] = heavy[-1] or closed
        at += 1
