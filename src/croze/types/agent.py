"""What an agent is: prompt, model, tools, limits; and how far it may go."""

from typing import Literal

from msgspec import Struct

Mode = Literal["plan", "ask", "auto-edit", "full"]
Sandbox = Literal["read-only", "workspace", "off"]
StopReason = Literal[
    "done",
    "cancelled",
    "steps",
    "seconds",
    "cost",
    "repeated",
    "hook",
    "failed",
    "retries_exhausted",
]


class Limits(Struct, frozen=True, omit_defaults=True):
    """Where a turn ends by itself; None is no limit.

    `steps` are model requests, `seconds` wall-clock time, `cost` US dollars of the turn, `repeats` how
    many times in a row the very same calls may come.
    """

    steps: int | None = None
    seconds: float | None = None
    cost: float | None = None
    repeats: int = 5


class AgentSpec(Struct, frozen=True, omit_defaults=True):
    """An agent as a value. `tools` None means all; `core` None means the default core.

    `dialect` is xml, native or auto. `demand_completion` asks for `attempt_completion` (at most three
    reminders) instead of taking a reply without a call as done. `policy` says when and how the context
    is made smaller; `zone` above what size, as the user wrote it (`80k`, `0.5`, `auto`), `low` and `gain`
    to what share of it and by how much at least. A session that was opened before there were policies
    has no zone.

    `description` tells other agents what it is for. `workflow` names what a turn of it is: empty for the
    model's own loop, else one of `croze.teams`. `source` is the file that it was read from.
    `without` are tools of MCP servers, and whole servers, that it may not use whatever `tools` says.
    """

    name: str = "main"
    prompt: str = ""
    model: str = ""
    dialect: Literal["auto", "native", "xml"] = "auto"
    tools: tuple[str, ...] | None = None
    core: tuple[str, ...] | None = None
    isolation: Literal["shared", "worktree", "task"] = "shared"
    limits: Limits = Limits()
    policy: str = "batch"
    zone: str = ""
    low: float = 0.5
    gain: float = 0.1
    demand_completion: bool = False
    include_rules: bool = False
    description: str = ""
    workflow: str = ""
    source: str = ""
    without: tuple[str, ...] = ()
