"""Takes secrets out of text before anything stores, shows or sends it.

Provider keys are known by their prefixes, other secrets by what stands before them. Every rule has an
anchor, a short literal that is searched for first; its pattern is tried only there, so clean text costs
little. Values of fields such as `password` are secrets unless they look like code, a placeholder or a
reference.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from croze.text.secret_values import (
    is_placeholder,
    is_reference,
    is_secret_text,
    is_secret_word,
    looks_random,
)

MARK = "<REDACTED>"
_PASSES = 4
"""A replacement can expose a new left edge; the second pass finds it, more are for made-up text."""


class Prefix(NamedTuple):
    """A key that is known by how it begins. `random`: the rest must look random too, because words
    joined by hyphens begin so as well."""

    name: str
    pattern: str
    random: bool = False


PREFIXES: tuple[Prefix, ...] = (
    Prefix("OpenAI, Anthropic, DeepSeek, OpenRouter", r"sk-[\w\-]{20,}", random=True),
    Prefix("Stripe", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    Prefix("webhook", r"whsec_[A-Za-z0-9+/=]{20,200}"),
    Prefix("Google client", r"GOCSPX-[\w\-]{20,}"),
    Prefix("GitHub", r"gh[pousr]_[A-Za-z0-9]{30,}"),
    Prefix("GitHub, fine-grained", r"github_pat_\w{22,}"),
    Prefix("GitLab", r"gl(?:pat|ptt|rt|dt|soat|cbt|ft|agent)-[\w\-.]{20,300}"),
    Prefix("Slack", r"xox[abeoprs]-[A-Za-z0-9\-]{10,}"),
    Prefix("Slack app", r"xapp-\d-[A-Za-z0-9\-]{10,}"),
    Prefix("npm", r"npm_[A-Za-z0-9]{36,}"),
    Prefix("PyPI", r"pypi-[\w\-]{50,}"),
    Prefix("Hugging Face", r"hf_[A-Za-z0-9]{30,}"),
    Prefix("Groq", r"gsk_[A-Za-z0-9]{30,}"),
    Prefix("xAI", r"xai-[A-Za-z0-9]{30,}"),
)
"""Each has a hyphen or underscore with at least ten characters of the key behind it."""


class Rule(NamedTuple):
    """A secret known by its surroundings. `anchor` is a literal (in lower case: found in any case);
    `pattern` is matched there, its group `v`, else the whole match, is the secret."""

    name: str
    anchor: str
    pattern: str
    random: bool = False


_EDGE = r"(?:(?<![\w\-.])|(?<=\\[nrt]))"
_HEADER = r"authorization\\?[\"']?\]?\s{0,4}(?:[:=,]|=>)\s{0,4}(?:[fbr]?\\?[\"'`])?"
RULES: tuple[Rule, ...] = (
    Rule("Google", "AIza", rf"{_EDGE}AIza[\w\-]{{35,}}"),
    Rule("Google access", "ya29.", rf"{_EDGE}ya29\.[\w\-]{{20,}}"),
    Rule("AWS key id", "AKIA", rf"{_EDGE}AKIA[A-Z0-9]{{16}}(?![A-Za-z0-9])"),
    Rule("AWS session key id", "ASIA", rf"{_EDGE}ASIA[A-Z0-9]{{16}}(?![A-Za-z0-9])"),
    Rule("JWT", "eyJ", rf"{_EDGE}eyJ[\w\-]{{8,}}\.eyJ[\w\-]{{8,}}\.[\w\-]{{8,}}"),
    Rule("Slack hook", "hooks.slack.com", r"hooks\.slack\.com/services/(?P<v>\w+/\w+/\w{16,})"),
    Rule(
        "private key",
        "-----BEGIN ",
        r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
        r"(?=[^<]{0,300}?[A-Za-z0-9+/=]{32})"
        r"(?P<v>(?:(?!-----)[A-Za-z0-9+/=:,.\-\s|>#*\"'\\]){32,})",
    ),
    Rule(
        "password in an address",
        "://",
        r"://[^\s/:@\"'<>`(){}\[\]]{0,100}:(?P<v>[^\s/@\"'<>`]{1,200})@(?=[\w.\[\-])",
    ),
    Rule(
        "header",
        "authorization",
        _HEADER + r"(?:bearer|basic|token|digest|apikey|bot)\s+"
        r"(?P<v>(?=\w{0,200}(?-i:[A-Z0-9]))[\w\-.~+/=:]{8,})",
    ),
    Rule(
        "bare header",
        "authorization",
        _HEADER.replace(",", "") + r"(?P<v>[\w\-.~+/=:]{8,})",
        random=True,
    ),
    Rule("bearer", "bearer", r"bearer[ \t]+(?P<v>[\w\-.~+/]{16,}=*)", random=True),
    Rule("netrc", " login ", r" login\s+\S{1,100}\s+password\s+(?P<v>[^\s\"'<>]{4,})"),
)

FIELD_WORDS = ("password", "passwd", "passphrase", "passcode", "pwd", "secret", "credential")
"""Words that end the name of a field whose value is always a secret."""
WEAK_FIELD_WORDS = ("token", "auth")
"""Words that often end other names too: the value has to look random."""
_KEY_LEADS_TEXT = """
api access secret private encryption signing account master auth shared storage subscription
service deploy app client
"""
KEY_LEADS = tuple(_KEY_LEADS_TEXT.split())
"""What stands before `key` where it names a secret."""
_WEAK_LEADS_TEXT = """
auth access refresh bearer session id api bot oauth csrf github gitlab npm
"""
TOKEN_LEADS = tuple(_WEAK_LEADS_TEXT.split())
"""What stands before `token` where its value is always a secret."""
_OTHER_LEADS_TEXT = """
page next continuation cursor sync pad eos bos unk sep mask cls stop end start special prompt
input output max min num
"""
OTHER_LEADS = tuple(_OTHER_LEADS_TEXT.split())
"""`next_page_token` and `eos_token` are no secrets."""

_EDGED_PREFIXES = re.compile(
    r"(?:(?<![\w\-])|(?<=\\[nrt]))(?:"
    + "|".join(f"(?P<p{n}>{prefix.pattern})" for n, prefix in enumerate(PREFIXES))
    + ")"
)
# A pattern that begins with one literal character is searched for by memchr.
_PIVOTS = (
    re.compile(r"-(?<=[ktXbisp1-9a-f]-)(?=[\w\-.]{10})"),
    re.compile(r"_(?<=[a-z]_)(?=[A-Za-z0-9+/]{16})"),
)
_RULES = [
    (rule, re.compile(rule.pattern, re.IGNORECASE if rule.anchor.islower() else 0))
    for rule in RULES
]
_FIELDS = (*FIELD_WORDS, *WEAK_FIELD_WORDS, "key")
_KEY_LEAD = re.compile(rf".*(?:{'|'.join(KEY_LEADS)})[_\-. ]?\Z", re.DOTALL)
_TOKEN_LEAD = re.compile(rf".*(?:{'|'.join(TOKEN_LEADS)})[_\-. ]?\Z", re.DOTALL)
_OTHER_LEAD = re.compile(rf".*(?:{'|'.join(OTHER_LEADS)})[_\-. ]?\Z", re.DOTALL)
_LEAD = 14
_ASSIGN = re.compile(
    r"s?(?:_?\d{1,3})?(?![A-Za-z0-9_\-])(?:\\?[\"'])?\]?"
    r"(?:(?P<wide>\s{0,8}(?::=|=>|:\s{0,4}[A-Za-z_][\w.\[\]| ]{0,40}?\s{0,4}=(?=\s{0,4}[\"'])"
    r"|[:=](?![=:>]))[ \t]{0,20})|(?P<xml>>)|(?P<blank>[ \t]{1,20}(?=[^\s=:])))"
    r"(?:[fbruFBRU]{0,2}(?P<open>\\?[\"'`]))?"
)
_BARE = re.compile(r"[^\s\"'`<>,;]{1,200}")
_URL_VALUE = re.compile(r"[^\s\"'`<>,;&]{1,200}")
_BARE_REST = re.compile(r"[^\s\"'`<>,;&]*")
_LINE_REST = re.compile(r"[ \t]*(?:\Z|[\r\n]|[ \t]#)")
_PROSE_REST = re.compile(r"[.)]?(?:[.)]|[ \t]+[A-Za-z])")
_LINE_LEAD = re.compile(r"\s*(?:\d+\s*[|:]?\s+|[+\-]\s*|(?:export|set|ENV)\s+)*[\w.\-]*\Z")

Span = tuple[int, int]


def redact(text: str) -> tuple[str, int]:
    """The text with every secret replaced by `<REDACTED>`, and how many there were.

    Only the secret part is replaced; names, quotes and hosts stay. Redacting twice changes nothing.
    """
    total = 0
    for _ in range(_PASSES):
        spans = _merge(_find(text))
        if not spans:
            break
        pieces: list[str] = []
        at = 0
        for start, end in spans:
            pieces += (text[at:start], MARK)
            at = end
        text = "".join((*pieces, text[at:]))
        total += len(spans)
    return text, total


def redact_value(value: Any) -> tuple[Any, int]:
    """The same for JSON-like values: strings anywhere, and values under a secret's key."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        total = 0
        pairs: dict[Any, Any] = {}
        for key, item in value.items():
            if isinstance(item, str) and isinstance(key, str) and _is_secret_item(key, item):
                pairs[key], count = MARK, 1
            else:
                pairs[key], count = redact_value(item)
            total += count
        return pairs, total
    if isinstance(value, list | tuple):
        done = [redact_value(item) for item in value]
        items = [item for item, _ in done]
        return (items if isinstance(value, list) else tuple(items)), sum(n for _, n in done)
    return value, 0


