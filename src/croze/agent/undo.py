"""What a session has changed, turn by turn and call by call; what is undone; and what an undo must do.

All of it is a fold over the log: nothing here touches a file.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec
from msgspec import Struct

from croze.text.tokens import estimate
from croze.types.errors import UsageError
from croze.types.event import (
    Event,
    FilesChanged,
    ModelCalled,
    Stopped,
    TodoItem,
    TodoSet,
    ToolStarted,
    Undoing,
    Undone,
    UserSaid,
)
from croze.types.parts import Text
from croze.types.tool import FileChange

TITLE = 200


@dataclass(slots=True)
class Turn:
    """From a user's word to the end of the work on it: `first` and `last` seq, `at` in microseconds."""

    number: int
    first: int
    last: int
    at: int
    title: str
    open: bool = True
    calls: list[str] = field(default_factory=list)


class Changed(Struct, frozen=True):
    """The files that one call changed, and the turn that it belongs to."""

    call_id: str
    tool: str
    turn: int
    changes: tuple[FileChange, ...]


class Effect(Struct, frozen=True):
    """What happened to one path: hashes and modes before and after."""

    path: str
    before: str | None
    after: str | None
    mode_before: int | None
    mode_after: int | None
    lost: bool = False
    made: tuple[str, ...] = ()


class Step(Struct, frozen=True):
    """One undo that can be redone: what it did, and how everything stood before it."""

    undoing: Undoing
    hidden: tuple[tuple[int, int], ...]
    calls: tuple[str, ...]
    todo: tuple[TodoItem, ...]


@dataclass(slots=True)
class History:
    """The fold. `feed` takes the log's events in order."""

    turns: list[Turn] = field(default_factory=list)
    changed: dict[str, Changed] = field(default_factory=dict)
    seq: int = 0
    hidden: tuple[tuple[int, int], ...] = ()
    undone: tuple[str, ...] = ()
    redo: list[Step] = field(default_factory=list)
    unfinished: Undoing | None = None
    todo: tuple[TodoItem, ...] = ()
    todos: list[tuple[int, tuple[TodoItem, ...]]] = field(default_factory=list)
    _tools: dict[str, str] = field(default_factory=dict)

    def feed(self, event: Event) -> None:
        self.seq = event.seq
        match event.body:
            case UserSaid() as said:
                self._said(event, said)
            case ModelCalled(purpose="main") if self.turns and not self.is_hidden(self.turns[-1]):
                self.turns[-1].open = True  # a turn that had ended is taken up again
            case ToolStarted(call_id=call_id, name=name):
                self._tools[call_id] = name
            case FilesChanged() as found:
                self._files(found)
            case TodoSet(items=items):
                self._set_todo(event.seq, items)
            case Undoing() as undoing:
                self.unfinished = undoing
            case Undone() as done:
                self._undone(event.seq, done)
            case Stopped() if self.turns and self.turns[-1].open:
                self.turns[-1].last, self.turns[-1].open = event.seq, False
            case _:
                pass
        if self.turns and self.turns[-1].open:
            self.turns[-1].last = event.seq

    def _said(self, event: Event, said: UserSaid) -> None:
        self.redo.clear()
        if self.turns and self.turns[-1].open:
            return
        text = " ".join(part.text for part in said.parts if isinstance(part, Text))
        title = " ".join(text[: TITLE * 4].split())[:TITLE]
        self.turns.append(Turn(len(self.turns) + 1, event.seq, event.seq, event.at, title))

    def _files(self, found: FilesChanged) -> None:
        self.redo.clear()
        earlier = self.changed.get(found.call_id)
        turn = self.turns[-1] if self.turns else None
        if earlier is None and turn is not None:
            turn.calls.append(found.call_id)
        self.changed[found.call_id] = Changed(
            call_id=found.call_id,
            tool=self._tools.get(found.call_id, ""),
            turn=earlier.turn if earlier else turn.number if turn else 0,
            changes=(*(earlier.changes if earlier else ()), *found.changes),
        )

    def _set_todo(self, seq: int, items: tuple[TodoItem, ...]) -> None:
        self.todo = items
        self.todos.append((seq, items))

    def _undone(self, seq: int, done: Undone) -> None:
        undoing = self.unfinished or Undoing(undo_id=done.undo_id, files=(), then=done)
        self.unfinished = None
        if done.kind == "undo":
            self.redo.append(Step(undoing, self.hidden, self.undone, self.todo))
        elif self.redo:
            self.redo.pop()
        self.hidden, self.undone = done.hidden, done.calls
        if done.todo is not None:
            self._set_todo(seq, done.todo)

    def is_hidden(self, turn: Turn) -> bool:
        return any(first <= turn.first <= last for first, last in self.hidden)

    def active(self, turn: Turn) -> list[Changed]:
        """The changes of a turn that hold."""
        return [self.changed[call] for call in turn.calls if call not in self.undone]

    def todo_before(self, seq: int) -> tuple[TodoItem, ...]:
        return next((items for at, items in reversed(self.todos) if at < seq), ())


