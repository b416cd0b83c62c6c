"""The composition root of a session: the only place where its concrete parts are put together."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from croze.agent.bus import Bus, Watcher
from croze.agent.live import Live, Log
from croze.agent.team import TeamLater
from croze.app.agents import Agents, load_agents, models_of, with_agent
from croze.app.config import Config
from croze.app.edit_agent import edit_agent
from croze.app.gathering import gather_for, libraries_of
from croze.app.head import NO_HEAD, dialect_for, last_head, of_this_run, open_dialect, set_head
from croze.app.knowledge import lent
from croze.app.mcp import outside_of
from croze.app.models import choose_model, environment_with_keys, open_catalog, open_model
from croze.app.options import RunOptions
from croze.app.rules import KeptRules
from croze.app.summariser import summarisers
from croze.app.workflows import workflow_for
from croze.llm.catalog import Catalog
from croze.store.store import Store
from croze.tools.approve import Approver
from croze.tools.registry import builtin
from croze.types.agent import AgentSpec, Limits, Mode
from croze.types.context import budget_for
from croze.types.errors import UsageError
from croze.types.event import Event, Notice, SessionOpened
from croze.types.model import ModelInfo
from croze.workspace.cache import RunCache
from croze.workspace.git import Git
from croze.workspace.journal import Journal
from croze.workspace.neighbours import Neighbours
from croze.workspace.paths import below
from croze.workspace.sandbox import Confinement, NoSandbox
from croze.workspace.track import Tracker
from croze.workspace.workspace import Workspace

if TYPE_CHECKING:
    from croze.agent.children import Children
    from croze.mcp.servers import Servers
    from croze.tools.hooks import Hook


WORKTREES = "worktrees"
"""The folder of the store where sub-agents have work trees of their own."""


def real_path(path: str, root: Path) -> str | None:
    """Where a path that a call names really leads, relative to the project; None where it leads out."""
    try:
        return below(os.path.realpath(os.path.join(root, path)), root)
    except ValueError:  # a NUL, or what is no text: the tool itself says so
        return None


def kept_rules(config: Config) -> KeptRules:
    """The rules of the user and the project. Raises ConfigError where they can't be read."""
    rules = KeptRules.of(config)
    rules()
    return rules


def open_journal(config: Config) -> Journal:
    """The journal of the project's changes, beside its session log."""
    quota = config.settings.store.journal_quota * 1_000_000
    return Journal(config.store_folder / "journal", quota=quota)


def confinement_for(
    config: Config, options: RunOptions, env: Mapping[str, str], mode: Callable[[], Mode]
) -> Confinement:
    """How far the commands of a session may go."""
    paths = config.paths
    return Confinement(
        root=config.project.root,
        env=env,
        cache=paths.cache,
        own=(paths.config, paths.data, paths.cache, paths.state, config.store_folder),
        wanted=options.sandbox,
        mode=mode,
        network=bool(options.network),
        lent=lent(config, env),
    )


async def check_options(options: RunOptions, config: Config, env: Mapping[str, str]) -> None:
    """What can't be asked for together, said before anything is opened. The mode `full` needs a sandbox
    that is proven, or the word that there is to be none."""
    if options.mode == "full" and options.sandbox != "off":
        try:
            await confinement_for(config, options, env, lambda: "full").prove()
        except NoSandbox as error:
            fix = f"{error.params['fix']}; or add" if error.params["fix"] else "Add"
            raise UsageError(
                "The mode full runs every command without asking, and no sandbox holds here: "
                f"{error.params['reason']}.",
                hint=f"{fix} --sandbox off to say that commands may run unconfined, or use --mode ask.",
                code="full_needs_sandbox",
                **error.params,
            ) from error
    if options.resume and options.continue_:
        raise UsageError("--resume and --continue exclude each other.", code="resume_or_continue")


def agent_spec(options: RunOptions, agent: AgentSpec | None = None) -> AgentSpec:
    """The session's own agent: `agent` (the one that was asked for or is recorded, None for croze's) as
    this run wants it."""
    base = AgentSpec() if agent is None else agent
    return msgspec.structs.replace(
        base,
        prompt=options.system_prompt or base.prompt,
        dialect=options.dialect or "auto",
        limits=options.limits,
        include_rules=options.include_rules or base.include_rules,
        policy=options.policy or "batch",
        zone=options.zone or "auto",
        low=AgentSpec().low if options.low is None else options.low,
        gain=AgentSpec().gain if options.gain is None else options.gain,
    )


def own_agent(
    agents: Agents, asked: RunOptions, recorded: AgentSpec | None
) -> tuple[AgentSpec | None, bool]:
    """Which agent the session is, None for croze's own, and whether it is asked for now. A session that
    is taken up again keeps the recorded one; its limits and its policy are those of its file today.
    Raises UsageError where there is none of the name."""
    if asked.agent is not None or recorded is None:
        return agents.find(asked.agent), True
    if recorded.name == AgentSpec().name:
        return None, False
    today = agents.roster.agent(recorded.name)
    recorded = msgspec.structs.replace(recorded, limits=Limits())
    return (recorded if today is None else of_this_run(recorded, today)), False


