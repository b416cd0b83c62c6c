"""Unified diffs, as programs and models write them: hunks are found by what they say, not by numbers."""

import itertools
import re
from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct

from croze.edit.lines import Lines
from croze.edit.match import BLANKS, COMMENTS, ELISION
from croze.edit.nearest import nearest
from croze.edit.place import plan_blocks
from croze.edit.rows import finished, split
from croze.edit.values import Block, BlockEdit, Change, EditPlan, Refusal, RefusalCode

FORM = "--- a/file\n+++ b/file\n@@ -1,3 +1,3 @@\n line\n-old line\n+new line\n line"

_NEAR = 5
_TELLING = 12
_ENOUGH = 3
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*")
_BARE_HUNK = re.compile(r"@@(?: .*)?")
_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[\w.+-]*[ \t]*")
_NO_NEWLINE = re.compile(r"\\ ?No newline.*", re.IGNORECASE)
_BETWEEN = re.compile(
    r"diff |index [0-9a-f]|old mode |new mode |new file mode|deleted file mode|similarity index"
    r"|dissimilarity index|rename (?:from|to) |copy (?:from|to) |Index: |={10,}"
)


class PatchEdit(Struct, frozen=True):
    """A unified diff of one file."""

    text: str


class Hunk(Struct, frozen=True):
    """One hunk: its lines with their signs. `line` is the header's, 0 where it has none. `old_end` and
    `new_end` tell that the old or the new side ends without a newline."""

    number: int
    line: int
    rows: tuple[tuple[str, str], ...]
    old_end: bool = False
    new_end: bool = False

    @property
    def old(self) -> list[str]:
        return [line for sign, line in self.rows if sign != "+"]

    @property
    def new(self) -> list[str]:
        return [line for sign, line in self.rows if sign != "-"]


class _File:
    """The file's lines, as they stand and without blanks at their ends."""

    def __init__(self, text: str) -> None:
        self.lines = Lines(text)

    @cached_property
    def stripped(self) -> Lines:
        text = self.lines.text
        if not any(blank in text for blank in (" \n", "\t\n")) and text.rstrip(" \t") == text:
            return self.lines
        return Lines("\n".join(line.rstrip(" \t") for line in text.split("\n")))

    def find(self, wanted: Sequence[str], *, blanks: bool) -> list[int]:
        """Where `wanted` stands; with `blanks` whatever blanks the lines end with."""
        if blanks:
            return self.stripped.exact([line.rstrip(" \t") for line in wanted])
        return self.lines.exact(wanted)


class _Parsed(Struct, frozen=True):
    hunks: tuple[Hunk, ...]
    creates: bool
    deletes: bool


def plan_patch(text: str, edit: PatchEdit) -> EditPlan | Refusal:
    """Where the hunks belong in `text`. A diff of several files is refused: this is one file."""
    parsed = _parse(edit.text)
    if isinstance(parsed, Refusal):
        return parsed
    file = _File(text)
    lines = file.lines.all
    if parsed.creates and text:
        return _present(text, parsed)
    placed: list[tuple[Hunk, int]] = []
    notes: list[str] = []
    strategy, drift = "exact", 0
    absent: list[tuple[Hunk, Refusal]] = []
    for hunk in parsed.hunks:
        found = _place(file, hunk, drift)
        if isinstance(found, Refusal) and found.code == "no_match":
            absent.append((hunk, found))
            continue
        if isinstance(found, Refusal):
            return found
        if isinstance(found, str):
            notes.append(f"Hunk {hunk.number} {found}.")
            continue
        start, rung = found
        strategy = rung if rung != "exact" else strategy
        if hunk.line:
            drift = start - (hunk.line - 1)
        placed.append((hunk, start))
    if absent:
        loosely = _loosely(text, parsed, [hunk for hunk, _ in absent])
        return absent[0][1] if loosely is None else loosely
    if parsed.deletes and sum(len(hunk.old) for hunk, _ in placed) != len(lines):
        what = "the diff deletes the file, but doesn't show all of its lines"
        return _refusal("no_match", 0, what, text="Read the file again.")
    return _plan(text, lines, placed, tuple(notes), strategy)


