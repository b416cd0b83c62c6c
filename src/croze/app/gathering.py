"""What is gathered before each request of a session: the gatherers with what they remember from one request to
the next."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from croze.agent.beside import record_ended
from croze.agent.live import Live
from croze.app.config import Config
from croze.app.knowledge import finder_for, libraries_file, trusts
from croze.app.settings import WorkspaceSettings
from croze.context.active_facts import Notes
from croze.context.gather import GatherState, gather
from croze.context.in_play import InPlay
from croze.context.law import LawFiles
from croze.context.library_facts import LibraryDocs
from croze.context.rules_facts import Rules
from croze.context.tree_facts import TreeSource
from croze.knowledge.active import ActiveContext
from croze.knowledge.kinds import SKILLS, TOOLS
from croze.knowledge.rules import RuleFiles
from croze.store.store import Store
from croze.types.agent import AgentSpec
from croze.types.event import Event, FactAdded, Notice, Undone
from croze.types.stream import Delta
from croze.workspace.tree import CHARACTERS, SHARED_CHARACTERS, TreeOptions

if TYPE_CHECKING:
    from croze.app.external_tools import ToolsBeside
    from croze.knowledge.libraries import Libraries
    from croze.knowledge.skills import Skills


class Gathering:
    """What has been gathered so far, so that a gathering costs only what is new."""

    def __init__(self, config: Config, store: Store, env: Mapping[str, str]) -> None:
        self._source = store.source
        self._config, self._env = config, env
        self._finder = finder_for(config, env)
        self._external_tools: ToolsBeside | None = None
        self._play = InPlay()
        self._rules = Rules(RuleFiles(finder_for(config, env)), self._play)
        self._notes: Notes | None = None
        if config.settings.knowledge.active_context in ("read", "on"):
            self._notes = Notes(ActiveContext(config.project.root), self._play)
        self._law = LawFiles(config.project.root, trusts(config))
        self._libraries = LibraryDocs(
            lambda: libraries_of(config, env),
            libraries_file(config),
            config.settings.knowledge.library_tokens,
        )
        self._tree = tree_options(config.settings.workspace)
        self._shared = tree_options(config.settings.workspace, SHARED_CHARACTERS)
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
        if live.workspace.kind == "project":
            self._play.follow(events)
        state = GatherState(
            root=live.workspace.root,
            events=events,
            source=self._source,
            seen=self._seen,
            since=self._since,
            budget=live.budget.available,
            law=self._law,
            rules=live.spec.name == AgentSpec().name or live.spec.include_rules,
            rule_set=self._rules,
            libraries=self._libraries,
            notes=self._notes,
            external_tools=self._tools_of(live),
            skills=self._skills_of(live),
            tree=TreeSource(
                cache=live.cache,
                workspace=live.workspace,
                options=self._tree if live.workflow is None else self._shared,
            ),
        )
        self._since = len(events)

        def announce(name: str, done: bool) -> None:
            live.publish(Delta(kind="phase", name=name, done=done, session=live.log.session))

        return await gather(state, announce)

    def _tools_of(self, live: Live) -> "ToolsBeside | None":
        """The external tools, for an agent that can run them, once there are or were any."""
        if live.workspace.kind == "task" or live.registry.get("execute_command") is None:
            return None
        if self._external_tools is None:
            if TOOLS.name not in self._seen and not self._finder.is_there(TOOLS):
                return None
            from croze.app.external_tools import ToolsBeside, external_tools

            confinement = live.workspace.confinement
            self._external_tools = ToolsBeside(external_tools(self._config, self._env, confinement))
            live.closing.append(self._external_tools.close)
        return self._external_tools

    def _skills_of(self, live: Live) -> "Skills | None":
        """The skills, for an agent that can load them, once there are or were any."""
        if live.workspace.kind == "task" or live.registry.get("load_skill") is None:
            return None
        if live.skills is None:
            if SKILLS.name not in self._seen and not self._finder.is_there(SKILLS):
                return None
            from croze.app.external_tools import skills_of

            live.skills = skills_of(self._config, self._env)
        return live.skills


def libraries_of(config: Config, env: Mapping[str, str]) -> "Libraries":
    """The libraries that the user has added for the project."""
    from croze.app.libraries import open_libraries  # only where there are any

    return open_libraries(config, env)


def visible_facts(events: Sequence[Event], undone: Undone) -> dict[str, FactAdded]:
    """The latest fact of each key in what is left of the conversation; the others are told again."""
    return {
        event.body.key: event.body
        for event in events
        if isinstance(event.body, FactAdded) and not undone.hides(event.seq)
    }


def tree_options(settings: WorkspaceSettings, characters: int = CHARACTERS) -> TreeOptions | None:
    """How the tree is to be at a session's opening; None where none is wanted."""
    if not settings.tree:
        return None
    return TreeOptions(settings.tree_depth, settings.tree_characters or characters)


def gather_for(config: Config, store: Store, env: Mapping[str, str]) -> Gathering:
    return Gathering(config, store, env)