async def assemble(
    *,
    config: Config,
    options: RunOptions,
    store: Store,
    log: Log,
    asked: RunOptions,
    env: Mapping[str, str],
    cache: RunCache | None = None,
    servers: "Servers | None" = None,
    hooks: "Sequence[Hook]" = (),
    watch: Watcher | None = None,
) -> Live:
    """The parts of a session over `log`. A log that has a head keeps it, byte for byte, unless another
    agent, model, protocol, agent prompt or limit is asked for; then a new `HeadSet` is appended. `asked`
    is what the user wrote, `options` the same with the settings. `cache` is the run's, where the session
    joins one. `hooks` and `watch` (told of every event) are for its sub-agents' sessions. `servers` are the MCP servers that may be used."""
    keyed = environment_with_keys(config, env)
    catalog = open_catalog(config, keyed)
    recorded = last_head(log.events)
    registry = builtin()
    registry.load_plugins(config.settings.plugins.tools)
    registry.outside = outside_of(servers)
    agents = load_agents(config, env, registry)
    agent, chosen = own_agent(agents, asked, None if recorded is None else recorded.agent)
    options = with_agent(options, agent, asked)
    spec = agent_spec(options, agent)
    names = config.settings.model.candidates("model")
    if options.model:
        names = tuple(name.strip() for name in options.model.split(",") if name.strip())
    own_models, no_model = models_of(agent, catalog, keyed)
    own_models = own_models if chosen and asked.model is None else ()
    if recorded is not None and asked.model is None and not own_models:
        info = at_todays_address(recorded.model, catalog)
    else:
        info = await choose_model(catalog, own_models or names, keyed)
        info = with_temperature(info, config.settings.model.temperature)
    if options.max_cost is not None and None in (info.prices.input, info.prices.output):
        raise UsageError(
            f"--max-cost needs a price, and the price of {info.name} is unknown.",
            hint=f'State it in the configuration under [models."{info.name}"], '
            "or limit with --max-turns or --max-time.",
            code="price_unknown",
            model=info.name,
        )
    model = await open_model(catalog, info, keyed, max_retries=config.settings.model.max_retries)
    info = model.info
    if options.record:
        from croze.llm.recorder import RecordingModel

        model = RecordingModel(model, Path(options.record))
    same_model = recorded is not None and recorded.model.name == info.name
    if recorded is not None and same_model and options.dialect in (None, "auto"):
        dialect = open_dialect(recorded.dialect)
    else:
        dialect = open_dialect(dialect_for(info, options.dialect or "auto"))
    registry = registry.filter(spec.tools, spec.without)
    confinement = confinement_for(config, options, env, lambda: live.approver.mode)
    workspace = Workspace(
        id=log.session, root=config.project.root, owner=spec.name, confinement=confinement
    )
    if recorded is not None and depth_of(log.events):
        from croze.app.agent_tree import workspace_of  # a sub-agent's session, taken up again

        workspace = await workspace_of(
            log.events,
            log.session,
            spec.name,
            config=config,
            store=store,
            confinement=confinement,
        )
        confinement = workspace.confinement or confinement
    cache = RunCache() if cache is None else cache
    cache.watch(workspace.files)
    live = Live(
        log=log,
        blobs=store,
        source=store.source,
        bus=Bus(),
        spec=spec,
        model=model,
        dialect=dialect,
        head=NO_HEAD,
        registry=registry,
        approver=Approver(
            mode=options.mode or "ask",
            allow=options.allow,
            ask=options.ask,
            deny=options.deny,
            saved=kept_rules(config),
            root=workspace.root,
            search=env.get("PATH", ""),
            sandbox=confinement.level,
            locate=lambda path: real_path(path, workspace.root),
        ),
        workspace=workspace,
        cache=cache,
        tracker=Tracker(
            files=workspace.files,
            root=workspace.root,
            journal=open_journal(config),
            session=log.session,
            git=Git.of(workspace.root, env, confinement),
            neighbours=cache.beside(Neighbours),
        ),
        budget=budget_for(info.window, info.max_output),
        gather=gather_for(config, store, env),
        libraries=lambda: libraries_of(config, env),
        env=env,
        headless=options.headless,
        edit_agent=edit_agent(config, env),
        summarisers=summarisers(config, env),
        max_continuations=config.settings.model.max_continuations,
        depth=depth_of(log.events),
        mcp=servers if registry.outside is not None else None,
    )

    def children() -> "Children":
        from croze.app.children import ChildSessions, attach_team  # some ms, and most call nobody

        sessions = ChildSessions(
            config=config,
            env=env,
            keyed=keyed,
            catalog=catalog,
            store=store,
            hooks=hooks,
            watch=watch,
        )
        return attach_team(live, sessions, lambda: agents.roster)

    live.call, live.team = children, TeamLater(live, lambda: agents.roster)
    if (config.store_folder / WORKTREES).is_dir():
        live.with_children()  # they account for what dead processes have left there
    live.workflow = workflow_for(spec.workflow, config, store, env)
    if config.settings.knowledge.active_context in ("write", "on") and not live.depth:
        from croze.app.active import after_turn  # only where it is wanted

        live.after_turn = after_turn(workspace.root)
    await set_head(live, store, config, recorded)
    if recorded is None:
        told = agents.notices(agent)
        if no_model is not None and asked.model is None:
            told.append(no_model)
        await live.append(*told)
    news = confinement.at_start()
    if news is not None and news.code not in live.warned and recorded is None:
        await live.append(
            Notice(level="warning", code=news.code, text=news.text, params=dict(news.params))
        )
    return live


def depth_of(events: Sequence[Event]) -> int:
    """How many callers stand above a sub-agent's session that is taken up again by itself."""
    opened = events[0].body if events else None
    depth = opened.metadata.get("depth") if isinstance(opened, SessionOpened) else None
    return depth if isinstance(depth, int) else 0


def at_todays_address(info: ModelInfo, catalog: Catalog) -> ModelInfo:
    """The recorded model, reached where its provider is now."""
    try:
        return msgspec.structs.replace(info, base_url=catalog.find(info.name).base_url)
    except UsageError:
        return info


def with_temperature(info: ModelInfo, temperature: float | None) -> ModelInfo:
    """The model as it is asked with the configured temperature."""
    if temperature is None or info.wire == "scripted":
        return info
    return msgspec.structs.replace(info, options={**info.options, "temperature": temperature})
