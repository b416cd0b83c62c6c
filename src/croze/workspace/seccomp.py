"""A system call filter as the kernel takes it: classic BPF, without a library.

Sources: seccomp(2), linux/filter.h, linux/audit.h, and the kernel's system call tables.
"""

import os
import struct
from functools import cache
from typing import NamedTuple

_LD, _JEQ, _JGE, _RET = 0x20, 0x15, 0x35, 0x06
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_NUMBER, _ARCH, _FIRST, _SECOND = 0, 4, 16, 24  # offsets in struct seccomp_data, low words
_EPERM, _ENOSYS = 1, 38
_X32 = 0x40000000
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_IO_URING = (425, 426, 427)
"""They open sockets and files past the filter. ENOSYS: programs then do without."""


class _Machine(NamedTuple):
    """The numbers of one architecture. `refused`: tracing and reading other processes, keyrings,
    modules, another kernel, other namespaces' files, clocks, and the kernel's own programs."""

    arch: int
    ioctl: int
    socket: int
    refused: tuple[int, ...]


_MACHINES = {
    "x86_64": _Machine(
        arch=0xC000003E,
        ioctl=16,
        socket=41,
        # ptrace, process_vm_readv/writev, add_key, request_key, keyctl, init/delete/finit_module,
        # kexec_load, kexec_file_load, reboot, settimeofday, clock_settime, swapon, swapoff, acct,
        # bpf, perf_event_open, userfaultfd, open_by_handle_at, pidfd_getfd
        refused=(
            *(101, 310, 311, 248, 249, 250, 175, 176, 313, 246, 320, 169, 164, 227, 167, 168, 163),
            *(321, 298, 323, 304, 438),
        ),
    ),
    "aarch64": _Machine(
        arch=0xC00000B7,
        ioctl=29,
        socket=198,
        refused=(
            *(117, 270, 271, 217, 218, 219, 105, 106, 273, 104, 294, 142, 170, 112, 224, 225, 89),
            *(280, 241, 282, 265, 438),
        ),
    ),
}

INTERNET = frozenset({_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK})
"""Where the namespace decides what the internet is."""

NO_UNIX = INTERNET - {_AF_UNIX}
"""Where there are more servers' sockets on the disk than can be covered."""

NO_SOCKETS = frozenset({_AF_NETLINK})
"""Where nothing else bars the network, nor servers' sockets on the disk. Pairs of sockets still work."""


@cache
def build(families: frozenset[int], machine: str | None = None) -> bytes | None:
    """The filter's program: only sockets of these address families can be opened, what is refused fails,
    and a program of another architecture is killed. None where the machine isn't known."""
    numbers = _MACHINES.get(machine or os.uname().machine)
    if numbers is None:
        return None
    program = [
        (_LD, 0, 0, _ARCH),
        (_JEQ, 1, 0, numbers.arch),
        (_RET, 0, 0, _KILL),
        (_LD, 0, 0, _NUMBER),
    ]
    if numbers is _MACHINES["x86_64"]:
        program += [(_JGE, 0, 1, _X32), (_RET, 0, 0, _KILL)]
    for number in _IO_URING:
        program += [(_JEQ, 0, 1, number), (_RET, 0, 0, _ERRNO | _ENOSYS)]
    for number in numbers.refused:
        program += [(_JEQ, 0, 1, number), (_RET, 0, 0, _ERRNO | _EPERM)]
    program += [(_JEQ, 0, 5, numbers.ioctl), (_LD, 0, 0, _SECOND)]
    program += [(_JEQ, 1, 0, _TIOCSTI), (_JEQ, 0, 1, _TIOCLINUX), (_RET, 0, 0, _ERRNO | _EPERM)]
    program += [(_RET, 0, 0, _ALLOW)]
    allowed = sorted(families)
    program += [(_JEQ, 0, len(allowed) + 2, numbers.socket), (_LD, 0, 0, _FIRST)]
    program += [(_JEQ, len(allowed) - at, 0, family) for at, family in enumerate(allowed)]
    program += [(_RET, 0, 0, _ERRNO | _EPERM), (_RET, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *each) for each in program)
