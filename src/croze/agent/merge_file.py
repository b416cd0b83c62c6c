"""One file of a sub-agent's work, merged into the caller's: planned from three versions, written once."""

import asyncio
import os
import posixpath
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from croze.agent.live import Live
from croze.edit.merge import Clash, Unmergeable, merge_bytes
from croze.store.failpoint import passes
from croze.types.errors import CrozeError
from croze.types.team import MergeConflict
from croze.workspace.changes import NOTHING, Side, diff_of
from croze.workspace.files import Change
from croze.workspace.isolate_copy import Work
from croze.workspace.paths import PathError, refuse_protected
from croze.workspace.restore import Present, look, put_back, take_away, temporary_name

_TRIES = 3
_LINES = 40
"""Lines of each side that a conflict shows at one place."""

_PLACES = 20
_TOLD = 12_000
"""Characters of a conflict's text."""


class Done(Struct, frozen=True):
    """How a file was changed; `made` are the folders made for it."""

    before: Side
    after: Side
    made: tuple[str, ...] = ()


class _Wanted(Struct, frozen=True):
    """What a file is to become: `mode` None where it is to go; `plain` where only its bytes change."""

    ours: Present | None
    data: bytes | None
    mode: int | None
    plain: bool


async def merge_file(live: Live, work: Work, call: str) -> Done | MergeConflict | None:
    """One file; None where the caller's is so already. A file that changes while it is being merged is
    merged anew."""
    root = live.workspace.root
    for _ in range(_TRIES):
        wanted = await asyncio.to_thread(_planned, root, work)
        if not isinstance(wanted, _Wanted):
            return wanted
        try:
            return _write(live, work.path, wanted, call)
        except PathError as error:
            if error.code != "file_changed":
                return MergeConflict(path=work.path, reason=error.message)
        except (CrozeError, OSError) as error:
            return MergeConflict(path=work.path, reason=f"it could not be written: {error}")
    return MergeConflict(path=work.path, reason="it keeps changing here")


def _planned(root: Path, work: Work) -> _Wanted | MergeConflict | None:
    """Three-way: what the sub-agent began with, what it left, what stands here now."""

    def conflict(reason: str, text: str = "") -> MergeConflict:
        return MergeConflict(path=work.path, reason=reason, text=text)

    try:
        work.path.encode()
        refuse_protected(work.path)
    except UnicodeEncodeError:
        return conflict("its name is not UTF-8")
    except PathError as error:
        return conflict(error.message)
    if work.lost:
        return conflict(f"the sub-agent's file can't be merged: {work.lost}")
    through = _link_above(root, work.path)
    if through:
        return conflict(f"{through} is a link here")
    ours = look(root, work.path)
    if ours is not None and ours.data is None:
        return conflict("a folder stands here" if ours.is_folder else "it is too large or special")
    if same(ours, work.new, work.mode):
        return None
    if same(ours, work.base, work.base_mode):
        plain = ours is None and not _runs(work.mode) and _kind(work.mode) == stat.S_IFREG
        if ours is not None and work.mode is not None:
            plain = _kind(ours.mode) == _kind(work.mode) == stat.S_IFREG
            plain = plain and _runs(ours.mode) == _runs(work.mode)
        return _Wanted(ours, work.new, _mode(ours, work.mode), plain)
    if work.base is None:
        return conflict("it was added here too, with other content", _both(ours, work.new))
    if work.new is None or work.mode is None:
        return conflict("the sub-agent removed it, but it has changed here")
    if ours is None:
        return conflict("it was removed here, but the sub-agent changed it", _both(None, work.new))
    assert ours.data is not None
    assert work.base_mode is not None
    kinds = {_kind(mode) for mode in (ours.mode, work.mode, work.base_mode)}
    if kinds != {stat.S_IFREG}:
        return conflict("both sides changed it, and one of them is a link", _both(ours, work.new))
    merged = merge_bytes(work.base, ours.data, work.new)
    if isinstance(merged, Unmergeable):
        return conflict(merged.reason, _clashes(merged.clashes) + _more(work, merged.clashes))
    keeps = _runs(work.mode) == _runs(work.base_mode) or _runs(work.mode) == _runs(ours.mode)
    return _Wanted(ours, merged, ours.mode if keeps else _mode(ours, work.mode), keeps)


