"""Whether the core finds what it needs: the project's store, a model to work with, and a sandbox."""

from collections.abc import Mapping
from typing import Literal

from croze.app.config import Config
from croze.app.models import choose_model, environment_with_keys, open_catalog
from croze.app.options import Finding
from croze.store.store import Store
from croze.types.errors import CrozeError
from croze.workspace.sandbox import unconfinable


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


async def examine_sandbox(config: Config, env: Mapping[str, str]) -> list[Finding]:
    """What holds commands back on this machine, proven anew."""
    from croze.workspace.probe import PROVEN, Prober

    unfit = unconfinable(config.project.root, env)
    proof = await Prober(config.paths.cache, env).prove(anew=True)
    reasons = "; ".join(proof.reasons)
    if proof.kind is None or unfit:
        params = {"reason": unfit or reasons, "fix": "" if unfit else proof.fix}
        text = f"none: {params['reason']}; commands run unconfined and always ask"
        return [_sandbox("warning", text, "sandbox_none", params)]
    params = {"about": proof.about, "proven": "; ".join(PROVEN), "fix": proof.fix}
    found = [_sandbox("ok", f"{proof.about}: proven: {params['proven']}", "sandbox_proven", params)]
    if proof.gaps:
        params |= {"reason": reasons, "gaps": "; ".join(proof.gaps)}
        text = f"the weaker one is used ({reasons}); its gaps: {params['gaps']}"
        found.append(_sandbox("warning", text, "sandbox_weaker", params))
    return found


def _sandbox(
    level: Literal["ok", "warning"], text: str, code: str, params: dict[str, str]
) -> Finding:
    hint = f"fix: {params['fix']}" if params["fix"] else ""
    return Finding(
        level=level, topic="sandbox", text=text, hint=hint, code=code, params=dict(params)
    )


def _store(config: Config, store: Store) -> Finding:
    size = store.database.size()
    return Finding(
        level="ok", topic="store", text=f"{config.store_folder / 'log.db'} ({size:,} bytes)"
    )
