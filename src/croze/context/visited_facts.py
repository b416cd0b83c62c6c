"""The folders that other agents of the run have listed: told to a new one at its opening."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from croze.context.tree_facts import TreeSource, is_opening
from croze.text.redact import redact
from croze.text.tokens import estimate
from croze.types.event import FactAdded
from croze.workspace.cache import Visited

if TYPE_CHECKING:
    from croze.context.gather import GatherState

VISITED = "visited"
_VISITED = (
    "Folders that other agents of this run have listed, as they are now. There is no need to list them "
    "again."
)
_VISITED_REPLY = "I will use these listings."


async def gather_visited(state: "GatherState") -> Sequence[FactAdded]:
    """The folders listed so far in a run that has begun; nothing in a task workspace. Those that the tree
    shows whole are left out."""
    source = state.tree
    if source is None or source.options is None or source.workspace.kind == "task":
        return ()
    if VISITED in state.seen or not is_opening(state):
        return ()
    visited = await asyncio.to_thread(_visited, source)
    if not visited:
        return ()
    return (visited_fact(visited, state.source.uuid(), source.options.characters),)


def visited_fact(visited: Sequence[Visited], message_id: str, room: int) -> FactAdded:
    """What the model is told of folders that others have listed, in at most `room` characters."""
    rows, left_out = [], 0
    for each in visited:
        row = f"{each.path}/: {', '.join(each.items) or '(empty)'}"
        if len(row) > room:
            left_out += 1
            continue
        room -= len(row) + 1
        rows.append(row)
    if left_out:
        rows.append(f"… {left_out} more folders")
    body = redact("\n".join(rows))[0]
    text = "\n".join(("<visited_folders>", _VISITED, "", body, "</visited_folders>"))
    return FactAdded(
        key=VISITED,
        message_id=message_id,
        text=text,
        reason="the folders that other agents of the run have listed",
        origin="workspace",
        reply=_VISITED_REPLY,
        tokens=estimate(text) + estimate(_VISITED_REPLY),
        data={"folders": [each.path for each in visited]},
    )


def _visited(source: TreeSource) -> list[Visited]:
    files = source.workspace.files
    tree = source.cache.known_tree(files)
    whole = {} if tree is None else tree.whole
    return [each for each in source.cache.visited(files) if whole.get(each.path) != each.items]
