"""From the events of an OpenAI-compatible stream to chunks; pure."""

from typing import Any

import msgspec
from msgspec import Struct

from croze.llm.faults import Place, error_in_stream, malformed
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
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "error": "error",
    "abort": "error",
    "insufficient_system_resource": "error",
}


class _Function(Struct):
    name: str | None = None
    arguments: Any = None


class _Call(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(Struct):
    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(Struct):
    index: int | None = None
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None
    error: Any = None


class _Completion(Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None


_decoder = msgspec.json.Decoder(_Completion, strict=False)


class OpenAIDecoder:
    """Decodes one reply. Usage is passed on whenever it changes; the last one counts."""

    def __init__(self, place: Place, *, sent_tools: bool, keep_details: bool = False) -> None:
        self.done = False
        self._place = place
        self._sent_tools = sent_tools
        self._reason: FinishReason | None = None
        self._usage: Usage | None = None
        self._calls = CallIndex()
        self._details: dict[Any, dict[str, Any]] | None = {} if keep_details else None

    @property
    def finished(self) -> bool:
        return self._reason is not None

    def feed(self, event: Event) -> list[Chunk]:
        """The chunks of one event. Raises `ModelError` for an error object or a malformed event."""
        if event.data.startswith(b"[DONE]"):
            self.done = True
            return []
        try:
            completion = _decoder.decode(event.data)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            if event.name == "error":
                text = event.data.decode("utf-8", "replace")
                raise error_in_stream(self._place, text, sent_tools=self._sent_tools) from error
            raise malformed(self._place, str(error)) from error
        if completion.error or event.name == "error":
            failure = completion.error or msgspec.json.decode(event.data)
            raise error_in_stream(self._place, failure, sent_tools=self._sent_tools)
        out: list[Chunk] = []
        for choice in completion.choices or ():
            if choice.index:
                continue
            if choice.error:
                raise error_in_stream(self._place, choice.error, sent_tools=self._sent_tools)
            delta = choice.delta or choice.message
            if delta is not None:
                self._delta(delta, out)
            if choice.finish_reason:
                self._reason = _REASONS.get(choice.finish_reason, "stop")
        if completion.usage:
            usage = read_usage(completion.usage)
            if usage != self._usage:
                self._usage = usage
                out.append(UsageChunk(usage))
        return out

    def close(self) -> list[Chunk]:
        """What is left at the stream's end: the finish, unless the stream was cut."""
        out: list[Chunk] = []
        if self._details:
            items = list(self._details.values())
            out.append(ThinkingChunk(opaque=msgspec.json.encode(items).decode()))
        if self._reason is None:
            return out
        # Some servers say "stop" where the reply made calls: the calls decide.
        calls = self._reason == "stop" and self._calls.count > 0
        out.append(FinishChunk("tool_calls" if calls else self._reason))
        return out

    def _delta(self, delta: _Delta, out: list[Chunk]) -> None:
        thought = delta.reasoning_content or delta.reasoning
        if isinstance(thought, str) and thought:
            out.append(ThinkingChunk(thought))
        if self._details is not None and isinstance(delta.reasoning_details, list):
            merge_details(self._details, delta.reasoning_details)
        content = delta.content
        if isinstance(content, str):
            if content:
                out.append(TextChunk(content))
        elif isinstance(content, list):
            out.extend(content_chunks(content))
        if delta.refusal:
            out.append(TextChunk(delta.refusal))
        for call in delta.tool_calls or ():
            name = (call.function.name if call.function else None) or None
            arguments = call.function.arguments if call.function else None
            if arguments is None:
                arguments = ""
            elif not isinstance(arguments, str):
                arguments = msgspec.json.encode(arguments).decode()
            index, opened = self._calls.place(call.index, call.id or None, name)
            chunk = CallChunk(
                index=index,
                provider_id=call.id if opened and call.id else None,
                name=name if opened else None,
                args=arguments,
            )
            if opened or arguments:
                out.append(chunk)


class CallIndex:
    """Gives each call its position, also where a server leaves out or repeats its indices."""

    def __init__(self) -> None:
        self.count = 0
        self._by_index: dict[int, tuple[int, str | None]] = {}
        self._named: set[int] = set()

    def place(self, index: int | None, call_id: str | None, name: str | None) -> tuple[int, bool]:
        """The call's position, and whether this piece opens it (or names it at last)."""
        if index is None:
            current = self._by_index.get(-1)
            if current is None or (call_id and call_id != current[1]) or (name and not call_id):
                self._by_index[-1] = (self._new(), call_id)
        else:
            current = self._by_index.get(index)
            if current is None or (call_id and current[1] and call_id != current[1] and name):
                self._by_index[index] = (self._new(), call_id)
            elif call_id and not current[1]:
                self._by_index[index] = (current[0], call_id)
        position = self._by_index[-1 if index is None else index][0]
        opened = name is not None and position not in self._named
        if opened:
            self._named.add(position)
        return position, opened

    def _new(self) -> int:
        self.count += 1
        return self.count - 1


def content_chunks(blocks: list[Any]) -> list[Chunk]:
    """Content as a list of typed blocks, as Mistral's reasoning models stream it."""
    out: list[Chunk] = []
    for block in blocks:
        if isinstance(block, str):
            out.append(TextChunk(block))
        elif isinstance(block, dict) and isinstance(block.get("text"), str):
            out.append(TextChunk(block["text"]))
        elif isinstance(block, dict) and block.get("type") == "thinking":
            thought = block.get("thinking")
            pieces = thought if isinstance(thought, list) else [{"text": thought}]
            text = "".join(str(p.get("text") or "") for p in pieces if isinstance(p, dict))
            out.append(ThinkingChunk(text))
    return out


def merge_details(kept: dict[Any, dict[str, Any]], pieces: list[Any]) -> None:
    """Join the pieces of OpenRouter's reasoning details: texts grow, other fields are set."""
    for piece in pieces:
        if not isinstance(piece, dict):
            continue
        key = (piece.get("index", len(kept)), piece.get("type"))
        item = kept.setdefault(key, {})
        for name, value in piece.items():
            if name in ("text", "summary", "data") and isinstance(item.get(name), str):
                item[name] += value if isinstance(value, str) else ""
            elif value is not None or name not in item:
                item[name] = value


def read_usage(usage: Any) -> Usage:
    """Usage where `prompt_tokens` holds the cached ones; DeepSeek's names for them are read too."""
    if not isinstance(usage, dict):
        return Usage()
    inputs = usage.get("prompt_tokens_details")
    outputs = usage.get("completion_tokens_details")
    inputs = inputs if isinstance(inputs, dict) else {}
    outputs = outputs if isinstance(outputs, dict) else {}
    cached = count(inputs.get("cached_tokens"))
    return Usage(
        input=count(usage.get("prompt_tokens")),
        output=count(usage.get("completion_tokens")),
        cached=count(usage.get("prompt_cache_hit_tokens")) if cached is None else cached,
        cache_write=count(inputs.get("cache_write_tokens")),
        thinking=count(outputs.get("reasoning_tokens")),
    )


def count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
