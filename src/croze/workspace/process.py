"""Running programs: the only module that starts any, and the one that sees to it that all of them end."""

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec import Struct

from croze.types.errors import CrozeError
from croze.workspace import warden
from croze.workspace.capture import Capture
from croze.workspace.child_environment import child_environment as child_environment
from croze.workspace.descendants import MARK, Tree, adopt_orphans, noticed
from croze.workspace.output_pipe import CHUNK, PIPE_SIZE, output_pipe, read
from croze.workspace.wrapper import Entrance, Entry

GRACE = 2.0
"""Seconds between TERM and KILL."""

CANCEL_GRACE = 0.5
"""Seconds between TERM and KILL where the user has cancelled and waits for the prompt."""

_OWNER = secrets.token_hex(8)
_warden: "tuple[subprocess.Popen[bytes], int] | None" = None

_TRIES = 3
_PROMPT_READS = 32
_GATHER = 0.002


class ProcessError(CrozeError):
    """A program that could not be started: the program, the folder or an argument is at fault."""

    code = "not_started"


class ProcessResult(Struct, frozen=True):
    """How a program ended. `signal` names what killed it, then `exit_code` is None.

    Standard output and error stand in the order in which they came, in `head` and `tail`; `omitted`
    counts the bytes between them and `total` all. `ended` tells whether it ended itself, ran out of
    time, or was ended by its output's reader. `left` counts processes that it left behind and that
    were ended. `spill` is a file with all output (up to a cap), where some was omitted. `notes` is
    what a sandbox has to say.
    """

    exit_code: int | None
    signal: str | None
    head: str
    tail: str
    total: int
    omitted: int
    ended: Literal["itself", "timeout", "reader"]
    left: int
    spill: Path | None
    seconds: float
    notes: tuple[str, ...] = ()


class _NotSetUp(ProcessError):
    """The sandbox failed before the program was reached."""


async def run(
    argv: Sequence[str],
    *,
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    timeout: float,
    output_limit: int = 40_000,
    on_output: Callable[[bytes], bool] | None = None,
    spill: Path | None = None,
    sandbox: Entrance | None = None,
) -> ProcessResult:
    """Run a program in a session of its own, without standard input, until it and all that it started
    have ended.

    `env` is used as given (see `child_environment`). `timeout` is in seconds. Of the output
    `output_limit` bytes are kept, two fifths from its start; `spill` is a folder for the whole of a
    longer one. `on_output` gets each piece as it comes and returns whether to go on. Cancelling ends
    the program's tree. With a `sandbox` it runs in there, else with all of the user's rights; should
    this process be killed, its tree is ended all the same. Raises `ProcessError` where it can't be
    started.
    """
    capture = partial(Capture, output_limit, spill=spill)
    for _ in range(_TRIES - 1 if sandbox is not None else 0):
        # What it covers may go away while it is set up (another program's socket, say).
        with suppress(_NotSetUp):
            return await _run(argv, cwd, env, timeout, on_output, capture(), sandbox)
    return await _run(argv, cwd, env, timeout, on_output, capture(), sandbox)


