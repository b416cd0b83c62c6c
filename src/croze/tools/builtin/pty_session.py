"""session_start, session_interactive, session_stop: programs on a live terminal."""

import os
from typing import Annotated, ClassVar

from msgspec import Meta

from croze.text.display import one_line
from croze.text.patterns import Pattern
from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.builtin.failures import failed
from croze.tools.builtin.shell import sandbox_for, shell
from croze.tools.subject import TERMINAL
from croze.types.errors import CrozeError
from croze.types.tool import Access, ToolExample, ToolResult, View
from croze.workspace.paths import below
from croze.workspace.process import child_environment
from croze.workspace.pty import QUIET, Seen, Terminal, keys_of
from croze.workspace.task import way_in

LIMIT = 12_000
"""Characters of a terminal's new output that the model gets: the newest."""

_COMMAND = 80
_PATTERN = "regex for a line of the new output to wait for, e.g. a prompt"
_WAIT = "seconds to wait at most, default 10"


class SessionStart(Tool, frozen=True):
    """Start a program on a live terminal and keep it running: a REPL, a debugger, a shell, a full-screen
    program. Gives the session's id and what is on its screen once it waits. For a command that needs no
    input use execute_command. Output of line programs comes as text, of full-screen ones as the screen."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="session_start",
        summary="start a program on a live terminal (REPL, debugger, shell)",
        access=Access(exec=True),
        examples=(
            ToolExample(
                "Debug a script", {"command": "python3 -m pdb app.py", "wait_for": "\\(Pdb\\) $"}
            ),
        ),
        aliases={"columns": "cols"},
    )

    command: Annotated[str, Meta(min_length=1)]
    cwd: Annotated[str, Meta(description="folder in the workspace, default its root")] = ""
    rows: Annotated[int, Meta(ge=2, le=200)] = 24
    cols: Annotated[int, Meta(ge=10, le=500)] = 80
    wait_for: Annotated[str, Meta(description=_PATTERN)] = ""
    timeout: Annotated[float, Meta(ge=0, le=600, description=_WAIT)] = 10

    @property
    def requires_approval(self) -> bool:
        """What a command does was judged for the root: elsewhere its paths lead elsewhere."""
        return self.cwd.strip() not in ("", ".")

    async def run(self, ctx: ToolContext) -> ToolResult:
        workspace = ctx.workspace
        root = workspace.root
        cwd = os.path.realpath(os.path.join(root, self.cwd)) if "\0" not in self.cwd else ""
        if not cwd or below(cwd, root) is None:
            return ToolResult(
                ok=False, message=f"{self.cwd!r} is not in the workspace.", code="path_outside"
            )
        try:
            pattern = _pattern(self.wait_for)
            sandbox = await sandbox_for(ctx)
            sieve = None if workspace.mask is None else workspace.mask.stream()
            terminal = Terminal(self.command, rows=self.rows, columns=self.cols, sieve=sieve)
            terminal.call_id = ctx.call.id
            await ctx.background.start(
                terminal,
                shell(self.command),
                cwd=cwd,
                env={**child_environment(ctx.env), "TERM": "xterm"},
                sandbox=way_in(workspace, terminal.entrance(sandbox)),
            )
        except CrozeError as error:
            return failed(error)
        except ValueError as error:
            return _wrong("wait_for", error)
        await ctx.emit(terminal.event("running"))
        seen = await terminal.wait(typed=False, pattern=pattern, quiet=QUIET, timeout=self.timeout)
        ctx.output(f"{seen.text}\n")
        return _result(terminal, seen, pattern, begun=True)

    def preview(self, ctx: ToolContext) -> View:
        where = f" in {self.cwd}" if self.cwd else ""
        return View(title=f"Run on a live terminal{where}", body=self.command, kind="output")


class SessionInteractive(Tool, frozen=True):
    """Type into a live terminal and read what comes. input is typed as it is and followed by Enter,
    unless keys says what is pressed after it: names like Enter Tab Esc Up PageDown F1 C-c C-d M-x,
    several with blanks between. Without input and keys it only reads. It waits until a line of the new
    output matches wait_for, else until the program has been quiet for quiet_ms; at most timeout seconds."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="session_interactive",
        summary="type into a live terminal and read it",
        access=Access(exec=True),
        examples=(
            ToolExample(
                "Ask a Python REPL",
                {"session_id": "term1", "input": "print(6 * 7)", "wait_for": "^>>> $"},
            ),
            ToolExample("Leave a pager", {"session_id": "term2", "input": "q", "keys": ""}),
        ),
        aliases={"columns": "cols", "text": "input", "read_timeout": "timeout"},
    )

    session_id: Annotated[str, Meta(min_length=1, description="as session_start gave it")]
    input: Annotated[str, Meta(max_length=20_000, description="text to type")] = ""
    keys: Annotated[str, Meta(description="keys to press after it, default Enter")] | None = None
    wait_for: Annotated[str, Meta(description=_PATTERN)] = ""
    quiet_ms: Annotated[int, Meta(ge=20, le=60_000, description="default 300")] = 300
    timeout: Annotated[float, Meta(ge=0, le=600, description=_WAIT)] = 10
    rows: Annotated[int, Meta(ge=2, le=200, description="new size")] | None = None
    cols: Annotated[int, Meta(ge=10, le=500, description="new size")] | None = None

    @property
    def grant(self) -> str:
        """What "always" is for: this very terminal."""
        return f"{TERMINAL}{self.session_id.strip()}"

    @property
    def _pressed(self) -> str:
        return ("Enter" if self.input else "") if self.keys is None else self.keys.strip()

    def access(self) -> Access:
        """Only looking is free."""
        return Access(exec=True) if self.input or self._pressed else Access(read=True)

    async def run(self, ctx: ToolContext) -> ToolResult:
        terminal = ctx.background.jobs.get(self.session_id.strip())
        if not isinstance(terminal, Terminal):
            return _unknown(ctx, self.session_id)
        try:
            pattern = _pattern(self.wait_for)
        except ValueError as error:
            return _wrong("wait_for", error)
        try:
            typed = self.input.replace("\r\n", "\r").replace("\n", "\r").encode("utf-8", "replace")
            typed += keys_of(self._pressed)
        except ValueError as error:
            return _wrong("keys", error)
        if typed and not terminal.running:
            return ToolResult(
                ok=False,
                message=f"{_state(terminal)} Nothing was typed.",
                text="Start another with session_start.",
                code="session_ended",
            )
        if self.rows or self.cols:
            screen = terminal.screen
            terminal.resize(self.rows or screen.rows, self.cols or screen.columns)
        try:
            await terminal.type(typed)
        except CrozeError as error:
            return failed(error)
        seen = await terminal.wait(
            typed=bool(typed), pattern=pattern, quiet=self.quiet_ms / 1000, timeout=self.timeout
        )
        ctx.output(f"{seen.text}\n")
        return _result(terminal, seen, pattern)

    def preview(self, ctx: ToolContext) -> View:
        terminal = ctx.background.jobs.get(self.session_id.strip())
        program = one_line(terminal.command, _COMMAND) if terminal is not None else "?"
        pressed = f"\n[{self._pressed}]" if self._pressed not in ("", "Enter") else ""
        title = f"Type into {self.session_id} ({program})"
        return View(title=title, body=f"{self.input}{pressed}", kind="text")


