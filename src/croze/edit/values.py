"""What an edit is, what it becomes when it fits a text, and what is told when it doesn't."""

from typing import Literal

from msgspec import Struct

RefusalCode = Literal[
    "malformed_block", "malformed_patch", "malformed_range", "no_match", "ambiguous", "overlap",
    "empty_search", "stale", "out_of_range", "undecided_sketch", "elision_marker", "encoding",
    "too_long",
]  # fmt: skip


class Block(Struct, frozen=True):
    """One SEARCH/REPLACE block. `splits` are its possible readings, each a pair of line lists: more
    than one where the content itself holds lines that look like the divider. `line` (1-based, 0 for
    none) hints at the place where the text stands several times."""

    number: int
    splits: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    line: int = 0


class BlockEdit(Struct, frozen=True):
    blocks: tuple[Block, ...]


class Change(Struct, frozen=True):
    """Lines `start` up to `end` (0-based, end exclusive) become `lines`."""

    start: int
    end: int
    lines: tuple[str, ...]


class EditPlan(Struct, frozen=True):
    """Changes that fit `text` (line ends are LF): in the order of the file, apart from each other.
    `notes` tell of blocks that were not needed; `strategy` names the loosest rung that was used."""

    text: str
    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()
    strategy: str = "exact"


class Refusal(Struct, frozen=True):
    """Why an edit was not made. `message` is one line, `text` shows the place and the difference.

    `block` counts from 1; 0 is the edit as a whole. `lines` are 1-based lines that it is about.
    """

    code: RefusalCode
    message: str
    text: str = ""
    block: int = 0
    lines: tuple[int, ...] = ()
