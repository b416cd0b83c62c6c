"""The providers that croze knows: where they are, how they are spoken to, which key opens them.

How their requests differ in form is in `quirks.py`; which models they have, in the catalogue.
"""

import re
from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct

from croze.types.errors import ConfigError, UsageError

Wire = Literal["openai", "anthropic", "scripted", "library"]


class Provider(Struct, frozen=True, kw_only=True):
    """One provider.

    `keys` are the environment variables of its key, the first one that is set counts; a provider
    without any needs none. `catalogue` is its id in models.dev where that differs. `default` is the
    model that is taken when nothing but a key is given. `names` matches bare model names that can only
    be its own, `prefill` the models that go on with a last assistant message (both regular expressions
    for a name's start, empty for none). `tools` is false where function calling over this wire is
    not complete. `mid_system` says that its own documentation allows system messages amid the conversation.
    `local` providers run on the user's machine; `num_ctx` says that the window is set by
    that option of a request.
    """

    id: str
    title: str
    base_url: str = ""
    keys: tuple[str, ...] = ()
    wire: Wire = "openai"
    catalogue: str = ""
    default: str = ""
    names: str = ""
    prefill: str = ""
    tools: bool = True
    mid_system: bool = False
    local: bool = False
    num_ctx: bool = False

    def prefills(self, model: str) -> bool:
        return bool(self.prefill) and re.match(self.prefill, model) is not None

    def owns(self, model: str) -> bool:
        return bool(self.names) and re.match(self.names, model) is not None


# Order matters: where several keys are set, the first provider's default model is taken.
PROVIDERS: tuple[Provider, ...] = (
    Provider(
        id="anthropic",
        title="Anthropic",
        base_url="https://api.anthropic.com",
        keys=("ANTHROPIC_API_KEY",),
        wire="anthropic",
        default="claude-sonnet-4-6",
        names=r"claude-",
        # Claude 4.6 and later refuse a prefilled reply with status 400:
        # https://platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-6
        prefill=r"claude-3|claude-(opus|sonnet|haiku)-4-([015](-|$)|2025)",
    ),
    Provider(
        id="openai",
        title="OpenAI",
        base_url="https://api.openai.com/v1",
        keys=("OPENAI_API_KEY",),
        default="gpt-5.4",
        names=r"gpt-(?!oss)|chatgpt-|codex-|o[134](-|$)|text-embedding-(3|ada)",
        # https://platform.openai.com/docs/api-reference/chat/create: messages of any role in any order
        mid_system=True,
    ),
    Provider(
        id="google",
        title="Google",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        default="gemini-3.5-flash",
        names=r"gemini-",
        # Gemini 3 wants its thought signatures back with every function call, which the
        # OpenAI-compatible form carries in a field of its own; calls as text need none.
        # https://ai.google.dev/gemini-api/docs/thought-signatures
        tools=False,
    ),
    Provider(
        id="openrouter",
        title="OpenRouter",
        base_url="https://openrouter.ai/api/v1",
        keys=("OPENROUTER_API_KEY",),
        default="anthropic/claude-sonnet-4.6",
    ),
    Provider(
        id="deepseek",
        title="DeepSeek",
        base_url="https://api.deepseek.com",
        keys=("DEEPSEEK_API_KEY",),
        default="deepseek-v4-flash",
        names=r"deepseek-(chat|reasoner|v\d+-)",
        # https://api-docs.deepseek.com/guides/chat_prefix_completion (not with reasoning)
        prefill=r"deepseek-chat$",
    ),
    Provider(
        id="mistral",
        title="Mistral",
        base_url="https://api.mistral.ai/v1",
        keys=("MISTRAL_API_KEY",),
        default="devstral-2512",
        names=r"(mistral|devstral|codestral|magistral|ministral)-[a-z0-9-]*(latest|\d{4})$",
        # https://docs.mistral.ai/api/ ("prefix" of an assistant message)
        prefill=r"(mistral|devstral|codestral|ministral|labs-devstral)-",
    ),
    Provider(
        id="xai",
        title="xAI",
        base_url="https://api.x.ai/v1",
        keys=("XAI_API_KEY",),
        default="grok-4.3",
        names=r"grok-\d|grok-(build|code)",
    ),
    Provider(
        id="groq",
        title="Groq",
        base_url="https://api.groq.com/openai/v1",
        keys=("GROQ_API_KEY",),
        default="openai/gpt-oss-120b",
    ),
    Provider(
        id="together",
        title="Together",
        base_url="https://api.together.xyz/v1",
        keys=("TOGETHER_API_KEY",),
        catalogue="togetherai",
        default="Qwen/Qwen3-Coder-Next-FP8",
    ),
    Provider(
        id="fireworks",
        title="Fireworks",
        base_url="https://api.fireworks.ai/inference/v1",
        keys=("FIREWORKS_API_KEY",),
        catalogue="fireworks-ai",
        default="accounts/fireworks/models/kimi-k2p6",
    ),
    Provider(
        id="ollama", title="Ollama", base_url="http://127.0.0.1:11434/v1", local=True, num_ctx=True
    ),
    Provider(id="llamacpp", title="llama.cpp", base_url="http://127.0.0.1:8080/v1", local=True),
    # https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html ("continue_final_message")
    Provider(
        id="vllm", title="vLLM", base_url="http://127.0.0.1:8000/v1", local=True, prefill=r"."
    ),
    Provider(id="ray", title="Ray Serve", base_url="http://127.0.0.1:8000/v1", local=True),
)


