"""What logs say of sub-agents: what one has done, which are open, what an interrupted call left behind."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from croze.agent.budget import Spent
from croze.text.display import one_line
from croze.types.event import (
    Body,
    ChildClosed,
    ChildOpened,
    Event,
    FilesChanged,
    ModelCalled,
    ModelSaid,
    Stopped,
)
from croze.types.model import Usage
from croze.types.parts import Text
from croze.types.team import ChildReport, Merged

if TYPE_CHECKING:
    from croze.types.agent import StopReason

DIED = "The process that it worked in ended."
NOTHING = "It was stopped before it had begun."
_LEFT = 1_500
"""Characters of an answer that an interrupted call's result repeats."""


@dataclass(slots=True)
class Tally:
    """Counts a sub-agent's events as they come: its own use, and `total` with its own sub-agents'."""

    own: Spent = field(default_factory=Spent)
    total: Spent = field(default_factory=Spent)
    usage: Usage = field(default_factory=Usage)
    files: dict[str, None] = field(default_factory=dict)
    said: str = ""
    stopped: Stopped | None = None
    refused: int = 0
    _step: int = 0
    _first: bool = True

    def take(self, event: Event) -> None:
        match event.body:
            case ModelCalled(purpose="main") as body:
                if body.step != self._step:
                    self._step = body.step
                    self._add(1, 0.0)
            case ModelSaid() as body:
                self._add(0, body.cost.total)
                self._use(body.usage)
                if body.purpose == "main":
                    text = "".join(p.text for p in body.parts if isinstance(p, Text)).strip()
                    self.said = text or self.said
            case ChildClosed(report=report):
                self.total.add(report.steps, report.cost)
                self._use(report.usage)
            case FilesChanged():
                self.files.update(dict.fromkeys(each.path for each in event.body.changes))
            case Stopped() as body:
                self.stopped = body
                self.refused += body.refused
            case _:
                pass

    @property
    def answer(self) -> str:
        """What it said at the end of its last turn; else its last words."""
        if self.stopped is not None and self.stopped.reason == "done":
            return self.stopped.text
        return self.said

    def _add(self, steps: int, cost: float | None) -> None:
        self.own.add(steps, cost)
        self.total.add(steps, cost)

    def _use(self, usage: Usage) -> None:
        self.usage = usage if self._first else _sum(self.usage, usage)
        self._first = False


def tally_of(events: Iterable[Event], since: int = 0) -> Tally:
    """The tally of a log, of what came after the event `since`."""
    tally = Tally()
    for event in events:
        if event.seq > since:
            tally.take(event)
    return tally


def report_of(
    opened: ChildOpened,
    tally: Tally,
    *,
    seconds: float = 0.0,
    error: str = "",
    died: bool = False,
) -> ChildReport:
    """How a sub-agent ended, by its tally. `error` says what broke it, `died` that its process did."""
    stopped = tally.stopped
    reason: StopReason | Literal["died"] = "died"
    if not died and error:
        reason = "failed"
    elif not died and stopped is None:
        reason, error = "cancelled", NOTHING
    elif not died and stopped is not None:
        reason = stopped.reason
        error = "" if reason == "done" else stopped.text
    ok = reason == "done"
    files = tuple(tally.files) if opened.isolation == "shared" else ()
    return ChildReport(
        agent=opened.agent,
        session=opened.child,
        ok=ok,
        text=tally.answer,
        reason=reason,
        partial=not ok and bool(tally.answer or files),
        error=DIED if died else error,
        label=opened.label,
        steps=tally.total.steps,
        seconds=round(seconds, 3),
        cost=tally.total.cost,
        usage=tally.usage,
        files=files,
        refused=tally.refused,
    )


def with_merge(report: ChildReport, merged: Merged, notes: str) -> ChildReport:
    """The report of one that worked in a tree of its own, with what became of its work."""
    if merged.conflicts:
        count = len(merged.conflicts)
        error = f"{count} of its files could not be merged." if report.ok else report.error
        report = replace(report, ok=False, partial=True, error=error)
    return replace(report, files=merged.applied, notes=notes)


