"""Live terminals: a program on a pseudo-terminal of its own, its screen, and what is typed to it."""

import asyncio
import fcntl
import os
import struct
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from croze.text.patterns import Pattern
from croze.text.vt import Mark, Screen
from croze.types.errors import CrozeError
from croze.workspace.background import Job
from croze.workspace.wrapper import Entrance, Entry, Sieve

QUIET = 0.3
"""Seconds without output after which a program counts as waiting, where no pattern says so."""

SILENT = 2.0
"""Seconds after which one that has said nothing at all does."""

_CHUNK = 64 << 10
_FREELY = 1 << 20
_PAUSE = 0.02
_LOOK = 0.02
_PATIENCE = 5.0

_ATTACH = """import fcntl, os, signal, sys, termios
terminal = int(sys.argv[1])
for each in (signal.SIGPIPE, signal.SIGINT, signal.SIGQUIT, signal.SIGXFSZ):
    signal.signal(each, signal.SIG_DFL)
try:
    os.setsid()
except OSError:
    pass
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
for each in (0, 1, 2):
    os.dup2(terminal, each)
if terminal > 2:
    os.close(terminal)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    print(f"{sys.argv[2]}: {error.strerror}", file=sys.stderr)
    os._exit(127)
"""
"""Makes the terminal that it is given its own and becomes the program. In a sandbox too, where the
terminal has no name, only this descriptor."""

KEYS: Mapping[str, bytes] = {
    "enter": b"\r", "return": b"\r", "tab": b"\t", "esc": b"\x1b", "escape": b"\x1b", "space": b" ",
    "backspace": b"\x7f", "bspace": b"\x7f", "delete": b"\x1b[3~", "insert": b"\x1b[2~", "btab": b"\x1b[Z",
    "up": b"\x1b[A", "down": b"\x1b[B", "right": b"\x1b[C", "left": b"\x1b[D", "home": b"\x1b[H", "end": b"\x1b[F",
    "pageup": b"\x1b[5~", "pagedown": b"\x1b[6~", "f1": b"\x1bOP", "f2": b"\x1bOQ", "f3": b"\x1bOR", "f4": b"\x1bOS",
    "f5": b"\x1b[15~", "f6": b"\x1b[17~", "f7": b"\x1b[18~", "f8": b"\x1b[19~", "f9": b"\x1b[20~",
    "f10": b"\x1b[21~", "f11": b"\x1b[23~", "f12": b"\x1b[24~",
}  # fmt: skip


class TerminalStuck(CrozeError):
    """The program doesn't take what is typed."""

    code = "terminal_stuck"


def keys_of(names: str) -> bytes:
    """What the named keys send: Enter, Up, F5, C-c, M-x. Raises ValueError for one that is unknown."""
    sent = b""
    for name in names.split():
        modifier, _, letter = name.partition("-")
        if name.lower() in KEYS:
            sent += KEYS[name.lower()]
        elif (
            modifier in ("C", "c", "Ctrl", "ctrl")
            and len(letter) == 1
            and "?" <= letter.upper() <= "_"
        ):
            sent += bytes([ord(letter.upper()) ^ 0x40])
        elif modifier in ("M", "m", "Alt", "alt") and len(letter) == 1:
            sent += b"\x1b" + letter.encode()
        else:
            raise ValueError(
                f"{name} is no key; Enter, Tab, Esc, Up, PageDown, F1, C-c and M-x are"
            )
    return sent


class Seen(Struct, frozen=True):
    """What came of waiting. `why` it ended; `kind` tells whether `text` is the new output, line by line,
    or the screen as it stands; `missing` counts lines that went by too fast to be kept."""

    why: Literal["found", "quiet", "ended", "time"]
    kind: Literal["output", "screen"]
    text: str
    missing: int
    cursor: tuple[int, int]