def known_provider(name: str) -> Provider | None:
    """The provider of that name (models.dev's name for it does as well), None where it is not ours."""
    for provider in PROVIDERS:
        if name and name in (provider.id, provider.catalogue):
            return provider
    return None


def env_prefix(provider: str) -> str:
    """What the names of a provider's environment variables begin with."""
    return re.sub(r"[^A-Z0-9]", "_", provider.upper())


def base_url_of(provider: Provider, env: Mapping[str, str]) -> str:
    """The provider's base URL, `<PROVIDER>_BASE_URL` first; for Ollama its own OLLAMA_HOST too.

    Raises `ConfigError` where the variable holds no http(s) URL.
    """
    variable = f"{env_prefix(provider.id)}_BASE_URL"
    value = env.get(variable, "").strip()
    if not value and provider.id == "ollama" and env.get("OLLAMA_HOST", "").strip():
        variable = "OLLAMA_HOST"
        value = _ollama_url(env["OLLAMA_HOST"].strip())
    if not value:
        return provider.base_url
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(
            f"{variable} is {value!r}, which is not the URL of a server.",
            hint=f"Set it to something like {provider.base_url or 'http://127.0.0.1:8000/v1'}.",
            key=variable,
            value=value,
        )
    value = value.rstrip("/")
    if provider.wire == "anthropic":
        return value.removesuffix("/v1")
    if provider.local and not parts.path.rstrip("/"):
        return value + "/v1"
    return value


def _ollama_url(host: str) -> str:
    """OLLAMA_HOST as a URL: the scheme and the port may be missing, 0.0.0.0 means this machine."""
    url = host if "://" in host else f"http://{host}"
    with_port = re.search(r":\d+/?$", url) or url.startswith("https://")
    return (url.rstrip("/") if with_port else url.rstrip("/") + ":11434").replace(
        "//0.0.0.0", "//127.0.0.1", 1
    )


def key_of(provider: Provider, env: Mapping[str, str]) -> str | None:
    """The provider's key from `env` (the environment over the keys file), None where it is not set."""
    for name in provider.keys:
        value = env.get(name, "").strip()
        if value:
            return value
    return None


def require_key(provider: Provider, env: Mapping[str, str]) -> str:
    """The provider's key, empty for local servers. Raises `UsageError` naming the variable to set."""
    key = key_of(provider, env)
    if key is not None:
        return key
    if provider.local or not provider.keys:
        return ""
    raise UsageError(
        f"There is no key for {provider.title}: {' or '.join(provider.keys)} is not set.",
        hint=f"Set it in the environment: export {provider.keys[0]}=…",
        code="missing_key",
        provider=provider.id,
        variable=provider.keys[0],
    )
