"""Connections that fail: every fault of the server, over a real socket, on every wire."""

import asyncio
import socket
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from croze.llm.anthropic import AnthropicModel
from croze.llm.http import Timeouts
from croze.llm.ollama import OllamaModel
from croze.llm.openai import OpenAIModel
from croze.llm.wire import address_of, is_loopback
from croze.types.errors import ModelError
from croze.types.model import ModelInfo
from croze.types.stream import Chunk, TextChunk
from tests.llm.samples import KEY, READ, Whole, collect, model_info, prompt
from tests.model_server import (
    ModelServer,
    Reply,
    anthropic_events,
    ollama_events,
    openai_events,
)

AnyModel = OpenAIModel | AnthropicModel | OllamaModel


def through_httpx2(info: ModelInfo, **options: Any) -> OpenAIModel:
    """The OpenAI-compatible wire over the transport that proxies need."""
    options.setdefault("client", httpx2.AsyncClient(trust_env=False))
    return OpenAIModel(info, **options)


WIRES: dict[str, Callable[..., AnyModel]] = {
    "openai": OpenAIModel,
    "anthropic": AnthropicModel,
    "ollama": OllamaModel,
    "httpx2": through_httpx2,
}
QUICK = Timeouts(connect=0.5, first_byte=0.1, idle=0.1)


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


async def ask(wire: str, url: str, *, tools: bool = False, **options: Any) -> Whole:
    model = WIRES[wire](model_info(url, provider=wire), api_key=KEY, **options)
    try:
        body = model.encode(prompt(tools=(READ,) if tools else ()))
        return await collect(model.stream(body))
    finally:
        await model.aclose()


async def failure(wire: str, reply: Reply, *, tools: bool = False, **options: Any) -> ModelError:
    async with ModelServer([reply]) as server:
        with pytest.raises(ModelError) as caught:
            await ask(wire, server.url, tools=tools, **options)
    return caught.value


@pytest.mark.parametrize(
    ("fault", "code", "retryable"),
    [
        ("400", "bad_request", False),
        ("401", "unauthorized", False),
        ("402", "quota", False),
        ("403", "forbidden", False),
        ("404", "not_found", False),
        ("429", "rate_limited", True),
        ("500", "server_error", True),
        ("503", "overloaded", True),
        ("529", "overloaded", True),
    ],
)
async def test_a_failing_status_is_told_with_code_status_and_next_step(
    wire: str, fault: str, code: str, retryable: bool
) -> None:
    error = await failure(wire, Reply(fault=fault))
    assert (error.code, error.retryable, error.status) == (code, retryable, int(fault))
    assert retryable or error.hint
    assert KEY not in f"{error} {error.hint} {error.params}"


async def test_an_echoed_key_is_not_in_the_message(wire: str) -> None:
    reply = Reply(fault="401", message=f"bad key {KEY} or {KEY[:8]}****{KEY[-4:]}")
    error = await failure(wire, reply)
    assert str(error).endswith("bad key [key] or [key]")


async def test_retry_after_is_read(wire: str) -> None:
    error = await failure(wire, Reply(fault="429", retry_after="7"))
    assert error.retry_after == 7.0


async def test_an_overflow_is_marked(wire: str) -> None:
    error = await failure(wire, Reply(fault="overflow"), tools=True)
    assert (error.overflow, error.tools_refused, error.retryable) == (True, False, False)


async def test_refused_tools_are_marked_only_where_tools_were_sent(wire: str) -> None:
    error = await failure(wire, Reply(fault="tools_refused"), tools=True)
    assert (error.tools_refused, error.retryable) == (True, False)
    error = await failure(wire, Reply(fault="tools_refused"))
    assert not error.tools_refused


@pytest.mark.parametrize("fault", ["reset", "cut"])
@pytest.mark.parametrize("after", range(5))
async def test_a_connection_that_breaks_in_mid_stream_is_a_reset(
    wire: str, fault: str, after: int
) -> None:
    error = await failure(wire, Reply(text="x" * 100, fault=fault, after=after))
    assert (error.code, error.retryable) == ("reset", True)


@pytest.mark.parametrize("after", range(5))
async def test_a_body_that_ends_without_a_finish_has_no_finish(wire: str, after: int) -> None:
    async with ModelServer([Reply(text="x" * 100, fault="eof", after=after)]) as server:
        got = await ask(wire, server.url)
    assert got.finish is None
    assert len(got.text) < 100


