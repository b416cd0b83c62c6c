"""What hooks did and decided, as the log keeps it."""

from typing import Any, Literal

from msgspec import Struct

Point = Literal[
    "PreToolUse",
    "PostToolUse",
    "UserPromptSubmit",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "SubagentStop",
    "PreCompact",
    "Notification",
]
Ended = Literal["ok", "blocked", "failed", "killed", "timeout", "invalid", "not_run"]


class HookRun(Struct, frozen=True, omit_defaults=True):
    """One hook of the user's that was run. `name` is its command or its plugin; `message` is what it has
    to say to the user, or why it failed."""

    name: str
    ended: Ended = "ok"
    exit_code: int | None = None
    seconds: float = 0.0
    message: str = ""


class HooksRan(Struct, frozen=True, omit_defaults=True):
    """The hooks of one point (PreToolUse, Stop …) have run, and this is what they decided together.

    `deny` blocks what the point is about: the call, the message, the end of the turn. `args` is a call's
    input where they gave it another (redacted), `halt` why the turn is to end. What they tell the model
    follows as facts whose keys begin with `hook:`.
    """

    point: str
    runs: tuple[HookRun, ...]
    call_id: str = ""
    decision: Literal["", "allow", "ask", "deny"] = ""
    reason: str = ""
    args: dict[str, Any] | None = None
    halt: str = ""
