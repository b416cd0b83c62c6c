"""Secrets that are known by the name of their field: `password: …`, `API_KEY=…`, `<secret>…</secret>`."""

import re

from croze.text.regex import Regex
from croze.text.secret_blocks import Span, block_scalar
from croze.text.secret_rules import FIELDS, LEAD, strength
from croze.text.secret_values import is_secret_text, is_secret_word

QUOTED = 4_000
"""How long a quoted value may be."""
_TAIL = r"s?(?:_?\d{1,3})?(?![A-Za-z0-9_\-])"
_OPENING = r"(?:[fbruFBRU@$]{0,2}(?P<open>\\?(?:\"\"\"|'''|[\"'`])))?"
_TYPE = r"[&*]?'?[A-Za-z_][\w.\[\]|<>&]{0,40}\??"
_NAME_END = _TAIL + r"(?P<after>\\?[\"'])?\]?(?:"
_XML = r"(?P<xml>(?:[ \t][^<>\n]{0,200})?>)"
_FORMS = (
    r"|(?P<wide>[ \t]{0,40}(?::=|=>"
    rf"|:?[ \t]{{0,4}}{_TYPE}(?:[ \t]\|[ \t]{_TYPE})?[ \t]{{0,8}}=(?=[ \t]{{0,4}}[&@$fbru]{{0,2}}[\"'`])"
    r"|[:=](?![=:>]))[ \t]{0,40})"
    r"|(?P<plist></(?:key|string)>\s{0,40}<string>)"
    r"|(?P<pair>[ \t]{0,4}[,;]?(?:[ \t]{0,8}|\r?\n[ \t\d|+\-:]{0,60})\\?[\"']?(?:parameter|field)?value"
    r"\\?[\"']?[ \t]{0,4}[:=][ \t]{0,4})"
    r"|(?P<call>[ \t]{0,4},[ \t]{0,4}(?=\\?[\"'`]))"
    r"|(?P<blank>[ \t]{1,20}(?=[^\s=:])))" + _OPENING
)
_ASSIGN = Regex(
    _NAME_END + _FORMS.replace("|(?P<plist>", "|(?P<xml>>)|(?P<plist>")[1:], re.IGNORECASE
)
_ELEMENT = Regex(_NAME_END + _XML + _FORMS, re.IGNORECASE)
_FOLLOWS = frozenset("s_0123456789\\\"'] \t:=>,;<\r\n")
_MAY_FOLLOW = _FOLLOWS | {""}
_LINE = Regex(r"[^\s\"'`<>]{1,200}")
_BARE = Regex(r"[^\s\"'`<>,;]{1,200}")
_URL_VALUE = Regex(r"[^\s\"'`<>;&]{1,200}")
_REST = Regex(r"[^\s\"'`<>;&]*")
_LINE_REST = Regex(r"[ \t]{0,20}(?:\Z|[\r\n]|[ \t]#)")
_PROSE_REST = Regex(r"[.)]?(?:[.)]|[ \t]+[A-Za-z])")
_LINE_LEAD = Regex(r"\s*(?:\d+\s*[|:]?\s+|[+\-]\s*|(?:export|set|ENV|ARG)\s+)*[\w.\-]*\Z")
_SHELL_SET = Regex(r"(?:set[ \t]+(?:-\w*x\w*[ \t]+|-g[ \t]+)+|setenv[ \t]+|setx[ \t]+)[\w.]*\Z")
_NAMED = Regex(
    r"(?:name|key|parameterkey)\\?[\"']?[ \t]*[:=][ \t]*\\?[\"']?[\w.\-/]*\Z", re.IGNORECASE
)
_CALLED = Regex(r"(?:define|setenv|putenv|env)[ \t]*\([ \t]*\\?[\"'][\w.\-]*\Z", re.IGNORECASE)


