"""Agent files: Markdown whose front matter says what an agent is, and whose body is its prompt."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, cast

import msgspec
from msgspec import Struct

from croze.knowledge.find import Finder, Found, Loaded, overridden
from croze.knowledge.kinds import AGENTS

if TYPE_CHECKING:
    from croze.knowledge.front_matter import FrontMatter

RESERVED = "main"
_NAME = re.compile(r"[^\W_][\w.-]{0,63}")
_ISOLATIONS = ("shared", "worktree", "task")
_POLICIES = ("batch", "digest", "zone", "none")
_CALLERS = ("", "inherit")

_OTHER_NAMES: Mapping[str, str] = {
    "disallowedTools": "disallowed_tools",
    "maxTurns": "max_turns",
    "includeRules": "include_rules",
}
_KEYS = {
    "name", "description", "tools", "disallowed_tools", "model", "include_rules", "isolation", "policy",
    "zone", "max_turns", "max_cost", "max_time",
}  # fmt: skip
_SILENT = {"color", "icon", "version", "author", "license", "tags", "metadata"}


class AgentFile(Struct, frozen=True, kw_only=True):
    """An agent as its file describes it. `tools` are names as they were written: None is all of them but
    those of `without`. What is empty or None is the caller's. `found.reason` tells what of the file
    could not be used, where the rest of it can."""

    found: Found
    description: str = ""
    prompt: str = ""
    tools: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    model: str = ""
    include_rules: bool = False
    isolation: Literal["shared", "worktree", "task"] = "shared"
    policy: str = ""
    zone: str = ""
    max_turns: int | None = None
    max_cost: float | None = None
    max_time: float | None = None

    @property
    def name(self) -> str:
        return self.found.name


def read_agents(finder: Finder) -> list[AgentFile]:
    """All agent files, the higher first; `found.state` says which of them count."""
    loaded = (finder.read(found, AGENTS.most) for found in finder.find(AGENTS))
    files = [file for each in loaded if (file := read_agent(each)) is not None]
    states = overridden(file.found for file in files)
    return [
        msgspec.structs.replace(file, found=found)
        for file, found in zip(files, states, strict=True)
    ]


def read_agent(loaded: Loaded) -> AgentFile | None:
    """The agent that a file describes; of one that isn't trusted too, so that it can be shown. None for
    a folder's README."""
    found = loaded.found
    if not found.acts and found.state != "untrusted":
        return AgentFile(found=found)
    from croze.knowledge.front_matter import parse  # only where there is a file

    matter = parse(loaded.text)
    try:
        if matter.problem:
            raise ValueError(matter.problem)
        if not matter.present and found.name.lower() == "readme":
            return None
        if not matter.present:
            raise ValueError("it has no front matter with a description")
        return _agent(found, _renamed(matter))
    except ValueError as error:
        broken = msgspec.structs.replace(found, state="broken", reason=str(error))
        return AgentFile(found=broken)


def _renamed(matter: "FrontMatter") -> "FrontMatter":
    fields = {_OTHER_NAMES.get(name, name): value for name, value in matter.fields.items()}
    return msgspec.structs.replace(matter, fields=fields)


def _agent(found: Found, matter: "FrontMatter") -> AgentFile:
    name = matter.text("name") or found.name
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name[:80]!r} is no name for an agent: letters, digits, - _ . and at most 64 of them"
        )
    if name == RESERVED:
        raise ValueError(f"{RESERVED} is the name of croze's own agent")
    description = matter.text("description")
    if not description:
        raise ValueError("it has no description")
    tools = matter.words("tools")
    unused = sorted(matter.fields.keys() - _KEYS - _SILENT)
    note = f"croze does not use {', '.join(unused)[:200]}" if unused else ""
    model = ",".join(matter.words("model") or ())
    return AgentFile(
        found=msgspec.structs.replace(
            found, name=name, reason="; ".join(filter(None, (found.reason, note)))
        ),
        description=" ".join(description.split()),
        prompt=matter.body.strip(),
        tools=None if tools is None or "*" in tools else tools,
        without=matter.words("disallowed_tools") or (),
        model="" if model in _CALLERS else model,
        include_rules=matter.flag("include_rules"),
        isolation=cast(
            Literal["shared", "worktree", "task"],
            _one_of(matter, "isolation", _ISOLATIONS) or "shared",
        ),
        policy=_one_of(matter, "policy", _POLICIES),
        zone=matter.text("zone"),
        max_turns=_whole(matter, "max_turns"),
        max_cost=_number(matter, "max_cost"),
        max_time=_number(matter, "max_time"),
    )


def _one_of(matter: "FrontMatter", name: str, allowed: tuple[str, ...]) -> str:
    value = matter.text(name)
    if value and value not in allowed:
        raise ValueError(f"{name} can't be {value[:40]!r}: one of {', '.join(allowed)}")
    return value


def _number(matter: "FrontMatter", name: str) -> float | None:
    text = matter.text(name)
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise ValueError(f"{name} must be a number above 0, not {text[:40]!r}")
    return value


def _whole(matter: "FrontMatter", name: str) -> int | None:
    value = _number(matter, name)
    if value is not None and value != int(value):
        raise ValueError(f"{name} must be a whole number, not {value:g}")
    return None if value is None else int(value)
