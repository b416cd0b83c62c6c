"""The events of a session log, their envelope, and the table that reads every version of them.

An event's body is a frozen struct. Stored are its type's name, its version and its JSON. A stored body
is never re-encoded; a (type, v) that is not in the table loads as `Unknown`. To change a shape, raise
the version and keep a decoder and an upcaster for the old one.
"""

from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from croze.types.agent import AgentSpec, StopReason
from croze.types.asking import Answered as Answered
from croze.types.asking import Asked as Asked
from croze.types.asking import AskedPart as AskedPart
from croze.types.background import BackgroundTask as BackgroundTask
from croze.types.hook import HookRun as HookRun
from croze.types.hook import HooksRan as HooksRan
from croze.types.model import Cost, ModelInfo, Usage
from croze.types.parts import Image, Part
from croze.types.stream import FinishReason
from croze.types.team import ChildClosed as ChildClosed
from croze.types.team import ChildOpened as ChildOpened
from croze.types.team import FlowStepped as FlowStepped
from croze.types.team import Merged as Merged
from croze.types.team import PlanSet as PlanSet
from croze.types.team import TeamSaid as TeamSaid
from croze.types.tool import Access, FileChange, Look, View


class SessionOpened(Struct, frozen=True, omit_defaults=True):
    """The first event. `head` is the SHA-256 of the frozen head (its text and tool list lie in the blob
    table); `forked_from` is [session, seq] of the last event taken over."""

    name: str
    project: str = ""
    namespace: str = "default"
    description: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    parent: str | None = None
    forked_from: tuple[str, int] | None = None
    version: str = ""


class HeadSet(Struct, frozen=True, omit_defaults=True):
    """The session's head is now this: agent, model, protocol, and the blob that holds the head.

    Stands after `SessionOpened`, and again only where the user changes model or agent.
    """

    agent: AgentSpec
    model: ModelInfo
    dialect: Literal["native", "xml"]
    head: str
    tokens: int


class UserSaid(Struct, frozen=True, omit_defaults=True):
    """A message from the user (or, for an imported conversation, whatever stood there)."""

    message_id: str
    parts: tuple[Part, ...]
    metadata: dict[str, Any] = field(default_factory=dict)
    tokens: int = 0


class FactAdded(Struct, frozen=True, omit_defaults=True):
    """Something that was observed and is told to the model from here on: rules, a tree, the date.

    `key` names the fact; a later fact with the same key is news of it. `reply` makes it a user/assistant
    pair (the documentation layer). `data` is for programs; the model doesn't see it.
    """

    key: str
    message_id: str
    text: str
    layer: Literal["documentation", "history", "current"] = "documentation"
    place: Literal["history", "tail"] = "history"
    reason: str = ""
    origin: str = ""
    reply: str = ""
    tokens: int = 0
    data: dict[str, Any] = field(default_factory=dict)


class ModelCalled(Struct, frozen=True, omit_defaults=True):
    """A request is about to be sent. With the log up to `history` and the head it can be rebuilt:
    `body` is the SHA-256 of the request's bytes, `rolling` a digest of its projected messages. `info` is
    the model asked where that isn't the head's."""

    step: int
    model: str
    head: str
    history: int
    body: str
    rolling: str
    encoder: int
    tokens: int
    size: int
    purpose: str = "main"
    prefill: bool = False
    info: ModelInfo | None = None


class Retried(Struct, frozen=True, omit_defaults=True):
    """A try failed before anything of it was used; the next one starts after `delay` seconds."""

    attempt: int
    delay: float
    error: str
    message: str


class ModelSaid(Struct, frozen=True, omit_defaults=True):
    """A reply, complete or (`partial`) what had arrived when it ended.

    The parts in order give back the reply's text verbatim (a call by its `raw`). `continues` names the
    message of which this one is the rest; where `joined` is set too, the parts hold the whole reply
    (the model went on with the very same message) and that earlier message is superseded.
    `cost` is at the prices of the call. Replies of another `purpose` (edit, commit, summary) are steps
    of their own kind: the conversation doesn't show them, its cost counts them.
    """

    message_id: str
    step: int
    model: str
    parts: tuple[Part, ...]
    purpose: str = "main"
    finish: FinishReason | None = None
    usage: Usage = Usage()
    cost: Cost = Cost()
    partial: bool = False
    continues: str | None = None
    joined: bool = False
    redacted: bool = False
    notice: str = ""
    seconds: float | None = None
    first_token: float | None = None
    tokens: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)