def field(text: str, low: str, start: int, word: str) -> Span | None:
    """The value of the field whose name ends with the word at `start`, if that is a secret. `low` is the
    text in lower case."""
    following = text[start + len(word) : start + len(word) + 1]
    if following not in _FOLLOWS:
        return None
    strong = strength(word, low[max(0, start - LEAD) : start])
    if strong is None:
        return None
    assign = _assignment(text, start, start + len(word))
    if assign is None:
        return None
    begin = assign.end()
    quote = assign.group("open")
    if assign.group("pair") and not _NAMED.search(text, max(0, start - 80), start):
        return None
    if assign.group("call") and not _CALLED.search(text, max(0, start - 80), start):
        return None
    if not quote:
        return _bare(text, start, begin, assign, strong)
    if assign.group("blank") and not _takes_blank(text, start):
        return None
    close = closing(text, begin, quote)
    if close is None:
        return None
    return (begin, close) if is_secret_text(text[begin:close], strong=strong) else None


def _assignment(text: str, start: int, after: int) -> "re.Match[str] | None":
    """How a value follows the name that holds position `start` and ends at `after`."""
    name = name_start(text, start)
    return (_ELEMENT if text[name - 1 : name] in ("<", ":") else _ASSIGN).match(text, after)


def closing(text: str, begin: int, quote: str) -> int | None:
    """Where the quote that was opened before `begin` closes; None where it doesn't on its line."""
    if len(quote.lstrip("\\")) == 3:
        close = text.find(quote, begin, begin + QUOTED)
        return close if close >= 0 else None
    mark = quote[-1]
    own = len(quote) - 1
    at = begin
    while True:
        close = text.find(mark, at, begin + QUOTED)
        if close < 0 or text.find("\n", begin, close) >= 0:
            return None
        slashes = 0
        while close - slashes > begin and text[close - slashes - 1] == "\\":
            slashes += 1
        doubled = mark == "'" and text.startswith("'", close + 1) and close > begin
        if slashes % (4 if own else 2) == own and not doubled:
            return close - own
        at = close + (2 if doubled else 1)


def _takes_blank(text: str, start: int) -> bool:
    """Whether the field is a flag (`--token x`) or set by a shell's word (`set -x TOKEN x`)."""
    name = name_start(text, start)
    return text.startswith("--", name) or bool(_SHELL_SET.search(text, max(0, name - 20), start))


def _bare(text: str, start: int, begin: int, assign: "re.Match[str]", strong: bool) -> Span | None:
    """An unquoted value: what is one depends on whether this is code, a setting, a flag, an address."""
    name = name_start(text, start)
    before = text[name - 1 : name]
    wide = assign.group("wide") or ""
    if assign.group("xml") and before not in tuple("<:"):
        return None
    if assign.group("blank") and not _takes_blank(text, start):
        return None
    if name >= 3 and text.startswith("://", name - 3):  # an address: its password is another rule's
        return None
    if strong and wide.strip() == ":":
        block = block_scalar(text, start, begin)
        if block is not None:
            return block
    line = text.rfind("\n", max(0, start - 100), start) + 1
    leads = (line > 0 or start < 100) and bool(_LINE_LEAD.match(text[line:start]))
    delimited = before in tuple("?&;") and not assign.group("after")
    pattern = _URL_VALUE if delimited else _LINE if leads and not assign.group("after") else _BARE
    match = pattern.match(text, begin)
    if match is None:
        return None
    value = match.group().rstrip(",." if delimited else ",;)]}")
    end = begin + len(value)
    if assign.group("xml") and not text.startswith("</", end):
        return None
    if assign.group("plist"):
        return (begin, end) if is_secret_text(value, strong=strong) else None
    setting = _setting(text, start, begin, end, assign, leads=leads, delimited=delimited)
    if not is_secret_word(value, strong=strong, setting=setting):
        return None
    rest = _REST.match(text, end) if len(value) == 200 else None
    return begin, rest.end() if rest else end


def _setting(
    text: str,
    start: int,
    begin: int,
    end: int,
    assign: "re.Match[str]",
    *,
    leads: bool,
    delimited: bool,
) -> str:
    """Where an unquoted value stands, as `is_secret_word` wants it."""
    value = text[begin:end]
    wide = assign.group("wide") or ""
    last = bool(_LINE_REST.match(text, end))
    alone = last and leads
    flag = text.startswith("--", name_start(text, start))
    if delimited or assign.group("xml"):
        return "value"
    if assign.group("pair"):
        return "yaml" if last and "=" not in assign.group("pair") else "code"
    if assign.group("blank"):
        return "code" if value.isalpha() or value.startswith("-") else "value"
    if wide == "=" and (alone or flag or text[start : begin - 1].isupper()):
        return "ini" if "(" in value or "[" in value else "value"
    if wide.strip() == ":" and last and not assign.group("after"):
        return "yaml"
    spoken = wide.strip() == ":" and any(map(str.isdigit, value))
    return "ini" if alone or (spoken and _PROSE_REST.match(text, end)) else "code"


