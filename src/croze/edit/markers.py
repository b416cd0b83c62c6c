"""Lines that stand for what a model left out: `... existing code ...` in any language's comments."""

import re
from collections.abc import Sequence

from croze.text.regex import Regex

_LEADERS = ("{/*", "<!--", "/*", "//", "--", "#", ";", "%", '"""', "'''")
_TRAILERS = ("*/}", "-->", "*/", '"""', "'''")

_SUBJECT = (
    r"(?:(?:the|this|your|all|any)\s+)*(?:code|file|function|class|method|methods|functions|classes|"
    r"implementation|module|script|content|contents|component|document|config|configuration|imports|"
    r"lines|logic|tests|fields|properties|props|body|definitions|rules|styles|section|sections|"
    r"setup|block|program|text|stuff)\b"
)
_STATE = (
    r"(?:(?:is|are|stays?|remains?|kept|left|to)\s+)*"
    r"(?:unchanged|the\s+same|as\s+before|as\s+is|as-is|omitted|untouched|elided|unmodified)"
)
_WORDS = Regex(
    r"\b(?:existing|rest|remainder|remaining|unchanged|same|other|previous|omitted|original|keep|kept|"
    r"elided|snip|truncated|etc|more|code|lines|as before)\b",
    re.IGNORECASE,
)
_PLAIN = Regex(
    rf"""(?:
      existing\s+{_SUBJECT}(?:\s+(?:here|above|below|goes\s+here|{_STATE}))*
    | (?:the\s+)?(?:rest|remainder)\s+of\s+{_SUBJECT}(?:\s+(?:here|{_STATE}))*
    | (?:the\s+)?(?:rest|remainder|everything\s+else)\s+{_STATE}
    | (?:the\s+|all\s+)?(?:remaining|other|previous|existing)\s+(?:\w+\s+){{1,4}}{_STATE}
    | (?:unchanged|omitted)\s+{_SUBJECT}
    | {_SUBJECT}\s+{_STATE}
    )[.!]*""",
    re.IGNORECASE | re.VERBOSE,
)
_INLINE = Regex(
    r"(?:\.{3}|…)[ \t]*(?:\w+[ \t]+){0,3}(?:existing|unchanged|rest|remaining)\b[^.\n…]{0,60}(?:\.{3}|…)",
    re.IGNORECASE,
)


def is_marker(line: str) -> bool:
    """True for a line that says only that something was left out there."""
    body, comment = _body(line)
    if not body:
        return False
    dots = re.match(r"\.{3,}|…", body)
    if dots is None:
        if comment and _PLAIN.fullmatch(body):
            return True
        return body[0] in "[<({" and _in_brackets(body)
    said = body[dots.end() :]
    closed = re.search(r"(?:\.{3,}|…)$", said)
    said = said[: closed.start()] if closed else said
    if not said.strip():
        return comment
    if not comment and not said[0].isspace():
        return False  # a spread: `...rest` is code
    return bool(closed and len(said) <= 80) or _WORDS.search(said) is not None


def is_bare(line: str) -> bool:
    """True for dots alone: an elision in most languages, an expression in Python."""
    return line.strip() in ("...", "…")


def holds_marker(line: str) -> bool:
    """True where a marker stands in a line beside code."""
    return "..." in line or "…" in line if _INLINE.search(line) else False


def new_markers(lines: Sequence[str], old: Sequence[str]) -> list[int]:
    """The 0-based lines of a whole text that are markers and don't stand in the old one."""
    found = [
        at
        for at, line in enumerate(lines)
        if ("..." in line or "…" in line or line.lstrip().startswith(_LEADERS))
        and (is_marker(line) or holds_marker(line))
    ]
    if not found:
        return []
    known = {line.strip() for line in old}
    return [at for at in found if lines[at].strip() not in known]


def _body(line: str) -> tuple[str, bool]:
    """What a line says without its comment signs, and whether it had any."""
    body = line.strip()
    leader = next((sign for sign in _LEADERS if body.startswith(sign)), "")
    if leader:
        body = body[len(leader) :].lstrip("#/-;%*! \t")
        trailer = next((sign for sign in _TRAILERS if body.endswith(sign)), "")
        body = body.removesuffix(trailer).rstrip()
    return body, bool(leader)


def _in_brackets(body: str) -> bool:
    """`[... rest of code ...]`, `{{ ... }}` and the like."""
    inner = body.strip("[](){}<> \t")
    return re.match(r"(?:\.{3,}|…)", inner) is not None and (
        _WORDS.search(inner) is not None or body in ("{{ ... }}", "[...]", "<...>", "(...)")
    )
