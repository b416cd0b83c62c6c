"""Opens the chat on the terminal, or line by line on a pipe."""

import asyncio
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from croze.types.errors import CrozeError
from croze.ui.cli.collector import started
from croze.ui.cli.interrupt import Interrupt
from croze.ui.cli.output import Output, columns
from croze.ui.i18n import _
from croze.ui.render import Screen
from croze.ui.repl.chat import Chat
from croze.ui.repl.reader import PipeReader, Reader, TerminalReader

if TYPE_CHECKING:
    from croze.app.app import App
    from croze.app.options import RunOptions


@dataclass(slots=True)
class Paper:
    """What the screen writes on. The first failure is kept and stops the turn: it happens while the
    session tells its watchers, who must not raise."""

    out: Output
    failed: OSError | CrozeError | None = None
    stop: Callable[[], None] | None = None

    def write(self, text: str) -> None:
        if self.failed is not None:
            return
        try:
            self.out.raw(text.encode("utf-8", "replace"))
        except (BrokenPipeError, CrozeError) as error:
            self.failed = error
            if self.stop is not None:
                self.stop()


def open_chat(app: "App", options: "RunOptions", out: Output) -> int:
    """Chat; gives the exit code. Without a terminal on both ends nobody is asked."""
    typed, shown = _is_terminal(sys.stdin), _is_terminal(sys.stdout)
    if typed and not shown:
        out.note(
            _("croze: standard output is no terminal: each line is a task, and nobody is asked")
        )
    return asyncio.run(_chat(app, options, out, terminal=typed and shown))


def _is_terminal(stream: object) -> bool:
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty())


async def _chat(app: "App", options: "RunOptions", out: Output, *, terminal: bool) -> int:
    wish = app.config.settings.ui.color
    color = wish == "always" or (wish == "auto" and terminal and not os.environ.get("NO_COLOR"))
    live = terminal and os.environ.get("TERM") != "dumb"
    paper = Paper(out)
    screen = Screen(paper.write, color=color, width=columns(), live=live)
    interrupt = Interrupt(leaves=False)
    with interrupt.watching():
        try:
            reader: Reader
            if terminal:
                reader = TerminalReader(app.config.paths.state / "history")
            else:
                reader = PipeReader(None if sys.stdin is None else sys.stdin.fileno())
                options = replace(options, headless=True)
            chat = Chat(app, options, reader, screen, interrupt)
            paper.stop = chat.leave
            await chat.open()
            started()
            if terminal:
                await chat.offer_law()
            code = await chat.run()
        except asyncio.CancelledError:
            if interrupt.code is None:
                raise
            return int(interrupt.code)
        finally:
            await app.aclose()
    if paper.failed is not None:
        raise paper.failed
    return code