def name_start(text: str, at: int) -> int:
    """Where the name begins that holds position `at`; at most 40 characters before it."""
    low = max(0, at - 40)
    while at > low and (text[at - 1].isalnum() or text[at - 1] in "_-."):
        at -= 1
    return at


def is_secret_item(key: str, value: str) -> bool:
    """Whether the value under `key` of a JSON-like object is a secret."""
    low = key.lower()
    for word in FIELDS:
        if low.endswith(word):
            strong = strength(word, low[: -len(word)][-LEAD:])
            if strong is not None:
                return is_secret_text(value, strong=strong)
    return False


_UNDECIDED_NAME = Regex(r"s?_?\d{0,3}(?:\\|\\?[\"'])?\]?[ \t]{0,40}\Z")
_UNDECIDED_OPERATOR = Regex(
    _TAIL + r"\\?[\"']?\]?(?:"
    rf"[ \t]{{0,40}}(?::|:?=|=>|:?[ \t]{{0,4}}{_TYPE}(?:[ \t](?:\|(?:[ \t](?:{_TYPE})?)?)?)?(?:[ \t]{{0,8}}=)?)[ \t]{{0,40}}"
    r"|</?(?:k|ke|key|s|st|str|stri|strin|string)?>?\s{0,40}<?(?:s|st|str|stri|strin|string)?>?"
    r"|[ \t]{0,4}[,;]?(?:[ \t]{0,8}|\r?\n?[ \t\d|+\-:]{0,60})\\?[\"']?(?:(?:parameter|field)?v[alue]{0,4}|p[arametr]{0,8}|f[ield]{0,4})?"
    r"\\?[\"']?[ \t]{0,4}[:=]?[ \t]{0,4}"
    r")[&@$fbru]{0,2}\\?\Z",
    re.IGNORECASE,
)
_UNDECIDED_TAG = Regex(r"[^<>\n]{0,200}\Z")
_WORD = Regex(r"[^\s\"'`<>]{0,400}[ \t]{0,20}")


def assigned(text: str, start: int, word: str) -> bool:
    """Whether the name that ends with the word at `start` is a secret's field with something behind it."""
    if strength(word, text[max(0, start - LEAD) : start].lower()) is None:
        return False
    assign = _assignment(text, start, start + len(word))
    return assign is not None and not (assign.group("blank") and not _takes_blank(text, start))


def undecided(text: str, start: int, word: str) -> int | None:
    """From where on it is open what becomes of the field whose name ends with the word at `start`, when
    the text may go on after its end; None where that is settled."""
    after = start + len(word)
    if text[after : after + 1] not in _MAY_FOLLOW:
        return None
    if strength(word, text[max(0, start - LEAD) : start].lower()) is None:
        return None
    name = name_start(text, start)
    if text[name - 1 : name] in ("<", ":") and _UNDECIDED_TAG.match(text, after):
        return after
    if _UNDECIDED_NAME.match(text, after) or _UNDECIDED_OPERATOR.match(text, after):
        return after
    assign = _assignment(text, start, after)
    if assign is None:
        return None
    begin = assign.end()
    quote = assign.group("open")
    if assign.group("blank") and not _takes_blank(text, start):
        return None
    if quote:
        if len(quote.lstrip("\\")) == 1 and text.startswith(quote, begin):
            return begin if begin + len(quote) == len(text) else None
        close = closing(text, begin, quote)
        if close is not None:
            return begin if close + len(quote) == len(text) else None
        triple = len(quote.lstrip("\\")) == 3
        ended = not triple and text.find("\n", begin, begin + QUOTED) >= 0
        return None if ended or len(text) - begin > QUOTED else begin
    value = _WORD.match(text, begin)
    end = value.end() if value else begin
    return begin if end + 2 > len(text) and not text.endswith("\n") else None