def history(events: Iterable[Event]) -> History:
    found = History()
    for event in events:
        found.feed(event)
    return found


def effects(change: FileChange) -> list[Effect]:
    """A change path by path: a move is a removal and an addition."""
    if change.moved_from is None:
        return [
            Effect(
                change.path,
                change.before,
                change.after,
                change.mode_before,
                change.mode_after,
                change.lost,
                change.made,
            )
        ]
    return [
        Effect(change.moved_from, change.before, None, change.mode_before, None, change.lost),
        Effect(change.path, None, change.after, None, change.mode_after, change.lost, change.made),
    ]


class Sum(Struct, frozen=True):
    """What several changes amount to, by path; `broken` are paths that somebody else changed between
    two of them."""

    effects: dict[str, Effect]
    broken: tuple[str, ...]


def total(changes: Iterable[FileChange]) -> Sum:
    """Changes one after the other: each path from how it stood before the first to after the last."""
    found: dict[str, Effect] = {}
    broken: dict[str, None] = {}
    for change in changes:
        for new in effects(change):
            old = found.get(new.path)
            if old is None:
                found[new.path] = new
                continue
            if old.after != new.before and not (old.lost or new.lost):
                broken[new.path] = None
            found[new.path] = Effect(
                path=new.path,
                before=old.before,
                after=new.after,
                mode_before=old.mode_before,
                mode_after=new.mode_after,
                lost=old.lost or new.lost,
                made=(*old.made, *new.made),
            )
    return Sum(found, tuple(broken))


class Plan(Struct, frozen=True):
    """What an undo or redo is to do. `lost` are paths whose old content nobody has, `broken` those that
    somebody else changed between two of the calls."""

    undoing: Undoing
    lost: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


def plan_undo(
    log: History, undo_id: str, *, turns: int = 1, call: str | None = None, files_only: bool = False
) -> Plan:
    """Take back the last `turns` turns that hold, or the files of one call. Raises UsageError where
    there is nothing to undo."""
    if call is not None:
        return _plan_call(log, undo_id, call)
    wanted = [
        turn for turn in log.turns if (log.active(turn) if files_only else not log.is_hidden(turn))
    ][-turns:]
    if not wanted:
        raise UsageError(
            "There is nothing to undo in this session.",
            hint="`croze checkpoints` lists its turns.",
            code="nothing_to_undo",
        )
    changed = [
        item for turn in log.turns if turn.number >= wanted[0].number for item in log.active(turn)
    ]
    hidden = log.hidden
    todo: tuple[TodoItem, ...] | None = None
    if not files_only:
        hidden = (
            *(span for span in hidden if span[0] < wanted[0].first),
            (wanted[0].first, log.seq),
        )
        todo = log.todo_before(wanted[0].first)
    numbers = tuple(turn.number for turn in wanted)
    files, lost, broken = _reversed(changed)
    word = _told(files, f"turn {', '.join(map(str, numbers))}") if files_only else ""
    done = Undone(
        undo_id=undo_id,
        kind="undo",
        turns=numbers,
        hidden=hidden,
        calls=(*log.undone, *(item.call_id for item in changed)),
        todo=todo,
        text=word,
        tokens=estimate(word),
    )
    return Plan(Undoing(undo_id=undo_id, files=files, then=done), lost, broken)