async def _run(
    argv: Sequence[str],
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    timeout: float,
    on_output: Callable[[bytes], bool] | None,
    capture: Capture,
    sandbox: Entrance | None,
) -> ProcessResult:
    started = time.monotonic()
    tree = Tree(f"{_OWNER}-{secrets.token_hex(8)}")
    with _entry(argv, cwd, env, sandbox) as entry, output_pipe() as (reader, writer):
        try:
            program = _start(entry, mark=tree.token, output=writer)
        finally:
            os.close(writer)
        report = entry.report
        tree.leader, tree.namespace = program.pid, report is not None
        if report is not None:
            report.started()
        with _guarded(program.pid) if report is None else nullcontext(), capture:
            ended = await _until_ended(program, tree, reader, capture, on_output, timeout, entry)
        left, notes = tree.left, entry.notes()
        code = -signal.SIGKILL if program.returncode is None else program.returncode
        if report is not None and report.began():
            left = report.left()
            code = 128 - code if code > 128 and report.killed() else code
        elif report is not None and ended == "itself":
            raise _NotSetUp(
                f"The sandbox could not be set up: {capture.tail_text or capture.head_text}".strip(),
                hint="croze doctor tells what is wrong.",
            )
    return ProcessResult(
        exit_code=code if code >= 0 else None,
        signal=_signal_name(-code) if code < 0 else None,
        head=capture.head_text,
        tail=capture.tail_text,
        total=capture.total,
        omitted=capture.omitted,
        ended=ended,
        left=left,
        spill=capture.path,
        seconds=time.monotonic() - started,
        notes=notes,
    )


@contextmanager
def _entry(
    argv: Sequence[str],
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    sandbox: Entrance | None,
) -> Iterator[Entry]:
    if sandbox is None:
        yield Entry(argv=argv, cwd=cwd, env=env)
        return
    with ExitStack() as stack:
        try:
            entry = stack.enter_context(sandbox.enter(argv, cwd=cwd, env=env))
        except OSError as error:
            raise ProcessError(f"The sandbox could not be set up: {error}.") from error
        yield entry


async def _until_ended(
    program: "subprocess.Popen[bytes]",
    tree: Tree,
    reader: int,
    capture: Capture,
    on_output: Callable[[bytes], bool] | None,
    timeout: float,
    entry: Entry,
) -> Literal["itself", "timeout", "reader"]:
    loop = asyncio.get_running_loop()
    end: asyncio.Future[Literal["itself", "timeout", "reader"]] = loop.create_future()

    def settle(reason: Literal["itself", "timeout", "reader"]) -> None:
        if not end.done():
            end.set_result(reason)

    def reached() -> bool:
        """What comes before is the sandbox's own: nobody else's business where it is tried again."""
        return entry.report is None or entry.report.began()

    def take(chunk: bytes) -> bool:
        """Keep a piece and hand it on; whether its reader wants more."""
        if chunk:
            capture.feed(chunk)
        return not chunk or on_output is None or not reached() or on_output(chunk)

    sieve = entry.sieve
    reads = 0
    timers: dict[str, asyncio.TimerHandle] = {}

    def listen() -> None:
        loop.add_reader(reader, readable)

    def readable() -> None:
        nonlocal on_output, reads
        chunk = read(reader)
        if chunk == b"":
            loop.remove_reader(reader)
        elif chunk:
            if not take(chunk if sieve is None else sieve.feed(chunk)):
                on_output = None
                settle("reader")
            reads += 1
            if reads > _PROMPT_READS and len(chunk) < CHUNK // 4:
                # Many small pieces: each wake-up costs more than what it brings, so let some gather.
                loop.remove_reader(reader)
                timers["gather"] = loop.call_later(_GATHER, listen)

    timers["limit"] = loop.call_later(timeout, settle, "timeout")
    listen()
    try:
        with noticed(program.pid, program.poll, loop, lambda: settle("itself")):
            reason = await end
        tree.know(entry.report.first() if entry.report else None)
        await _end_tree(program, tree, grace=GRACE)
    except asyncio.CancelledError:
        tree.know(entry.report.first() if entry.report else None)
        try:
            await _end_tree(program, tree, grace=CANCEL_GRACE)
        finally:
            _end_tree_now(program, tree)
        raise
    except BaseException:
        _end_tree_now(program, tree)
        raise
    finally:
        for timer in timers.values():
            timer.cancel()
        loop.remove_reader(reader)
    # Bounded, because something that escaped the tree may still be writing.
    for _ in range(PIPE_SIZE // 4096):
        chunk = read(reader)
        if not chunk:
            break
        if not take(chunk if sieve is None else sieve.feed(chunk)):
            break
    if sieve is not None:
        take(sieve.finish())
    return reason


async def _end_tree(program: "subprocess.Popen[bytes]", tree: Tree, *, grace: float) -> None:
    """End what is still running: TERM, then after `grace` seconds KILL, until nothing is left."""
    running = program.poll() is None
    if not running and tree.childless():
        return
    deadline = time.monotonic() + grace
    pause = 0.001
    while not running and tree.first and time.monotonic() < deadline:
        if tree.dissolved():
            return
        await asyncio.sleep(pause)
    if tree.signal(signal.SIGTERM, leader=running):
        while program.poll() is None or tree.reap():
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.02)
    _end_tree_now(program, tree)


