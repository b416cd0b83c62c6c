"""Git's index, read as it is: which files are clean, and which object holds their content.

The format is that of gitformat-index(5), versions 2 to 4. Nothing of git is run for it.
"""

import hashlib
import os
import struct
from pathlib import Path

from msgspec import Struct

from croze.workspace.snapshot import Entry

_HEAD = struct.Struct(">4sLL")
_STAT = struct.Struct(">10L")
_EXTENDED, _STAGE, _NAME = 0x4000, 0x3000, 0x0FFF
_MOST = 256 << 20


class Indexed(Struct, frozen=True):
    """One entry: the object's name in hex, mode, size, and mtime in nanoseconds when it was clean."""

    blob: str
    mode: int
    size: int
    mtime: int
    inode: int

    def is_clean(self, entry: Entry) -> bool:
        """Whether a file with this stat still is what the index says."""
        mtime, size, inode, mode = entry
        seconds, nanos = divmod(self.mtime, 1_000_000_000)
        same_time = mtime == self.mtime or (nanos == 0 and mtime // 1_000_000_000 == seconds)
        same_inode = self.inode in (0, inode & 0xFFFFFFFF)
        executable = bool(mode & 0o100) == bool(self.mode & 0o100)
        kind = (mode & 0o170000) == (self.mode & 0o170000)
        return same_time and same_inode and kind and executable and size & 0xFFFFFFFF == self.size


def read_index(path: Path) -> dict[str, Indexed]:
    """The entries by path; without those in conflict, and without those that git itself would look at
    again because they may have changed in the very moment they were written. Empty where there is no
    index or its form is not known."""
    try:
        with path.open("rb") as stream:
            written = os.fstat(stream.fileno()).st_mtime_ns
            data = stream.read(_MOST)
    except OSError:
        return {}
    try:
        return _parse(data, written)
    except (struct.error, ValueError, IndexError):
        return {}


def blob_name(data: bytes, like: str) -> str:
    """The object name that git gives these bytes, by the hash function of the name `like`."""
    head = b"blob %d\0" % len(data)
    if len(like) == 64:
        return hashlib.sha256(head + data).hexdigest()
    return hashlib.sha1(head + data, usedforsecurity=False).hexdigest()


def _parse(data: bytes, written: int) -> dict[str, Indexed]:
    magic, version, count = _HEAD.unpack_from(data)
    if magic != b"DIRC" or version not in (2, 3, 4):
        return {}
    checked = hashlib.sha1(data[:-20], usedforsecurity=False).digest() == data[-20:]
    width = 20 if checked or not any(data[-20:]) else 32
    found: dict[str, Indexed] = {}
    at, name = _HEAD.size, b""
    for _ in range(count):
        start = at
        numbers = _STAT.unpack_from(data, at)
        at += _STAT.size
        blob = data[at : at + width].hex()
        (flags,) = struct.unpack_from(">H", data, at + width)
        at += width + 2
        if flags & _EXTENDED:
            at += 2
        if version == 4:
            cut, at = _varint(data, at)
            end = data.index(b"\0", at)
            name = name[: len(name) - cut] + data[at:end]
            at = end + 1
        else:
            length = flags & _NAME
            end = at + length if length < _NAME else data.index(b"\0", at)
            name = data[at:end]
            at = start + ((end - start) // 8 + 1) * 8
        _, _, seconds, nanos, _, inode, mode, _, _, size = numbers
        mtime = seconds * 1_000_000_000 + nanos
        if flags & _STAGE or mtime >= written or (nanos == 0 and seconds >= written // 10**9):
            continue
        found[name.decode("utf-8", "surrogateescape")] = Indexed(blob, mode, size, mtime, inode)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1
