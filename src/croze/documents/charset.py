"""Which encoding a page is in, and its text (WHATWG Encoding: https://encoding.spec.whatwg.org)."""

import codecs
import re

_DECLARED = re.compile(
    rb"<(?:meta[^>]{0,200}?charset|\?xml[^>]{0,100}?encoding)\s*=\s*[\"']?\s*([A-Za-z0-9_.:\-]{2,40})",
    re.IGNORECASE,
)
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_SUPERSETS = {
    "iso8859-1": "cp1252", "latin-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030",
    "shift_jis": "cp932", "euc_kr": "cp949",
}  # fmt: skip
_NO_PAGES = frozenset(
    {
        "idna",
        "punycode",
        "raw-unicode-escape",
        "unicode-escape",
        "undefined",
        "utf-7",
        "oem",
        "mbcs",
    }
)


def decoded(data: bytes, charset: str = "") -> str:
    """The page as text: by its byte order mark, the server's word (`charset`), its own, else as UTF-8
    where it is that, else as browsers read Latin-1."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    own = _DECLARED.search(data[:4096])
    declared = own[1].decode("ascii") if own else ""
    if declared.lower().startswith("utf-16"):  # then this could not have been read
        declared = "utf-8"
    for name in (charset, declared):
        known = _known(name)
        if known:
            return data.decode(known, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _known(name: str) -> str:
    """The codec of this name, as browsers understand it; empty where there is none for pages."""
    if not name or "\0" in name:
        return ""
    try:
        found = codecs.lookup(name)
    except (LookupError, ValueError):
        return ""
    if found.name in _NO_PAGES or not getattr(found, "_is_text_encoding", True):
        return ""
    return _SUPERSETS.get(found.name, found.name)
