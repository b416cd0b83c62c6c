"""What the log says of programs that run beside the conversation: background commands and terminals."""

from typing import Literal

from msgspec import Struct

BackgroundState = Literal["running", "ended", "killed", "closed", "lost"]


class BackgroundTask(Struct, frozen=True, omit_defaults=True):
    """A background program has started or is over.

    `ended` is its own end, `killed` the agent's doing; it was `closed` with its conversation, or `lost`
    with a croze that was killed, so nobody saw how it ended. `told`: a result has told the agent
    already. `seconds` is how long it ran, `size` the bytes of its output, `last` its last line.
    """

    task_id: str
    kind: Literal["command", "terminal"]
    command: str
    state: BackgroundState = "running"
    call_id: str = ""
    exit_code: int | None = None
    signal: str | None = None
    error: str = ""
    seconds: float | None = None
    size: int = 0
    last: str = ""
    told: bool = False
