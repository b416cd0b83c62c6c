"""The official SDKs as oracle: from the same bytes they and we must read the same reply."""

import json
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.llm.anthropic import AnthropicModel
from croze.llm.faults import Place, error_of_status
from croze.llm.openai import OpenAIModel
from croze.types.errors import ModelError
from croze.types.model import Usage
from tests.llm.samples import Whole, collect, model_info, prompt
from tests.model_server import Reply, anthropic_events, openai_events, sse

URL = "http://127.0.0.1:1/v1"
WORDS = st.text(alphabet='ab \n"\\{}[]:,<>/é€\U0001f600\x00\u2028\r\t', max_size=30)
ARGUMENTS = st.dictionaries(WORDS, st.one_of(WORDS, st.integers(), st.none()), max_size=3)


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    cached = draw(st.integers(0, 50))
    written = draw(st.integers(0, 50))
    calls = draw(st.lists(st.tuples(st.sampled_from(["read", "write"]), ARGUMENTS), max_size=3))
    return Reply(
        text=draw(WORDS),
        thinking=draw(WORDS),
        calls=calls,
        finish=draw(st.sampled_from(["length", "content_filter"])) if draw(st.booleans()) else None,
        input=cached + written + draw(st.integers(0, 100)),
        output=draw(st.integers(0, 500)),
        cached=cached,
        cache_write=written,
        chunk=draw(st.integers(1, 9)),
    )


@st.composite
def disguised(draw: st.DrawFn, events: list[bytes]) -> list[bytes]:
    """The events' bytes with other line ends and comments, cut anywhere."""
    raw = b"".join((b": hi\n\n" if draw(st.booleans()) else b"") + event for event in events)
    raw = raw.replace(b"\n", draw(st.sampled_from([b"\n", b"\r\n"])))
    size = draw(st.integers(1, len(raw)))
    return [raw[i : i + size] for i in range(0, len(raw), size)]


class Blocks(httpx2.AsyncByteStream, httpx2.SyncByteStream):
    def __init__(self, blocks: list[bytes]) -> None:
        self.blocks = blocks

    def __iter__(self) -> Any:
        yield from self.blocks

    async def __aiter__(self) -> Any:
        for block in self.blocks:
            yield block


def transport(blocks: list[bytes]) -> httpx2.MockTransport:
    headers = {"content-type": "text/event-stream"}
    return httpx2.MockTransport(
        lambda request: httpx2.Response(200, headers=headers, stream=Blocks(blocks))
    )


async def ours(wire: type[OpenAIModel] | type[AnthropicModel], blocks: list[bytes]) -> Whole:
    async with httpx2.AsyncClient(transport=transport(blocks)) as client:
        model = wire(model_info(URL, provider="x"), api_key="k", client=client)
        return await collect(model.stream(model.encode(prompt())))


def openai_oracle(blocks: list[bytes]) -> Whole:
    out = Whole()
    with httpx2.Client(transport=transport(blocks)) as http:
        client = openai.OpenAI(api_key="k", base_url=URL, http_client=http, max_retries=0)
        messages: Any = [{"role": "user", "content": "hi"}]
        for chunk in client.chat.completions.create(model="m", messages=messages, stream=True):
            if chunk.usage:
                inputs, outputs = (
                    chunk.usage.prompt_tokens_details,
                    chunk.usage.completion_tokens_details,
                )
                out.usage = Usage(
                    input=chunk.usage.prompt_tokens,
                    output=chunk.usage.completion_tokens,
                    cached=inputs.cached_tokens if inputs else None,
                    cache_write=inputs.cache_write_tokens if inputs else None,
                    thinking=outputs.reasoning_tokens if outputs else None,
                )
            for choice in chunk.choices:
                out.finish = choice.finish_reason or out.finish
                out.text += choice.delta.content or ""
                out.thinking += getattr(choice.delta, "reasoning_content", None) or ""
                for call in choice.delta.tool_calls or ():
                    kept = out.calls.setdefault(call.index, [None, None, ""])
                    assert call.function is not None
                    kept[0] = kept[0] or call.id
                    kept[1] = kept[1] or call.function.name
                    kept[2] += call.function.arguments or ""
    return out


def anthropic_oracle(blocks: list[bytes]) -> Whole:
    out = Whole()
    with httpx2.Client(transport=transport(blocks)) as http:
        client = anthropic.Anthropic(api_key="k", base_url=URL, http_client=http, max_retries=0)
        with client.messages.stream(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]
        ) as stream:
            final = stream.get_final_message()
    for block in final.content:
        match block.type:
            case "text":
                out.text += block.text
            case "thinking":
                out.thinking += block.thinking
                out.opaque.append(
                    {"type": "thinking", "thinking": block.thinking, "signature": block.signature}
                )
            case "tool_use":
                out.calls[len(out.calls)] = [block.id, block.name, block.input]
    usage = final.usage
    cached, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    out.usage = Usage(
        input=usage.input_tokens + (cached or 0) + (written or 0),
        output=usage.output_tokens,
        cached=cached,
        cache_write=written,
    )
    out.finish = final.stop_reason
    return out


