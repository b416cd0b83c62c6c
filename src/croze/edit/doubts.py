"""Signs in the new lines of a block that they don't mean what they say."""

import re
from collections.abc import Iterable, Sequence

from croze.edit.decode import ENTITY, Reading, is_fence, numbered
from croze.edit.lines import TYPOGRAPHIC, Lines, indent, is_comment, typographic
from croze.edit.match import MARKER, Match
from croze.edit.splice import Spliced, Undecided
from croze.edit.values import RefusalCode

_RAW = re.compile(r"[<>]|&(?!#?\w+;)")
_TRIVIAL = re.compile(r"(?:pass|\.\.\.|raise NotImplementedError.*|return NotImplemented|)")
_STUB_AFTER = re.compile(r"\s*(?:(?:async def|def|class)\b.*:|\).*:|.*(?:\"\"\"|'''))\s*(?:#.*)?")
_DASH_IN_PROSE = re.compile(r"(?<=[\w)\]\"'`.,]{2}) [–—] (?=[^\W\d]{2})")


_OPENING = re.compile(r"(?<![^\W_])'|'(?![^\W_])")
_NEAR = 20
_PROSE = 5


class Elided(Undecided):
    """The new lines leave something out."""


def doubt(reading: Reading, match: Match, spliced: Spliced, lines: Lines) -> None:
    """Raises Undecided where the new lines look wrapped, escaped or shortened and nothing that the block
    restates shows how they are meant."""
    added = [line for _, new, _ in spliced.hunks for line in new]
    if not added:
        return
    both = (*reading.search, *reading.replace)
    _wrapped(reading, match)
    _escaped(added, reading, both, lines)
    _quoted([line for change in spliced.changes for line in change.lines], both, lines)
    for removed, new, after in spliced.hunks:
        _shortened(removed, new, after, lines)
    _tabs(match, spliced, lines)


def code_of(reason: Undecided) -> RefusalCode:
    return "elision_marker" if isinstance(reason, Elided) else "ambiguous"


def _wrapped(reading: Reading, match: Match) -> None:
    ours, theirs = (sum(map(is_fence, side)) for side in (reading.search, reading.replace))
    if _wraps(reading.replace) and (not _wraps(reading.search) or theirs > ours + 1):
        raise Undecided("its REPLACE is wrapped in code fences and its SEARCH is not")
    found = numbered(reading.replace)
    near = bool(found) and abs(found[0][1] - match.start - 1) <= _NEAR
    if (near or len(reading.replace) > 1) and found and not numbered(reading.search):
        raise Undecided("its REPLACE has line numbers and its SEARCH has none")


def _wraps(lines: Sequence[str]) -> bool:
    solid = [line for line in lines if line.strip()]
    return len(solid) > 1 and all(map(is_fence, (solid[0], solid[-1])))


def _escaped(added: Sequence[str], reading: Reading, both: Sequence[str], lines: Lines) -> None:
    new = "\n".join(added)
    search = "\n".join(reading.search)
    if ENTITY.search(new) and not ENTITY.search(search) and not any(map(_RAW.search, both)):
        raise Undecided(
            "its REPLACE has entities like &lt;, and nothing in it shows whether they are meant so; "
            "restate a line that has <, > or & as it stands"
        )
    if '\\"' in new and '\\"' not in search and not re.search(r'(?<!\\)"', "\n".join(both)):
        raise Undecided(
            'its REPLACE has \\" where " may be meant; restate a line that has a quote as it stands'
        )

    if "\\\\" in new and "\\" not in search and "\\\\" not in lines.text and "\\" in lines.text:
        raise Undecided("its REPLACE has \\\\ where the file has \\ only")
    if len(reading.replace) == 1 and "\\" not in search:
        before, escaped, _ = reading.replace[0].partition("\\n")
        deep = re.search(r"\\n {4}", reading.replace[0]) is not None
        if escaped and (
            deep
            or not (
                before.count('"') % 2 or len(_OPENING.findall(before)) % 2 or before.count("`") % 2
            )
        ):
            raise Undecided(
                "its REPLACE has \\n outside of a string, where a line's end may be meant"
            )


def _quoted(added: Sequence[str], both: Sequence[str], lines: Lines) -> None:
    text = "".join(added)
    odd = typographic(lines.text)
    for plain in {TYPOGRAPHIC[char] for char in odd} & set("'\"-"):
        if plain in text and plain not in lines.text:
            raise Undecided(
                f"its REPLACE has {plain!r}, of which the file has only typographic ones"
            )
    new = typographic(text) - odd
    if not new:
        return
    whole = "".join(both)
    if any(TYPOGRAPHIC[char] in "'\"" and TYPOGRAPHIC[char] not in whole for char in new):
        raise Undecided("its REPLACE has typographic quotes, of which the file has none")
    dashes = new & set("‐‑‒–—―−")
    prose = [_DASH_IN_PROSE.sub("", line) if _is_prose(line) else line for line in added]
    if dashes and "-" not in whole and dashes & set("".join(prose)):
        raise Undecided("its REPLACE has a typographic dash, of which the file has none")


def _is_prose(line: str) -> bool:
    words = line.split()
    return is_comment(line.strip()) or (
        len(words) > _PROSE and not re.search(r"[=;(){}\[\]_]", line)
    )


def _shortened(removed: Sequence[str], new: Sequence[str], after: str, lines: Lines) -> None:
    """A marker that would be written. Three dots alone are code where they are the body of a stub."""
    for at, line in enumerate(new):
        if not MARKER.fullmatch(line) or line in removed:
            continue
        above = new[at - 1] if at else ""
        below = new[at + 1] if at + 1 < len(new) else after
        stub = (
            line.strip() == "..."
            and "..." in lines.bare
            and _STUB_AFTER.fullmatch(above)
            and (not below.strip() or len(indent(below)) < len(indent(line)))
        )
        lost = sum(1 for one in removed if not _TRIVIAL.fullmatch(one.strip()))
        if not stub or lost >= len([one for one in new if one.strip()]):
            raise Elided(
                f"its REPLACE leaves something out ({line.strip()[:60]!r}); write all of its lines, or "
                "have the same marker at the same place in SEARCH (three dots that are code can stand "
                "on the line above)"
            )


def _tabs(match: Match, spliced: Spliced, lines: Lines) -> None:
    """New lines in the other kind of indentation than the file's, where SEARCH has no indented line
    that would show that this is meant."""
    styles = _styles(line for change in spliced.changes for line in change.lines)
    styles -= _styles(
        line
        for part in match.parts
        for line, at in zip(part.search, part.pairs, strict=True)
        if at >= 0 and _styles([line]) == _styles([lines.all[at]])
    )
    tabs, spaces = lines.text.count("\n\t"), lines.text.count("\n  ")
    if tabs >= 3 and spaces * 20 <= tabs and " " in styles:
        raise Undecided(_TABS.format("spaces", "tabs"))
    if spaces >= 3 and tabs * 20 <= spaces and "\t" in styles:
        raise Undecided(_TABS.format("tabs", "spaces"))


_TABS = (
    "its new lines are indented by {}, the file's by {}; write them so, or restate an indented line"
)


def _styles(lines: Iterable[str]) -> set[str]:
    """Which kinds of blanks indent the lines; single spaces align and count for nothing."""
    found = set()
    for line in lines:
        blanks = indent(line)
        if line.strip() and "\t" in blanks:
            found.add("\t")
        if line.strip() and "  " in blanks:
            found.add(" ")
    return found
