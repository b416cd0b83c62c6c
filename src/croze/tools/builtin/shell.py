"""Running a command in the workspace's root, until it and all that it started have ended."""

import codecs
import os
import re
import time
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec import Meta

from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.builtin.failures import failed
from croze.types.errors import CrozeError
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolExample, ToolResult, View
from croze.workspace.process import ProcessResult, child_environment, run
from croze.workspace.workspace import Workspace

OUTPUT_LIMIT = 7_500
"""Bytes of output that the model gets: head and tail."""

MOST_OUTPUT = 512 << 20
"""Bytes after which a command is ended."""

_FREELY = 1 << 20
_PAUSE = 0.2
_PIECE = 4_096
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])")
_OVERWRITTEN = re.compile(r"[^\n]*\r(?!\n)")


class ExecuteCommand(Tool, frozen=True):
    """Run a shell command in the workspace's root; each call starts anew there, without a terminal or
    input. Long output is cut in the middle. What the command leaves running is ended. Prefer the file
    tools for reading, searching and editing."""

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

    async def run(self, ctx: ToolContext) -> ToolResult:
        workspace = ctx.workspace
        is_project = workspace.kind == "project"
        live = _Live(ctx)
        try:
            if not is_project:
                workspace.root.mkdir(parents=True, exist_ok=True)
            ended = await run(
                shell(self.command),
                cwd=workspace.root,
                env=child_environment(ctx.env),
                timeout=self.timeout,
                output_limit=OUTPUT_LIMIT,
                on_output=live.feed,
                spill=Path(ctx.env.get("TMPDIR") or "/tmp") if is_project else None,  # noqa: S108
            )
        except CrozeError as error:
            return failed(error)
        return self._result(ended, workspace)

    def preview(self, ctx: ToolContext) -> View:
        return View(title="Run a command", body=self.command, kind="output")

    def _result(self, ended: ProcessResult, workspace: Workspace) -> ToolResult:
        message, code = self._outcome(ended)
        if ended.left:
            processes = "1 process" if ended.left == 1 else f"{ended.left} processes"
            message += (
                f" {processes} that it left running {'was' if ended.left == 1 else 'were'} ended."
            )
        text = _readable(ended.head)
        truncated = None
        if ended.omitted:
            truncated = f"{ended.omitted:,} of {ended.total:,} bytes of output left out"
            if ended.spill is not None:
                truncated += f"; it is whole in {ended.spill}: read parts by sed or grep"
            text = f"{text.rstrip()}\n[… {truncated}]\n{_readable(ended.tail)}"
        if workspace.kind == "task":
            text = text.replace(str(workspace.root), ".")
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
                "output_file": None if ended.spill is None else str(ended.spill),
            },
            code=code,
            truncated=truncated,
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
        message = f"Exit code {ended.exit_code}{nothing}{took}."
        return message, "exit_status" if ended.exit_code else None

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        lines = result.text.split("\n")
        last = lines[-20 if not result.ok else -8 :]
        gap = ["…"] if len(last) < len(lines) else []
        return "\n".join([result.message, *gap, *(line[:240] for line in last)]).strip()


def shell(command: str) -> list[str]:
    """bash where it is, else sh; never a login shell, which would read the user's profile."""
    return ["/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh", "-c", command]


class _Live:
    """Passes output on as it comes: all of the first megabyte, then a glimpse now and then."""

    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._passed = 0
        self._seen = 0
        self._next = 0.0

    def feed(self, chunk: bytes) -> bool:
        self._seen += len(chunk)
        if self._passed >= _FREELY:
            if time.monotonic() < self._next:
                return self._seen <= MOST_OUTPUT
            self._next = time.monotonic() + _PAUSE
            chunk = chunk[-_PIECE:]
            self._decoder.reset()
        self._passed += len(chunk)
        self._ctx.output(self._decoder.decode(chunk))
        return self._seen <= MOST_OUTPUT


def _readable(output: str) -> str:
    """Output as a terminal would leave it: without escape sequences and overwritten progress lines."""
    if "\x1b" in output:
        output = _ESCAPE.sub("", output)
    if "\r" in output:
        output = _OVERWRITTEN.sub("", output.replace("\r\n", "\n"))
    return output
