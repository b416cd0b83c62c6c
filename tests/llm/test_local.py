"""What local servers are asked, and what is made of their answers."""

import asyncio
import json
from typing import Any

import pytest

from croze.llm import local
from croze.llm.local import list_models, llamacpp_window, ollama_window, probe_window, vllm_window
from tests.model_server import ModelServer


@pytest.mark.parametrize("provider", ["ollama", "llamacpp", "vllm", "ray"])
async def test_a_local_server_tells_its_window_and_models(provider: str) -> None:
    async with ModelServer(models={"qwen": 40_960}) as server:
        assert await probe_window(server.url, "qwen", provider) == 40_960
        assert await list_models(server.url, provider) == ["qwen"]


@pytest.mark.parametrize("provider", ["ollama", "vllm"])
async def test_a_model_that_the_server_has_not_is_unknown(provider: str) -> None:
    async with ModelServer(models={"other": 5}, pages={"/props": b"{}"}) as server:
        assert await probe_window(server.url, "qwen", provider) is None


@pytest.mark.parametrize("provider", ["ollama", "llamacpp", "vllm"])
@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "nonsense", ""])
async def test_no_server_is_no_answer_and_no_error(provider: str, url: str) -> None:
    assert await probe_window(url, "qwen", provider) is None
    assert await list_models(url, provider) is None


@pytest.mark.parametrize("provider", ["ollama", "llamacpp", "vllm"])
@pytest.mark.parametrize("body", [b"<html>", b"[1]", b"{}", b'{"data": 3, "models": "x"}', b"\xff"])
async def test_an_answer_of_another_form_is_no_answer(provider: str, body: bytes) -> None:
    pages = dict.fromkeys(["/v1/models", "/props", "/api/show", "/api/tags"], body)
    async with ModelServer(pages=pages) as server:
        assert await probe_window(server.url, "qwen", provider) is None
        assert await list_models(server.url, provider) is None


async def test_a_server_that_says_nothing_is_left_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "PROBE_SECONDS", 0.05)
    silent = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    assert await probe_window(f"http://127.0.0.1:{port}/v1", "qwen", "ollama") is None
    silent.close()


def test_a_modelfiles_window_wins_over_the_architectures() -> None:
    shown: dict[str, Any] = {
        "parameters": 'stop "<eot>"\nnum_ctx    8192',
        "model_info": {"qwen3.context_length": 262_144},
    }
    assert ollama_window(shown) == 8192
    assert ollama_window({"model_info": shown["model_info"]}) == 262_144
    assert ollama_window({}) is None


def test_windows_that_are_not_told_are_unknown() -> None:
    assert llamacpp_window({"default_generation_settings": {}}) is None
    assert vllm_window({"data": [{"id": "m"}]}, "m") is None
    assert vllm_window(json.loads('{"data": [{"id": "m", "max_model_len": true}]}'), "m") is None