class ToolStarted(Struct, frozen=True, omit_defaults=True):
    """A call is about to run; committed before its effect. `args` are the redacted ones."""

    call_id: str
    name: str
    access: Access
    args: dict[str, Any] = field(default_factory=dict)


class ToolReturned(Struct, frozen=True, omit_defaults=True):
    """A call's outcome. Every call of the log gets exactly one (an interrupted one too). Where `text`
    leaves something out, `whole` names the blob (one of `blobs`) that holds all of it."""

    call_id: str
    message_id: str
    name: str
    ok: bool
    message: str = ""
    text: str = ""
    view: View | None = None
    data: Any = None
    code: str | None = None
    truncated: str | None = None
    observed: dict[str, str] = field(default_factory=dict)
    blobs: tuple[str, ...] = ()
    digest: str = ""
    seconds: float | None = None
    tokens: int = 0
    whole: str = ""
    look: Look | None = None
    images: tuple[Image, ...] = ()


class FilesChanged(Struct, frozen=True, omit_defaults=True):
    call_id: str
    changes: tuple[FileChange, ...]


class TodoItem(Struct, frozen=True, omit_defaults=True):
    id: int
    text: str
    status: Literal["pending", "in_progress", "completed"] = "pending"
    note: str = ""


class TodoSet(Struct, frozen=True, omit_defaults=True):
    """The whole todo list as it stands from here on."""

    items: tuple[TodoItem, ...]


class Undone(Struct, frozen=True, omit_defaults=True):
    """Something was undone or redone, completely.

    `hidden` and `calls` say what is undone from here on, all of it: spans of seqs (first and last)
    that no longer belong to the conversation, and calls whose changes of files don't hold. `todo`,
    where it is given, is the todo list from here on. `text` tells the model where its conversation
    doesn't go back with the files.
    """

    undo_id: str
    kind: Literal["undo", "redo"]
    turns: tuple[int, ...] = ()
    hidden: tuple[tuple[int, int], ...] = ()
    calls: tuple[str, ...] = ()
    todo: tuple[TodoItem, ...] | None = None
    text: str = ""
    tokens: int = 0

    def hides(self, seq: int) -> bool:
        """Whether the event with this seq is undone."""
        return any(first <= seq <= last for first, last in self.hidden)


class Undoing(Struct, frozen=True, omit_defaults=True):
    """Files are about to be put back: from each change's `before` to its `after`. Committed before the
    first of them is touched. Where no `Undone` of this `undo_id` follows, the process died meanwhile;
    the next undo puts back the rest and appends `then`."""

    undo_id: str
    files: tuple[FileChange, ...]
    then: Undone


class MessagesMarked(Struct, frozen=True, omit_defaults=True):
    """The messages that the model itself has let go of, all of them as they stand from here on (full
    ids). Marking changes no byte of the context; a compaction does that when it pays."""

    ids: tuple[str, ...]


class Compacted(Struct, frozen=True, omit_defaults=True):
    """The context changes shape here: what each field names stands so from here on, and what earlier
    events named goes on standing as they said.

    `replaced` maps a call or message id to the text that stands for it. `digested` names calls whose
    result stands as its stored digest. `cut` maps a call id to the arguments that are shortened and the
    text that stands for each. `hidden` lists message ids that are gone; a call and its result go together.

    `summary` stands for the history up to the event `until`: replies, results and facts of it are gone,
    the user's messages, the documentation and the messages of `pinned` stay, byte for byte, above the
    summary. A later summary stands in place of an earlier one. `receipt` is the account that the log
    itself gives of what was done there; it is shown below the summary.

    `tokens_before` and `tokens_after` are what the provider would count for the whole request;
    `figures` are the numbers that the decision was made by (calls_left, freed, behind, break_even …).
    """

    policy: str
    reason: str
    replaced: dict[str, str] = field(default_factory=dict)
    digested: tuple[str, ...] = ()
    cut: dict[str, dict[str, str]] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    until: int = 0
    pinned: tuple[str, ...] = ()
    summary: str = ""
    receipt: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    figures: dict[str, float] = field(default_factory=dict)


