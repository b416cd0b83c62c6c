"""Running a command in the workspace's root, until it and all that it started have ended."""

import asyncio
import codecs
import os
import re
import signal
import time
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec import Meta

from croze.text.redact import begun_anew, ended_early
from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.builtin.failures import failed
from croze.tools.digest import left_out
from croze.types.errors import CrozeError
from croze.types.event import Notice
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolExample, ToolResult, View
from croze.workspace.background import Command
from croze.workspace.process import ProcessResult, child_environment, run
from croze.workspace.sandbox import News, explain, lacks_network
from croze.workspace.task import way_in
from croze.workspace.workspace import Workspace
from croze.workspace.wrapper import Wrapper

OUTPUT_LIMIT = 7_500
"""Bytes of output that the model gets: head and tail."""

MOST_OUTPUT = 512 << 20
"""Bytes after which a command is ended."""

MOST_KEPT = 8 << 20
"""Bytes of a longer output that can be read again."""

HEAD = 3
TAIL = 20
MAX_ERRORS = 10
MAX_LINE = 240
"""Lines of a digest (the last ones, those that tell of errors above them) and their characters."""

_ERROR = re.compile(
    r"\b(?:error|errors|failed|failure|fatal|panic|exception|traceback|undefined|not found|denied|"
    r"cannot|can't)\b|\w(?:Error|Exception)\b|^(?:E  |FAIL|not ok)",
    re.IGNORECASE,
)
_FREELY = 1 << 20
_PAUSE = 0.2
_PIECE = 4_096
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])")
_BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*)?\Z")
_LONGEST = 256
_OVERWRITTEN = re.compile(r"[^\n]*\r(?!\n)")