def _write(live: Live, path: str, wanted: _Wanted, call: str) -> Done:
    """Make it so, if the file is still what was planned with; announced and kept for undo like any
    change. Nothing is awaited here."""
    workspace, tracker = live.workspace, live.tracker
    ours = wanted.ours
    before = NOTHING if ours is None else Side(ours.data, ours.mode)
    if tracker is None:
        _change(live, path, wanted)
        mode, made = None, tuple[str, ...]()
    else:
        try:
            with tracker.on_behalf(call):
                _change(live, path, wanted)
        except (CrozeError, OSError):
            tracker.gave_up(path)
            raise
        mode, made = tracker.came_back(path, wanted.data)
    if wanted.mode is None:
        return Done(before, NOTHING)
    if mode is None:
        mode = os.lstat(workspace.root / path).st_mode
    return Done(before, Side(wanted.data, mode), made)


def _change(live: Live, path: str, wanted: _Wanted) -> None:
    files, root, ours = live.workspace.files, live.workspace.root, wanted.ours
    if wanted.plain and wanted.data is not None:
        files.write(path, wanted.data, expect="" if ours is None else ours.digest)
        return
    present = look(root, path)
    if present != ours:
        raise PathError("file_changed", path, f"{path} has changed meanwhile.")
    temporary = posixpath.join(posixpath.dirname(path), temporary_name(path))
    before = None if ours is None else ours.data
    mode = None if ours is None else ours.mode
    folders = () if wanted.mode is None else _missing(root, path)
    files.announce(Change(path, before, wanted.data, mode, folders, posixpath.basename(temporary)))
    if wanted.mode is None or wanted.data is None:
        take_away(root, path)
    else:
        put_back(root, path, wanted.data, wanted.mode)
    passes("files.changed")


def _missing(root: Path, path: str) -> tuple[str, ...]:
    parts = path.split("/")[:-1]
    every = ("/".join(parts[: depth + 1]) for depth in range(len(parts)))
    return tuple(folder for folder in every if not os.path.lexists(root / folder))


def _link_above(root: Path, path: str) -> str:
    """The first folder of the path that is a link here."""
    parts = path.split("/")[:-1]
    for depth in range(len(parts)):
        folder = "/".join(parts[: depth + 1])
        if os.path.islink(root / folder):
            return folder
    return ""


def same(ours: Present | None, data: bytes | None, mode: int | None) -> bool:
    """Whether a file is this: bytes, kind, and whether it can be run."""
    if ours is None or mode is None:
        return ours is None and mode is None
    same_mode = _kind(ours.mode) == _kind(mode) and (
        _kind(mode) != stat.S_IFREG or _runs(ours.mode) == _runs(mode)
    )
    return same_mode and ours.data == data


def _kind(mode: int | None) -> int:
    return 0 if mode is None else stat.S_IFMT(mode)


def _runs(mode: int | None) -> bool:
    return bool((mode or 0) & 0o100)


def _mode(ours: Present | None, mode: int | None) -> int | None:
    """The mode that a file is to have: the caller's, with the sub-agent's say on whether it can be run."""
    if (
        ours is None
        or mode is None
        or _kind(ours.mode) != _kind(mode)
        or _kind(mode) != stat.S_IFREG
    ):
        return mode
    if _runs(ours.mode) == _runs(mode):
        return ours.mode
    return ours.mode | (mode & 0o111) if _runs(mode) else ours.mode & ~0o111


def _clashes(clashes: Sequence[Clash]) -> str:
    shown = [
        f"line {clash.line}\nhere:\n{_side(clash.ours)}\nsub-agent:\n{_side(clash.theirs)}"
        for clash in clashes[:_PLACES]
    ]
    if len(clashes) > _PLACES:
        shown.append(f"… {len(clashes) - _PLACES} more places")
    return "\n\n".join(shown)[:_TOLD]


def _more(work: Work, clashes: Sequence[Clash]) -> str:
    """What else the sub-agent changed in a file that clashes, so that it can be made by hand."""
    diff = diff_of(work.path, work.path, work.base, work.new)[0]
    if not clashes or diff.count("\n@@ -") <= 1:
        return ""
    cut = diff[:_TOLD]
    more = "\n… cut here" if len(diff) > _TOLD else ""
    return f"\n\nall that the sub-agent changed in it:\n{cut}{more}"


def _side(lines: Sequence[str]) -> str:
    shown = [f"  {line[:200]}" for line in lines[:_LINES]]
    if len(lines) > _LINES:
        shown.append(f"  … {len(lines) - _LINES} more lines")
    return "\n".join(shown) or "  (nothing)"


def _both(ours: Present | None, theirs: bytes | None) -> str:
    """The two contents, their beginnings, where both are texts."""
    parts = []
    for name, data in (("here", ours.data if ours is not None else None), ("sub-agent", theirs)):
        with suppress(UnicodeDecodeError):
            text = "  (nothing)" if data is None else _side(data.decode().splitlines())
            parts.append(f"{name}:\n{text}")
    return "\n".join(parts)[:_TOLD]
