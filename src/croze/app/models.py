"""Which model a session works with, and the opening of its wire with the user's key."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from croze.app.config import Config
from croze.app.keys import stored_keys
from croze.llm.advice import nothing_configured
from croze.llm.catalog import Catalog, with_server_window
from croze.llm.model import Model
from croze.llm.providers import require_key
from croze.types.errors import UsageError
from croze.types.model import ModelInfo

OLLAMA = "ollama"


def open_catalog(config: Config, env: Mapping[str, str]) -> Catalog:
    """The catalogue with the user's facts and servers; `env` counts before the keys file."""
    settings = config.settings
    return Catalog(
        config.paths.cache,
        {name: msgspec.structs.asdict(row) for name, row in settings.models.items()},
        providers={name: msgspec.structs.asdict(row) for name, row in settings.providers.items()},
        env=env,
    )


def environment_with_keys(config: Config, env: Mapping[str, str]) -> dict[str, str]:
    """The environment, with the keys of the user's file where it has none; an empty one is none."""
    return {
        **env,
        **{
            n: k
            for n, k in stored_keys(config.paths.keys_file).items()
            if not env.get(n, "").strip()
        },
    }


async def choose_model(catalog: Catalog, names: Sequence[str], env: Mapping[str, str]) -> ModelInfo:
    """The first of `names` that can be opened, else the default of the first provider with a key, else
    a local Ollama's first model. Raises UsageError naming the ways out where there is nothing."""
    problem: UsageError | None = None
    for name in names:
        try:
            info = catalog.find(name)
            if info.wire not in ("scripted", "library"):
                require_key(catalog.provider(info), env)
            return info
        except UsageError as error:
            problem = problem or error
    if problem is not None:
        raise problem
    by_key = catalog.find_default(env)
    if by_key is not None:
        return by_key
    from croze.llm.local import list_models

    base_url = catalog.find(f"{OLLAMA}:any").base_url
    models = await list_models(base_url, OLLAMA)
    if models:
        return catalog.find(f"{OLLAMA}:{models[0]}")
    raise nothing_configured()


async def open_model(
    catalog: Catalog, info: ModelInfo, env: Mapping[str, str], *, max_retries: int, agent: str = ""
) -> Model:
    """The model behind its wire, with retries; a local server is asked for its real window. `agent` is
    the sub-agent that it is for: a script may have replies of its own for it."""
    if info.wire == "scripted":
        from croze.llm.script import load_script
        from croze.llm.scripted import ScriptedModel

        return ScriptedModel(info, load_script(Path(info.model)), agent=agent)
    from croze.llm.open import open_model as open_wire

    provider = catalog.provider(info)
    key = require_key(provider, env)
    if provider.local:
        from croze.llm.local import probe_window

        window = await probe_window(info.base_url, info.model, info.provider)
        if window is not None:
            info = with_server_window(info, window)
    return open_wire(info, api_key=key or None, max_retries=max_retries)