def _plan_call(log: History, undo_id: str, call: str) -> Plan:
    found = [item for name, item in log.changed.items() if name.startswith(call)]
    exact = [item for item in found if item.call_id == call]
    if len(exact or found) != 1:
        raise UsageError(
            f"No call {call!r} of this session has changed files."
            if not found
            else f"Several calls of this session begin with {call!r}.",
            hint="`croze checkpoints --calls` lists them.",
            code="unknown_call",
            call=call,
        )
    item = (exact or found)[0]
    if item.call_id in log.undone:
        raise UsageError(
            f"The changes of call {item.call_id} are undone already.",
            hint="`croze redo` brings back what was undone last.",
            code="undone_already",
            call=item.call_id,
        )
    files, lost, broken = _reversed([item])
    word = _told(files, f"the call {item.tool or item.call_id}")
    done = Undone(
        undo_id=undo_id,
        kind="undo",
        turns=(item.turn,),
        hidden=log.hidden,
        calls=(*log.undone, item.call_id),
        text=word,
        tokens=estimate(word),
    )
    return Plan(Undoing(undo_id=undo_id, files=files, then=done), lost, broken)


def plan_redo(log: History, undo_id: str) -> Plan:
    """Bring back what was undone last. Raises UsageError where nothing was, or something was done since."""
    if not log.redo:
        raise UsageError(
            "There is nothing to redo in this session.",
            hint="Only what was undone last, with nothing done since, can be brought back.",
            code="nothing_to_redo",
        )
    step = log.redo[-1]
    files = tuple(_mirrored(change) for change in step.undoing.files)
    same_talk = step.hidden == log.hidden
    word = _told(files, "what the user had undone", again=True) if same_talk else ""
    done = Undone(
        undo_id=undo_id,
        kind="redo",
        turns=step.undoing.then.turns,
        hidden=step.hidden,
        calls=step.calls,
        todo=None if same_talk else step.todo,
        text=word,
        tokens=estimate(word),
    )
    return Plan(Undoing(undo_id=undo_id, files=files, then=done))


def _reversed(
    changed: Sequence[Changed],
) -> tuple[tuple[FileChange, ...], tuple[str, ...], tuple[str, ...]]:
    """The way back from these changes: the files to put back, the lost and the broken paths."""
    found = total(change for item in changed for change in item.changes)
    files = tuple(
        FileChange(
            path=path,
            kind=kind_of(effect.after, effect.before),
            before=effect.after,
            after=effect.before,
            mode_before=effect.mode_after,
            mode_after=effect.mode_before,
            made=effect.made,
        )
        for path, effect in found.effects.items()
        if not effect.lost and not unchanged(effect)
    )
    lost = tuple(path for path, effect in found.effects.items() if effect.lost)
    return files, lost, found.broken


def unchanged(effect: Effect) -> bool:
    """Whether a path came back to what it was."""
    modes = effect.mode_before, effect.mode_after
    return effect.before == effect.after and (None in modes or modes[0] == modes[1])


def kind_of(before: str | None, after: str | None) -> Literal["added", "modified", "deleted"]:
    if before is None:
        return "added"
    return "deleted" if after is None else "modified"


def _mirrored(change: FileChange) -> FileChange:
    return msgspec.structs.replace(
        change,
        kind=kind_of(change.after, change.before),
        before=change.after,
        after=change.before,
        mode_before=change.mode_after,
        mode_after=change.mode_before,
    )


def _told(files: Sequence[FileChange], what: str, *, again: bool = False) -> str:
    """What the model is told where its conversation stays as it is."""
    if not files:
        return ""
    names = ", ".join(change.path for change in files[:20])
    more = f" and {len(files) - 20} more" if len(files) > 20 else ""
    verb = "brought back" if again else "undone the file changes of"
    return (
        f"The user has {verb} {what}. These files are different now: {names}{more}. "
        "Read them again before you change them."
    )
