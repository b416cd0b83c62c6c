"""Signals: the first ends the turn and keeps what arrived, the second ends everything."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator

from croze.ui.cli.exits import Exit

CODES = {
    signal.SIGINT: Exit.INTERRUPTED,
    signal.SIGTERM: Exit.TERMINATED,
    signal.SIGHUP: Exit.HUNG_UP,
}


class Interrupt:
    """Turns signals into `cancel` of the running session; `code` is the exit code that they ask for.

    In a chat (`leaves` false) Ctrl-C stops a turn and only a second one ends the program; everywhere
    else, and with every other signal, the program ends after the turn.
    """

    def __init__(self, *, leaves: bool = True) -> None:
        self.code: Exit | None = None
        self.cancel: Callable[[], None] | None = None
        self._leaves = leaves
        self._task: asyncio.Task[object] | None = None
        self._stopping = False

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """While this lasts, signals are handled here. Must run inside the event loop's task."""
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        for number, code in CODES.items():
            if number is signal.SIGINT and not self._leaves:
                continue
            loop.add_signal_handler(number, self._handle, code)
        try:
            yield
        finally:
            for number in CODES:
                loop.remove_signal_handler(number)

    @contextlib.contextmanager
    def turn(self, cancel: Callable[[], None]) -> Iterator[None]:
        """While this lasts, Ctrl-C stops the chat's turn; a second one ends the program."""
        loop = asyncio.get_running_loop()
        self.cancel, self._stopping = cancel, False
        loop.add_signal_handler(signal.SIGINT, self._stop)
        try:
            yield
        finally:
            self.cancel = None
            loop.remove_signal_handler(signal.SIGINT)

    def _stop(self) -> None:
        if self._stopping:
            self._handle(Exit.INTERRUPTED)
        elif self.cancel is not None:
            self._stopping = True
            self.cancel()

    def _handle(self, code: Exit) -> None:
        first = self.code is None
        self.code = code
        if first and self.cancel is not None and self._leaves:
            self.cancel()
        elif self._task is not None:
            self._task.cancel()
