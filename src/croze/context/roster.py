"""What the System layer tells of the agents and groups that can be called, within bounds."""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from msgspec import Struct

from croze.dialect.base import Dialect
from croze.dialect.faults import ESCAPE_TOOL
from croze.types.agent import AgentSpec
from croze.types.team import GroupSpec, Roster

RUN, TALK, TALK_GROUP = "run_named_subagents", "talk_to", "talk_to_group"
ROLE = 100
"""Characters of an agent's role, and of a group's description."""
BRIEF = 50
"""The same where there are many."""
LISTED = 80
"""Characters of an agent's tools, and of a group's members."""
ROWS = 3_000
"""Characters of the agents' lines. Where they need more, tools are counted instead of listed, then the
roles cut; those for which there still is no line are named. The groups have as much."""
NAMES = 600
"""Characters of these names; the rest is counted."""
SHORT = 3
"""So many agents without a file of their own are told without examples, if there is no group."""


_Tools = Callable[[Sequence[str] | None], str]
"""How an agent's tools are told; None are all."""


class TeamInputs(Struct, frozen=True, kw_only=True):
    """Whom this agent can call, as it is told. `agents` and `groups` are lines, `also` the names for which
    none was left; `short` says that the ways to call them are left to `describe_tools`. `parallel` and
    `serial` are example calls, empty where sub-agents can't be started or `short` holds."""

    agents: tuple[str, ...]
    groups: tuple[str, ...]
    also: str
    short: bool
    runs: bool
    talks: bool
    asks_groups: bool
    parallel: str
    serial: str


def team_inputs(
    roster: Roster, spec: AgentSpec, *, tools: Set[str], core: Set[str], dialect: Dialect
) -> TeamInputs | None:
    """What an agent with these `tools` is told of the `roster`; None where it can call nobody. `spec` is
    the agent itself: it is marked in the list, and a model is named only where it isn't the agent's."""
    runs, talks, groups = RUN in tools, TALK in tools, TALK_GROUP in tools
    agents = sorted(roster.agents, key=lambda each: each.name)
    called = [each for each in agents if each.name != spec.name]
    if not called or not (runs or talks or groups):
        return None
    gathered = sorted(roster.groups, key=lambda each: each.name) if groups else []
    short = not gathered and len(agents) <= SHORT and not any(each.source for each in agents)
    rows, also = _agents(agents, spec, short=short)
    told, also_groups = _within([(each.name, _group(each)) for each in gathered])
    examples = ("", "")
    if runs and not short:
        pair = (called * 2)[:2]
        mark = "" if RUN in core else ESCAPE_TOOL
        examples = (
            _example(dialect, mark, "parallel", pair),
            _example(dialect, mark, "serial", pair),
        )
    return TeamInputs(
        agents=rows,
        groups=told,
        also=_names([*also, *also_groups]),
        short=short,
        runs=runs,
        talks=talks,
        asks_groups=bool(gathered),
        parallel=examples[0],
        serial=examples[1],
    )


def _agents(
    agents: Sequence[AgentSpec], me: AgentSpec, *, short: bool
) -> tuple[tuple[str, ...], list[str]]:
    """A line for each agent, as full as there is room for."""
    forms: tuple[tuple[int, _Tools], ...] = (
        ((ROLE, _untold),)
        if short
        else ((ROLE, _listed_tools), (ROLE, _counted), (BRIEF, _counted))
    )
    for role, tools in forms:
        rows, also = _within([(each.name, _agent(each, me, role, tools)) for each in agents])
        if not also:
            break
    return rows, also


def _agent(each: AgentSpec, me: AgentSpec, most: int, tools: _Tools) -> str:
    mark = " (you: never call yourself)" if each.name == me.name else ""
    notes = [tools(each.tools)]
    if each.model and each.model != me.model:
        notes.append(f"model {_line(each.model, LISTED)}")
    told = "; ".join(note for note in notes if note)
    return f"{_line(each.name, LISTED)}{mark}: {_line(each.description or each.prompt, most)}" + (
        f" [{told}]" if told else ""
    )


def _group(each: GroupSpec) -> str:
    about = f": {_line(each.description, ROLE)}" if each.description else ""
    return f"{_line(each.name, LISTED)}{about} [{_listed(each.members)}]"


def _listed_tools(names: Sequence[str] | None) -> str:
    return _listed(sorted(names)) if names else _counted(names)


def _counted(names: Sequence[str] | None) -> str:
    if names is None:
        return "all tools"
    return f"{len(names)} tools" if names else "no tools"


def _untold(names: Sequence[str] | None) -> str:
    return ""


def _listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown: list[str] = []
    for name in names:
        if shown and len(", ".join((*shown, name))) > LISTED:
            return f"{', '.join(shown)} and {len(names) - len(shown)} more"
        shown.append(_line(name, LISTED))
    return ", ".join(shown)


def _line(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _within(rows: Sequence[tuple[str, str]]) -> tuple[tuple[str, ...], list[str]]:
    """The rows that there is room for, and the names of the others."""
    kept: list[str] = []
    most = ROWS
    for at, (_, row) in enumerate(rows):
        most -= len(row)
        if most < 0:
            return tuple(kept), [name for name, _ in rows[at:]]
        kept.append(row)
    return tuple(kept), []


def _names(names: Sequence[str]) -> str:
    shown: list[str] = []
    for name in names:
        if shown and len(", ".join((*shown, name))) > NAMES:
            return f"{', '.join(shown)} and {len(names) - len(shown)} more"
        shown.append(_line(name, LISTED))
    return ", ".join(shown)


def _example(dialect: Dialect, escape: str, mode: str, agents: Sequence[AgentSpec]) -> str:
    """A call that gives two agents work, as this protocol writes it; `escape` is the tool through which
    tools outside the core are called where the protocol has no tags."""
    orders = "\n".join(f"- {{name: {each.name}, task: ...}}" for each in agents)
    args: Mapping[str, Any] = {"subagents": f"mode: {mode}\nsubagents:\n{orders}"}
    if dialect.name == "native" and escape:
        return dialect.example(escape, {"name": RUN, "arguments": args})
    return dialect.example(RUN, args)