class Terminal(Job):
    """A program on a terminal of its own. Make it, then `Background.start` it with `entrance`. Its output
    goes through `sieve` where there is one."""

    kind: Literal["command", "terminal"] = "terminal"

    def __init__(
        self, command: str, *, rows: int, columns: int, sieve: Sieve | None = None
    ) -> None:
        super().__init__(command)
        self._sieve = sieve
        self.screen = Screen(rows, columns)
        self._master, self._slave = os.openpty()
        os.set_blocking(self._master, False)
        self._open = True
        self._timer: asyncio.TimerHandle | None = None
        self._mark = Mark(0, 0)
        self._since_look = 0
        self._heard = 0.0
        self._set_size()
        asyncio.get_running_loop().add_reader(self._master, self._readable)

    def entrance(self, sandbox: Entrance | None) -> Entrance:
        """The way in for the program: on this terminal, and in the sandbox where there is one."""
        return _OnTerminal(sandbox, self._slave)

    def feed(self, chunk: bytes) -> bool:
        """What doesn't go through the terminal: what a sandbox has to say when it can't be set up."""
        self.screen.feed(chunk.replace(b"\n", b"\r\n"))
        return super().feed(chunk)

    def last_line(self) -> str:
        lines = self.screen.text().splitlines()
        return next((line for line in reversed(lines) if line.strip()), "")

    def resize(self, rows: int, columns: int) -> None:
        """Give the terminal another size; the program is told by the system."""
        self.screen.resize(rows, columns)
        self._mark = Mark(min(self._mark.line, self.screen.mark().line), 0)
        self.screen.drawn = True
        if self._open:
            self._set_size()

    async def type(self, data: bytes) -> None:
        """Send what is typed. Raises `TerminalStuck` where it isn't taken."""
        deadline = time.monotonic() + _PATIENCE
        while data and self._open:
            try:
                data = data[os.write(self._master, data) :]
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TerminalStuck(
                        f"{self.id} takes no input: {len(data)} bytes were not typed.",
                        hint="Wait for the program, or send C-c with keys.",
                    ) from None
                await self.next_change(_LOOK)
            except OSError:
                return

    async def wait(
        self, *, typed: bool, pattern: Pattern | None, quiet: float, timeout: float
    ) -> Seen:
        """Wait until a line of the new output matches, or the program has been quiet for so long, or has
        ended, or the time is over; and give what is new since the last look. What was there before
        something was `typed` doesn't match."""
        self._since_look = 0
        begun = time.monotonic()
        deadline = begun + timeout
        before, looked = self.total, -1
        start = self.screen.mark() if typed else self._mark
        while True:
            now = time.monotonic()
            why: Literal["found", "quiet", "ended", "time"] | None = None
            if pattern is not None and self.total != looked and (not typed or self.total > before):
                looked = self.total
                if pattern.found_in(self._new(start)):
                    why = "found"
            pause = deadline - now
            if pattern is None:
                still = quiet if self.total > before else max(quiet, SILENT)
                rest = max(self._heard, begun) + still - now
                why = "quiet" if rest <= 0 else why
                pause = min(pause, rest)
            if not self.running:
                why = why or "ended"
            if why is None and now >= deadline:
                why = "time"
            if why is not None:
                return self._look(why)
            await self.next_change(pause)
            if pattern is not None and self.running:
                await asyncio.sleep(
                    _LOOK
                )  # what comes in many pieces is not looked at piece by piece

    def ended(self) -> None:
        if not self._open:
            return
        for _ in range(64):
            if not self._read():
                break
        self._open = False
        if self._timer is not None:
            self._timer.cancel()
        asyncio.get_running_loop().remove_reader(self._master)
        os.close(self._master)
        os.close(self._slave)

    def forget(self) -> None:
        self.ended()

    def _new(self, start: Mark) -> str:
        if self.screen.alternate or self.screen.drawn:
            return self.screen.text()
        return self.screen.since(start, exact=True)[0]

    def _look(self, why: Literal["found", "quiet", "ended", "time"]) -> Seen:
        screen = self.screen
        if self._sieve is not None:  # what it holds back has waited long enough
            screen.feed(self._sieve.finish())
        cursor = (screen.y + 1, screen.x + 1)
        drawn = screen.alternate or screen.drawn
        text, missing = (screen.text(), 0) if drawn else screen.since(self._mark)
        self._mark, screen.drawn = screen.mark(), False
        return Seen(why, "screen" if drawn else "output", text, missing, cursor)

    def _readable(self) -> None:
        self._read()
        if self._since_look > _FREELY and self._open:
            # Nobody looks at so much: let the program wait for its terminal.
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._master)
            self._timer = loop.call_later(_PAUSE, self._listen)

    def _listen(self) -> None:
        if self._open:
            asyncio.get_running_loop().add_reader(self._master, self._readable)

    def _read(self) -> bool:
        """Take in what there is; whether there was something."""
        try:
            chunk = os.read(self._master, _CHUNK)
        except OSError:
            return False
        self.screen.feed(chunk if self._sieve is None else self._sieve.feed(chunk))
        self.total += len(chunk)
        self._since_look += len(chunk)
        self._heard = time.monotonic()
        if self.screen.answers:
            with suppress(OSError):
                os.write(self._master, bytes(self.screen.answers))
            self.screen.answers.clear()
        self.changed()
        return bool(chunk)

    def _set_size(self) -> None:
        size = struct.pack("HHHH", self.screen.rows, self.screen.columns, 0, 0)
        with suppress(OSError):
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)


class _OnTerminal(Struct, frozen=True):
    """The way into a sandbox, if any, and there onto a terminal."""

    sandbox: Entrance | None
    terminal: int

    @contextmanager
    def enter(
        self, argv: Sequence[str], *, cwd: str | os.PathLike[str], env: Mapping[str, str]
    ) -> Iterator[Entry]:
        python = os.path.realpath(sys.executable)
        argv = [python, "-I", "-S", "-c", _ATTACH, str(self.terminal), *argv]
        inner = (
            nullcontext(Entry(argv=argv, cwd=cwd, env=env))
            if self.sandbox is None
            else self.sandbox.enter(argv, cwd=cwd, env=env)
        )
        with inner as entry:
            yield replace(entry, descriptors=(*entry.descriptors, self.terminal))
