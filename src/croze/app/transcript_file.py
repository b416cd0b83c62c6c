"""The transcript that hooks can read: a session's messages as JSON lines, kept while a hook is configured.

The lines have the form that hooks of other agents know: `type` (user or assistant), `message` with `role`
and `content` blocks, `uuid`, `timestamp`, `sessionId`, `cwd`. It is made anew from the log when a session
is opened and lies beside it, for the user's eyes only.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from croze.types.event import Event, ModelSaid, ToolReturned, UserSaid
from croze.types.news import ChildNews
from croze.types.parts import Part, Text, ToolCall
from croze.types.stream import Delta

FOLDER = "transcripts"
"""Below the folder of the session log, which removes the file with its conversation."""


class TranscriptFile:
    """Writes one session's transcript. Where the disk refuses it, the session goes on without."""

    def __init__(self, folder: Path, session: str, cwd: str) -> None:
        self.path = folder / FOLDER / f"{session}.jsonl"
        self._session = session
        self._cwd = cwd
        self._broken = False

    def begin(self, events: Iterable[Event]) -> None:
        """Write what the log holds so far, in place of what was there."""
        lines = b"".join(map(self._lines, events))
        self._write(lines, os.O_TRUNC)

    def watch(self, item: Event | Delta | ChildNews) -> None:
        if isinstance(item, Event) and (lines := self._lines(item)):
            self._write(lines, os.O_APPEND)

    def _write(self, lines: bytes, how: int) -> None:
        if self._broken:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | how
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path, flags, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(lines)
        except OSError:
            self._broken = True

    def _lines(self, event: Event) -> bytes:
        match event.body:
            case UserSaid() as said:
                return self._line(event, "user", said.message_id, _blocks(said.parts))
            case ModelSaid(purpose="main") as said:
                return self._line(event, "assistant", said.message_id, _blocks(said.parts))
            case ToolReturned() as body:
                result = {
                    "type": "tool_result",
                    "tool_use_id": body.call_id,
                    "content": "\n".join(filter(None, (body.message, body.text))),
                    "is_error": not body.ok,
                }
                return self._line(event, "user", body.message_id, [result])
            case _:
                return b""

    def _line(
        self, event: Event, role: str, message_id: str, content: Sequence[Mapping[str, Any]]
    ) -> bytes:
        at = datetime.fromtimestamp(event.at / 1e6, UTC)
        line = {
            "type": role,
            "message": {"role": role, "content": content},
            "uuid": message_id,
            "timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "sessionId": self._session,
            "cwd": self._cwd,
        }
        return msgspec.json.encode(line, enc_hook=str) + b"\n"


def _blocks(parts: Iterable[Part]) -> list[dict[str, Any]]:
    """Text and calls; thinking and images aren't told."""
    found: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, Text):
            found.append({"type": "text", "text": part.text})
        elif isinstance(part, ToolCall):
            found.append({"type": "tool_use", "id": part.id, "name": part.name, "input": part.args})
    return found
