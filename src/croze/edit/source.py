"""A file's bytes as text with LF line ends, and back: encoding, BOM and line ends stay as they were."""

import re

from msgspec import Struct

from croze.edit.plan import apply
from croze.edit.values import EditPlan, Refusal

_BOMS = (
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b")) + b"\x7f"
_SAMPLE = 64 << 10


class Source(Struct, frozen=True):
    """`text` has LF line ends. `newline` is the file's own, or the more frequent; where they are mixed
    `ends` has each line's."""

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""
    newline: str = "\n"
    ends: tuple[str, ...] = ()


def is_binary(data: bytes) -> bool:
    """True where `data` is no text: a NUL byte without a UTF-16 or UTF-32 mark, or many control bytes."""
    if any(data.startswith(bom) for bom, _ in _BOMS):
        return False
    sample = data[:_SAMPLE]
    if b"\0" in data:
        return True
    return len(sample) - len(sample.translate(None, _CONTROLS)) > len(sample) // 20


def read_source(data: bytes) -> Source | None:
    """The text of a file's bytes: by its BOM, else UTF-8, else Latin-1; None where it is binary."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            try:
                return _with_ends(data[len(bom) :].decode(encoding), encoding, bom)
            except UnicodeDecodeError:
                return None
    if is_binary(data):
        return None
    try:
        return _with_ends(data.decode("utf-8"), "utf-8", b"")
    except UnicodeDecodeError:
        return _with_ends(data.decode("latin-1"), "latin-1", b"")


def source_of(text: str) -> Source | None:
    """A text that came as text, as `read_source` gives one of bytes; None where it holds a NUL."""
    if "\0" in text:
        return None
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    return _with_ends(text[len(mark) :], "utf-8", mark.encode())


def edited(source: Source, plan: EditPlan) -> bytes | Refusal:
    """The bytes of `source` after a plan on its text. Lines that stay keep their own ends; new ones
    take the end of the line that they replace or follow."""
    return _encoded(source, _ended(source, plan))


def restored(source: Source, plan: EditPlan) -> str:
    """The text of `source` after a plan, with its mark and its line ends; for what came as text."""
    return source.bom.decode() + _ended(source, plan)


def _ended(source: Source, plan: EditPlan) -> str:
    after = apply(plan)
    if not source.ends:
        return after if source.newline == "\n" else after.replace("\n", source.newline)
    ends = list(source.ends)
    for change in reversed(plan.changes):
        new = ends[change.start : change.start + 1] or ends[change.start - 1 : change.start]
        kept = ends[change.start : change.end][: len(change.lines)]
        fill = (new[0] if new else "") or source.newline
        ends[change.start : change.end] = kept + [fill] * (len(change.lines) - len(kept))
    count = after.count("\n")
    ends = [end or source.newline for end in ends[:count]]
    return "".join(map("".join, zip(after.split("\n"), [*ends, ""], strict=True)))


def rewritten(source: Source, text: str) -> bytes | Refusal:
    """The bytes of a file whose whole text is now `text`, in the form of `source`."""
    if source.newline != "\n":
        text = text.replace("\n", source.newline)
    return _encoded(source, text)


def lf(text: str) -> str:
    """`text` with LF line ends."""
    return text.replace("\r\n", "\n")


def _encoded(source: Source, text: str) -> bytes | Refusal:
    try:
        return source.bom + text.encode(source.encoding)
    except UnicodeEncodeError as error:
        character = text[error.start]
        return Refusal(
            "encoding",
            f"The file is {source.encoding}, which has no {character!r} (U+{ord(character):04X}). "
            "Nothing was changed.",
            "Use other characters, or first convert the file to UTF-8 with a command.",
        )


def _with_ends(text: str, encoding: str, bom: bytes) -> Source:
    windows = text.count("\r\n")
    unix = text.count("\n") - windows
    if not windows:
        if not unix and "\r" in text:
            return Source(text.replace("\r", "\n"), encoding, bom, "\r")
        return Source(text, encoding, bom)
    newline = "\r\n" if windows >= unix else "\n"
    ends = (*re.findall(r"\r?\n", text), "") if unix else ()
    return Source(text.replace("\r\n", "\n"), encoding, bom, newline, ends)
