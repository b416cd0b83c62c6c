"""Cuts a long text to its head and its tail, at line ends where some are near."""

_SLACK = 400


def bounded(text: str, cap: int) -> tuple[str, int]:
    """`text` with at most about `cap` characters and a line in the middle that says what was left out,
    and how many characters that are; the text itself and 0 where it fits."""
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
    note = f"[… {left_out:,} characters in {lines:,} lines left out …]"
    head, tail = text[:head_end], text[tail_start:]
    return f"{head}{'' if head.endswith(chr(10)) else chr(10)}{note}\n{tail}", left_out
