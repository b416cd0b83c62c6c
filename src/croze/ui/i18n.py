"""Messages in the user's language: English in the source, others from gettext catalogues.

The `.po` files are read as they are, on the first message that needs one, so a git clone and a wheel
work alike and an English session reads nothing.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from croze.types.errors import CrozeError

LOCALE = Path(__file__).parent.parent / "locale"
ENGLISH = "en"
CHINESE = "zh_CN"

_language: ContextVar[str] = ContextVar("croze language", default=ENGLISH)

Catalogue = Mapping[tuple[str, str], str]
"""(context, English) → translation; the context of plain messages is empty."""


def use_language(language: str) -> None:
    """Speak `language` from here on, in this context and those that it starts."""
    _language.set(language)


def choose_language(configured: str, env: Mapping[str, str]) -> str:
    """The configured language, else the one that the locale variables name."""
    if configured in (ENGLISH, CHINESE):
        return configured
    locale = env.get("LC_ALL") or env.get("LC_MESSAGES") or env.get("LANG") or ""
    wishes = env.get("LANGUAGE", "") if locale not in ("", "C", "POSIX") else ""
    first = (wishes or locale).split(":")[0]
    return CHINESE if first.lower().startswith("zh") else ENGLISH


def mark(message: str) -> str:
    """Mark a message that is translated where it is shown."""
    return message


def _(message: str, /, **params: object) -> str:
    """`message` in the user's language, its `{name}` places filled in."""
    language = _language.get()
    text = message
    if language != ENGLISH:
        text = catalogue(language).get(("", message), message)
    return text.format(**params) if params else text


def explain(error: CrozeError) -> tuple[str, str]:
    """An error's message and hint in the user's language; English where its code has no entry."""
    return explain_code(error.code, error.message, error.hint, error.params)


_OF_FILES = frozenset(
    {
        "rule_file_problem",
        "law_file_skipped",
        "agent_files_skipped",
        "agent_not_as_written",
        "agent_broken",
    }
)
"""Codes whose reason is one of those that `croze knowledge` gives."""


def explain_code(
    code: str, message: str, hint: str, params: Mapping[str, object]
) -> tuple[str, str]:
    """The catalogue's text for a code, filled in with `params`, `message` and `hint`; else these two as
    they are."""
    language = _language.get()
    if language == ENGLISH or not code:
        return message, hint
    entries = catalogue(language)
    found = entries.get(("error", code))
    found_hint = entries.get(("hint", code))
    known = {"message": message, "hint": hint, **params}
    if code in _OF_FILES:
        from croze.ui.findings import because  # it needs this module

        known["reason"] = because(str(params.get("reason", "")))
    try:
        return (
            found.format(**known) if found else message,
            found_hint.format(**known).strip() if found_hint else hint,
        )
    except (KeyError, IndexError, ValueError, AttributeError):
        return message, hint


@cache
def catalogue(language: str) -> Catalogue:
    """All messages of a language; empty where there is no catalogue."""
    try:
        text = (LOCALE / language / "LC_MESSAGES" / "croze.po").read_text("utf-8")
    except FileNotFoundError:
        return {}
    return parse_po(text)


def parse_po(text: str) -> dict[tuple[str, str], str]:
    """A gettext catalogue without plurals. Entries marked fuzzy or without a translation are left out.

    Raises `ValueError` with the line's number where a line can't be read.
    """
    entries: dict[tuple[str, str], str] = {}
    entry: dict[str, str] = {}
    current = ""
    fuzzy = False

    def close() -> None:
        nonlocal entry, current, fuzzy
        if entry.get("msgid") and entry.get("msgstr") and not fuzzy:
            entries[entry.get("msgctxt", ""), entry["msgid"]] = entry["msgstr"]
        entry, current, fuzzy = {}, "", False

    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if line.startswith("#"):
            if "msgstr" in entry:
                close()
            fuzzy = fuzzy or (line.startswith("#,") and "fuzzy" in line)
            continue
        if not line:
            close()
            continue
        keyword, _space, quoted = line.partition(" ")
        if line.startswith('"'):
            quoted = line
        elif keyword in ("msgctxt", "msgid", "msgstr"):
            if keyword != "msgstr" and "msgstr" in entry:
                close()
            current = keyword
            entry[current] = ""
        else:
            raise ValueError(f"line {number}: unknown keyword {keyword!r}")
        quoted = quoted.strip()
        if not current or len(quoted) < 2 or quoted[0] != '"' or quoted[-1] != '"':
            raise ValueError(f"line {number}: not a quoted text")
        entry[current] += _unescape(quoted[1:-1])
    close()
    return entries


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    chars = iter(text)
    for char in chars:
        if char == "\\":
            char = next(chars, "")
            char = {"n": "\n", "t": "\t", "r": "\r"}.get(char, char)
        out.append(char)
    return "".join(out)
