"""Running a program of the user's own that is given something to read, its output and errors kept apart."""

import asyncio
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from croze.workspace.capture import Capture
from croze.workspace.process import ProcessResult, run
from croze.workspace.wrapper import Entry

MOST_OUTPUT = 16 << 20
"""Bytes of output after which a program is ended."""

_CHUNK = 64 << 10


@dataclass(frozen=True, slots=True)
class Piped:
    """How the program ended, and the two things that it said. `output` is None where it is longer than
    the limit; of `errors` the middle is left out then."""

    ended: ProcessResult
    output: str | None
    errors: str


async def run_piped(
    argv: Sequence[str],
    *,
    said: bytes,
    cwd: str,
    env: Mapping[str, str],
    timeout: float,
    output_limit: int,
    error_limit: int,
) -> Piped:
    """Run a program, unconfined, with `said` on its standard input, until it and all that it started
    have ended. `timeout` is in seconds, the limits are bytes. Raises `ProcessError` where it can't be
    started."""
    loop = asyncio.get_running_loop()
    errors = Capture(error_limit, spill=None)
    total = 0

    def goes_on(chunk: bytes) -> bool:
        nonlocal total
        total += len(chunk)
        return total <= MOST_OUTPUT

    with _input(said) as stdin, _pipe() as (reader, writer):

        def listen() -> None:
            chunk = _read(reader)
            if chunk:
                errors.feed(chunk)
            if errors.total > MOST_OUTPUT:  # from here on it waits in vain, until its time is over
                loop.remove_reader(reader)

        loop.add_reader(reader, listen)
        try:
            ended = await run(
                argv,
                cwd=cwd,
                env=env,
                timeout=timeout,
                output_limit=output_limit,
                on_output=goes_on,
                sandbox=_Streams(stdin, writer),
            )
        finally:
            loop.remove_reader(reader)
        while errors.total <= MOST_OUTPUT and (chunk := _read(reader)):
            errors.feed(chunk)
    tail = f"\n…\n{errors.tail_text}" if errors.omitted else ""
    output = None if ended.omitted else ended.head
    return Piped(ended=ended, output=output, errors=errors.head_text + tail)


@dataclass(frozen=True, slots=True)
class _Streams:
    """No sandbox: only where input comes from and where errors go."""

    stdin: int
    stderr: int

    @contextmanager
    def enter(
        self, argv: Sequence[str], *, cwd: str | os.PathLike[str], env: Mapping[str, str]
    ) -> Iterator[Entry]:
        yield Entry(argv=argv, cwd=cwd, env=env, stdin=self.stdin, stderr=self.stderr)


@contextmanager
def _input(said: bytes) -> Iterator[int]:
    """A descriptor from which `said` can be read: a program that doesn't read it holds nobody up."""
    with tempfile.TemporaryFile() as file:
        file.write(said)
        file.flush()
        file.seek(0)
        yield file.fileno()


@contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    try:
        os.set_blocking(reader, False)
        yield reader, writer
    finally:
        os.close(reader)
        os.close(writer)


def _read(reader: int) -> bytes:
    """What there is to read; nothing where nothing has come."""
    try:
        return os.read(reader, _CHUNK)
    except BlockingIOError:
        return b""
