"""Changes of files as they are recorded and shown: kinds, moves, modes, diffs."""

import stat
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from croze.edit.diff import unified
from croze.edit.source import read_source
from croze.types.tool import FileChange
from croze.workspace.files import sha256

MAX_DIFF_LINES = 10_000
MAX_DIFF_CHARS = 200_000
_LONG_LINES = 4 << 20


class Side(Struct, frozen=True):
    """A file before or after: its bytes (a link's target) and `st_mode`.

    Where there is no file both are None. Where its bytes are not known `data` is None and `mode`
    isn't; a `digest` may be known all the same.
    """

    data: bytes | None
    mode: int | None = None
    digest: str | None = None

    @property
    def exists(self) -> bool:
        return self.data is not None or self.mode is not None

    @property
    def hash(self) -> str | None:
        return self.digest if self.data is None else sha256(self.data)


NOTHING = Side(None)


def describe(
    sides: Mapping[str, tuple[Side, Side]],
    made: Mapping[str, Sequence[str]] | None = None,
    moved: Mapping[str, str] | None = None,
) -> tuple[FileChange, ...]:
    """The changes of some files, those that came to nothing left out. A file that went while another
    with the same bytes came was moved; `moved` (new path → old one) says so beforehand."""
    made = made or {}
    changes = {}
    for path, (before, after) in sides.items():
        change = describe_one(path, before, after, made=tuple(made.get(path, ())))
        if change is not None:
            changes[path] = change
    for path, old in _moves(changes, moved or {}).items():
        gone = changes.pop(old)
        came = changes[path]
        before, after = sides[old][0], sides[path][1]
        text, added, removed = diff_of(old, path, before.data, after.data)
        changes[path] = FileChange(
            path=path,
            kind="moved",
            before=gone.before,
            after=came.after,
            diff=text,
            added=added,
            removed=removed,
            moved_from=old,
            mode_before=gone.mode_before,
            mode_after=came.mode_after,
            made=came.made,
        )
    return tuple(changes.values())


def describe_one(
    path: str, before: Side, after: Side, *, made: tuple[str, ...] = ()
) -> FileChange | None:
    """One file's change; None where there is none. A mode counts where it is known on both sides."""
    if not before.exists and not after.exists:
        return None
    was, now = before.hash, after.hash
    lost = (before.exists and was is None) or (after.exists and now is None)
    if before.exists and after.exists and not lost and was == now and _same_mode(before, after):
        return None
    kind: Literal["added", "modified", "deleted"] = "modified"
    if not before.exists:
        kind = "added"
    elif not after.exists:
        kind = "deleted"
    text, added, removed = "", 0, 0
    if not lost and was != now:
        text, added, removed = diff_of(
            path if before.exists else None,
            path if after.exists else None,
            before.data,
            after.data,
        )
    return FileChange(
        path=path,
        kind=kind,
        before=was,
        after=now,
        diff=text,
        added=added,
        removed=removed,
        mode_before=before.mode,
        mode_after=after.mode,
        made=made,
        lost=lost,
    )


def diff_of(
    old_path: str | None, new_path: str | None, before: bytes | None, after: bytes | None
) -> tuple[str, int, int]:
    """A unified diff (its first 10,000 lines) and its counts; without text where a side is none."""
    old = read_source(before or b"") if len(before or b"") <= _LONG_LINES else None
    new = read_source(after or b"") if len(after or b"") <= _LONG_LINES else None
    if old is None or new is None or old.text == new.text:
        return "", 0, 0
    path = new_path or old_path or ""
    diff = unified(old.text, new.text, path, limit=MAX_DIFF_LINES)
    rows = diff.text.split("\n", 2)
    was = f"a/{old_path}" if old_path else "/dev/null"
    now = f"b/{new_path}" if new_path else "/dev/null"
    text = f"--- {was}\n+++ {now}\n{rows[2] if len(rows) > 2 else ''}"
    return text[:MAX_DIFF_CHARS], diff.added, diff.removed


def _moves(changes: Mapping[str, FileChange], moved: Mapping[str, str]) -> dict[str, str]:
    """New path → old path, each used once."""
    found = {
        path: old
        for path, old in moved.items()
        if path in changes
        and old in changes
        and changes[path].kind == "added"
        and changes[old].kind == "deleted"
        and not changes[old].lost
    }
    gone: dict[str, list[str]] = {}
    for change in changes.values():
        if change.kind == "deleted" and change.before and change.path not in found.values():
            gone.setdefault(change.before, []).append(change.path)
    for change in changes.values():
        if change.kind == "added" and change.path not in found and gone.get(change.after or ""):
            found[change.path] = gone[change.after or ""].pop(0)
    return found


def _same_mode(before: Side, after: Side) -> bool:
    if before.mode is None or after.mode is None:
        return True
    return kept_mode(before.mode) == kept_mode(after.mode)


def kept_mode(mode: int) -> int:
    """What of a mode counts: the kind, and for files the permissions."""
    return stat.S_IFMT(mode) if stat.S_ISLNK(mode) else mode
