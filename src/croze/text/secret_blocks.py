"""Secrets that are more than one line or one value: private keys, YAML blocks, manifests, cookies.

Each function looks from an anchor forwards and gives the spans of secrets; `reach` functions tell how
far the text is still undecided, for streams.
"""

import re
from collections.abc import Iterator

from croze.text.regex import Regex
from croze.text.secret_values import MARK, is_base64, is_placeholder, is_reference, looks_random

Span = tuple[int, int]

KEY_BEGIN, PUTTY, COOKIE = "-----BEGIN ", "Private-Lines: ", "cookie"
MANIFEST = ("data:", 'data"', 'data\\"')
KEY_HEAD = Regex(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
KEY_BODY = Regex(r"(?:[A-Za-z0-9+/=:,.\s|>#*\"'\\()@_;]|-(?!----))+", re.ASCII)
_KEY_SHOWN = Regex(r"[^<]{0,600}?[A-Za-z0-9+/=]{32}")
PUTTY_BODY = Regex(
    r"Private-Lines: \d{1,4}(?P<v>(?:\s{1,4}[A-Za-z0-9+/=]{1,120}(?![^\s]))+)", re.ASCII
)
_LEADING = Regex(r"(?:[+\-](?=[ \t]))?[ \t]*(?:\d{1,6}(?:\t|[ ]?[|:→][ ]?))?[ \t]*")
_SCALAR = Regex(r"[|>][0-9+\-]{0,2}[ \t]*(?:#[^\n]*)?\r?\n")
_IS_SECRET = Regex(r"^[+\- \d|:\t]{0,12}kind:[ \t]*[\"']?Secret\b", re.MULTILINE)
_IS_FIRST = Regex(r"apiVersion:[ \t]*[\"']?v1[\"']?[ \t]*\r?\n[+\- \d|:\t]{0,12}\Z")
_ENTRY = Regex(r"[\w.\-\"']{1,253}:[ \t]+[\"']?(?P<v>[^\s\"'#][^\n\"'#]{0,65536})")
_ENTRY_BLOCK = Regex(r"[\w.\-\"']{1,253}:[ \t]+(?=[|>])")
_JSON_DATA = Regex(r"\\?\"[ \t]*:[ \t]*\{(?P<v>[^{}]{0,65536})\}")
_JSON_ENTRY = Regex(
    r"\\?\"[\w.\-]{1,253}\\?\"\s{0,4}:\s{0,4}\\?\"(?P<v>[A-Za-z0-9+/]{4,65536}={0,2})\\?\""
)
_COOKIE_HEAD = Regex(
    r"(?:cookies?2?)\\?[\"']?\]?[ \t]{0,4}(?::|=|=>|,)[ \t]{0,4}\\?[\"'`]?", re.IGNORECASE
)
_COOKIE = Regex(
    r"[ \t]{0,4}(?P<name>[\w.\-$%]{1,100})=\\?\"?(?P<v>[^\s;,\"'`\\<>]{0,4096})\\?\"?(?P<more>;?)",
    re.ASCII,
)
_COOKIE_NAMES = Regex(
    r"sess|sid\b|sid_|auth|token|jwt|csrf|xsrf|login|remember|secret|credential|key|\Ssid\Z",
    re.IGNORECASE,
)
_ATTRIBUTES = frozenset(("path", "domain", "expires", "max-age", "samesite", "version", "priority"))
MOST_LINES, MOST_BLOCK, MOST_COOKIE = 400, 65_536, 4_000
LOOKBACK = 2_000


def private_key(text: str, start: int) -> Iterator[Span]:
    """What stands between the frame's lines, or up to the text's end where the last one is missing."""
    head = KEY_HEAD.match(text, start)
    if head is None or not _KEY_SHOWN.match(text, head.end()):
        return
    body = KEY_BODY.match(text, head.end())
    if body is not None and body.end() - body.start() >= 32:
        yield body.span()


def putty_key(text: str, start: int) -> Iterator[Span]:
    found = PUTTY_BODY.match(text, start)
    if found is not None:
        begin, end = found.span("v")
        yield begin + len(text[begin:end]) - len(text[begin:end].lstrip()), end


def block_scalar(text: str, key: int, begin: int) -> Span | None:
    """The lines of a YAML block scalar whose indicator stands at `begin`, its key's name at `key`."""
    header = _SCALAR.match(text, begin)
    if header is None:
        return None
    lines = list(_deeper(text, header.end(), column(text, key)))
    if not lines or text[lines[0][0] : lines[-1][1]] == MARK:
        return None
    return lines[0][0], lines[-1][1]


def manifest(text: str, start: int) -> Iterator[Span]:
    """The values under `data:` of a Kubernetes Secret, as YAML or JSON."""
    before = text[max(0, start - LOOKBACK) : start]
    document = before[before.rfind("\n---") + 1 :]
    if not text.startswith(":", start + 4):
        yield from _json_data(text, start, document)
        return
    first = bool(_IS_FIRST.search(document))
    strong = bool(_IS_SECRET.search(document))
    end = text.find("\n", start)
    if end < 0 or text[start + 5 : end].strip() or not (first or strong):
        return
    inside = -1
    for begin, stop in _deeper(text, end + 1, column(text, start)):
        if inside >= 0 and column(text, begin) > inside:
            if text[begin:stop] != MARK:
                yield begin, stop
            continue
        inside = -1
        if strong and _ENTRY_BLOCK.match(text, begin):
            inside = column(text, begin)
            continue
        entry = _ENTRY.match(text, begin, stop)
        if entry is not None:
            value = entry.group("v").rstrip()
            if is_reference(value) or is_placeholder(value):
                continue
            if strong or is_base64(value):
                yield entry.start("v"), entry.start("v") + len(value)


def _json_data(text: str, start: int, before: str) -> Iterator[Span]:
    data = _JSON_DATA.match(text, start + 4)
    if data is None:
        return
    around = before[-400:] + text[data.end() : data.end() + 1000]
    if not re.search(r"\"kind\\?\"\s{0,4}:\s{0,4}\\?\"Secret\\?\"", around):
        return
    for entry in _JSON_ENTRY.finditer(text, data.start("v"), data.end("v")):
        if not is_placeholder(entry.group("v")):
            yield entry.span("v")


def cookies(text: str, start: int) -> Iterator[Span]:
    """The values of cookies that look like a session's."""
    head = _COOKIE_HEAD.match(text, start)
    if head is None:
        return
    at = head.end()
    while at - start < MOST_COOKIE:
        pair = _COOKIE.match(text, at)
        if pair is None:
            return
        name, value = pair.group("name", "v")
        named = bool(_COOKIE_NAMES.search(name)) and len(value) >= 8
        opaque = len(value) >= 24 and looks_random(value)
        known = name.lower() in _ATTRIBUTES or is_placeholder(value) or is_reference(value)
        if (named or opaque) and not known and (opaque or any(map(str.isdigit, value))):
            yield pair.span("v")
        flag = re.compile(r"(?:[ \t]{0,4}(?:HttpOnly|Secure|Partitioned);?)+", re.IGNORECASE).match(
            text, pair.end()
        )
        at = flag.end() if flag else pair.end()
        if not pair.group("more"):
            return


def column(text: str, at: int) -> int:
    """Where the content of the line begins that holds position `at`; line numbers and signs of a diff
    before it are skipped."""
    line = text.rfind("\n", max(0, at - 1_000), at) + 1
    lead = _LEADING.match(text, line)
    return (lead.end() if lead else line) - line


def _deeper(text: str, begin: int, indent: int) -> Iterator[Span]:
    """The lines from `begin` that are indented deeper than `indent`, without lead and line end."""
    for _ in range(MOST_LINES):
        end = text.find("\n", begin, begin + MOST_BLOCK)
        stop = len(text) if end < 0 else end
        lead = _LEADING.match(text, begin, stop)
        content = lead.end() if lead else begin
        if content < stop and text[content:stop].strip():
            if content - begin <= indent:
                return
            yield content, content + len(text[content:stop].rstrip())
        if end < 0:
            return
        begin = end + 1


def block_end(text: str, begin: int, indent: int) -> int | None:
    """Where the block ends whose lines begin at `begin`; None where more of it may come."""
    while True:
        end = text.find("\n", begin)
        stop = len(text) if end < 0 else end
        lead = _LEADING.match(text, begin, stop)
        content = lead.end() if lead else begin
        if content < stop and content - begin <= indent:
            return begin
        if end < 0:
            return None
        begin = end + 1
