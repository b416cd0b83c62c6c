"""The agents of a session: croze's own, the user's files, and those of the project that the user trusts."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from croze.app.config import Config
from croze.app.knowledge import finder_for
from croze.app.options import RunOptions, is_zone
from croze.app.settings import Settings
from croze.knowledge.agents import RESERVED, AgentFile, read_agents
from croze.knowledge.find import Found
from croze.llm.catalog import Catalog
from croze.llm.providers import require_key
from croze.tools.registry import Registry
from croze.types.agent import AgentSpec, Limits
from croze.types.errors import UsageError
from croze.types.event import Notice
from croze.types.team import GroupSpec, Roster

GENERAL = AgentSpec(
    name="general",
    description="Does any kind of work, with all tools of its caller.",
    include_rules=True,
)
EXPLORE = AgentSpec(
    name="explore",
    description="Looks round in the project and answers questions about it; changes nothing.",
    prompt=(
        "You look round in a project for another agent. Find what its task asks for by searching and "
        "reading, change nothing, and answer with what you found: short, with paths and line numbers, "
        "and say what you looked for and did not find."
    ),
    tools=(
        "read_file", "search_files", "find_files", "list_files", "list_code_definition_names",
        "repo_map", "read_result",
    ),
    include_rules=True,
)  # fmt: skip
ORCHESTRATOR = AgentSpec(
    name="orchestrator",
    description="Plans a large task, has its parts done side by side and sums up.",
    workflow="orchestrator",
    include_rules=True,
)
DOCS = "docs"
"""The agent of `croze docs`: it can be named, and no agent is told of it."""

BUILTIN = (GENERAL, EXPLORE, ORCHESTRATOR)
"""Where a file has the name of one of these, the file counts."""

Number = TypeVar("Number", int, float)

SKIPPED = "agent_files_skipped"
NOT_AS_WRITTEN = "agent_not_as_written"
NO_MODEL = "agent_model_unknown"


class Agents(Struct, frozen=True):
    """The agents that can be called or be a session's own, and every file that was found for one."""

    roster: Roster
    files: tuple[AgentFile, ...] = ()

    def find(self, name: str | None) -> AgentSpec | None:
        """The agent that `--agent` names; None for croze's own. Raises UsageError where there is none."""
        if name is None or name == RESERVED:
            return None
        found = self.roster.agent(name)
        if found is not None:
            return found
        if name == DOCS:
            return _docs_agent()
        found_file = next((file for file in self.files if file.name == name), None)
        if found_file is not None and found_file.found.state == "untrusted":
            raise UsageError(
                f"The agent {name} is the project's ({found_file.found.path}), which you don't trust.",
                hint="`croze trust` shows what it would do and trusts it; --trust does for one run.",
                code="agent_untrusted",
                agent=name,
                path=found_file.found.path,
            )
        if found_file is not None:
            raise UsageError(
                f"The agent {name} can't be used: {found_file.found.path}: {found_file.found.reason}.",
                hint="Mend the file, or name another agent.",
                code="agent_broken",
                agent=name,
                path=found_file.found.path,
                reason=found_file.found.reason,
            )
        names = ", ".join((RESERVED, *(each.name for each in self.roster.agents)))
        raise UsageError(
            f"There is no agent named {name}.",
            hint=f"There are: {names}.",
            code="unknown_agent",
            agent=name,
            names=names,
        )

    def notices(self, own: AgentSpec | None) -> list[Notice]:
        """What is wrong with agent files: those that can't be used in one warning, and what of the
        session's `own` one is not as it says."""
        told = []
        broken = [file.found for file in self.files if file.found.state == "broken"]
        if broken:
            first = f"{broken[0].path} ({broken[0].reason})"
            more = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
            told.append(
                Notice(
                    level="warning",
                    code=SKIPPED,
                    text=f"Not used as agents: {first}{more}. `croze knowledge --kind agents` shows why.",
                    params={
                        "file": broken[0].path, "reason": broken[0].reason, "more": more,
                    },
                )
            )  # fmt: skip
        for file in self.files:
            if own is not None and file.found.acts and file.name == own.name and file.found.reason:
                told.append(
                    Notice(
                        level="warning",
                        code=NOT_AS_WRITTEN,
                        text=f"The agent {own.name} ({file.found.path}): {file.found.reason}.",
                        params={
                            "agent": own.name, "file": file.found.path, "reason": file.found.reason,
                        },
                    )
                )  # fmt: skip
        return told


def load_agents(config: Config, env: Mapping[str, str], registry: Registry) -> Agents:
    """Read the agent files; nothing is kept from one session to the next."""
    files = tuple(
        _checked(file, registry) if file.found.state != "broken" else file
        for file in read_agents(finder_for(config, env))
    )
    specs = {spec.name: _as_configured(spec, config.settings) for spec in BUILTIN}
    specs |= {
        file.name: _spec(file, registry, config.settings) for file in files if file.found.acts
    }
    roster = Roster(tuple(specs[name] for name in sorted(specs)), groups_of(config.settings))
    return Agents(roster, files)


