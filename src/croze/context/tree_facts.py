"""The project's tree as documentation of a session: told once at its opening, and again only where a
compaction has changed the context anyway.

The pair at the opening holds no time: two sessions in the same unchanged project begin with the same bytes.
When it was scanned is the date that the environment tells below it; a later scan says its time itself.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from croze.text.redact import redact
from croze.text.tokens import estimate
from croze.types.event import (
    Compacted,
    Event,
    FactAdded,
    ModelCalled,
    ToolReturned,
    Undone,
)
from croze.workspace.cache import HOT, RunCache, iso, metadata_of
from croze.workspace.tree import Tree, TreeOptions
from croze.workspace.workspace import Workspace

if TYPE_CHECKING:
    from croze.context.gather import GatherState

TREE = "tree"
READ = "read:"

_INTRO = (
    "The project's folders and files, {depth} levels deep, scanned when this conversation began. Left out "
    "are hidden folders, build output, installed packages and what .gitignore excludes."
)
_AGAIN = "Scanned again at {time}: this holds in place of the tree that was told before."
_USE = (
    "Prefer this tree to listing folders that it shows. List what is deeper, left out or may have changed "
    "since."
)
_REPLY = "I will look at this tree first and list folders only where it does not answer."
_EMPTY = "The project's folder holds no files yet."
_FAILED = "The project could not be scanned ({reason}). List folders on demand."


class TreeSource(Struct, frozen=True, kw_only=True):
    """Where a session's tree comes from: the run's cache, the session's workspace, and how the tree is
    to be; without `options` none is told."""

    cache: RunCache
    workspace: Workspace
    options: TreeOptions | None


async def gather_tree(state: "GatherState") -> Sequence[FactAdded]:
    """The tree; nothing in a task workspace."""
    source = state.tree
    if source is None or source.options is None or source.workspace.kind == "task":
        return ()
    if TREE not in state.seen:
        if not is_opening(state):
            return ()
        tree, scanned = await asyncio.to_thread(_opening, source, source.options, _hot(state))
        return (tree_fact(tree, state.source.uuid(), shared=not scanned),)
    if not state.since and (hot := _hot(state)):
        await asyncio.to_thread(source.cache.preload, source.workspace.files, hot)
    standing = _overtaken(state)
    if standing is None:
        return ()
    files = source.workspace.files
    tree, _ = await asyncio.to_thread(source.cache.tree, files, source.options, fresh=True)
    if tree.error or digest_of(tree) == standing.data.get("digest"):
        return ()
    return (tree_fact(tree, state.source.uuid(), again=True),)


def tree_fact(
    tree: Tree, message_id: str, *, again: bool = False, shared: bool = False
) -> FactAdded:
    """What the model is told of a scan; `again`: in place of one that it was told before, `shared`: the
    scan was made for another agent of the run."""
    drawn = redact(tree.text)[0]
    if tree.error:
        parts = [_FAILED.format(reason=tree.error)]
    elif not drawn:
        parts = [_EMPTY]
    else:
        parts = [_INTRO.format(depth=tree.depth), "", drawn, "", _USE]
    if again:
        parts[0] = _AGAIN.format(time=iso(tree.at)[:16].replace("T", " ") + " UTC")
    text = "\n".join(("<project_tree>", *parts, "</project_tree>"))
    reply = "" if again else _REPLY
    return FactAdded(
        key=TREE,
        message_id=message_id,
        text=text,
        layer="current" if again else "documentation",
        reason="the project's tree, scanned again after a compaction"
        if again
        else "the project's tree when the session began",
        origin="workspace",
        reply=reply,
        tokens=estimate(text) + estimate(reply),
        data={**metadata_of(tree), "digest": digest_of(tree), "shared": shared},
    )


def digest_of(tree: Tree) -> str:
    """Tells one tree from another, by what is drawn of them."""
    return sha256(tree.text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _opening(source: TreeSource, options: TreeOptions, hot: Sequence[str]) -> tuple[Tree, bool]:
    files = source.workspace.files
    tree, scanned = source.cache.tree(files, options)
    source.cache.preload(files, [*hot, *source.cache.hot()])
    return tree, scanned


def is_opening(state: "GatherState") -> bool:
    """Whether nothing has been sent yet of what is left of the conversation."""
    if state.since and not any(isinstance(e.body, Undone) for e in state.events[state.since :]):
        return False
    return not any(
        isinstance(event.body, ModelCalled) and event.body.purpose == "main"
        for event in _standing(state.events)
    )


def _standing(events: Sequence[Event]) -> Iterator[Event]:
    """The events that are not undone, the newest first."""
    undone: Undone | None = None
    for event in reversed(events):
        if isinstance(event.body, Undone):
            undone = undone or event.body
        elif undone is None or not undone.hides(event.seq):
            yield event


def _overtaken(state: "GatherState") -> FactAdded | None:
    """The tree that stands in the context, where a compaction came after it; None where none did."""
    new = state.events[state.since :]
    if not any(isinstance(event.body, Compacted) for event in new):
        return None
    later: list[Compacted] = []
    for event in _standing(state.events):
        body = event.body
        if isinstance(body, Compacted):
            later.append(body)
        elif isinstance(body, FactAdded) and body.key == TREE:
            if not later:
                return None
            if not any(_takes(compacted, event.seq, body) for compacted in later):
                return body
    return None


def _takes(compacted: Compacted, seq: int, fact: FactAdded) -> bool:
    summarised = fact.layer != "documentation" and compacted.until >= seq
    named = fact.message_id in compacted.hidden or fact.message_id in compacted.replaced
    return summarised or named


def _hot(state: "GatherState") -> list[str]:
    """The files that this session itself has read most often, where it is taken up again."""
    if state.since:
        return []
    reads: Counter[str] = Counter()
    for event in state.events:
        body: Any = event.body
        if isinstance(body, ToolReturned) and body.look and body.look.key.startswith(READ):
            reads[body.look.key.removeprefix(READ)] += 1
    return [path for path, times in reads.most_common() if times >= HOT]
