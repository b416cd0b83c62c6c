"""Cuts a long text to its head and its tail, at line ends where some are near; and its lines as they
are counted when it is read on."""

_SLACK = 400
LONGEST = 2_000
"""Characters of a line; a longer one counts as several."""


def pieces(text: str) -> list[str]:
    """The lines of a text, those that are too long in pieces: together they hold all of it."""
    lines: list[str] = []
    for line in text.removesuffix("\n").split("\n") if text else ():
        if len(line) <= LONGEST:
            lines.append(line)
        else:
            lines += [line[at : at + LONGEST] for at in range(0, len(line), LONGEST)]
    return lines


def first_left_out(part: str, whole: str) -> int:
    """The first line of a text, as `pieces` counts them, that isn't whole in the beginning of `part`."""
    same = zip(part, whole, strict=False)
    end = next((at for at, (a, b) in enumerate(same) if a != b), min(len(part), len(whole)))
    return max(1, len(pieces(whole[:end])) + whole.startswith("\n", max(0, end - 1)))


def bounded(text: str, cap: int, more: str = "") -> tuple[str, int]:
    """`text` with at most about `cap` characters and a line in the middle that says what was left out,
    and how many characters that are; the text itself and 0 where it fits. `more` tells the way to the
    rest; `{line}` in it is the first line left out, as `pieces` counts them."""
    if len(text) <= cap:
        return text, 0
    head_end = cap * 2 // 3
    tail_start = len(text) - (cap - head_end)
    line = text.rfind("\n", max(0, head_end - _SLACK), head_end)
    if line >= 0:
        head_end = line + 1
    line = text.find("\n", tail_start, tail_start + _SLACK)
    if 0 <= line < len(text) - 1:
        tail_start = line + 1
    left_out = tail_start - head_end
    lines = text.count("\n", head_end, tail_start)
    first = len(pieces(text[:head_end])) + text.startswith("\n", head_end - 1)
    way = f"; {more.format(line=first)}" if more else ""
    note = f"[… {left_out:,} characters in {lines:,} lines left out{way} …]"
    head, tail = text[:head_end], text[tail_start:]
    return f"{head}{'' if head.endswith(chr(10)) else chr(10)}{note}\n{tail}", left_out
