"""What external tools say of themselves: as it is told, and as their comments have it."""

from typing import Literal

from msgspec import Struct

from croze.text.display import safe
from croze.text.redact import redact

MOST_CHARACTERS = 4_000
"""Of a tool's help; what is more is left out, and that is told."""
LINES = 50
_BEGINS = ("usage:", "help:", "description:", "用法:", "说明:", "描述:")
_SLASHES = (".js", ".go", ".rs")


class Help(Struct, frozen=True, omit_defaults=True):
    """`text` is what a tool says of itself: asked for with the word `by`, or from its comments. Without a
    text `problem` says why."""

    text: str = ""
    by: Literal["help", "-h", "--help", "comments", ""] = ""
    problem: str = ""


def tidy(text: str) -> str:
    """Output as it is told: without escapes and secrets, within bounds."""
    text = redact(safe(text))[0].replace("\t", "    ")
    lines = [line.rstrip() for line in text.strip("\n").split("\n")]
    text = "\n".join(lines).strip("\n")
    if len(text) > MOST_CHARACTERS:
        kept = text[:MOST_CHARACTERS]
        kept = kept.rpartition("\n")[0] or kept
        text = f"{kept}\n… {len(text) - len(kept):,} more characters"
    return text


def comments_of(name: str, head: bytes) -> Help:
    """What the comments at the beginning of a file say: from the line with Usage, Help or Description on,
    to two empty ones or the end of the comments."""
    sign = "//" if name.lower().endswith(_SLASHES) else "#"
    lines: list[str] = []
    empty = 0
    for raw in head.decode("utf-8", "replace").split("\n")[:LINES]:
        line = raw.strip().removeprefix("\ufeff")
        if line.startswith("#!"):
            continue
        if not line.startswith(sign):
            if lines:
                break
            continue
        words = line[len(sign) :].removeprefix(" ").rstrip()
        begun = words.strip().lower().replace("：", ":")
        if not lines and not any(word in begun for word in _BEGINS):
            continue
        empty = 0 if words.strip() else empty + 1
        if empty == 2:
            break
        lines.append(words)
    text = tidy("\n".join(lines))
    return Help(text=text, by="comments") if text else Help()
