"""Time travel for front ends: undo, redo, what has changed, and the turns to go back to.

What is named by `session` may be an id, the start of one, or None: the current conversation.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from croze.agent.rewind import Rewinder, Rewound
from croze.agent.session import Session
from croze.agent.undo import Changed, History, Turn, effects, history, total, unchanged
from croze.app.assemble import open_journal
from croze.store.changes import mentioned_contents
from croze.types.errors import UsageError
from croze.types.event import Event, SessionOpened
from croze.types.tool import FileChange
from croze.workspace.changes import Side, describe
from croze.workspace.journal import Journal, Trimmed

if TYPE_CHECKING:
    from croze.app.app import App


class Checkpoint(Struct, frozen=True):
    """A turn to go back to. `at` is in microseconds since the epoch; `undone` says that it is no part
    of the conversation now, `files_undone` that its changes of files don't hold."""

    turn: int
    at: int
    title: str
    files: int
    added: int
    removed: int
    undone: bool
    files_undone: bool
    calls: tuple["CallChange", ...] = ()


class CallChange(Struct, frozen=True):
    """A call that changed files; `lost` are paths that can't be put back."""

    call_id: str
    tool: str
    paths: tuple[str, ...]
    added: int
    removed: int
    undone: bool
    lost: tuple[str, ...] = ()


class UndoReport(Struct, frozen=True):
    """What an undo or redo did. `files` are the changes as they were made to the files just now.

    `lost` paths could not be put back, since nobody has their old content; `left` were changed after
    an interruption and left alone. `completed`: an interrupted undo was brought to its end.
    """

    session: str
    kind: str
    turns: tuple[int, ...]
    files: tuple[FileChange, ...]
    conversation: bool
    lost: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    completed: bool = False


async def undo(
    app: "App",
    session: str | None = None,
    *,
    turns: int = 1,
    call: str | None = None,
    files_only: bool = False,
) -> UndoReport:
    """Take back the last turns (files, conversation and todo list), or with `call` the files of one
    call. Raises SessionBusy with the pid where the session is being run, UndoConflict where a file has
    changed since (then nothing was touched), UsageError where there is nothing to undo."""
    with closing(await app.store.open_log(await chosen(app, session))) as log:
        rewinder = Rewinder(
            log=log,
            events=log.events,
            root=await root_of(app, log.session, log.events),
            journal=open_journal(app.config),
            new_id=app.store.source.uuid,
        )
        done = await rewinder.undo(turns=turns, call=call, files_only=files_only)
        return _report(log.session, done, log.events)


async def redo(app: "App", session: str | None = None) -> UndoReport:
    """Bring back what was undone last, where nothing was said or changed since. Raises as `undo`."""
    with closing(await app.store.open_log(await chosen(app, session))) as log:
        rewinder = Rewinder(
            log=log,
            events=log.events,
            root=await root_of(app, log.session, log.events),
            journal=open_journal(app.config),
            new_id=app.store.source.uuid,
        )
        return _report(log.session, await rewinder.redo(), log.events)


async def undo_live(
    session: Session, *, turns: int = 1, call: str | None = None, files_only: bool = False
) -> UndoReport:
    """`undo` in a session that this process runs; its watchers see the events."""
    done = await session.rewinder().undo(turns=turns, call=call, files_only=files_only)
    return _report(session.id, done, session.events)


async def redo_live(session: Session) -> UndoReport:
    """`redo` in a session that this process runs."""
    return _report(session.id, await session.rewinder().redo(), session.events)


async def diff(
    app: "App", session: str | None = None, *, turn: int | None = None, call: str | None = None
) -> tuple[FileChange, ...]:
    """What a session has changed and not undone, against its start; or what one turn or call did."""
    events = await app.store.read(await chosen(app, session))
    return changes_of(history(events), open_journal(app.config), turn=turn, call=call)


def changes_of(
    log: History, journal: Journal, *, turn: int | None = None, call: str | None = None
) -> tuple[FileChange, ...]:
    """Changes one after the other, summed up by file. What came to nothing is left out."""
    if call is not None:
        items = [item for name, item in log.changed.items() if name.startswith(call)]
        if not items:
            raise UsageError(
                f"No call {call!r} of this session has changed files.",
                hint="`croze checkpoints --calls` lists them.",
                code="unknown_call",
                call=call,
            )
    elif turn is not None:
        items = [log.changed[name] for name in turn_of(log, turn).calls]
    else:
        items = [item for item in log.changed.values() if item.call_id not in log.undone]
    changes = [change for item in items for change in item.changes]
    paths = [path for change in changes for path in _paths(change)]
    if len(paths) == len(set(paths)):
        return tuple(changes)
    return summed(changes, journal.get)


