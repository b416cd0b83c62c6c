"""How the session of a sub-agent is put together: from its caller's parts wherever they serve, so that it
costs little and shares the caller's caches, the provider's too."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from croze import __version__
from croze.agent.bus import Bus, Watcher
from croze.agent.child import died, unclosed
from croze.agent.children import Children
from croze.agent.live import Live, Log
from croze.agent.resume import closing as closings
from croze.agent.session import Session
from croze.agent.subagent import Ties
from croze.agent.team import SessionTeam
from croze.app.agents import models_of
from croze.app.assemble import WORKTREES, open_journal, real_path, with_temperature
from croze.app.config import Config
from croze.app.gathering import gather_for
from croze.app.head import (
    NO_HEAD,
    dialect_for,
    head_event,
    last_head,
    open_dialect,
    switch_to_xml,
    take_new_head,
)
from croze.app.hooking import attach_hooks
from croze.app.hub import RunHub
from croze.app.inherit import agent_fact, inherited
from croze.app.models import choose_model, open_model
from croze.app.rules import KeptRules
from croze.app.workflows import workflow_for
from croze.context.head import Head
from croze.llm.catalog import Catalog
from croze.llm.model import Model
from croze.llm.providers import require_key
from croze.store.conversations import Conversations
from croze.store.store import Store
from croze.tools.registry import Registry
from croze.types.agent import AgentSpec
from croze.types.context import budget_for
from croze.types.errors import ConversationNotFound, SessionBusy, UsageError
from croze.types.event import Body, Event, SessionOpened
from croze.types.model import ModelInfo
from croze.types.team import ChildOpened, Merged, Roster
from croze.workspace.git import Git
from croze.workspace.neighbours import Neighbours
from croze.workspace.task import workspace_for
from croze.workspace.track import Tracker

if TYPE_CHECKING:
    from croze.app.worktrees import Worktrees
    from croze.llm.script import Script
    from croze.teams.hub import Hub
    from croze.tools.hooks import Hook

_NAME = 80


def attach_team(live: Live, sessions: "ChildSessions", roster: Callable[[], Roster]) -> Children:
    """Give a run's own session those whom it can call."""
    children = _children(live, sessions, roster)
    sessions.hub = RunHub(live, children, roster)
    children.roster = sessions.hub.roster
    live.team = SessionTeam(children, sessions.hub.voice)
    return children


def hub_of(session: Session) -> "Hub":
    """The hub of the run that a session belongs to."""
    sessions = None if session.children is None else session.children.sessions
    if not isinstance(sessions, ChildSessions) or sessions.hub is None:
        raise UsageError("This session has no hub.", code="no_hub")
    return sessions.hub.hub


def _children(live: Live, sessions: "ChildSessions", roster: Callable[[], Roster]) -> Children:
    teams = sessions.config.settings.teams
    return Children(live, sessions, roster, parallel=teams.parallel, depth=teams.depth)


