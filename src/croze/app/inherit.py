"""What a sub-agent is told at its opening: its caller's documentation, byte for byte, and who it is."""

from msgspec.structs import replace

from croze.agent.live import Live
from croze.context.gather import ENVIRONMENT
from croze.context.law import LAW, RULES
from croze.text.tokens import estimate
from croze.types.event import FactAdded
from croze.types.team import INHERITED

AGENT = "agent"
WITH = {"tools": "execute_command", "skills": "load_skill"}
"""Facts that are of use only to an agent that has this tool."""

_CALLED = """\
You are the sub-agent {name}: another agent has called you, and the task below is its. No user reads \
along. What you say in your last message is all that the caller gets of your work: put the whole result \
there, with paths and line numbers where they matter, and say what you could not do. Stay with the \
task; the caller does the rest."""
_APART = """
You work in a folder of your own, empty at first, and not in the project. The caller can't read what you \
write there."""
_ROLE = """
Your role, which takes the place of the one told above and goes before everything else:
{prompt}"""


def inherited(caller: Live, live: Live) -> list[FactAdded]:
    """The caller's documentation that still stands in full and is true here too: nothing is looked at
    again. An agent without the project's rules gets none of them."""
    if live.workspace.root != caller.workspace.root or live.workspace.kind != "project":
        return []
    found: list[FactAdded] = []
    for event in caller.log.events:
        fact = event.body
        if not isinstance(fact, FactAdded) or not _is_of_the_project(fact):
            continue
        if fact.key.startswith((LAW, RULES)) and not live.spec.include_rules:
            continue
        if (tool := WITH.get(fact.key)) and live.registry.get(tool) is None:
            continue
        entry = caller.ledger.by_id.get(fact.message_id)
        if entry is None or entry.standing != "full":
            continue
        data = {**fact.data, INHERITED: caller.log.session}
        found.append(replace(fact, message_id=live.new_id(), data=data))
    return found


def agent_fact(live: Live, *, shares: bool) -> FactAdded:
    """Who it is; and its role, where the head that it shares doesn't say it."""
    text = _CALLED.format(name=live.spec.name)
    if live.spec.isolation == "task":
        text += _APART
    if shares and live.spec.prompt:
        text += _ROLE.format(prompt=live.spec.prompt)
    text = f"<sub_agent>\n{text}\n</sub_agent>"
    return FactAdded(
        key=AGENT,
        message_id=live.new_id(),
        text=text,
        layer="documentation",
        reason="which sub-agent this is, and what its caller expects",
        origin=live.spec.source,
        tokens=estimate(text),
        data={INHERITED: ""},
    )


def _is_of_the_project(fact: FactAdded) -> bool:
    documents = fact.layer == "documentation" and fact.key != AGENT
    return documents or fact.key == ENVIRONMENT
