"""Opens the model that a `ModelInfo` describes: only its wire's module is loaded."""

from typing import TYPE_CHECKING

from croze.llm.retry import RetryingModel
from croze.types.errors import ConfigError
from croze.types.model import ModelInfo

if TYPE_CHECKING:
    from croze.llm.model import Model


def open_model(info: ModelInfo, *, api_key: str | None, max_retries: int) -> "Model":
    """The model behind `info`, with retries. Raises `ConfigError` where it can't be opened so."""
    return RetryingModel(_wire(info, api_key), max_retries=max_retries)


def _wire(info: ModelInfo, api_key: str | None) -> "Model":
    match info.wire:
        case "openai":
            if info.provider == "ollama":
                from croze.llm.ollama import OllamaModel

                return OllamaModel(info, api_key=api_key)
            from croze.llm.openai import OpenAIModel

            return OpenAIModel(info, api_key=api_key)
        case "anthropic":
            from croze.llm.anthropic import AnthropicModel

            return AnthropicModel(info, api_key=api_key)
        case "library":
            from croze.llm.library import LibraryModel

            return LibraryModel(info, api_key=api_key)
        case "scripted":
            raise ConfigError(
                f"{info.name} is played from a script, not opened by its name",
                hint="Pass the script with --script.",
            )
