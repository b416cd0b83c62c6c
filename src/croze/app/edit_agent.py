"""Wires the edit agent: which model plans the edits of a sketch, asked aside of the conversation."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from croze.agent.aside import Record, ask_aside
from croze.agent.live import Live
from croze.app.config import Config
from croze.app.models import choose_model, environment_with_keys, open_catalog, open_model
from croze.llm.model import Model

if TYPE_CHECKING:
    from croze.agent.live import PlanEdit


def edit_agent(config: Config, env: Mapping[str, str]) -> "PlanEdit":
    """Plans edits with the model of the role `edit`, else with the session's own."""

    async def model_for(live: Live) -> Model:
        if not config.settings.model.edit:
            return live.model
        keyed = environment_with_keys(config, env)
        catalog = open_catalog(config, keyed)
        info = await choose_model(catalog, config.settings.model.edit, keyed)
        retries = config.settings.model.max_retries
        return await open_model(catalog, info, keyed, max_retries=retries)

    async def plan(
        live: Live, path: str, text: str, instructions: str, code_edit: str
    ) -> Sequence[Mapping[str, Any]]:
        from croze.edit.markers import is_marker
        from croze.teams.edit_agent import edit_by_model

        model = await model_for(live)

        async def ask(system: str, question: str) -> str:
            return await ask_aside(Record.of(live), model, "edit", system, question)

        try:
            state, _after = await edit_by_model(
                path=path,
                text=text,
                instructions=instructions,
                code_edit=code_edit,
                is_marker=is_marker,
                ask=ask,
                working_dir=str(live.workspace.root),
                now=live.source.now,
                record=live.append,
                run_id=live.source.uuid(),
            )
        finally:
            if model is not live.model:
                await model.aclose()
        edits: Sequence[Mapping[str, Any]] = state.history[-1].params["edits"]
        return edits

    return plan
