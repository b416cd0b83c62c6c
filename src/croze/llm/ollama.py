"""Ollama's own wire, because its OpenAI-compatible one ignores the context window asked for.

Form of requests and replies: https://docs.ollama.com/api/chat; that `/v1` can't set the window:
https://docs.ollama.com/api/openai-compatibility and https://github.com/ollama/ollama/issues/5356.
"""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from croze.llm.faults import Place, error_in_stream, malformed
from croze.llm.http import Http, Timeouts, stream_events
from croze.llm.openai import no_image, result_text, tool_schema
from croze.llm.openai_stream import count
from croze.llm.quirks import quirks_of
from croze.llm.sse import MAX_EVENT, Event, EventTooLong
from croze.llm.wire import (
    EMPTY_TEXT,
    Fragments,
    HeadCache,
    address_of,
    assemble,
    joined_text,
    to_json,
    verbatim_text,
)
from croze.types.context import Message, Prompt
from croze.types.model import ModelInfo, Usage
from croze.types.parts import CallResult, Image, Text, Thinking, ToolCall
from croze.types.stream import (
    CallChunk,
    Chunk,
    FinishChunk,
    FinishReason,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
)

if TYPE_CHECKING:
    import httpx2

_TOP_LEVEL = frozenset({"think", "keep_alive", "format"})


class OllamaModel:
    """A model that Ollama serves. The window of `info` is set in every request (`num_ctx`); options
    go with it, `think`, `keep_alive` and `format` beside it. A last message of the assistant is
    continued by Ollama without being asked."""

    def __init__(
        self,
        info: ModelInfo,
        *,
        api_key: str | None,
        client: "httpx2.AsyncClient | None" = None,
        timeouts: Timeouts = Timeouts(),  # noqa: B008 (a frozen value)
    ) -> None:
        self._info = info
        quirks = quirks_of("ollama")
        base_url = info.base_url.rstrip("/").removesuffix("/v1")
        key = api_key.strip() if api_key else None
        self._place = Place(info.provider, info.model, address_of(base_url), key)
        self._http = Http(
            place=self._place,
            base_url=base_url,
            headers={"authorization": f"Bearer {key}"} if key else {},
            timeouts=timeouts,
            client=client,
            start=quirks.start,
        )
        self._url = f"{base_url}/api/chat"
        self._heads = HeadCache(self._head)
        self._fragments = Fragments(lambda message: b"," + self._message(message))

    @property
    def info(self) -> ModelInfo:
        return self._info

    def encode(self, prompt: Prompt) -> bytes:
        fragments = self._fragments.all(prompt.messages)
        return assemble(self._heads.get(prompt), fragments)

    def stream(self, body: bytes) -> AsyncGenerator[Chunk, None]:
        decoder = OllamaDecoder(self._place, sent_tools=b'"tools":[' in body)
        return stream_events(self._http, self._url, body, decoder, LineParser())

    async def aclose(self) -> None:
        await self._http.aclose()

    def _head(self, prompt: Prompt) -> bytes:
        given = self._info.options
        options: dict[str, Any] = {k: v for k, v in given.items() if k not in _TOP_LEVEL}
        options.setdefault("num_ctx", self._info.window)
        if prompt.max_output is not None:
            options["num_predict"] = prompt.max_output
        body: dict[str, Any] = {k: v for k, v in given.items() if k in _TOP_LEVEL}
        body |= {"model": self._info.model, "options": options, "stream": True}
        if prompt.tools:
            body["tools"] = [tool_schema(tool) for tool in prompt.tools]
        head = to_json(body)[:-1] + b',"messages":['
        if prompt.system:
            head += to_json({"role": "system", "content": prompt.system})
        return head

    def _message(self, message: Message) -> bytes:
        if message.role == "assistant":
            return to_json(self._assistant(message))
        if message.role == "system" and self._info.mid_system:
            text = joined_text([part.text for part in message.parts if isinstance(part, Text)])
            return to_json({"role": "system", "content": text or EMPTY_TEXT})
        return b",".join(to_json(m) for m in self._user(message))

    def _assistant(self, message: Message) -> dict[str, Any]:
        text = verbatim_text(message)
        out: dict[str, Any] = {"role": "assistant", "content": text}
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        if calls:
            out["tool_calls"] = [
                {"function": {"name": call.name, "arguments": call.args}} for call in calls
            ]
            thoughts = [
                part.text
                for part in message.parts
                if isinstance(part, Thinking) and part.model == self._info.name
            ]
            if thoughts:
                out["thinking"] = "".join(thoughts)
        elif not text:
            out["content"] = EMPTY_TEXT
        return out

    def _user(self, message: Message) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = [
            {"role": "tool", "tool_name": part.name, "content": result_text(part)}
            for part in message.parts
            if isinstance(part, CallResult)
        ]
        texts: list[str] = []
        images: list[str] = []
        for part in message.parts:
            if isinstance(part, Text):
                texts.append(part.text)
            elif isinstance(part, Image) and self._info.vision and part.data:
                images.append(part.data)
            elif isinstance(part, Image):
                texts.append(no_image(part))
        if results and not texts and not images:
            return results
        user: dict[str, Any] = {"role": "user", "content": joined_text(texts) or EMPTY_TEXT}
        if images:
            user["images"] = images
        return [*results, user]