def refused_report(opened: ChildOpened, error: BaseException) -> ChildReport:
    """A sub-agent that could not begin, or was stopped before it had."""
    stopped = not isinstance(error, Exception)
    return ChildReport(
        agent=opened.agent,
        session=opened.child,
        ok=False,
        reason="cancelled" if stopped else "refused",
        error=NOTHING if stopped else str(error) or type(error).__name__,
        label=opened.label,
        cost=0.0,
    )


class Known(Struct, frozen=True):
    """A sub-agent as its caller's log has it; `report` None: it is open, or its process died. `seq` is
    the `ChildOpened`'s."""

    opened: ChildOpened
    seq: int
    report: ChildReport | None = None


def children_of(events: Iterable[Event], call_id: str | None = None) -> list[Known]:
    """The sub-agents that were opened (by one call), in their order. One that was taken up again comes
    once for each time."""
    found: list[Known] = []
    at: dict[str, int] = {}
    for event in events:
        match event.body:
            case ChildOpened() as body if call_id is None or body.call_id == call_id:
                at[body.child] = len(found)
                found.append(Known(body, event.seq))
            case ChildClosed() as body if body.child in at:
                place = at.pop(body.child)
                found[place] = Known(found[place].opened, found[place].seq, body.report)
            case _:
                pass
    return found


def unclosed(events: Iterable[Event]) -> list[Known]:
    """The sub-agents whose end is not in the log."""
    return [known for known in children_of(events) if known.report is None]


def left_behind(events: Iterable[Event], call_id: str) -> str:
    """What the sub-agents of an interrupted call have done, for the model; empty where it had none."""
    lines: list[str] = []
    for known in children_of(events, call_id):
        opened, report = known.opened, known.report
        name = f"{opened.agent} ({opened.label})" if opened.label else opened.agent
        state = "it was working" if report is None else f"{report.reason}, {report.steps} steps"
        lines.append(f"- {name}, session {opened.child[:8]}: {state}")
        if report is None:
            continue
        if report.files:
            lines.append(f"  changed: {one_line(', '.join(report.files), 400)}")
        if report.text:
            lines.append(f"  said: {one_line(report.text, _LEFT)}")
    if not lines:
        return ""
    return "\n".join(("What its sub-agents had done when it was interrupted:", *lines))


def missing_changes(
    child: Sequence[Event], caller: Sequence[Event], opened: ChildOpened
) -> list[FilesChanged]:
    """A sub-agent's changes of files that its caller's log does not have yet, as that one records them."""
    if opened.isolation != "shared":
        return []  # they are no files of the caller's
    left = [event.body for event in caller if isinstance(event.body, FilesChanged)]
    missing = []
    for event in child:
        if event.seq > opened.since and isinstance(event.body, FilesChanged):
            body = mirrored(event.body, opened)
            if body in left:
                left.remove(body)
            else:
                missing.append(body)
    return missing


def died(known: Known, child: Sequence[Event], caller: Sequence[Event]) -> list[Body]:
    """What a log is to say of a sub-agent whose process died, by the log of that one: its changes of
    files, and its end."""
    report = report_of(known.opened, tally_of(child, known.opened.since), died=True)
    changes = missing_changes(child, caller, known.opened)
    return [*changes, ChildClosed(child=known.opened.child, report=report)]


def mirrored(changed: FilesChanged, opened: ChildOpened) -> FilesChanged:
    """A sub-agent's changes as its caller's log records them: by the call that wanted it (where none did,
    under the sub-agent's own id), with whose they are."""
    changes = tuple(each if each.by else replace(each, by=opened.child) for each in changed.changes)
    return FilesChanged(call_id=opened.call_id or opened.child, changes=changes)


def _sum(first: Usage, second: Usage) -> Usage:
    def add(a: int | None, b: int | None) -> int | None:
        return None if a is None or b is None else a + b

    return Usage(
        input=add(first.input, second.input),
        output=add(first.output, second.output),
        cached=add(first.cached, second.cached),
        cache_write=add(first.cache_write, second.cache_write),
        thinking=add(first.thinking, second.thinking),
    )
