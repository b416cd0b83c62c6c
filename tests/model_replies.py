"""Scripted replies of the loopback model server, and their events on each of the three wires.

Standard library only; `tests/model_server.py` serves them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

STATUS_FAULTS: Mapping[str, tuple[int, str, str]] = {
    "400": (400, "invalid_request_error", "Invalid value for 'temperature'"),
    "401": (401, "authentication_error", "Incorrect API key provided: {key}"),
    "402": (402, "billing_error", "Your credit balance is too low"),
    "403": (403, "permission_error", "This key may not use the model"),
    "404": (404, "not_found_error", "The model does not exist"),
    "429": (429, "rate_limit_error", "Too many requests"),
    "500": (500, "api_error", "Internal server error"),
    "503": (503, "overloaded_error", "Loading model"),
    "529": (529, "overloaded_error", "Overloaded"),
    "tools_refused": (400, "api_error", "registry.ollama.ai/library/gemma does not support tools"),
    "overflow": (
        400,
        "invalid_request_error",
        "This model's maximum context length is 4096 tokens, but 5000 were requested",
    ),
}
"""Faults that answer with a failing status: status, type, message."""


@dataclass(frozen=True)
class Reply:
    """One reply of the script.

    `calls` are (name, arguments), the arguments as a dict or as raw JSON text. `finish` is stop, length,
    tool_calls or content_filter, by default what the parts say. `chunk` is the size of the pieces in
    characters; `pause` seconds are waited before each event. `input` holds the cached tokens; `output`
    is made up where None.

    `fault` is one or more of, joined by commas:
    400 401 402 403 404 429 500 503 529 tools_refused overflow — an error status (`message` replaces the
    text, `retry_after` sets the header); refuse — the connection closes without an answer; silent — no
    answer at all; html — a web page; json — the whole completion at once (OpenAI wire);
    reset, cut, eof, stall, malformed, error — after `after` events: a TCP reset, a close inside the body,
    a proper end of the body without a finish, silence, an event that is not JSON, an error object of
    type `error_type`; cut_call — the last call's arguments end half-way and the finish is length;
    close — the reply is whole, then the connection closes though the client may want to keep it;
    crlf, cr, bytes, comments — the same events with other line ends, in one-byte writes, with comments
    between.
    """

    text: str = ""
    thinking: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any] | str]] = ()
    finish: str | None = None
    input: int = 100
    output: int | None = None
    cached: int = 0
    cache_write: int = 0
    chunk: int = 20
    pause: float = 0.0
    fault: str = ""
    after: int = 2
    message: str = ""
    retry_after: str = ""
    error_type: str = "overloaded_error"

    @property
    def faults(self) -> frozenset[str]:
        return frozenset(name.strip() for name in self.fault.split(",") if name.strip())

    @property
    def arguments(self) -> list[tuple[str, str]]:
        """Name and argument text of each call, the last one halved by `cut_call`."""
        out = [
            (name, args if isinstance(args, str) else json.dumps(args)) for name, args in self.calls
        ]
        if "cut_call" in self.faults and out:
            name, args = out[-1]
            out[-1] = (name, args[: max(1, len(args) // 2)])
        return out

    @property
    def reason(self) -> str:
        if self.finish:
            return self.finish
        if "cut_call" in self.faults:
            return "length"
        return "tool_calls" if self.calls else "stop"

    @property
    def output_tokens(self) -> int:
        if self.output is not None:
            return self.output
        return 1 + (len(self.text) + len(self.thinking)) // 4 + 20 * len(self.calls)


def pieces(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), max(1, size))]


def sse(value: Any, name: str = "") -> bytes:
    data = value if isinstance(value, str) else json.dumps(value)
    return (f"event: {name}\n" if name else "").encode() + f"data: {data}\n\n".encode()


def openai_events(reply: Reply, model: str = "test") -> list[bytes]:
    """The reply as server-sent events of a chat completion."""

    def chunk(delta: dict[str, Any], reason: str | None = None, **extra: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        return sse(completion([choice], **extra))

    def completion(choices: list[Any], **extra: Any) -> dict[str, Any]:
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1}
        return {**head, "model": model, "choices": choices, **extra}

    out = [chunk({"role": "assistant", "content": ""})]
    out += [chunk({"reasoning_content": p}) for p in pieces(reply.thinking, reply.chunk)]
    out += [chunk({"content": p}) for p in pieces(reply.text, reply.chunk)]
    for index, (name, arguments) in enumerate(reply.arguments):
        function = {"name": name, "arguments": ""}
        call = {"index": index, "id": f"call_{index}", "type": "function", "function": function}
        out.append(chunk({"tool_calls": [call]}))
        for piece in pieces(arguments, reply.chunk):
            part = {"index": index, "function": {"arguments": piece}}
            out.append(chunk({"tool_calls": [part]}))
    out.append(chunk({}, reply.reason))
    usage = {
        "prompt_tokens": reply.input,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input + reply.output_tokens,
        "prompt_tokens_details": {"cached_tokens": reply.cached},
        "completion_tokens_details": {"reasoning_tokens": len(reply.thinking) // 4},
    }
    out.append(sse(completion([], usage=usage)))
    out.append(sse("[DONE]"))
    return out


def openai_whole(reply: Reply) -> bytes:
    """The reply as one completion, as a server that does not stream sends it."""
    calls = [
        {"id": f"call_{i}", "type": "function", "function": {"name": n, "arguments": a}}
        for i, (n, a) in enumerate(reply.arguments)
    ]
    message = {"role": "assistant", "content": reply.text, "tool_calls": calls or None}
    choice = {"index": 0, "message": message, "finish_reason": reply.reason}
    usage = {"prompt_tokens": reply.input, "completion_tokens": reply.output_tokens}
    return json.dumps({"id": "1", "choices": [choice], "usage": usage}).encode()


def anthropic_events(reply: Reply, model: str = "test") -> list[bytes]:
    """The reply as server-sent events of a message."""
    out: list[bytes] = []

    def event(kind: str, **rest: Any) -> None:
        out.append(sse({"type": kind, **rest}, kind))

    plain = reply.input - reply.cached - reply.cache_write
    usage = {
        "input_tokens": plain,
        "cache_read_input_tokens": reply.cached,
        "cache_creation_input_tokens": reply.cache_write,
        "output_tokens": 1,
    }
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []}
    event("message_start", message={**message, "stop_reason": None, "usage": usage})
    event("ping")
    index = 0

    def block(start: dict[str, Any], deltas: list[dict[str, Any]]) -> None:
        nonlocal index
        event("content_block_start", index=index, content_block=start)
        for delta in deltas:
            event("content_block_delta", index=index, delta=delta)
        event("content_block_stop", index=index)
        index += 1

    if reply.thinking:
        thoughts = pieces(reply.thinking, reply.chunk)
        block(
            {"type": "thinking", "thinking": "", "signature": ""},
            [
                *({"type": "thinking_delta", "thinking": p} for p in thoughts),
                {"type": "signature_delta", "signature": "c2lnbmF0dXJl"},
            ],
        )
    if reply.text:
        texts = pieces(reply.text, reply.chunk)
        block({"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in texts])
    for number, (name, arguments) in enumerate(reply.arguments):
        parts = pieces(arguments, reply.chunk)
        block(
            {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}},
            [{"type": "input_json_delta", "partial_json": p} for p in ["", *parts]],
        )
    reasons = {
        "stop": "end_turn",
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "content_filter": "refusal",
    }
    event(
        "message_delta",
        delta={"stop_reason": reasons.get(reply.reason, reply.reason), "stop_sequence": None},
        usage={"output_tokens": reply.output_tokens},
    )
    event("message_stop")
    return out


def ollama_events(reply: Reply, model: str = "test") -> list[bytes]:
    """The reply as lines of Ollama's own chat; calls come whole."""

    def line(message: dict[str, Any], **rest: Any) -> bytes:
        value = {"model": model, "message": {"role": "assistant", "content": "", **message}, **rest}
        return json.dumps({"done": False, **value}).encode() + b"\n"

    out = [line({"thinking": p}) for p in pieces(reply.thinking, reply.chunk)]
    out += [line({"content": p}) for p in pieces(reply.text, reply.chunk)]
    for name, arguments in reply.arguments:
        function = {"name": name, "arguments": json.loads(arguments)}
        out.append(line({"tool_calls": [{"function": function}]}))
    reason = "length" if reply.reason == "length" else "stop"
    counts = {"prompt_eval_count": reply.input, "eval_count": reply.output_tokens}
    out.append(line({}, done=True, done_reason=reason, **counts))
    return out
