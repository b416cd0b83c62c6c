"""background_task: looking after the commands that run beside the conversation."""

import time
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from croze.text.display import one_line
from croze.text.patterns import Pattern
from croze.text.redact import begun_anew, redact
from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.builtin.shell import OUTPUT_LIMIT, readable
from croze.types.tool import Access, ToolExample, ToolResult, View
from croze.workspace.background import Command, Job

_LAST = 120
_COMMAND = 80
_PAUSE = 0.05
_LEAST = 2


class BackgroundTasks(Tool, frozen=True):
    """Look after commands that execute_command started with background, and list terminals too.

    list: each with its state, age, exit code, bytes of output and last line. monitor: the output that is
    new since the last look, or what stands from offset on (bytes); with wait it waits so many seconds for
    the end, with until for a line that matches, too. kill: ends the task and all that it started.
    cleanup: forgets the tasks that have ended, and their output."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="background_task",
        summary="list, monitor, kill, clean up background commands",
        access=Access(read=True),
        examples=(
            ToolExample(
                "Wait until a server is ready",
                {"action": "monitor", "task_id": "bg1", "wait": 30, "until": "listening on .*\\d"},
            ),
        ),
        aliases={"id": "task_id", "timeout": "wait", "pattern": "until"},
    )

    action: Literal["list", "monitor", "kill", "cleanup"]
    task_id: Annotated[str, Meta(description="as execute_command gave it")] = ""
    offset: Annotated[int, Meta(ge=0, description="byte of the output to show from")] | None = None
    wait: Annotated[float, Meta(ge=0, le=3600, description="seconds, default 0")] = 0
    until: Annotated[str, Meta(description="regex for a line of the output to wait for")] = ""

    async def run(self, ctx: ToolContext) -> ToolResult:
        background = ctx.background
        if self.action == "list":
            paths = ctx.workspace.kind != "task"
            return _listed(list(background.jobs.values()), paths=paths)
        if self.action == "cleanup":
            ended = [job for job in background.jobs.values() if not job.running]
            for job in ended:
                background.forget(job)
            tasks = "1 ended task is" if len(ended) == 1 else f"{len(ended)} ended tasks are"
            return ToolResult(ok=True, message=f"{tasks} forgotten.")
        found = background.jobs.get(self.task_id.strip())
        if found is None:
            return _unknown(self.task_id, background.jobs)
        if self.action == "kill":
            return await _killed(found)
        if not isinstance(found, Command):
            return ToolResult(
                ok=False,
                message=f"{found.id} is a terminal.",
                text="session_interactive with no input shows what is on it.",
                code="wrong_tool",
            )
        try:
            pattern = Pattern(self.until) if self.until else None
        except ValueError as error:
            return ToolResult(
                ok=False, message=f"until can't be used: {error}.", code="invalid_arguments"
            )
        return await self._monitored(found, pattern)

    def preview(self, ctx: ToolContext) -> View:
        return View(title=f"{self.action} {self.task_id}".strip())

    async def _monitored(self, job: Command, pattern: Pattern | None) -> ToolResult:
        start = job.seen if self.offset is None else self.offset
        deadline = time.monotonic() + self.wait
        matched = False
        looked = -1
        while True:
            if pattern is not None and job.total != looked:
                looked = job.total
                at = max(start, job.total - OUTPUT_LIMIT * _LEAST)
                matched = pattern.found_in(_text(job.read(at, OUTPUT_LIMIT * _LEAST)[1]))
            left = deadline - time.monotonic()
            if matched or not job.running or left <= 0:
                break
            await job.next_change(left)
            if pattern is not None and job.running:
                await job.next_change(min(_PAUSE, left))  # a flood is not looked at piece by piece
        return self._shown(job, start, pattern, matched)

    def _shown(
        self, job: Command, start: int, pattern: Pattern | None, matched: bool
    ) -> ToolResult:
        paging = self.offset is not None
        # What is new is shown from its end back, what is paged from its beginning on.
        first = start if paging else max(start, job.total - OUTPUT_LIMIT)
        at, data = job.read(first, OUTPUT_LIMIT)
        whole = not job.running and at + len(data) >= job.total
        if not whole:
            end = data.rfind(b"\n") + 1  # half of a secret looks like none
            data = data[:end] if end or len(data) < OUTPUT_LIMIT else data
        text = data.decode("utf-8", "replace")
        if at > start:
            text = begun_anew(text)
        elif at > 0:
            text = begun_anew(f"\n{text}")
        end = at + len(data)
        if not paging:
            job.seen = end
        left_out = at - start
        notes = []
        if left_out > 0:
            notes.append(f"{left_out:,} bytes before it are not shown: offset {start} begins there")
        if end < job.total and (paging or not job.running):
            notes.append(f"go on with offset {end}")
        truncated = "; ".join(notes) or None
        shown = readable(text).rstrip("\n")
        head = f"[… {notes[0]}]\n" if left_out > 0 else ""
        message = f"{_state(job)} {_bytes(len(data))} of output"
        message += (
            f" from byte {at:,} of {job.total:,}."
            if paging
            else ", new."
            if data
            else ", none new."
        )
        if pattern is not None:
            message += " The pattern was found." if matched else " The pattern was not found."
        if end < job.total and paging:
            message += f" Go on with offset {end}."
        if not job.running:
            job.told = True
        return ToolResult(
            ok=True,
            message=message,
            text=head + shown,
            view=View(
                title=f"{job.id} · {one_line(job.command, _COMMAND)}", body=shown, kind="output"
            ),
            data={**_facts(job), "offset": at, "next_offset": end, "matched": matched},
            truncated=truncated,
        )


def _text(data: bytes) -> str:
    return readable(data.decode("utf-8", "replace"))


def _listed(jobs: list[Job], *, paths: bool) -> ToolResult:
    if not jobs:
        return ToolResult(ok=True, message="There are no background tasks.")
    lines = []
    for job in jobs:
        last = one_line(redact(readable(job.last_line()))[0], _LAST)
        lines.append(f"{_state(job)} {_bytes(job.total)}: {one_line(job.command, _COMMAND)}")
        if last:
            lines.append(f"  {last}")
        kept = job.path if isinstance(job, Command) and paths else None
        if kept is not None and job.total > OUTPUT_LIMIT:
            lines.append(f"  all of it: {kept}")
    running = sum(job.running for job in jobs)
    return ToolResult(
        ok=True,
        message=f"{len(jobs)} background task{'s' * (len(jobs) != 1)}, {running} running.",
        text="\n".join(lines),
        view=View(title=f"{len(jobs)} background tasks", body="\n".join(lines), kind="list"),
        data=[_facts(job) for job in jobs],
    )


async def _killed(job: Job) -> ToolResult:
    if not job.running:
        return ToolResult(ok=True, message=f"{_state(job)} There was nothing to end.")
    await job.stop("killed")
    return ToolResult(
        ok=True,
        message=f"{job.id} is ended, with all that it started, after {job.age:.1f} s.",
        data=_facts(job),
    )


def _unknown(task_id: str, jobs: dict[str, Job]) -> ToolResult:
    known = ", ".join(jobs) or "none"
    return ToolResult(
        ok=False,
        message=f"There is no background task {task_id!r}." if task_id else "task_id is missing.",
        text=f"Known here: {known}. Tasks end with the process that started them.",
        code="unknown_task",
    )


def _state(job: Job) -> str:
    if job.running:
        return f"{job.id} has been running for {job.age:.1f} s."
    result = job.result
    if job.stopped:
        how = "was ended"
    elif result is None:
        how = f"failed: {job.error}"
    elif result.ended == "reader":
        how = "was ended for too much output"
    elif result.signal is not None:
        how = f"was killed by {result.signal}"
    else:
        how = f"ended with exit code {result.exit_code}"
    return f"{job.id} {how} after {job.age:.1f} s."


def _facts(job: Job) -> dict[str, object]:
    result = job.result
    return {
        "task_id": job.id,
        "kind": job.kind,
        "state": job.state,
        "exit_code": None if result is None else result.exit_code,
        "signal": None if result is None else result.signal,
        "seconds": round(job.age, 3),
        "bytes": job.total,
    }


def _bytes(count: int) -> str:
    return "1 byte" if count == 1 else f"{count:,} bytes"
