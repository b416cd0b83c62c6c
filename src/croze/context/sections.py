"""The System layer: its parts in their order, what each is rendered from, how they become one text."""

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import Struct

from croze.context.prompt import Variables, prompt
from croze.context.roster import TeamInputs
from croze.text.tokens import estimate
from croze.types.context import Section

if TYPE_CHECKING:
    from croze.context.environment import SystemInfo

SEPARATOR = "\n\n====\n\n"

_EDITS = {"write_to_file", "replace_in_file", "edit_file", "insert_in_file", "replace_lines"}
_LOOKS = {"read_file", "search_files", "find_files", "list_files"}
_DEDICATED = ("read_file", "search_files", "find_files", "list_files", "replace_in_file")


class HeadInputs(Struct, frozen=True, kw_only=True):
    """All that the System layer depends on. `role` is the agent's own prompt, empty for the default;
    `advertised` the protocol's text on tools; `tools` the names of all tools that the agent has;
    `demand_completion` as in `AgentSpec`; `team` whom it can call, None for nobody; `servers` a line for each MCP
    server."""

    role: str
    advertised: str
    tools: frozenset[str]
    system: "SystemInfo"
    demand_completion: bool
    team: TeamInputs | None = None
    servers: tuple[str, ...] = ()


@prompt("role.md.j2")
def role(inputs: HeadInputs) -> Variables:
    return {"role": inputs.role.strip()}


@prompt("tool_use.md.j2")
def tool_use(inputs: HeadInputs) -> Variables:
    return {
        "advertised": inputs.advertised.strip(),
        "any": bool(inputs.tools),
        "dedicated": [name for name in _DEDICATED if name in inputs.tools],
        "runs": "execute_command" in inputs.tools,
    }


@prompt("mcp_servers.md.j2")
def mcp_servers(inputs: HeadInputs) -> Variables:
    return {"servers": inputs.servers}


@prompt("agents.md.j2")
def agents(inputs: HeadInputs) -> Variables:
    if inputs.team is None:
        return {"agents": (), "also": ""}
    return msgspec.structs.asdict(inputs.team)


@prompt("capabilities.md.j2")
def capabilities(inputs: HeadInputs) -> Variables:
    return {**_abilities(inputs), "looks": not _LOOKS.isdisjoint(inputs.tools)}


@prompt("rules.md.j2")
def rules(inputs: HeadInputs) -> Variables:
    return {**_abilities(inputs), "asks": "ask_followup_question" in inputs.tools}


@prompt("system_information.md.j2")
def system_information(inputs: HeadInputs) -> Variables:
    system = inputs.system
    return {
        "os": system.os,
        "shell": system.shell,
        "user_shell": system.user_shell,
        "encoding": system.encoding,
    }


@prompt("objective.md.j2")
def objective(inputs: HeadInputs) -> Variables:
    return {
        "completes": "attempt_completion" in inputs.tools,
        "demanded": inputs.demand_completion,
    }


@prompt("workflow.md.j2")
def workflow(inputs: HeadInputs) -> Variables:
    return _abilities(inputs)


def _abilities(inputs: HeadInputs) -> Variables:
    return {
        "edits": not _EDITS.isdisjoint(inputs.tools),
        "runs": "execute_command" in inputs.tools,
        "plans": "todo_write" in inputs.tools,
    }


class HeadPrompt(Protocol):
    """A prompt that takes a head's inputs."""

    @property
    def source(self) -> str: ...

    def __call__(self, inputs: HeadInputs) -> Variables: ...

    def prompt(self, inputs: HeadInputs) -> str: ...


class Part(Struct, frozen=True):
    """A named part of the System layer, and why it is there."""

    key: str
    reason: str
    prompt: HeadPrompt


PARTS: tuple[Part, ...] = (
    Part("role", "who the agent is", role),
    Part("tool_use", "how tools are called and which there are", tool_use),
    Part("mcp_servers", "which MCP servers there are", mcp_servers),
    Part("agents", "which agents and groups it can call", agents),
    Part("capabilities", "what the agent can do", capabilities),
    Part("rules", "the rules of conduct and their authority", rules),
    Part("system_information", "the machine that commands run on", system_information),
    Part("objective", "what a turn is to achieve and how it ends", objective),
    Part("workflow", "the way of working that is expected", workflow),
)
"""In the order of the System layer."""


def assemble(texts: Sequence[str]) -> tuple[str, tuple[Section, ...]]:
    """The System layer's text and its account, from the rendered text of each of `PARTS`. An empty part
    is left out."""
    filled = [(part, text.strip()) for part, text in zip(PARTS, texts, strict=True) if text.strip()]
    sections = tuple(
        Section(
            key=part.key,
            layer="system",
            place="head",
            tokens=estimate(text),
            reason=part.reason,
            digest=sha256(text.encode()).hexdigest(),
        )
        for part, text in filled
    )
    return SEPARATOR.join(text for _, text in filled), sections
