"""Retries: what is tried again, when, how it is announced, and what never is."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.llm.anthropic import AnthropicModel
from croze.llm.ollama import OllamaModel
from croze.llm.open import open_model
from croze.llm.openai import OpenAIModel
from croze.llm.retry import RetryingModel
from croze.types.context import Prompt
from croze.types.errors import ConfigError, ModelError, RetriesExhausted
from croze.types.model import ModelInfo
from croze.types.stream import CallChunk, Chunk, FinishChunk, RetryChunk, TextChunk, ThinkingChunk
from tests.llm.samples import KEY, collect, model_info, prompt
from tests.model_server import ModelServer, Reply

Step = Chunk | BaseException
FINE: Sequence[Step] = (TextChunk("fine"), FinishChunk("stop"))


class Steps:
    """A model whose tries are given step by step; the last one is repeated."""

    def __init__(self, *tries: Sequence[Step]) -> None:
        self.tries = list(tries)
        self.started = 0
        self.closed = 0

    @property
    def info(self) -> ModelInfo:
        return model_info()

    def encode(self, prompt: Prompt) -> bytes:
        return b"{}"

    async def stream(self, body: bytes) -> AsyncIterator[Chunk]:
        steps = self.tries[min(self.started, len(self.tries) - 1)]
        self.started += 1
        for step in steps:
            if isinstance(step, BaseException):
                raise step
            yield step

    async def aclose(self) -> None:
        self.closed += 1


def overloaded(retry_after: float | None = None) -> ModelError:
    return ModelError(
        "busy", status=503, retryable=True, retry_after=retry_after, code="overloaded"
    )


class Clock:
    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def retrying(
    model: Any, clock: Clock, *, retries: int = 5, chance: Callable[[], float] = lambda: 1.0
) -> RetryingModel:
    return RetryingModel(model, max_retries=retries, sleep=clock.sleep, chance=chance)


async def test_a_failed_try_is_announced_and_void() -> None:
    clock = Clock()
    model = Steps([TextChunk("hal"), overloaded()], FINE)
    chunks = [chunk async for chunk in retrying(model, clock).stream(b"")]
    assert chunks == [
        TextChunk("hal"),
        RetryChunk(1, 1.0, "overloaded", "busy"),
        TextChunk("fine"),
        FinishChunk("stop"),
    ]
    assert clock.slept == [1.0]


async def test_a_stream_without_a_finish_is_a_cut_and_tried_again() -> None:
    model = Steps([TextChunk("hal"), CallChunk(0, None, "rm", '{"a":1}')], FINE)
    got = await collect(retrying(model, Clock()).stream(b""))
    assert (got.text, got.calls, got.finish) == ("fine", {}, "stop")
    assert [retry.code for retry in got.retries] == ["cut"]


async def test_a_finish_of_error_is_tried_again() -> None:
    model = Steps([TextChunk("x"), FinishChunk("error")], FINE)
    got = await collect(retrying(model, Clock()).stream(b""))
    assert [retry.code for retry in got.retries] == ["server_error"]


async def test_an_empty_reply_is_tried_again_once_and_then_given() -> None:
    model = Steps([ThinkingChunk("hm"), TextChunk(" \n"), FinishChunk("stop")])
    got = await collect(retrying(model, Clock()).stream(b""))
    assert ([retry.code for retry in got.retries], got.finish) == (["empty"], "stop")
    assert model.started == 2


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_an_empty_reply_with_a_reason_is_given(reason: Any) -> None:
    model = Steps([FinishChunk(reason)])
    assert (await collect(retrying(model, Clock()).stream(b""))).finish == reason
    assert model.started == 1


async def test_the_last_error_is_told_when_every_try_has_failed() -> None:
    clock = Clock()
    model = Steps([overloaded()])
    with pytest.raises(RetriesExhausted) as caught:
        await collect(retrying(model, clock, retries=3).stream(b""))
    assert (model.started, len(clock.slept)) == (4, 3)
    assert (caught.value.status, caught.value.code) == (503, "retries_exhausted")
    assert str(caught.value) == "busy (gave up after 4 tries)"


async def test_without_retries_the_first_failure_is_the_last() -> None:
    model = Steps([overloaded()])
    with pytest.raises(RetriesExhausted, match="gave up after 1 try"):
        await collect(retrying(model, Clock(), retries=0).stream(b""))
    assert model.started == 1


async def test_minus_one_never_gives_up() -> None:
    clock = Clock()
    model = Steps(*[[overloaded()]] * 200, FINE)
    got = await collect(retrying(model, clock, retries=-1).stream(b""))
    assert (got.text, len(clock.slept), max(clock.slept)) == ("fine", 200, 60.0)


async def test_an_error_that_will_not_pass_is_raised_as_it_is() -> None:
    refused = ModelError("no", status=401, code="unauthorized")
    model = Steps([refused])
    with pytest.raises(ModelError) as caught:
        await collect(retrying(model, Clock()).stream(b""))
    assert caught.value is refused
    assert model.started == 1


async def test_the_wait_doubles_up_to_a_minute() -> None:
    clock = Clock()
    with pytest.raises(RetriesExhausted):
        await collect(retrying(Steps([overloaded()]), clock, retries=8).stream(b""))
    assert clock.slept == [1, 2, 4, 8, 16, 32, 60, 60]


@given(st.floats(0, 1), st.integers(1, 40), st.one_of(st.none(), st.floats(0, 1e6)))
def test_the_wait_is_between_half_the_backoff_and_the_caps(
    chance: float, attempt: int, asked: float | None
) -> None:
    model = RetryingModel(Steps(FINE), chance=lambda: chance)  # type: ignore[arg-type]
    delay = model._delay(attempt, asked)
    backoff = min(60.0, 2.0 ** (attempt - 1))
    assert max(backoff / 2, min(asked or 0.0, 120.0)) - 0.001 <= delay
    assert delay <= max(backoff, min(asked or 0.0, 120.0)) + 0.001


@pytest.mark.parametrize(("asked", "waited"), [(7.0, 7.0), (3600.0, 120.0), (0.1, 1.0)])
async def test_the_servers_wish_is_honoured_up_to_two_minutes(asked: float, waited: float) -> None:
    clock = Clock()
    model = Steps([overloaded(asked)], FINE)
    got = await collect(retrying(model, clock).stream(b""))
    assert clock.slept == [waited] == [retry.delay for retry in got.retries]


async def test_a_cancel_is_not_retried() -> None:
    model = Steps([TextChunk("x"), asyncio.CancelledError()], FINE)
    with pytest.raises(asyncio.CancelledError):
        await collect(retrying(model, Clock()).stream(b""))
    assert model.started == 1


async def test_a_cancel_while_waiting_ends_the_wait() -> None:
    model = Steps([overloaded()], FINE)
    waiting = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(
        collect(RetryingModel(model, sleep=sleep).stream(b""))  # type: ignore[arg-type]
    )
    await asyncio.wait_for(waiting.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.started == 1


async def test_another_kind_of_error_is_not_swallowed() -> None:
    with pytest.raises(ZeroDivisionError):
        await collect(retrying(Steps([ZeroDivisionError()]), Clock()).stream(b""))


@pytest.mark.parametrize(
    "fault", ["429", "500", "503", "529", "reset", "cut", "eof", "malformed", "error", "refuse"]
)
@pytest.mark.parametrize("wire", ["openai", "anthropic", "ollama"])
async def test_every_passing_fault_of_a_real_server_is_survived(wire: str, fault: str) -> None:
    good = Reply(text="at last", calls=[("read", {"path": "a"})])
    bad = Reply(text="x" * 80, calls=[("read", {"path": "b"})], fault=fault, after=4)
    clock = Clock()
    classes = {"openai": OpenAIModel, "anthropic": AnthropicModel, "ollama": OllamaModel}
    async with ModelServer([bad, bad, good]) as server:
        inner = classes[wire](model_info(server.url, provider=wire), api_key=KEY)
        model = retrying(inner, clock)
        got = await collect(model.stream(model.encode(prompt())))
        await model.aclose()
    assert (got.text, got.finish, len(got.retries)) == ("at last", "tool_calls", 2)
    assert [(name, args.replace(" ", "")) for name, args in got.named_calls] == [
        ("read", '{"path":"a"}')
    ]
    assert len({request.body for request in server.requests}) == 1


@pytest.mark.parametrize("fault", ["400", "401", "403", "404", "overflow", "html"])
async def test_faults_that_do_not_pass_are_asked_once(fault: str) -> None:
    async with ModelServer([Reply(fault=fault)], repeat=True) as server:
        model = open_model(model_info(server.url), api_key=KEY, max_retries=5)
        with pytest.raises(ModelError):
            await collect(model.stream(model.encode(prompt())))
        await model.aclose()
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("provider", "wire", "path"),
    [
        ("acme", "openai", "/v1/chat/completions"),
        ("anthropic", "anthropic", "/v1/messages"),
        ("ollama", "openai", "/api/chat"),
    ],
)
async def test_a_model_is_opened_by_its_wire(provider: str, wire: Any, path: str) -> None:
    async with ModelServer([Reply(text="hello")]) as server:
        info = model_info(server.url, provider=provider, wire=wire)
        model = open_model(info, api_key=None, max_retries=0)
        assert model.info is info
        assert (await collect(model.stream(model.encode(prompt())))).text == "hello"
        await model.aclose()
    assert server.requests[0].path == path


def test_a_scripted_model_is_not_opened_by_its_name() -> None:
    with pytest.raises(ConfigError):
        open_model(model_info(wire="scripted"), api_key=None, max_retries=0)
