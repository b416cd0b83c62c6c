"""A session as the record that programs know: what was asked, which calls were made and why, what was
answered. A fold over the log."""

from collections.abc import Sequence
from typing import Any

import msgspec

from croze.teams.state import FlowState, HistoryEntry, stamp
from croze.text.display import one_line
from croze.types.event import (
    Event,
    ModelSaid,
    SessionOpened,
    Stopped,
    ToolReturned,
    ToolStarted,
    UserSaid,
)
from croze.types.parts import Text, ToolCall

REASON = 300
"""Characters of a reason that the model gave in its text."""

_EXPLANATION = "explanation"


def record_of(events: Sequence[Event], since: int = 0) -> FlowState:
    """What the events from place `since` on say was asked, done and answered; of those before only the
    folder, and the question where none came since. A reason is the call's own `explanation`, else what
    the model said before the call; a result is {success, content} or the tool's own data with
    `success`."""
    state = FlowState(user_query="", working_dir="")
    for event in events[:since]:
        _begin(state, event)
    asked = False
    calls: dict[str, tuple[ToolCall, str]] = {}
    started: dict[str, tuple[ToolStarted, int]] = {}
    for event in events[since:]:
        match event.body:
            case UserSaid():
                if not asked:
                    _begin(state, event)
                asked = True
            case ModelSaid(purpose="main") as said:
                calls.update(_calls(said))
            case ToolStarted() as body:
                started[body.call_id] = body, event.at
            case ToolReturned() as body:
                call, reason = calls.get(body.call_id, (None, ""))
                begun, at = started.get(body.call_id, (None, event.at))
                params = dict(begun.args if begun else call.args if call else {})
                params.pop(_EXPLANATION, None)
                entry = HistoryEntry(body.name, reason, params, _result(body), stamp(at))
                state.history.append(entry)
            case Stopped(reason="done", text=text):
                state.response = text
            case _:
                _begin(state, event)
    return state


def record(events: Sequence[Event], since: int = 0) -> dict[str, Any]:
    """The same as JSON values."""
    found: dict[str, Any] = msgspec.to_builtins(record_of(events, since))
    return found


def _begin(state: FlowState, event: Event) -> None:
    match event.body:
        case SessionOpened(project=project):
            state.working_dir = project
        case UserSaid(parts=parts):
            state.user_query = "\n".join(part.text for part in parts if isinstance(part, Text))
        case _:
            pass


def _calls(said: ModelSaid) -> dict[str, tuple[ToolCall, str]]:
    """The calls of a reply, each with the reason that stands before it."""
    found: dict[str, tuple[ToolCall, str]] = {}
    text = ""
    for part in said.parts:
        if isinstance(part, Text) and part.text.strip():
            text = one_line(part.text.strip(), REASON)
        elif isinstance(part, ToolCall):
            explanation = part.args.get(_EXPLANATION)
            reason = explanation if isinstance(explanation, str) and explanation else text
            found[part.id] = part, reason
    return found


def _result(body: ToolReturned) -> dict[str, Any]:
    if isinstance(body.data, dict):
        found = {"success": body.ok, **body.data}
    else:
        content = body.data if body.data is not None else body.text or body.message
        found = {"success": body.ok, "content": content}
    if not body.ok:
        found["error"] = {"code": body.code, "message": body.message}
    return found