def _find(text: str) -> Iterator[Span]:
    for pivot in _PIVOTS:
        for hit in pivot.finditer(text):
            if span := _prefixed(text, hit.start()):
                yield span
    low = text.lower()
    if len(low) != len(text):  # a few letters grow when lowered; positions would not fit
        low = "".join(char.lower() if char.isascii() else char for char in text)
    for rule, pattern in _RULES:
        after = 0
        for start in _hits(low if rule.anchor.islower() else text, rule.anchor):
            match = pattern.match(text, start) if start >= after else None
            if not match:
                continue
            span = match.span("v" if "v" in pattern.groupindex else 0)
            after = span[1]
            if _is_known_secret(text[span[0] : span[1]], rule):
                yield span
    for word in _FIELDS:
        after = 0
        for start in _hits(low, word):
            found = _field(text, low, start, word) if start >= after else None
            if found:
                after = found[1]
                yield found


def _hits(text: str, literal: str) -> Iterator[int]:
    at = text.find(literal)
    while at >= 0:
        yield at
        at = text.find(literal, at + len(literal))


def _prefixed(text: str, pivot: int) -> Span | None:
    start = pivot
    while (
        start > pivot - 12 and start > 0 and (text[start - 1].isalnum() or text[start - 1] == "_")
    ):
        start -= 1
    if text[start - 1 : start] == "\\" and text[start] in "nrt":  # an escape in quoted text
        start += 1
    match = _EDGED_PREFIXES.match(text, start)
    if not match or match.lastgroup is None:
        return None
    random = PREFIXES[int(match.lastgroup[1:])].random
    value = match.group()
    if is_placeholder(value) or (random and not looks_random(value)):
        return None
    return match.span()