def groups_of(settings: Settings) -> tuple[GroupSpec, ...]:
    """The configured groups; one without members is none."""
    return tuple(
        GroupSpec(name, group.members, group.description, group.max_cost, group.max_messages)
        for name, group in sorted(settings.groups.items())
        if group.members
    )


def _docs_agent() -> AgentSpec:
    from croze.teams.docs.texts import DOCS

    return DOCS


def with_agent(options: RunOptions, agent: AgentSpec | None, asked: RunOptions) -> RunOptions:
    """The options of a run as its agent wants them where `asked`, what the user wrote, says nothing."""
    if agent is None:
        return options
    limits = agent.limits
    return msgspec.structs.replace(
        options,
        policy=asked.policy or agent.policy,
        zone=asked.zone or agent.zone,
        max_turns=_least(options.max_turns, limits.steps),
        max_cost=_least(options.max_cost, limits.cost),
        max_time=_least(options.max_time, limits.seconds),
        include_rules=options.include_rules or agent.include_rules,
    )


def models_of(
    agent: AgentSpec | None, catalog: Catalog, env: Mapping[str, str]
) -> tuple[tuple[str, ...], Notice | None]:
    """The models that an agent names and that can be opened, or a warning that there are none: then it
    has its caller's."""
    wanted = [name.strip() for name in agent.model.split(",")] if agent is not None else []
    names = tuple(name for name in wanted if name and _opens(name, catalog, env))
    if agent is None or not agent.model or names:
        return names, None
    return (), Notice(
        level="warning",
        code=NO_MODEL,
        text=f"The agent {agent.name} asks for the model {agent.model}, which can't be used here; "
        "it works with the model of its caller.",
        params={"agent": agent.name, "model": agent.model},
    )


def _opens(name: str, catalog: Catalog, env: Mapping[str, str]) -> bool:
    try:
        info = catalog.find(name)
        if info.wire not in ("scripted", "library"):
            require_key(catalog.provider(info), env)
    except UsageError:
        return False
    return True


def _checked(file: AgentFile, registry: Registry) -> AgentFile:
    """The file with what is told of its tools and its zone."""
    if file.zone and not is_zone(file.zone):
        reason = (
            f"zone can't be {file.zone[:40]!r}: 80k, 1.5M, a number, a share such as 0.5, or auto"
        )
        return msgspec.structs.replace(file, found=_told(file.found, reason, state="broken"))
    strange = [name for name in (*(file.tools or ()), *file.without) if not registry.get(name)]
    if not strange:
        return file
    reason = f"there is no tool named {', '.join(strange)[:200]}"
    return msgspec.structs.replace(file, found=_told(file.found, reason))


def _told(found: Found, reason: str, *, state: str = "") -> Found:
    return msgspec.structs.replace(
        found,
        state=state or found.state,
        reason="; ".join(filter(None, (found.reason, reason))),
    )


def _as_configured(spec: AgentSpec, settings: Settings) -> AgentSpec:
    """An agent of croze's own with the user's settings for contexts."""
    context = settings.context
    return msgspec.structs.replace(
        spec, policy=context.policy, zone=str(context.zone), low=context.low, gain=context.gain
    )


def _spec(file: AgentFile, registry: Registry, settings: Settings) -> AgentSpec:
    context = settings.context
    return AgentSpec(
        name=file.name,
        prompt=file.prompt,
        model=file.model,
        tools=_tools(file, registry),
        isolation=file.isolation,
        limits=Limits(steps=file.max_turns, seconds=file.max_time, cost=file.max_cost),
        policy=file.policy or context.policy,
        zone=file.zone or str(context.zone),
        low=context.low,
        gain=context.gain,
        include_rules=file.include_rules,
        description=file.description,
        source=file.found.path,
        without=tuple(
            name for name in _known(file.without, registry) if _is_outside(name, registry)
        ),
    )


def _tools(file: AgentFile, registry: Registry) -> tuple[str, ...] | None:
    """The tools by their own names; None for all of them. A name that isn't known gives nothing."""
    without = {name for name in _known(file.without, registry) if not _is_outside(name, registry)}
    if file.tools is None and not without:
        return None
    wanted = registry.names if file.tools is None else _known(file.tools, registry)
    return tuple(name for name in wanted if name not in without)


def _is_outside(name: str, registry: Registry) -> bool:
    return registry.outside is not None and registry.outside.speaks_of(name)


def _known(names: Sequence[str], registry: Registry) -> tuple[str, ...]:
    kinds = (registry.get(name) for name in names)
    return tuple(dict.fromkeys(kind.doc.name for kind in kinds if kind is not None))


def _least(one: Number | None, other: Number | None) -> Number | None:
    given = [value for value in (one, other) if value is not None]
    return min(given) if given else None
