"""The Anthropic wire: messages as a stream, with prompt-cache markers.

Form of requests and replies: https://docs.anthropic.com/en/api/messages and
https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from croze.llm.anthropic_stream import AnthropicDecoder
from croze.llm.faults import Place
from croze.llm.http import Http, Timeouts, stream_events
from croze.llm.openai import no_image
from croze.llm.wire import (
    EMPTY_TEXT,
    Fragments,
    HeadCache,
    address_of,
    assemble,
    to_json,
    verbatim_text,
)
from croze.types.context import Message, Prompt, Role
from croze.types.model import ModelInfo
from croze.types.parts import CallResult, Image, Part, Text, Thinking, ToolCall
from croze.types.stream import Chunk

if TYPE_CHECKING:
    import httpx2

VERSION = "2023-06-01"
MARKER: dict[str, Any] = {"type": "ephemeral"}
_MARK = b',"cache_control":' + to_json(MARKER)


class AnthropicModel:
    """A model behind Anthropic's messages. Options of `info` go into every request as they are;
    `thinking_budget` (tokens) and `thinking` ("adaptive") turn thinking on, `effort` sets its depth.
    """

    def __init__(
        self,
        info: ModelInfo,
        *,
        api_key: str | None,
        client: "httpx2.AsyncClient | None" = None,
        timeouts: Timeouts = Timeouts(),  # noqa: B008 (a frozen value)
    ) -> None:
        self._info = info
        base_url = info.base_url.rstrip("/")
        key = api_key.strip() if api_key else None
        self._place = Place(info.provider, info.model, address_of(base_url), key)
        self._http = Http(
            place=self._place,
            base_url=base_url,
            headers={
                "accept": "text/event-stream",
                "anthropic-version": VERSION,
                **({"x-api-key": key} if key else {}),
            },
            timeouts=timeouts,
            client=client,
        )
        self._url = f"{base_url.removesuffix('/v1')}/v1/messages"
        self._heads = HeadCache(self._head)
        self._fragments = Fragments(lambda message: b"," + self._message(message))

    @property
    def info(self) -> ModelInfo:
        return self._info

    def encode(self, prompt: Prompt) -> bytes:
        messages = prompt.messages
        fragments = self._fragments.all(messages)
        if prompt.prefill and messages:
            start = self._prefill(messages[-1])
            fragments[-1:] = [b"," + start] if start else []
            messages = messages[: len(fragments)]
        for index in marked(messages):
            # Every message ends with its last block: `}]}`.
            fragments[index] = fragments[index][:-3] + _MARK + b"}]}"
        return assemble(self._heads.get(prompt), fragments)

    def stream(self, body: bytes) -> AsyncGenerator[Chunk, None]:
        decoder = AnthropicDecoder(self._place, sent_tools=b'"tools":[' in body)
        return stream_events(self._http, self._url, body, decoder)

    async def aclose(self) -> None:
        await self._http.aclose()

    def _head(self, prompt: Prompt) -> bytes:
        body: dict[str, Any] = dict(self._info.options)
        longest = self._info.max_output if prompt.max_output is None else prompt.max_output
        thinking, budget = body.pop("thinking", None), body.pop("thinking_budget", None)
        # A reply can't be continued from a prefix while thinking is on.
        if not prompt.prefill:
            if isinstance(budget, int) and not isinstance(budget, bool) and budget > 0:
                budget = max(1024, min(budget, longest - 1))
                if budget < longest:
                    body["thinking"] = {"type": "enabled", "budget_tokens": budget}
            elif thinking == "adaptive":
                body["thinking"] = {"type": "adaptive"}
        effort = body.pop("effort", None)
        if effort is not None:
            body["output_config"] = {"effort": effort}
        body["max_tokens"] = longest
        body["model"] = self._info.model
        body["stream"] = True
        if prompt.tools:
            tools: list[dict[str, Any]] = [
                {
                    "name": tool.name,
                    "description": tool.description or tool.summary,
                    "input_schema": tool.parameters,
                }
                for tool in prompt.tools
            ]
            if not static_length(prompt.messages):
                tools[-1]["cache_control"] = MARKER
            body["tools"] = tools
        if prompt.system.strip():
            block = {"type": "text", "text": prompt.system, "cache_control": MARKER}
            body["system"] = [block]
        return to_json(body)[:-1] + b',"messages":['

    def _message(self, message: Message) -> bytes:
        parts: list[Part] = []
        for part in message.parts:
            previous = parts[-1] if parts else None
            if (
                message.role == "assistant"
                and isinstance(part, Text)
                and isinstance(previous, Text)
            ):
                parts[-1] = Text(previous.text + part.text)
            else:
                parts.append(part)
        blocks = [block for part in parts if (block := self._block(part)) is not None]
        return frame(message.role, blocks or [{"type": "text", "text": EMPTY_TEXT}])

    def _prefill(self, message: Message) -> bytes:
        """The last message as the start of the reply: text only, without white space at its end;
        empty where no text is left."""
        text = verbatim_text(message).rstrip()
        return frame("assistant", [{"type": "text", "text": text}]) if text else b""

    def _block(self, part: Part) -> Any:
        match part:
            case Text(text=text):
                return {"type": "text", "text": text} if text.strip() else None
            case Thinking(opaque=opaque, model=model):
                return own_thinking(opaque) if opaque and model == self._info.name else None
            case ToolCall():
                return {"type": "tool_use", "id": part.id, "name": part.name, "input": part.args}
            case CallResult():
                return result_block(part)
            case Image():
                if not self._info.vision or not part.data:
                    return {"type": "text", "text": no_image(part)}
                source = {"type": "base64", "media_type": part.media_type, "data": part.data}
                return {"type": "image", "source": source}


def frame(role: Role, blocks: Sequence[Any]) -> bytes:
    """A message whose content comes last, so a marker can be put behind its last block. There is no
    system message amid the conversation here: it goes as the user's."""
    shown = b"assistant" if role == "assistant" else b"user"
    return b'{"role":"' + shown + b'","content":' + to_json(blocks) + b"}"


def static_length(messages: Sequence[Message]) -> int:
    """How many messages the static block has: the documentation ones at the start."""
    for index, message in enumerate(messages):
        if message.layer != "documentation":
            return index
    return len(messages)


def marked(messages: Sequence[Message]) -> set[int]:
    """Which messages carry a marker: the end of the static block, and the last two user messages.

    The last but one is where the request before this one ended, so its entry is hit however much
    came since; system (or tools) makes up the four markers that the API allows.
    """
    ends = {static_length(messages) - 1} - {-1}
    users = 0
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role != "assistant":
            ends.add(index)
            users += 1
            if users == 2:
                break
    return ends


def own_thinking(opaque: str) -> Any:
    """A thinking block exactly as it came; None where the log's copy is not JSON."""
    try:
        msgspec.json.decode(opaque)
    except msgspec.DecodeError:
        return None
    return Raw(opaque.encode())


def result_block(result: CallResult) -> dict[str, Any]:
    both = "\n".join(text for text in (result.message, result.text) if text)
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.call_id}
    block["content"] = [{"type": "text", "text": both if both.strip() else EMPTY_TEXT}]
    if not result.ok:
        block["is_error"] = True
    return block
