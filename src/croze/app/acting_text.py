"""What a file of a project would do if it were trusted, as it says itself: nothing is run or believed."""

import json
import shlex
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from croze.app.config import MAX_FILE, parse_toml
from croze.app.keypath import flatten, join
from croze.app.named import server_words, words_of
from croze.types.errors import CrozeError

if TYPE_CHECKING:
    from croze.mcp.config import ServerSpec
    from croze.tools.hooks import Hook

_JOINERS = "\u200c\u200d\ufe0f"
"""What letters of some scripts and emoji need between them."""


def does(kind: str, data: bytes, name: str) -> tuple[str, ...]:
    """What the file would do, a line for each thing; for a file that only tells something nothing."""
    try:
        match kind:
            case "config":
                return tuple(_settings(data, name))
            case "hooks":
                return tuple(
                    f"{hook.point} {hook.matcher}".strip() + f": {hook.command}"
                    for hook in _hooks(data, name)
                )
            case "mcp":
                return tuple(_server(each) for each in _servers(data, name))
            case "agents" | "skills":
                return tuple(_agent(data, name))
    except CrozeError as error:
        return (error.message,)
    return ()


def commands(kind: str, data: bytes, name: str) -> list[list[str]]:
    """The words of the commands that a file of hooks or servers names."""
    try:
        if kind == "hooks":
            return [words_of(hook.command) for hook in _hooks(data, name)]
        servers = [each for each in _servers(data, name) if each.command]
        return [server_words(each.command, each.args, each.cwd) for each in servers]
    except CrozeError:
        return []


def hidden(data: bytes) -> int:
    """How many characters of a text can't be seen: controls, bidi marks, tags, what has no width."""
    if len(data) > MAX_FILE or b"\0" in data:  # a program, or its like
        return 0
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    if text.isascii() and text.isprintable():
        return 0
    return sum(
        unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs")
        for char in text
        if char not in "\n\t\r" and char not in _JOINERS
    )


def text_of(data: bytes) -> str | None:
    """A file's text, None for what is none."""
    from croze.edit.source import read_source

    source = read_source(data)
    return None if source is None else source.text


def difference(before: str, after: str, path: str, most: int) -> str:
    """What has changed, at most so many lines of it."""
    from croze.edit.diff import unified

    return unified(before, after, path, limit=most).text


def _settings(data: bytes, name: str) -> list[str]:
    values = flatten(parse_toml(data, Path(name)), name)
    shown = {
        join(key): json.dumps(value, ensure_ascii=False, default=str)
        for key, value in values.items()
    }
    return [f"{key} = {value}" for key, value in shown.items()]


def _hooks(data: bytes, name: str) -> "list[Hook]":
    from croze.app.hook_form import claude_hooks, parse_hooks

    path = Path(name)
    if path.suffix == ".json":
        return claude_hooks(data, path, [])
    return parse_hooks(parse_toml(data, path), path, source="project")


def _servers(data: bytes, name: str) -> "list[ServerSpec]":
    from croze.mcp.config import parse

    return parse(data, "project", Path(name))[0]


def _server(spec: "ServerSpec") -> str:
    line = spec.url or shlex.join([spec.command, *spec.args])
    more = [f"{each}={value}" for each, value in sorted(spec.env.items())]
    more += [f"{each}: {value}" for each, value in sorted(spec.headers.items())]
    more += [f"cwd {spec.cwd}"] if spec.cwd else []
    return f"{spec.name}: {line}" + (f" ({', '.join(more)})" if more else "")


def _agent(data: bytes, name: str) -> list[str]:
    from croze.knowledge.front_matter import parse

    fields: dict[str, Any] = dict(parse(text_of(data) or "").fields)
    shown = (f"{key}: {value}" for key, value in fields.items())
    return [" ".join(each.split()) for each in shown]
