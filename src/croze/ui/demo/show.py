"""The demo: a scripted model mends a real bug with the real tools, drawn as the chat draws it."""

import asyncio
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from croze.app.options import RunOptions
from croze.types.context import Context, Layer
from croze.types.event import Event, ModelCalled, Stopped, ToolReturned, ToolStarted
from croze.types.news import ChildNews
from croze.types.stream import Delta
from croze.ui.cli.exits import Exit
from croze.ui.cli.interrupt import Interrupt
from croze.ui.cli.state import State
from croze.ui.demo.scratch import Scratch, open_scratch
from croze.ui.i18n import _
from croze.ui.render import Screen

if TYPE_CHECKING:
    from croze.app.app import App, Session

SCRIPT = Path(__file__).parent / "script.yaml"
TASK = "The tests fail. Find the fault in the code, mend it, and run the tests again."
TESTS = "python3 -B -m unittest"
"""The command whose runs decide whether the demo has worked."""


def show(
    state: State,
    *,
    dialect: Literal["native", "xml"],
    keep: str | None = None,
    script: Path = SCRIPT,
) -> int:
    """Play `script` on a fresh copy of the sample project; gives the exit code: 0 only where its tests
    failed before, pass now, and the task was reported as done."""
    with open_scratch(keep) as scratch:
        options = RunOptions(
            model=f"scripted:{script}", dialect=dialect, mode="full", sandbox="off", headless=True
        )
        return asyncio.run(_Show(state, scratch).run(options))


def runs_of_tests(events: Sequence[Event]) -> list[bool]:
    """How the runs of the project's tests ended, as the log has them."""
    commands = {
        event.body.call_id: event.body.args.get("command")
        for event in events
        if isinstance(event.body, ToolStarted)
    }
    return [
        event.body.ok
        for event in events
        if isinstance(event.body, ToolReturned) and commands.get(event.body.call_id) == TESTS
    ]


class _Show:
    def __init__(self, state: State, scratch: Scratch) -> None:
        self._out = state.out
        self._scratch = scratch
        self._state = replace(state, cwd=scratch.project, env=scratch.environment(state.env))
        color = sys.stdout is not None and sys.stdout.isatty() and not state.env.get("NO_COLOR")
        width = shutil.get_terminal_size((100, 30)).columns
        self._screen = Screen(self._write, color=color, width=width)
        self._pipe_closed = False
        self._interrupt = Interrupt()
        self._session: Session | None = None
        self._context: Context | None = None

    async def run(self, options: RunOptions) -> int:
        app = self._state.open()
        with self._interrupt.watching():
            try:
                return await self._play(app, options)
            except asyncio.CancelledError:
                return self._interrupt.code or Exit.INTERRUPTED
            finally:
                await app.aclose()

    async def _play(self, app: "App", options: RunOptions) -> int:
        session = self._session = await app.session(options)
        self._interrupt.cancel = session.cancel
        self._open(session)
        if self._pipe_closed:
            raise BrokenPipeError
        session.subscribe(self._watch)
        stopped = await session.submit(TASK)
        if self._pipe_closed:
            raise BrokenPipeError
        if stopped.reason == "cancelled":
            return self._interrupt.code or Exit.INTERRUPTED
        self._account()
        self._where(app, session)
        return self._verdict(session, stopped)

    def _write(self, text: str) -> None:
        """A closed output ends the turn: nobody looks on."""
        if self._pipe_closed:
            return
        try:
            self._out.raw(text.encode("utf-8", "replace"))
        except BrokenPipeError:
            self._pipe_closed = True
            if self._session is not None:
                self._session.cancel()

    def _watch(self, item: Event | Delta | ChildNews) -> None:
        if isinstance(item, Event) and isinstance(item.body, ModelCalled) and self._session:
            self._context = self._session.context()
        self._screen.watch(item)

    def _open(self, session: "Session") -> None:
        line = self._screen.line
        line(
            _("A scripted model mends a bug. Tools, files and tests are real; no key, no network."),
            "bold",
        )
        line(
            _(
                "Commands run unconfined, in the scratch copy {folder}.",
                folder=self._scratch.project,
            ),
            "yellow",
        )
        line(
            _("{dialect} protocol, conversation {id}", dialect=session.dialect, id=session.id[:8]),
            "dim",
        )
        line(f"› {TASK}", "bold")

    def _account(self) -> None:
        """What the last request was made of."""
        context = self._context
        if context is None:
            return
        line, layers = self._screen.line, context.by_layer()
        line("")
        line(_("Tokens of the last request, by section (estimated):"), "bold")
        for name in get_args(Layer):
            line(f"  {name:<14}{layers.get(name, 0):>7,}")
        line(f"  {'':<14}{context.tokens:>7,}")

    def _where(self, app: "App", session: "Session") -> None:
        line, log = self._screen.line, app.config.store_folder / "log.db"
        line("")
        if not self._scratch.kept:
            line(_("Session log: {log} (removed at the end; --keep DIR keeps it)", log=log))
            return
        line(_("Session log: {log}", log=log))
        line(_("Project: {folder}", folder=self._scratch.project))
        command = f"XDG_DATA_HOME={_quoted(self._scratch.data)} croze session show {session.id[:8]}"
        line(
            _("To read it: {command}", command=f"cd {_quoted(self._scratch.project)} && {command}")
        )

    def _verdict(self, session: "Session", stopped: Stopped) -> int:
        runs = runs_of_tests(session.events)
        if stopped.reason != "done":
            problem = _("the session ended early ({reason})", reason=stopped.reason)
        elif not runs or runs[0]:
            problem = _("the tests were never seen to fail")
        elif not runs[-1]:
            problem = _("the tests still fail")
        elif not _completed(session.events):
            problem = _("the task was not reported as done")
        else:
            self._screen.line(_("The tests failed before and pass now."), "green", "bold")
            return Exit.DONE
        self._screen.line(_("The demo failed: {problem}.", problem=problem), "red", "bold")
        return Exit.FAILED


def _completed(events: Sequence[Event]) -> bool:
    return any(
        isinstance(event.body, ToolReturned)
        and event.body.name == "attempt_completion"
        and event.body.ok
        for event in events
    )


def _quoted(path: Path) -> str:
    import shlex

    return shlex.quote(os.fspath(path))
