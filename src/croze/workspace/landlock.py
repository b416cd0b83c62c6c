"""The weaker sandbox: Landlock and a system call filter, by system calls alone.

Sources: landlock(7), linux/landlock.h. A thread restricts itself and then starts the program, which
inherits the restrictions; the thread ends, and no other thread has them.
"""

import ctypes
import hashlib
import os
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from croze.workspace import seccomp
from croze.workspace.bubblewrap import inside
from croze.workspace.outputs import Outputs
from croze.workspace.wrapper import Entry, Policy

LEAST_ABI = 3
"""Before it, files outside could be emptied."""

GAPS = (
    "commands share this system's process list",
    "modes, owners and times of files outside can be changed",
    ".git is not write-protected, only watched",
    "unix sockets can't be opened at all",
)
"""What it doesn't do, or overdoes, beside bubblewrap."""

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_WRITE_FILE, _READ_FILE, _TRUNCATE = 1 << 1, 1 << 2, 1 << 14
_CHANGES = _WRITE_FILE | sum(1 << bit for bit in range(4, 14)) | _TRUNCATE
_TCP = 0b11
_SCOPE = 0b11  # abstract unix sockets, signals
_PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 22, 24, 38
_CAPABILITIES = 41
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")
_WATCHED_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Landlock:
    """`abi` is what the kernel offers."""

    abi: int
    policy: Policy

    @contextmanager
    def enter(
        self, argv: Sequence[str], *, cwd: str | os.PathLike[str], env: Mapping[str, str]
    ) -> Iterator[Entry]:
        with ExitStack() as stack:
            temporary = Outputs(Path(tempfile.gettempdir()))
            stack.callback(temporary.close)
            own = str(temporary.folder())
            ruleset = self._ruleset(own)
            stack.callback(os.close, ruleset)
            before = _git_state(self.policy.root)

            def notes() -> tuple[str, ...]:
                after = _git_state(self.policy.root)
                changed = sorted(
                    name for name in before | after if before.get(name) != after.get(name)
                )
                if not changed:
                    return ()
                names = ", ".join(changed[:10]) + (", …" if len(changed) > 10 else "")
                return (f"It changed {names}, which this system's sandbox can't protect.",)

            network = self.policy.network
            families = seccomp.build(seccomp.INTERNET if network else seccomp.NO_SOCKETS)
            yield Entry(
                argv=argv,
                cwd=cwd,
                env={
                    name: value.replace("/tmp", own, 1) if value.startswith("/tmp") else value  # noqa: S108
                    for name, value in inside(env).items()
                },
                restrict=partial(_restrict, ruleset, families),
                notes=notes,
            )

    def _ruleset(self, own: str) -> int:
        changes = _CHANGES if self.abi >= LEAST_ABI else 0
        net = 0 if self.policy.network or self.abi < 4 else _TCP
        handled = struct.pack("=QQQ", changes | _READ_FILE, net, _SCOPE if self.abi >= 6 else 0)
        size = 24 if self.abi >= 6 else 16 if self.abi >= 4 else 8
        ruleset = _call(_CREATE, handled, size, 0)
        try:
            for path in readable(self.policy.hidden):
                _allow(ruleset, path, _READ_FILE)
            for lent in self.policy.lent:
                _allow(ruleset, str(lent), _READ_FILE)
            for name in _DEVICES:
                _allow(ruleset, f"/dev/{name}", _WRITE_FILE)
            _allow(ruleset, own, changes | _READ_FILE)
            rights = changes if self.policy.level == "workspace" else 0
            _allow(ruleset, str(self.policy.root), rights | _READ_FILE)
        except BaseException:
            os.close(ruleset)
            raise
        return ruleset


@cache
def abi() -> int:
    """The Landlock version that the kernel offers, 0 for none."""
    try:
        return max(0, _syscall()(_CREATE, None, 0, 1))
    except (AttributeError, OSError):
        return 0


def readable(hidden: Sequence[Path]) -> list[str]:
    """The places that together hold everything but what is hidden: Landlock can only allow."""
    found: list[str] = []
    closed = {str(path) for path in hidden}

    def look(folder: str) -> None:
        try:
            names = os.listdir(folder)
        except OSError:
            return
        for name in names:
            path = os.path.join(folder, name)
            if path in closed or os.path.islink(path):
                continue
            if any(each.startswith(path + "/") for each in closed):
                look(path)
            else:
                found.append(path)

    look("/")
    return found


def _allow(ruleset: int, path: str, rights: int) -> None:
    """Allow rights on a file, or on a folder with all below it; none where it isn't there."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(f"/proc/self/fd/{descriptor}"):
            rights &= _WRITE_FILE | _READ_FILE | _TRUNCATE
        if rights:
            with suppress(OSError):  # a place that takes no rules stays forbidden
                _call(_ADD, ruleset, 1, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)


def _restrict(ruleset: int, filter_program: bytes | None) -> None:
    """Restrict the calling thread for good. Raises OSError."""
    if os.geteuid() == 0:
        for capability in range(_CAPABILITIES):
            _prctl(_PR_CAPBSET_DROP, capability)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _call(_RESTRICT, ruleset, 0)
    if filter_program is not None:
        held = ctypes.create_string_buffer(filter_program, len(filter_program))
        program = struct.pack("HP", len(filter_program) // 8, ctypes.addressof(held))
        pointer = ctypes.create_string_buffer(program, len(program))
        _prctl(_PR_SET_SECCOMP, 2, ctypes.addressof(pointer))


def _prctl(option: int, *arguments: int) -> None:
    call = _library().prctl
    four = [ctypes.c_ulong(each) for each in (*arguments, 0, 0, 0, 0)[:4]]
    if call(option, *four) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _call(number: int, *arguments: int | bytes) -> int:
    result: int = _syscall()(
        number, *(ctypes.c_long(each) if isinstance(each, int) else each for each in arguments)
    )
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _syscall() -> Callable[..., int]:
    call = _library().syscall
    call.restype = ctypes.c_long
    return call


def _git_state(root: Path) -> dict[str, str]:
    """What git would run or go by, by name, with its content's hash: everything but the objects."""
    found: dict[str, str] = {}
    top = root / ".git"
    if top.is_file():
        return {".git": _hash(top)}
    budget = _WATCHED_BYTES
    for folder, folders, names in os.walk(top):
        folders[:] = [each for each in folders if not (each == "objects" and folder == str(top))]
        for name in names:
            path = Path(folder, name)
            with suppress(OSError):
                size = path.lstat().st_size
                budget -= size
                about = path.lstat().st_mtime_ns if budget < 0 else 0
                found[str(path.relative_to(root))] = (
                    f"{size} {about}" if budget < 0 else _hash(path)
                )
    return found


def _hash(path: Path) -> str:
    with suppress(OSError):
        if path.is_symlink():
            return os.readlink(path)
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return ""
