"""Approval rules that the user gave with «always»: kept per user and project, outside the repository."""

import json
import os
from pathlib import Path

from croze.types.errors import ConfigError


def load_rules(folder: Path) -> tuple[str, ...]:
    """The allow rules of this project, oldest first; none where the file doesn't exist."""
    path = folder / "rules.json"
    try:
        raw = path.read_text("utf-8")
    except FileNotFoundError:
        return ()
    try:
        rules = json.loads(raw)["allow"]
        if not all(isinstance(rule, str) for rule in rules):
            raise TypeError
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"the approval rules in {path} can't be read", hint=f"repair or remove {path}"
        ) from error
    return tuple(rules)


def add_rule(folder: Path, rule: str) -> None:
    """Remember one more allow rule; atomic, readable by the user only."""
    rules = load_rules(folder)
    if rule in rules:
        return
    path = folder / "rules.json"
    temporary = folder / f"rules.json.{os.getpid()}.tmp"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump({"allow": [*rules, rule]}, file, ensure_ascii=False, indent=2)
        file.flush()
        os.fsync(handle)
    os.replace(temporary, path)
