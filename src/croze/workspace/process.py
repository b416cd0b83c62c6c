"""Running programs: the only module that starts any, and the one that sees to it that all of them end."""

import asyncio
import fcntl
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from croze.types.errors import CrozeError
from croze.workspace.capture import Capture
from croze.workspace.descendants import MARK, Tree, adopt_orphans

GRACE = 2.0
"""Seconds between TERM and KILL."""

CANCEL_GRACE = 0.5
"""Seconds between TERM and KILL where the user has cancelled and waits for the prompt."""

_CHUNK = 256 << 10
_PIPE_SIZE = 1 << 20
_PROMPT_READS = 32
_GATHER = 0.002

_ALLOWED = frozenset(
    [
        "PATH",
        "HOME",
        "LANG",
        "LANGUAGE",
        "TERM",
        "COLORTERM",
        "NO_COLOR",
        "USER",
        "LOGNAME",
        "SHELL",
        "TMPDIR",
        "TZ",
        "CI",
        "EDITOR",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "CONDA_DEFAULT_ENV",
        "PYTHONPATH",
        "PYENV_ROOT",
        "UV_CACHE_DIR",
        "NVM_DIR",
        "NODE_PATH",
        "JAVA_HOME",
        "GOPATH",
        "GOROOT",
        "GOFLAGS",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "RUSTFLAGS",
        "CC",
        "CXX",
        "CFLAGS",
        "CXXFLAGS",
        "LDFLAGS",
        "PKG_CONFIG_PATH",
        "LD_LIBRARY_PATH",
        "MAKEFLAGS",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "NODE_EXTRA_CA_CERTS",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
    ]
)
_ALLOWED_UNLESS_SECRET = frozenset(
    [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
        "PIP_INDEX_URL",
        "UV_INDEX_URL",
        "UV_DEFAULT_INDEX",
        "NPM_CONFIG_REGISTRY",
        "GOPROXY",
    ]
)
_FIXED = {
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "DEBIAN_FRONTEND": "noninteractive",
}


class ProcessError(CrozeError):
    """A program that could not be started: the program, the folder or an argument is at fault."""

    code = "not_started"


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a program ended. `signal` names what killed it, then `exit_code` is None.

    Standard output and error stand in the order in which they came, in `head` and `tail`; `omitted`
    counts the bytes between them and `total` all. `ended` tells whether it ended itself, ran out of
    time, or was ended by its output's reader. `left` counts processes that it left behind and that
    were ended. `spill` is a file with all output (up to a cap), where some was omitted.
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


def child_environment(base: Mapping[str, str]) -> dict[str, str]:
    """What of `base` a program may see: no keys, no tokens; and no pagers or prompts."""
    kept = {
        name: value
        for name, value in base.items()
        if name in _ALLOWED
        or name.startswith("LC_")
        or (name in _ALLOWED_UNLESS_SECRET and "@" not in value)
    }
    return {**kept, **_FIXED}


async def run(
    argv: Sequence[str],
    *,
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    timeout: float,
    output_limit: int = 40_000,
    on_output: Callable[[bytes], bool] | None = None,
    spill: Path | None = None,
) -> ProcessResult:
    """Run a program in a session of its own, without standard input, until it and all that it started
    have ended.

    `env` is used as given (see `child_environment`). `timeout` is in seconds. Of the output
    `output_limit` bytes are kept, two fifths from its start; `spill` is a folder for the whole of a
    longer one. `on_output` gets each piece as it comes and returns whether to go on. Cancelling ends
    the program's tree. Raises `ProcessError` where it can't be started.
    """
    started = time.monotonic()
    tree, capture = Tree(secrets.token_hex(8)), Capture(output_limit, spill=spill)
    with _pipe() as (reader, writer):
        try:
            program = _start(argv, cwd=cwd, env={**env, MARK: tree.token}, output=writer)
        finally:
            os.close(writer)
        tree.leader = program.pid
        with capture:
            ended = await _until_ended(program, tree, reader, capture, on_output, timeout)
    code = -signal.SIGKILL if program.returncode is None else program.returncode
    return ProcessResult(
        exit_code=code if code >= 0 else None,
        signal=_signal_name(-code) if code < 0 else None,
        head=capture.head_text,
        tail=capture.tail_text,
        total=capture.total,
        omitted=capture.omitted,
        ended=ended,
        left=tree.left,
        spill=capture.path,
        seconds=time.monotonic() - started,
    )