def _loosely(text: str, parsed: _Parsed, absent: Sequence[Hunk]) -> EditPlan | None:
    """The hunks as SEARCH/REPLACE blocks, whose matching forgives more; None where that doesn't help
    with those that are absent as they stand, or isn't safe."""
    ends = any(hunk.old_end != hunk.new_end for hunk in parsed.hunks)
    if ends or parsed.creates or parsed.deletes or not all(map(_says_enough, absent)):
        return None
    known = {line.strip() for line in split(text)}
    if not all(any(line.strip() in known for line in hunk.old if line.strip()) for hunk in absent):
        return None
    blocks = (
        Block(hunk.number, ((tuple(hunk.old), tuple(hunk.new)),), hunk.line)
        for hunk in parsed.hunks
    )
    planned = plan_blocks(text, BlockEdit(tuple(blocks)))
    # A diff has a sign for each line: a lost one may be a lost change.
    if isinstance(planned, Refusal) or planned.strategy in (BLANKS, COMMENTS, ELISION):
        return None
    return planned


def _says_enough(hunk: Hunk) -> bool:
    """True for a hunk with some old lines, none of whose changes is one of blank lines only: such a one
    can't be told from blank lines that were lost in writing."""
    if sum(1 for line in hunk.old if line.strip()) < _ENOUGH:
        return False
    runs = itertools.groupby(hunk.rows, key=lambda row: row[0] == " ")
    return all(context or any(line.strip() for _, line in run) for context, run in runs)


def _plan(
    text: str,
    lines: Sequence[str],
    placed: Sequence[tuple[Hunk, int]],
    notes: tuple[str, ...],
    strategy: str,
) -> EditPlan | Refusal:
    numbered = [(hunk.number, change) for hunk, at in placed for change in _changes(hunk, at)]
    numbered.sort(key=lambda item: (item[1].start, item[1].end))
    for (first, before), (second, after) in itertools.pairwise(numbered):
        same_place = first != second and after.start == before.start
        if after.start < before.end or same_place:
            what = f"hunks {first} and {second} both change line {after.start + 1}"
            row = (after.start + 1,)
            return _refusal(
                "overlap", max(first, second), what, text="Make one of them.", lines=row
            )
    final = text.endswith("\n") or not text
    for hunk, at in placed:
        if at + len(hunk.old) == len(lines) and hunk.old_end != hunk.new_end:
            final = not hunk.new_end
    changed = [change for _, change in numbered]
    return finished(text, changed, notes, strategy, final=final)


def _changes(hunk: Hunk, at: int) -> list[Change]:
    """The hunk's runs of removed and added lines; its context stays what the file has."""
    found: list[Change] = []
    start, added = at, list[str]()
    for sign, line in (*hunk.rows, (" ", "")):
        if sign == "+":
            added.append(line)
        elif sign == "-":
            at += 1
        else:
            if at > start or added:
                found.append(Change(start, at, tuple(added)))
            at += 1
            start, added = at, []
    return found


def _place(file: _File, hunk: Hunk, drift: int) -> tuple[int, str] | str | Refusal:
    old, new, lines = hunk.old, hunk.new, file.lines.all
    if old == new and hunk.old_end == hunk.new_end:
        return "changes nothing"
    if not old:
        if not lines:
            return 0, "exact"
        if _made(file, hunk):
            return "was already applied"
        what = "has no line of the file, so its place is only a number"
        return _refusal("ambiguous", hunk.number, what, text="Add context lines above and below.")
    for rung, blanks in (("exact", False), ("trailing blanks", True)):
        starts = file.find(old, blanks=blanks)
        if hunk.old_end and any(at + len(old) == len(lines) for at in starts):
            starts = [len(lines) - len(old)]
        if not starts:
            continue
        if _stands(file, starts, old, new, blanks=blanks):
            return "was already applied"
        start = starts[0] if len(starts) == 1 else _nearest(starts, hunk, drift)
        return (start, rung) if start is not None else _several(lines, hunk, starts)
    if _made(file, hunk):
        return "was already applied"
    where, shown = nearest(file.lines, old)
    return _refusal("no_match", hunk.number, "was not found in the file", text=shown, lines=where)


