"""Programs that run beside the conversation: each by the runner's rules, all of them owned by one session."""

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from croze.types.background import BackgroundState, BackgroundTask
from croze.types.errors import CrozeError
from croze.workspace.process import ProcessResult, run
from croze.workspace.wrapper import Entrance

MOST_RUNNING = 16
"""Programs that a session may have running beside its conversation."""

MOST_KEPT = 64
"""Ended ones whose output is kept; the oldest go first."""

MOST_OUTPUT = 512 << 20
"""Bytes of output after which a program is ended."""

FILE_CAP = 64 << 20
"""Bytes of output that are kept in a file; behind them only the newest are kept."""

TAIL = 64 << 10
_FOR_EVER = 10 * 365 * 86_400.0


class TooManyTasks(CrozeError):
    """No more programs may run beside the conversation."""

    code = "too_many_tasks"


class Job:
    """One program beside the conversation. `feed` takes its output; `changed` is told of each change."""

    kind: Literal["command", "terminal"] = "command"

    def __init__(self, command: str) -> None:
        self.id = ""
        self.command = command
        self.call_id = ""
        self.begun = time.monotonic()
        self.seconds: float | None = None
        self.result: ProcessResult | None = None
        self.error = ""
        self.stopped: Literal["", "killed", "closed"] = ""
        self.told = False
        self.total = 0
        self._runner: asyncio.Task[None] | None = None
        self._changes = asyncio.Event()

    @property
    def running(self) -> bool:
        return self.seconds is None

    @property
    def state(self) -> BackgroundState:
        if self.running:
            return "running"
        return self.stopped or "ended"

    @property
    def age(self) -> float:
        """Seconds since it was started; how long it ran where it has ended."""
        return time.monotonic() - self.begun if self.seconds is None else self.seconds

    def feed(self, chunk: bytes) -> bool:
        """Take a piece of output; gives whether the program may go on."""
        self.total += len(chunk)
        self.changed()
        return self.total <= MOST_OUTPUT

    def last_line(self) -> str:
        """The last line of the output that isn't empty."""
        raise NotImplementedError

    def changed(self) -> None:
        """Wake whoever waits for news of this program."""
        self._changes.set()
        self._changes = asyncio.Event()

    async def next_change(self, timeout: float) -> None:
        """Wait until something has changed, `timeout` seconds at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, timeout)):
                await self._changes.wait()

    def ended(self) -> None:
        """The program and all that it started have gone."""

    def forget(self) -> None:
        """Nobody will ask for the output any more."""

    async def stop(self, why: Literal["killed", "closed"]) -> None:
        """End the program's tree: TERM, then KILL."""
        runner = self._runner
        if runner is None or not self.running:
            return
        self.stopped = why
        runner.cancel()
        await asyncio.wait([runner])

    def follow(self, running: Awaitable[ProcessResult], done: Callable[["Job"], None]) -> None:
        """Take in how the program ends."""

        async def work() -> None:
            try:
                self.result = await running
            except asyncio.CancelledError:
                self.stopped = self.stopped or "closed"  # the loop itself comes to its end
            except CrozeError as error:
                self.error = error.message
            except OSError as error:
                self.error = str(error)
            finally:
                self.ended()
                self.seconds = time.monotonic() - self.begun
                self.changed()
                done(self)

        self._runner = asyncio.create_task(work(), name=f"background {self.command[:40]}")

    def event(self, state: BackgroundState) -> BackgroundTask:
        """What the log says of it."""
        result = self.result
        return BackgroundTask(
            task_id=self.id,
            kind=self.kind,
            command=self.command[:2_000],
            state=state,
            call_id=self.call_id,
            exit_code=None if result is None else result.exit_code,
            signal=None if result is None else result.signal,
            error=self.error,
            seconds=None if self.seconds is None else round(self.seconds, 3),
            size=self.total,
            last="" if state == "running" else self.last_line()[:300],
            told=self.told,
        )


