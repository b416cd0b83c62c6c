"""The form of hooks in files: croze's own hooks.toml and the hooks in Claude Code's settings."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from croze.app.options import Finding
from croze.tools.hooks import POINTS, Hook
from croze.types.errors import ConfigError

Source = Literal["user", "project", "claude"]
Seconds = Annotated[float, Meta(gt=0, le=3600)]
Command = Annotated[str, Meta(min_length=1, max_length=10_000)]


class _Command(Struct, forbid_unknown_fields=True):
    command: Command
    type: Literal["command"] = "command"
    timeout: Seconds = 60.0
    on_failure: Literal["warn", "block"] = "warn"


class _Group(Struct, forbid_unknown_fields=True):
    matcher: str = ""
    command: Command | None = None
    timeout: Seconds = 60.0
    on_failure: Literal["warn", "block"] = "warn"
    hooks: tuple[_Command, ...] = ()


def parse_hooks(document: Mapping[str, Any], path: Path, *, source: Source) -> list[Hook]:
    """The hooks of a document: lists of tables by the names of their points. ConfigError for what
    can't be one."""
    found: list[Hook] = []
    for point, groups in document.items():
        if point not in POINTS:
            raise _invalid(path, f"there is no point {point!r}; there are: {', '.join(POINTS)}")
        try:
            parsed = msgspec.convert(groups, tuple[_Group, ...])
        except msgspec.ValidationError as error:
            raise _invalid(path, f"{point}: {error}") from error
        for group in parsed:
            if group.command is None and not group.hooks:
                raise _invalid(path, f"{point}: a hook needs a command")
            found += _of_group(point, group, path, source)
    return found


def _of_group(point: Any, group: _Group, path: Path, source: Source) -> Iterable[Hook]:
    try:
        re.compile(group.matcher if group.matcher != "*" else "")
    except re.error as error:
        text = f"{point}: {group.matcher!r} is no regular expression"
        raise _invalid(path, text) from error
    own = (
        []
        if group.command is None
        else [_Command(group.command, timeout=group.timeout, on_failure=group.on_failure)]
    )
    for each in (*own, *group.hooks):
        yield Hook(
            point=point,
            command=each.command,
            matcher=group.matcher,
            timeout=each.timeout,
            on_failure=each.on_failure,
            source=source,
        )


def claude_hooks(data: bytes, path: Path, notices: list[Finding]) -> list[Hook]:
    """The command hooks of Claude Code's settings; what croze has no counterpart for is named."""
    try:
        document = json.loads(data)
        events = document.get("hooks", {})
        plain: dict[str, list[dict[str, Any]]] = {}
        left_out: list[str] = []
        for point, groups in events.items():
            if point not in POINTS:
                left_out.append(point)
                continue
            for group in groups:
                commands = [h for h in group.get("hooks", ()) if h.get("type") == "command"]
                left_out += [point] * (len(commands) < len(group.get("hooks", ())))
                known = ("command", "timeout")
                hooks = [{name: h[name] for name in known if name in h} for h in commands]
                if hooks:
                    matcher = group.get("matcher") or ""
                    plain.setdefault(point, []).append({"matcher": matcher, "hooks": hooks})
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise _invalid(path, str(error)) from error
    if left_out:
        names = ", ".join(dict.fromkeys(left_out))
        notices.append(
            Finding(
                level="warning",
                topic="hooks",
                text=f"{path}: hooks that croze doesn't have were left out ({names})",
                code="hooks_left_out",
                params={"path": str(path), "names": names},
            )
        )
    return parse_hooks(plain, path, source="claude")


def _invalid(path: Path, reason: str) -> ConfigError:
    return ConfigError(
        f"The hooks in {path} can't be used: {reason}",
        hint=f"Repair or remove {path}; docs/hooks.md shows the form.",
        code="hooks_invalid",
        path=str(path),
        reason=reason,
    )
