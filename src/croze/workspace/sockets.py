"""The unix sockets of programs outside that a sandbox has to cover: a read-only mount is no bar to them."""

import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress

MOST_SOCKETS = 500
"""More than these are not covered one by one: no unix socket can be opened then."""

_MOST_LISTED = 10_000
_LIST = "/proc/net/unix"
_ROW = re.compile(rb"^[0-9a-f]+: [0-9A-F]{8} [0-9A-F]{8} [0-9A-F]{8} [0-9A-F]{4} [0-9A-F]{2} +\d+ ")
_NEXT = re.compile(rb"\n(?=[0-9a-f]+: [0-9A-F]{8} )")


def to_cover(replaced: Callable[[str], bool]) -> list[str] | None:
    """The real paths of sockets that a program with this process's user, but without its capabilities,
    could connect to; None where there are too many, or one whose place isn't told. `replaced` tells whether something else stands at a
    path in the sandbox, so that nothing there can be reached, nor mounted on."""
    names = _listed()
    if len(names) > _MOST_LISTED or not all(map(_is_a_place, names)):
        return None
    folders: dict[str, str | None] = {}
    found: set[str] = set()
    for name in names:
        path = _found_at(name, folders)
        if path is not None and os.path.islink(path):
            path = _found_at(os.path.realpath(path), folders)
        if path is None or path in found or replaced(path):
            continue
        with suppress(OSError):
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                found.add(path)
        if len(found) > MOST_SOCKETS:
            return None
    return sorted(found)


def _found_at(name: str, folders: dict[str, str | None]) -> str | None:
    """The name with its folder's real path, where what is in there can be reached."""
    folder, _, base = name.rpartition("/")
    if folder not in folders:
        folders[folder] = _searchable(folder or "/")
    real = folders[folder]
    return None if real is None else os.path.join(real, base)


def _listed() -> set[str]:
    """Every path that a socket of this machine was bound to, as it was given, whatever is there now
    (unix(7)); abstract names, which begin with @, are no paths."""
    try:
        with open(_LIST, "rb") as stream:
            rows = _NEXT.split(stream.read().removesuffix(b"\n"))
    except OSError:
        return set()
    names = (row[found.end() :] for row in rows if (found := _ROW.match(row)))
    return {os.fsdecode(name) for name in names if name and not name.startswith(b"@")}


def _is_a_place(name: str) -> bool:
    """A relative name, or one below a process's own folder, says nothing of where the socket is."""
    return name.startswith("/") and not name.startswith("/proc/")


def _searchable(folder: str) -> str | None:
    """The folder's real path; None where something in it can't be reached without capabilities."""
    real = os.path.realpath(folder)
    groups = {os.getegid(), *os.getgroups()}
    at = "/"
    for part in ["", *real.split("/")[1:]]:
        at = os.path.join(at, part)
        if not _may_search(at, groups):
            return None
    return real


def _may_search(folder: str, groups: set[int]) -> bool:
    try:
        found = os.stat(folder)
        if found.st_uid == os.geteuid():
            return bool(found.st_mode & stat.S_IXUSR)
        if "system.posix_acl_access" in os.listxattr(folder):
            return os.access(folder, os.X_OK, effective_ids=True)
    except OSError:
        return False
    bit = stat.S_IXGRP if found.st_gid in groups else stat.S_IXOTH
    return bool(found.st_mode & bit)
