"""What is new around the session and is told to the model: facts, appended before each request."""

import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from croze.context.active_facts import Notes, gather_active_context
from croze.context.clock_facts import gather_clock
from croze.context.environment import environment_facts
from croze.context.law import LawFiles, gather_law
from croze.context.library_facts import LibraryDocs, gather_libraries
from croze.context.rules_facts import Rules, gather_rules
from croze.context.skills_facts import SkillsSource, gather_skills
from croze.context.task_facts import gather_tasks
from croze.context.tools_facts import ToolsSource, gather_tools
from croze.context.tree_facts import TreeSource, gather_tree
from croze.context.visited_facts import gather_visited
from croze.text.tokens import estimate
from croze.types.event import (
    Compacted,
    Event,
    FactAdded,
    Notice,
    TodoItem,
    TodoSet,
    Undone,
)
from croze.types.ids import Source

ENVIRONMENT = "environment"
TODO = "todo"
MAX_ITEMS = 12
MAX_ITEM = 70
"""Items and characters an item that the todo recap shows: together some 200 tokens."""


class GatherState(Struct, frozen=True, kw_only=True):
    """What gatherers may look at.

    `seen` holds the latest fact of each key. `since` is the index in `events` up to which the previous
    gathering has looked, so that a gathering costs what is new; 0 after opening a session. `budget` is
    what a request may hold, in tokens; `law` remembers the law's files from one gathering to the next,
    `tree` is where the project's tree comes from; `rules` says whether the agent gets law and rules,
    `rule_set` remembers these, `notes` those on folders, where they are wanted; `libraries` is where
    documentation of libraries comes from.
    """

    root: Path
    events: Sequence[Event]
    source: Source
    seen: Mapping[str, FactAdded]
    since: int = 0
    budget: int = sys.maxsize
    law: LawFiles | None = None
    rules: bool = True
    rule_set: Rules | None = None
    notes: Notes | None = None
    external_tools: ToolsSource | None = None
    skills: SkillsSource | None = None
    tree: TreeSource | None = None
    libraries: LibraryDocs | None = None


News = FactAdded | Notice
"""What a gathering appends: facts for the model, and warnings for the user."""

Gatherer = Callable[[GatherState], Awaitable[Sequence[News]]]
"""Gives what is to be appended now; none where nothing has changed."""


async def gather_environment(state: GatherState) -> Sequence[FactAdded]:
    """Date, project, git state and toolchains: once, in the session's first message."""
    if ENVIRONMENT in state.seen:
        return ()
    isolated = state.tree is not None and state.tree.workspace.kind == "task"
    text = environment_facts(state.root, state.source, env=os.environ, paths=not isolated)
    fact = FactAdded(
        key=ENVIRONMENT,
        message_id=state.source.uuid(),
        text=text,
        layer="current",
        reason="date, project, git state and toolchains when the session began",
        origin="environment",
        tokens=estimate(text),
    )
    return (fact,)


async def gather_todo(state: GatherState) -> Sequence[FactAdded]:
    """The todo list's recap, where the list has changed or a compaction may have taken the last one."""
    seen = state.seen.get(TODO)
    items: tuple[TodoItem, ...] | None = None
    compacted = False
    for i in range(len(state.events) - 1, state.since - 1, -1):
        body = state.events[i].body
        if isinstance(body, FactAdded) and body.key == TODO:
            break
        if isinstance(body, TodoSet) and items is None:
            items = body.items
        if isinstance(body, Undone) and items is None:
            items = body.todo
        compacted = compacted or isinstance(body, Compacted)
    told = seen.text if seen is not None else ""
    text = told if items is None else recap(items, told_before=seen is not None)
    if not text or (text == told and not compacted):
        return ()
    fact = FactAdded(
        key=TODO,
        message_id=state.source.uuid(),
        text=text,
        layer="current",
        place="tail",
        reason="the todo list as it stands",
        origin="todo_write",
        tokens=estimate(text),
    )
    return (fact,)


def recap(items: Sequence[TodoItem], *, told_before: bool) -> str:
    """The todo list in a few lines: what is open in its order, what is done as a number."""
    if not items:
        return "<todo>The list is empty.</todo>" if told_before else ""
    pending = [item for item in items if item.status != "completed"]
    lines = [f"{len(items) - len(pending)} of {len(items)} done"]
    for item in pending[:MAX_ITEMS]:
        text = " ".join(item.text.split())
        text = text if len(text) <= MAX_ITEM else f"{text[: MAX_ITEM - 1]}…"
        mark = ">" if item.status == "in_progress" else " "
        lines.append(f"[{mark}] {item.id}. {text}")
    if len(pending) > MAX_ITEMS:
        lines.append(f"… and {len(pending) - MAX_ITEMS} more (todo_read shows all)")
    return "\n".join(("<todo>", *lines, "</todo>"))


GATHERERS: tuple[Gatherer, ...] = (
    gather_law, gather_libraries, gather_tools, gather_skills, gather_rules, gather_tree, gather_visited,
    gather_environment, gather_active_context, gather_todo, gather_tasks, gather_clock,
)  # fmt: skip
"""In the order in which their facts are appended."""


Announce = Callable[[str, bool], None]
"""Told the name of each gatherer (without `gather_`) before it looks, and after (True)."""


async def gather(state: GatherState, announce: Announce = lambda _name, _done: None) -> list[News]:
    """Everything that has to be told before the next request, in order."""
    facts: list[News] = []
    for gatherer in GATHERERS:
        name = gatherer.__name__.removeprefix("gather_")
        announce(name, False)
        facts += await gatherer(state)
        announce(name, True)
    return facts
