"""The OpenAI-compatible wire: chat completions as a stream.

Form of requests and replies: https://platform.openai.com/docs/api-reference/chat/create; where
servers differ, `quirks` says how.
"""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from croze.llm.faults import Place
from croze.llm.http import Http, Timeouts, stream_events
from croze.llm.openai_stream import OpenAIDecoder
from croze.llm.quirks import quirks_of
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
from croze.types.model import ModelInfo
from croze.types.parts import CallResult, Image, Text, Thinking, ToolCall
from croze.types.stream import Chunk
from croze.types.tool import ToolDoc

if TYPE_CHECKING:
    import httpx2


class OpenAIModel:
    """A model behind an OpenAI-compatible server. Options of `info` go into every request as they
    are (`temperature`, `reasoning_effort` and so on)."""

    def __init__(
        self,
        info: ModelInfo,
        *,
        api_key: str | None,
        client: "httpx2.AsyncClient | None" = None,
        timeouts: Timeouts = Timeouts(),  # noqa: B008 (a frozen value)
    ) -> None:
        self._info = info
        self._quirks = quirks_of(info.provider)
        base_url = info.base_url.rstrip("/")
        key = api_key.strip() if api_key else None
        self._place = Place(info.provider, info.model, address_of(base_url), key)
        self._http = Http(
            place=self._place,
            base_url=base_url,
            headers={
                "accept": "text/event-stream",
                **({"authorization": f"Bearer {key}"} if key else {}),
            },
            timeouts=timeouts,
            client=client,
            start=self._quirks.start,
        )
        prefix = self._quirks.prefill_path if info.prefill else ""
        root = base_url.removesuffix("/v1").removesuffix(prefix) + prefix if prefix else base_url
        self._url = f"{root}/chat/completions"
        self._heads = HeadCache(self._head)
        self._fragments = Fragments(lambda message: b"," + self._message(message))

    @property
    def info(self) -> ModelInfo:
        return self._info

    def encode(self, prompt: Prompt) -> bytes:
        fragments = self._fragments.all(prompt.messages)
        if prompt.prefill and fragments and self._quirks.prefill_message:
            mark = to_json(self._quirks.prefill_message)
            fragments[-1] = fragments[-1][:-1] + b"," + mark[1:]
        return assemble(self._heads.get(prompt), fragments)

    def stream(self, body: bytes) -> AsyncGenerator[Chunk, None]:
        decoder = OpenAIDecoder(
            self._place,
            sent_tools=b'"tools":[' in body,
            keep_details=self._quirks.reasoning_details,
        )
        return stream_events(self._http, self._url, body, decoder)

    async def aclose(self) -> None:
        await self._http.aclose()

    def _head(self, prompt: Prompt) -> bytes:
        """The request up to its first message; the messages come last, so a longer transcript only
        appends."""
        body: dict[str, Any] = dict(self._info.options)
        if "num_ctx" in body:
            body["options"] = {"num_ctx": body.pop("num_ctx")}
        body["model"] = self._info.model
        body["stream"] = True
        if self._quirks.stream_options:
            body["stream_options"] = {"include_usage": True}
        if prompt.max_output is not None:
            body[self._quirks.max_tokens] = prompt.max_output
        if prompt.tools:
            body["tools"] = [tool_schema(tool) for tool in prompt.tools]
        if prompt.prefill:
            body.update(self._quirks.prefill_body)
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
        encoded = [to_json(m) for m in self._user(message)]
        return b",".join(encoded)

    def _assistant(self, message: Message) -> dict[str, Any]:
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        thoughts = [
            part
            for part in message.parts
            if isinstance(part, Thinking) and part.model == self._info.name
        ]
        text = verbatim_text(message)
        out: dict[str, Any] = {"role": "assistant"}
        if calls:
            out["content"] = text or None
            out["tool_calls"] = [call_form(call) for call in calls]
            field = self._quirks.reasoning_field
            if field and thoughts:
                out[field] = "".join(part.text for part in thoughts)
        else:
            out["content"] = text or EMPTY_TEXT
        if self._quirks.reasoning_details:
            details = [part.opaque for part in thoughts if part.opaque]
            if details:
                out["reasoning_details"] = Raw(details[-1].encode())
        return out

    def _user(self, message: Message) -> list[dict[str, Any]]:
        results = [
            {"role": "tool", "tool_call_id": part.call_id, "content": result_text(part)}
            for part in message.parts
            if isinstance(part, CallResult)
        ]
        rest = [part for part in message.parts if isinstance(part, (Text, Image))]
        if not rest and results:
            return results
        if not self._info.vision or not any(isinstance(p, Image) and p.data for p in rest):
            text = joined_text([p.text if isinstance(p, Text) else no_image(p) for p in rest])
            content: Any = text or EMPTY_TEXT
        else:
            content = [content_block(part) for part in rest]
        return [*results, {"role": "user", "content": content}]


def tool_schema(tool: ToolDoc) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description or tool.summary,
            "parameters": tool.parameters,
        },
    }


def call_form(call: ToolCall) -> dict[str, Any]:
    arguments = to_json(call.args).decode()
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def content_block(part: Text | Image) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text or EMPTY_TEXT}
    if not part.data:
        return {"type": "text", "text": no_image(part)}
    return {
        "type": "image_url",
        "image_url": {"url": f"data:{part.media_type};base64,{part.data}"},
    }


def no_image(image: Image) -> str:
    return f"[image {image.media_type}, not shown to this model]"


def result_text(result: CallResult) -> str:
    """A result where the wire has no flag for failure: it then begins with "error"."""
    message = result.message
    if not result.ok and not message.lower().startswith("error"):
        message = f"error: {message}" if message else "error"
    both = f"{message}\n{result.text}" if message and result.text else message or result.text
    return both or "ok"
