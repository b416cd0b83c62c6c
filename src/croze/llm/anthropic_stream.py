"""From the events of an Anthropic stream to chunks; pure."""

from typing import Any

import msgspec
from msgspec import Struct, structs

from croze.llm.faults import Place, error_in_stream, malformed
from croze.llm.openai_stream import count
from croze.llm.sse import Event
from croze.types.model import Usage
from croze.types.stream import (
    CallChunk,
    Chunk,
    FinishChunk,
    FinishReason,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
)

_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "pause_turn": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


class _Delta(Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Message(Struct):
    usage: Any = None


class _Event(Struct):
    type: str = ""
    index: int = 0
    message: _Message | None = None
    content_block: dict[str, Any] | None = None
    delta: _Delta | None = None
    usage: Any = None
    error: Any = None


_decoder = msgspec.json.Decoder(_Event)


class AnthropicDecoder:
    """Decodes one reply. Usage comes at the start (the input) and at the end; the last one counts."""

    def __init__(self, place: Place, *, sent_tools: bool) -> None:
        self.done = False
        self._place = place
        self._sent_tools = sent_tools
        self._reason: FinishReason | None = None
        self._usage: dict[str, Any] = {}
        self._calls: dict[int, tuple[int, dict[str, Any] | None]] = {}
        self._thinking: dict[int, dict[str, Any]] = {}

    @property
    def finished(self) -> bool:
        return self._reason is not None

    def feed(self, event: Event) -> list[Chunk]:
        """The chunks of one event. Raises `ModelError` for an error event or a malformed one."""
        try:
            value = _decoder.decode(event.data)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise malformed(self._place, str(error)) from error
        match value.type:
            case "content_block_delta" if value.delta is not None:
                return self._delta(value.index, value.delta)
            case "content_block_start" if value.content_block is not None:
                return self._open(value.index, value.content_block)
            case "content_block_stop":
                return self._close(value.index)
            case "message_start" if value.message is not None:
                return self._use(value.message.usage)
            case "message_delta":
                if value.delta is not None and value.delta.stop_reason:
                    self._reason = _REASONS.get(value.delta.stop_reason, "stop")
                return self._use(value.usage)
            case "message_stop":
                self.done = True
        if value.error or value.type == "error" or event.name == "error":
            raise error_in_stream(self._place, value.error, sent_tools=self._sent_tools)
        return []

    def close(self) -> list[Chunk]:
        """What is left at the stream's end: the finish, unless the stream was cut."""
        return [] if self._reason is None else [FinishChunk(self._reason)]

    def _open(self, index: int, block: dict[str, Any]) -> list[Chunk]:
        match block.get("type"):
            case "text":
                text = block.get("text")
                return [TextChunk(text)] if isinstance(text, str) and text else []
            case "thinking":
                self._thinking[index] = dict(block)
                text = block.get("thinking")
                return [ThinkingChunk(text)] if isinstance(text, str) and text else []
            case "redacted_thinking":
                self._thinking[index] = dict(block)
            case "tool_use":
                position = len(self._calls)
                whole = block.get("input")
                self._calls[index] = (position, whole if isinstance(whole, dict) else None)
                return [
                    CallChunk(
                        index=position,
                        provider_id=str(block.get("id") or "") or None,
                        name=str(block.get("name") or ""),
                    )
                ]
        return []

    def _delta(self, index: int, delta: _Delta) -> list[Chunk]:
        match delta.type:
            case "text_delta":
                return [TextChunk(delta.text)] if delta.text else []
            case "thinking_delta":
                block = self._thinking.setdefault(index, {"type": "thinking"})
                block["thinking"] = block.get("thinking", "") + (delta.thinking or "")
                return [ThinkingChunk(delta.thinking)] if delta.thinking else []
            case "signature_delta":
                block = self._thinking.setdefault(index, {"type": "thinking", "thinking": ""})
                block["signature"] = block.get("signature", "") + (delta.signature or "")
            case "input_json_delta":
                call = self._calls.get(index)
                if call is not None and delta.partial_json:
                    self._calls[index] = (call[0], None)
                    return [CallChunk(index=call[0], args=delta.partial_json)]
        return []

    def _close(self, index: int) -> list[Chunk]:
        block = self._thinking.pop(index, None)
        if block is not None:
            return [ThinkingChunk(opaque=msgspec.json.encode(block).decode())]
        position, whole = self._calls.get(index, (-1, None))
        if whole:
            # The arguments stood in the block's start, and no piece followed.
            self._calls[index] = (position, None)
            return [CallChunk(index=position, args=msgspec.json.encode(whole).decode())]
        return []

    def _use(self, usage: Any) -> list[Chunk]:
        if not isinstance(usage, dict):
            return []
        self._usage |= {name: value for name, value in usage.items() if value is not None}
        return [UsageChunk(read_usage(self._usage))]


def read_usage(usage: dict[str, Any]) -> Usage:
    """Usage as the API counts it: its `input_tokens` leaves out what was read from or written to the
    cache, ours has everything."""
    plain = count(usage.get("input_tokens"))
    cached = count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    details = usage.get("output_tokens_details")
    thinking = count(details.get("thinking_tokens")) if isinstance(details, dict) else None
    out = Usage(
        output=count(usage.get("output_tokens")),
        cached=cached,
        cache_write=written,
        thinking=thinking,
    )
    if plain is None:
        return out
    return structs.replace(out, input=plain + (cached or 0) + (written or 0))