def _end_tree_now(program: "subprocess.Popen[bytes]", tree: Tree) -> None:
    """KILL until nothing is left. Blocks for at most a second: only a process that the kernel itself
    holds (a dead network disk) can outlive that."""
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        running = program.poll() is None
        if not tree.signal(signal.SIGKILL, leader=running) and not running:
            return
        time.sleep(0.001)
        tree.reap()


def _start(entry: Entry, *, mark: str, output: int) -> "subprocess.Popen[bytes]":
    adopt_orphans()
    argv, cwd = list(entry.argv), entry.cwd

    def start() -> "subprocess.Popen[bytes]":
        if entry.restrict is not None:
            entry.restrict()
        return subprocess.Popen(
            argv,
            cwd=cwd,
            env={**entry.env, MARK: mark},
            stdin=subprocess.DEVNULL if entry.stdin is None else entry.stdin,
            stdout=output,
            stderr=output if entry.stderr is None else entry.stderr,
            pass_fds=entry.descriptors,
            start_new_session=True,
        )

    try:
        return start() if entry.restrict is None else _in_a_thread(start)
    except ValueError as error:
        raise ProcessError(f"The command can't be run: {error}.") from error
    except OSError as error:
        if error.filename is not None and os.fspath(cwd) == os.fspath(error.filename):
            message, hint = f"The folder {error.filename} does not exist.", ""
        elif error.errno == 7:
            message = "The command is too long for the system."
            hint = "Write it into a script file, then run that."
        else:
            message, hint = f"{argv[0]} could not be started: {error.strerror}.", ""
        raise ProcessError(message, hint=hint) from error


def _in_a_thread(start: "Callable[[], subprocess.Popen[bytes]]") -> "subprocess.Popen[bytes]":
    """Call it in a thread of its own, which takes restrictions upon itself and hands them on."""
    outcome: list[subprocess.Popen[bytes] | BaseException] = []

    def work() -> None:
        try:
            outcome.append(start())
        except BaseException as error:  # noqa: BLE001 - raised again where it belongs
            outcome.append(error)

    thread = threading.Thread(target=work, name="start restricted")
    thread.start()
    thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


@contextmanager
def _guarded(leader: int) -> Iterator[None]:
    """While this run lasts the warden knows of it."""
    _tell_warden(b"+%d\n" % leader)
    try:
        yield
    finally:
        _tell_warden(b"-%d\n" % leader)


def _tell_warden(line: bytes) -> None:
    """Write to the warden, which is started when there is something to tell. Without one only a kill of
    this process would leave something running, so no run fails for it."""
    global _warden
    with suppress(OSError):
        if _warden is None:
            _warden = _start_warden()
        os.write(_warden[1], line)


def _start_warden() -> "tuple[subprocess.Popen[bytes], int]":
    reader, writer = os.pipe()
    try:
        program = subprocess.Popen(
            [sys.executable, "-I", "-S", warden.__file__, str(reader), f"{MARK}={_OWNER}-"],
            cwd="/",
            env={"LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(reader,),
            start_new_session=True,
        )
    except OSError:
        os.close(writer)
        raise
    finally:
        os.close(reader)
    os.set_blocking(writer, False)
    return program, writer


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
