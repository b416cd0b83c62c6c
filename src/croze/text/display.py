"""Makes text from outside safe to show: no terminal escape, control or bidi character gets through.

Colours and other complete sequences vanish; a character that could deceive stays visible as its code.
Sequences: ECMA-48 and https://invisible-island.net/xterm/ctlseqs/ctlseqs.html. Bidi: the "Trojan
Source" set of CVE-2021-42574.
"""

import re
import unicodedata

_CSI = r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"
_STRING = (
    r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\x18\x1a]{0,4096}(?:\x07|\x1b\\|\x9c)"
)
_SHORT = r"\x1b[ -/]{1,4}[0-~]|\x1b[0-OQ-WYZ\\`-~]"
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_HIDDEN = "\u2028\u2029\ufff9-\ufffb\U000e0000-\U000e007f"
_CONTROL = rf"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{_BIDI}{_HIDDEN}]"

_UNSAFE = re.compile(rf"\r\n|{_CSI}|{_STRING}|{_SHORT}|{_CONTROL}")
_SUSPECT = re.compile(_CONTROL)
_SGR = re.compile(r"\x1b\[[0-9;:]*m")
_BLANKS = re.compile(r"\s+")
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
