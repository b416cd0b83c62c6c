"""Wires who writes summaries: the models of the role `summarize` in turn, else the session's own."""

from collections.abc import AsyncGenerator, Mapping

from croze.agent.live import Live, Summarisers
from croze.app.config import Config
from croze.app.models import choose_model, environment_with_keys, open_catalog, open_model
from croze.llm.model import Model
from croze.types.errors import UsageError


def summarisers(config: Config, env: Mapping[str, str]) -> Summarisers:
    """The candidates; one that can't be opened (no key, an unknown name) is passed over."""

    async def candidates(live: Live) -> AsyncGenerator[Model, None]:
        names = config.settings.model.summarize
        if not names:
            yield live.model
            return
        keyed = environment_with_keys(config, env)
        catalog = open_catalog(config, keyed)
        retries = config.settings.model.max_retries
        for name in names:
            try:
                info = await choose_model(catalog, (name,), keyed)
                model = await open_model(catalog, info, keyed, max_retries=retries)
            except UsageError:
                continue
            try:
                yield model
            finally:
                await model.aclose()

    return candidates
