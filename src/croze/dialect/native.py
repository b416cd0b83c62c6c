"""The native protocol: the wire carries calls and results, the tools go along as schemas."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from croze.dialect.base import Decoder, Reply
from croze.dialect.cache import EncodedMessages
from croze.dialect.faults import ESCAPE_TOOL, malformed, repeated, truncated, unknown_tool
from croze.dialect.render import one_liners, parameters
from croze.types.context import Context, Message, Prompt
from croze.types.parts import CallError, Part, Text, Thinking, ToolCall
from croze.types.stream import (
    CallChunk,
    Chunk,
    Delta,
    FinishChunk,
    RetryChunk,
    TextChunk,
    ThinkingChunk,
)
from croze.types.tool import ToolDoc, ToolShape

_FORM = """\
Call tools by function calls; several in one reply run in order. Give arguments exactly as the schemas say \
and leave out optional ones that you don't need. A call written as text is not run."""

_OTHERS = """\
# More tools
They are called through call_tool (name, arguments). Get the parameters with describe_tools first."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class NativeDialect:
    """Function calling. One instance serves a session: it keeps the encoded form of its messages."""

    name: Literal["xml", "native"] = "native"

    def __init__(self) -> None:
        self._encoded = EncodedMessages(_encode)

    def advertise(self, core: Sequence[ToolDoc], others: Sequence[ToolDoc]) -> str:
        """The form, the core tools' guidelines (their schemas carry the rest), one line for each other
        tool. The part's heading is the head's."""
        parts = [_FORM]
        guided = [f"- {doc.name}: {doc.guideline.strip()}" for doc in core if doc.guideline]
        if guided:
            parts.append("\n".join(["# Guidelines", *guided]))
        if others:
            parts.append(f"{_OTHERS}\n{one_liners(others)}")
        return "\n\n".join(parts)

    def describe(self, tools: Sequence[ToolDoc]) -> str:
        return "\n\n".join(self._describe(doc) for doc in tools)

    def example(self, name: str, args: Mapping[str, object]) -> str:
        return f"{name} {msgspec.json.encode(dict(args)).decode()}"

    def encode(self, context: Context, *, prefill: bool = False) -> Prompt:
        """Calls and results as they are. Thinking is left out but for what a provider signed; a
        message of which nothing is left is left out too."""
        messages = self._encoded.all(context.messages)
        return Prompt(
            system=context.system, messages=messages, tools=context.tools, prefill=prefill
        )

    def decoder(self, tools: Mapping[str, ToolShape], new_id: Callable[[], str]) -> Decoder:
        return NativeDecoder(tools, new_id)

    def _describe(self, doc: ToolDoc) -> str:
        lines = [f"## {doc.name}", doc.description.strip(), parameters(doc, tags=False)]
        lines.append(doc.guideline.strip())
        for example in doc.examples:
            call = {"name": doc.name, "arguments": example.args}
            lines.append(f"{example.title}: {self.example(ESCAPE_TOOL, call)}")
        return "\n".join(line for line in lines if line)


class _Open:
    """A call that is being written."""

    __slots__ = ("args", "id", "name", "provider_id")

    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.name = ""
        self.provider_id: str | None = None
        self.args: list[str] = []


class _Block:
    """A run of text or of thinking."""

    __slots__ = ("closed", "opaque", "pieces", "thinking")

    def __init__(self, *, thinking: bool) -> None:
        self.thinking = thinking
        self.pieces: list[str] = []
        self.opaque: str | None = None
        self.closed = False


class NativeDecoder:
    """Reads one reply. After a finish for length it may be fed on with the reply's continuation."""

    halted = False

    def __init__(self, tools: Mapping[str, ToolShape], new_id: Callable[[], str]) -> None:
        self._tools = tools
        self._new_id = new_id
        self._start()

    def feed(self, chunk: Chunk) -> list[Delta]:
        if isinstance(chunk, TextChunk):
            return self._take(chunk.text, thinking=False)
        if isinstance(chunk, CallChunk):
            return self._take_call(chunk)
        if isinstance(chunk, ThinkingChunk):
            return self._take(chunk.text, thinking=True, opaque=chunk.opaque)
        if isinstance(chunk, RetryChunk):
            self._start()
            return [Delta(kind="reset")]
        if isinstance(chunk, FinishChunk) and chunk.reason != "length":
            return self._close()
        return []

    def finish(self, *, cut: bool) -> Reply:
        parts: list[Part] = []
        for block in self._blocks:
            if isinstance(block, _Open):
                parts.append(self._call(block, cut=cut and block is self._open))
                continue
            text = "".join(block.pieces)
            if block.thinking:
                parts.append(Thinking(text=text, opaque=block.opaque))
            elif text:
                parts.append(Text(text))
        return Reply(parts=tuple(parts))

    def _start(self) -> None:
        self._blocks: list[_Block | _Open] = []
        self._calls: dict[int, _Open] = {}
        self._open: _Open | None = None

    def _take(self, text: str, *, thinking: bool, opaque: str | None = None) -> list[Delta]:
        if not text and opaque is None:
            return []
        out = self._close()
        block = self._blocks[-1] if self._blocks else None
        if not isinstance(block, _Block) or block.thinking is not thinking or block.closed:
            block = _Block(thinking=thinking)
            self._blocks.append(block)
        block.pieces.append(text)
        if opaque is not None:
            block.opaque = opaque
            block.closed = True
        if text:
            out.append(Delta(kind="thinking" if thinking else "text", text=text))
        return out

    def _take_call(self, chunk: CallChunk) -> list[Delta]:
        call = self._calls.get(chunk.index)
        out: list[Delta] = []
        if call is None or _is_another(call, chunk):
            out.extend(self._close())
            call = self._calls[chunk.index] = _Open(self._new_id())
            self._blocks.append(call)
        elif call is not self._open:
            out.extend(self._close())
        self._open = call
        call.provider_id = call.provider_id or chunk.provider_id
        if chunk.name and chunk.name != call.name:
            opens = not call.name
            call.name += chunk.name
            if opens:
                out.append(Delta(kind="call", call_id=call.id, name=self._shown(call.name)))
        if chunk.args:
            call.args.append(chunk.args)
            out.append(Delta(kind="call", text=chunk.args, call_id=call.id))
        return out

    def _close(self) -> list[Delta]:
        call, self._open = self._open, None
        return [] if call is None else [Delta(kind="call", call_id=call.id, done=True)]

    def _shown(self, name: str) -> str:
        shape = self._tools.get(name)
        return name if shape is None else shape.name

    def _call(self, call: _Open, *, cut: bool) -> ToolCall:
        raw = "".join(call.args)
        args: dict[str, Any] = {}
        error: CallError | None = None
        if cut:
            error = truncated(call.name or "the call", "the end of its arguments")
        elif not call.name:
            error = malformed("a function call without a name.")
        elif call.name not in self._tools:
            error = unknown_tool(call.name, self._tools)
        else:
            parsed = parse_arguments(call.name, raw)
            if isinstance(parsed, CallError):
                error = parsed
            else:
                args = parsed
        return ToolCall(
            id=call.id,
            name=self._shown(call.name),
            args=args,
            raw=raw,
            error=error,
            provider_id=call.provider_id,
        )