class ExecuteCommand(Tool, frozen=True):
    """Run a shell command in the workspace's root; each call starts anew there, without a terminal or
    input. Long output is cut in the middle. What the command leaves running is ended: servers and
    watchers need background. Prefer the file tools for reading, searching and editing."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="execute_command",
        summary="run a shell command",
        access=Access(exec=True),
        core=True,
        examples=(
            ToolExample("Run one test", {"command": "python -m pytest -q tests/test_app.py"}),
        ),
    )

    command: Annotated[str, Meta(min_length=1)]
    requires_approval: Annotated[bool, Meta(description="true asks the user first")] = False
    timeout: Annotated[int, Meta(ge=1, le=3600, description="seconds, default 120")] = 120
    background: Annotated[
        bool, Meta(description="true returns at once, without a time limit; see background_task")
    ] = False

    async def run(self, ctx: ToolContext) -> ToolResult:
        if self.background:
            return await self._start(ctx)
        workspace = ctx.workspace
        live = _Live(ctx)
        try:
            sandbox = await sandbox_for(ctx)
            ended = await run(
                shell(self.command),
                cwd=workspace.root,
                env=child_environment(ctx.env),
                timeout=self.timeout,
                output_limit=OUTPUT_LIMIT,
                on_output=live.feed,
                spill=spill_folder(ctx, sandbox),
                sandbox=way_in(workspace, sandbox),
            )
        except CrozeError as error:
            return failed(error)
        confinement = workspace.confinement
        if sandbox and confinement and lacks_network(sandbox.policy, _failure(ended)):
            await _tell(ctx, confinement.missed_network())
        whole = "" if ended.spill is None else await asyncio.to_thread(_whole, ended.spill)
        return self._result(ended, workspace, sandbox, whole)

    async def _start(self, ctx: ToolContext) -> ToolResult:
        """Start it beside the conversation."""
        workspace = ctx.workspace
        try:
            sandbox = await sandbox_for(ctx)
            job = Command(self.command, spill_folder(ctx, sandbox))
            job.call_id = ctx.call.id
            env = child_environment(ctx.env)
            await ctx.background.start(
                job,
                shell(self.command),
                cwd=workspace.root,
                env=env,
                sandbox=way_in(workspace, sandbox),
            )
        except CrozeError as error:
            return failed(error)
        await ctx.emit(job.event("running"))
        notes = [f"background_task with action monitor and task_id {job.id} shows its output."]
        if sandbox is not None and not sandbox.policy.network:
            notes.append(
                "It has a sandbox of its own, whose network other commands can't reach: what talks to it "
                "has to be started by the same command."
            )
        notes.append("You are told when it ends.")
        return ToolResult(
            ok=True,
            message=f"Started in the background as {job.id}.",
            text=" ".join(notes),
            view=View(title=f"$ {self.command} &", body=f"{job.id}", kind="output"),
            data={"task_id": job.id, "output_file": _told(workspace, job.path)},
        )

    def preview(self, ctx: ToolContext) -> View:
        title = "Run a command in the background" if self.background else "Run a command"
        return View(title=title, body=self.command, kind="output")

    def _result(
        self, ended: ProcessResult, workspace: Workspace, sandbox: Wrapper | None, whole: str
    ) -> ToolResult:
        message, code = self._outcome(ended)
        if ended.left:
            processes = "1 process" if ended.left == 1 else f"{ended.left} processes"
            message += (
                f" {processes} that it left running {'was' if ended.left == 1 else 'were'} ended."
            )
        if sandbox is not None:
            message = " ".join((message, *explain(sandbox.policy, _failure(ended)), *ended.notes))
        head, tail = ended.head, ended.tail
        truncated = None
        if ended.omitted:
            # At whole lines: half of a secret looks like none.
            head, tail = ended_early(head), begun_anew(tail)
            omitted = ended.omitted + len(f"{ended.head}{ended.tail}") - len(head + tail)
            truncated = f"{omitted:,} of {ended.total:,} bytes of output left out"
            if kept := _told(workspace, ended.spill):
                truncated += f"; until this session ends all is in {kept}, for sed and grep"
            text = f"{readable(head).rstrip()}\n[… {truncated}]\n{readable(tail)}"
        else:
            text = readable(head)
        return ToolResult(
            ok=code is None,
            message=message,
            text=text.rstrip(),
            view=View(title=f"$ {self.command}", body=text, kind="output"),
            data={
                "exit_code": ended.exit_code,
                "signal": ended.signal,
                "seconds": round(ended.seconds, 3),
                "bytes": ended.total,
                "output_file": _told(workspace, ended.spill),
            },
            code=code,
            truncated=truncated,
            whole=whole,
        )

    def _outcome(self, ended: ProcessResult) -> tuple[str, str | None]:
        """One line on how it ended, and the error's code."""
        if ended.ended == "timeout":
            hint = "Give a higher timeout if it needs longer."
            return f"Ended at its time limit of {self.timeout} s. {hint}", "timeout"
        if ended.ended == "reader":
            return f"Ended after {ended.total >> 20} MB of output.", "too_much_output"
        took = f" ({ended.seconds:.1f} s)" if ended.seconds >= 1 else ""
        if ended.signal is not None:
            return f"Killed by {ended.signal}{took}.", "exit_status"
        nothing = ", no output" if not ended.total else ""
        killed = _killed(ended.exit_code)
        message = f"Exit code {ended.exit_code}{killed}{nothing}{took}."
        return message, "exit_status" if ended.exit_code else None

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        lines = result.text.split("\n") if result.text else []
        at = max(0, len(lines) - (TAIL if not result.ok else TAIL // 2))
        head = lines[: min(HEAD, at)] if result.ok else _errors(lines[:at])
        gap = [left_out(at - len(head), "line")] if at > len(head) else []
        shown = (line[:MAX_LINE] for line in (*head, *gap, *lines[at:]))
        return "\n".join(filter(None, [result.message, *shown]))


async def sandbox_for(ctx: ToolContext) -> Wrapper | None:
    """The sandbox for a command of this call. That there is none, or only the weaker one, is said once."""
    confinement = ctx.workspace.confinement
    if confinement is None:
        return None
    sandbox = await confinement.wrapper()
    await _tell(ctx, confinement.news())
    return sandbox


async def _tell(ctx: ToolContext, news: News | None) -> None:
    if news is not None:
        await ctx.emit(
            Notice(level="warning", code=news.code, text=news.text, params=dict(news.params))
        )


def spill_folder(ctx: ToolContext, sandbox: Wrapper | None) -> Path:
    """Where long output is kept whole: the next command must be able to read it."""
    folder = Path(ctx.env.get("TMPDIR") or "/tmp")  # noqa: S108
    if ctx.workspace.confinement is None:
        return folder
    return ctx.workspace.confinement.outputs(folder)


def _told(workspace: Workspace, kept: Path | None) -> str | None:
    """The file of a long output; in a task workspace no such path is told: read_result gives it."""
    return None if kept is None or workspace.kind == "task" else str(kept)


def _failure(ended: ProcessResult) -> str:
    """The output of a command that has failed; nothing where it has not."""
    failed_so = ended.exit_code != 0 or ended.ended != "itself"
    return ended.head + ended.tail if failed_so else ""


def _whole(spill: Path) -> str:
    """All of a long output, up to a cap, as it is read again later."""
    try:
        with spill.open("rb") as stream:
            data = stream.read(MOST_KEPT + 1)
    except OSError:
        return ""
    text = data[:MOST_KEPT].decode("utf-8", "replace").replace("\0", "�")
    if len(data) > MOST_KEPT:
        text = f"{ended_early(text)}[… the output goes on, but no more of it is kept …]\n"
    return readable(text)


def _killed(code: int | None) -> str:
    """What kills a program in a shell is told by the exit code alone."""
    try:
        return f" (as after {signal.Signals(code - 128).name})" if code and code > 128 else ""
    except ValueError:
        return ""


def shell(command: str) -> list[str]:
    """bash where it is, else sh; never a login shell, which would read the user's profile."""
    return ["/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh", "-c", command]


def _errors(lines: list[str]) -> list[str]:
    """The first lines that look as if they told of an error."""
    return [line for line in lines if _ERROR.search(line[: 4 * MAX_LINE])][:MAX_ERRORS]


class _Live:
    """Passes output on as it comes: all of the first megabyte, then a glimpse now and then."""

    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._passed = 0
        self._seen = 0
        self._next = 0.0

    def feed(self, chunk: bytes) -> bool:
        self._seen += len(chunk)
        if self._passed >= _FREELY:
            if time.monotonic() < self._next:
                return self._seen <= MOST_OUTPUT
            self._next = time.monotonic() + _PAUSE
            chunk = b"\n" + begun_anew(chunk[-_PIECE:].decode("utf-8", "replace")).encode()
            self._decoder.reset()
            self._rest = ""
        self._passed += len(chunk)
        text = self._rest + self._decoder.decode(chunk)
        begun = _BEGUN.search(text, max(0, len(text) - _LONGEST))
        end = begun.start() if begun else len(text)
        self._rest = text[end:]
        # Without escapes, as in the result: a colour must not hide where a secret begins.
        if shown := _ESCAPE.sub("", text[:end]):
            self._ctx.output(shown)
        return self._seen <= MOST_OUTPUT


def readable(output: str) -> str:
    """Output as a terminal would leave it: without escape sequences and overwritten progress lines."""
    if "\x1b" in output:
        output = _ESCAPE.sub("", output)
    if "\r" in output:
        output = _OVERWRITTEN.sub("", output.replace("\r\n", "\n"))
    return output
