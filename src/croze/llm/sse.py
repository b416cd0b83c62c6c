"""An incremental parser of server-sent events over bytes, however the network cut them.

It follows the event-stream format of the HTML standard (https://html.spec.whatwg.org/multipage/
server-sent-events.html): CRLF, LF and CR end lines, a byte-order mark at the start is dropped, lines
with a colon first are comments, an event that the stream's end cuts off is discarded.
"""

from typing import NamedTuple

BOM = b"\xef\xbb\xbf"
MAX_EVENT = 64 * 1024 * 1024
"""Bytes of one event; more is a broken server, not a reply."""


class Event(NamedTuple):
    """One event: its `event` field ("" where there is none) and its data lines joined by LF."""

    name: str
    data: bytes


class EventTooLong(ValueError):
    """One event has grown past `MAX_EVENT` bytes."""


class SSEParser:
    """Feed it bytes as they come; it gives the events that they complete."""

    def __init__(self) -> None:
        self._start: bytes | None = b""
        self._partial: list[bytes] = []
        self._after_cr = False
        self._name = ""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, block: bytes) -> list[Event]:
        """The events that `block` completes. Raises `EventTooLong`."""
        if self._start is not None:
            block = self._start + block
            if len(block) < len(BOM) and BOM.startswith(block):
                self._start = block
                return []
            self._start = None
            block = block.removeprefix(BOM)
        if self._after_cr and block:
            self._after_cr = False
            if block.startswith(b"\n"):
                block = block[1:]
        if not block:
            return []
        self._size += len(block)
        if self._size > MAX_EVENT:
            raise EventTooLong(f"an event of more than {MAX_EVENT} bytes")
        lines = block.splitlines()
        ended = block.endswith((b"\n", b"\r"))
        self._after_cr = block.endswith(b"\r")
        if self._partial and (ended or len(lines) > 1):
            self._partial.append(lines[0])
            lines[0] = b"".join(self._partial)
            self._partial = []
        if not ended:
            self._partial.append(lines.pop())
        return self._read(lines)

    def _read(self, lines: list[bytes]) -> list[Event]:
        events: list[Event] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif not line:
                if self._data:
                    data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                    events.append(Event(self._name, data))
                    self._data = []
                self._name = ""
                self._size = 0
            else:
                self._field(line)
        return events

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            self._name = value.decode("utf-8", "replace")
        elif name == b"data":
            self._data.append(value)
