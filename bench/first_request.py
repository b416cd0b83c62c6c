"""Tokens of a session's first request in each protocol: head, core tools, facts; and what they cost.

Estimates, and exact counts (o200k_base) where the `[tokens]` extra is installed.
Run: python bench/first_request.py. Each line: name, value, unit, target.
"""

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from croze.app.agents import BUILTIN
from croze.context.environment import environment_facts, read_system
from croze.context.head import Head, build_head
from croze.dialect.base import Dialect
from croze.dialect.native import NativeDialect
from croze.dialect.xml import XmlDialect
from croze.text.tokens import estimate, exact_counter
from croze.tools.registry import builtin
from croze.types.agent import AgentSpec
from croze.types.ids import SystemSource
from croze.types.team import Roster
from croze.types.tool import ToolDoc
from figures import figure, timed

TARGET = "< 5,000"
CORE_TARGET = "<= 2,500"
ROUNDS = 50

MANY = Roster(
    tuple(
        AgentSpec(
            name=f"agent-{number:02}",
            description="Reviews changes of the public API for what would break callers, and says which.",
            tools=("read_file", "search_files", "find_files", "list_files"),
            source="agent.md",
        )
        for number in range(20)
    )
)

ROOT = Path(__file__).resolve().parents[1]


def schemas(core: Sequence[ToolDoc]) -> str:
    """The core tools as the OpenAI wire sends them."""
    tools = [
        {
            "type": "function",
            "function": {
                "name": doc.name,
                "description": doc.description,
                "parameters": doc.parameters,
            },
        }
        for doc in core
    ]
    return msgspec.json.encode(tools).decode()


def median(work: Callable[[], object]) -> float:
    """Milliseconds of the median call."""
    return sorted(timed(work) for _ in range(ROUNDS))[ROUNDS // 2] * 1e3


def measure(dialect: Dialect, core: Sequence[ToolDoc], others: Sequence[ToolDoc]) -> None:
    """The figures of one protocol."""
    system = read_system(os.environ)
    spec = AgentSpec()
    facts = environment_facts(ROOT, SystemSource(), env=os.environ)
    exact = exact_counter("gpt-5")
    counts: list[tuple[str, Callable[[str], int]]] = [("estimate", estimate)]
    if exact is not None:
        counts.append((exact.name, exact.count))

    def build(cache: Path | None) -> Head:
        return build_head(spec, core, others, dialect, system, cache=cache, roster=Roster(BUILTIN))

    head = build(None)
    tools = schemas(core) if dialect.name == "native" else dialect.describe(core)
    sent = head.system + (tools if dialect.name == "native" else "")
    for name, count in counts:
        label = f"{dialect.name}, {name}"
        figure(f"first request, head + core tools, {label}", count(sent), "tokens", TARGET)
        figure(f"  core tools in full, {label}", count(tools), "tokens", CORE_TARGET)
        figure(f"  facts of the first message, {label}", count(facts), "tokens", "<= 150")
    for section in head.sections:
        figure(f"  section {section.key}, {dialect.name}", section.tokens, "tokens")
    many = build_head(spec, core, others, dialect, system, cache=None, roster=MANY)
    told = next(section.tokens for section in many.sections if section.key == "agents")
    figure(
        f"  section agents with {len(MANY.agents)} agents, {dialect.name}",
        told,
        "tokens",
        "< 1,200",
    )
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        build(cache)
        figure(f"head, rendered, {dialect.name}", median(lambda: build(None)), "ms")
        figure(f"head, cached, {dialect.name}", median(lambda: build(cache)), "ms", "< 3")


def main() -> None:
    """Print the figures of both protocols."""
    core, others = builtin().docs()
    for dialect in (XmlDialect(), NativeDialect()):
        measure(dialect, core, others)
    source = SystemSource()
    gathered = median(lambda: environment_facts(ROOT, source, env=os.environ))
    figure("environment facts", gathered, "ms", "< 2")


if __name__ == "__main__":
    main()
