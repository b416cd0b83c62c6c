"""What a turn is for the agents that don't run the model's own loop: their workflows by name."""

from collections.abc import Callable, Mapping

from croze.agent.live import Live, Workflow
from croze.app.config import Config
from croze.store.store import Store
from croze.types.agent import AgentSpec
from croze.types.errors import UsageError
from croze.types.event import Notice

Factory = Callable[[Config, Store, Mapping[str, str]], Workflow]
"""Makes a session's workflow from the configuration, the store and the environment."""


def _orchestrator(config: Config, store: Store, _env: Mapping[str, str]) -> Workflow:
    from croze.app.agents import EXPLORE
    from croze.app.stats import run_account
    from croze.teams.orchestrator import orchestrator
    from croze.teams.planner import PROMPT

    async def account(live: Live) -> Notice | None:
        return await run_account(live.log.events, store.read)

    planner = AgentSpec(
        name="planner",
        prompt=PROMPT,
        model=",".join(config.settings.model.plan),
        tools=EXPLORE.tools,
        include_rules=True,
    )
    teams = config.settings.teams
    return orchestrator(
        planner=planner, parallel=teams.parallel, replans=teams.replans, account=account
    )


def _docs(config: Config, store: Store, _env: Mapping[str, str]) -> Workflow:
    from croze.app.gathering import tree_options
    from croze.app.stats import run_account
    from croze.teams.docs.pipeline import documentation
    from croze.workspace.tree import SHARED_CHARACTERS

    async def account(live: Live) -> Notice | None:
        return await run_account(live.log.events, store.read)

    tree = tree_options(config.settings.workspace, SHARED_CHARACTERS)
    return documentation(tree, account)


FACTORIES: Mapping[str, Factory] = {
    "orchestrator": _orchestrator,
    "docs": _docs,
}
"""The workflows that an agent's `workflow` may name."""


def workflow_for(
    name: str, config: Config, store: Store, env: Mapping[str, str]
) -> Workflow | None:
    """The workflow of this name; None for an empty one, which is the model's own loop. Raises
    UsageError for one that there isn't."""
    if not name:
        return None
    if name not in FACTORIES:
        raise UsageError(
            f"There is no workflow named {name}.",
            hint=f"There are: {', '.join(sorted(FACTORIES))}.",
            code="unknown_workflow",
            workflow=name,
        )
    return FACTORIES[name](config, store, env)
