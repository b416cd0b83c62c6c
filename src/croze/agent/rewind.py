"""Carrying out an undo: intent in the log, files one by one, done in the log.

An undo that the process did not survive is completed by the next one. Nothing is begun where a file is
not as the session left it.
"""

import asyncio
import os
import posixpath
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

import msgspec
from msgspec import Struct

from croze.agent.resume import repairs
from croze.agent.undo import History, Plan, history, plan_redo, plan_undo
from croze.store.failpoint import passes
from croze.types.errors import CrozeError, StoreError
from croze.types.event import Body, Event, FilesChanged, Stopped, Undoing
from croze.types.tool import FileChange
from croze.workspace.changes import Side, describe_one, kept_mode
from croze.workspace.files import is_temporary
from croze.workspace.journal import Intent, Journal
from croze.workspace.paths import failure
from croze.workspace.restore import Present, look, put_back, remove_if_empty, take_away

INTERRUPTED = "The session was interrupted."
_REGULAR = stat.S_IFREG | 0o644


class Appender(Protocol):
    """A session's log, or a live session, which tells its watchers too."""

    async def append(self, *bodies: Body, durable: bool = False) -> tuple[Event, ...]: ...


class UndoConflict(CrozeError):
    """Files have been changed by somebody else; nothing was touched. `params["paths"]` names them."""

    code = "undo_conflict"


class Rewound(Struct, frozen=True):
    """What an undo or redo did. `lost` paths could not be put back because nobody has their old
    content; `left` were changed after an interruption and stay as they are. `completed` says that this
    was an interrupted operation."""

    undoing: Undoing
    lost: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    completed: bool = False


@dataclass(slots=True)
class Rewinder:
    """Undo and redo over one session's log, for the project at `root`."""

    log: Appender
    events: Sequence[Event]
    root: Path
    journal: Journal
    new_id: Callable[[], str]

    async def undo(
        self, *, turns: int = 1, call: str | None = None, files_only: bool = False
    ) -> Rewound:
        """See `plan_undo`. Raises UsageError and UndoConflict, and what writing raises."""
        completed = await self._complete()
        if completed is not None:
            return completed
        found = history(self.events)
        plan = plan_undo(found, self.new_id(), turns=turns, call=call, files_only=files_only)
        return await self._carry_out(found, plan)

    async def redo(self) -> Rewound:
        """See `plan_redo`."""
        completed = await self._complete()
        if completed is not None:
            return completed
        found = history(self.events)
        return await self._carry_out(found, plan_redo(found, self.new_id()))

    async def _complete(self) -> Rewound | None:
        """Close what an interruption left open; finish the operation that it met, where it met one."""
        closing = await asyncio.to_thread(recovered, self.events, self.root, self.journal)
        if history(self.events).turns and history(self.events).turns[-1].open:
            closing += repairs(self.events, self.new_id)
            closing.append(Stopped(reason="cancelled", text=INTERRUPTED))
        if closing:
            await self.log.append(*closing, durable=True)
            self.journal.intents(self.events[0].session).close()
        undoing = history(self.events).unfinished
        if undoing is None:
            return None
        left = await asyncio.to_thread(self._apply, undoing, resumed=True)
        await self.log.append(undoing.then, durable=True)
        return Rewound(undoing, left=tuple(left), completed=True)

    async def _carry_out(self, found: History, plan: Plan) -> Rewound:
        undoing, lost = await asyncio.to_thread(self._checked, found, plan)
        await self.log.append(undoing, durable=True)
        passes("undo.intent")
        await asyncio.to_thread(self._apply, undoing, resumed=False)
        await self.log.append(undoing.then, durable=True)
        passes("undo.done")
        return Rewound(undoing, lost=lost)

    def _checked(self, found: History, plan: Plan) -> tuple[Undoing, tuple[str, ...]]:
        """Hold the plan against the files as they are, and keep these for a redo."""
        files: list[FileChange] = []
        lost, conflicts = list(plan.lost), dict.fromkeys(plan.broken)
        folders = {folder for change in plan.undoing.files for folder in change.made}
        for change in plan.undoing.files:
            if change.after is not None and self.journal.get(change.after) is None:
                lost.append(change.path)
                continue
            present = look(self.root, change.path)
            if not _is_as(present, change, folders):
                conflicts[change.path] = None
            elif present is not None and present.data is not None:
                self.journal.put(present.data)
            files.append(self._with_folders(change))
        if conflicts:
            raise _conflict(list(conflicts), found)
        return msgspec.structs.replace(plan.undoing, files=tuple(files)), tuple(lost)

    def _with_folders(self, change: FileChange) -> FileChange:
        """The change with the folders that have to be made for it, so that a redo takes them away."""
        if change.after is None:
            return change
        parents = [str(folder) for folder in PurePosixPath(change.path).parents][-2::-1]
        missing = tuple(p for p in parents if not os.path.lexists(self.root / p))
        return msgspec.structs.replace(change, made=(*change.made, *missing))

    def _apply(self, undoing: Undoing, *, resumed: bool) -> list[str]:
        """Put the files where they are to be; gives those left alone. Removals come first, so that a
        folder may become a file again."""
        left: list[str] = []
        todo: list[FileChange] = []
        folders = {folder for change in undoing.files for folder in change.made}
        for change in undoing.files:
            present = look(self.root, change.path) if resumed else None
            if not resumed or _is_as(present, change, folders):
                todo.append(change)
            elif not _is_done(present, change):
                left.append(change.path)
        for change in sorted(todo, key=lambda change: change.path, reverse=True):
            if change.after is None:
                self._change(change)
        gone = [change for change in undoing.files if change.after is None]
        for folder in sorted(_made(gone), key=len, reverse=True):
            remove_if_empty(self.root, folder)
        for change in todo:
            if change.after is not None:
                self._change(change)
        return left

    def _change(self, change: FileChange) -> None:
        try:
            if change.after is None:
                take_away(self.root, change.path)
            else:
                data = self.journal.get(change.after)
                if data is None:
                    raise StoreError(f"The journal has lost the old content of {change.path}.")
                put_back(self.root, change.path, data, self._mode(change))
        except OSError as error:
            raise failure(error, change.path, "write") from error
        passes("undo.file")

    def _mode(self, change: FileChange) -> int:
        """The mode that the file is to have: the one it has, unless the session changed it."""
        wanted = change.mode_after
        if wanted is None or wanted == change.mode_before:
            try:
                present = os.lstat(self.root / change.path).st_mode
            except OSError:
                return wanted or _REGULAR
            if wanted is None or stat.S_IFMT(wanted) == stat.S_IFMT(present):
                return present
        return wanted


