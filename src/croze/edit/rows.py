"""The changes that lead from some lines to others, and the plan whose result ends as wanted."""

from collections.abc import Sequence

from croze.edit.values import Change, EditPlan, Refusal

_ALIGNED = 20_000
"""Lines of a differing middle, above which it is one change."""


def split(text: str) -> list[str]:
    """The lines of a text (LF) without their ends, as a plan counts them: an empty text has none."""
    return text.removesuffix("\n").split("\n") if text else []


def given(text: str) -> tuple[str, ...]:
    """The lines that somebody wrote as new text: any line ends, with or without the last one."""
    return tuple(split(text.replace("\r\n", "\n")))


def finished(
    text: str, changes: Sequence[Change], notes: tuple[str, ...], strategy: str, *, final: bool
) -> EditPlan | Refusal:
    """The plan whose result ends in a newline or not, as `final` says.

    A plan ends as its text does, so it is made on the text with or without that newline.
    """
    if (text.endswith("\n") or not text) == final:
        return EditPlan(text, tuple(changes), notes, strategy)
    count = len(split(text)) + sum(len(c.lines) - (c.end - c.start) for c in changes)
    if count:
        if not text or text.endswith("\n\n") or text == "\n":
            what = "A final newline can't be left out after these lines. Nothing was changed."
            return Refusal("malformed_patch", what, "Let the new text end in a newline.")
        text = text + "\n" if final else text[:-1]
    return EditPlan(text, tuple(changes), notes, strategy)


def changes(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """What makes `new` of `old`; lines that are the same stay out of it."""
    shorter = min(len(old), len(new))
    head = 0
    while head < shorter and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    first, second = old[head : len(old) - tail], new[head : len(new) - tail]
    if not first and not second:
        return []
    if not first or not second or len(first) + len(second) > _ALIGNED:
        return [Change(head, head + len(first), tuple(second))]
    from difflib import SequenceMatcher

    return [
        Change(head + a, head + b, tuple(second[c:d]))
        for kind, a, b, c, d in SequenceMatcher(None, first, second).get_opcodes()
        if kind != "equal"
    ]
