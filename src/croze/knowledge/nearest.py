"""Which documents, and which parts of them, are nearest to a task, within a number of tokens."""

import math
import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from croze.knowledge.libraries import Document
from croze.text.tokens import estimate

MOST_WORDS = 40
LEAST_PART = 300
"""Tokens that are left at least for a document to be shown in part."""
GAP = "[…]"

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{2,}|[\u4e00-\u9fff]{2,}")
_PARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_+")
_HEADING = re.compile(r"#{1,4} ")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "the and for with that this from into how what when where why all any are can could does should use "
        "using used not but our you your have has had will would please make made add new file files code "
        "project function class does did test tests write read change fix bug error one two its let",
    )
)


class Shown(Struct, frozen=True):
    """A document as it is told: its text, and how many tokens of it are left out."""

    document: Document
    text: str
    left: int = 0


class Choice(Struct, frozen=True):
    """What is told, in the order of the documents, and what isn't, the nearest first."""

    shown: tuple[Shown, ...] = ()
    others: tuple[Document, ...] = ()


def words_of(texts: Iterable[str]) -> tuple[str, ...]:
    """The words that tell what a task is about, without common ones; parts of names too."""
    found: dict[str, None] = {}
    for text in texts:
        for match in _WORD.findall(text):
            for part in dict.fromkeys([match, *_PARTS.split(match)]):
                word = part.lower()
                if len(word) > 2 or not word.isascii():
                    found.setdefault(word)
    return tuple(word for word in found if word not in _COMMON)[:MOST_WORDS]


def choose(documents: Sequence[Document], words: Sequence[str], room: int) -> Choice:
    """Documents whole as long as they fit into `room` tokens, the nearest first, of every library one
    before the second of any; what doesn't fit by its nearest parts."""
    ranked = _ranked(documents, words)
    first: dict[str, int] = {}
    for at in ranked:
        first.setdefault(documents[at].library, at)
    shown: dict[int, Shown] = {}
    waiting = len(first)
    for at in dict.fromkeys([*first.values(), *ranked]):
        document = documents[at]
        share = room // max(1, waiting)
        waiting -= waiting > 0
        if document.tokens <= share:
            shown[at] = Shown(document, document.text)
        elif share >= LEAST_PART:
            text = _parts(document.text, words, share)
            if text:
                left = max(1, document.tokens - estimate(text))
                shown[at] = Shown(document, text, left)
        if at in shown:
            room -= estimate(shown[at].text)
    others = tuple(documents[at] for at in ranked if at not in shown)
    return Choice(tuple(shown[at] for at in sorted(shown)), others)


def _ranked(documents: Sequence[Document], words: Sequence[str]) -> list[int]:
    """The indices of the documents, the nearest first."""
    texts = [document.text.lower() for document in documents]
    names = [document.name.removeprefix(document.library).lower() for document in documents]
    score = _scores(texts, words)
    for at, name in enumerate(names):
        score[at] += sum(1.0 for word in words if word in name)
        score[at] += 0.5 if name.startswith("/readme") else 0.0
    return sorted(range(len(documents)), key=lambda at: (-score[at], names[at].count("/"), at))


def _scores(texts: Sequence[str], words: Sequence[str]) -> list[float]:
    """How much each text says about the words; rare words count more, repetition less and less."""
    scores = [0.0] * len(texts)
    for word in words:
        counts = [text.count(word) for text in texts]
        having = sum(map(bool, counts))
        if having:
            weight = math.log(1 + len(texts) / having)
            for at, count in enumerate(counts):
                scores[at] += weight * count / (count + 2) if count else 0.0
    return scores


def _parts(text: str, words: Sequence[str], room: int) -> str:
    """The parts of a document that are nearest, in its order, with a mark where something is left out."""
    parts = _sections(text)
    scores = _scores([part.lower() for part in parts], words)
    scores[0] += 0.1
    chosen: dict[int, str] = {}
    for at in sorted(range(len(parts)), key=lambda at: (-scores[at], at)):
        price = estimate(parts[at]) + 4
        if price <= room:
            chosen[at] = parts[at]
            room -= price
        elif not chosen:
            chosen[at] = _head(parts[at], room)
            room = 0
    shown: list[str] = []
    before = -1
    for at in sorted(chosen):
        shown += [GAP] if at != before + 1 else []
        shown.append(chosen[at].strip("\n"))
        before = at
    shown += [GAP] if before != len(parts) - 1 or chosen[before] != parts[before] else []
    return "\n".join(shown) if any(part.strip() for part in chosen.values()) else ""


def _head(text: str, room: int) -> str:
    """As many lines from the start as fit; of a long line a part."""
    lines = text.split("\n")
    taken: list[str] = []
    for line in lines:
        price = estimate(line) + 1
        if price > room:
            taken.append(line[: room * 3])
            break
        taken.append(line)
        room -= price
    return "\n".join(taken)


def _sections(text: str) -> list[str]:
    """The text cut before each heading that stands in no fence."""
    parts: list[list[str]] = [[]]
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if found and not fence:
            fence = found[1]
        elif found and found[1] == fence:
            fence = ""
        if not fence and _HEADING.match(line) and parts[-1]:
            parts.append([])
        parts[-1].append(line)
    return ["\n".join(part) for part in parts]
