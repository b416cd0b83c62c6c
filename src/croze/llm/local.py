"""Asks local servers what they really offer: the window in force and the models they have."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec

from croze.llm.http import Broken, is_web_address
from croze.llm.openai_stream import count

if TYPE_CHECKING:
    from croze.llm.direct import DirectTransport

PROBE_SECONDS = 2.0
MAX_ANSWER = 16 * 1024 * 1024


async def probe_window(base_url: str, model: str, provider: str) -> int | None:
    """The window in tokens that a local server has for `model`, None where it does not say or does
    not answer within two seconds. It is asked directly, through no proxy and without a key.

    Ollama tells the model's own window or its Modelfile's `num_ctx` (`/api/show`), llama.cpp the one
    it was started with (`/props`), vLLM and others `max_model_len` in `/v1/models`.
    """
    if provider == "ollama":
        return ollama_window(await _ask(base_url, "/api/show", {"model": model}))
    if provider != "llamacpp":
        window = vllm_window(await _ask(base_url, "/v1/models"), model)
        if window is not None:
            return window
    return llamacpp_window(await _ask(base_url, "/props"))


async def list_models(base_url: str, provider: str) -> list[str] | None:
    """The names of the models that a server at `base_url` has; None where none answers."""
    if provider == "ollama":
        answer, rows_key, name_key = await _ask(base_url, "/api/tags"), "models", "name"
    else:
        answer, rows_key, name_key = await _ask(base_url, "/v1/models"), "data", "id"
    rows = answer.get(rows_key)
    if not isinstance(rows, list):
        return None
    return [str(row[name_key]) for row in rows if isinstance(row, dict) and row.get(name_key)]


def ollama_window(shown: Mapping[str, Any]) -> int | None:
    """The window from `/api/show`: a `num_ctx` of the Modelfile wins over the architecture's."""
    parameters = shown.get("parameters")
    if isinstance(parameters, str):
        for line in parameters.splitlines():
            words = line.split()
            if len(words) == 2 and words[0] == "num_ctx" and words[1].isdecimal():
                return int(words[1])
    facts = shown.get("model_info")
    if isinstance(facts, dict):
        for name, value in facts.items():
            if name.endswith(".context_length"):
                return count(value)
    return None


def llamacpp_window(props: Mapping[str, Any]) -> int | None:
    settings = props.get("default_generation_settings")
    if isinstance(settings, dict):
        return count(settings.get("n_ctx"))
    return None


def vllm_window(answer: Mapping[str, Any], model: str) -> int | None:
    rows = answer.get("data")
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and row.get("id") == model:
            return count(row.get("max_model_len"))
    return None


async def _ask(base_url: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The JSON object that the server answers with; empty where it does not."""
    root = base_url.rstrip("/").removesuffix("/v1")
    if not is_web_address(root):
        return {}
    from croze.llm.direct import DirectTransport

    transport = DirectTransport(root, PROBE_SECONDS)
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            value = msgspec.json.decode(await _fetch(transport, root + path, body))
    except (Broken, TimeoutError, msgspec.DecodeError):
        return {}
    finally:
        await transport.aclose()
    return value if isinstance(value, dict) else {}


async def _fetch(transport: "DirectTransport", url: str, body: Mapping[str, Any] | None) -> bytes:
    if body is None:
        answer = await transport.get(url)
    else:
        sent = msgspec.json.encode(body)
        answer = await transport.post(url, {"content-type": "application/json"}, sent)
    received = bytearray()
    try:
        async with aclosing(answer.blocks()) as blocks:
            async for block in blocks:
                received += block
                if answer.status != 200 or len(received) > MAX_ANSWER:
                    return b""
    finally:
        await answer.aclose()
    return bytes(received)
