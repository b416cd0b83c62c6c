"""How a result stands in the history later (C4): made when the call ends, from what was redacted already."""

import re
from collections.abc import Sequence

import msgspec

from croze.text.redact import redact, redact_value
from croze.tools.base import ToolKind
from croze.tools.bound import bounded
from croze.tools.results import redacted_view
from croze.types.parts import ToolCall
from croze.types.tool import ToolResult, View

CAP = 8_000
"""Characters of a digest; those of reads have `READ_CAP`."""
READ_CAP = 40_000
LEFT_OUT = "…"
"""The digest of a result of which the message says enough."""

_FAILED_LINES = 20
_FAILED_LINE = 300
_SPANS = 20
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")


def digest_of(
    kind: ToolKind | None, call: ToolCall, result: ToolResult, text: str, *, cap: int = CAP
) -> str:
    """What stands for `text` (that of the result which enters the log) once the result is digested:
    without the message, which stands above it all the same, and never longer than the text, or for an
    edit than its diff. Whatever the tool's own digest does, no secret comes back."""
    diff = result.view.body if result.view is not None and result.view.kind == "diff" else ""
    if not text and not diff:
        return ""
    message = redact(" ".join(result.message.split()))[0]
    clean = msgspec.structs.replace(
        result,
        message=message,
        text=redact(result.text)[0],
        view=redacted_view(result.view),
        data=redact_value(result.data)[0],
    )
    digest = clean.message
    if kind is not None:
        try:
            digest = kind.digest(call, clean)
        except Exception as error:  # noqa: BLE001 (a plugin's digest must not lose the result)
            digest = f"({type(error).__name__} in its digest)"
    digest = redact(digest)[0].strip("\n")
    if message and digest.startswith(message):
        digest = digest[len(message) :].strip("\n")
    digest = bounded(digest, cap)[0] or (LEFT_OUT if text else "")
    return digest if len(digest) < max(len(text), len(diff)) else text


def failure(result: ToolResult) -> str:
    """Of a failed call: what was wrong, and the first lines of what was said about it."""
    lines = result.text.split("\n") if result.text else []
    shown = [line[:_FAILED_LINE] for line in lines[:_FAILED_LINES]]
    more = [left_out(len(lines) - len(shown), "line")] if len(lines) > len(shown) else []
    return "\n".join(filter(None, [result.message, *shown, *more]))


def first(result: ToolResult, lines: Sequence[str], most: int, what: str = "line") -> str:
    """The message and the first `most` of `lines`, with the number of the others."""
    if not result.ok:
        return failure(result)
    more = [left_out(len(lines) - most, what)] if len(lines) > most else []
    return "\n".join(filter(None, [result.message, *lines[:most], *more]))


def left_out(count: int, what: str) -> str:
    return f"… {count:,} more {what}{'' if count == 1 else 's'}"


def ranges(view: View | None) -> str:
    """The changed lines of a diff as its new side numbers them, like `3-9, 40 (deleted)`."""
    spans = _spans(view.body) if view is not None and view.kind == "diff" else []
    more = [left_out(len(spans) - _SPANS, "place")] if len(spans) > _SPANS else []
    return ", ".join([*spans[:_SPANS], *more])


def _spans(diff: str) -> list[str]:
    spans: list[str] = []
    at = start = 0
    removed = False

    def close() -> None:
        nonlocal start, removed
        if start:
            spans.append(f"{start}-{at - 1}" if at - 1 > start else str(start))
        elif removed:
            spans.append(f"{at} (deleted)")
        start, removed = 0, False

    for row in diff.split("\n")[2:]:
        hunk = _HUNK.match(row)
        if hunk is not None:
            close()
            at = int(hunk[1])
        elif row.startswith("+"):
            start = start or at
            at += 1
        elif row.startswith("-"):
            removed = True
        elif row.startswith(" "):
            close()
            at += 1
    close()
    return spans
