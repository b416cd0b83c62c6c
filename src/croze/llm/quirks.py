"""How OpenAI-compatible providers differ, as data: a provider that is not listed gets the plain form."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct


class Quirks(Struct, frozen=True):
    """The peculiarities of one provider's chat completions.

    `max_tokens` names the field for the longest reply. `stream_options` is false where the field is refused. `prefill_message` and `prefill_body`
    are what asks for a continued last message. `prefill_path` is put before the path for models that
    can be continued. `reasoning_field` is where the reasoning of a reply that made calls must be
    returned; `reasoning_details` marks OpenRouter's structured form. `start` tells how to start a
    local server.
    """

    max_tokens: str = "max_tokens"
    stream_options: bool = True
    prefill_message: Mapping[str, Any] = MappingProxyType({})
    prefill_body: Mapping[str, Any] = MappingProxyType({})
    prefill_path: str = ""
    reasoning_field: str = ""
    reasoning_details: bool = False
    start: str = ""


PLAIN = Quirks()

PROVIDERS: Mapping[str, Quirks] = MappingProxyType(
    {
        # https://platform.openai.com/docs/api-reference/chat/create: max_tokens is refused by newer models
        "openai": Quirks(max_tokens="max_completion_tokens"),
        "ollama": Quirks(start="ollama serve"),
        "llamacpp": Quirks(start="llama-server --jinja -m MODEL"),
        # https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html, extra parameters
        "vllm": Quirks(
            prefill_body={"add_generation_prompt": False, "continue_final_message": True},
            start="vllm serve MODEL",
        ),
        # https://api-docs.deepseek.com/guides/chat_prefix_completion and /guides/thinking_mode
        "deepseek": Quirks(
            prefill_message={"prefix": True},
            prefill_path="/beta",
            reasoning_field="reasoning_content",
        ),
        # https://docs.mistral.ai/api/: prefix; usage comes unasked and stream_options is refused
        "mistral": Quirks(
            prefill_message={"prefix": True},
            stream_options=False,
        ),
        # https://platform.moonshot.ai/docs/guide/use-partial-mode-feature-of-kimi-api
        "moonshot": Quirks(
            prefill_message={"partial": True},
            reasoning_field="reasoning_content",
        ),
        "moonshotai": Quirks(
            prefill_message={"partial": True},
            reasoning_field="reasoning_content",
        ),
        # https://openrouter.ai/docs/use-cases/reasoning-tokens
        "openrouter": Quirks(reasoning_details=True),
    }
)


def quirks_of(provider: str) -> Quirks:
    return PROVIDERS.get(provider, PLAIN)