STOP_REASONS = {
    "end_turn": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


@settings(max_examples=60, deadline=None)
@given(st.data())
async def test_the_openai_sdk_reads_the_same_reply(data: st.DataObject) -> None:
    blocks = data.draw(disguised(openai_events(data.draw(replies()))))
    assert await ours(OpenAIModel, blocks) == openai_oracle(blocks)


@settings(max_examples=60, deadline=None)
@given(st.data())
async def test_the_anthropic_sdk_reads_the_same_reply(data: st.DataObject) -> None:
    blocks = data.draw(disguised(anthropic_events(data.draw(replies()))))
    got, expected = await ours(AnthropicModel, blocks), anthropic_oracle(blocks)
    expected.finish = STOP_REASONS[expected.finish or ""]
    for call in got.calls.values():
        call[2] = json.loads(call[2] or "{}")
    assert got == expected


async def test_calls_whose_pieces_are_interleaved_are_read_alike() -> None:
    def piece(index: int, **fields: Any) -> bytes:
        call = {"index": index, **fields}
        return sse(
            {
                "id": "1",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "m",
                "choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}],
            }
        )

    blocks = [
        piece(0, id="a", type="function", function={"name": "read", "arguments": ""}),
        piece(1, id="b", type="function", function={"name": "write", "arguments": '{"x'}),
        piece(0, function={"arguments": '{"p":'}),
        piece(1, function={"arguments": '":1}'}),
        piece(0, function={"arguments": "2}"}),
        sse(
            {
                "id": "1",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "m",
                "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}],
            }
        ),
        sse("[DONE]"),
    ]
    got = await ours(OpenAIModel, blocks)
    assert got == openai_oracle(blocks)
    assert got.named_calls == [("read", '{"p":2}'), ("write", '{"x":1}')]


async def test_an_error_in_the_stream_is_one_for_both() -> None:
    error = {"error": {"type": "server_error", "message": "boom"}}
    blocks = [*openai_events(Reply(text="x"))[:2], sse(error)]
    with pytest.raises(openai.APIError, match="boom"):
        openai_oracle(blocks)
    with pytest.raises(ModelError, match="boom"):
        await ours(OpenAIModel, blocks)
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "boom"}}
    blocks = [*anthropic_events(Reply(text="x"))[:4], sse(overloaded, "error")]
    with pytest.raises(anthropic.APIStatusError, match="boom"):
        anthropic_oracle(blocks)
    with pytest.raises(ModelError, match="boom") as caught:
        await ours(AnthropicModel, blocks)
    assert caught.value.retryable


@pytest.mark.parametrize(
    "status", [400, 401, 403, 404, 408, 409, 422, 429, 500, 502, 503, 504, 529]
)
@pytest.mark.parametrize("wish", ["", "true", "false"])
def test_the_sdks_try_again_after_the_same_statuses(status: int, wish: str) -> None:
    headers = {"x-should-retry": wish} if wish else {}
    error = error_of_status(Place("x", "m", ""), status, b"{}", headers, sent_tools=False)
    request = httpx2.Request("POST", URL)
    response = httpx2.Response(status, headers=headers, request=request)
    first = openai.OpenAI(api_key="k", base_url=URL)
    second = anthropic.Anthropic(api_key="k", base_url=URL)
    assert error.retryable == first._should_retry(response)
    assert error.retryable == second._should_retry(response)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "bad_request"),
        (401, "unauthorized"),
        (403, "forbidden"),
        (404, "not_found"),
        (429, "rate_limited"),
        (500, "server_error"),
    ],
)
def test_a_status_is_the_class_of_error_that_the_sdk_makes_of_it(status: int, code: str) -> None:
    classes = {
        "bad_request": openai.BadRequestError,
        "unauthorized": openai.AuthenticationError,
        "forbidden": openai.PermissionDeniedError,
        "not_found": openai.NotFoundError,
        "rate_limited": openai.RateLimitError,
        "server_error": openai.InternalServerError,
    }
    with httpx2.Client(
        transport=httpx2.MockTransport(lambda request: httpx2.Response(status, json={}))
    ) as http:
        client = openai.OpenAI(api_key="k", base_url=URL, http_client=http, max_retries=0)
        with pytest.raises(classes[code]):
            client.models.list()
    error = error_of_status(Place("x", "m", ""), status, b"{}", {}, sent_tools=False)
    assert error.code == code