def _nearest(starts: Sequence[int], hunk: Hunk, drift: int) -> int | None:
    """The start that the header's line number means: near, clearly nearer than the next, and the same
    whether the numbers are taken as they stand or moved like the hunk before."""
    if not hunk.line:
        return None
    found = set()
    for expected in (hunk.line - 1, hunk.line - 1 + drift):
        order = sorted(starts, key=lambda at: abs(at - expected))
        first, second = abs(order[0] - expected), abs(order[1] - expected)
        if first > _NEAR or second < 2 * first + 3:
            return None
        found.add(order[0])
    return found.pop() if len(found) == 1 else None


def _stands(
    file: _File, starts: Sequence[int], old: list[str], new: list[str], *, blanks: bool
) -> bool:
    """True where the old lines were found only inside of places that read as the new ones do."""
    if len(new) <= len(old):
        return False
    offsets = [at for at in range(len(new) - len(old) + 1) if new[at : at + len(old)] == old]
    there = set(file.find(new, blanks=blanks))
    return all(any(start - offset in there for offset in offsets) for start in starts)


def _made(file: _File, hunk: Hunk) -> bool:
    """True where the file has the new lines already. Context alone shows that only where the removed
    lines say something and are gone."""
    new = hunk.new
    signs = {sign for sign, line in hunk.rows if line.strip()}
    if "+" not in signs:
        gone = {line.strip() for sign, line in hunk.rows if sign == "-"}
        sides = all(sign == " " and line.strip() for sign, line in (hunk.rows[0], hunk.rows[-1]))
        if not sides or not any(gone) or any(row.strip() in gone for row in file.lines.all):
            return False
    return len("".join(new).strip()) >= _TELLING and len(file.find(new, blanks=True)) == 1


def _several(lines: Sequence[str], hunk: Hunk, starts: Sequence[int]) -> Refusal:
    shown = []
    for start in starts[:5]:
        window = range(max(0, start - 2), min(len(lines), start + 5))
        shown.append("\n".join(f"{at + 1}\t{lines[at][:200]}" for at in window))
    what = f"fits {len(starts)} places of the file"
    hint = "Add context lines until it fits one:\n\n" + "\n\n".join(shown)
    at = tuple(start + 1 for start in starts)
    return _refusal("ambiguous", hunk.number, what, text=hint, lines=at)


def _present(text: str, parsed: _Parsed) -> EditPlan | Refusal:
    new = [line for hunk in parsed.hunks for line in hunk.new]
    if split(text) == new:
        return EditPlan(text, (), ("The file already has this content.",))
    what = "the diff makes a new file, but there is one with other content"
    return _refusal("no_match", 0, what, text="Read it, then give a diff of what it says.")


def _parse(diff: str) -> _Parsed | Refusal:
    rows = _unfenced(diff.replace("\r\n", "\n").split("\n"))
    hunks: list[Hunk] = []
    files: list[str] = []
    creates = deletes = False
    at = 0
    while at < len(rows):
        row = rows[at]
        if row.startswith("GIT binary patch") or re.match(r"Binary files .* differ", row):
            return _refusal("malformed_patch", 0, "a binary diff can't be applied")
        if row.startswith("@@@"):
            return _refusal("malformed_patch", 0, "a combined diff can't be applied")
        if hunks and row.rstrip() == "--":
            break  # the signature of a mail
        if _is_head(rows, at):
            old, new = _name(row), _name(rows[at + 1])
            files.append(old if new == "/dev/null" else new)
            creates, deletes = creates or old == "/dev/null", deletes or new == "/dev/null"
            at += 2
            if at < len(rows) and rows[at][:1] in (" ", "+", "-") and not _is_head(rows, at):
                at = _hunk(rows, at, None, hunks)  # a diff whose hunk header was left out
        elif _HUNK.fullmatch(row) or _BARE_HUNK.fullmatch(row):
            at = _hunk(rows, at + 1, _HUNK.fullmatch(row), hunks)
        elif hunks and row.strip() and not _is_between(row):
            what = f"line {at + 1} belongs to no hunk: {row.strip()[:80]!r}"
            return _refusal("malformed_patch", 0, what, text=f"The form is:\n{FORM}")
        else:
            at += 1
    if len(set(files)) > 1:
        what = f"the diff changes {len(set(files))} files: {', '.join(dict.fromkeys(files))}"
        return _refusal("malformed_patch", 0, what, text="Give one diff for each file.")
    if not any(sign != " " for hunk in hunks for sign, _ in hunk.rows):
        what = "the diff has no hunk with added or removed lines"
        return _refusal("malformed_patch", 0, what, text=f"The form is:\n{FORM}")
    return _Parsed(tuple(hunks), creates, deletes)


