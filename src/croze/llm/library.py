"""Other providers (Google's own API, Bedrock and so on) through the model layer of pydantic-ai.

The extra `croze[providers]` brings it; it is loaded when such a model is first used.
"""

import base64
import dataclasses
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from croze.llm.faults import Place, error_of_status, malformed
from croze.llm.openai import no_image, result_text
from croze.llm.wire import EMPTY_TEXT, Fragments, HeadCache, assemble, to_json
from croze.types.context import Message, Prompt, Role
from croze.types.errors import ConfigError, ModelError
from croze.types.model import ModelInfo, Usage
from croze.types.parts import CallResult, Image, Part, Text, Thinking, ToolCall
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
    from croze.types.tool import ToolDoc

_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content_filter",
    "tool_call": "tool_calls",
    "error": "error",
}


class _Sent(Struct, frozen=True):
    role: Role
    parts: tuple[Part, ...]


class _Tool(Struct, frozen=True):
    name: str
    description: str
    parameters: dict[str, Any]


class _Body(Struct, frozen=True):
    """A request in our own form: the library makes the provider's of it."""

    system: str
    tools: tuple[_Tool, ...]
    max_tokens: int | None
    messages: tuple[_Sent, ...]


_decoder = msgspec.json.Decoder(_Body)


class LibraryModel:
    """A model reached through pydantic-ai. `model` is one of its models; without it the one that
    `info` names is made with `api_key` (or what the provider's own environment holds)."""

    def __init__(self, info: ModelInfo, *, api_key: str | None, model: Any = None) -> None:
        self._info = info
        self._key = api_key.strip() if api_key else None
        self._place = Place(info.provider, info.model, f"{info.provider}'s API", self._key)
        self._model = model
        self._heads = HeadCache(self._head)
        self._fragments = Fragments(lambda message: b"," + self._message(message))

    @property
    def info(self) -> ModelInfo:
        return self._info

    def encode(self, prompt: Prompt) -> bytes:
        fragments = self._fragments.all(prompt.messages)
        return assemble(self._heads.get(prompt), fragments)

    async def stream(self, body: bytes) -> AsyncGenerator[Chunk, None]:
        request = _decoder.decode(body)
        if self._model is None:
            self._model = open_library(self._info, self._key)
        library = load("pydantic_ai.direct")
        parameters = load("pydantic_ai.models").ModelRequestParameters(
            function_tools=[_definition(tool) for tool in request.tools], allow_text_output=True
        )
        settings: dict[str, Any] = dict(self._info.options)
        if request.max_tokens is not None:
            settings["max_tokens"] = request.max_tokens
        reader = _Reader()
        with failures(self._place, sent_tools=bool(request.tools)):
            async with library.model_request_stream(
                self._model,
                self._history(request),
                model_settings=settings,
                model_request_parameters=parameters,
            ) as events:
                async for event in events:
                    for chunk in reader.feed(event):
                        yield chunk
                response = events.get()
        for chunk in reader.close(response):
            yield chunk

    async def aclose(self) -> None:
        self._model = None

    def _head(self, prompt: Prompt) -> bytes:
        tools = [_tool(tool) for tool in prompt.tools]
        head = {"max_tokens": prompt.max_output, "system": prompt.system, "tools": tools}
        return to_json(head)[:-1] + b',"messages":['

    def _message(self, message: Message) -> bytes:
        parts = [
            part
            for part in message.parts
            if not isinstance(part, Thinking) or part.model == self._info.name
        ]
        return to_json(_Sent(message.role, tuple(parts)))

    def _history(self, request: _Body) -> list[Any]:
        messages = load("pydantic_ai.messages")
        out: list[Any] = []
        if request.system:
            system = messages.SystemPromptPart(content=request.system)
            out.append(messages.ModelRequest(parts=[system]))
        for sent in request.messages:
            if sent.role == "assistant":
                out.append(messages.ModelResponse(parts=_answer(messages, sent.parts)))
            else:
                out.append(messages.ModelRequest(parts=self._said(messages, sent.parts)))
        return out

    def _said(self, messages: ModuleType, parts: tuple[Part, ...]) -> list[Any]:
        results = [
            messages.ToolReturnPart(
                tool_name=part.name, content=result_text(part), tool_call_id=part.call_id
            )
            for part in parts
            if isinstance(part, CallResult)
        ]
        content: list[Any] = []
        for part in parts:
            if isinstance(part, Text) and part.text.strip():
                content.append(part.text)
            elif isinstance(part, Image) and self._info.vision and part.data:
                data = base64.b64decode(part.data)
                content.append(messages.BinaryContent(data=data, media_type=part.media_type))
            elif isinstance(part, Image):
                content.append(no_image(part))
        if results and not content:
            return results
        return [*results, messages.UserPromptPart(content=content or [EMPTY_TEXT])]


