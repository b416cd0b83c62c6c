"""A program's output in bounded memory: its head, its tail, a count, and if need be a file of all."""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from types import TracebackType

SPILL_CAP = 64 << 20
"""Bytes of output that a spill file holds at most."""


class Capture:
    """Takes output piece by piece. Memory stays within about twice the limit. `spill` is the folder for a
    file of all, made when it is needed."""

    def __init__(self, limit: int, *, spill: Path | None) -> None:
        self.total = 0
        self.path: Path | None = None
        self._head_limit = limit * 2 // 5
        self._tail_limit = limit - self._head_limit
        self._head = bytearray()
        self._tail = bytearray()
        self._folder = spill
        self._file: int | None = None
        self._spilled = 0

    def __enter__(self) -> "Capture":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if error is not None and self.path is not None:
            self.path.unlink(missing_ok=True)

    def feed(self, chunk: bytes) -> None:
        self.total += len(chunk)
        if self._file is not None:
            self._write(chunk)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        if self.path is None and self.total > self._head_limit + self._tail_limit:
            self._open()
        if len(self._tail) > 2 * self._tail_limit:
            del self._tail[: -self._tail_limit]

    @property
    def omitted(self) -> int:
        """Bytes between the head's text and the tail's; the cut is at line ends where there are any."""
        head, tail = self._cut()
        return self.total - len(head) - len(tail)

    @property
    def head_text(self) -> str:
        return _text(self._cut()[0])

    @property
    def tail_text(self) -> str:
        return _text(self._cut()[1])

    def _cut(self) -> tuple[bytes, bytes]:
        if self.total <= self._head_limit + self._tail_limit:
            return bytes(self._head + self._tail), b""
        head, tail = bytes(self._head), bytes(self._tail[-self._tail_limit :])
        end = head.rfind(b"\n") + 1
        start = tail.find(b"\n") + 1
        return head[:end] or head, tail[start:] or tail

    def _open(self) -> None:
        if self._folder is None:
            return
        path = self._folder / f"croze-output-{secrets.token_hex(8)}.txt"
        with suppress(OSError):
            os.mkdir(self._folder, 0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._file = os.open(path, flags, 0o600)
        except OSError:
            self._folder = None
            return
        self.path = path
        self._write(bytes(self._head + self._tail))

    def _write(self, chunk: bytes) -> None:
        assert self._file is not None
        chunk = chunk[: SPILL_CAP - self._spilled]
        try:
            self._spilled += os.write(self._file, chunk) if chunk else 0
        except OSError:
            # A full disk costs the rest of the copy, not the command.
            os.close(self._file)
            self._file = None


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "�")
