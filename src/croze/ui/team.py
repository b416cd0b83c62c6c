"""What sub-agents do, a line each: shown under their names, below those who called them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from croze.text.display import one_line
from croze.types.event import (
    Body,
    ChildClosed,
    ChildOpened,
    Event,
    ModelSaid,
    Notice,
    Retried,
    ToolReturned,
    ToolStarted,
)
from croze.types.news import ChildNews
from croze.types.parts import Text
from croze.types.stream import Delta
from croze.types.team import HUB, ChildReport, TeamSaid
from croze.ui.calls import outcome, subject_of
from croze.ui.cli.output import dollars
from croze.ui.i18n import _
from croze.ui.sums import counted_files, counted_steps

if TYPE_CHECKING:
    from croze.app.family import Member

Line = tuple[str, str]
"""A line and its style: dim, yellow, red, or none."""

OPEN = "open"
_TASK = 120


class TeamView:
    """Remembers the names of a session's sub-agents. Two of the same agent at once are told apart by
    their labels, else by a number. With `words` what they say is shown too."""

    def __init__(self, *, words: bool = False) -> None:
        self._words = words
        self._names: dict[str, str] = {}
        self._open: dict[str, str] = {}
        self._subjects: dict[tuple[str, str], str] = {}

    def lines(self, item: Event | Delta | ChildNews, width: int = 160) -> Iterator[Line]:
        """What there is to show of `item`."""
        if isinstance(item, Event):
            yield from self._own(item.body, "", width)
        elif isinstance(item, ChildNews) and isinstance(item.item, Event):
            name = self.name(item)
            yield from self._own(item.item.body, name, width)
            yield from self._did(item.path[-1][0], name, item.item.body, width)
        elif isinstance(item, ChildNews) and _waits(item.item):
            yield f"  {self.name(item)} · {_('waits for the command of another agent')}", "dim"

    def name(self, news: ChildNews) -> str:
        """How the sub-agent that the news is of is called: its callers' names before its own."""
        return " › ".join(self._names.get(session, agent) for session, agent in news.path)

    def _own(self, body: Body, caller: str, width: int) -> Iterator[Line]:
        """The begin and the end of a session's sub-agents."""
        if isinstance(body, ChildOpened):
            name = self._named(body)
            shown = f"{caller} › {name}" if caller else name
            if body.label == HUB:  # what it was told stands above
                yield f"◆ {shown}", ""
                return
            task = one_line(body.task, min(_TASK, max(20, width - len(shown) - 6)))
            yield f"◆ {shown}: {task}", ""
        elif isinstance(body, ChildClosed):
            self._open.pop(body.child, None)
            name = self._names.get(body.child, body.report.agent)
            shown = f"{caller} › {name}" if caller else name
            if body.report.label == HUB and body.report.ok:
                return  # what it says comes next
            yield f"◇ {shown}: {_ended(body.report)}", "" if body.report.ok else "yellow"
        elif isinstance(body, TeamSaid):
            yield _said(body, width), "yellow" if body.error else ""

    def _named(self, opened: ChildOpened) -> str:
        labelled = opened.label and opened.label != HUB
        name = f"{opened.agent} ({opened.label})" if labelled else opened.agent
        number, wanted = 2, name
        while wanted in self._open.values():
            wanted, number = f"{name} {number}", number + 1
        self._open[opened.child] = self._names[opened.child] = wanted
        return wanted

    def _did(self, session: str, name: str, body: Body, width: int) -> Iterator[Line]:
        room = max(20, width - len(name) - 6)
        match body:
            case ToolStarted():
                self._subjects[session, body.call_id] = subject_of(body.args)
            case ToolReturned():
                subject = self._subjects.pop((session, body.call_id), "")
                said = one_line(outcome(body, subject), max(20, room - len(body.name)))
                sign = "" if body.ok else "✗ "
                yield f"  {name} · {sign}{body.name} {said}".rstrip(), "dim"
            case Retried():
                said = one_line(body.message, room)
                text = _(
                    "{message}; next try in {delay} s", message=said, delay=f"{body.delay:.1f}"
                )
                yield f"  {name} · {text}", "yellow"
            case Notice(level="warning" | "error") if body.code != "tools_refused":
                style = "red" if body.level == "error" else "yellow"
                yield f"  {name} · {one_line(body.text, room)}", style
            case ModelSaid(purpose="main") if self._words:
                text = "".join(part.text for part in body.parts if isinstance(part, Text)).strip()
                for line in text.splitlines():
                    yield f"  {name} │ {line}", "dim"
            case _:
                pass


def _said(said: TeamSaid, width: int) -> str:
    """Something that one agent says to another or to a group; without a sender it is the hub's word."""
    to = said.to or said.group
    lead = f"{said.sender} → {to}" if said.sender else to
    return one_line(f"{lead}: {said.text or said.error}", max(40, width - 8))


def family_lines(member: "Member", width: int, lead: str = "", below: str = "") -> Iterator[str]:
    """A conversation and its sub-agents as a tree, a line each."""
    name = f"{member.agent} ({member.label})" if member.label else member.agent
    state = _("open") if member.state == OPEN else state_of(member.state)
    facts = [member.session[:8], state, counted_steps(member.steps), dollars(member.cost)]
    if member.files:
        facts.append(counted_files(len(member.files)))
    shown = f"{lead}{name} · {' · '.join(facts)}"
    task = one_line(member.task, max(20, width - len(shown) - 3))
    yield f"{shown} · {task}"
    for at, child in enumerate(member.children):
        last = at == len(member.children) - 1
        yield from family_lines(
            child,
            width,
            f"{below}{'└── ' if last else '├── '}",
            f"{below}{'    ' if last else '│   '}",
        )


def _waits(item: Event | Delta) -> bool:
    return isinstance(item, Delta) and item.kind == "phase" and item.name == "wait"


def state_of(reason: str) -> str:
    """How a sub-agent ended, in a word or two."""
    states = {
        "done": _("done"),
        "cancelled": _("stopped"),
        "steps": _("its steps are used up"),
        "seconds": _("its time is used up"),
        "cost": _("its money is used up"),
        "refused": _("could not begin"),
        "died": _("its process ended"),
    }
    return states.get(reason, _("failed"))


def _ended(report: ChildReport) -> str:
    """How a sub-agent ended, in a few words."""
    parts = [state_of("done" if report.ok else report.reason)]
    if report.session and report.reason != "refused":
        parts.append(counted_steps(report.steps))
    if report.files:
        parts.append(counted_files(len(report.files)))
    if report.cost is None or report.cost > 0:
        parts.append(dollars(report.cost))
    if report.error and not report.ok:
        parts.append(one_line(report.error, 160))
    return " · ".join(parts)