class _Repeated(ValueError):
    """A key that stands twice in one object."""


def parse_arguments(name: str, raw: str) -> dict[str, Any] | CallError:
    """The arguments of a call of tool `name` from their JSON; no text at all is no arguments.

    Line breaks inside of strings are taken as they are: some servers send them unescaped.
    """
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw, object_pairs_hook=_unique, parse_constant=_refuse, strict=False)
        if _SURROGATE.search(raw):
            msgspec.json.encode(value)
    except _Repeated as problem:
        return repeated(name, str(problem))
    except UnicodeEncodeError:
        return malformed(f"a string in the arguments of {name} holds half a surrogate pair.")
    except RecursionError:
        return malformed(f"the arguments of {name} are nested too deeply.")
    except ValueError as problem:
        return malformed(f"the arguments of {name} aren't valid JSON ({problem}).")
    if not isinstance(value, dict):
        return malformed(f"the arguments of {name} must be one JSON object.")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Repeated(key)
        found[key] = value
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON value")


def _is_another(call: _Open, chunk: CallChunk) -> bool:
    """Some servers give every call the same index: a new id with a name begins a new call."""
    return bool(
        chunk.name and chunk.provider_id and call.provider_id not in (None, chunk.provider_id)
    )


def _encode(message: Message) -> Message | None:
    parts = tuple(_native(part) for part in message.parts if _is_sent(part))
    if not parts:
        return None
    if len(parts) == len(message.parts) and all(
        a is b for a, b in zip(parts, message.parts, strict=True)
    ):
        return message
    return msgspec.structs.replace(message, parts=parts)


def _is_sent(part: Part) -> bool:
    if isinstance(part, Thinking):
        return part.opaque is not None
    return not isinstance(part, Text) or bool(part.text.strip())


def _native(part: Part) -> Part:
    """A call that was written as tags goes on as its arguments."""
    if isinstance(part, ToolCall) and part.raw.startswith("<"):
        return msgspec.structs.replace(part, raw="")
    return part
