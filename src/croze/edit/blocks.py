"""SEARCH/REPLACE blocks as they are read from a model's text."""

import re
from collections.abc import Iterable, Iterator, Sequence

from croze.edit.values import Block, BlockEdit, Refusal, RefusalCode

FORM = "<<<<<<< SEARCH\nlines of the file\n=======\nnew lines\n>>>>>>> REPLACE"

_START = re.compile(r"[<-]{5,9} ?SEARCH>?[ \t]*")
DIVIDER = re.compile(r"={7}[ \t]*")
_LOOSE_DIVIDER = re.compile(r"={5,9}[ \t]*")
_END = re.compile(r"[>+]{5,9} ?REPLACE<?[ \t]*")
_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[\w.+-]*[ \t]*")


def parse_blocks(diff: str) -> BlockEdit | Refusal:
    """The blocks of `diff`. Only blank lines and code fences may stand between them, so that content
    which ends a block too early is noticed instead of lost."""
    lines = diff.replace("\r\n", "\n").split("\n")
    blocks: list[Block] = []
    at = 0
    while at < len(lines):
        if _START.fullmatch(lines[at]):
            number = len(blocks) + 1
            end = _end_of_block(lines, at + 1)
            if end is None:
                return _malformed(number, at, "has no >>>>>>> REPLACE line at its end")
            splits = _splits(lines[at + 1 : end])
            if not splits:
                return _malformed(number, at, "has no ======= line of its own between its markers")
            blocks.append(Block(number, splits))
            at = end + 1
        elif lines[at].strip() and not _FENCE.fullmatch(lines[at]):
            what = (
                f"line {at + 1} of the diff stands outside of any block: {lines[at].strip()[:80]!r}"
            )
            return refusal("malformed_block", len(blocks), what, text=f"The form is:\n{FORM}")
        else:
            at += 1
    if not blocks:
        what = "the diff has no SEARCH/REPLACE block"
        return refusal("malformed_block", 0, what, text=f"The form is:\n{FORM}")
    return BlockEdit(tuple(blocks))


def listed_blocks(items: Iterable[tuple[str, str, int]]) -> BlockEdit | Refusal:
    """Blocks that came as fields: SEARCH, REPLACE and a line hint (1-based, 0 for none) of each."""
    blocks = tuple(
        Block(number, ((_lines(search), _lines(replace)),), line)
        for number, (search, replace, line) in enumerate(items, 1)
    )
    return BlockEdit(blocks) if blocks else refusal("malformed_block", 0, "the edit has no blocks")


def _lines(text: str) -> tuple[str, ...]:
    text = text.replace("\r\n", "\n")
    return tuple(text.removesuffix("\n").split("\n")) if text else ()


def _end_of_block(lines: Sequence[str], start: int) -> int | None:
    """The first REPLACE line after which a block could begin or the diff could end; never one beyond
    the start of another block."""
    first = None
    for at in range(start, len(lines)):
        if first is not None and _START.fullmatch(lines[at]):
            return first
        if _END.fullmatch(lines[at]):
            first = at if first is None else first
            rest = (line for line in lines[at + 1 :] if line.strip() and not _FENCE.fullmatch(line))
            following = next(rest, None)
            if following is None or _START.fullmatch(following):
                return at
    return first


def _splits(body: Sequence[str]) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """The readings of a block's body. One that would write a marker which SEARCH doesn't have is none:
    it is two blocks, one of them broken."""
    dividers = list(_matching(body, DIVIDER)) or list(_matching(body, _LOOSE_DIVIDER))
    readings = ((tuple(body[:at]), tuple(body[at + 1 :])) for at in dividers)
    return tuple(
        (search, replace) for search, replace in readings if _markers(replace) <= _markers(search)
    )


def _markers(lines: Sequence[str]) -> int:
    return sum(1 for line in lines if _START.fullmatch(line) or _END.fullmatch(line))


def _matching(lines: Sequence[str], pattern: re.Pattern[str]) -> Iterator[int]:
    return (at for at, line in enumerate(lines) if pattern.fullmatch(line))


def _malformed(number: int, at: int, what: str) -> Refusal:
    what = f"(line {at + 1} of the diff) {what}"
    return refusal("malformed_block", number, what, text=f"The form is:\n{FORM}")


def refusal(
    code: RefusalCode, block: int, what: str, *, text: str = "", lines: tuple[int, ...] = ()
) -> Refusal:
    """A refusal of one block, or where `block` is 0 of the edit as a whole."""
    message = f"Block {block}: {what}" if block else what[:1].upper() + what[1:]
    return Refusal(code, f"{message}. Nothing was changed.", text, block, lines)
