"""The sandbox by bubblewrap: namespaces of its own, a read-only system, no network, a system call filter."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from msgspec.structs import replace

from croze.workspace import seccomp
from croze.workspace.paths import PROTECTED
from croze.workspace.placeholder import placeholder
from croze.workspace.sockets import to_cover
from croze.workspace.wrapper import MOST_PROCESSES, Entry, Policy

_START = f"""exec 9>&0 </dev/null
ulimit -c 0
ulimit -p {MOST_PROCESSES} 2>/dev/null || ulimit -u {MOST_PROCESSES} 2>/dev/null
printf s >&9
trap : TERM INT HUP
exec 8>&2 2>&9
(exec "$@" 2>&8 8>&- 9>&-)
code=$?
exec 2>/dev/null
set -- /proc/[0-9]*
left=0
for each; do
  [ "$each" = /proc/1 ] || [ "$each" = "/proc/$$" ] && continue
  while read -r key value _; do
    [ "$key" = State: ] && case $value in Z|X) ;; *) left=$((left + 1)) ;; esac && break
  done 2>/dev/null <"$each/status"
done
printf '\\n%s' "$left" >&9
exit "$code"
"""
"""Runs the program and tells through descriptor 9 that it was reached, what the shell says where a signal
ended it (its exit code alone could be the program's own), and how many processes it left: they die with
the namespace, before anybody outside could count them."""

_MOST_CHILDREN = 2_000


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """`program` is bwrap's absolute path."""

    program: str
    policy: Policy

    @contextmanager
    def enter(
        self, argv: Sequence[str], *, cwd: str | os.PathLike[str], env: Mapping[str, str]
    ) -> Iterator[Entry]:
        with ExitStack() as stack:
            for path in protected(self.policy):
                if not os.path.lexists(path) or _is_empty_folder(path):
                    stack.enter_context(placeholder(path))
            report = stack.enter_context(_report())
            policy = seen_as(self.policy)
            mounted, families = mounts(policy)
            filter_program = seccomp.build(families)
            arguments = ["--info-fd", str(report.info), *_namespaces(policy)]
            descriptors = [report.info]
            if filter_program is not None:
                descriptors.append(stack.enter_context(_memory(filter_program)))
                arguments += ["--seccomp", str(descriptors[-1])]
            arguments += [*mounted, "--chdir", policy.place(os.path.realpath(cwd))]
            data = b"".join(os.fsencode(each) + b"\0" for each in arguments)
            descriptors.append(stack.enter_context(_memory(data)))
            command = [self.program, "--args", str(descriptors[-1]), "--"]
            yield Entry(
                argv=[*command, "/bin/sh", "-c", _START, "sh", *argv],
                cwd=cwd,
                env=inside(env),
                descriptors=tuple(descriptors),
                stdin=report.words,
                report=report,
            )


def seen_as(policy: Policy) -> Policy:
    """The policy with a root that can be shown elsewhere: where a temporary folder is mounted."""
    shown = policy.shown
    possible = shown is not None and shown.parent in policy.temporary
    return policy if possible or shown is None else replace(policy, shown=None)


def inside(env: Mapping[str, str]) -> dict[str, str]:
    """The environment in the sandbox: what must be written and is kept at home otherwise is temporary."""
    return {**env, "TMPDIR": "/tmp", "GOCACHE": "/tmp/go-build", "UV_CACHE_DIR": "/tmp/uv-cache"}  # noqa: S108


def _namespaces(policy: Policy) -> list[str]:
    shared = ["--share-net"] if policy.network else []
    return ["--unshare-all", *shared, "--new-session", "--die-with-parent", "--cap-drop", "ALL"]


def mounts(policy: Policy) -> tuple[list[str], frozenset[int]]:
    """The file system as bwrap's arguments, and the address families that sockets may have in it. What
    lies deeper is mounted later, so it holds."""
    root = str(policy.root)
    table: dict[str, tuple[str, ...]] = {
        "/": ("--ro-bind", "/", "/"),
        "/dev": ("--dev", "/dev"),
        "/proc": ("--proc", "/proc"),
    }
    sealed: list[str] = []
    temporary = [str(path) for path in policy.temporary if path.is_dir()]
    for path in temporary:
        table[path] = ("--tmpfs", path)
    visible = [str(path) for path in policy.visible if _lies_in(str(path), temporary)]
    for path in visible:
        table.setdefault(path, ("--ro-bind-try", path, path))
    hides = [*temporary, *map(str, policy.hidden)]
    lent = [str(path) for path in policy.lent if _lies_in(str(path), hides)]
    seen = [root, *visible, *lent]
    for hidden in map(str, policy.hidden):
        if _lies_in(hidden, temporary) and not _lies_in(hidden, seen):
            continue
        if os.path.isdir(hidden):
            table[hidden] = ("--tmpfs", hidden)
            sealed.append(hidden)
        elif os.path.exists(hidden):
            table[hidden] = ("--ro-bind", "/dev/null", hidden)
    for path in lent:
        table.setdefault(path, ("--ro-bind-try", path, path))
    replaced = [*temporary, *sealed, "/dev", "/proc"]
    sockets = to_cover(lambda path: _deepest(path, replaced) > _deepest(path, seen))
    for socket in sockets or ():
        table[socket] = ("--ro-bind-try", "/dev/null", socket)
    top = policy.place(root)
    table[top] = ("--bind" if policy.level == "workspace" else "--ro-bind", root, top)
    for path in protected(policy):
        if os.path.islink(path):
            continue
        place = policy.place(path)
        if _is_empty_folder(path):
            table[place] = ("--tmpfs", place)
            sealed.append(place)
        else:
            table[place] = ("--ro-bind-try", path, place)
    found = [part for path in sorted(table, key=_depth) for part in table[path]]
    found += [part for path in sealed if path != top for part in ("--remount-ro", path)]
    return found, seccomp.INTERNET if sockets is not None else seccomp.NO_UNIX


def protected(policy: Policy) -> list[str]:
    """What no command may write into: folders at the root, whether they are there or not, and those
    of repositories one folder further down."""
    found = [str(policy.root / name) for name in sorted(PROTECTED)]
    found += [str(path) for path in policy.guarded]
    with suppress(OSError), os.scandir(policy.root) as entries:
        for number, entry in enumerate(entries):
            if number >= _MOST_CHILDREN:
                break
            if entry.name not in PROTECTED and entry.is_dir(follow_symlinks=False):
                path = os.path.join(entry.path, ".git")
                if os.path.lexists(path):
                    found.append(path)
    return found


def _lies_in(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _deepest(path: str, folders: Sequence[str]) -> int:
    """How deep the deepest of these folders is that the path lies in; -1 for none."""
    return max((_depth(each) for each in folders if _lies_in(path, [each])), default=-1)


def _depth(path: str) -> int:
    return 0 if path == "/" else path.count("/")


def _is_empty_folder(path: str) -> bool:
    try:
        with os.scandir(path) as entries:
            return next(entries, None) is None
    except OSError:
        return False


@contextmanager
def _memory(data: bytes) -> Iterator[int]:
    descriptor = os.memfd_create("croze")
    try:
        os.write(descriptor, data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


class _Report:
    """Two pipes: bwrap writes the namespace's first process into one, `_START` its words into the other."""

    def __init__(self) -> None:
        self._info_end, self.info = os.pipe()
        self._words_end, self.words = os.pipe()
        self._open = {self._info_end, self.info, self._words_end, self.words}
        self._first: int | None = None
        self._said = b""

    def started(self) -> None:
        self._close(self.info)
        self._close(self.words)
        for reader in (self._info_end, self._words_end):
            os.set_blocking(reader, False)

    def first(self) -> int | None:
        if self._first is None:
            with suppress(OSError, ValueError, KeyError, TypeError):
                self._first = int(json.loads(os.read(self._info_end, 4096))["child-pid"])
        return self._first

    def began(self) -> bool:
        return self._said.startswith(b"s") or self._words().startswith(b"s")

    def left(self) -> int:
        count = self._words().rpartition(b"\n")[2]
        return int(count) if count.isdigit() else 0

    def killed(self) -> bool:
        return bool(self._words()[1:].rpartition(b"\n")[0].strip())

    def _words(self) -> bytes:
        with suppress(OSError):
            self._said += os.read(self._words_end, 4096)
        return self._said

    def _close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.discard(descriptor)
            os.close(descriptor)

    def close(self) -> None:
        for descriptor in tuple(self._open):
            self._close(descriptor)


@contextmanager
def _report() -> Iterator[_Report]:
    report = _Report()
    try:
        yield report
    finally:
        report.close()
