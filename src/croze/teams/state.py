"""The state that a flow's nodes share, in the shape that programs know (S3)."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct


class HistoryEntry(Struct, frozen=True):
    """One thing that was done: which tool, why, with what, with what result, and when (`stamp`)."""

    tool: str
    reason: str
    params: dict[str, Any]
    result: Any
    timestamp: str


class EditOperation(Struct, frozen=True):
    """Lines `start_line` to `end_line` (from 1, both included) become `replacement`; an `end_line` one
    below `start_line` inserts before it."""

    start_line: int
    end_line: int
    replacement: str


@dataclass(slots=True)
class FlowState:
    """What a flow knows. `edit_operations` are there only while they are being applied."""

    user_query: str
    working_dir: str
    history: list[HistoryEntry] = field(default_factory=list)
    edit_operations: tuple[EditOperation, ...] = ()
    response: str = ""


def stamp(microseconds: int) -> str:
    """A log's time as ISO 8601, UTC, in milliseconds."""
    moment = datetime.fromtimestamp(microseconds / 1e6, tz=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
