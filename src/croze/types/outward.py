"""The events that programs outside see: small, typed, versioned JSON objects made from the log.

Every object has `type`, `v` (the version of its shape) and `session`; those that stand in the log also
have `seq`, its number there, and `at`, microseconds since the epoch, UTC. Unknown values are null.
"""

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct, field

from croze.types.background import BackgroundState
from croze.types.event import AskedPart, HookRun, TodoItem
from croze.types.team import ChildReport, Lease, MergeConflict, PlanTask
from croze.types.tool import FileChange

VERSION = 1


class _Object(Struct, frozen=True, kw_only=True, tag_field="type"):
    v: int = VERSION
    session: str
    seq: int | None = None
    at: int | None = None


class ConversationIdObject(_Object, frozen=True, tag="conversation_id"):
    """Comes first. `conversation_id` is what `--resume` takes."""

    conversation_id: str
    model: str | None = None


class TextObject(_Object, frozen=True, tag="text"):
    """Text of the model. With `partial` it is a piece of a text that follows in full. `replaces` names
    an earlier message which this one, holding it whole, supersedes."""

    text: str
    message_id: str | None = None
    partial: bool = False
    replaces: str | None = None


class ThinkingObject(_Object, frozen=True, tag="thinking"):
    text: str
    message_id: str | None = None
    partial: bool = False


class ToolCallObject(_Object, frozen=True, tag="tool_call"):
    """A call as the model wrote it; `raw` is its exact source, `error` why it can't run as written."""

    call_id: str
    name: str
    args: dict[str, Any]
    raw: str
    error: str | None = None


class ToolResultObject(_Object, frozen=True, tag="tool_result"):
    """A call's outcome; `seconds` is its run time, `truncated` says what was left out."""

    call_id: str
    name: str
    ok: bool
    message: str
    text: str
    data: Any = None
    code: str | None = None
    truncated: str | None = None
    seconds: float | None = None


class CompletionObject(_Object, frozen=True, tag="completion"):
    """The turn's answer. `raw` is the source of the call that gave it, empty where it is plain text."""

    result: str
    raw: str = ""


class PlanResponseObject(_Object, frozen=True, tag="plan_response"):
    response: str
    options: tuple[str, ...] = ()
    raw: str = ""


class FollowUpQuestionObject(_Object, frozen=True, tag="follow_up_question"):
    ask_id: str
    question: str
    options: tuple[str, ...] = ()
    raw: str = ""


class ApprovalAskedObject(_Object, frozen=True, tag="approval_asked"):
    """A call waits for an answer; `rule` is the one that "always" would add. `access` is its class, `parts`
    are a command's simple commands with why they need the answer, `cwd` is where it would run."""

    ask_id: str
    call_id: str
    text: str
    rule: str = ""
    access: str = ""
    parts: tuple[AskedPart, ...] = ()
    cwd: str = ""


class ApprovalGivenObject(_Object, frozen=True, tag="approval_given"):
    """The answer: once, always or no; `by` says who gave it."""

    ask_id: str
    answer: str
    by: str
    note: str = ""


class ErrorObject(_Object, frozen=True, tag="error"):
    """Something failed or a limit was reached; `code` is stable, `message` English."""

    code: str
    message: str
    params: dict[str, Any] = field(default_factory=dict)


class NoticeObject(_Object, frozen=True, tag="notice"):
    level: Literal["info", "warning"]
    code: str
    message: str
    params: dict[str, Any] = field(default_factory=dict)


class RetryObject(_Object, frozen=True, tag="retry"):
    """A try failed; the next one starts after `delay` seconds. Partial pieces since are void."""

    attempt: int
    delay: float
    code: str
    message: str


class TokenUsageObject(_Object, frozen=True, tag="token_usage"):
    """One request's tokens and its cost in US dollars. `input_tokens` includes cached reads and writes,
    `output_tokens` includes thinking."""

    model: str
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    cache_write_tokens: int | None
    thinking_tokens: int | None
    input_cost: float | None
    output_cost: float | None


class WindowChangeObject(_Object, frozen=True, tag="window_change"):
    """How full the context is. `pruned_tokens_used` is what stands after the last pruning and equals
    `tokens_used` where nothing was pruned; `conversation_round` is the session's step."""

    tokens_used: int
    pruned_tokens_used: int
    conversation_round: int


class SummaryObject(_Object, frozen=True, tag="summary"):
    text: str


class PrunedObject(_Object, frozen=True, tag="pruned"):
    policy: str
    reason: str
    tokens_before: int
    tokens_after: int


