"""Whether the core finds what it needs: the project's store and a model to work with."""

from collections.abc import Mapping

from croze.app.config import Config
from croze.app.models import choose_model, environment_with_keys, open_catalog
from croze.app.options import Finding
from croze.store.store import Store
from croze.types.errors import CrozeError


async def examine(config: Config, store: Store, env: Mapping[str, str]) -> list[Finding]:
    """Findings on the store and on the model that a session would use. Only a local Ollama's port is
    asked, and only where no model is configured."""
    findings = [_store(config, store)]
    findings += [
        Finding(level="warning", topic="store", text=notice.text, code=notice.code)
        for notice in store.notices
    ]
    try:
        keyed = environment_with_keys(config, env)
        catalog = open_catalog(config, keyed)
        info = await choose_model(catalog, config.settings.model.candidates("model"), keyed)
    except CrozeError as error:
        findings.append(
            Finding(
                level="warning",
                topic="model",
                text=error.message,
                hint=error.hint,
                code=error.code,
                params=error.params,
            )
        )
        return findings
    facts = f"{info.name}, window {info.window:,} tokens ({info.source})"
    findings.append(Finding(level="ok" if info.known else "warning", topic="model", text=facts))
    return findings


def _store(config: Config, store: Store) -> Finding:
    size = store.database.size()
    return Finding(
        level="ok", topic="store", text=f"{config.store_folder / 'log.db'} ({size:,} bytes)"
    )