def recovered(events: Sequence[Event], root: Path, journal: Journal) -> list[Body]:
    """Changes that a crash kept out of the log: announced, made, not recorded. Files that were on
    their way to their place are removed."""
    if not events:
        return []
    known = {
        (event.body.call_id, change.path)
        for event in events
        if isinstance(event.body, FilesChanged)
        for change in event.body.changes
    }
    found: dict[str, list[FileChange]] = {}
    announced = journal.intents(events[0].session).read()
    for intent in announced:
        if is_temporary(intent.temporary):
            take_away(root, posixpath.join(posixpath.dirname(intent.path), intent.temporary))
    for intent in _last_of_each(announced):
        if (intent.call_id, intent.path) in known:
            continue
        change = _happened(intent, root, journal)
        if change is not None:
            found.setdefault(intent.call_id, []).append(change)
    return [
        FilesChanged(call_id=call_id, changes=tuple(changes)) for call_id, changes in found.items()
    ]


def _last_of_each(announced: Iterable[Intent]) -> Iterable[Intent]:
    """One intent a call and path: from before the first to after the last."""
    found: dict[tuple[str, str], Intent] = {}
    for intent in announced:
        key = intent.call_id, intent.path
        first = found.get(key)
        if first is not None:
            intent = msgspec.structs.replace(
                intent, before=first.before, mode=first.mode, made=(*first.made, *intent.made)
            )
        found[key] = intent
    return found.values()


def _happened(intent: Intent, root: Path, journal: Journal) -> FileChange | None:
    """The announced change, where the file is as it was to become."""
    present = look(root, intent.path)
    digest = None if present is None else present.digest
    if (present is not None and digest is None) or digest != intent.after:
        return None
    data = None if intent.before is None else journal.get(intent.before)
    before = Side(data, intent.mode, intent.before)
    if present is None:
        return describe_one(intent.path, before, Side(None), made=intent.made)
    if present.data is not None:
        journal.put(present.data)
    return describe_one(intent.path, before, Side(present.data, present.mode), made=intent.made)


def _is_as(present: Present | None, change: FileChange, folders: Iterable[str]) -> bool:
    """Whether a file is as the session left it."""
    if change.before is None:
        if present is not None and present.is_folder:
            return change.path in folders
        return present is None
    if present is None or present.digest != change.before:
        return False
    was, now = change.mode_before, change.mode_after
    if was is None:
        return True
    if stat.S_IFMT(was) != stat.S_IFMT(present.mode):
        return False
    changes_mode = now is not None and kept_mode(now) != kept_mode(was)
    return not changes_mode or kept_mode(present.mode) == kept_mode(was)


def _is_done(present: Present | None, change: FileChange) -> bool:
    if change.after is None or present is None:
        return change.after is None and (present is None or present.is_folder)
    return present.digest == change.after


def _made(changes: Iterable[FileChange]) -> set[str]:
    return {folder for change in changes for folder in change.made}


def _conflict(paths: Sequence[str], found: History) -> UndoConflict:
    names = ", ".join(paths[:10]) + (f" and {len(paths) - 10} more" if len(paths) > 10 else "")
    return UndoConflict(
        f"Changed since the session left them: {names}. Nothing was touched.",
        hint="Put these changes aside (git stash, a copy), then undo again.",
        paths=tuple(paths),
        names=names,
        turns=len(found.turns),
    )
