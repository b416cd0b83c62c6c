"""The Anthropic wire: blocks, markers, prefill, and what comes of a stream."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.llm.anthropic import AnthropicModel
from croze.llm.anthropic_stream import AnthropicDecoder
from croze.llm.faults import Place
from croze.llm.sse import SSEParser
from croze.types.errors import ModelError
from croze.types.model import Usage
from croze.types.parts import CallResult, Image, Thinking, ToolCall
from tests.llm.samples import KEY, READ, Whole, collect, message, model_info, prompt, whole
from tests.model_server import ModelServer, Reply, sse

NAME = "anthropic:test"


def claude(**changes: Any) -> AnthropicModel:
    info = model_info(**{"provider": "anthropic", "wire": "anthropic", **changes})
    return AnthropicModel(info, api_key=KEY)


def encode(model: AnthropicModel, *args: Any, **rest: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(model.encode(prompt(*args, **rest)))
    return body


def decode(*values: Any) -> Whole:
    raw = b"".join(sse(value, value["type"]) for value in values)
    decoder = AnthropicDecoder(Place("anthropic", "test", ""), sent_tools=True)
    chunks = [chunk for event in SSEParser().feed(raw) for chunk in decoder.feed(event)]
    return whole(chunks + decoder.close())


def without_markers(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_markers(v) for k, v in value.items() if k != "cache_control"}
    return [without_markers(v) for v in value] if isinstance(value, list) else value


def markers(body: dict[str, Any]) -> list[str]:
    """Where a body has markers: tools, system, and the numbers of messages."""
    out = [f"tool {i}" for i, t in enumerate(body.get("tools", [])) if "cache_control" in t]
    out += ["system" for block in body.get("system", []) if "cache_control" in block]
    for number, sent in enumerate(body["messages"]):
        flags = ["cache_control" in block for block in sent["content"]]
        assert not any(flags[:-1]), "a marker stands at a message's end"
        out += [f"message {number}"] * flags[-1]
    return out


def test_a_request_has_its_blocks_in_the_providers_form() -> None:
    opaque = '{"type": "thinking", "thinking": "hm", "signature": "s+/="}'
    call = ToolCall(id="aaaaaaaa1", name="read", args={"path": "b"})
    body = encode(
        claude(vision=True),
        message("user", "hi", Image("b", "image/png", "QUJD")),
        message("assistant", Thinking("hm", opaque, NAME), "I ", "look.", call),
        message(
            "user",
            CallResult("aaaaaaaa1", "read", ok=False, message="no file", text="b"),
            "go on",
        ),
        tools=(READ,),
    )
    assert without_markers(body) == {
        "model": "test",
        "max_tokens": 4096,
        "stream": True,
        "system": [{"type": "text", "text": "Be brief."}],
        "tools": [
            {
                "name": "read",
                "description": "Read a file of the project.",
                "input_schema": READ.parameters,
            }
        ],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "hi"},
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"},
                    },
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s+/="},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "aaaaaaaa1", "name": "read", "input": {"path": "b"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "aaaaaaaa1",
                        "is_error": True,
                        "content": [{"type": "text", "text": "no file\nb"}],
                    },
                    {"type": "text", "text": "go on"},
                ],
            },
        ],
    }


def test_a_thinking_block_goes_back_byte_for_byte_and_only_to_its_model() -> None:
    opaque = '{"type":"thinking",  "thinking":"h\\u00e9","signature":"x"}'
    own = message("assistant", Thinking("hé", opaque, NAME), "a")
    body = claude().encode(prompt(message("user", "q"), own))
    assert opaque.encode() in body
    for part in (
        Thinking("hé", opaque, "anthropic:other"),
        Thinking("hé", None, NAME),
        Thinking("hé", "{broken", NAME),
    ):
        sent = encode(claude(), message("user", "q"), message("assistant", part, "a"))
        assert without_markers(sent["messages"][1]["content"]) == [{"type": "text", "text": "a"}]


def test_markers_stand_at_the_end_of_system_static_block_and_the_last_two_turns() -> None:
    static = [
        message("user", "rules", layer="documentation"),
        message("assistant", "yes", layer="documentation"),
    ]
    turns = [message("user" if i % 2 == 0 else "assistant", f"turn {i}") for i in range(7)]
    body = encode(claude(), *static, *turns, tools=(READ,))
    assert markers(body) == ["system", "message 1", "message 6", "message 8"]
    body = encode(claude(), *turns, tools=(READ,))
    assert markers(body) == ["tool 0", "system", "message 4", "message 6"]


def test_a_request_marks_where_the_one_before_it_ended() -> None:
    model = claude()
    turns = [message("user" if i % 2 == 0 else "assistant", f"turn {i}") for i in range(9)]
    for end in (3, 5, 7):
        before = markers(encode(model, *turns[:end]))[-1]
        assert before in markers(encode(model, *turns[: end + 2]))


@given(st.lists(st.sampled_from(["d", "u", "a"]), min_size=1, max_size=12), st.booleans())
def test_there_are_never_more_than_four_markers(kinds: list[str], tools: bool) -> None:
    messages = [
        message(
            "assistant" if kind == "a" else "user",
            "x",
            layer="documentation" if kind == "d" else "history",
        )
        for kind in kinds
    ]
    body = encode(claude(), *messages, tools=(READ,) if tools else ())
    assert 1 <= len(markers(body)) <= 4


def test_before_markers_a_longer_transcript_only_appends() -> None:
    model = claude()
    turns = [message("user" if i % 2 == 0 else "assistant", f"turn {i}") for i in range(9)]
    shorter = without_markers(encode(model, *turns[:5], tools=(READ,)))
    longer = without_markers(encode(model, *turns, tools=(READ,)))
    assert longer["messages"][:5] == shorter.pop("messages")
    assert {k: v for k, v in longer.items() if k != "messages"} == shorter


def test_a_prefill_is_the_last_message_without_white_space_at_its_end() -> None:
    body = encode(
        claude(),
        message("user", "go"),
        message("assistant", Thinking("h", "{}", NAME), "Once\n\n"),
        prefill=True,
    )
    assert body["messages"][-1] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "Once"}],
    }


def test_a_prefill_of_nothing_is_left_out() -> None:
    body = encode(claude(), message("user", "go"), message("assistant", " \n"), prefill=True)
    assert [m["role"] for m in body["messages"]] == ["user"]


def test_messages_without_content_are_not_sent_empty() -> None:
    body = encode(claude(), message("user", " "), message("assistant", ""), system="")
    texts = [m["content"][0]["text"] for m in body["messages"]]
    assert texts == ["(no text)", "(no text)"]
    assert "system" not in body


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({"thinking_budget": 2000}, {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        ({"thinking_budget": 99999}, {"thinking": {"type": "enabled", "budget_tokens": 4095}}),
        ({"thinking": "adaptive"}, {"thinking": {"type": "adaptive"}}),
        ({"effort": "high"}, {"output_config": {"effort": "high"}}),
        ({"temperature": 0.3}, {"temperature": 0.3}),
    ],
)
def test_options_take_the_providers_form(options: dict[str, Any], sent: dict[str, Any]) -> None:
    body = encode(claude(options=options))
    assert {k: body[k] for k in sent} == sent
    assert not {"thinking_budget", "effort"} & body.keys()


def test_thinking_is_off_where_a_reply_is_prefilled() -> None:
    model = claude(options={"thinking_budget": 2000})
    messages = (message("user", "go"), message("assistant", "On"))
    assert "thinking" not in encode(model, *messages, prefill=True)


async def test_a_reply_arrives_as_text_thinking_calls_usage_and_finish() -> None:
    reply = Reply(
        text="Hello wörld " * 9,
        thinking="hm " * 20,
        calls=[("read", {"path": "ä" * 40}), ("read", {"path": "b"})],
        cached=60,
        cache_write=30,
        chunk=7,
    )
    async with ModelServer([reply]) as server:
        model = claude(base_url=server.url)
        got = await collect(model.stream(model.encode(prompt())))
        await model.aclose()
    assert (got.text, got.thinking) == (reply.text, reply.thinking)
    assert got.opaque == [
        {"type": "thinking", "thinking": reply.thinking, "signature": "c2lnbmF0dXJl"}
    ]
    assert got.named_calls == reply.arguments
    assert got.usage == Usage(input=100, output=reply.output_tokens, cached=60, cache_write=30)
    assert got.finish == "tool_calls"
    request = server.requests[0]
    assert request.path == "/v1/messages"
    assert request.headers["x-api-key"] == KEY
    assert request.headers["anthropic-version"] == "2023-06-01"


def test_redacted_thinking_is_kept_as_it_came() -> None:
    block = {"type": "redacted_thinking", "data": "secret"}
    got = decode(
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
    )
    assert got.opaque == [block]


def test_arguments_in_the_blocks_start_are_not_lost() -> None:
    block = {"type": "tool_use", "id": "t", "name": "read", "input": {"p": 1}}
    got = decode(
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
    )
    assert got.named_calls == [("read", '{"p":1}')]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("pause_turn", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        ("something_new", "stop"),
    ],
)
def test_finish_reasons_are_mapped(said: str, meant: str) -> None:
    end = {"type": "message_delta", "delta": {"stop_reason": said}, "usage": {"output_tokens": 5}}
    assert decode(end).finish == meant


def test_the_input_is_known_even_of_a_reply_that_is_cut() -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}
    got = decode({"type": "message_start", "message": {"usage": usage}})
    assert got.usage == Usage(input=15, output=1, cached=5)
    assert got.finish is None


@pytest.mark.parametrize(
    ("kind", "code", "retryable"),
    [
        ("overloaded_error", "overloaded", True),
        ("api_error", "server_error", True),
        ("rate_limit_error", "rate_limited", True),
        ("invalid_request_error", "bad_request", False),
        ("authentication_error", "unauthorized", False),
    ],
)
def test_an_error_event_is_an_error_by_its_type(kind: str, code: str, retryable: bool) -> None:
    with pytest.raises(ModelError) as caught:
        decode({"type": "error", "error": {"type": kind, "message": "boom"}})
    assert (caught.value.code, caught.value.retryable) == (code, retryable)
    assert "boom" in str(caught.value)


def test_unknown_events_and_blocks_are_passed_over() -> None:
    got = decode(
        {"type": "new_event", "x": 1},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use"}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": "{}"},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
    )
    assert (got.text, got.calls, got.finish) == ("", {}, "stop")


def test_a_summary_amid_the_history_goes_as_a_user_message() -> None:
    body = encode(
        claude(mid_system=True), message("user", "hi"), message("system", "[History Summary]\n…")
    )
    assert [m["role"] for m in body["messages"]] == ["user", "user"]
    assert body["messages"][1]["content"][0]["text"].startswith("[History Summary]")