class _Reader:
    """Turns the library's events into chunks. A call's position is its order in the reply."""

    def __init__(self) -> None:
        self._calls: dict[int, int] = {}

    def feed(self, event: Any) -> list[Chunk]:
        kind = getattr(event, "event_kind", "")
        if kind == "part_start":
            return self._start(event.index, event.part)
        if kind == "part_delta":
            return self._delta(event.index, event.delta)
        return []

    def close(self, response: Any) -> list[Chunk]:
        """Thinking in the provider's form, usage, and the finish unless the provider gave none."""
        out: list[Chunk] = []
        kept = _kept(response)
        if kept is not None:
            out.append(ThinkingChunk(opaque=kept))
        out.append(UsageChunk(_usage(response.usage)))
        reason = _REASONS.get(response.finish_reason or "")
        if reason is not None:
            # Gemini says "stop" also where the reply made calls.
            calls = reason == "stop" and self._calls
            out.append(FinishChunk("tool_calls" if calls else reason))
        return out

    def _start(self, index: int, part: Any) -> list[Chunk]:
        match part.part_kind:
            case "text" if part.content:
                return [TextChunk(part.content)]
            case "thinking" if part.content:
                return [ThinkingChunk(part.content)]
            case "tool-call":
                position = self._calls.setdefault(index, len(self._calls))
                return [
                    CallChunk(
                        index=position,
                        provider_id=part.tool_call_id,
                        name=part.tool_name,
                        args=_arguments(part.args),
                    )
                ]
        return []

    def _delta(self, index: int, delta: Any) -> list[Chunk]:
        match delta.part_delta_kind:
            case "text" if delta.content_delta:
                return [TextChunk(delta.content_delta)]
            case "thinking" if delta.content_delta:
                return [ThinkingChunk(delta.content_delta)]
            case "tool_call":
                arguments = _arguments(delta.args_delta)
                return [CallChunk(index=self._calls[index], args=arguments)] if arguments else []
        return []


def load(name: str) -> ModuleType:
    """A module of pydantic-ai. Raises `ConfigError` where the extra is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(
            "this provider needs the extra that is not installed",
            hint="Install it: uv tool install 'croze[providers]' (or pip install 'croze[providers]').",
            code="no_providers_extra",
        ) from error


def open_library(info: ModelInfo, key: str | None) -> Any:
    """The library's model for `info`. Raises `ConfigError` for a provider that it has not, lacks a
    key for or has another extra for."""
    providers, models = load("pydantic_ai.providers"), load("pydantic_ai.models")
    user_error: type[Exception] = load("pydantic_ai.exceptions").UserError

    def make(name: str) -> Any:
        provider = providers.infer_provider_class(name)
        options = {"api_key": key} if key else {}
        if info.base_url:
            options["base_url"] = info.base_url
        return provider(**options)

    try:
        return models.infer_model(info.name, make)
    except (user_error, ValueError, TypeError, ImportError) as error:
        raise ConfigError(
            f"{info.name} can't be opened: "
            f"{Place(info.provider, info.model, '', key).scrub(str(error))}",
            hint="Check the provider's name, its key and its settings.",
            code="provider",
        ) from error


@contextmanager
def failures(place: Place, *, sent_tools: bool) -> Iterator[None]:
    """The library's exceptions as `ModelError`."""
    errors = load("pydantic_ai.exceptions")
    http: type[Any] = errors.ModelHTTPError
    lost: tuple[type[Exception], ...] = (errors.ModelConnectionError, errors.ModelTimeoutError)
    model: type[Exception] = errors.ModelAPIError
    odd: type[Exception] = errors.UnexpectedModelBehavior
    try:
        yield
    except http as error:
        body = to_json(error.body) if isinstance(error.body, dict) else str(error.body).encode()
        headers = error.headers or {}
        raise error_of_status(
            place, error.status_code, body, headers, sent_tools=sent_tools
        ) from error
    except lost as error:
        raise ModelError(
            f"the connection to {place.provider} broke: {place.scrub(str(error))}",
            retryable=True,
            code="reset",
        ) from error
    except odd as error:
        raise malformed(place, str(error)) from error
    except model as error:
        raise ModelError(
            f"{place.provider} answered with an error: {place.scrub(str(error))}",
            code="bad_request",
        ) from error