class HookObject(_Object, frozen=True, tag="hook"):
    """The user's hooks ran at a point (PreToolUse, Stop …). `decision` is empty, allow, ask or deny; `runs`
    says of each how it ended and what it tells the user."""

    point: str
    call_id: str
    decision: str
    reason: str
    runs: tuple[HookRun, ...]


class FileChangedObject(_Object, frozen=True, tag="file_changed"):
    call_id: str
    change: FileChange


class TodoChangedObject(_Object, frozen=True, tag="todo_changed"):
    items: tuple[TodoItem, ...]


class BackgroundTaskObject(_Object, frozen=True, tag="background_task"):
    """A program beside the conversation was started (`running`) or is over: ended by itself, killed by
    the agent, closed with its conversation, lost with a croze that was killed. `size` is in bytes."""

    task_id: str
    kind: Literal["command", "terminal"]
    command: str
    state: BackgroundState
    exit_code: int | None = None
    signal: str | None = None
    error: str = ""
    seconds: float | None = None
    size: int = 0
    last: str = ""


class SubAgentStartedObject(_Object, frozen=True, tag="sub_agent_started"):
    """A sub-agent has begun; `child` is its conversation's id. `lease` is what it may use."""

    child: str
    agent: str
    task: str
    call_id: str
    label: str
    depth: int
    isolation: str
    lease: Lease


class SubAgentEventObject(_Object, frozen=True, tag="sub_agent_event"):
    """Something that a sub-agent did: `event` is an object of this very list. `path` names the agents from
    the session down to it. `cost` is what it has spent, `subtree_cost` with its own sub-agents (US dollars)."""

    child: str
    agent: str
    path: tuple[str, ...]
    event: dict[str, Any]
    cost: float | None = None
    subtree_cost: float | None = None


class SubAgentFinishedObject(_Object, frozen=True, tag="sub_agent_finished"):
    """A sub-agent is over; steps, tokens and cost (US dollars) are its own and its children's."""

    child: str
    report: ChildReport


class PlanObject(_Object, frozen=True, tag="plan"):
    """The orchestrator's plan as it stands."""

    plan_id: str
    objective: str
    state: str
    revision: int
    tasks: tuple[PlanTask, ...]
    reason: str = ""


class TeamMessageObject(_Object, frozen=True, tag="team_message"):
    """Something that one agent said to another, or to a group."""

    said_id: str
    sender: str
    text: str
    to: str
    group: str
    reply_to: str
    mentions: tuple[str, ...]
    error: str


class MergedObject(_Object, frozen=True, tag="merged"):
    """A sub-agent's work in a workspace of its own came back."""

    child: str
    applied: tuple[str, ...]
    conflicts: tuple[MergeConflict, ...]


class InterruptedObject(_Object, frozen=True, tag="interrupted"):
    message: str


class StoppedObject(_Object, frozen=True, tag="stopped"):
    """Ends every turn. `cost` is in US dollars; `refused` counts the refusals that stood."""

    reason: str
    steps: int
    seconds: float | None
    cost: float | None
    refused: int


class ResultObject(_Object, frozen=True, tag="result"):
    """A whole run in one object (`--output-format json`). `data` is the answer's value where a schema
    was given; `error` says why `ok` is false; tokens and `cost` (US dollars) are the run's. `record` is
    what was asked, done and answered (`croze.app.record`)."""

    model: str
    ok: bool
    exit_code: int
    reason: str
    answer: str
    data: Any
    error: str | None
    steps: int
    seconds: float | None
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    refused: int
    files_changed: tuple[str, ...]
    record: dict[str, Any] | None = None


Outward: TypeAlias = (
    ConversationIdObject
    | TextObject
    | ThinkingObject
    | ToolCallObject
    | ToolResultObject
    | CompletionObject
    | PlanResponseObject
    | FollowUpQuestionObject
    | ApprovalAskedObject
    | ApprovalGivenObject
    | ErrorObject
    | NoticeObject
    | RetryObject
    | TokenUsageObject
    | WindowChangeObject
    | SummaryObject
    | PrunedObject
    | HookObject
    | FileChangedObject
    | TodoChangedObject
    | BackgroundTaskObject
    | SubAgentStartedObject
    | SubAgentEventObject
    | SubAgentFinishedObject
    | PlanObject
    | TeamMessageObject
    | MergedObject
    | InterruptedObject
    | StoppedObject
    | ResultObject
)


_encoder = msgspec.json.Encoder()


def encode(item: Outward) -> bytes:
    """One line of JSON, UTF-8, ended by LF. Readers must split on LF only: U+2028 and its like may
    stand in texts as they are."""
    return _encoder.encode(item) + b"\n"