class SessionStop(Tool, frozen=True):
    """End a live terminal: its program and all that it started."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="session_stop",
        summary="end a live terminal",
        access=Access(read=True),
        examples=(ToolExample("End it", {"session_id": "term1"}),),
    )

    session_id: Annotated[str, Meta(min_length=1, description="as session_start gave it")]

    async def run(self, ctx: ToolContext) -> ToolResult:
        terminal = ctx.background.jobs.get(self.session_id.strip())
        if not isinstance(terminal, Terminal):
            return _unknown(ctx, self.session_id)
        if terminal.running:
            await terminal.stop("killed")
        message = _state(terminal)
        ctx.background.forget(terminal)
        return ToolResult(ok=True, message=message, data=_facts(terminal))

    def preview(self, ctx: ToolContext) -> View:
        return View(title=f"End {self.session_id}")


def _pattern(text: str) -> Pattern | None:
    return Pattern(text) if text else None


def _wrong(name: str, error: ValueError) -> ToolResult:
    return ToolResult(ok=False, message=f"{name} can't be used: {error}.", code="invalid_arguments")


def _unknown(ctx: ToolContext, session_id: str) -> ToolResult:
    known = ", ".join(job.id for job in ctx.background.jobs.values() if job.kind == "terminal")
    return ToolResult(
        ok=False,
        message=f"There is no session {session_id!r}.",
        text=f"Known here: {known or 'none'}. Sessions end with the process that started them.",
        code="unknown_session",
    )


def _result(
    terminal: Terminal, seen: Seen, pattern: Pattern | None, *, begun: bool = False
) -> ToolResult:
    text, cut = seen.text, 0
    if len(text) > LIMIT:
        at = text.find("\n", len(text) - LIMIT) + 1 or len(text) - LIMIT
        cut, text = at, text[at:]
    truncated = None
    if cut or seen.missing:
        parts = [f"{seen.missing:,} lines"] if seen.missing else []
        parts += [f"{cut:,} characters"] if cut else []
        truncated = f"{' and '.join(parts)} before it went by and are not shown"
        text = f"[… {truncated}]\n{text}"
    message = f"Started {terminal.id}. " if begun and terminal.running else ""
    message += _state(terminal)
    if seen.kind == "screen":
        message += f" The screen, cursor in row {seen.cursor[0]}, column {seen.cursor[1]}:"
    elif not text.strip():
        message += " No new output."
    if pattern is not None and seen.why != "found":
        message += " The pattern did not come."
    if not terminal.running:
        terminal.told = True
    return ToolResult(
        ok=True,
        message=message,
        text=text,
        view=View(
            title=f"{terminal.id} · {one_line(terminal.command, _COMMAND)}",
            body=text,
            kind="output",
        ),
        data={**_facts(terminal), "waited_for": seen.why, "shown": seen.kind},
        truncated=truncated,
    )


def _state(terminal: Terminal) -> str:
    if terminal.running:
        return f"{terminal.id} is running."
    result = terminal.result
    if terminal.stopped:
        how = "was ended"
    elif result is None:
        how = f"failed: {terminal.error}"
    elif result.signal is not None:
        how = f"was killed by {result.signal}"
    else:
        how = f"has ended with exit code {result.exit_code}"
    return f"{terminal.id} {how} after {terminal.age:.1f} s."


def _facts(terminal: Terminal) -> dict[str, object]:
    result = terminal.result
    return {
        "session_id": terminal.id,
        "state": terminal.state,
        "exit_code": None if result is None else result.exit_code,
        "rows": terminal.screen.rows,
        "cols": terminal.screen.columns,
    }
