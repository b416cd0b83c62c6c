"""A small process that outlives croze when croze is killed, and then ends what croze had started.

It reads from a pipe which group leaders are running. The pipe's end means that croze is gone, however
that came about. Run as a program it imports nothing of croze, so that it is started quickly.
"""

import contextlib
import os
import signal
import sys
import time
from typing import NamedTuple

_PATIENCE = 5.0
"""Seconds for which it looks again for something that is still running."""


class _Process(NamedTuple):
    parent: int
    group: int
    session: int


def watch(pipe: int, mark: bytes) -> None:
    """Follow croze until its end, then end what its runs have left. `mark` begins the variable of the
    environment that all of them were given."""
    leaders: set[int] = set()
    rest = b""
    while True:
        piece = os.read(pipe, 4096)
        if not piece:
            break
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            (leaders.add if line[:1] == b"+" else leaders.discard)(int(line[1:]))
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        found = _members(leaders, mark)
        if not found:
            return
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _members(leaders: set[int], mark: bytes) -> set[int]:
    """Running processes of these groups and sessions, those with the mark, and all below them."""
    present = {int(name): each for name in os.listdir("/proc") if (each := _look(name))}
    present.pop(os.getpid(), None)
    found = {
        pid
        for pid, each in present.items()
        if each.group in leaders or each.session in leaders or _is_marked(pid, mark)
    }
    grown = -1
    while grown != len(found):
        grown = len(found)
        found |= {pid for pid, each in present.items() if each.parent in found}
    return found


def _look(name: str) -> _Process | None:
    if not name.isdigit():
        return None
    try:
        with open(f"/proc/{name}/stat", "rb") as stream:
            fields = stream.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if fields[0] in (b"Z", b"X"):
        return None
    return _Process(int(fields[1]), int(fields[2]), int(fields[3]))


def _is_marked(pid: int, mark: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            return any(each.startswith(mark) for each in stream.read().split(b"\0"))
    except OSError:
        return False


if __name__ == "__main__":
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    watch(int(sys.argv[1]), os.fsencode(sys.argv[2]))