def _tool(tool: "ToolDoc") -> _Tool:
    return _Tool(tool.name, tool.description or tool.summary, tool.parameters)


def _definition(tool: _Tool) -> Any:
    # strict=False: else the library would make every parameter required for OpenAI.
    return load("pydantic_ai.tools").ToolDefinition(
        name=tool.name,
        description=tool.description,
        parameters_json_schema=tool.parameters,
        strict=False,
    )


def _arguments(args: Any) -> str:
    if args is None or args == {}:
        return ""
    return args if isinstance(args, str) else to_json(args).decode()


def _answer(messages: ModuleType, parts: tuple[Part, ...]) -> list[Any]:
    """An assistant's message; what the provider wants back with its calls is taken from the log."""
    kept: list[Any] = []
    for part in parts:
        if isinstance(part, Thinking) and part.opaque:
            stored = messages.ModelMessagesTypeAdapter.validate_json(part.opaque)
            kept.extend(p for response in stored for p in response.parts)
    out: list[Any] = [part for part in kept if part.part_kind == "thinking"]
    calls = iter([part for part in kept if part.part_kind == "tool-call"])
    text = "".join(part.text for part in parts if isinstance(part, Text))
    if text.strip():
        out.append(messages.TextPart(content=text))
    for part in parts:
        if isinstance(part, ToolCall):
            made = messages.ToolCallPart(part.name, dict(part.args), part.id)
            known = next(calls, None)
            if known is not None and known.tool_name == part.name:
                made = dataclasses.replace(
                    made, provider_name=known.provider_name, provider_details=known.provider_details
                )
            out.append(made)
    if not text.strip() and not any(part.part_kind == "tool-call" for part in out):
        out.append(messages.TextPart(content=EMPTY_TEXT))
    return out


def _kept(response: Any) -> str | None:
    """The parts whose provider form must go back (signatures), as the library's own JSON."""
    parts = []
    for part in response.parts:
        if part.part_kind == "thinking" and (part.signature or part.provider_details):
            parts.append(part)
        elif part.part_kind == "tool-call":
            parts.append(dataclasses.replace(part, args=None))
    if not any(part.part_kind == "thinking" or part.provider_details for part in parts):
        return None
    adapter = load("pydantic_ai.messages").ModelMessagesTypeAdapter
    stored: bytes = adapter.dump_json([dataclasses.replace(response, parts=parts)])
    return stored.decode()


def _usage(usage: Any) -> Usage:
    """Usage, with zeros where the library can't tell zero from unknown taken as unknown."""
    details = usage.details or {}
    return Usage(
        input=usage.input_tokens or None,
        output=usage.output_tokens or None,
        cached=usage.cache_read_tokens or None,
        cache_write=usage.cache_write_tokens or None,
        thinking=details.get("thoughts_tokens") or details.get("reasoning_tokens"),
    )
