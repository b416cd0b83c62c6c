"""What a model's text may be wrapped in or escaped by, undone on both sides of a block alike."""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#39|#34|#60|#62|#38|#[xX]2[267]|#[xX]3[cCeE]);")
ESCAPED = re.compile(r"\\[\"'`]")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_FENCE = re.compile(r"([ \t]*(?:`{3,}|~{3,}))[\w.+#-]*[ \t]*")
_NUMBER = re.compile(r"[ \t]*(\d{1,7})")
_SEPARATORS = ("\t", "→", " | ", "| ", "|", ": ", ":")
_MARKUP = re.compile(r"[<>]|&(?![#\w]+;)")
_RAW_QUOTE = re.compile(r"(?<!\\)[\"]")

_Sides = tuple[tuple[str, ...], tuple[str, ...]]


class Reading(Struct, frozen=True):
    """The two sides of a block in one decoding. `line` (1-based) is the place that they tell of."""

    search: tuple[str, ...]
    replace: tuple[str, ...]
    name: str = ""
    line: int = 0


def readings(search: tuple[str, ...], replace: tuple[str, ...]) -> list[Reading]:
    """The block as it is, then every other way to read it."""
    found = [Reading(search, replace)]
    for name, decoded in _DECODERS:
        for reading in list(found):
            line = reading.line
            for sides in decoded(reading.search, reading.replace):
                if name == "line numbers" and (numbers := numbered(reading.search)):
                    line = numbers[0][1]
                names = f"{reading.name}, {name}" if reading.name else name
                if any(text.strip() for text in sides[0]):
                    found.append(Reading(*sides, names, line))
    return found


def is_fence(line: str) -> bool:
    """True of a line that begins or ends a code block in Markdown."""
    return _FENCE.fullmatch(line) is not None


def fenced(lines: Sequence[str]) -> tuple[str, ...] | None:
    """The lines between two code fences that are all round them; None where there are none."""
    low, high = 0, len(lines)
    while low < high and not lines[low].strip():
        low += 1
    while high > low and not lines[high - 1].strip():
        high -= 1
    if high - low < 2:
        return None
    first, last = _FENCE.fullmatch(lines[low]), _FENCE.fullmatch(lines[high - 1])
    if first is None or last is None or lines[high - 1].rstrip() != first[1]:
        return None
    inner = tuple(lines[low + 1 : high - 1])
    # An odd number of fences within says that those at the ends belong to other blocks.
    return None if sum(map(is_fence, inner)) % 2 else inner


def numbered(lines: Sequence[str]) -> list[tuple[str, int, tuple[str, ...]]]:
    """The ways to take line numbers off: the separator after them, the first number, the lines without;
    [] where they aren't line numbers: every line has one, by the same separator, one above the last."""
    ways = []
    for separator in _SEPARATORS:
        found = _stripped(lines, separator)
        if found is None:
            continue
        numbers, texts = found
        rising = all(b == a + 1 for a, b in itertools.pairwise(numbers))
        if rising and (any(map(str.strip, texts)) or (len(texts) > 1 and separator.strip())):
            ways.append((separator, numbers[0], texts))
    return ways


def _stripped(lines: Sequence[str], separator: str) -> tuple[list[int], tuple[str, ...]] | None:
    numbers: list[int] = []
    texts: list[str] = []
    for line in lines:
        found = _NUMBER.match(line)
        if found is None:
            return None
        rest = line[found.end() :]
        if not rest.startswith(separator) and rest != separator.rstrip():
            return None
        numbers.append(int(found[1]))
        texts.append(rest[len(separator) :])
    return numbers, tuple(texts)


def _fences(search: tuple[str, ...], replace: tuple[str, ...]) -> Iterator[_Sides]:
    inner = fenced(search)
    if inner is None:
        return
    if not any(map(is_fence, replace)):
        yield inner, replace
        return
    other = fenced(replace)
    if other is not None and _opener(replace) == _opener(search):
        yield inner, other


def _opener(lines: Sequence[str]) -> str:
    return next(line.strip() for line in lines if line.strip())


def _numbers(search: tuple[str, ...], replace: tuple[str, ...]) -> Iterator[_Sides]:
    for separator, _, texts in numbered(search):
        other = _stripped(replace, separator)
        if other is not None:
            yield texts, other[1]
        elif not any(_stripped([line], separator) for line in replace if line.strip()):
            yield texts, replace


def _entities(search: tuple[str, ...], replace: tuple[str, ...]) -> Iterator[_Sides]:
    if not any(ENTITY.search(line) for line in search):
        return
    encoded = any(ENTITY.search(line) for line in replace)
    if encoded and any(_MARKUP.search(line) for line in replace):
        return
    yield _each(_unescaped, search), _each(_unescaped, replace)


def _escapes(search: tuple[str, ...], replace: tuple[str, ...]) -> Iterator[_Sides]:
    if not any("\\" in line for line in search):
        return
    both = "\n".join(replace)
    mixed = bool(_RAW_QUOTE.search(both))
    if mixed and ESCAPED.search(both):
        return
    ways: list[Callable[[str], str]] = [_double, _quotes, _backslashes]
    for way in ways:
        decoded = _each(way, search)
        if decoded != search:
            yield decoded, replace if mixed else _each(way, replace)
    if len(search) == 1 and len(replace) <= 1 and "\\n" in "".join((*search, *replace)):
        ours, theirs = _whole(search), _whole(replace)
        yield ours, theirs
        if not ours[-1]:
            yield ours[:-1], theirs[:-1] if theirs and not theirs[-1] else theirs


def _double(line: str) -> str:
    return re.sub(r'(?<!\\)\\"', '"', line)


def _quotes(line: str) -> str:
    return re.sub(r"(?<!\\)\\([\"'`])", r"\1", line)


def _backslashes(line: str) -> str:
    return re.sub(r"\\([\"'`\\])", r"\1", line)


def _whole(lines: tuple[str, ...]) -> tuple[str, ...]:
    """One line that holds `\\n` for its line ends, as a string in JSON does."""
    if not lines:
        return ()
    known = {"n": "\n", "t": "\t", "r": ""}
    text = re.sub(r"\\([\"'`\\/nrt])", lambda found: known.get(found[1], found[1]), lines[0])
    return tuple(text.split("\n"))


def _unescaped(line: str) -> str:
    return ENTITY.sub(lambda found: _character(found[0]), line)


def _character(entity: str) -> str:
    name = entity[1:-1]
    if not name.startswith("#"):
        return _NAMED[name]
    number = name[1:]
    return chr(int(number[1:], 16) if number[0] in "xX" else int(number))


def _each(change: Callable[[str], str], lines: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(change(line) for line in lines)


_DECODERS: tuple[
    tuple[str, Callable[[tuple[str, ...], tuple[str, ...]], Iterator[_Sides]]], ...
] = (
    ("code fences", _fences),
    ("line numbers", _numbers),
    ("entities", _entities),
    ("escapes", _escapes),
)
