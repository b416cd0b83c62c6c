"""The composition root of a session: the only place where its concrete parts are put together."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from croze.agent.beside import record_ended
from croze.agent.bus import Bus
from croze.agent.live import Live, Log
from croze.app.config import Config
from croze.app.edit_agent import edit_agent
from croze.app.head import NO_HEAD, dialect_for, last_head, open_dialect, set_head
from croze.app.models import choose_model, environment_with_keys, open_catalog, open_model
from croze.app.options import RunOptions
from croze.app.rules import KeptRules
from croze.app.settings import WorkspaceSettings
from croze.app.summariser import summarisers
from croze.context.gather import GatherState, gather
from croze.context.law import LawFiles
from croze.context.tree_facts import TreeSource
from croze.llm.catalog import Catalog
from croze.store.store import Store
from croze.tools.approve import Approver
from croze.tools.registry import builtin
from croze.types.agent import AgentSpec, Mode
from croze.types.context import budget_for
from croze.types.errors import UsageError
from croze.types.event import Event, FactAdded, Notice, Undone
from croze.types.model import ModelInfo
from croze.types.stream import Delta
from croze.workspace.cache import RunCache
from croze.workspace.git import Git
from croze.workspace.journal import Journal
from croze.workspace.paths import below
from croze.workspace.sandbox import Confinement, NoSandbox
from croze.workspace.track import Tracker
from croze.workspace.tree import CHARACTERS, TreeOptions
from croze.workspace.workspace import Workspace


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


def agent_spec(options: RunOptions) -> AgentSpec:
    if options.agent not in (None, "main"):
        raise UsageError(
            f"There is no agent named {options.agent}.",
            hint="The only agent so far is main.",
            code="unknown_agent",
            agent=options.agent,
        )
    return AgentSpec(
        prompt=options.system_prompt or "",
        dialect=options.dialect or "auto",
        limits=options.limits,
        include_rules=options.include_rules,
        policy=options.policy or "batch",
        zone=options.zone or "auto",
        low=AgentSpec().low if options.low is None else options.low,
        gain=AgentSpec().gain if options.gain is None else options.gain,
    )


async def assemble(
    *,
    config: Config,
    options: RunOptions,
    store: Store,
    log: Log,
    explicit_model: bool,
    env: Mapping[str, str],
    cache: RunCache | None = None,
) -> Live:
    """The parts of a session over `log`. A log that has a head keeps it, byte for byte, unless another
    model, protocol, agent prompt or limit is asked for; then a new `HeadSet` is appended. `cache` is the
    run's, where the session joins one."""
    spec = agent_spec(options)
    keyed = environment_with_keys(config, env)
    catalog = open_catalog(config, keyed)
    recorded = last_head(log.events)
    names = config.settings.model.candidates("model")
    if options.model:
        names = tuple(name.strip() for name in options.model.split(",") if name.strip())
    if recorded is not None and not explicit_model:
        info = at_todays_address(recorded.model, catalog)
    else:
        info = await choose_model(catalog, names, keyed)
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
    registry = builtin()
    registry.load_plugins(config.settings.plugins.tools)
    registry = registry.filter(spec.tools)
    confinement = confinement_for(config, options, env, lambda: live.approver.mode)
    workspace = Workspace(
        id=log.session, root=config.project.root, owner=spec.name, confinement=confinement
    )
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
            root=config.project.root,
            search=env.get("PATH", ""),
            sandbox=confinement.level,
            locate=lambda path: real_path(path, config.project.root),
        ),
        workspace=workspace,
        cache=cache,
        tracker=Tracker(
            files=workspace.files,
            root=workspace.root,
            journal=open_journal(config),
            session=log.session,
            git=Git.of(workspace.root, env, confinement),
        ),
        budget=budget_for(info.window, info.max_output),
        gather=gather_for(config, store),
        env=env,
        headless=options.headless,
        edit_agent=edit_agent(config, env),
        summarisers=summarisers(config, env),
        max_continuations=config.settings.model.max_continuations,
    )
    await set_head(live, store, config, recorded)
    news = confinement.at_start()
    if news is not None and news.code not in live.warned and recorded is None:
        await live.append(
            Notice(level="warning", code=news.code, text=news.text, params=dict(news.params))
        )
    return live


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


class _Gathering:
    """What has been gathered so far, so that a gathering costs only what is new."""

    def __init__(self, config: Config, store: Store) -> None:
        self._root = config.project.root
        self._source = store.source
        self._law = LawFiles(config.project.root)
        self._tree = tree_options(config.settings.workspace)
        self._seen: dict[str, FactAdded] = {}
        self._since = 0

    async def __call__(self, live: Live) -> Sequence[FactAdded | Notice]:
        await record_ended(live)
        events = live.log.events
        for event in events[self._since :]:
            if isinstance(event.body, FactAdded):
                self._seen[event.body.key] = event.body
            elif isinstance(event.body, Undone):
                self._seen = visible_facts(events, event.body)
        state = GatherState(
            root=self._root,
            events=events,
            source=self._source,
            seen=self._seen,
            since=self._since,
            budget=live.budget.available,
            law=self._law,
            tree=TreeSource(cache=live.cache, workspace=live.workspace, options=self._tree),
        )
        self._since = len(events)

        def announce(name: str, done: bool) -> None:
            live.publish(Delta(kind="phase", name=name, done=done, session=live.log.session))

        return await gather(state, announce)


def visible_facts(events: Sequence[Event], undone: Undone) -> dict[str, FactAdded]:
    """The latest fact of each key in what is left of the conversation; the others are told again."""
    return {
        event.body.key: event.body
        for event in events
        if isinstance(event.body, FactAdded) and not undone.hides(event.seq)
    }


def tree_options(settings: WorkspaceSettings) -> TreeOptions | None:
    """How the tree is to be at a session's opening; None where none is wanted."""
    if not settings.tree:
        return None
    return TreeOptions(settings.tree_depth, settings.tree_characters or CHARACTERS)


def gather_for(config: Config, store: Store) -> _Gathering:
    return _Gathering(config, store)
