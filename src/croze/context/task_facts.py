"""The ends of background programs as facts: each is told once, with the next request."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from croze.text.display import one_line
from croze.text.tokens import estimate
from croze.types.event import BackgroundTask, Event, FactAdded, UserSaid

if TYPE_CHECKING:
    from croze.context.gather import GatherState

TASKS = "background"
MOST_NOTICES = 64
"""Ends that are told in a turn; of the rest only the number."""

_COMMAND = 100
_LAST = 160


async def gather_tasks(state: "GatherState") -> Sequence[FactAdded]:
    """What has ended since the last request, unless a result has told it already."""
    ended: dict[str, BackgroundTask] = {}
    for event in state.events[state.since :]:
        body = event.body
        if isinstance(body, BackgroundTask):
            if body.state == "running":
                ended.pop(body.task_id, None)
            elif body.state != "killed" and not body.told:
                ended[body.task_id] = body
        elif isinstance(body, FactAdded) and body.key == TASKS:
            for task_id in body.data.get("tasks", ()):
                ended.pop(task_id, None)
    if not ended:
        return ()
    room = max(0, MOST_NOTICES - _told_in_turn(state.events))
    tasks = list(ended.values())
    lines = [notice(task) for task in tasks[:room]]
    if len(tasks) > room:
        more = len(tasks) - room
        lines.append(f"{more} more {'has' if more == 1 else 'have'} ended: background_task list")
    text = "\n".join(("<background_tasks>", *lines, "</background_tasks>"))
    fact = FactAdded(
        key=TASKS,
        message_id=state.source.uuid(),
        text=text,
        layer="current",
        reason="programs in the background have ended",
        origin="background",
        tokens=estimate(text),
        data={"tasks": list(ended), "notices": min(room, len(tasks))},
    )
    return (fact,)


def notice(task: BackgroundTask) -> str:
    """One line on how a program ended."""
    command = one_line(task.command, _COMMAND)
    parts = [f"{task.task_id} ({command}) {how(task)}"]
    if task.last:
        last = one_line(task.last, _LAST).replace("<", "‹")
        parts.append(f"{task.size:,} bytes of output, the last line: {last}")
    return "; ".join(parts)


def how(task: BackgroundTask) -> str:
    """How it ended, in words."""
    after = "" if task.seconds is None else f" after {task.seconds:.1f} s"
    if task.state == "lost":
        return "ended with the process that ran it; how it ended is unknown"
    if task.state in ("killed", "closed"):
        by = "by you" if task.state == "killed" else "when the conversation was left"
        return f"was ended {by}{after}"
    if task.error:
        return f"failed{after}: {one_line(task.error, _LAST)}"
    if task.signal is not None:
        return f"was killed by {task.signal}{after}"
    return f"ended with exit code {task.exit_code}{after}"


def _told_in_turn(events: Sequence[Event]) -> int:
    told = 0
    for event in reversed(events):
        if isinstance(event.body, UserSaid):
            break
        if isinstance(event.body, FactAdded) and event.body.key == TASKS:
            notices = event.body.data.get("notices", 0)
            told += notices if isinstance(notices, int) else 0
    return told