async def _until_ended(
    program: "subprocess.Popen[bytes]",
    tree: Tree,
    reader: int,
    capture: Capture,
    on_output: Callable[[bytes], bool] | None,
    timeout: float,
) -> Literal["itself", "timeout", "reader"]:
    loop = asyncio.get_running_loop()
    end: asyncio.Future[Literal["itself", "timeout", "reader"]] = loop.create_future()

    def settle(reason: Literal["itself", "timeout", "reader"]) -> None:
        if not end.done():
            end.set_result(reason)

    reads = 0
    timers: dict[str, asyncio.TimerHandle] = {}

    def listen() -> None:
        loop.add_reader(reader, readable)

    def readable() -> None:
        nonlocal on_output, reads
        chunk = _read(reader)
        if chunk == b"":
            loop.remove_reader(reader)
        elif chunk:
            capture.feed(chunk)
            if on_output is not None and not on_output(chunk):
                on_output = None
                settle("reader")
            reads += 1
            if reads > _PROMPT_READS and len(chunk) < _CHUNK // 4:
                # Many small pieces: each wake-up costs more than what it brings, so let some gather.
                loop.remove_reader(reader)
                timers["gather"] = loop.call_later(_GATHER, listen)

    timers["limit"] = loop.call_later(timeout, settle, "timeout")
    listen()
    try:
        with _noticed(program, loop, settle):
            reason = await end
        await _end_tree(program, tree, grace=GRACE)
    except asyncio.CancelledError:
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
    for _ in range(_PIPE_SIZE // 4096):
        chunk = _read(reader)
        if not chunk:
            break
        capture.feed(chunk)
        if on_output is not None and not on_output(chunk):
            break
    return reason


@contextmanager
def _noticed(
    program: "subprocess.Popen[bytes]",
    loop: asyncio.AbstractEventLoop,
    settle: Callable[[Literal["itself"]], None],
) -> Iterator[None]:
    """Settle when the program has exited: by its pidfd, or by asking again and again without one."""
    try:
        descriptor = os.pidfd_open(program.pid)
    except (AttributeError, OSError):
        timer: asyncio.Handle | None = None

        def ask() -> None:
            nonlocal timer
            if program.poll() is not None:
                settle("itself")
            else:
                timer = loop.call_later(0.02, ask)

        ask()
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
        return
    loop.add_reader(descriptor, settle, "itself")
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def _end_tree(program: "subprocess.Popen[bytes]", tree: Tree, *, grace: float) -> None:
    """End what is still running: TERM, then after `grace` seconds KILL, until nothing is left."""
    running = program.poll() is None
    if not running and tree.childless():
        return
    deadline = time.monotonic() + grace
    pause = 0.001
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


def _start(
    argv: Sequence[str], *, cwd: str | os.PathLike[str], env: Mapping[str, str], output: int
) -> "subprocess.Popen[bytes]":
    adopt_orphans()
    try:
        return subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
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


@contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    """A pipe with a non-blocking reading end; the writing end is the caller's to close."""
    reader, writer = os.pipe()
    try:
        os.set_blocking(reader, False)
        with suppress(OSError, AttributeError):
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
        yield reader, writer
    finally:
        os.close(reader)


def _read(reader: int) -> bytes | None:
    """What there is to read, b"" at the end, None where nothing has come."""
    try:
        return os.read(reader, _CHUNK)
    except BlockingIOError:
        return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
