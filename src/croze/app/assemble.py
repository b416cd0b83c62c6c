"""The composition root of a session: the only place where its concrete parts are put together."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from croze.agent.bus import Bus
from croze.agent.live import Live, Log
from croze.app.config import Config
from croze.app.edit_agent import edit_agent
from croze.app.models import choose_model, environment_with_keys, open_catalog, open_model
from croze.app.options import RunOptions
from croze.app.rules import load_rules
from croze.context.check import check_head, check_start
from croze.context.environment import read_system
from croze.context.gather import GatherState, gather
from croze.context.head import Head, build_head
from croze.context.policies import keep_all
from croze.dialect.base import Dialect
from croze.llm.catalog import Catalog
from croze.llm.model import Model
from croze.store.store import Store
from croze.tools.approve import Approver
from croze.tools.builtin.shell import shell
from croze.tools.registry import builtin
from croze.types.agent import AgentSpec
from croze.types.context import Check, budget_for
from croze.types.errors import ConfigError, UsageError
from croze.types.event import Event, FactAdded, HeadSet, Notice, Undone
from croze.types.model import ModelInfo
from croze.types.stream import Delta
from croze.workspace.git import Git
from croze.workspace.journal import Journal
from croze.workspace.paths import below
from croze.workspace.track import Tracker
from croze.workspace.workspace import Workspace

DialectName = Literal["native", "xml"]


def real_path(path: str, root: Path) -> str | None:
    """Where a path that a call names really leads, relative to the project; None where it leads out."""
    return below(os.path.realpath(os.path.join(root, path)), root)


def open_journal(config: Config) -> Journal:
    """The journal of the project's changes, beside its session log."""
    quota = config.settings.store.journal_quota * 1_000_000
    return Journal(config.store_folder / "journal", quota=quota)


def check_options(options: RunOptions) -> None:
    """What can't be asked for together, said before anything is opened."""
    if options.mode == "full" and options.sandbox != "off":
        raise UsageError(
            "The mode full runs every command without asking, and there is no sandbox yet.",
            hint="Add --sandbox off to say that commands may run unconfined, or use --mode ask.",
            code="full_needs_sandbox_off",
        )
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
    )


def open_dialect(name: DialectName) -> Dialect:
    if name == "xml":
        from croze.dialect.xml import XmlDialect

        return XmlDialect()
    from croze.dialect.native import NativeDialect

    return NativeDialect()


def dialect_for(info: ModelInfo, wanted: str) -> DialectName:
    """`auto` takes native where the model has tools."""
    if wanted == "xml" or (wanted == "auto" and not info.tools):
        return "xml"
    return "native"


async def assemble(
    *,
    config: Config,
    options: RunOptions,
    store: Store,
    log: Log,
    explicit_model: bool,
    env: Mapping[str, str],
) -> Live:
    """The parts of a session over `log`. A log that has a head keeps it, byte for byte, unless another
    model, protocol, agent prompt or limit is asked for; then a new `HeadSet` is appended."""
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
    workspace = Workspace(id=log.session, root=config.project.root, owner=spec.name)
    live = Live(
        log=log,
        blobs=store,
        source=store.source,
        bus=Bus(),
        spec=spec,
        model=model,
        dialect=dialect,
        head=_NO_HEAD,
        registry=registry,
        approver=Approver(
            mode=options.mode or "ask",
            allow=(*load_rules(config.store_folder), *options.allow),
            deny=options.deny,
            locate=lambda path: real_path(path, config.project.root),
        ),
        workspace=workspace,
        tracker=Tracker(
            files=workspace.files,
            root=workspace.root,
            journal=open_journal(config),
            session=log.session,
            git=Git.of(workspace.root, env),
        ),
        budget=budget_for(info.window, info.max_output),
        gather=gather_for(config, store),
        policy=keep_all,
        env=env,
        headless=options.headless,
        edit_agent=edit_agent(config, env),
        max_continuations=config.settings.model.max_continuations,
    )
    await set_head(live, store, config, recorded)
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


_NO_HEAD = Head(system="", core=(), sections=(), tokens=0, digest="")


def last_head(events: Sequence[Event]) -> HeadSet | None:
    """The newest `HeadSet` of a log."""
    for event in reversed(events):
        if isinstance(event.body, HeadSet):
            return event.body
    return None


async def set_head(live: Live, store: Store, config: Config, recorded: HeadSet | None) -> None:
    """Take the recorded head where everything it was made of still holds, else build and record one."""
    same = (
        recorded is not None
        and recorded.dialect == live.dialect.name
        and recorded.model.name == live.model.info.name
        and recorded.model.options == live.model.info.options
        and (recorded.agent.prompt == live.spec.prompt or not live.spec.prompt)
    )
    if same and recorded is not None:
        live.head = Head.decode(await store.blob(recorded.head))
        live.spec = replace_limits(recorded.agent, live.spec)
        return
    live.head, checks = new_head(live, config)
    for check in checks:
        if check.level == "error":
            raise ConfigError(check.text, code=check.code)
    digest = await store.put_blob(live.head.encode())
    notices = [Notice(level="warning", code=c.code, text=c.text, params=c.params) for c in checks]
    await live.append(head_event(live, digest), *notices, *model_notices(live.model))


def replace_limits(recorded: AgentSpec, asked: AgentSpec) -> AgentSpec:
    """The recorded agent with the limits of this run."""
    return msgspec.structs.replace(recorded, limits=asked.limits)


def head_event(live: Live, digest: str) -> HeadSet:
    return HeadSet(
        agent=live.spec,
        model=live.model.info,
        dialect=live.dialect.name,
        head=digest,
        tokens=live.head.tokens,
    )


def new_head(live: Live, config: Config) -> tuple[Head, list[Check]]:
    """Render the head for the session's agent, tools, model and protocol, and check it."""
    core, others = live.registry.docs(live.spec.core)
    head = build_head(
        live.spec,
        core,
        others,
        live.dialect,
        read_system(os.environ, shell=shell("")[0]),
        cache=config.paths.cache,
    )
    schemas = {doc.name for doc in core} if live.dialect.name == "native" else set()
    checks = check_start(live.model.info, core)
    checks += check_head(head.system, [doc.name for doc in core], schemas=schemas)
    return head, checks


def model_notices(model: Model) -> list[Notice]:
    from croze.llm.advice import unknown_notice

    notice = unknown_notice(model.info)
    return [] if notice is None else [notice]


async def switch_to_xml(live: Live, store: Store, config: Config) -> HeadSet:
    """Go over to the xml protocol; gives the event that says so."""
    live.dialect = open_dialect("xml")
    live.head, _ = new_head(live, config)
    digest = await store.put_blob(live.head.encode())
    return head_event(live, digest)


class _Gathering:
    """What has been gathered so far, so that a gathering costs only what is new."""

    def __init__(self, config: Config, store: Store) -> None:
        self._root = config.project.root
        self._source = store.source
        self._seen: dict[str, FactAdded] = {}
        self._since = 0

    async def __call__(self, live: Live) -> Sequence[FactAdded]:
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


def gather_for(config: Config, store: Store) -> _Gathering:
    return _Gathering(config, store)
