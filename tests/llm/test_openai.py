"""The OpenAI-compatible wire: what is sent, and what comes of a stream."""

import gc
import json
from typing import Any

import pytest

from croze.llm.faults import Place
from croze.llm.openai import OpenAIModel
from croze.llm.openai_stream import OpenAIDecoder
from croze.llm.sse import SSEParser
from croze.types.errors import ModelError
from croze.types.model import Usage
from croze.types.parts import CallError, CallResult, Image, Text, Thinking, ToolCall
from tests.llm.samples import KEY, READ, Whole, collect, message, model_info, prompt, whole
from tests.model_server import ModelServer, Reply, sse


def encode(model: OpenAIModel, *args: Any, **rest: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(model.encode(prompt(*args, **rest)))
    return body


def openai(**changes: Any) -> OpenAIModel:
    return OpenAIModel(model_info(**changes), api_key=KEY)


def decode(*values: Any, details: bool = False) -> Whole:
    raw = b"".join(sse(value) for value in values)
    decoder = OpenAIDecoder(Place("acme", "test", ""), sent_tools=True, keep_details=details)
    chunks = [chunk for event in SSEParser().feed(raw) for chunk in decoder.feed(event)]
    return whole(chunks + decoder.close())


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields}]}


def finish(reason: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def test_a_request_has_the_model_the_tools_and_every_message() -> None:
    call = ToolCall(id="aaaaaaaa1", name="read", args={"path": "b", "all": True}, raw="{…}")
    body = encode(
        openai(options={"temperature": 0.5}),
        message("user", "hi", "there"),
        message("assistant", "I look.", call),
        message("user", CallResult("aaaaaaaa1", "read", ok=True, message="b: 1 line", text="x")),
        tools=(READ,),
        max_output=100,
    )
    assert body == {
        "model": "test",
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "max_tokens": 100,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read",
                    "description": "Read a file of the project.",
                    "parameters": READ.parameters,
                },
            }
        ],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi\nthere"},
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {
                        "id": "aaaaaaaa1",
                        "type": "function",
                        "function": {"name": "read", "arguments": '{"all":true,"path":"b"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "aaaaaaaa1", "content": "b: 1 line\nx"},
        ],
    }


def test_results_go_before_what_else_the_user_said_each_as_a_message() -> None:
    body = encode(
        openai(),
        message(
            "user",
            "and then?",
            CallResult("1", "read", ok=True, text="one"),
            CallResult("2", "read", ok=False, message="no such file"),
            CallResult("3", "read", ok=True),
        ),
    )
    assert body["messages"][1:] == [
        {"role": "tool", "tool_call_id": "1", "content": "one"},
        {"role": "tool", "tool_call_id": "2", "content": "error: no such file"},
        {"role": "tool", "tool_call_id": "3", "content": "ok"},
        {"role": "user", "content": "and then?"},
    ]


def test_a_malformed_call_goes_back_with_the_arguments_that_parsed() -> None:
    error = CallError("malformed", "not JSON")
    call = ToolCall(id="1", name="read", raw='{"path', error=error)
    sent = encode(openai(), message("assistant", call))["messages"][1]
    assert sent["tool_calls"][0]["function"]["arguments"] == "{}"
    assert sent["content"] is None


def test_a_message_without_text_is_not_sent_empty() -> None:
    body = encode(openai(), message("user", ""), message("assistant", ""), message("user"))
    assert [m["content"] for m in body["messages"][1:]] == ["(no text)"] * 3


