"""Redaction of text that comes in pieces: what is passed on, joined, is `redact` of the whole.

Only what may still become (part of) a secret is held back: the word that is being written, and from the
name of a secret's field or the head of a key on what can't be judged yet. Everything else passes at once.
"""

import re
from collections.abc import Callable, Iterator

from croze.text.redact import lowered, secret_spans
from croze.text.regex import Regex
from croze.text.secret_blocks import (
    KEY_BODY,
    KEY_HEAD,
    LOOKBACK,
    MOST_COOKIE,
    block_end,
    column,
)
from croze.text.secret_fields import assigned, undecided
from croze.text.secret_rules import FIELDS, STARTS
from croze.text.secret_values import MARK

MOST_HELD = 65_536
"""Characters of an undecided block that are held back; a longer one is masked as far as it has come."""
_MOST_WORD = 16_384
_REACH = 5_000
"""How much of what has been passed on is kept: a rule looks no farther back."""
_NEAR = 450
"""How far from its anchor a secret stands; what is farther is held back with it."""
_KEPT = 12_000
_WORD = "".join(map(chr, range(0x21, 0x7F)))
_SEGMENT = Regex(r"(?<![\w\-])[\w\-]{1,24}", re.ASCII)
_PARTIAL = frozenset(start[:length] for start in STARTS for length in range(1, len(start)))
_VALUE = Regex(
    r"Q~|sig=|signature=|hooks\.slack\.com/|/api/webhooks/|webhook\.office\.com/", re.IGNORECASE
)
_NEAR_WORDS = (
    "authorization", "bearer", "cookie", "curl", "mysql", "sshpass", "docker", "redis-cli", "twilio",
    "jdbc:oracle", " login ",
)  # fmt: skip
_KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("near", _NEAR_WORDS),
    ("field", FIELDS),
    ("address", ("://",)),
    ("key", ("-----begin ",)),
    ("putty", ("private-lines: ",)),
    ("manifest", ("data:", '"data\\"', '"data"')),
)
"""What may have to do with secrets. Of two that begin at one place the one that is named first counts."""
_HIT = Regex("|".join(f"(?P<{kind}>{'|'.join(map(re.escape, words))})" for kind, words in _KINDS))
_RANKED = tuple((word, kind) for kind, words in _KINDS for word in words)
_GATES = ("pass", "auth", "data")
_LARGE = 500
_LONG = Regex(r"[!-~]{16}")
_SCALAR = Regex(
    r"s?(?:_?\d{1,3})?\\?[\"']?[ \t]{0,40}:[ \t]{0,40}(?P<bar>[|>][0-9+\-]{0,2}[ \t]*(?:#[^\n]*)?\r?(?P<end>\n|\Z))"
)
_ADDRESS = Regex(r"://[^\s/@\"'<>`]{0,301}@?\Z")
_KEY_PART = Regex(r"-----BEGIN [A-Z0-9 ]{0,50}-{0,5}\Z")
_PUTTY = Regex(
    r"Private-Lines: \d{0,4}(?:\s{1,4}[A-Za-z0-9+/=]{1,120}(?![^\s]))*\s*[A-Za-z0-9+/=]{0,120}\Z",
    re.ASCII,
)
_DATA = Regex(r"\"?data\\?\"?[ \t]{0,4}:?[ \t]{0,4}\r?(?:\n|\Z)")
_JSON_DATA = Regex(
    r"\\?\"data\\?\"?[ \t]*(?:\Z|:[ \t]*(?:\Z|\{[^{}]*(?:\Z|\}(?P<rest>(?s:.{0,1000})\Z))))"
)
_KIND = Regex(r"\"kind\\?\"\s{0,4}:\s{0,4}\\?\"\w+\\?\"")