def _hunk(rows: Sequence[str], at: int, header: re.Match[str] | None, hunks: list[Hunk]) -> int:
    """Read one hunk from `at` on: by the header's counts where they hold, else up to what can't be its
    line. Gives the line after it."""
    end = _counted(rows, at, header) if header is not None else None
    if end is None:
        end = at
        while end < len(rows) and _is_body(rows, end):
            end += 1
        while end > at and not rows[end - 1]:
            end -= 1
    signed: list[tuple[str, str]] = []
    old_end = new_end = False
    for row in rows[at:end]:
        if _NO_NEWLINE.fullmatch(row):
            sign = signed[-1][0] if signed else " "
            old_end, new_end = old_end or sign != "+", new_end or sign != "-"
        else:
            signed.append((row[:1] or " ", row[1:]))
    line = int(header[1]) if header is not None else 0
    hunks.append(Hunk(len(hunks) + 1, line, tuple(signed), old_end, new_end))
    return end


def _counted(rows: Sequence[str], at: int, header: re.Match[str]) -> int | None:
    """The end of a hunk whose counts are right and after which something else begins."""
    old, new = (int(count) if count is not None else 1 for count in (header[2], header[4]))
    while (old > 0 or new > 0) and at < len(rows):
        sign = rows[at][:1] or " "
        if sign not in " +-\\":
            return None
        old -= sign in " -"
        new -= sign in " +"
        at += 1
    if old or new:
        return None
    while at < len(rows) and _NO_NEWLINE.fullmatch(rows[at]):
        at += 1
    following = next((row for row in rows[at:] if row), None)
    if following is None or not following.startswith((" ", "+", "-", "\\")):
        return at
    beyond = at + list(rows[at:]).index(following)
    return at if _is_head(rows, beyond) or following.rstrip() == "--" else None


def _is_body(rows: Sequence[str], at: int) -> bool:
    row = rows[at]
    if not row:
        following = next((other for other in rows[at:] if other), None)
        return following is not None and following[:1] in (" ", "+", "-", "\\")
    return row[0] in " +-\\" and not _is_head(rows, at) and row != "-- "


def _is_head(rows: Sequence[str], at: int) -> bool:
    """True at the two lines that name a file. Removed and added lines can look like it, so a hunk must
    follow where one has begun."""
    if not (rows[at].startswith("--- ") and at + 1 < len(rows) and rows[at + 1].startswith("+++ ")):
        return False
    return at + 2 >= len(rows) or not rows[at + 2] or rows[at + 2][0] in "@ +-"


def _is_between(row: str) -> bool:
    return _BETWEEN.match(row) is not None or _FENCE.fullmatch(row) is not None


def _name(row: str) -> str:
    """The path of a `---` or `+++` line: without its time stamp, quotes and the a/ or b/ before it."""
    name = row[4:].split("\t")[0].strip().strip('"')
    return name if name == "/dev/null" else re.sub(r"^[ab]/", "", name)


def _unfenced(rows: list[str]) -> list[str]:
    """Without the code fence around all of it."""
    filled = [at for at, row in enumerate(rows) if row.strip()]
    if len(filled) > 1 and _FENCE.fullmatch(rows[filled[0]]) and _FENCE.fullmatch(rows[filled[-1]]):
        return rows[filled[0] + 1 : filled[-1]]
    return rows


def _refusal(
    code: RefusalCode, number: int, what: str, *, text: str = "", lines: tuple[int, ...] = ()
) -> Refusal:
    message = f"Hunk {number} {what}" if number else what[:1].upper() + what[1:]
    return Refusal(code, f"{message}. Nothing was changed.", text, number, lines)
