"""The log file of the state folder: what happened when, without a word of what was said.

One line an event: time, level, session, type, and codes, counts and durations. It is written without
the standard library's logging, whose import costs more than a whole run writes here.
"""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from croze.types.event import (
    Asked,
    Body,
    Event,
    HeadSet,
    HooksRan,
    ModelCalled,
    ModelSaid,
    Notice,
    Retried,
    Stopped,
    ToolReturned,
    UserSaid,
)
from croze.types.news import ChildNews
from croze.types.stream import Delta

Level = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]

MAX_SIZE = 1_000_000
"""Bytes; a larger file becomes `croze.log.1`, in the place of the one before."""
_RANK = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}


class LogFile:
    """Watches sessions and writes what is at least as grave as `level`. Nothing is opened before the
    first line; where the file can't be written there is none, and nothing else changes."""

    def __init__(self, path: Path, level: Level) -> None:
        self._path = path
        self._least = _RANK[level]
        self._descriptor: int | None = None
        self._size = 0

    def watch(self, item: Event | Delta | ChildNews) -> None:
        if not isinstance(item, Event):
            return
        level, facts = describe(item.body)
        if _RANK[level] < self._least:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = f"{now} {level} {item.session[:8]} {item.seq} {item.type} {facts}".rstrip()
        try:
            self._write(line.encode("ascii", "backslashreplace") + b"\n")
        except OSError:
            self._least = _RANK["CRITICAL"] + 1

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _write(self, line: bytes) -> None:
        if self._descriptor is not None and self._size > MAX_SIZE:
            self.close()
            os.replace(self._path, self._path.with_name(f"{self._path.name}.1"))
        if self._descriptor is None:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(self._path, flags, 0o600)
            self._size = os.fstat(self._descriptor).st_size
        self._size += os.write(self._descriptor, line)


def describe(body: Body) -> tuple[Level, str]:
    """How grave an event is, and its facts: never text, arguments, paths or names of people's."""
    level: Level = "DEBUG"
    facts: dict[str, object] = {}
    match body:
        case UserSaid():
            level = "INFO"
        case HeadSet():
            level, facts = "INFO", {"model": body.model.name, "dialect": body.dialect}
        case ModelCalled():
            facts = {"step": body.step, "tokens": body.tokens, "bytes": body.size}
        case ModelSaid():
            level = "INFO"
            facts = {
                "step": body.step, "finish": body.finish, "input": body.usage.input,
                "cached": body.usage.cached, "output": body.usage.output, "seconds": body.seconds,
            }  # fmt: skip
        case Retried():
            level = "WARNING"
            facts = {"attempt": body.attempt, "error": body.error, "delay": body.delay}
        case ToolReturned():
            level = "INFO"
            facts = {
                "tool": body.name, "ok": body.ok, "code": body.code, "seconds": body.seconds,
            }  # fmt: skip
        case HooksRan():
            bad = sum(run.ended not in ("ok", "blocked") for run in body.runs)
            level = "WARNING" if bad else "INFO"
            facts = {"point": body.point, "decision": body.decision or None, "failed": bad}
        case Asked():
            facts = {"kind": body.kind}
        case Notice():
            level = "ERROR" if body.level == "error" else "WARNING"
            level = "INFO" if body.level == "info" else level
            facts = {"code": body.code}
        case Stopped():
            level = "ERROR" if body.reason in ("failed", "retries_exhausted") else "INFO"
            facts = {"reason": body.reason, "steps": body.steps, "seconds": body.seconds}
        case _:
            pass
    shown = ((name, _short(value)) for name, value in facts.items() if value is not None)
    return level, " ".join(f"{name}={value}" for name, value in shown)


def _short(value: object) -> str:
    """A fact without blanks or line ends; the model chooses tools' names, so they may be anything."""
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    return "".join(c if c.isalnum() or c in "-_.:/" else "?" for c in text[:80])
