"""Ollama's own wire: the window is set in the request, lines become chunks."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.llm import ollama
from croze.llm.faults import Place
from croze.llm.ollama import LineParser, OllamaDecoder, OllamaModel
from croze.llm.sse import Event, EventTooLong
from croze.types.errors import ModelError
from croze.types.model import Usage
from croze.types.parts import CallResult, Image, Thinking, ToolCall
from tests.llm.samples import READ, Whole, collect, message, model_info, prompt, whole
from tests.model_server import ModelServer, Reply


def local(**changes: Any) -> OllamaModel:
    return OllamaModel(model_info(**{"provider": "ollama", **changes}), api_key=None)


def encode(model: OllamaModel, *args: Any, **rest: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(model.encode(prompt(*args, **rest)))
    return body


def decode(*values: Any) -> Whole:
    raw = b"".join(json.dumps(value).encode() + b"\n" for value in values)
    decoder = OllamaDecoder(Place("ollama", "test", ""), sent_tools=True)
    chunks = [chunk for event in LineParser().feed(raw) for chunk in decoder.feed(event)]
    return whole(chunks + decoder.close())


def test_the_window_is_set_in_every_request() -> None:
    assert encode(local())["options"] == {"num_ctx": 32_768}
    set_by_user = local(options={"num_ctx": 8192, "temperature": 0, "keep_alive": "5m"})
    body = encode(set_by_user, max_output=50)
    assert body["options"] == {"num_ctx": 8192, "temperature": 0, "num_predict": 50}
    assert body["keep_alive"] == "5m"


def test_a_request_has_calls_as_objects_and_results_by_name() -> None:
    own = Thinking("hm", model="ollama:test")
    call = ToolCall(id="1", name="read", args={"path": "a"})
    body = encode(
        local(vision=True),
        message("user", "hi", Image("b", "image/png", "QUJD")),
        message("assistant", own, call),
        message("user", CallResult("1", "read", ok=False, message="no file")),
        message("assistant", ""),
        message("user", Image("b", "image/png")),
        tools=(READ,),
    )
    assert body["tools"][0]["function"]["name"] == "read"
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi", "images": ["QUJD"]},
        {
            "role": "assistant",
            "content": "",
            "thinking": "hm",
            "tool_calls": [{"function": {"name": "read", "arguments": {"path": "a"}}}],
        },
        {"role": "tool", "tool_name": "read", "content": "error: no file"},
        {"role": "assistant", "content": "(no text)"},
        {"role": "user", "content": "[image image/png, not shown to this model]"},
    ]


async def test_a_reply_arrives_as_text_thinking_calls_usage_and_finish() -> None:
    reply = Reply(
        text="Hello wörld " * 9, thinking="hm " * 20, calls=[("read", {"path": "ä"}), ("read", {})]
    )
    async with ModelServer([reply]) as server:
        model = local(base_url=server.url)
        got = await collect(model.stream(model.encode(prompt())))
        await model.aclose()
    assert (got.text, got.thinking, got.finish) == (reply.text, reply.thinking, "tool_calls")
    assert [(n, json.loads(a)) for n, a in got.named_calls] == [
        ("read", {"path": "ä"}),
        ("read", {}),
    ]
    assert got.usage == Usage(input=100, output=reply.output_tokens)
    assert server.requests[0].path == "/api/chat"


@pytest.mark.parametrize(
    ("said", "meant"), [("stop", "stop"), ("length", "length"), (None, "stop")]
)
def test_finish_reasons_are_mapped(said: str | None, meant: str) -> None:
    assert decode({"message": {"content": "x"}, "done": True, "done_reason": said}).finish == meant


def test_an_error_line_is_an_error() -> None:
    with pytest.raises(ModelError, match="out of memory"):
        decode({"error": "cuda out of memory"})


@given(st.lists(st.binary(max_size=12).filter(lambda b: b"\n" not in b), max_size=8), st.data())
def test_any_split_of_the_bytes_gives_the_same_lines(
    lines: list[bytes], data: st.DataObject
) -> None:
    raw = b"".join(line + b"\n" for line in lines)
    parser, got, start = LineParser(), list[Event](), 0
    while start < len(raw):
        size = data.draw(st.integers(1, len(raw) - start))
        got += parser.feed(raw[start : start + size])
        start += size
    assert got == [Event("", line) for line in lines if line.strip()]


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ollama, "MAX_EVENT", 100)
    parser = LineParser()
    parser.feed(b"x" * 90)
    with pytest.raises(EventTooLong):
        parser.feed(b"x" * 90)


def test_a_summary_amid_the_history_goes_as_a_user_message_unless_the_user_says_otherwise() -> None:
    summary = message("system", "[History Summary]\n…")
    roles = [m["role"] for m in encode(local(), message("user", "hi"), summary)["messages"]]
    assert roles == ["system", "user", "user"]
    roles = [m["role"] for m in encode(local(mid_system=True), summary)["messages"]]
    assert roles == ["system", "system"]
