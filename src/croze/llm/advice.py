"""What to tell the user where no model is set up, or its name is unclear or unknown."""

from collections.abc import Iterable, Sequence

from croze.llm.providers import PROVIDERS, Provider, env_prefix, known_provider
from croze.types.errors import UsageError
from croze.types.event import Notice
from croze.types.model import ModelInfo


def unknown_notice(info: ModelInfo) -> Notice | None:
    """The warning to show for a model whose facts are defaults, None where they are known."""
    if info.known:
        return None
    return Notice(
        level="warning",
        code="model_unknown",
        text=(
            f"Nothing is known about {info.name}: a window of {info.window:,} and replies of up to "
            f"{info.max_output:,} tokens are assumed, its price is unknown. State them in the "
            f'settings under [models."{info.name}"].'
        ),
        params={"model": info.name, "window": info.window, "max_output": info.max_output},
    )


def nothing_configured(ollama: Sequence[str] | None = None) -> UsageError:
    """What to say where no model is named and no key is set: two lines with the ways out.

    `ollama` are the models of a local Ollama, None where none answers at its port.
    """
    names = " or ".join(p.keys[0] for p in PROVIDERS[:2])
    first = f"No model is set up: set a key ({names}, …) or name one with --model PROVIDER:MODEL."
    if ollama:
        second = f"Ollama runs on this machine: croze --model ollama:{ollama[0]}"
    elif ollama is not None:
        second = "Ollama runs on this machine without a model: ollama pull qwen3, then croze again"
    else:
        second = "Without a key: start Ollama (found at port 11434 by itself)"
    return UsageError(
        f"{first}\n{second}; or see the offline demo: croze demo",
        code="nothing_configured",
        ollama=list(ollama or ()),
    )


def unclear_name(name: str, owners: Sequence[Provider], own: Iterable[str]) -> UsageError:
    """The error for a name that leads to no provider, or (`owners`) to several; `own` are the names of
    the user's own servers."""
    if owners:
        return UsageError(
            f"Several providers have {name!r}.",
            hint=f"Write {' or '.join(f'{p.id}:{name}' for p in owners)}.",
            code="model_name",
            model=name,
        )
    names = [*(p.id for p in PROVIDERS), *own]
    hint = f"Write PROVIDER:MODEL; providers are {', '.join(names)}."
    prefix, separator, model = name.partition(":")
    if separator and model:
        from difflib import get_close_matches

        said = f"{prefix!r} is not a provider."
        close = get_close_matches(prefix, names, n=1)
        if close:
            hint = f"Did you mean {close[0]}:{model}? {hint}"
        if prefix:
            hint += f" Any other server: set {env_prefix(prefix)}_BASE_URL."
    else:
        said = f"{name!r} is not a model that just one provider has."
        prefix, _, model = name.partition("/")
        known = known_provider(prefix)
        if known is not None and model:
            hint = f"Write {known.id}:{model}."
    return UsageError(said, hint=hint, code="model_name", model=name)