def test_images_go_to_models_that_see_and_are_named_to_others() -> None:
    image = Image(blob="b", media_type="image/png", data="QUJD")
    seen = encode(openai(vision=True), message("user", "look", image))["messages"][1]["content"]
    assert seen[1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    blind = encode(openai(), message("user", "look", image))["messages"][1]["content"]
    assert blind == "look\n[image image/png, not shown to this model]"


def test_openai_itself_gets_max_completion_tokens_and_mistral_no_stream_options() -> None:
    assert encode(openai(provider="openai"), max_output=7)["max_completion_tokens"] == 7
    assert "stream_options" not in encode(openai(provider="mistral"))


@pytest.mark.parametrize(
    ("provider", "last", "top"),
    [
        ("deepseek", {"prefix": True}, {}),
        ("mistral", {"prefix": True}, {}),
        ("moonshot", {"partial": True}, {}),
        ("vllm", {}, {"add_generation_prompt": False, "continue_final_message": True}),
        ("openrouter", {}, {}),
    ],
)
def test_a_prefill_is_asked_for_in_the_providers_way(
    provider: str, last: dict[str, Any], top: dict[str, Any]
) -> None:
    model = openai(provider=provider, prefill=True)
    messages = (message("user", "go"), message("assistant", "Once upon "))
    body = encode(model, *messages, prefill=True)
    assert body["messages"][-1] == {"role": "assistant", "content": "Once upon ", **last}
    assert {key: body.get(key) for key in top} == top
    plain = encode(model, *messages)
    assert plain["messages"][-1] == {"role": "assistant", "content": "Once upon "}
    assert not top.keys() & plain.keys()


def test_num_ctx_is_an_option_inside_options() -> None:
    assert encode(openai(options={"num_ctx": 8192}))["options"] == {"num_ctx": 8192}


def test_reasoning_returns_only_to_its_own_model_and_only_with_calls() -> None:
    model = openai(provider="deepseek")
    own = Thinking("because", model="deepseek:test")
    other = Thinking("because", model="acme:test")
    call = ToolCall(id="1", name="read")
    sent = encode(
        model,
        message("assistant", own, call),
        message("assistant", other, call),
        message("assistant", own, "text"),
    )["messages"][1:]
    assert [m.get("reasoning_content") for m in sent] == ["because", None, None]


def test_reasoning_details_go_back_to_openrouter_as_they_came() -> None:
    details = '[{"type":"reasoning.encrypted","data":"xyz","index":0}]'
    part = Thinking("", opaque=details, model="openrouter:test")
    sent = encode(openai(provider="openrouter"), message("assistant", part, "hi"))["messages"][1]
    assert sent["reasoning_details"] == json.loads(details)


def test_a_longer_transcript_only_appends_to_the_bytes() -> None:
    model = openai()
    messages = [message("user" if i % 2 == 0 else "assistant", f"turn {i}") for i in range(9)]
    shorter = model.encode(prompt(*messages[:5], tools=(READ,)))
    longer = model.encode(prompt(*messages, tools=(READ,)))
    assert longer.startswith(shorter[:-2])


def test_the_same_prompt_gives_the_same_bytes_in_another_model_object() -> None:
    args = {"b": 1, "a": {"d": [1, 2], "c": "é"}}
    parts = (Text("x"), ToolCall(id="1", name="read", args=args))
    bodies = {
        openai().encode(prompt(message("assistant", *parts), tools=(READ,))) for _ in range(3)
    }
    assert len(bodies) == 1


def test_a_message_is_encoded_once_and_forgotten_with_the_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = openai()
    encoded: list[int] = []
    real = model._fragments._encode
    monkeypatch.setattr(model._fragments, "_encode", lambda m: encoded.append(m.key) or real(m))
    messages = [message("user", f"{i}", key=i) for i in range(50)]
    first = model.encode(prompt(*messages))
    assert model.encode(prompt(*messages)) == first
    assert encoded == list(range(50))
    messages.clear()
    gc.collect()
    assert not model._fragments._bytes
    assert b'"99"' in model.encode(prompt(message("user", "99")))


def test_a_changed_head_is_encoded_again() -> None:
    model = openai()
    assert encode(model, system="one")["messages"][0]["content"] == "one"
    assert encode(model, system="two")["messages"][0]["content"] == "two"
    assert "tools" not in encode(model, system="two")
    assert len(encode(model, system="two", tools=(READ,))["tools"]) == 1


async def test_a_reply_arrives_as_text_thinking_calls_usage_and_finish() -> None:
    reply = Reply(
        text="Hello wörld " * 9,
        thinking="hm " * 20,
        calls=[("read", {"path": "ä" * 40}), ("read", {})],
        cached=60,
        chunk=7,
    )
    async with ModelServer([reply]) as server:
        model = OpenAIModel(model_info(server.url), api_key=KEY)
        got = await collect(model.stream(model.encode(prompt())))
        await model.aclose()
    assert (got.text, got.thinking) == (reply.text, reply.thinking)
    assert got.named_calls == reply.arguments
    assert got.calls[1][0] == "call_1"
    assert got.usage == Usage(100, reply.output_tokens, 60, None, len(reply.thinking) // 4)
    assert got.finish == "tool_calls"
    request = server.requests[0]
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["user-agent"].startswith("croze/")


async def test_without_a_key_no_authorization_is_sent() -> None:
    async with ModelServer([Reply(text="x")]) as server:
        model = OpenAIModel(model_info(server.url), api_key=None)
        await collect(model.stream(model.encode(prompt())))
        await model.aclose()
    assert "authorization" not in server.requests[0].headers


async def test_a_server_that_does_not_stream_is_understood() -> None:
    reply = Reply(text="all at once", calls=[("read", {"path": "a"})], fault="json")
    async with ModelServer([reply]) as server:
        model = OpenAIModel(model_info(server.url), api_key=KEY)
        got = await collect(model.stream(model.encode(prompt())))
        await model.aclose()
    assert (got.text, got.named_calls, got.finish) == (
        "all at once",
        [("read", '{"path": "a"}')],
        "tool_calls",
    )


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("content_filter", "content_filter"),
        ("eos", "stop"),
        ("insufficient_system_resource", "error"),
    ],
)
def test_finish_reasons_are_mapped(said: str, meant: str) -> None:
    assert decode(delta(content="x"), finish(said)).finish == meant