class StreamRedactor:
    """Redacts one text that comes in pieces. `feed` gives what can be passed on, `finish` the rest.

    `before` is text that was passed on earlier and that the new text continues.
    """

    def __init__(self, before: str = "") -> None:
        self._text = before[-_REACH:]
        self._sent = self._scanned = self._word = len(self._text)
        self._hits: list[tuple[int, str, str]] = []
        self._dirty = -_NEAR
        self._wide = (0, -1)
        self._near = self._suspect = -_REACH
        self._judged = 0
        self._look = 0
        self._hold: int | None = None
        self._inside = False
        if before:
            self._scanned = 0
            self._scan()
            self._hits.clear()

    def feed(self, piece: str) -> str:
        """Take the next piece; gives what is decided."""
        if not piece:
            return ""
        before = len(self._text)
        self._text += piece
        self._scan()
        cut = len(piece.rstrip(_WORD))
        if cut:
            self._word = before + cut
        length = len(self._text)
        hold = self._suspicious()
        if length - hold > _MOST_WORD:
            hold = length - _REACH
        undecided = self._undecided()
        if length - undecided > MOST_HELD:
            self._dirty = length
            passed = self._passed(length)
            self._shorten(undecided)
            return passed
        return self._passed(min(hold, undecided))

    def finish(self) -> str:
        """The rest; the redactor can't be fed any more."""
        if self._hits:
            self._dirty = len(self._text)
        return self._passed(len(self._text))

    def _scan(self) -> None:
        """Find what is new and may have to do with secrets."""
        text, scanned = self._text, self._scanned
        base = max(scanned - 16, 0)
        for start, kind, found in _hits_of(lowered(text[base:])):
            start += base
            end = start + len(found)
            if end <= scanned:
                continue
            if kind != "field":  # of a field it shows when what follows it is known
                self._dirty = end
            if kind == "near":
                self._near = end
            else:
                self._hits.append((start, kind, found))
            if kind == "manifest":
                self._wide = (max(0, start - LOOKBACK), start + 100)
            elif found == "cookie" and start > self._wide[1]:
                self._wide = (start, start + MOST_COOKIE)
        if _LONG.search(text, max(scanned - 15, 0)):
            self._dirty = len(text)
        self._scanned = len(text)

    def _suspicious(self) -> int:
        """Where in the word that is being written a key may begin; the text's end where none does."""
        text, word = self._text, self._word
        if self._suspect < word:
            self._suspect = -1
        if self._suspect < 0 and (self._near + _NEAR > word or self._wide[1] > word):
            self._suspect = word
        if self._suspect >= 0:
            return self._suspect
        at = max(self._judged, word)
        self._judged = len(text)
        for segment in _SEGMENT.finditer(text, at):
            start, end = segment.span()
            open_ = end == len(text)
            if open_:
                self._judged = start
            found = segment.group()
            escaped = found[1:] if text[start - 1 : start] == "\\" else found
            if found.startswith(STARTS) or escaped.startswith(STARTS):
                self._suspect = start
                return start
            if open_ and (found in _PARTIAL or escaped in _PARTIAL):
                return start
        last = _VALUE.search(text, max(word, at - 24))
        if last is not None:
            self._suspect = last.end()
            return self._suspect
        return len(text)

    def _undecided(self) -> int:
        """From where on it is open what becomes of the text; its end where nothing is. What is open is
        looked at again when a sixteenth more has come, so that a long block doesn't cost its square."""
        text = self._text
        if self._hold is not None and len(text) < self._look:
            return self._hold
        self._hold = None
        done = 0
        for start, kind, found in self._hits:
            hold = _OPEN[kind](text, start, found)
            if hold is not None:
                self._hold = max(hold, self._sent)
                self._look = len(text) + (len(text) - self._hold) // 16
                break
            if kind == "field" and assigned(text, start, found):
                self._dirty = max(self._dirty, start)
            done += 1
        del self._hits[:done]
        return len(text) if self._hold is None else self._hold

    def _passed(self, upto: int) -> str:
        """Pass on the text up to a place, without secrets."""
        sent = self._sent
        if upto <= sent:
            return ""
        if self._dirty + _NEAR < sent and self._wide[1] < sent and not self._inside:
            out = self._text[sent:upto]
            self._sent = upto
        else:
            out = self._masked(upto)
        if self._sent > _KEPT:
            self._forget()
        return out

    def _masked(self, upto: int) -> str:
        text = self._text
        base = self._base()
        pieces: list[str] = []
        at = self._sent
        inside, self._inside = self._inside, False
        for start, end in secret_spans(text[base:]):
            start, end = start + base, end + base
            if end <= at:
                continue
            if start >= upto:
                break
            if end > upto and start >= at:
                upto = start
                break
            pieces.append(text[at:start])
            if start >= at or not inside:
                pieces.append(MARK)
            at = min(end, upto)
            self._inside = at == upto
        pieces.append(text[at:upto])
        self._sent = max(upto, self._sent)
        return "".join(pieces)

    def _base(self) -> int:
        """Where to begin to look: so far back that every rule sees what it wants to."""
        low = self._sent - 2 * _NEAR
        if self._wide[1] >= self._sent:
            low = min(low, self._wide[0])
        if self._hits:
            low = min(low, self._hits[0][0] - _NEAR)
        if self._inside:
            low = 0
        if low <= 0:
            return 0
        text = self._text
        return text.find("\n", low, low + 200) + 1 or text.find(" ", low, low + 200) + 1 or low

    def _forget(self) -> None:
        """Let go of what no rule looks at any more."""
        drop = self._sent - _REACH
        if self._hits:
            drop = min(drop, self._hits[0][0] - LOOKBACK)
        if drop > _REACH:
            self._move(drop, self._text[drop:])

    def _shorten(self, begin: int) -> None:
        """Let go of the middle of an open block that is masked as far as it has come."""
        tail = self._text.rfind("\n", len(self._text) - 1_000, len(self._text) - 200) + 1
        tail = tail or len(self._text) - 200
        head = self._text[max(0, self._hits[0][0] - LOOKBACK) : begin] if self._hits else ""
        first = self._hits[:1]
        shift = begin - len(head)
        self._text = head + self._text[tail:]
        self._sent = self._scanned = self._word = self._dirty = self._judged = len(self._text)
        self._near = self._suspect = -_REACH
        self._hits = [(start - shift, kind, found) for start, kind, found in first]
        self._wide = (0, len(self._text))
        self._hold = None

    def _move(self, by: int, text: str) -> None:
        self._text = text
        self._sent -= by
        self._scanned -= by
        self._word -= by
        self._dirty -= by
        self._near -= by
        self._suspect = self._suspect - by if self._suspect >= by else -1
        self._judged = max(0, self._judged - by)
        self._look -= by
        self._wide = (max(0, self._wide[0] - by), self._wide[1] - by)
        self._hold = None if self._hold is None else self._hold - by
        self._hits = [(start - by, kind, found) for start, kind, found in self._hits]


