"""Whether a new text would put the mark of a hidden secret where the file has the secret itself."""

from collections import Counter

from croze.text.redact import redact
from croze.text.secret_values import MARK

_ALIKE = 0.6
_COMPARED = 100
_LONGEST = 2_000


def copies_mark(old: str, new: str) -> bool:
    """True where `new` holds `<REDACTED>` in a place where `old` doesn't say so itself.

    A line that the file has literally may stay, move or be edited; one that the agent has only seen so
    because a secret was taken out of it may not come back, nor may a line with a mark be added.
    """
    if MARK not in new:
        return False
    own = _marked(old)
    added = _marked(new) - own
    if not added:
        return False
    gone = list((own - _marked(new)).elements())
    hidden = set(_marked(redact(old)[0])) - set(own)
    if added.total() > len(gone) or added.total() > _COMPARED or not hidden.isdisjoint(added):
        return True
    for line in added.elements():
        best = max(gone, key=lambda each: _likeness(line, each))
        likeness = _likeness(line, best)
        if likeness < _ALIKE or line.count(MARK) > best.count(MARK):
            return True
        if any(_likeness(line, each) > likeness for each in hidden):
            return True
        gone.remove(best)
    return False


def _marked(text: str) -> Counter[str]:
    return Counter(line.strip() for line in text.split("\n") if MARK in line)


def _likeness(one: str, other: str) -> float:
    if max(len(one), len(other)) > _LONGEST:
        return 1.0 if one == other else 0.0
    from difflib import SequenceMatcher

    return SequenceMatcher(None, one, other, autojunk=False).ratio()
