"""What in a server's own words a person should see before the model does: text that hides, or that commands."""

import re
from collections.abc import Iterator
from typing import Any

from croze.text.display import safe

_COMMANDS = re.compile(
    r"<\s*/?\s*(important|system|instructions?|secret|hidden|assistant|user|tool_result)\b[^<>]{0,200}>"
    r"|<!--|\bignore (?:all |any )?(?:previous|prior|earlier) instructions\b"
    r"|\bdo not (?:tell|mention|inform|reveal)\b.{0,40}\buser\b",
    re.IGNORECASE,
)


def doubts(value: object) -> tuple[str, ...]:
    """What is suspicious in the texts of a JSON value, in a few words each; none where nothing is."""
    found: dict[str, None] = {}
    for text in texts(value):
        plain = text.replace("\r\n", "\n").replace("\r", "\n")
        if safe(plain) != plain:
            found["characters that can't be seen"] = None
        for match in _COMMANDS.finditer(text):
            found[f"«{safe(match.group(), keep_newlines=False)[:60]}»"] = None
    return tuple(found)


def texts(value: object) -> Iterator[str]:
    """Every text in a JSON value, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts(inner)


def harmless(value: Any) -> Any:
    """A JSON value whose texts hide nothing: what can't be seen stands there as its code, and no tag in it reads
    as one of ours."""
    if isinstance(value, str):
        return _COMMANDS.sub(
            lambda match: match.group().replace("<", "‹").replace(">", "›"), safe(value)
        )
    if isinstance(value, dict):
        return {harmless(str(key)): harmless(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [harmless(inner) for inner in value]
    return value
