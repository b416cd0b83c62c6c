"""What a message is made of: text, thinking, tool calls, results and images."""

from typing import Any

from msgspec import Struct, field


class CallError(Struct, frozen=True, omit_defaults=True):
    """Why a call can't run as written: told to the model instead of being run.

    Codes: `malformed`, `truncated`, `ambiguous_body`, `repeated_parameter`, `unknown_tool`.
    """

    code: str
    message: str


class Text(Struct, frozen=True, tag="text", tag_field="kind"):
    text: str


class Thinking(Struct, frozen=True, tag="thinking", tag_field="kind", omit_defaults=True):
    """Reasoning. `opaque` is the provider's own form (a signature, an encrypted item) as JSON text,
    returned verbatim and only to the `model` that made it."""

    text: str
    opaque: str | None = None
    model: str | None = None


class ToolCall(Struct, frozen=True, tag="call", tag_field="kind", omit_defaults=True):
    """One call as the model wrote it.

    `id` is ours (9 base-62 characters); `provider_id` is metadata. `args` is what was parsed (string
    values under the xml protocol). `raw` is the exact source: the whole tag under xml, the argument
    JSON under native.
    """

    id: str
    name: str
    args: dict[str, Any] = field(default_factory=dict)
    raw: str = ""
    error: CallError | None = None
    provider_id: str | None = None


class CallResult(Struct, frozen=True, tag="result", tag_field="kind", omit_defaults=True):
    """A tool's result as the model sees it: `message` is one line, `text` the content."""

    call_id: str
    name: str
    ok: bool
    message: str = ""
    text: str = ""


class Image(Struct, frozen=True, tag="image", tag_field="kind"):
    """An image by its blob's hash; `data` is base64 and is filled in only for a request."""

    blob: str
    media_type: str
    data: str = ""


Part = Text | Thinking | ToolCall | CallResult | Image
