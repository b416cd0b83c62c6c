"""Evidence: what later calls quote of the context (paths, identifiers, search lines of edits), and whether
it would still have stood there."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from croze.context.ledger import Entry, Ledger
from croze.context.requests import Call
from croze.context.spans import standing_text, text_of
from croze.types.event import Compacted, Event, ModelSaid, ToolReturned
from croze.types.parts import Text, ToolCall

_WORD = re.compile(r"[A-Za-z_][\w]*(?:[./-]\w+)*")
_NUMBER = re.compile(r"^\s*\d+\s*[|:\t]\s?")
_SEARCH = re.compile(r"^<{5,9} ?SEARCH\s*$(.*?)^={5,9}\s*$", re.MULTILINE | re.DOTALL)
_NEW_TEXT = frozenset(
    ("content", "code_edit", "result", "todos", "items", "instructions", "text", "new_string")
)
"""Arguments that say something new instead of quoting."""
_OLD_TEXT = frozenset(("diff", "old_string", "search"))
SHORTEST_WORD = 5
SHORTEST_LINE = 8


@dataclass(slots=True)
class Evidence:
    """The quotes of a log. `made` maps a request's place to what its reply quotes; `sources` each quote
    to the messages (event and id) that hold it."""

    made: dict[int, frozenset[str]] = field(default_factory=dict)
    sources: dict[str, list[tuple[int, str]]] = field(default_factory=dict)


def evidence_of(events: Sequence[Event], calls: Sequence[Call]) -> Evidence:
    """Find what each reply's calls quote, and where in the log that stands."""
    found = Evidence()
    for call in calls:
        if call.reply is not None:
            quotes = frozenset(_quotes(call.reply.parts))
            if quotes:
                found.made[call.index] = quotes
    every = set[str]().union(*found.made.values())
    words = {quote for quote in every if _WORD.fullmatch(quote)}
    lines = every - words
    for event in events:
        message_id = getattr(event.body, "message_id", "")
        if not message_id or getattr(event.body, "purpose", "main") != "main":
            continue
        for quote in terms(text_of(event.body), words, lines):
            found.sources.setdefault(quote, []).append((event.seq, message_id))
    return found


def _quotes(parts: Iterable[object]) -> Iterable[str]:
    for part in parts:
        if not isinstance(part, ToolCall) or part.error is not None:
            continue
        for name, value in part.args.items():
            for text in _texts(value):
                if name in _OLD_TEXT:
                    olds = _SEARCH.findall(text) if name == "diff" else [text]
                    for old in olds:
                        yield from _lines(old)
                elif name not in _NEW_TEXT:
                    yield from _words(text)


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name not in _NEW_TEXT:
                yield from _texts(item)


def _words(text: str) -> Iterable[str]:
    """Paths and identifiers: words that look like a name, not like a word of English."""
    for word in _WORD.findall(text):
        if len(word) >= SHORTEST_WORD and _is_telling(word):
            yield word


def _is_telling(word: str) -> bool:
    return (
        any(c in "/._" or c.isdigit() for c in word)
        or (not word.islower() and not word.isupper() and not word.istitle())
    )  # fmt: skip


def _lines(text: str) -> Iterable[str]:
    for line in text.splitlines():
        stripped = _NUMBER.sub("", line).strip()
        if len(stripped) >= SHORTEST_LINE:
            yield stripped


def terms(text: str, words: set[str], lines: set[str]) -> set[str]:
    """Those of the `words` and `lines` that a text holds; numbers before its lines don't count."""
    found = words.intersection(_WORD.findall(text))
    if lines:
        found |= lines.intersection(_lines(text))
    return found


@dataclass(slots=True)
class Score:
    """How much of what was quoted stood in the context when it was, weighed by its characters."""

    quoted: int = 0
    there: int = 0
    lost: dict[str, int] = field(default_factory=dict)

    @property
    def share(self) -> float | None:
        return self.there / self.quoted if self.quoted else None

    def judge(
        self,
        found: Evidence,
        call: Call,
        ledger: Ledger,
        stubs: Mapping[str, str],
        summary: str,
        *,
        upto: int,
    ) -> None:
        """Hold the quotes of a reply against the context that it was made from; `upto` is the last event
        of the log that the request could know."""
        for quote in found.made.get(call.index, ()):
            known = there = False
            sources = found.sources.get(quote, [])
            for at in range(bisect_right(sources, upto, key=_seq) - 1, -1, -1):
                entry = ledger.by_id.get(sources[at][1])
                if entry is None:
                    continue  # undone
                known = True
                if _holds(entry, stubs, quote):
                    there = True
                    break
            if not known:
                continue  # nothing that the model was ever shown: it knew this, or made it up
            self.quoted += len(quote)
            if there or quote in summary:
                self.there += len(quote)
            else:
                self.lost[quote] = self.lost.get(quote, 0) + 1


def _seq(source: tuple[int, str]) -> int:
    return source[0]


def _holds(entry: Entry, stubs: Mapping[str, str], quote: str) -> bool:
    if entry.standing == "full" and not entry.cut:
        return True
    if entry.standing in ("hidden", "summarised"):
        return False
    body = entry.event.body if entry.event is not None else None
    if entry.cut and isinstance(body, ModelSaid):
        return quote in _cut_text(body, entry)
    if isinstance(body, ToolReturned):
        return quote in standing_text(entry, body, stubs)
    return quote in (stubs.get(entry.id) or "")


def _cut_text(body: ModelSaid, entry: Entry) -> str:
    """What is left of a reply of which arguments were cut."""
    pieces: list[str] = []
    for part in body.parts:
        match part:
            case Text():
                pieces.append(part.text)
            case ToolCall():
                cut = entry.cut.get(part.id, {})
                pieces += [cut.get(name, str(value)) for name, value in part.args.items()]
            case _:
                pass
    return "\n".join(pieces)


def add_stubs(stubs: dict[str, str], body: Compacted) -> None:
    """Remember what stands for the messages that a compaction replaced."""
    stubs.update(body.replaced)