class LineParser:
    """Cuts newline-delimited JSON into events."""

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._size = 0

    def feed(self, block: bytes) -> list[Event]:
        head, newline, rest = block.partition(b"\n")
        self._partial.append(head)
        self._size += len(head)
        if self._size > MAX_EVENT:
            raise EventTooLong(f"a line of more than {MAX_EVENT} bytes")
        if not newline:
            return []
        lines = [b"".join(self._partial), *rest.split(b"\n")]
        self._partial = [lines.pop()]
        self._size = len(self._partial[0])
        return [Event("", line) for line in lines if line.strip()]


class _Function(Struct):
    name: str = ""
    arguments: Any = None


class _Call(Struct):
    function: _Function
    id: str | None = None


class _Message(Struct):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[_Call] | None = None


class _Line(Struct):
    message: _Message | None = None
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    error: Any = None


_decoder = msgspec.json.Decoder(_Line)


class OllamaDecoder:
    """Decodes one reply; every call comes whole."""

    def __init__(self, place: Place, *, sent_tools: bool) -> None:
        self.done = False
        self._place = place
        self._sent_tools = sent_tools
        self._reason: FinishReason | None = None
        self._calls = 0

    @property
    def finished(self) -> bool:
        return self._reason is not None

    def feed(self, event: Event) -> list[Chunk]:
        """The chunks of one line. Raises `ModelError` for an error object or a malformed line."""
        try:
            line = _decoder.decode(event.data)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise malformed(self._place, str(error)) from error
        if line.error:
            raise error_in_stream(self._place, line.error, sent_tools=self._sent_tools)
        out: list[Chunk] = []
        if line.message is not None:
            if line.message.thinking:
                out.append(ThinkingChunk(line.message.thinking))
            if line.message.content:
                out.append(TextChunk(line.message.content))
            for call in line.message.tool_calls or ():
                arguments = call.function.arguments
                if not isinstance(arguments, str):
                    arguments = msgspec.json.encode(arguments or {}).decode()
                out.append(
                    CallChunk(
                        index=self._calls,
                        provider_id=call.id,
                        name=call.function.name,
                        args=arguments,
                    )
                )
                self._calls += 1
        if line.done:
            self.done = True
            self._reason = "length" if line.done_reason == "length" else "stop"
            if self._calls and self._reason == "stop":
                self._reason = "tool_calls"
            out.append(
                UsageChunk(
                    Usage(input=count(line.prompt_eval_count), output=count(line.eval_count))
                )
            )
        return out

    def close(self) -> list[Chunk]:
        """What is left at the stream's end: the finish, unless the stream was cut."""
        return [] if self._reason is None else [FinishChunk(self._reason)]
