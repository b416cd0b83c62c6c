"""What was done in a stretch of the log, as plain facts: the ground of receipts and of summaries by code."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from croze.context.kinds import command_of, kind_of, path_of, unwrapped
from croze.types.event import (
    Compacted,
    Event,
    FilesChanged,
    ModelSaid,
    TodoItem,
    TodoSet,
    ToolReturned,
    Undone,
    UserSaid,
)
from croze.types.parts import Text, ToolCall
from croze.types.tool import FileChange


@dataclass(slots=True)
class FileRecord:
    """A changed file: lines added and removed in all, what became of it, and the message of the last
    result that changed it."""

    path: str
    kind: str
    added: int = 0
    removed: int = 0
    id: str = ""


@dataclass(slots=True)
class RunRecord:
    """A command and how each run of it ended, oldest first; `id` is the last run's message."""

    command: str
    outcomes: list[str] = field(default_factory=list)
    ok: bool = True
    id: str = ""


@dataclass(slots=True)
class Failure:
    """A call that failed and has not succeeded since."""

    title: str
    reason: str
    id: str


@dataclass(slots=True)
class Account:
    """The facts. Dictionaries keep the order in which their entries were last touched.

    `requests` are the user's messages (id, text), `read` maps paths to the message that last showed
    them, `failures` are open ones, `counts` says how many calls of each kind ran, `actions` what each
    was and how it ended. `since` is the event up to which the log's last summary reaches.
    """

    requests: list[tuple[str, str]] = field(default_factory=list)
    read: dict[str, str] = field(default_factory=dict)
    files: dict[str, FileRecord] = field(default_factory=dict)
    runs: dict[str, RunRecord] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    actions: list[str] = field(default_factory=list)
    todo: tuple[TodoItem, ...] = ()
    reply: str = ""
    since: int = 0

    @property
    def pending(self) -> list[TodoItem]:
        """What of the todo list is open: the item in work first."""
        items = [item for item in self.todo if item.status != "completed"]
        return sorted(items, key=lambda item: item.status != "in_progress")


def account(events: Iterable[Event], until: int) -> Account:
    """The account of the log up to the event `until`, without what is undone."""
    log = [event for event in events if event.seq <= until]
    accounting = Accounting(last_undone(log))
    for event in log:
        accounting.feed(event)
    return accounting.found


class Accounting:
    """The fold behind `account`, for a log that only grows; `undone` says what of it doesn't count."""

    def __init__(self, undone: Undone | None = None) -> None:
        self.found = Account()
        self._undone = undone
        self._calls: dict[str, tuple[str, dict[str, Any]]] = {}
        self._changed: dict[str, list[FileRecord]] = {}
        self._returned: dict[str, str] = {}

    def feed(self, event: Event) -> None:
        found, undone = self.found, self._undone
        if undone is not None and undone.hides(event.seq):
            return
        match event.body:
            case UserSaid() as body:
                found.requests.append((body.message_id, user_text(body)))
            case ModelSaid(purpose="main") as body:
                text = said_text(body)
                found.reply = text or found.reply
                for part in body.parts:
                    if isinstance(part, ToolCall):
                        name, args = unwrapped(part.name, part.args)
                        self._calls[part.id] = name, dict(args)
            case ToolReturned() as body:
                name, args = self._calls.get(body.call_id, (body.name, {}))
                self._returned[body.call_id] = body.message_id
                for record in self._changed.pop(body.call_id, ()):
                    record.id = body.message_id
                _take_result(found, body, name, args)
            case FilesChanged() as body:
                if undone is None or body.call_id not in undone.calls:
                    for change in body.changes:
                        self._take_change(change, body.call_id)
            case TodoSet() as body:
                found.todo = body.items
            case Undone(todo=tuple() as items):
                found.todo = items
            case Compacted() as body if body.until:
                found.since = body.until
            case _:
                pass

    def _take_change(self, change: FileChange, call_id: str) -> None:
        files = self.found.files
        known = files.pop(change.path, None) or FileRecord(change.path, change.kind)
        if change.moved_from is not None:
            moved = files.pop(change.moved_from, None)
            if moved is not None:
                known.added, known.removed = moved.added, moved.removed
        if known.kind != "added" or change.kind == "deleted":
            known.kind = change.kind
        known.added += change.added
        known.removed += change.removed
        known.id = self._returned.get(call_id, "")
        if not known.id:  # changes may be recorded before their call's result
            self._changed.setdefault(call_id, []).append(known)
        files[change.path] = known


def last_undone(events: Iterable[Event]) -> Undone | None:
    """The last `Undone`: it says all that is undone."""
    last = None
    for event in events:
        if isinstance(event.body, Undone):
            last = event.body
    return last


def user_text(body: UserSaid) -> str:
    return "\n".join(part.text for part in body.parts if isinstance(part, Text))


def said_text(body: ModelSaid) -> str:
    return "".join(part.text for part in body.parts if isinstance(part, Text)).strip()


def outcome_of(body: ToolReturned) -> str:
    """How a call ended, in a few words."""
    if isinstance(body.data, dict):
        code, signal = body.data.get("exit_code"), body.data.get("signal")
        if isinstance(code, int):
            return f"exit {code}"
        if signal:
            return f"killed by {signal}"
    if body.message:
        return body.message
    if body.ok:
        return "ok"
    return body.text.strip().partition("\n")[0] or body.code or "failed"


def title_of(name: str, args: dict[str, Any]) -> str:
    """A call in a few words: the tool and what it was about."""
    kind = kind_of(name, args)
    what = command_of(args) if kind == "shell" else path_of(args)
    if not what:
        for key in ("regex", "pattern", "query", "url", "name"):
            if isinstance(args.get(key), str):
                what = args[key]
                break
    what = " ".join(what.split())
    return f"{name} {what}".strip()


def _take_result(found: Account, body: ToolReturned, name: str, args: dict[str, Any]) -> None:
    kind = kind_of(name, args)
    found.counts[kind] = found.counts.get(kind, 0) + 1
    title = title_of(name, args)
    outcome = outcome_of(body)
    found.actions.append(f"{title}: {outcome}" if kind != "read" or not body.ok else title)
    if kind == "read" and body.ok:
        for path in body.observed or ([path_of(args)] if path_of(args) else []):
            found.read.pop(path, None)
            found.read[path] = body.message_id
    if kind == "shell":
        command = " ".join(command_of(args).split())
        run = found.runs.pop(command, None) or RunRecord(command)
        run.outcomes.append(outcome)
        run.ok, run.id = body.ok, body.message_id
        found.runs[command] = run
    found.failures.pop(title, None)
    if not body.ok:
        found.failures[title] = Failure(title, outcome, body.message_id)
