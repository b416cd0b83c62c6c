"""Makes text from outside safe to show: no terminal escape, control or bidi character gets through.

Colours and other complete sequences vanish; a character that could deceive stays visible as its code.
Sequences: ECMA-48 and https://invisible-island.net/xterm/ctlseqs/ctlseqs.html. Bidi: the "Trojan
Source" set of CVE-2021-42574.
"""

import unicodedata
from typing import TYPE_CHECKING

from croze.text.regex import Regex

if TYPE_CHECKING:
    import re

_CSI = r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"
_STRING = (
    r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\x18\x1a]{0,4096}(?:\x07|\x1b\\|\x9c)"
)
_SHORT = r"\x1b[ -/]{1,4}[0-~]|\x1b[0-OQ-WYZ\\`-~]"
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_HIDDEN = "\u2028\u2029\ufff9-\ufffb\U000e0000-\U000e0fff"
_NOTHING = "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
"""Characters without width or ink."""
_JOINING = "\u0600-\u077f\u0900-\u0dff\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
"""Scripts that need a joiner or a non-joiner between their letters, and emoji."""
_LONE_JOINER = rf"(?<![{_JOINING}])[\u200c\u200d]|[\u200c\u200d](?![{_JOINING}])"
_SIGNS = rf"\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{_BIDI}{_HIDDEN}{_NOTHING}"
_CONTROL = rf"[{_SIGNS}]|{_LONE_JOINER}"

_UNSAFE = Regex(rf"\r\n|{_CSI}|{_STRING}|{_SHORT}|{_CONTROL}")
_SUSPECT = Regex(rf"[{_SIGNS}\u200c\u200d]")
_STYLED = Regex(r"\x1b\[(?:0|[12]|3[1-6])(?:;(?:[12]|3[1-6]))*m")
"""The colours that the screen itself uses."""
_IN_JSON = Regex(rf"[\x7f-\x9f{_BIDI}{_HIDDEN}{_NOTHING}]")
_LOOK_ALIKE = Regex(
    "[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\u0370-\u03ff\u0400-\u052f\u0531-\u0587\u13a0-\u13f5"
    "\u1c80-\u1c8f\u1d00-\u1d7f\u2010-\u2015\u2018-\u201f\u2024\u2039\u203a\u2044\u2100-\u214f\u2160-\u217f"
    "\u2212\u2215\u2223\u2236\u223c\u2571\u2572\u29f5\u29f8\ua4d0-\ua4ff\ua600-\ua69f\uff01-\uff5e"
    "\U00010400-\U0001044f\U0001d400-\U0001d7ff]"
)
_SGR = Regex(r"\x1b\[[0-9;:]*m")
_BLANKS = Regex(r"\s+")
_RESET = "\x1b[0m"
_CONCEAL = "8"
_EXTENDED = ("38", "48", "58")
"""The colours whose own parameters follow: `38;5;8` is no concealment."""


def safe(text: str, *, keep_newlines: bool = True, keep_sgr: bool = False) -> str:
    """`text` without anything that could move the cursor, set a title, write the clipboard or reorder
    what is read.

    Line breaks (`\\n`, a lone `\\r` too) stay unless `keep_newlines` is false, then they become blanks.
    `keep_sgr` lets colours through, but no concealed text, and ends with a reset.
    """
    coloured = False

    def replace(match: "re.Match[str]") -> str:
        nonlocal coloured
        found = match.group()
        if found in ("\r\n", "\r"):
            return "\n"
        if len(found) > 1:
            if not (keep_sgr and _SGR.fullmatch(found)):
                return ""
            kept = _without_conceal(found)
            coloured = coloured or bool(kept)
            return kept
        return _visible(found)

    if _SUSPECT.search(text):
        text = _UNSAFE.sub(replace, text)
    if not keep_newlines:
        text = text.replace("\n", " ")
    return text + _RESET if coloured and not text.endswith(_RESET) else text


def exact(text: str) -> str:
    """`text` for someone who is to judge it letter by letter: safe, line ends visible, and characters
    that look like ASCII's with their code behind them, as in `саt⟨U+0441⟩`."""
    return _LOOK_ALIKE.sub(_named, safe(text)).replace("\n", " ⏎\n")


def _named(match: "re.Match[str]") -> str:
    char = match.group()
    return f"{'' if char.isspace() else char}⟨U+{ord(char):04X}⟩"


def safe_styled(text: str) -> str:
    """A line of croze's own with its colours: anything but colours is made harmless."""
    if not _SUSPECT.search(text):
        return text
    pieces: list[str] = []
    at = 0
    for style in _STYLED.finditer(text):
        pieces += (safe(text[at : style.start()]), style.group())
        at = style.end()
    return "".join((*pieces, safe(text[at:])))


def safe_json(line: bytes) -> bytes:
    """A line of JSON whose strings mean the same and which no terminal obeys: DEL, C1, bidi and hidden
    characters become escapes."""
    if line.isascii() and b"\x7f" not in line:
        return line
    text = line.decode("utf-8", "replace")
    return _IN_JSON.sub(_escaped, text).encode("utf-8", "replace")


def _escaped(match: "re.Match[str]") -> str:
    units = match.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def one_line(text: str, width: int) -> str:
    """`text` as one safe line of at most `width` terminal cells, cut with `…`."""
    line = _BLANKS.sub(" ", safe(text, keep_newlines=False)).strip()
    if len(line) * 2 <= width or (line.isascii() and len(line) <= width):
        return line
    if _cells(line) <= width:
        return line
    used, cut = 0, 0
    for cut, char in enumerate(line):  # noqa: B007 (the position at which it stops is wanted)
        used += _cell(char)
        if used > width - 1:
            break
    return line[:cut].rstrip() + "…" if width > 0 else ""


def _visible(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _without_conceal(sequence: str) -> str:
    parameters = sequence[2:-1].split(";")
    if _CONCEAL not in (p.lstrip("0") for p in parameters) or parameters[0] in _EXTENDED:
        return sequence
    kept = [p for p in parameters if p.lstrip("0") != _CONCEAL]
    return f"\x1b[{';'.join(kept)}m" if kept else ""


def _cells(text: str) -> int:
    return sum(map(_cell, text))


def _cell(char: str) -> int:
    if unicodedata.combining(char) or char == "\u200d":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
