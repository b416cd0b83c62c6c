"""The pipe that a program's output comes through."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CHUNK = 256 << 10
"""Bytes that are read at a time."""

PIPE_SIZE = 1 << 20


@contextmanager
def output_pipe() -> Iterator[tuple[int, int]]:
    """A pipe with a non-blocking reading end; the writing end is the caller's to close."""
    reader, writer = os.pipe()
    try:
        os.set_blocking(reader, False)
        with suppress(OSError, AttributeError):
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
        yield reader, writer
    finally:
        os.close(reader)


def read(reader: int) -> bytes | None:
    """What there is to read, b"" at the end, None where nothing has come."""
    try:
        return os.read(reader, CHUNK)
    except BlockingIOError:
        return None