async def test_every_cut_before_the_finish_signal_is_known_as_one(wire: str) -> None:
    whole = Reply(text="some text", calls=[("read", {"path": "a"})], thinking="hm", chunk=3)
    build = {"anthropic": anthropic_events, "ollama": ollama_events}
    events = build.get(wire, openai_events)(whole)
    signal = next(
        number
        for number, event in enumerate(events)
        if b'"finish_reason": "tool_calls"' in event
        or b'"stop_reason": "tool_use"' in event
        or b'"done": true' in event
    )
    cuts = [replace(whole, fault="eof", after=after) for after in range(len(events) + 1)]
    async with ModelServer(cuts) as server:
        finishes = [(await ask(wire, server.url)).finish for _ in cuts]
    assert finishes == [None] * (signal + 1) + ["tool_calls"] * (len(events) - signal)


async def test_an_event_that_is_not_json_is_a_malformed_stream(wire: str) -> None:
    error = await failure(wire, Reply(text="x" * 100, fault="malformed"))
    assert (error.code, error.retryable) == ("malformed_stream", True)


async def test_an_error_object_in_mid_stream_is_retryable(wire: str) -> None:
    error = await failure(wire, Reply(text="x" * 100, fault="error"))
    assert error.retryable
    assert "broken" in str(error)


@pytest.mark.parametrize("form", ["crlf", "cr", "bytes", "comments", "crlf,bytes,comments"])
@pytest.mark.parametrize("sse_wire", ["openai", "anthropic"])
async def test_line_ends_comments_and_split_bytes_change_nothing(sse_wire: str, form: str) -> None:
    plain = Reply(text="wörld €", thinking="hm", calls=[("read", {"path": "ä"})])
    forms = Reply(text="wörld €", thinking="hm", calls=[("read", {"path": "ä"})], fault=form)
    async with ModelServer([plain, forms]) as server:
        assert await ask(sse_wire, server.url) == await ask(sse_wire, server.url)


async def test_a_length_inside_a_call_is_a_finish_of_length(wire: str) -> None:
    if wire == "ollama":
        pytest.skip("Ollama sends calls whole")
    reply = Reply(calls=[("read", {"path": "a" * 50})], fault="cut_call")
    async with ModelServer([reply]) as server:
        got = await ask(wire, server.url)
    assert got.finish == "length"
    assert got.named_calls == reply.arguments
    assert not got.named_calls[0][1].endswith("}")


async def test_a_server_that_never_answers_is_left_after_the_first_byte_limit(wire: str) -> None:
    error = await failure(wire, Reply(fault="silent"), timeouts=QUICK)
    assert (error.code, error.retryable) == ("first_byte_timeout", True)


async def test_a_stream_that_falls_silent_is_left_after_the_idle_limit(wire: str) -> None:
    quick = Timeouts(connect=5.0, first_byte=60.0, idle=0.15)
    error = await failure(wire, Reply(text="x" * 100, fault="stall"), timeouts=quick)
    assert (error.code, error.retryable) == ("idle_timeout", True)


async def test_a_slow_stream_is_not_idle_while_bytes_come(wire: str) -> None:
    steady = Timeouts(connect=5.0, first_byte=5.0, idle=0.5)
    reply = Reply(text="x" * 40, chunk=2, pause=0.03)
    async with ModelServer([reply]) as server:
        got = await ask(wire, server.url, timeouts=steady)
    assert got.text == reply.text


async def test_a_closed_port_can_not_be_reached_and_says_where(wire: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(ModelError) as caught:
        await ask(wire, f"http://user:password@127.0.0.1:{port}/v1")
    error = caught.value
    assert (error.code, error.retryable) == ("connect", True)
    assert f"http://127.0.0.1:{port}" in str(error)
    assert "password" not in str(error)
    if wire == "ollama":
        assert error.hint == "Start it: ollama serve"


async def test_a_connection_that_closes_without_an_answer_is_a_reset(wire: str) -> None:
    error = await failure(wire, Reply(fault="refuse"))
    assert (error.code, error.retryable) == ("reset", True)


async def test_a_web_page_is_not_taken_for_a_reply(wire: str) -> None:
    error = await failure(wire, Reply(fault="html"))
    assert (error.code, error.retryable) == ("not_a_stream", False)
    assert error.hint


async def test_a_redirect_is_not_followed_with_the_key(wire: str) -> None:
    def redirect(request: httpx2.Request) -> httpx2.Response:
        assert request.url.host == "127.0.0.1", "the key must not travel"
        return httpx2.Response(307, headers={"location": "https://elsewhere.example/v1"})

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(redirect))
    with pytest.raises(ModelError) as caught:
        await ask(wire, "http://127.0.0.1:1/v1", client=client)
    assert caught.value.code == "redirect"