class Annotated(Struct, frozen=True, omit_defaults=True):
    """A late fact or revision that the fold merges: of the message `target`, else of the session."""

    target: str | None = None
    content: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    usage: Usage | None = None
    cost: Cost | None = None


class Notice(Struct, frozen=True, omit_defaults=True):
    """Something the user should know that is no message: a warning, a fallback, an error."""

    level: Literal["info", "warning", "error"]
    code: str
    text: str
    params: dict[str, Any] = field(default_factory=dict)


class Stopped(Struct, frozen=True, omit_defaults=True):
    """The turn has ended; the session can be resumed. `refused` counts the refusals that stood."""

    reason: StopReason
    text: str = ""
    steps: int = 0
    seconds: float | None = None
    cost: float | None = None
    refused: int = 0


class Unknown(Struct, frozen=True):
    """A stored event that this version can't read: shown, never raised, never rewritten."""

    type: str
    v: int
    raw: str


Body = (
    SessionOpened
    | HeadSet
    | UserSaid
    | FactAdded
    | ModelCalled
    | Retried
    | ModelSaid
    | ToolStarted
    | ToolReturned
    | Asked
    | Answered
    | HooksRan
    | FilesChanged
    | TodoSet
    | BackgroundTask
    | ChildOpened
    | ChildClosed
    | PlanSet
    | FlowStepped
    | TeamSaid
    | Merged
    | Undoing
    | Undone
    | MessagesMarked
    | Compacted
    | Annotated
    | Notice
    | Stopped
    | Unknown
)


class Event(Struct, frozen=True):
    """The envelope. `seq` counts from 1 within the session and is the order; `at` is microseconds since
    the epoch, UTC, and orders nothing."""

    session: str
    seq: int
    at: int
    body: Body
    v: int = 1

    @property
    def type(self) -> str:
        return self.body.type if isinstance(self.body, Unknown) else type(self.body).__name__


VERSIONS: dict[str, int] = {}
"""The version in which each type is written now; 1 where it is not named."""

UPCASTERS: dict[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""(type, old version) → a function that turns the old JSON object into the next version's."""

_TYPES: dict[str, type[Struct]] = {t.__name__: t for t in Body.__args__ if t is not Unknown}
_decoders: dict[str, msgspec.json.Decoder[Any]] = {}
_encoder = msgspec.json.Encoder()


def encode_body(body: Body) -> bytes:
    """The stored form: JSON, UTF-8. An `Unknown` gives back what was read."""
    if isinstance(body, Unknown):
        return body.raw.encode()
    return _encoder.encode(body)


def decode_body(type_name: str, v: int, raw: bytes) -> Body:
    """Read a stored body of any version; what can't be read becomes `Unknown`, never an error."""
    struct = _TYPES.get(type_name)
    current = VERSIONS.get(type_name, 1)
    try:
        if struct is None or v > current:
            raise msgspec.ValidationError
        if v == current:
            decoder = _decoders.get(type_name)
            if decoder is None:
                decoder = _decoders[type_name] = msgspec.json.Decoder(struct)
            return decoder.decode(raw)  # type: ignore[no-any-return]
        value: dict[str, Any] = msgspec.json.decode(raw)
        for version in range(v, current):
            value = UPCASTERS[type_name, version](value)
        return msgspec.convert(value, struct)  # type: ignore[return-value]
    except (msgspec.DecodeError, msgspec.ValidationError, KeyError, UnicodeDecodeError):
        return Unknown(type=type_name, v=v, raw=raw.decode("utf-8", "replace"))


def body_version(body: Body) -> int:
    """The version under which `body` is written."""
    return body.v if isinstance(body, Unknown) else VERSIONS.get(type(body).__name__, 1)
