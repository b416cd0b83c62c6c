"""A model that plays a script: no network, the same reply every time, faults where they are wanted."""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from croze.llm.script import FAILURES, Script, ScriptedCall, ScriptedPart, ScriptedReply
from croze.llm.wire import Fragments, HeadCache
from croze.types.context import Message, Prompt
from croze.types.errors import ModelError
from croze.types.model import ModelInfo, Usage
from croze.types.parts import CallResult, Part, Text, Thinking
from croze.types.stream import (
    CallChunk,
    Chunk,
    FinishChunk,
    FinishReason,
    RetryChunk,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
)
from croze.types.tool import ToolDoc

BYTES_PER_TOKEN = 4
SHOWN = 300
"""Characters of what came instead that an error shows."""

_encoder = msgspec.json.Encoder(order="deterministic")
_NATIVE = b'{"protocol":"native",'
_XML = b'{"protocol":"xml",'
_BLOCK = 1 << 16


class _Head(Struct, frozen=True):
    model: str
    prefill: bool
    max_output: int | None
    system: str
    tools: tuple[ToolDoc, ...]


class _Said(Struct, frozen=True):
    role: str
    parts: tuple[Part, ...]


class _Messages(Struct, frozen=True):
    messages: list[Raw]


class PromptEncoder:
    """The scripted model's encoder: JSON with everything of the prompt, the messages last."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._heads = HeadCache(self._head)
        self._fragments = Fragments(_fragment)

    def __call__(self, prompt: Prompt) -> bytes:
        messages = b",".join(self._fragments.all(prompt.messages))
        return b"".join((self._heads.get(prompt), messages, b"]}"))

    def _head(self, prompt: Prompt) -> bytes:
        head = _Head(
            model=self._model,
            prefill=prompt.prefill,
            max_output=prompt.max_output,
            system=prompt.system,
            tools=prompt.tools,
        )
        protocol = _NATIVE if prompt.tools else _XML
        return protocol + _encoder.encode(head)[1:-1] + b',"messages":['


def _fragment(message: Message) -> bytes:
    return _encoder.encode(_Said(role=message.role, parts=message.parts))


class ScriptedModel:
    """Plays the replies of `script` in order, one for each request; those of the sub-agent `agent`, where
    one is named, as its first request decides.

    The same script serves both protocols: calls become tags in the text where the prompt has no tools.
    A reply whose `expect` or `matches` is not met, and a request past the last reply, raise
    `ModelError` (codes `script_diverged`, `script_ended`).
    """

    def __init__(self, info: ModelInfo, script: Script, *, agent: str = "") -> None:
        self._info = info
        self._script = script
        self._agent = agent
        self._replies: tuple[ScriptedReply, ...] | None = None if agent else script.replies
        self._encode = PromptEncoder(info.name)
        self._next = 0
        self._last_body = b""

    @property
    def info(self) -> ModelInfo:
        return self._info

    def encode(self, prompt: Prompt) -> bytes:
        return self._encode(prompt)

    async def aclose(self) -> None:
        """Nothing is open."""

    async def stream(self, body: bytes) -> AsyncGenerator[Chunk, None]:
        native = body.startswith(_NATIVE)
        if self._replies is None:
            self._replies = self._script.play(self._agent, _news(b"", body))
        reply = self._take(self._replies, native=native)
        self._check(reply, body)
        cached = _shared(self._last_body, body) // BYTES_PER_TOKEN if self._last_body else 0
        self._last_body = body
        failure = reply.error or FAILURES.get(reply.fault or "")
        left = reply.after
        if left is None:
            left = 0 if failure is not None and failure.status and reply.fault else -1
        size = self._script.chunk if reply.chunk is None else reply.chunk
        delay = self._script.delay if reply.delay is None else reply.delay
        sent = 0
        for chunk in _chunks(reply, native=native, size=size):
            if 0 <= left <= sent:
                break
            if left >= 0:
                chunk = _shortened(chunk, left - sent)
            yield chunk
            sent += _length(chunk)
            await asyncio.sleep(delay)
        if failure is not None or reply.fault in ("cut", "stall"):
            if isinstance(reply.usage, Usage):
                yield UsageChunk(reply.usage)
            if failure is not None:
                raise failure.error()
            if reply.fault == "stall":
                await asyncio.Event().wait()
            return
        if isinstance(reply.usage, Usage):
            yield UsageChunk(reply.usage)
        elif reply.usage is None:
            tokens = len(body) // BYTES_PER_TOKEN
            yield UsageChunk(
                Usage(input=tokens, output=-(-sent // BYTES_PER_TOKEN), cached=min(cached, tokens))
            )
        yield FinishChunk(_finish(reply, native=native))

    def _take(self, replies: tuple[ScriptedReply, ...], *, native: bool) -> ScriptedReply:
        while self._next < len(replies):
            reply = replies[self._next]
            self._next += 1
            # A server can only refuse tools that were sent.
            if reply.fault != "tools_refused" or native:
                return reply
        raise ModelError(
            f"The script {self._info.model} has {len(replies)} replies"
            f"{f' for the agent {self._agent}' if self._agent else ''}; another one was asked for.",
            hint="Add a reply to the script, or see why the session went on.",
            code="script_ended",
        )

    def _check(self, reply: ScriptedReply, body: bytes) -> None:
        expected = (reply.expect,) if isinstance(reply.expect, str) else reply.expect
        if not expected and reply.matches is None:
            return
        came = _news(self._last_body, body)
        for text in expected:
            if text not in came:
                raise self._diverged(repr(text), came)
        if reply.matches is not None:
            try:
                found = re.search(reply.matches, came, re.MULTILINE)
            except re.error as error:
                raise ModelError(
                    f"Reply {self._next} of the script {self._info.model}: {reply.matches!r} is no "
                    f"regular expression: {error}.",
                    hint="Correct `matches` in the script.",
                    code="script",
                ) from error
            if found is None:
                raise self._diverged(f"a match for {reply.matches!r}", came)

    def _diverged(self, wanted: str, came: str) -> ModelError:
        shown = came if len(came) <= SHOWN else f"…{came[-SHOWN:]}"
        return ModelError(
            f"The session left the script {self._info.model}: reply {self._next} expects {wanted}, "
            f"but there came {shown!r}.",
            hint="See what the tools returned, then correct the script or the tool.",
            code="script_diverged",
        )


def call_as_tags(call: ScriptedCall) -> str:
    """A call as the xml protocol writes it: values literal, other values than strings as JSON."""
    args = call.args
    if isinstance(args, str):
        try:
            args = msgspec.json.decode(args, type=dict[str, Any])
        except msgspec.MsgspecError:
            return f"<{call.name}>\n{call.args}\n</{call.name}>"
    lines = [f"<{key}>{_literal(value)}</{key}>\n" for key, value in args.items()]
    return f"<{call.name}>\n{''.join(lines)}</{call.name}>"


def _literal(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    # One newline at each end is the form's own.
    return f"\n{text}\n" if text.startswith("\n") or text.endswith("\n") else text


def _chunks(reply: ScriptedReply, *, native: bool, size: int) -> Iterator[Chunk]:
    if reply.fault == "empty":
        return
    parts = reply.in_order()
    calls = [i for i, part in enumerate(parts) if part.call is not None]
    broken = calls[-1] if calls and reply.fault == "malformed_call" else -1
    if not native:
        parts = tuple(_as_text(parts, broken))
    index = 0
    for i, part in enumerate(parts):
        if part.retry is not None:
            retry = part.retry
            yield RetryChunk(retry.attempt, retry.delay, retry.code, retry.message)
            index = 0
        elif part.call is not None:
            yield from _call(part.call, index, size, broken=i == broken)
            index += 1
        elif part.text is not None:
            yield from (TextChunk(piece) for piece in _pieces(part.text, size))
        else:
            yield from (ThinkingChunk(piece) for piece in _pieces(part.thinking or "", size))
            if part.opaque is not None:
                yield ThinkingChunk(opaque=part.opaque)


def _as_text(parts: tuple[ScriptedPart, ...], broken: int) -> Iterator[ScriptedPart]:
    """The parts with calls as text, each on a line of its own."""
    before = ""
    for i, part in enumerate(parts):
        if part.call is None:
            yield part
            before = part.text if part.text is not None else before
            continue
        tags = call_as_tags(part.call)
        if i == broken:
            end = tags.rfind("</", 0, tags.rfind("</"))
            tags = tags[:end] if end > 0 else tags[: tags.rfind("</")]
        if before and not before.endswith("\n"):
            tags = f"\n{tags}"
        yield ScriptedPart(text=tags)
        before = tags


def _call(call: ScriptedCall, index: int, size: int, *, broken: bool) -> Iterator[Chunk]:
    args = call.args if isinstance(call.args, str) else msgspec.json.encode(call.args).decode()
    if broken:
        args = args.rstrip()[:-1]
    pieces = list(_pieces(args, size))
    yield CallChunk(
        index=index,
        provider_id=call.id,
        name=call.name,
        args=pieces[0] if pieces and not size else "",
    )
    if size:
        yield from (CallChunk(index=index, args=piece) for piece in pieces)


def _pieces(text: str, size: int) -> Iterator[str]:
    if size <= 0:
        if text:
            yield text
        return
    for start in range(0, len(text), size):
        yield text[start : start + size]


def _length(chunk: Chunk) -> int:
    match chunk:
        case TextChunk() | ThinkingChunk():
            return len(chunk.text)
        case CallChunk():
            return len(chunk.args)
    return 0


def _shortened(chunk: Chunk, length: int) -> Chunk:
    match chunk:
        case TextChunk():
            return TextChunk(chunk.text[:length])
        case ThinkingChunk():
            return ThinkingChunk(chunk.text[:length])
        case CallChunk():
            return msgspec.structs.replace(chunk, args=chunk.args[:length])
    return chunk


def _finish(reply: ScriptedReply, *, native: bool) -> FinishReason:
    calls = reply.fault != "empty" and any(part.call for part in reply.in_order())
    if reply.finish is None:
        return "tool_calls" if native and calls else "stop"
    return "stop" if reply.finish == "tool_calls" and not native else reply.finish


def _shared(first: bytes, second: bytes) -> int:
    """The length of the common prefix."""
    most = min(len(first), len(second))
    start = 0
    while start < most and first[start : start + _BLOCK] == second[start : start + _BLOCK]:
        start += _BLOCK
    low, high = min(start, most), min(start + _BLOCK, most)
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _news(last: bytes, body: bytes) -> str:
    """The text of the user's side that this request has and the last one had not; of all of it where
    nothing is new (another try)."""
    messages = [bytes(m) for m in msgspec.json.decode(body, type=_Messages).messages]
    known = msgspec.json.decode(last, type=_Messages).messages if last else []
    same = 0
    for ours, theirs in zip(messages, known, strict=False):
        if ours != bytes(theirs):
            break
        same += 1
    lines: list[str] = []
    for raw in messages[same:] or messages:
        said = msgspec.json.decode(raw, type=_Said)
        for part in said.parts if said.role == "user" else ():
            match part:
                case Text() | Thinking():
                    lines.append(part.text)
                case CallResult():
                    lines += [part.message, part.text]
    return "\n".join(lines)