def summed(
    changes: Iterable[FileChange], content: Callable[[str], bytes | None]
) -> tuple[FileChange, ...]:
    """The changes as one change a file: an added file stays added, a moved one moved."""
    changes = tuple(changes)
    moved: dict[str, str] = {}
    for change in changes:
        if change.moved_from is not None:
            moved[change.path] = moved.get(change.moved_from, change.moved_from)
    sides = {}
    for path, effect in total(changes).effects.items():
        if effect.lost or not unchanged(effect):
            before, after = (
                Side(None if digest is None else content(digest), mode if digest else None, digest)
                for digest, mode in (
                    (effect.before, effect.mode_before or 0o100644),
                    (effect.after, effect.mode_after or 0o100644),
                )
            )
            if effect.lost and effect.before is None:
                before = Side(None, effect.mode_before or 0o100644)
            sides[path] = before, after
    return describe(sides, moved=moved)


async def checkpoints(app: "App", session: str | None = None) -> tuple[Checkpoint, ...]:
    """The turns of a session with what each changed, the oldest first."""
    log = history(await app.store.read(await chosen(app, session)))
    return tuple(_checkpoint(log, turn) for turn in log.turns)


def _checkpoint(log: History, turn: Turn) -> Checkpoint:
    items = [log.changed[name] for name in turn.calls]
    paths = {path for item in items for change in item.changes for path in _paths(change)}
    calls = tuple(_call(log, item) for item in items)
    return Checkpoint(
        turn=turn.number,
        at=turn.at,
        title=turn.title,
        files=len(paths),
        added=sum(call.added for call in calls),
        removed=sum(call.removed for call in calls),
        undone=log.is_hidden(turn),
        files_undone=bool(items) and not log.active(turn),
        calls=calls,
    )


def _call(log: History, item: Changed) -> CallChange:
    return CallChange(
        call_id=item.call_id,
        tool=item.tool,
        paths=tuple(change.path for change in item.changes),
        added=sum(change.added for change in item.changes),
        removed=sum(change.removed for change in item.changes),
        undone=item.call_id in log.undone,
        lost=tuple(change.path for change in item.changes if change.lost),
    )


def _paths(change: FileChange) -> list[str]:
    return [effect.path for effect in effects(change)]


def turn_of(log: History, number: int) -> Turn:
    if 1 <= number <= len(log.turns):
        return log.turns[number - 1]
    raise UsageError(
        f"There is no turn {number}; this session has {len(log.turns)}.",
        hint="`croze checkpoints` lists them.",
        code="no_turn",
        turn=number,
        turns=len(log.turns),
    )


async def chosen(app: "App", session: str | None) -> str:
    """The session that is meant. Raises UsageError where none is named and none is current."""
    if session is not None:
        return await app.conversations.resolve(session)
    current = await app.conversations.current(app.config.settings.store.default_namespace)
    if current is None:
        raise UsageError(
            "There is no current conversation here.",
            hint="Name one; `croze session list` shows them.",
            code="no_current",
        )
    return current


async def root_of(app: "App", session: str, events: Sequence[Event]) -> Path:
    """The folder that the session worked in: of a project with several work trees, its own one; of a
    sub-agent in a task workspace, that. The work of one with a work tree has come back to the project."""
    from croze.app.agent_tree import workspace_of

    place = await workspace_of(events, session, "", config=app.config, store=app.store)
    if place.kind == "task":
        return place.root
    opened = next((e.body for e in events if isinstance(e.body, SessionOpened)), None)
    root = Path(opened.project) if opened is not None and opened.project else None
    if root is None or root == app.config.project.root:
        return app.config.project.root
    if not root.is_dir():
        raise UsageError(
            f"The session's folder {root} is gone.",
            hint="Nothing can be put back there.",
            code="session_folder_gone",
            path=str(root),
        )
    return root


def _report(session: str, done: Rewound, events: Iterable[Event]) -> UndoReport:
    then = done.undoing.then
    left = set(done.left)
    before = history(event for event in events if event.body != then)
    return UndoReport(
        session=session,
        kind=then.kind,
        turns=then.turns,
        files=tuple(change for change in done.undoing.files if change.path not in left),
        conversation=before.hidden != then.hidden,
        lost=done.lost,
        left=done.left,
        completed=done.completed,
    )


async def tidy(app: "App") -> Trimmed | None:
    """Bring the journal under its quota where it has grown over it."""
    journal = open_journal(app.config)
    if not journal.is_over_quota():
        return None
    mentioned = await app.store.database.aside(mentioned_contents)
    return await asyncio.to_thread(journal.trim, mentioned)