@pytest.mark.parametrize("url", ["", "no-scheme/v1", "ftp://x/v1"])
async def test_an_address_that_is_none_is_said_to_be_so(wire: str, url: str) -> None:
    with pytest.raises(ModelError) as caught:
        await ask(wire, url)
    assert (caught.value.code, caught.value.retryable) == ("url", False)


@pytest.mark.parametrize("key", ["sk-\nbroken", "clé"])
async def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(
    wire: str, key: str
) -> None:
    async with ModelServer([Reply(text="x")]) as server:
        model = WIRES[wire](model_info(server.url, provider=wire), api_key=key)
        with pytest.raises(ModelError) as caught:
            await collect(model.stream(model.encode(prompt())))
        await model.aclose()
    assert (caught.value.code, caught.value.retryable) == ("key", False)
    assert key not in str(caught.value)
    assert server.requests == []


async def test_cancelling_closes_the_connection_within_100_ms(wire: str) -> None:
    async with ModelServer([Reply(text="x" * 100, fault="stall", after=4)]) as server:
        model = WIRES[wire](model_info(server.url, provider=wire), api_key=KEY)
        first: asyncio.Future[Chunk] = asyncio.get_running_loop().create_future()

        async def read() -> None:
            async with aclosing(_text(model)) as texts:
                async for text in texts:
                    if not first.done():
                        first.set_result(text)

        task = asyncio.create_task(read())
        await asyncio.wait_for(first, 5)
        started = time.monotonic()
        task.cancel()
        await asyncio.wait_for(server.gone.wait(), 5)
        seconds = time.monotonic() - started
        assert await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        await model.aclose()
    # The promise is 100 ms; a loaded test machine gets some more.
    assert seconds < 0.5
    assert server.abandoned == 1


async def _text(model: AnyModel) -> AsyncGenerator[Chunk, None]:
    async with aclosing(model.stream(model.encode(prompt()))) as chunks:
        async for chunk in chunks:
            if isinstance(chunk, TextChunk):
                yield chunk


async def test_leaving_the_stream_closes_the_connection(wire: str) -> None:
    async with ModelServer([Reply(text="x" * 100, fault="stall", after=4)]) as server:
        model = WIRES[wire](model_info(server.url, provider=wire), api_key=KEY)
        async with aclosing(_text(model)) as texts:
            await anext(texts)
        await asyncio.wait_for(server.gone.wait(), 5)
        await model.aclose()


async def test_one_connection_serves_request_after_request(wire: str) -> None:
    async with ModelServer([Reply(text="x" * 100)], repeat=True) as server:
        model = WIRES[wire](model_info(server.url, provider=wire), api_key=KEY)
        for _ in range(5):
            assert (await collect(model.stream(model.encode(prompt())))).finish == "stop"
        await model.aclose()
    assert server.connections == 1


async def test_requests_at_the_same_time_do_not_mix(wire: str) -> None:
    replies = [Reply(text=f"reply {i} " * 20, pause=0.001) for i in range(8)]
    async with ModelServer(replies) as server:
        model = WIRES[wire](model_info(server.url, provider=wire), api_key=KEY)
        body = model.encode(prompt())
        got = await asyncio.gather(*(collect(model.stream(body)) for _ in replies))
        await model.aclose()
    assert {g.text for g in got} == {r.text for r in replies}


async def test_a_proxy_of_the_environment_is_not_used_on_the_loopback(
    wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with ModelServer([Reply(text="x")]) as server:
        assert (await ask(wire, server.url)).text == "x"


def test_addresses_of_this_machine_are_known() -> None:
    local = ["http://localhost:1/v1", "http://127.8.0.1", "http://[::1]:2", "http://a.localhost"]
    assert all(is_loopback(url) for url in local)
    assert not any(is_loopback(url) for url in ("https://example.org", "http://10.0.0.1", ""))
    assert address_of("https://me:secret@host:8/v1?key=x") == "https://host:8"
