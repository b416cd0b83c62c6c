"""Edits of real files, and the ways in which models get them wrong: what was meant is always known."""

import html
import itertools
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

CORPUS = {
    path.name.removesuffix(".txt"): path.read_text()
    for path in sorted((Path(__file__).parent / "corpus").iterdir())
}


@dataclass(frozen=True)
class Hunk:
    """Lines `start` to `end` of the file become `new`; SEARCH has `above` and `below` lines round them."""

    start: int
    end: int
    new: tuple[str, ...]
    above: int
    below: int


@dataclass(frozen=True)
class Case:
    """An edit: the file, its blocks (search, replace, line hint) and the file that is meant. `None` for
    `after` means that only a refusal is right."""

    before: str
    after: str | None
    blocks: tuple[tuple[str, str, int], ...]
    hunks: tuple[Hunk, ...] = field(default=(), compare=False)


def joined(lines: list[str] | tuple[str, ...]) -> str:
    return "".join(f"{line}\n" for line in lines)


def split(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def edit(chance: random.Random, text: str, *, count: int | None = None) -> Case | None:
    """A plausible edit of `text` whose blocks all stand once in it."""
    lines = split(text)
    number = count or chance.choice([1, 1, 1, 2, 3])
    hunks: list[Hunk] = []
    floor = 0
    starts = sorted(chance.sample(range(len(lines)), min(number, len(lines))))
    for start in starts:
        if start < floor:
            continue
        hunk = _hunk(chance, lines, start)
        if hunk is None or start - hunk.above < floor:
            continue
        hunks.append(hunk)
        floor = hunk.end + hunk.below
    return made(text, tuple(hunks)) if hunks else None


def made(text: str, hunks: tuple[Hunk, ...]) -> Case | None:
    lines = split(text)
    blocks = []
    after = list(lines)
    for hunk in reversed(hunks):
        after[hunk.start : hunk.end] = hunk.new
    for hunk in hunks:
        head = lines[hunk.start - hunk.above : hunk.start]
        tail = lines[hunk.end : hunk.end + hunk.below]
        search = [*head, *lines[hunk.start : hunk.end], *tail]
        new = [*head, *hunk.new, *tail]
        if search == new or not "".join(search).strip():
            return None
        if f"\n{text}".count("\n" + joined(search)) != 1:
            return None
        blocks.append((joined(search), joined(new), 0))
    result = joined(after)
    return Case(text, result, tuple(blocks), hunks) if result != text else None


KINDS = ("modify", "insert", "delete", "replace", "wrap", "blank")


def _hunk(chance: random.Random, lines: list[str], start: int) -> Hunk | None:
    length = chance.choice([0, 1, 1, 1, 2, 3, 5])
    end = min(len(lines), start + length)
    old = lines[start:end]
    kind = chance.choices(KINDS, (8, 4, 3, 3, 2, 0.5))[0]
    if kind == "modify" and old:
        new = [_modified(chance, line) if chance.random() < 0.7 else line for line in old]
    elif kind == "delete" and old:
        new = []
    elif kind == "wrap" and old and any(line.strip() for line in old):
        pad = min((indent(line) for line in old if line.strip()), key=len)
        step = "\t" if "\t" in "".join(map(indent, lines)) else "    "
        new = [f"{pad}if ready:", *(step + line if line.strip() else line for line in old)]
    elif kind == "blank":
        end = start
        new = [""]
    else:
        if kind == "insert":
            end = start
        new = _new_lines(chance, lines, start)
    if new == lines[start:end]:
        return None
    above, below = chance.choice([(3, 3), (2, 2), (1, 1), (2, 0), (0, 2), (1, 3), (0, 0), (5, 5)])
    if start == end and above == below == 0:
        above = 1
    return Hunk(start, end, tuple(new), min(above, start), min(below, len(lines) - end))


def _new_lines(chance: random.Random, lines: list[str], start: int) -> list[str]:
    """Lines like those nearby, at the indentation of the place."""
    at = max(0, min(len(lines) - 1, start + chance.randrange(-15, 16)))
    source = lines[at : at + chance.choice([1, 2, 3, 6])]
    while source and not source[-1].strip():
        source.pop()
    while source and not source[0].strip():
        source.pop(0)
    if not source:
        return []
    here = next((indent(line) for line in lines[start:] if line.strip()), "")
    low = min((indent(line) for line in source if line.strip()), key=len)
    return [
        _modified(chance, here + line.removeprefix(low)) if line.strip() else "" for line in source
    ]


def _modified(chance: random.Random, line: str) -> str:
    words = list(re.finditer(r"[A-Za-z_]{3,}", line))
    if not words:
        return line
    word = chance.choice(words)
    new = chance.choice(
        ["updated", "limit", "first_value", word[0] + "_ready", word[0] + 's("a", b - 1)']
    )
    return line[: word.start()] + new + line[word.end() :]


def indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


Perturbation = Callable[[random.Random, Case], Case | None]


def _blocks(case: Case, change: Callable[[str], str], *, both: bool) -> Case | None:
    blocks = tuple(
        (change(search), change(new) if both else new, hint) for search, new, hint in case.blocks
    )
    return replace(case, blocks=blocks) if blocks != case.blocks else None


def _each(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: joined([change(line) for line in split(text)])


def plain(chance: random.Random, case: Case) -> Case | None:
    return case


def trailing_added(chance: random.Random, case: Case) -> Case | None:
    blanks = chance.choice([" ", "  ", "\t"])
    if chance.random() < 0.5:
        return _blocks(case, _each(lambda line: line + blanks if line.strip() else line), both=True)
    seed = chance.random()

    def some(line: str) -> str:
        return line + blanks if random.Random(f"{seed}{line}").random() < 0.3 else line

    return _blocks(case, _each(some), both=False)


def trailing_lost(chance: random.Random, case: Case) -> Case | None:
    """The file has blanks at the end of lines that stay; the block doesn't."""
    touched = _kept_in_blocks(case)
    if not touched:
        return None
    texts = split(case.before)
    touched = [at for at in touched if texts[at].strip()]
    picked = {at for at in touched if chance.random() < 0.5} or set(touched[:1])
    return _file_lines(case, picked, lambda line: line + "  ")


def _kept_in_blocks(case: Case) -> list[int]:
    """Lines of the file that a block restates."""
    kept = []
    for hunk in case.hunks:
        kept += range(hunk.start - hunk.above, hunk.start)
        kept += range(hunk.end, hunk.end + hunk.below)
    return kept


def _file_lines(case: Case, picked: set[int], change: Callable[[str], str]) -> Case | None:
    """The file with kept lines changed, before and after alike; the blocks as they were."""
    lines = split(case.before)
    for at in picked:
        lines[at] = change(lines[at])
    before = joined(lines)
    for hunk in reversed(case.hunks):
        lines[hunk.start : hunk.end] = hunk.new
    return replace(case, before=before, after=joined(lines)) if before != case.before else None


def shifted(chance: random.Random, case: Case) -> Case | None:
    blocks = []
    for search, new, hint in case.blocks:
        solid = [line for line in split(search) + split(new) if line.strip()]
        common = min(map(indent, solid), key=len)
        if not all(line.startswith(common) for line in solid):
            return None
        if common and chance.random() < 0.7:
            cut = common if chance.random() < 0.7 else common[: len(common) // 2]
            change = _each(lambda line, cut=cut: line.removeprefix(cut))
        else:
            pad = chance.choice(["    ", "  ", "\t" if "\t" in search else "        "])
            change = _each(lambda line, pad=pad: pad + line if line.strip() else line)
        blocks.append((change(search), change(new), hint))
    return replace(case, blocks=tuple(blocks)) if tuple(blocks) != case.blocks else None


def first_line_lost(chance: random.Random, case: Case) -> Case | None:
    if not all(indent(search) for search, _, _ in case.blocks):
        return None
    return _blocks(case, lambda text: text.lstrip(" \t"), both=chance.random() < 0.7)


def retabbed(chance: random.Random, case: Case) -> Case | None:
    """The block has spaces for the file's tabs, or tabs for its spaces."""
    width = chance.choice([4, 4, 2, 8])

    def change(line: str) -> str:
        blanks = indent(line)
        if "\t" in blanks:
            return blanks.expandtabs(width) + line[len(blanks) :]
        return "\t" * (len(blanks) // width) + " " * (len(blanks) % width) + line[len(blanks) :]

    return _blocks(case, _each(change), both=True)


def retabbed_clearly(chance: random.Random, case: Case) -> Case | None:
    """As above, in files that are indented throughout."""
    found = retabbed(chance, case)
    if found and any(
        "\t *" in new or "\n *" in new or "\n\t*" in new for _, new, _ in found.blocks
    ):
        return None
    return found if sum(1 for line in split(case.before) if indent(line)) > 20 else None


def blank_dropped(chance: random.Random, case: Case) -> Case | None:
    return _one_line(chance, case, lambda line: not line.strip(), None, near=False)


def blank_added(chance: random.Random, case: Case) -> Case | None:
    return _one_line(chance, case, lambda line: True, "", near=False)


def blank_dropped_near(chance: random.Random, case: Case) -> Case | None:
    return _one_line(chance, case, lambda line: not line.strip(), None, near=True)


def blank_added_near(chance: random.Random, case: Case) -> Case | None:
    return _one_line(chance, case, lambda line: True, "", near=True)


def _one_line(
    chance: random.Random,
    case: Case,
    wanted: Callable[[str], bool],
    more: str | None,
    *,
    near: bool,
) -> Case | None:
    """In one block, drop a line or put one before it: in SEARCH alone, or in kept lines on both sides.
    `near` says whether a change is next to it."""
    number = chance.randrange(len(case.blocks))
    search, new, hint = case.blocks[number]
    hunk = case.hunks[number]
    ours, theirs = split(search), split(new)
    solid = [at for at, line in enumerate(ours) if line.strip()]
    places = [at for at, line in enumerate(ours) if wanted(line) and solid[0] < at <= solid[-1]]
    if not places:
        return None
    at = chance.choice(places)
    end = at - len(ours)
    known = [n for n in solid if sum(map(str.isalnum, ours[n])) >= 4]
    low = max((n for n in known if n < at), default=-1)
    high = min((n for n in known if n >= at and (n > at or more is not None)), default=len(ours))
    changed = (hunk.above, hunk.above + hunk.end - hunk.start)
    if near != (changed[0] <= high and changed[1] >= low + 1):
        return None
    with_replace = chance.random() < 0.6
    if with_replace and hunk.above <= at < hunk.above + hunk.end - hunk.start:
        return None
    if more is None:
        ours[at : at + 1] = []
    else:
        ours.insert(at, more)
    if with_replace:
        own = at if at < hunk.above else len(theirs) + end
        if more is None:
            theirs[own : own + 1] = []
        else:
            theirs.insert(own, more)
    if not "".join(ours).strip():
        return None
    blocks = list(case.blocks)
    blocks[number] = (joined(ours), joined(theirs), hint)
    return replace(case, blocks=tuple(blocks))


ODD = {'"': "“”", "'": "‘’", "-": "–—"}


def typographic(chance: random.Random, case: Case) -> Case | None:
    """The block has typographic quotes or dashes for the file's plain ones."""
    kinds = chance.sample(sorted(ODD), chance.choice([1, 3]))

    def change(text: str) -> str:
        for kind in kinds:
            odd = ODD[kind]
            text = re.sub(re.escape(kind), lambda found, odd=odd: odd[found.start() % 2], text)
        return text

    return _blocks(case, change, both=chance.random() < 0.7)


def typographic_file(chance: random.Random, case: Case) -> Case | None:
    """The file has typographic quotes or dashes; the block has plain ones, also in its new lines."""
    kind = chance.choice(sorted(ODD))
    odd = ODD[kind][0]
    lines = split(case.before)
    fresh = [
        line
        for hunk in case.hunks
        for at, line in enumerate(hunk.new)
        if len(hunk.new) != hunk.end - hunk.start
        or line.count(kind) != lines[hunk.start + at].count(kind)
    ]
    if kind in "".join(fresh):
        return None
    if not any(kind in search for search, _, _ in case.blocks):
        return None
    before = joined([line.replace(kind, odd) for line in lines])
    hunks = tuple(
        replace(hunk, new=tuple(line.replace(kind, odd) for line in hunk.new))
        for hunk in case.hunks
    )
    meant = made(before, hunks)
    return meant and replace(meant, blocks=case.blocks)


def comment_missing(chance: random.Random, case: Case) -> Case | None:
    """The file has a comment line that the block leaves out, away from the change."""
    return _comment(chance, case, near=False)


def comment_missing_near(chance: random.Random, case: Case) -> Case | None:
    return _comment(chance, case, near=True)


def _comment(chance: random.Random, case: Case, *, near: bool) -> Case | None:
    spots = []
    for hunk in case.hunks:
        low, high = hunk.start - hunk.above, hunk.end + hunk.below
        spots += range(low + 1, high)
    if not spots:
        return None
    at = chance.choice(spots)
    mark = "//" if "//" in case.before else "<!--" if "</" in case.before else "#"
    note = f"{mark} this note was added by hand later" + (" -->" if mark == "<!--" else "")
    owner = next(h for h in case.hunks if h.start - h.above < at < h.end + h.below)
    lines = split(case.before)
    known = [n for n, line in enumerate(lines) if sum(map(str.isalnum, line)) >= 4]
    low = max((n for n in known if n < at), default=-1)
    high = min((n for n in known if n >= at), default=len(lines))
    if owner.start < at < owner.end or near != (owner.start <= high and owner.end >= low + 1):
        return None
    comment = indent(lines[at]) + note
    return _with_line(case, at, comment)


def _with_line(case: Case, at: int, line: str) -> Case | None:
    """The file with a line more, before and after alike."""
    lines = split(case.before)
    after = split(case.after or "")
    shift = sum(len(h.new) - (h.end - h.start) for h in case.hunks if h.end <= at)
    after.insert(at + shift, line)
    lines.insert(at, line)
    return replace(case, before=joined(lines), after=joined(after))


def elided(chance: random.Random, case: Case) -> Case | None:
    """The middle of long kept runs as `...`, on both sides."""
    number = chance.randrange(len(case.blocks))
    hunk = case.hunks[number]
    lines = split(case.before)
    floor = max((h.end for h in case.hunks if h.end <= hunk.start), default=0)
    ceiling = min((h.start for h in case.hunks if h.start >= hunk.end), default=len(lines))
    above = min(hunk.start - floor, chance.choice([4, 8, 20]))
    below = min(ceiling - hunk.end, chance.choice([4, 8, 20]))
    head, tail = lines[hunk.start - above : hunk.start], lines[hunk.end : hunk.end + below]
    mark = chance.choice(["...", "    ...", "# ...", "// ...", "…"])
    ours, theirs = list(lines[hunk.start : hunk.end]), list(hunk.new)

    def cut(run: list[str]) -> list[str] | None:
        if len(run) < 3:
            return None
        low = chance.randrange(1, len(run) - 1)
        high = chance.randrange(low + 1, len(run))
        return [*run[:low], mark, *run[high:]]

    head, tail = (cut(head), tail) if chance.random() < 0.5 else (head, cut(tail))  # type: ignore[assignment]
    if head is None or tail is None:
        return None
    blocks = list(case.blocks)
    blocks[number] = (joined([*head, *ours, *tail]), joined([*head, *theirs, *tail]), 0)
    return replace(case, blocks=tuple(blocks))


def elided_replace(chance: random.Random, case: Case) -> Case | None:
    """Only REPLACE has a marker for kept lines: a refusal, never the marker."""
    number = chance.randrange(len(case.blocks))
    search, new, hint = case.blocks[number]
    theirs = split(new)
    if len(theirs) < 4:
        return None
    low = chance.randrange(1, len(theirs) - 2)
    high = chance.randrange(low + 1, len(theirs))
    lost = [line for line in theirs[low:high] if line.strip()]
    if not lost:
        return None
    pad = indent(theirs[low])
    mark = chance.choice(["...", "# ...", "// ... existing code ...", "/* ... */"])
    theirs[low:high] = [pad + mark]
    blocks = list(case.blocks)
    blocks[number] = (search, joined(theirs), hint)
    return replace(case, blocks=tuple(blocks), after=None)


def typo(chance: random.Random, case: Case) -> Case | None:
    """One character wrong in a word of one line of SEARCH; in a kept line perhaps on both sides."""
    number = chance.randrange(len(case.blocks))
    search, new, hint = case.blocks[number]
    hunk = case.hunks[number]
    ours, theirs = split(search), split(new)
    places = [at for at, line in enumerate(ours) if re.search(r"[A-Za-z]{5}", line)]
    if not places:
        return None
    at = chance.choice(places)
    if len(ours[at].strip()) < 11:
        return None
    words = list(re.finditer(r"[A-Za-z]{5,}", ours[at]))
    word = chance.choice(words)
    letter = word.start() + chance.randrange(len(word[0]) - 1)
    line = ours[at]
    kind = chance.choice(["swap", "drop", "double", "other"])
    wrong = {
        "swap": line[:letter] + line[letter + 1] + line[letter] + line[letter + 2 :],
        "drop": line[:letter] + line[letter + 1 :],
        "double": line[:letter] + line[letter] + line[letter:],
        "other": line[:letter] + chance.choice("abcdefghijklmnopqrstuvwxyz") + line[letter + 1 :],
    }[kind]
    if wrong == line:
        return None
    inside = hunk.above <= at < hunk.above + hunk.end - hunk.start
    if not inside and chance.random() < 0.5:
        theirs[at if at < hunk.above else at - len(ours) + len(theirs)] = wrong
    ours[at] = wrong
    blocks = list(case.blocks)
    blocks[number] = (joined(ours), joined(theirs), hint)
    return replace(case, blocks=tuple(blocks))


TWINS = [("get", "set"), ("min", "max"), ("first", "last"), ("start", "end"), ("left", "right"),
         ("import", "export"), ("encode", "decode"), ("add", "sub"), ("open", "close"), ("x", "y"),
         ("read", "load"), ("item", "items"), ("name", "names"), ("node", "mode"), ("size", "side"),
         ("count", "mount"), ("value", "values"), ("text", "test"), ("from", "form"), ("line", "link"),
         ("==", "!="), ("<", "<="), ("+", "-"), ("and", "any"), ("true", "false"), ("True", "False")]  # fmt: skip


def look_alike(chance: random.Random, case: Case) -> Case | None:
    """SEARCH means another thing that isn't in the file: a twin's name, or another number."""
    number = chance.randrange(len(case.blocks))
    search, new, hint = case.blocks[number]
    twins = [*TWINS, *((b, a) for a, b in TWINS)]
    swaps = [
        (found, b)
        for a, b in twins
        for found in re.finditer(rf"(?<![A-Za-z]){re.escape(a)}(?![A-Za-z])", search)
    ]
    digits = re.search(r"\d", search)
    if digits and chance.random() < 0.5:
        other = search[: digits.start()] + str((int(digits[0]) + 1) % 10) + search[digits.end() :]
    elif swaps:
        found, b = chance.choice(swaps)
        other = search[: found.start()] + b + search[found.end() :]
    else:
        return None
    blocks = list(case.blocks)
    blocks[number] = (other, new, hint)
    if f"\n{case.before}".count("\n" + other):
        return None
    return replace(case, blocks=tuple(blocks), after=None)


def absent(chance: random.Random, case: Case) -> Case | None:
    """The lines to change are gone from the file; what was near them is still there."""
    hunk = chance.choice(case.hunks)
    old = split(case.before)[hunk.start : hunk.end]
    if len(case.hunks) > 1 or not "".join(old).strip():
        return None
    lines = split(case.before)
    lines[hunk.start : hunk.end] = []
    before = joined(lines)
    return replace(case, before=before, after=before if before == case.after else None)


def fences(chance: random.Random, case: Case) -> Case | None:
    tag = chance.choice(["", "python", "go"])
    way = chance.choice(["both", "both", "search"])

    def wrap(text: str) -> str:
        return f"```{tag}\n{text}```\n"

    blocks = tuple(
        (
            wrap(search),
            wrap(new) if way != "search" and new else new,
            hint,
        )
        for search, new, hint in case.blocks
    )
    return replace(case, blocks=blocks) if blocks != case.blocks else None


def numbers(chance: random.Random, case: Case) -> Case | None:
    form = chance.choice(["{}\t{}", "{}: {}", "{:>5}| {}", "{} | {}", "{}→{}", "{}:{}"])
    way = chance.choice(["both", "search"])
    off = chance.choice([0, 0, 3])
    blocks = []
    for (search, new, hint), hunk in zip(case.blocks, case.hunks, strict=True):
        first = hunk.start - hunk.above + 1 + off

        def number(text: str, first: int = first) -> str:
            return joined(
                [form.format(n, line).rstrip() for n, line in enumerate(split(text), first)]
            )

        blocks.append(
            (
                number(search),
                number(new) if way != "search" else new,
                hint,
            )
        )
    return replace(case, blocks=tuple(blocks))


def entities(chance: random.Random, case: Case) -> Case | None:
    quote = chance.random() < 0.5
    return _blocks(case, lambda text: html.escape(text, quote=quote), both=True)


def escapes(chance: random.Random, case: Case) -> Case | None:
    kind = chance.choice(["quotes", "json", "both"])

    def escape(text: str) -> str:
        if kind != "quotes":
            text = text.replace("\\", "\\\\")
        return text.replace('"', '\\"')

    def one_line(text: str) -> str:
        if not text:
            return text
        text = text.removesuffix("\n")
        return escape(text).replace("\n", "\\n").replace("\t", "\\t") + "\n"

    return _blocks(case, one_line if kind == "json" else escape, both=True)


def divider(chance: random.Random, case: Case) -> Case | None:
    """The file has a line like the divider among those of a block."""
    kept = _kept_in_blocks(case)
    if not kept:
        return None
    at = chance.choice(kept)
    lines = split(case.before)
    lines.insert(at, "=======")
    shift = 1
    hunks = tuple(
        replace(
            hunk,
            start=hunk.start + (shift if at <= hunk.start - 1 or at < hunk.start else 0),
            end=hunk.end + (shift if at < hunk.start else 0),
            above=hunk.above + (shift if hunk.start - hunk.above <= at < hunk.start else 0),
            below=hunk.below + (shift if hunk.end <= at < hunk.end + hunk.below else 0),
        )
        for hunk in case.hunks
    )
    return made(joined(lines), hunks)


def shuffled(chance: random.Random, case: Case) -> Case | None:
    if len(case.blocks) < 2:
        return None
    blocks = list(case.blocks)
    chance.shuffle(blocks)
    return replace(case, blocks=tuple(blocks))


def sharing(chance: random.Random, case: Case) -> Case | None:
    """Blocks close to each other, whose context is shared and may be what another one changes."""
    lines = split(case.before)
    floor = chance.randrange(len(lines))
    hunks: list[Hunk] = []
    for _ in range(chance.choice([2, 3])):
        hunk = _hunk(chance, lines, min(len(lines) - 1, floor + chance.choice([0, 0, 1, 2])))
        if hunk is None or hunk.start < floor:
            return None
        hunks.append(hunk)
        floor = hunk.end
    found = made(case.before, tuple(hunks))
    if found is None or any(_meet(a, b) for a, b in itertools.pairwise(hunks)):
        return None
    blocks = list(found.blocks)
    chance.shuffle(blocks)
    return replace(found, blocks=tuple(blocks))


def _meet(first: Hunk, second: Hunk) -> bool:
    """True where two hunks touch and one of them only adds lines: their order is open."""
    empty = first.start == first.end or second.start == second.end
    return first.end == second.start and empty


def chained(chance: random.Random, case: Case) -> Case | None:
    """A block more that changes a line which the first one wrote."""
    search, new, _ = case.blocks[0]
    after = case.after or ""
    fresh = [line for line in split(new) if line not in split(search) and line.strip()]
    if not fresh:
        return None
    line = chance.choice(fresh)
    other = _modified(chance, line)
    if (
        other == line
        or f"\n{after}".count(f"\n{line}\n") != 1
        or f"\n{case.before}".count(f"\n{line}\n")
    ):
        return None
    return replace(
        case,
        after=after.replace(f"{line}\n", f"{other}\n", 1)
        if after.startswith(f"{line}\n")
        else after.replace(f"\n{line}\n", f"\n{other}\n"),
        blocks=(*case.blocks, (f"{line}\n", f"{other}\n", 0)),
    )


def one_bad(chance: random.Random, case: Case) -> Case | None:
    bad = ("this line is nowhere in it\nnor is this one\n", "x\n", 0)
    blocks = [*case.blocks]
    blocks.insert(chance.randrange(len(blocks) + 1), bad)
    return replace(case, blocks=tuple(blocks), after=None)


def _doubled(case: Case) -> tuple[str, str, int, int] | None:
    """The file with its first block's lines twice, and what is meant where the first is."""
    if len(case.blocks) != 1 or not case.after:
        return None
    search = case.blocks[0][0]
    hunk = case.hunks[0]
    lines = split(case.before)
    far = [*lines, *(f"filler {n}" for n in range(30)), *split(search)]
    meant = [*split(case.after), *far[len(lines) :]]
    return joined(far), joined(meant), hunk.start - hunk.above + 1, len(lines) + 31


def twice(chance: random.Random, case: Case) -> Case | None:
    made_ = _doubled(case)
    return made_ and replace(case, before=made_[0], after=None)


def twice_hinted(chance: random.Random, case: Case) -> Case | None:
    made_ = _doubled(case)
    if made_ is None:
        return None
    before, after, line, _ = made_
    hint = max(1, line + chance.choice([0, 0, 1, -2, 4]))
    search, new, _ = case.blocks[0]
    return Case(before, after, ((search, new, hint),), case.hunks)


def applied(chance: random.Random, case: Case) -> Case | None:
    blank = any(
        sorted(filter(str.strip, split(search))) == sorted(filter(str.strip, split(new)))
        for search, new, _ in case.blocks
    )
    return None if blank else replace(case, before=case.after or "")


def final_newline(chance: random.Random, case: Case) -> Case | None:
    if not case.after or not case.after.removesuffix("\n") or case.after.endswith("\n\n"):
        return None
    if split(case.before)[-1] == "":
        return None
    return replace(case, before=case.before.removesuffix("\n"), after=case.after.removesuffix("\n"))


def shown(perturbation: Perturbation) -> Perturbation:
    """Only cases in which every block whose REPLACE is perturbed has a SEARCH that shows it."""

    def only(chance: random.Random, case: Case) -> Case | None:
        found = perturbation(chance, case)
        if found is None:
            return None
        seen = all(
            new == after or search != before
            for (search, new, _), (before, after, _) in zip(case.blocks, found.blocks, strict=True)
        )
        return found if seen else None

    return only


def telling(perturbation: Perturbation) -> Perturbation:
    """Only cases in which every SEARCH says enough to be known where it isn't exact."""

    def only(chance: random.Random, case: Case) -> Case | None:
        found = perturbation(chance, case)
        enough = found and all(
            sum(map(str.isalnum, search)) >= 40 and search.strip().count("\n") > 0
            for search, _, _ in found.blocks
        )
        return found if enough else None

    return only


def visible(perturbation: Perturbation) -> Perturbation:
    """Only cases in which no perturbed SEARCH stands in the file by chance."""

    def only(chance: random.Random, case: Case) -> Case | None:
        found = perturbation(chance, case)
        if found is None:
            return None
        text = f"\n{case.before}"
        changed = (a for a, b in zip(found.blocks, case.blocks, strict=True) if a[0] != b[0])
        return None if any(f"\n{search}" in text for search, _, _ in changed) else found

    return only


def unseen(perturbation: Perturbation) -> Perturbation:
    """Only cases in which some block's SEARCH doesn't show how its REPLACE is perturbed."""

    def only(chance: random.Random, case: Case) -> Case | None:
        found = perturbation(chance, case)
        return found if found and not shown(lambda _, __: found)(chance, case) else None

    return only


def replace_only(perturbation: Perturbation) -> Perturbation:
    """The perturbation on REPLACE alone: nothing decides whether it is meant so."""

    def only(chance: random.Random, case: Case) -> Case | None:
        found = perturbation(chance, case)
        if found is None:
            return None
        blocks = tuple(
            (search, new, hint)
            for (search, _, hint), (_, new, _) in zip(case.blocks, found.blocks, strict=True)
        )
        return replace(case, blocks=blocks) if blocks != case.blocks else None

    return only


DECIDED: dict[str, Perturbation] = {
    "plain": plain,
    "trailing blanks added": trailing_added,
    "trailing blanks lost": trailing_lost,
    "uniform shift": telling(shifted),
    "first line's indentation lost": telling(first_line_lost),
    "tabs and spaces": telling(shown(retabbed)),
    "final newline missing": final_newline,
    "blank line dropped": telling(blank_dropped),
    "blank line added": telling(blank_added),
    "typographic block": shown(typographic),
    "typographic file": typographic_file,
    "comment line missing": telling(comment_missing),
    "elided middle": elided,
    "typo": typo,
    "code fences": visible(fences),
    "line numbers": numbers,
    "entities": shown(entities),
    "escapes": shown(escapes),
    "divider in the content": divider,
    "out of order": shuffled,
    "sharing context": sharing,
    "builds on a block": chained,
    "twice with a hint": twice_hinted,
    "already applied": applied,
    "one bad block": one_bad,
    "twice": twice,
    "absent": absent,
    "look-alike": look_alike,
    "elided in REPLACE only": elided_replace,
}
"""What the text decides: the intended text, or where `after` is None a refusal."""

DOUBTFUL: dict[str, Perturbation] = {
    "short block, shifted": visible(shifted),
    "short block, first line's indentation lost": visible(first_line_lost),
    "blank line dropped at the change": blank_dropped_near,
    "blank line added at the change": blank_added_near,
    "comment line missing at the change": comment_missing_near,
    "typographic block, not seen in SEARCH": unseen(typographic),
    "entities, not seen in SEARCH": unseen(entities),
    "escapes, not seen in SEARCH": unseen(escapes),
    "tabs and spaces, not seen in SEARCH": unseen(retabbed_clearly),
    "code fences round REPLACE": replace_only(fences),
    "line numbers in REPLACE": replace_only(numbers),
}
"""What it may leave open: the intended text or a refusal, but never another text."""

PERTURBATIONS = DECIDED | DOUBTFUL


def perturbed(chance: random.Random, name: str, *, tries: int = 400) -> Case | None:
    """A case of one kind of perturbation, over a file of the corpus."""
    for _ in range(tries):
        text = CORPUS[chance.choice(sorted(CORPUS))]
        case = edit(chance, text)
        found = case and PERTURBATIONS[name](chance, case)
        if found:
            return found
    return None


def as_text(case: Case) -> str:
    """The blocks with their markers, as a model writes them."""
    return "\n".join(
        f"<<<<<<< SEARCH\n{search}=======\n{new}>>>>>>> REPLACE" for search, new, _ in case.blocks
    )
