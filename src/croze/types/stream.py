"""What flows while a model speaks: chunks from the wire, deltas to the watchers."""

from typing import Literal

from msgspec import Struct

from croze.types.model import Usage

FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "error"]


class TextChunk(Struct, frozen=True):
    text: str


class ThinkingChunk(Struct, frozen=True, omit_defaults=True):
    """A piece of reasoning; `opaque` (JSON text) closes the current thinking block."""

    text: str = ""
    opaque: str | None = None


class CallChunk(Struct, frozen=True, omit_defaults=True):
    """A piece of a native tool call: the call's position in the reply, and what is new of it."""

    index: int
    provider_id: str | None = None
    name: str | None = None
    args: str = ""


class UsageChunk(Struct, frozen=True):
    usage: Usage


class FinishChunk(Struct, frozen=True):
    """The provider's finish signal. A stream that ends without one was cut."""

    reason: FinishReason


class RetryChunk(Struct, frozen=True):
    """A try failed and another follows: everything since the last one is void.

    `delay` is in seconds; `attempt` counts the failed tries from 1.
    """

    attempt: int
    delay: float
    code: str
    message: str


Chunk = TextChunk | ThinkingChunk | CallChunk | UsageChunk | FinishChunk | RetryChunk


class Delta(Struct, frozen=True, omit_defaults=True):
    """Something to show at once; broadcast, never stored.

    `text` and `thinking` carry new text; `call` opens (`name` set), carries (`text`) and closes (`done`)
    a tool call that is being written; `output` is a running tool's output; `reset` voids what was shown
    of the current reply (a try failed). `phase` marks the begin and (`done`) the end of something that
    has no event of its own: gathering facts of a kind, resuming.
    """

    kind: Literal["text", "thinking", "call", "output", "reset", "phase"]
    text: str = ""
    call_id: str = ""
    name: str = ""
    done: bool = False
    session: str = ""
