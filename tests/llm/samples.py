"""Values that the wire tests share: model infos, messages, prompts, and a reply put back together."""

import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any

from croze.types.context import Layer, Message, Prompt, Role
from croze.types.model import ModelInfo, Usage
from croze.types.parts import Part, Text
from croze.types.stream import (
    CallChunk,
    Chunk,
    FinishChunk,
    RetryChunk,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
)
from croze.types.tool import ToolDoc

KEY = "sk-secret-0123456789abcdef"

READ = ToolDoc(
    name="read",
    summary="Read a file.",
    description="Read a file of the project.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


def model_info(base_url: str = "http://127.0.0.1:1/v1", **changes: Any) -> ModelInfo:
    values: dict[str, Any] = {
        "provider": "acme",
        "model": "test",
        "window": 32_768,
        "max_output": 4_096,
        "base_url": base_url,
    }
    return ModelInfo(**(values | changes))


def message(role: Role, *parts: Part | str, key: int = 1, layer: Layer = "history") -> Message:
    whole = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return Message(key=key, last=key, role=role, parts=whole, layer=layer)


def prompt(*messages: Message, system: str = "Be brief.", **rest: Any) -> Prompt:
    return Prompt(system=system, messages=messages or (message("user", "hello"),), **rest)


@dataclass
class Whole:
    """A reply put together from its chunks."""

    text: str = ""
    thinking: str = ""
    opaque: list[Any] = field(default_factory=list)
    calls: dict[int, list[Any]] = field(default_factory=dict)
    usage: Usage = Usage()  # noqa: RUF009
    finish: str | None = None
    retries: list[RetryChunk] = field(default_factory=list)

    @property
    def named_calls(self) -> list[tuple[str | None, str]]:
        return [(name, args) for _, name, args in self.calls.values()]


def whole(chunks: Iterable[Chunk]) -> Whole:
    out = Whole()
    for chunk in chunks:
        assert out.finish is None, "the finish is the last chunk"
        match chunk:
            case TextChunk():
                out.text += chunk.text
            case ThinkingChunk():
                out.thinking += chunk.text
                if chunk.opaque:
                    out.opaque.append(json.loads(chunk.opaque))
            case CallChunk():
                call = out.calls.setdefault(chunk.index, [None, None, ""])
                call[0] = call[0] or chunk.provider_id
                call[1] = call[1] or chunk.name
                call[2] += chunk.args
            case UsageChunk():
                out.usage = chunk.usage
            case FinishChunk():
                out.finish = chunk.reason
            case RetryChunk():
                out = Whole(retries=[*out.retries, chunk])
    return out


async def collect(stream: AsyncIterator[Chunk]) -> Whole:
    return whole([chunk async for chunk in stream])