def test_calls_decide_where_the_server_says_stop() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "read", "arguments": "{}"}}
    assert decode(delta(tool_calls=[call]), finish("stop")).finish == "tool_calls"
    assert decode(delta(tool_calls=[call]), finish("length")).finish == "length"


def test_a_stream_without_a_finish_reason_has_no_finish() -> None:
    assert decode(delta(content="half")).finish is None


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_read_under_each_of_its_names(field: str) -> None:
    got = decode(delta(**{field: "hm"}), delta(content="x"), finish("stop"))
    assert (got.thinking, got.text) == ("hm", "x")


def test_typed_content_blocks_are_read() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    got = decode(delta(content=[thinking, {"type": "text", "text": "x"}]), finish("stop"))
    assert (got.thinking, got.text) == ("hm", "x")


def test_pieces_of_reasoning_details_are_joined_into_one_opaque_value() -> None:
    got = decode(
        delta(reasoning_details=[{"type": "reasoning.text", "text": "a", "index": 0}]),
        delta(reasoning_details=[{"type": "reasoning.text", "text": "b", "index": 0}]),
        delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "z", "index": 1}]),
        finish("stop"),
        details=True,
    )
    assert got.opaque == [
        [
            {"type": "reasoning.text", "text": "ab", "index": 0},
            {"type": "reasoning.encrypted", "data": "z", "index": 1},
        ]
    ]


def test_calls_without_an_index_or_all_at_index_zero_stay_apart() -> None:
    def call(index: int | None, call_id: str | None, name: str | None, args: Any) -> Any:
        return delta(
            tool_calls=[
                {"index": index, "id": call_id, "function": {"name": name, "arguments": args}}
            ]
        )

    for index in (None, 0):
        got = decode(
            call(index, "a", "read", '{"p":'),
            call(index, None, None, "1}"),
            call(index, "b", "write", '{"q":2}'),
            finish("tool_calls"),
        )
        assert got.named_calls == [("read", '{"p":1}'), ("write", '{"q":2}')]


def test_arguments_sent_as_an_object_become_json() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "read", "arguments": {"p": 1}}}
    assert decode(delta(tool_calls=[call]), finish("stop")).named_calls == [("read", '{"p":1}')]


def test_only_the_first_choice_counts() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "no"}}]}
    assert decode(delta(content="yes"), other, finish("stop")).text == "yes"


def test_usage_that_was_not_reported_stays_unknown() -> None:
    assert decode(delta(content="x"), finish("stop")).usage == Usage()
    deepseek = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4}
    got = decode(finish("stop"), {"choices": [], "usage": deepseek})
    assert got.usage == Usage(input=9, output=1, cached=4)


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        ({"error": {"type": "server_error", "message": "boom"}}, "server_error", True),
        ({"error": {"code": 429, "message": "slow down"}}, "rate_limited", True),
        ({"error": {"code": 502, "message": "bad gateway"}}, "server_error", True),
        ({"error": {"type": "invalid_request_error", "message": "bad"}}, "bad_request", False),
        ({"error": {"code": "context_length_exceeded", "message": "long"}}, "overflow", False),
        ({"error": "something"}, "server_error", True),
        ({"choices": [{"index": 0, "error": {"code": 503, "message": "x"}}]}, "overloaded", True),
    ],
)
def test_an_error_object_in_the_stream_is_an_error_by_its_type(
    error: Any, code: str, retryable: bool
) -> None:
    with pytest.raises(ModelError) as caught:
        decode(delta(content="x"), error)
    assert (caught.value.code, caught.value.retryable) == (code, retryable)


@pytest.mark.parametrize("data", ['{"choices": [', "[1]", '{"choices": 3}', "\ufffd"])
def test_an_event_that_is_not_the_protocol_is_a_malformed_stream(data: str) -> None:
    with pytest.raises(ModelError) as caught:
        decode(data)
    assert (caught.value.code, caught.value.retryable) == ("malformed_stream", True)


def test_a_summary_amid_the_history_is_a_system_message_only_where_the_model_takes_one() -> None:
    messages = (
        message("user", "hi"),
        message("system", "[History Summary]\n- Overall Goal: x"),
        message("user", "go on"),
    )
    roles = [m["role"] for m in encode(openai(mid_system=True), *messages)["messages"]]
    assert roles == ["system", "user", "system", "user"]
    sent = encode(openai(), *messages)["messages"]
    assert [m["role"] for m in sent] == ["system", "user", "user", "user"]
    assert sent[2]["content"].startswith("[History Summary]")
