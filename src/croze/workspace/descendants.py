"""The processes that a program has started, found and signalled even where they left its group."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import NamedTuple

MARK = "CROZE_RUN"
"""The environment variable by which a run's processes are known after their parents have gone."""

PATIENCE = 0.25
"""Seconds that a process may take to become another program before it counts as not the run's."""

_PR_SET_CHILD_SUBREAPER = 36


class Tree:
    """The processes of one run: its leader (a session and group of its own) and all below it.

    Orphans become children of this process (see `adopt_orphans`) and are known as the run's by their
    group, their session or the mark in their environment. Other children of this process, which are
    not the run's, are never touched.

    With a `namespace` the leader only watches over a process namespace that dies with it: then what is
    asked to end is what runs in there, and the leader follows.
    """

    def __init__(self, token: str) -> None:
        self.token = token
        self.leader = 0
        self.namespace = False
        self.first = 0
        self.left = 0
        self._mine: set[int] = set()
        self._patience = PATIENCE

    def know(self, pid: int | None) -> None:
        """The first process of the run's namespace: the run's, whatever can be seen of it."""
        if pid is not None:
            self.first = pid
            self._mine.add(pid)

    def dissolved(self) -> bool:
        """End a namespace whose leader has ended, by its first process; True once all of it is gone."""
        try:
            os.kill(self.first, signal.SIGKILL)
            return os.waitpid(self.first, os.WNOHANG)[0] != 0
        except (ProcessLookupError, ChildProcessError, PermissionError):
            return True

    def childless(self) -> bool:
        """True where this process has no child at all, so nothing of the run can be left."""
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        except OSError:
            return False
        return False

    def signal(self, number: signal.Signals, *, leader: bool) -> int:
        """Send a signal to the whole tree; gives how many processes besides the leader got it."""
        members = self._members(leader=leader)
        if leader and not (self.namespace and number == signal.SIGTERM):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader, number)
        for pid in members:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
                if number == signal.SIGTERM:
                    # A stopped process takes the signal only when it goes on.
                    os.kill(pid, signal.SIGCONT)
        if not leader:
            self.left = max(self.left, len(members))
        return len(members) + leader

    def reap(self) -> bool:
        """Collect orphans that have ended; True while some of the tree is running."""
        return bool(self._members(leader=False))

    def _members(self, *, leader: bool) -> list[int]:
        """Running processes of the tree without its leader, from the top down; dead orphans of it
        are collected. Nothing is decided while a child can't be told apart: see `_is_marked`."""
        while True:
            found, unsure = self._look(leader=leader)
            if found or not unsure or self._patience <= 0:
                return found
            self._patience -= 0.001
            time.sleep(0.001)

    def _look(self, *, leader: bool) -> tuple[list[int], bool]:
        """The members that one look finds, and whether there may be others that it can't know yet."""
        children = _children(os.getpid())
        whose = {pid: self._is_mine(pid) for pid in children if pid != self.leader}
        unsure = None in whose.values() or not (children or self.childless())
        roots = [pid for pid, mine in whose.items() if mine]
        if leader:
            roots += _children(self.leader)
        found = []
        while roots:
            pid = roots.pop(0)
            if self._ended(pid):
                continue
            # Known from now on, also once its parent has gone and nothing else tells whose it was.
            self._mine.add(pid)
            found.append(pid)
            roots += _children(pid)
        return found, unsure

    def _is_mine(self, pid: int) -> bool | None:
        if pid in self._mine:
            return True
        status = _status(pid)
        if status is None:
            return False
        mine = self.leader in (status.group, status.session) or self._is_marked(pid, status)
        if mine:
            self._mine.add(pid)
        return mine

    def _is_marked(self, pid: int, status: "_Status") -> bool | None:
        """None while the process is becoming another program: the kernel then shows no environment,
        and after `setsid` nothing else tells whose it is."""
        environment = _environment(pid)
        if environment:
            return f"{MARK}={self.token}".encode() in environment.split(b"\0")
        return False if environment is None or status.state in "ZX" or status.bare else None

    def _ended(self, pid: int) -> bool:
        status = _status(pid)
        if status is not None and status.state not in "ZX":
            return False
        if pid in self._mine:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        return True


@contextmanager
def noticed(
    pid: int,
    poll: Callable[[], int | None],
    loop: asyncio.AbstractEventLoop,
    settle: Callable[[], object],
) -> Iterator[None]:
    """Settle when a child has exited: by its pidfd, or by asking (`poll`) again and again without one."""
    try:
        descriptor = os.pidfd_open(pid)
    except (AttributeError, OSError):
        timer: asyncio.Handle | None = None

        def ask() -> None:
            nonlocal timer
            if poll() is not None:
                settle()
            else:
                timer = loop.call_later(0.02, ask)

        ask()
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
        return
    loop.add_reader(descriptor, settle)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


class _Status(NamedTuple):
    """Fields of `/proc/PID/stat` (proc(5)); `bare`: it was started with an empty environment."""

    state: str
    parent: int
    group: int
    session: int
    bare: bool


def adopt_orphans() -> None:
    """Make orphaned descendants children of this process (Linux), where they can be found."""
    prctl = _prctl()
    if prctl is not None:
        prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@cache
def _prctl() -> Callable[[int, int, int, int, int], int] | None:
    import ctypes

    found: Callable[[int, int, int, int, int], int] | None
    found = getattr(ctypes.CDLL(None), "prctl", None)
    return found


def _children(pid: int) -> list[int]:
    """Direct children of a process; [] where it has gone."""
    if not _has_lists_of_children():
        return _children_by_scan(pid)
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{task}/children", "rb") as stream:
                found += map(int, stream.read().split())
    return found


@cache
def _has_lists_of_children() -> bool:
    return os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children")


def _children_by_scan(parent: int) -> list[int]:
    """The same for kernels built without the lists of children: from every process's status."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            status = _status(int(name))
            if status is not None and status.parent == parent:
                found.append(int(name))
    return found


def _environment(pid: int) -> bytes | None:
    """None where the process has gone or isn't ours to look into."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            return stream.read()
    except OSError:
        return None


def _status(pid: int) -> _Status | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            fields = stream.read().rpartition(b")")[2].split()
    except OSError:
        return None
    start, end = fields[47:49] if len(fields) > 48 else (b"0", b"0")  # env_start and env_end
    return _Status(
        fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[3]), start == end != b"0"
    )
