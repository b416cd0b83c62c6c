"""Which results a session can best do without: superseded ones first, then those that were not quoted for
longest, listings and logs before reads."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from croze.context.kinds import ToolKind, command_of, kind_of, path_of, unwrapped
from croze.context.ledger import Entry
from croze.types.event import ModelSaid, ToolReturned
from croze.types.parts import Text, ToolCall

SMALL = 150
"""Tokens below which a result isn't worth a stub."""
WEIGHTS: dict[ToolKind, float] = {
    "list": 4, "shell": 3, "todo": 3, "search": 2, "web": 2, "edit": 2, "other": 2, "talk": 1, "read": 1,
}  # fmt: skip
_WORD = re.compile(r"[A-Za-z_]\w*(?:[./-]\w+)*")
_NUMBER = re.compile(r"^\s*\d+\s*[|:\t]\s?")
_SHORTEST_WORD = 5
_SHORTEST_LINE = 8
_COMMON = 0.2
"""A word that stands in a larger share of the results says nothing about any of them."""


class Candidate(Struct, frozen=True):
    """A result that could be cleared: `group` 0 was read again or made again later, 1 is a read of a
    file that was edited since, 2 any other; `age` are the steps since it was quoted, times its weight."""

    entry: Entry
    group: int
    age: float


def candidates(entries: Sequence[Entry], step: int, before: int) -> list[Candidate]:
    """The results before the event `before` that may be cleared, those first that are missed least.

    Kept are small ones and open errors: failures that no success of the same kind on the same subject
    has followed.
    """
    results = [
        e for e in entries if e.kind == "result" and e.standing not in ("hidden", "summarised")
    ]
    groups = _groups(results)
    errors = open_errors(results)
    possible = [
        entry
        for entry in results
        if entry.seq < before
        and entry.standing in ("full", "digested")
        and entry.tokens >= SMALL
        and entry.id not in errors
    ]
    quoted = _quoted(entries, possible)
    found = []
    for entry in possible:
        weight = WEIGHTS[kind_of(*called(entry))]
        age = (step - quoted.get(entry.id, entry.step) + 1) * weight
        found.append(Candidate(entry, groups.get(entry.id, 2), age))
    return sorted(found, key=lambda c: (c.group, -c.age, c.entry.seq))


def terms(text: str) -> set[str]:
    """What could be quoted of a text: paths and identifiers, and whole lines without their numbers."""
    words = {word for word in _WORD.findall(text) if len(word) >= _SHORTEST_WORD and _tells(word)}
    lines = (_NUMBER.sub("", line).strip() for line in text.splitlines())
    return words | {line for line in lines if len(line) >= _SHORTEST_LINE}


def _tells(word: str) -> bool:
    """Whether a word looks like a name and not like a word of prose."""
    return not word.isalpha() or not (word.islower() or word.isupper() or word.istitle())


def called(entry: Entry) -> tuple[str, dict[str, Any]]:
    """The tool that was meant, and its arguments."""
    name, args = unwrapped(entry.name, entry.args)
    return name, dict(args)


def open_errors(results: Sequence[Entry]) -> set[str]:
    """The message ids of failed results that nothing has made good since."""
    good: set[tuple[str, str]] = set()
    found: set[str] = set()
    for entry in reversed(results):
        name, args = called(entry)
        subject = kind_of(name, args), path_of(args) or command_of(args)
        if entry.ok:
            good.add(subject)
        elif subject not in good:
            found.add(entry.id)
    return found


def _groups(results: Sequence[Entry]) -> dict[str, int]:
    """The results that later ones supersede: the same call again, a read of the same lines, an edit."""
    later: set[bytes] = set()
    reads: dict[str, list[tuple[float, float]]] = {}
    edited: set[str] = set()
    groups: dict[str, int] = {}
    for entry in reversed(results):
        name, args = called(entry)
        kind, path = kind_of(name, args), path_of(args)
        same = msgspec.json.encode([name, args], order="sorted")
        first, last = _lines(args)
        again = kind == "read" and any(a <= first and last <= b for a, b in reads.get(path, ()))
        if same in later or again:
            groups[entry.id] = 0
        elif kind == "read" and path and path in edited:
            groups[entry.id] = 1
        if not entry.ok or _points_back(entry):
            continue
        later.add(same)
        if kind == "read" and path and not args.get("query"):
            reads.setdefault(path, []).append((first, last))
        elif kind == "edit" and path:
            edited.add(path)
    return groups


def _points_back(entry: Entry) -> bool:
    """Whether a result says that an earlier one still holds: then that is what the model reads."""
    body = entry.event.body if entry.event is not None else None
    return isinstance(body, ToolReturned) and body.look is not None and bool(body.look.unchanged)


def _lines(args: dict[str, Any]) -> tuple[float, float]:
    def number(name: str, otherwise: float) -> float:
        try:
            return float(args[name])
        except (KeyError, TypeError, ValueError):
            return otherwise

    return number("start_line", 1), number("end_line", float("inf"))


def _quoted(entries: Sequence[Entry], results: Sequence[Entry]) -> dict[str, int]:
    """The last step in which a reply or a call quoted each result: a path, an identifier or a line of
    it that few other results hold."""
    used: dict[str, int] = {}
    for entry in entries:
        if entry.kind == "reply":
            for text in _said(entry):
                for term in terms(text):
                    used[term] = entry.step
    held = [(entry, _held(entry) & used.keys()) for entry in results]
    counts = Counter(term for _, found in held for term in found)
    most = max(3, _COMMON * len(results))
    last: dict[str, int] = {}
    for entry, found in held:
        steps = [used[term] for term in found if counts[term] <= most]
        last[entry.id] = max([entry.step, *steps])
    return last


def _said(entry: Entry) -> Iterable[str]:
    body = entry.event.body if entry.event is not None else None
    if isinstance(body, ModelSaid):
        for part in body.parts:
            if isinstance(part, Text):
                yield part.text
            elif isinstance(part, ToolCall):
                yield from _texts(part.args)


def _held(entry: Entry) -> set[str]:
    body = entry.event.body if entry.event is not None else None
    found = terms(body.text) if isinstance(body, ToolReturned) else set()
    for text in _texts(entry.args):
        found |= terms(text)
    return found


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
