"""A program that is talked to for as long as it runs: lines in, lines out, its errors kept apart."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from croze.workspace.capture import Capture
from croze.workspace.process import ProcessResult, run
from croze.workspace.wrapper import Entry

MOST_WAITING = 64 << 20
"""Bytes that may wait for a program that doesn't read; with more it is ended."""

GOODBYE = 0.3
"""Seconds that a program has to end by itself once its input is closed."""

_FOR_EVER = 10 * 365 * 86_400.0
_CHUNK = 64 << 10


class Duplex:
    """One program, unconfined, by the runner's rules: it and all that it started end with `close`, with a
    cancelled loop, and with croze itself, however that ends."""

    def __init__(self, error_limit: int) -> None:
        self._errors = Capture(error_limit, spill=None)
        self._waiting = bytearray()
        self._stdin: int | None = None
        self._writing = False
        self._task: asyncio.Task[ProcessResult] | None = None

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        cwd: str | os.PathLike[str],
        env: Mapping[str, str],
        on_output: Callable[[bytes], bool],
        error_limit: int = 64 << 10,
    ) -> "Duplex":
        """Start it. `on_output` gets each piece of its output and returns whether it may go on; of its errors
        `error_limit` bytes are kept. Raises `ProcessError` where it can't be started."""
        self = cls(error_limit)
        theirs, self._stdin = os.pipe()
        errors, their_errors = os.pipe()
        os.set_blocking(self._stdin, False)
        os.set_blocking(errors, False)
        running = run(
            argv,
            cwd=cwd,
            env=env,
            timeout=_FOR_EVER,
            output_limit=4_096,
            on_output=on_output,
            sandbox=_Streams(theirs, their_errors),
        )
        self._task = asyncio.create_task(running, name=f"program {argv[0]}")
        loop = asyncio.get_running_loop()
        loop.add_reader(errors, self._listen, loop, errors)
        self._task.add_done_callback(lambda _task: self._ended(loop, errors))
        try:
            await asyncio.sleep(0)  # the first step of it starts the program
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        finally:
            os.close(theirs)
            os.close(their_errors)
        if self._task.done() and not self._task.cancelled():
            self._task.result()
        return self

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def errors(self) -> str:
        """What it wrote to its standard error, the middle left out where it is long."""
        tail = f"\n…\n{self._errors.tail_text}" if self._errors.omitted else ""
        return self._errors.head_text + tail

    async def ended(self) -> ProcessResult | None:
        """Wait for its end; None where it was ended from here."""
        assert self._task is not None
        await asyncio.wait([self._task])
        return None if self._task.cancelled() else self._task.result()

    def write(self, data: bytes) -> bool:
        """Send it something. Never waits: what it doesn't take yet is kept for it. False where it is gone, or
        has stopped reading."""
        if self._stdin is None or len(self._waiting) > MOST_WAITING:
            return False
        self._waiting += data
        if not self._writing:
            self._flush()
        return self._stdin is not None

    async def close(self) -> None:
        """Close its input, give it a moment, then end it and all that it started."""
        task = self._task
        if task is None:
            return
        self._close_input(asyncio.get_running_loop())
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task], timeout=GOODBYE)
        while not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # looked at, so that nobody reports it as lost

    def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        if self._stdin is None:
            return
        try:
            while self._waiting:
                del self._waiting[: os.write(self._stdin, self._waiting[: 4 * _CHUNK])]
        except BlockingIOError:
            if not self._writing:
                self._writing = True
                loop.add_writer(self._stdin, self._flush)
            return
        except OSError:  # it has closed its input
            self._close_input(loop)
            return
        if self._writing:
            self._writing = False
            loop.remove_writer(self._stdin)

    def _close_input(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._stdin is None:
            return
        if self._writing:
            loop.remove_writer(self._stdin)
            self._writing = False
        os.close(self._stdin)
        self._stdin = None
        self._waiting.clear()

    def _listen(self, loop: asyncio.AbstractEventLoop, errors: int) -> None:
        try:
            chunk = os.read(errors, _CHUNK)
        except BlockingIOError:
            return
        if chunk:
            self._errors.feed(chunk)
        else:
            loop.remove_reader(errors)

    def _ended(self, loop: asyncio.AbstractEventLoop, errors: int) -> None:
        loop.remove_reader(errors)
        for _ in range(64):  # bounded: what escaped the tree may still write
            try:
                chunk = os.read(errors, _CHUNK)
            except BlockingIOError:
                break
            if not chunk:
                break
            self._errors.feed(chunk)
        os.close(errors)
        self._close_input(loop)


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
