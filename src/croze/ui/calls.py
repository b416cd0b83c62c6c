"""Tool calls in a few words: what one is about, how it ended, and how to name it in a line."""

from collections.abc import Mapping
from typing import Any

from croze.text.display import one_line
from croze.types.event import BackgroundTask, ToolReturned
from croze.ui.i18n import _

ANSWERS: Mapping[str, str] = {"attempt_completion": "result", "plan_mode_respond": "response"}
"""Tools whose argument is what the user wants to read in full."""
QUESTION = "ask_followup_question"
COMMAND = "Run a command"
"""The title of what goes without saying: a question whether a command may run shows it anyway."""

_SUBJECTS = (
    "command", "regex", "pattern", "path", "query", "question", "names", "name", "action",
)  # fmt: skip
"""Parameters that say in a word what a call is about, the most telling first."""


def subject_of(args: Mapping[str, Any]) -> str:
    """What a call is about, from its arguments; empty where none of them tells."""
    for name in _SUBJECTS:
        match args.get(name):
            case str(text) if text.strip():
                return text
            case [*items] if items:
                return ", ".join(map(str, items))
            case _:
                pass
    return ""


def outcome(body: ToolReturned, subject: str = "") -> str:
    """How a call ended, on one line: its title, or its error with the `subject` where that misses it.
    A command's title is the command itself, so how it ended is added."""
    title = body.view.title if body.view else ""
    if body.view is not None and body.view.kind == "output":
        return one_line(" ".join(part for part in (title, "·", body.message) if part), 2000)
    if body.ok:
        return one_line(_without_verb(title or body.message or body.text, body.name), 2000)
    text = one_line(body.message or title or body.text, 2000).removeprefix(f"{body.name} ")
    known = one_line(subject, 200)
    return f"{known}: {text}" if known and known not in text else text


def _without_verb(title: str, tool: str) -> str:
    """`Read a.py` as the result of read_file is `a.py`: the name stands before it."""
    verb, _space, rest = title.partition(" ")
    return rest if rest and verb.lower() == tool.partition("_")[0] else title


def task_line(task: BackgroundTask, width: int) -> str:
    """How a background program ended, on one line; empty where that isn't news."""
    if task.state in ("running", "killed") or task.told:
        return ""
    if task.state == "lost":
        text = _("{id} has ended with the croze that ran it", id=task.task_id)
    elif task.state == "closed":
        text = _("{id} is ended", id=task.task_id)
    elif task.error:
        text = _("{id} has failed: {reason}", id=task.task_id, reason=one_line(task.error, 200))
    elif task.signal is not None:
        text = _("{id} was killed by {signal}", id=task.task_id, signal=task.signal)
    else:
        text = _("{id} has ended with exit code {code}", id=task.task_id, code=task.exit_code)
    return f"{text} · {one_line(task.command, max(20, width - len(text) - 4))}"