def _is_known_secret(value: str, rule: Rule) -> bool:
    if rule.name == "private key":
        return True
    if is_placeholder(value) or (rule.anchor == "://" and is_reference(value)):
        return False
    return looks_random(value) or not rule.random


def _field(text: str, low: str, start: int, word: str) -> Span | None:
    """The value of the field whose name ends with the word at `start`, if that is a secret."""
    assign = _ASSIGN.match(text, start + len(word))
    if not assign:
        return None
    strong = _strength(word, low[max(0, start - _LEAD) : start])
    if strong is None:
        return None
    begin = assign.end()
    quote = assign.group("open")
    if not quote:
        return _bare(text, start, begin, assign, strong)
    if assign.group("blank") and not text.startswith("--", _name_start(text, start)):
        return None
    close = text.find(quote, begin, begin + 4000)
    if close < 0 or text.find("\n", begin, close) >= 0:
        return None
    return (begin, close) if is_secret_text(text[begin:close], strong=strong) else None


def _bare(text: str, start: int, begin: int, assign: "re.Match[str]", strong: bool) -> Span | None:
    """An unquoted value: what is one depends on whether this is code, a setting, a flag, an address."""
    name = _name_start(text, start)
    before = text[name - 1 : name]
    flag = text.startswith("--", name)
    if (assign.group("xml") and before != "<") or (assign.group("blank") and not flag):
        return None
    delimited = before in tuple("?&;")
    match = (_URL_VALUE if delimited else _BARE).match(text, begin)
    if not match:
        return None
    value = match.group() if delimited else match.group().rstrip(")]}")
    end = begin + len(value)
    wide = assign.group("wide") or ""
    if assign.group("xml") and not text.startswith("</", end):
        return None
    last = bool(_LINE_REST.match(text, end))
    line = text.rfind("\n", max(0, start - 100), start) + 1
    alone = last and (line > 0 or start < 100) and bool(_LINE_LEAD.match(text[line:start]))
    if delimited or assign.group("xml"):
        setting = "value"
    elif assign.group("blank"):
        setting = "code" if value.isalpha() or value.startswith("-") else "value"
    elif wide == "=" and (alone or flag or text[start : begin - 1].isupper()):
        setting = "ini" if "(" in value or "[" in value else "value"
    elif wide.strip() == ":" and last:
        setting = "yaml"
    else:
        spoken = wide.strip() == ":" and any(map(str.isdigit, value))
        setting = "ini" if alone or (spoken and _PROSE_REST.match(text, end)) else "code"
    if not is_secret_word(value, strong=strong, setting=setting):
        return None
    rest = _BARE_REST.match(text, end) if len(value) == 200 else None
    return begin, rest.end() if rest else end


def _name_start(text: str, at: int) -> int:
    """Where the name begins that holds position `at`; at most 40 characters before it."""
    low = max(0, at - 40)
    while at > low and (text[at - 1].isalnum() or text[at - 1] in "_-."):
        at -= 1
    return at


def _strength(word: str, lead: str) -> bool | None:
    """True for a field that holds secrets only, False for a weak one, None for no such field."""
    if word == "key":
        return True if _KEY_LEAD.match(lead) else None
    if word in FIELD_WORDS:
        return True
    if _OTHER_LEAD.match(lead):
        return None
    return bool(word == "token" and _TOKEN_LEAD.match(lead))


def _is_secret_item(key: str, value: str) -> bool:
    low = key.lower()
    for word in _FIELDS:
        if low.endswith(word):
            strong = _strength(word, low[: -len(word)][-_LEAD:])
            return strong is not None and is_secret_text(value, strong=strong)
    return False


def _merge(spans: Iterator[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