class Command(Job):
    """A command whose output is kept. `seen` is how far the agent has read."""

    def __init__(self, command: str, folder: Path) -> None:
        super().__init__(command)
        self.seen = 0
        self.path: Path | None = None
        self._file: int | None = None
        self._stored = 0
        self._tail = bytearray()
        self._open(folder)

    def feed(self, chunk: bytes) -> bool:
        if self._file is not None and self._stored == self.total:
            with contextlib.suppress(
                OSError
            ):  # a full disk: the newest output is kept all the same
                self._stored += os.write(self._file, chunk[: FILE_CAP - self._stored])
        self._tail += chunk
        if len(self._tail) > 2 * TAIL:
            del self._tail[:-TAIL]
        return super().feed(chunk)

    def read(self, start: int, limit: int) -> tuple[int, bytes]:
        """At most `limit` bytes from `start` on, or from the first that is kept behind it, and where
        they begin."""
        if start < self._stored and self._file is not None:
            return start, os.pread(self._file, min(limit, self._stored - start), start)
        start = max(start, self.total - len(self._tail))
        at = start - (self.total - len(self._tail))
        return start, bytes(self._tail[at : at + limit])

    def last_line(self) -> str:
        lines = bytes(self._tail[-4096:]).decode("utf-8", "replace").splitlines()
        return next((line for line in reversed(lines) if line.strip()), "")

    def forget(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if self.path is not None:
            self.path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                if self.path.parent.name.startswith("croze-"):
                    self.path.parent.rmdir()
            self.path = None

    def _open(self, folder: Path) -> None:
        path = folder / f"croze-task-{secrets.token_hex(8)}.txt"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, 0o700)
            self._file = os.open(path, flags, 0o600)
            self.path = path


class Background:
    """The programs of one session. `on_end` is told whenever one has ended; `take_ended` gives those
    whose end has not been recorded yet. `number` is that of the newest."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.number = 0
        self.on_end: Callable[[], None] = lambda: None
        self._ended: list[Job] = []
        self._closed = False

    @property
    def running(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.running]

    async def start(
        self,
        job: Job,
        argv: Sequence[str],
        *,
        cwd: str | os.PathLike[str],
        env: Mapping[str, str],
        sandbox: Entrance | None,
    ) -> None:
        """Start a program and return at once. Raises `TooManyTasks`, and `ProcessError` where it can't be
        started."""
        if self._closed or len(self.running) >= MOST_RUNNING:
            job.forget()
            raise TooManyTasks(
                f"{MOST_RUNNING} programs run in the background already.",
                hint="End one with background_task kill or session_stop.",
            )
        self.number += 1
        job.id = f"{'bg' if job.kind == 'command' else 'term'}{self.number}"
        running = run(
            argv,
            cwd=cwd,
            env=env,
            timeout=_FOR_EVER,
            output_limit=4_096,
            on_output=job.feed,
            sandbox=sandbox,
        )
        self.jobs[job.id] = job
        job.follow(running, self._done)
        await asyncio.sleep(0)  # the first step of it starts the program
        if not job.running and job.error:
            self._ended.remove(job)
            self.forget(job)
            raise _NotStarted(job.error)
        self._make_room()

    def forget(self, job: Job) -> None:
        """Forget an ended program and its output."""
        job.forget()
        self.jobs.pop(job.id, None)

    def know(self, task_id: str) -> None:
        """An id that the conversation has used: it isn't given again."""
        number = task_id.lstrip("abcdefghijklmnopqrstuvwxyz")
        self.number = max(self.number, int(number) if number.isdigit() else 0)

    def take_ended(self) -> list[BackgroundTask]:
        """The ends that have not been recorded yet."""
        ended, self._ended = self._ended, []
        return [job.event(job.state) for job in ended]

    @property
    def unrecorded(self) -> bool:
        return bool(self._ended)

    async def close(self) -> None:
        """End all that is running, and take the files away."""
        self._closed = True
        await asyncio.gather(*(job.stop("closed") for job in self.running))
        for job in self.jobs.values():
            job.forget()

    def _done(self, job: Job) -> None:
        self._ended.append(job)
        self.on_end()

    def _make_room(self) -> None:
        ended = [job for job in self.jobs.values() if not job.running]
        for job in ended[: max(0, len(ended) - MOST_KEPT)]:
            self.forget(job)


class _NotStarted(CrozeError):
    code = "not_started"