@dataclass(slots=True, kw_only=True)
class ChildSessions:
    """Opens the sessions of a run's sub-agents. `keyed` is the environment with the user's keys."""

    config: Config
    env: Mapping[str, str]
    keyed: Mapping[str, str]
    catalog: Catalog
    store: Store
    hooks: "Sequence[Hook]"
    watch: Watcher | None = None
    hub: RunHub | None = None
    _scripts: "dict[str, Script]" = field(default_factory=dict)
    _worktrees: "Worktrees | None" = None

    async def open(self, caller: Live, spec: AgentSpec, opened: ChildOpened, ties: Ties) -> Session:
        """A session for `spec`; the one named in `opened` where it exists already."""
        spec = _as_called(spec, caller.spec)
        log, fresh = await self._log(caller, spec, opened)
        live: Live | None = None
        try:
            live = await self._assemble(caller, spec, opened, ties, log)
            attach_hooks(live, self.config, self.hooks)
            session = self._session(live)
            await session.open(resumed=not fresh)
            if not fresh and opened.isolation == "worktree":
                await live.append(self.worktrees.told_again(live, caller))
        except BaseException:
            if self._worktrees is not None:
                await self._worktrees.drop(log.session)
            if live is not None and live.tracker is not None:
                live.tracker.close()
            log.close()
            if fresh:
                with suppress(ConversationNotFound):
                    await Conversations(self.store).delete(log.session)
            raise
        return session

    @property
    def worktrees(self) -> "Worktrees":
        if self._worktrees is None:
            from croze.app.worktrees import Worktrees  # some ms, and most runs have none

            self._worktrees = Worktrees(self._worktrees_folder)
        return self._worktrees

    @property
    def _worktrees_folder(self) -> Path:
        return self.config.store_folder / WORKTREES

    async def bring_back(self, caller: Live, opened: ChildOpened) -> Merged | None:
        """Merge what it did in a work tree of its own; None where it had none."""
        if self._worktrees is None:
            return None
        return await self._worktrees.bring_back(caller, opened)

    async def settle(self, live: Live) -> None:
        """Account for what dead processes have left of work trees."""
        if self._worktrees_folder.is_dir():
            await self.worktrees.settle(live)

    async def length(self, session: str) -> int:
        events = await self.store.read(session)
        return events[-1].seq

    async def mend(self, session: str) -> Sequence[Event]:
        try:
            log = await self.store.open_log(session)
        except ConversationNotFound:
            return ()
        except SessionBusy:
            return await self.store.read(session)
        from croze.agent.rewind import recovered
        from croze.app.agent_tree import workspace_of

        with closing(log):
            for known in unclosed(log.events):
                events = await self.mend(known.opened.child)
                await log.append(*died(known, events, log.events))
            journal = open_journal(self.config)
            where = await workspace_of(
                log.events, session, "", config=self.config, store=self.store
            )
            from croze.app.worktrees import left_tree

            tree = await left_tree(log.events, session, self.store, self._worktrees_folder)
            bodies: list[Body] = recovered(log.events, tree or where.root, journal)
            bodies += closings([*log.events], self.store.source.uuid)
            if bodies:
                await log.append(*bodies, durable=True)
            journal.intents(session).close()
            return tuple(log.events)

    async def _log(self, caller: Live, spec: AgentSpec, opened: ChildOpened) -> tuple[Log, bool]:
        if opened.since:
            return await self.store.open_log(opened.child), False
        first = caller.log.events[0].body
        above = first if isinstance(first, SessionOpened) else SessionOpened(name="")
        task = " ".join(opened.task.split())
        name = f"{spec.name}: {task}"
        log = await self.store.create(
            name=name if len(name) <= _NAME else f"{name[: _NAME - 1]}…",
            namespace=above.namespace,
            project=above.project,
            parent=caller.log.session,
            session_id=opened.child,
            metadata={
                "agent": spec.name,
                "agent_id": opened.child,
                **({"isolation": opened.isolation} if opened.isolation != "shared" else {}),
                "depth": opened.depth,
                "label": opened.label,
                "call_id": opened.call_id,
            },
            version=__version__,
        )
        return log, True

    async def _assemble(
        self, caller: Live, spec: AgentSpec, opened: ChildOpened, ties: Ties, log: Log
    ) -> Live:
        recorded = last_head(log.events)
        model = await self._model(caller, spec, opened)
        info = model.info
        if recorded is not None and recorded.model.name == info.name:
            dialect = open_dialect(recorded.dialect)
        elif spec.dialect == "auto" and info.name == caller.model.info.name:
            dialect = open_dialect(caller.dialect.name)
        else:
            dialect = open_dialect(dialect_for(info, spec.dialect))
        if opened.isolation == "worktree":
            workspace = await self.worktrees.open(caller, log.session, spec.name)
        else:
            workspace = workspace_for(
                opened.isolation,
                caller=caller.workspace,
                folder=self.config.store_folder,
                agent=log.session,
                name=spec.name,
            )
        assert self.hub is not None
        registry = _tools(self.hub.reach(opened, caller), spec)
        less = spec.tools is None and caller.spec.tools is not None
        if less or registry.names != _tools(caller.registry, spec).names:
            spec = msgspec.structs.replace(spec, tools=registry.names)
        caller.cache.watch(workspace.files)
        approver, git = caller.approver, None if caller.tracker is None else caller.tracker.git
        if workspace.confinement is not None:
            approver = replace(approver, sandbox=workspace.confinement.level)
        if workspace.root != caller.workspace.root:
            root = workspace.root
            git = Git.of(root, self.env, workspace.confinement)
            approver = replace(approver, root=root, locate=lambda path: real_path(path, root))
        live = Live(
            log=log,
            blobs=self.store,
            source=self.store.source,
            bus=Bus(),
            spec=spec,
            model=model,
            dialect=dialect,
            head=NO_HEAD,
            registry=registry,
            approver=approver,
            workspace=workspace,
            cache=caller.cache,
            documents=caller.documents,
            web=caller.web,
            mcp=caller.mcp,
            tracker=Tracker(
                files=workspace.files,
                root=workspace.root,
                journal=open_journal(self.config),
                session=log.session,
                git=git,
                neighbours=caller.cache.beside(Neighbours),
            ),
            budget=budget_for(info.window, info.max_output),
            gather=gather_for(self.config, self.store, self.env),
            env=caller.env,
            headless=caller.headless,
            edit_agent=caller.edit_agent,
            summarisers=caller.summarisers,
            max_continuations=caller.max_continuations,
            workflow=workflow_for(spec.workflow, self.config, self.store, self.env),
            depth=opened.depth,
            allowance=ties.allowance,
            mirror=ties.changed,
        )
        assert caller.children is not None
        live.children = _children(live, self, caller.children.roster)
        live.team = SessionTeam(live.children, self.hub.join(opened, caller, live))
        if recorded is not None and recorded.dialect == dialect.name and recorded.model == info:
            live.head = Head.decode(await self.store.blob(recorded.head))
            if recorded.agent.tools != spec.tools:
                await live.append(*await take_new_head(live, self.store, self.config))
            elif recorded.agent != spec:
                await live.append(head_event(live, recorded.head))
        else:
            await self._begin(live, caller)
            no_model = models_of(spec, self.catalog, self.keyed)[1]
            if no_model is not None and no_model.code not in caller.warned:
                await caller.append(no_model)
        return live

    async def _begin(self, live: Live, caller: Live) -> None:
        """The head and the first facts: the caller's, the same bytes, where they hold here too."""
        shares = (
            live.dialect.name == caller.dialect.name
            and live.model.info == caller.model.info
            and live.registry.names == caller.registry.names
            and live.spec.core in (None, caller.spec.core)
            and caller.head is not NO_HEAD
        )
        if shares:
            live.head = caller.head
            bodies: tuple[Body, ...] = (head_event(live, caller.head.digest),)
        else:
            bodies = await take_new_head(live, self.store, self.config)
        facts = inherited(caller, live)
        if self._worktrees is not None:
            facts += self._worktrees.told(live)
        await live.append(*bodies, *facts, agent_fact(live, shares=shares))

    async def _model(self, caller: Live, spec: AgentSpec, opened: ChildOpened) -> Model:
        names, _ = models_of(spec, self.catalog, self.keyed)
        info = caller.model.info
        if names:
            settings = self.config.settings.model
            found = await choose_model(self.catalog, names, self.keyed)
            if found.name != info.name:
                info = with_temperature(found, settings.temperature)
        priced = opened.lease.cost is not None or spec.limits.cost is not None
        if priced and None in (info.prices.input, info.prices.output):
            raise UsageError(
                f"The cost of the sub-agent {spec.name} can't be limited: the price of {info.name} "
                "is unknown.",
                hint="Use an agent with another model.",
                code="price_unknown",
                model=info.name,
            )
        retries = self.config.settings.model.max_retries
        if info is not caller.model.info:
            return await open_model(
                self.catalog, info, self.keyed, max_retries=retries, agent=spec.name
            )
        return self._again(info, spec.name, retries)

    def _again(self, info: ModelInfo, agent: str, retries: int) -> Model:
        """The caller's own model, with a connection of its own; nothing is asked or looked up again."""
        if info.wire == "scripted":
            from croze.llm.script import load_script
            from croze.llm.scripted import ScriptedModel

            if info.model not in self._scripts:
                self._scripts[info.model] = load_script(Path(info.model))
            return ScriptedModel(info, self._scripts[info.model], agent=agent)
        from croze.llm.open import open_model as open_wire

        key = require_key(self.catalog.provider(info), self.keyed)
        return open_wire(info, api_key=key or None, max_retries=retries)

    def _session(self, live: Live) -> Session:
        async def fork(message_id: str | None) -> str:
            return (await Conversations(self.store).fork(live.log.session, message_id)).id

        async def to_xml(switched: Live) -> tuple[Body, ...]:
            return await switch_to_xml(switched, self.store, self.config)

        def on_rule(rule: str) -> None:
            KeptRules.of(self.config).project.add("allow", rule)

        session = Session(
            live,
            fork=fork,
            switch_to_xml=to_xml if live.spec.dialect == "auto" else None,
            on_rule=on_rule,
        )
        if self.watch is not None:
            session.subscribe(self.watch)
        return session


def _as_called(spec: AgentSpec, caller: AgentSpec) -> AgentSpec:
    """The agent as its caller uses it: one without a file of its own keeps the caller's context policy."""
    if spec.source:
        return spec
    return msgspec.structs.replace(
        spec, policy=caller.policy, zone=caller.zone, low=caller.low, gain=caller.gain
    )


def _tools(registry: Registry, spec: AgentSpec) -> Registry:
    """The caller's tools, and of them those that the agent may have."""
    if spec.tools is None:
        return registry.filter(None, spec.without) if spec.without else registry
    names = [name for name in spec.tools if registry.get(name) is not None]
    return registry.filter(names, spec.without)
