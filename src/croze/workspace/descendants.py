"""The processes that a program has started, found and signalled even where they left its group."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import NamedTuple

MARK = "CROZE_RUN"
"""The environment variable by which a run's processes are known after their parents have gone."""

_PR_SET_CHILD_SUBREAPER = 36


class Tree:
    """The processes of one run: its leader (a session and group of its own) and all below it.

    Orphans become children of this process (see `adopt_orphans`) and are known as the run's by their
    group, their session or the mark in their environment. Other children of this process, which are
    not the run's, are never touched.
    """

    def __init__(self, token: str) -> None:
        self.token = token
        self.leader = 0
        self.left = 0
        self._mine: set[int] = set()

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
        if leader:
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
        are collected. Where a look finds none another follows: a process that just lost its parent,
        or is becoming another program, can slip through one."""
        return self._look(leader=leader) or self._look(leader=leader)

    def _look(self, *, leader: bool) -> list[int]:
        me = os.getpid()
        roots = [pid for pid in _children(me) if pid != self.leader and self._is_mine(pid)]
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
        return found

    def _is_mine(self, pid: int) -> bool:
        if pid in self._mine:
            return True
        status = _status(pid)
        if status is None:
            return False
        if self.leader in (status.group, status.session) or self._is_marked(pid):
            self._mine.add(pid)
            return True
        return False

    def _is_marked(self, pid: int) -> bool:
        try:
            with open(f"/proc/{pid}/environ", "rb") as stream:
                return f"{MARK}={self.token}".encode() in stream.read().split(b"\0")
        except OSError:
            return False

    def _ended(self, pid: int) -> bool:
        status = _status(pid)
        if status is not None and status.state not in "ZX":
            return False
        if pid in self._mine:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        return True


class _Status(NamedTuple):
    state: str
    parent: int
    group: int
    session: int


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


def _status(pid: int) -> _Status | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            fields = stream.read().rpartition(b")")[2].split(None, 4)
    except OSError:
        return None
    return _Status(fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[3]))
