"""Where the chat's lines come from: a terminal with history and editing, or a pipe."""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

_BLOCK = 65_536


class Reader(Protocol):
    """Gives the next line; None at the end of input. Ctrl-C raises KeyboardInterrupt."""

    async def line(self, prompt: str) -> str | None:
        """The next message; it may have been typed while the agent worked."""
        ...

    async def answer(self, prompt: str) -> str | None:
        """The answer to a question; what was typed before the question was seen doesn't count."""
        ...

    def working(self) -> contextlib.AbstractContextManager[None]:
        """While this lasts the agent works: what is typed must not be drawn into its lines."""
        ...

    def above(self, draw: Callable[[], None]) -> None:
        """Draw something at once, though a line may be being typed: above it."""
        ...


class TerminalReader:
    """prompt_toolkit's line editing, with a history file that only the user can read. It must not
    handle SIGINT: it would take the turn's own handler away. As a key Ctrl-C works all the same."""

    def __init__(self, history: Path) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import FileHistory, History, InMemoryHistory

        kept: History
        try:
            history.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            history.touch(mode=0o600, exist_ok=True)
            kept = FileHistory(str(history))
        except OSError:
            kept = InMemoryHistory()
        self._session: PromptSession[str] = PromptSession(history=kept)
        self._drawing: set[asyncio.Future[None]] = set()
        self._question: PromptSession[str] = PromptSession(history=InMemoryHistory())

    async def line(self, prompt: str) -> str | None:
        try:
            return await self._session.prompt_async(prompt, handle_sigint=False)
        except EOFError:
            return None

    async def answer(self, prompt: str) -> str | None:
        import termios

        from prompt_toolkit.input.typeahead import clear_typeahead

        clear_typeahead(self._question.input)
        with contextlib.suppress(termios.error, OSError):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        try:
            return await self._question.prompt_async(prompt, handle_sigint=False)
        except EOFError:
            return None

    def above(self, draw: Callable[[], None]) -> None:
        if not any(each.app.is_running for each in (self._session, self._question)):
            draw()
            return
        from prompt_toolkit.application import run_in_terminal

        drawing = asyncio.ensure_future(run_in_terminal(draw))
        self._drawing.add(drawing)
        drawing.add_done_callback(self._drawing.discard)

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        import termios

        descriptor = sys.stdin.fileno()
        try:
            before = termios.tcgetattr(descriptor)
            silent = [*before]
            silent[3] &= ~termios.ECHO
            termios.tcsetattr(descriptor, termios.TCSADRAIN, silent)
        except (termios.error, OSError):
            yield
            return
        try:
            yield
        finally:
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class PipeReader:
    """Lines from a pipe or a file, read in a thread so that the loop goes on and the program can end
    while the pipe stays open. What isn't UTF-8 is replaced."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor
        self._rest = b""

    async def line(self, prompt: str) -> str | None:
        del prompt
        while b"\n" not in self._rest and self._descriptor is not None:
            block = await self._read(self._descriptor)
            self._rest += block
            if not block:
                self._descriptor = None
        line, newline, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r") if line or newline else None

    async def answer(self, prompt: str) -> str | None:
        return await self.line(prompt)

    def above(self, draw: Callable[[], None]) -> None:
        draw()

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        yield

    async def _read(self, descriptor: int) -> bytes:
        """The next bytes, empty at the end. A thread of its own: asyncio waits for its workers when it
        ends, and this one may wait for ever."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bytes] = loop.create_future()

        def give(block: bytes) -> None:
            if not done.done():
                done.set_result(block)

        def work() -> None:
            try:
                block = os.read(descriptor, _BLOCK)
            except OSError:
                block = b""
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(give, block)

        threading.Thread(target=work, name="standard input", daemon=True).start()
        return await done
