"""Other providers through pydantic-ai: requests, replies and errors; the extra may be missing."""

import builtins
import importlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from croze.llm import library
from croze.llm.library import LibraryModel
from croze.llm.open import open_model
from croze.types.errors import ConfigError, ModelError
from croze.types.parts import CallResult, Image, Text, Thinking, ToolCall
from croze.types.stream import ThinkingChunk
from tests.llm.samples import READ, collect, message, model_info, prompt

INFO = model_info(provider="google", model="gemini-x", wire="library", base_url="", vision=True)


def test_encoding_needs_no_library_and_only_appends() -> None:
    model = LibraryModel(INFO, api_key="k")
    turns = [message("user" if i % 2 == 0 else "assistant", f"turn {i}") for i in range(7)]
    shorter = model.encode(prompt(*turns[:3], tools=(READ,)))
    longer = model.encode(prompt(*turns, tools=(READ,)))
    assert longer.startswith(shorter[:-2])
    assert json.loads(longer)["tools"][0]["name"] == "read"


async def test_without_the_extra_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(library, "import_module", missing)
    model = open_model(INFO, api_key="k", max_retries=3)
    with pytest.raises(ConfigError) as caught:
        await collect(model.stream(model.encode(prompt())))
    assert "croze[providers]" in caught.value.hint


def test_the_module_loads_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def guarded(name: str, *args: Any, **rest: Any) -> Any:
        assert not name.startswith("pydantic"), "loaded too early"
        return real(name, *args, **rest)

    monkeypatch.setattr(builtins, "__import__", guarded)
    importlib.reload(library)


@pytest.fixture
def functions() -> Any:
    return pytest.importorskip("pydantic_ai.models.function", reason="extra [providers]")


def model_of(
    functions: Any, *pieces: Any, seen: list[Any] | None = None, reason: str = "stop"
) -> LibraryModel:
    """A library model that plays pieces and keeps the history that it was given."""

    async def play(history: list[Any], settings: Any) -> AsyncIterator[Any]:
        if seen is not None:
            seen.extend([history, settings])
        for piece in pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    class Finishing(functions.FunctionModel):  # type: ignore[misc,name-defined]
        def request_stream(self, *args: Any, **rest: Any) -> Any:
            outer = super().request_stream(*args, **rest)

            class Wrapped:
                async def __aenter__(self) -> Any:
                    stream = await outer.__aenter__()
                    stream.finish_reason = reason or None
                    return stream

                async def __aexit__(self, *exc: Any) -> Any:
                    return await outer.__aexit__(*exc)

            return Wrapped()

    return LibraryModel(INFO, api_key="k", model=Finishing(stream_function=play))


async def test_a_reply_arrives_as_text_thinking_calls_and_finish(functions: Any) -> None:
    model = model_of(
        functions,
        {0: functions.DeltaThinkingPart(content="hm", signature="sig")},
        "Hello ",
        "there",
        {2: functions.DeltaToolCall("read", '{"pa', tool_call_id="c1")},
        {2: functions.DeltaToolCall(None, 'th":"a"}', tool_call_id="c1")},
    )
    got = await collect(model.stream(model.encode(prompt(tools=(READ,), max_output=50))))
    assert (got.text, got.thinking, got.finish) == ("Hello there", "hm", "tool_calls")
    assert got.named_calls == [("read", '{"path":"a"}')]
    assert len(got.opaque) == 1


async def test_a_reply_without_a_finish_reason_is_a_cut(functions: Any) -> None:
    model = model_of(functions, "Hello", reason="")
    assert (await collect(model.stream(model.encode(prompt())))).finish is None


async def test_the_history_goes_back_with_signatures_calls_and_results(functions: Any) -> None:
    first = model_of(
        functions,
        {0: functions.DeltaThinkingPart(content="hm", signature="sig")},
        {1: functions.DeltaToolCall("read", "{}", tool_call_id="c1")},
    )
    chunks = [chunk async for chunk in first.stream(first.encode(prompt()))]
    opaque = next(c.opaque for c in chunks if isinstance(c, ThinkingChunk) and c.opaque)
    seen: list[Any] = []
    model = model_of(functions, "ok", seen=seen)
    body = model.encode(
        prompt(
            message("user", "hi", Image("b", "image/png", "QUJD")),
            message(
                "assistant",
                Thinking("hm", opaque, INFO.name),
                Thinking("no", opaque, "other:model"),
                Text("I look."),
                ToolCall(id="aaaaaaaa1", name="read", args={"path": "a"}),
            ),
            message("user", CallResult("aaaaaaaa1", "read", ok=True, text="x")),
            message("assistant", ""),
            message("user", ""),
        )
    )
    await collect(model.stream(body))
    kinds = [[part.part_kind for part in sent.parts] for sent in seen[0]]
    flat = [kind for parts in kinds for kind in parts]
    assert flat == [
        "system-prompt", "user-prompt", "thinking", "text", "tool-call", "tool-return", "text", "user-prompt",
    ]  # fmt: skip
    answer = next(sent for sent in seen[0] if sent.parts[0].part_kind == "thinking")
    assert answer.parts[0].signature == "sig"
    assert answer.parts[2].tool_call_id == "aaaaaaaa1"


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [(429, "rate_limited", True), (500, "server_error", True), (401, "unauthorized", False)],
)
async def test_an_http_error_is_ours(
    functions: Any, status: int, code: str, retryable: bool
) -> None:
    errors = pytest.importorskip("pydantic_ai.exceptions")
    error = errors.ModelHTTPError(status, "gemini-x", {"error": {"message": "no"}})
    model = model_of(functions, "x", error)
    with pytest.raises(ModelError) as caught:
        await collect(model.stream(model.encode(prompt())))
    assert (caught.value.code, caught.value.retryable) == (code, retryable)


async def test_an_unknown_provider_is_refused_by_name() -> None:
    pytest.importorskip("pydantic_ai", reason="extra [providers]")
    info = model_info(provider="nosuch", model="m", wire="library", base_url="")
    model = LibraryModel(info, api_key="k")
    with pytest.raises(ConfigError, match="nosuch:m can't be opened"):
        await collect(model.stream(model.encode(prompt())))


@pytest.mark.parametrize("provider", ["google", "bedrock"])
def test_googles_and_bedrocks_models_open_with_a_key(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pydantic_ai", reason="extra [providers]")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    info = model_info(provider=provider, model="some-model", wire="library", base_url="")
    assert library.open_library(info, "a-key").model_name == "some-model"
