"""What front ends get: configuration, conversations, live sessions, replays and checks."""

import asyncio
import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from croze import __version__
from croze.agent.bus import Bus, Watcher
from croze.agent.callbacks import register
from croze.agent.resume import used
from croze.agent.session import Session
from croze.app.assemble import assemble, check_options, open_journal
from croze.app.config import Config, load
from croze.app.doctor import examine
from croze.app.head import switch_to_xml
from croze.app.hooking import attach_hooks
from croze.app.hooks_config import Hooks, in_one_line, load_hooks
from croze.app.knowledge import untrusted
from croze.app.logfile import LogFile
from croze.app.mcp import load_mcp, open_servers, tell_of_servers
from croze.app.options import Finding, ReplayReport, RunOptions
from croze.app.rules import KeptRules
from croze.store.conversations import Conversations
from croze.store.db import StoreSettings
from croze.store.store import Store
from croze.types.errors import ConversationNotFound, UsageError
from croze.types.event import Body, Notice
from croze.types.ids import SystemSource
from croze.workspace.cache import RunCache

if TYPE_CHECKING:
    from croze.mcp.servers import Servers

if TYPE_CHECKING:
    from croze.teams.hub import Hub

__all__ = ["App", "Session"]


class App:
    """The application for one project folder. Cheap to open: the store is opened when it is needed."""

    def __init__(self, config: Config, env: Mapping[str, str], hooks: Hooks | None = None) -> None:
        hooks = hooks or Hooks()
        self._mcp = load_mcp(config)
        found = (*hooks.notices, *self._mcp.notices, *untrusted(config, env))
        notices = in_one_line((*config.notices, *found), config.project.root)
        self.config = replace(config, notices=notices)
        self._env = env
        self._hooks = hooks.hooks
        self._servers: Servers | None = None
        self._store: Store | None = None
        self._conversations: Conversations | None = None
        self._sessions: list[Session] = []
        self._callbacks: list[tuple[str, Watcher]] = []
        self._log_file = LogFile(config.paths.log_file, config.settings.store.log_level)

    @classmethod
    def open(
        cls,
        *,
        cwd: Path,
        overrides: Mapping[str, object] | None = None,
        env: Mapping[str, str] | None = None,
        trust: bool = False,
    ) -> "App":
        """Load the configuration for `cwd`; `overrides` are arguments by dotted key; with `trust` the
        project's files as they are now may act in this run. Raises ConfigError."""
        env = os.environ if env is None else env
        config = load(cwd, overrides=overrides, env=env, trust=trust)
        return cls(config, env, load_hooks(config, env))

    @property
    def env(self) -> Mapping[str, str]:
        """The environment that the application was opened with."""
        return self._env

    @property
    def servers(self) -> "Servers | None":
        """The MCP servers that all sessions share, each started when it is first used; None where none is
        configured."""
        if self._servers is None:
            self._servers = open_servers(self.config, self._env, self._mcp)
        return self._servers

    @property
    def store(self) -> Store:
        """The project's session log, opened on first use."""
        if self._store is None:
            settings = self.config.settings.store
            self._store = Store.open(
                self.config.store_folder,
                source=SystemSource(),
                settings=StoreSettings(
                    max_cache_size=settings.max_cache_size,
                    cache_ttl=settings.cache_ttl,
                    lock_timeout=settings.lock_timeout,
                    backup_enabled=settings.backup_enabled,
                    backup_interval=settings.backup_interval,
                    max_backups=settings.max_backups,
                    enable_compression=settings.enable_compression,
                    default_namespace=settings.default_namespace,
                ),
            )
        return self._store

    @property
    def notices(self) -> list[Notice]:
        """What the store has to say (a damaged file set aside, and the way back)."""
        return self.store.notices

    @property
    def conversations(self) -> Conversations:
        if self._conversations is None:
            self._conversations = Conversations(self.store)
        return self._conversations

    def on(self, point: str, callback: Watcher) -> None:
        """Register a callback at a named point (see `croze.agent.callbacks.POINTS`) for every session
        that is opened from now on. Raises ValueError for an unknown point."""
        register(Bus(), point, callback)
        self._callbacks.append((point, callback))

    async def session(self, options: RunOptions, *, cache: RunCache | None = None) -> Session:
        """Open a live session: new, resumed (`resume`, by id or the start of one) or the namespace's
        current one (`continue_`). With the `cache` of a run it joins that run. Raises UsageError, SessionBusy, ConversationNotFound and others."""
        asked = options
        options = options.resolved(self.config.settings)
        await check_options(options, self.config, self._env)
        log = await self._log(options)
        try:
            live = await assemble(
                config=self.config,
                options=options,
                store=self.store,
                log=log,
                asked=asked,
                env=self._env,
                cache=cache,
                servers=self.servers,
                hooks=self._hooks,
                watch=self._log_file.watch,
            )
            attach_hooks(live, self.config, self._hooks)
        except BaseException:
            log.close()
            if not used(log.events):
                with contextlib.suppress(ConversationNotFound):
                    await self.conversations.delete(log.session)
            raise

        async def fork(message_id: str | None) -> str:
            return (await self.conversations.fork(log.session, message_id)).id

        async def to_xml(live_session: Any) -> tuple[Body, ...]:
            return await switch_to_xml(live_session, self.store, self.config)

        def on_rule(rule: str) -> None:
            KeptRules.of(self.config).project.add("allow", rule)

        session = Session(
            live,
            fork=fork,
            switch_to_xml=to_xml if (options.dialect or "auto") == "auto" else None,
            on_rule=on_rule,
        )
        session.subscribe(self._log_file.watch)
        for point, callback in self._callbacks:
            session.on(point, callback)
        await session.open(resumed=used(log.events))
        await tell_of_servers(live)
        if live.depth:
            from croze.app.worktrees import tell_alone

            await tell_alone(live)
        await self.conversations.set_current(session.id, namespace=options.namespace)
        if live.registry.get("execute_command") is not None:
            asyncio.get_running_loop().run_in_executor(None, _warm_up)
        self._sessions.append(session)
        return session

    def hub(self, session: Session) -> "Hub":
        """The agents and groups of a session's run, for programs: to add others, and to speak with them.
        Raises UsageError for a session that was not opened here."""
        from croze.app.children import hub_of

        return hub_of(session)

    async def _log(self, options: RunOptions) -> Any:
        if options.continue_:
            current = await self.conversations.current(options.namespace)
            if current is None:
                raise UsageError(
                    "There is no conversation to continue here.",
                    hint="Start one with croze run, or pick one from croze session list.",
                    code="nothing_to_continue",
                )
            return await self.store.open_log(current)
        if options.resume:
            return await self.store.open_log(options.resume)
        return await self.store.create(
            name=options.name,
            namespace=options.namespace,
            project=str(self.config.project.root),
            version=__version__,
        )

    async def leave(self, session: Session) -> None:
        """Close a session. One in which nothing was ever said leaves no trace."""
        if session in self._sessions:
            self._sessions.remove(session)
        await session.close()
        if not session.used:
            with contextlib.suppress(ConversationNotFound):
                await self.conversations.delete(session.id)
        if open_journal(self.config).is_over_quota():
            from croze.app.timetravel import tidy

            await tidy(self)

    async def replay(self, session: str) -> ReplayReport:
        """Run a recorded session again, without network or tools, and compare every byte."""
        from croze.app.replay import replay

        return await replay(self.store, self.config, await self.store.resolve(session))

    async def doctor(self) -> list[Finding]:
        """Whether everything croze needs is there."""
        return await examine(self.config, self.store, self._env)

    async def aclose(self) -> None:
        """Close the sessions and the store."""
        for session in tuple(self._sessions):
            await self.leave(session)
        if self._servers is not None:
            await self._servers.close()
            self._servers = None
        self._log_file.close()
        if self._store is not None:
            self._store.close()
            self._store = None


def _warm_up() -> None:
    """Load what the first command is judged with, beside the first request: the shell's grammar alone
    takes some 10 ms."""
    import croze.tools.classify  # noqa: F401
    from croze.tools.shell_syntax import read
    from croze.workspace.descendants import adopt_orphans

    read("true")
    adopt_orphans()
