"""Finding a path below a root by held folder descriptors, so that check and use are one step."""

import errno
import os
import posixpath
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from msgspec import Struct

from croze.workspace.paths import PathError, below, refuse_protected

_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_SYS_OPENAT2 = 437
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_MAX_LINKS = 40


class Place(Struct, frozen=True):
    """A name in a held folder; "" is the folder itself.

    `path` is the resolved path below the root, free of links. `stat` is the name's own (never a
    link's), None where there is nothing of that name. `made` names the folders that were made.
    """

    folder: int
    name: str
    path: str
    stat: os.stat_result | None
    made: tuple[str, ...] = ()


@contextmanager
def locate(root: Path, path: str, *, make: bool = False) -> Iterator[Place]:
    """Hold the folder that contains `path`, a relative path, for the time of the block.

    With `make` missing folders (the root too) are made, save protected ones. Raises `PathError`
    where the path leads out, and the `OSError` of what failed.
    """
    if make:
        root.mkdir(parents=True, exist_ok=True)
    top = os.open(root, _FOLDER)
    held = [top]
    try:
        yield _at_once(top, path, held) or _step_by_step(root, path, held, make=make)
    finally:
        for descriptor in held:
            os.close(descriptor)


def _at_once(top: int, path: str, held: list[int]) -> Place | None:
    """One kernel lookup, where the path has no links in it: then its text is its resolved form."""
    folder, _, name = path.rstrip("/").rpartition("/")
    if name in ("", ".", ".."):
        return None
    if folder:
        opened = _open_beneath(top, folder)
        if opened is None:
            return None
        held.append(opened)
    try:
        found = os.stat(name, dir_fd=held[-1], follow_symlinks=False)
    except FileNotFoundError:
        found = None
    if found is not None and stat.S_ISLNK(found.st_mode):
        return None
    return Place(held[-1], name, posixpath.normpath(posixpath.join(folder, name)), found)


def _step_by_step(root: Path, path: str, held: list[int], *, make: bool) -> Place:
    """One component at a time, links resolved here. `..` pops what was pushed and is never given to
    the kernel, so a folder that is moved meanwhile can't lead out."""
    stack = [held[0]]
    names: list[str] = []
    made: list[str] = []
    pending = path.split("/")[::-1]
    links = 0
    while pending:
        part = pending.pop()
        if part in ("", "."):
            continue
        if part == "..":
            if not names:
                raise _leads_out(path)
            stack.pop()
            names.pop()
            continue
        last = not any(rest not in ("", ".") for rest in pending)
        resolved = "/".join([*names, part])
        try:
            found = os.stat(part, dir_fd=stack[-1], follow_symlinks=False)
        except FileNotFoundError:
            if last:
                return Place(stack[-1], part, resolved, None, tuple(made))
            if not make or ".." in pending:
                raise
            refuse_protected(resolved)
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=stack[-1])
                made.append(resolved)
            pending.append(part)
            continue
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            target = os.readlink(part, dir_fd=stack[-1])
            if target.startswith("/"):
                inside = below(target, root)
                if inside is None:
                    raise _leads_out(path)
                stack, names, target = stack[:1], [], inside
            pending.extend(target.split("/")[::-1])
        elif last:
            return Place(stack[-1], part, resolved, found)
        else:
            flags = _FOLDER | os.O_NOFOLLOW
            stack.append(os.open(part, flags, dir_fd=stack[-1]))
            held.append(stack[-1])
            names.append(part)
    return Place(stack[-1], "", "/".join(names) or ".", os.stat(stack[-1]))


def _leads_out(path: str) -> PathError:
    return PathError(
        "path_traversal_blocked", path, f"{path} leads out of the workspace.",
        hint="Use a path relative to the workspace's root.",
    )  # fmt: skip


def _open_beneath(top: int, folder: str) -> int | None:
    """`folder` below `top` by openat2 (Linux 5.6), passing no link; None where that is not possible,
    for whatever reason: the walk then finds out which."""
    call = _openat2()
    return None if call is None else call(top, os.fsencode(folder))


@cache
def _openat2() -> Callable[[int, bytes], int | None] | None:
    if not hasattr(os, "O_PATH"):
        return None
    import ctypes

    syscall = ctypes.CDLL(None).syscall
    how = struct.pack("QQQ", _FOLDER, 0, _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS)

    def call(top: int, folder: bytes) -> int | None:
        opened: int = syscall(_SYS_OPENAT2, top, folder, how, len(how))
        return opened if opened >= 0 else None

    return call