def _hits_of(low: str) -> Iterator[tuple[int, str, str]]:
    """Where the words of `_KINDS` stand, apart from each other: place, kind and word."""
    if len(low) < _LARGE:
        for hit in _HIT.finditer(low):
            yield hit.start(), str(hit.lastgroup), hit.group()
        return
    missing = tuple(gate for gate in _GATES if gate not in low)
    places: list[tuple[int, int]] = []
    for rank, (word, _kind) in enumerate(_RANKED):
        if any(gate in word for gate in missing):
            continue
        at = low.find(word)
        while at >= 0:
            places.append((at, rank))
            at = low.find(word, at + 1)
    end = 0
    for at, rank in sorted(places):
        if at >= end:
            word, kind = _RANKED[rank]
            end = at + len(word)
            yield at, kind, word


def _open_field(text: str, start: int, word: str) -> int | None:
    scalar = _SCALAR.match(text, start + len(word))
    if scalar is not None:
        begin = scalar.start("bar")
        if not scalar.group("end"):
            return begin
        ended = block_end(text, scalar.end(), column(text, start))
        return scalar.end() if ended is None else None
    return undecided(text, start, word)


def _open_address(text: str, start: int, _found: str) -> int | None:
    return start + 3 if _ADDRESS.match(text, start) else None


def _open_key(text: str, start: int, _found: str) -> int | None:
    head = KEY_HEAD.match(text, start)
    if head is None:
        return start if _KEY_PART.match(text, start) else None
    body = KEY_BODY.match(text, head.end())
    end = body.end() if body else head.end()
    dashes = len(text) - end <= 4 and not text[end:].strip("-")
    return head.end() if dashes else None


def _open_putty(text: str, start: int, _found: str) -> int | None:
    return start if _PUTTY.match(text, start) else None


def _open_manifest(text: str, start: int, found: str) -> int | None:
    if found.startswith('"'):
        data = _JSON_DATA.match(text, start)
        rest = data.group("rest") if data else None
        return start if data and not (rest and _KIND.search(rest)) else None
    if not _DATA.match(text, start):
        return None
    end = text.find("\n", start)
    if end < 0:
        return start
    return end + 1 if block_end(text, end + 1, column(text, start)) is None else None


_OPEN: dict[str, Callable[[str, int, str], int | None]] = {
    "field": _open_field,
    "address": _open_address,
    "key": _open_key,
    "putty": _open_putty,
    "manifest": _open_manifest,
}
