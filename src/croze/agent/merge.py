"""What a sub-agent did in a work tree of its own comes back: one at a time, file by file, or not at all.

A file is taken over where the caller's is still what the sub-agent began with, or where a merge of the
lines is certain; else it is left as it is and the conflict is named. All of the work is kept as a patch.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from croze.agent.live import Live
from croze.agent.merge_file import merge_file, same
from croze.agent.recorded import WORK_KEPT
from croze.store.failpoint import passes
from croze.text.tokens import estimate
from croze.types.event import (
    ChildClosed,
    ChildOpened,
    Event,
    FactAdded,
    FilesChanged,
    Notice,
)
from croze.types.team import INHERITED, MergeConflict, Merged
from croze.workspace.changes import Side, describe
from croze.workspace.isolate import Worktree, discard, kept_patch, open_worktree, recover, take_up
from croze.workspace.isolate_copy import Work
from croze.workspace.restore import look

INTERRUPTED = "interrupted"


async def open_isolated(live: Live, child: str, worktrees: Path) -> Worktree:
    """A work tree for the sub-agent `child` (its session's id), of the caller's workspace as it stands.
    `worktrees` is the project's folder for them. The tree's `root` is the child's workspace; `notes` are
    for its first message. Raises `IsolationError`."""
    workspace = live.workspace
    return await open_worktree(
        workspace.root,
        worktrees / child,
        live.env,
        session=child,
        confinement=workspace.confinement,
    )


async def merge_back(live: Live, child: str, tree: Worktree, *, call_id: str = "") -> Merged:
    """Take over what the sub-agent did in its work tree, append `FilesChanged` and `Merged` to the
    caller's log, and remove the tree. Merges of one caller wait for each other, in their order.

    Call it when the child's session is closed (nothing of it runs any more). Never raises for what the
    files are like; where the work can't even be read, the tree stays and becomes a leftover, and that is
    raised.
    """
    async with live.merging:
        try:
            works = await tree.changes()
            patch = await live.blobs.put_blob(await tree.patch()) if works else ""
        except BaseException:
            await tree.close(keep=True)
            raise
        merged = Merged(child=child, patch=patch, call_id=call_id)
        if works:
            merged = await _take_over(live, works, merged)
    await tree.close()
    return merged


async def _take_over(live: Live, works: Sequence[Work], merged: Merged) -> Merged:
    call = merged.call_id or merged.child
    sides: dict[str, tuple[Side, Side]] = {}
    made: dict[str, tuple[str, ...]] = {}
    conflicts: list[MergeConflict] = []
    already: list[str] = []
    # Removals first, so that a folder may take a file's place.
    for work in sorted(works, key=lambda work: (work.mode is not None, work.path)):
        done = await merge_file(live, work, call)
        if isinstance(done, MergeConflict):
            conflicts.append(done)
        elif done is None:
            already.append(work.path)
        else:
            sides[work.path] = done.before, done.after
            made[work.path] = done.made
        passes("merge.file")
    changes = tuple(
        msgspec.structs.replace(change, by=merged.child) for change in describe(sides, made)
    )
    merged = msgspec.structs.replace(
        merged, applied=tuple(sorted([*sides, *already])), conflicts=tuple(conflicts)
    )
    if changes:
        await live.append(FilesChanged(call_id=call, changes=changes), merged, durable=True)
    else:
        await live.append(merged, durable=True)
    if live.tracker is not None:
        live.tracker.settle()
    passes("merge.done")
    return merged


async def account_for(live: Live, worktrees: Path) -> None:
    """What a crash kept from coming back: for each sub-agent of this session's log whose work tree was
    not merged to its end, record what is here of its work (`applied`) and what isn't (a conflict
    `interrupted`), and tell the model. Nothing more is taken over: the caller's files may have changed."""
    unmerged, merged_ones = _unmerged(live.log.events)
    for child in merged_ones:
        await asyncio.to_thread(discard, worktrees / child)
    for child, call_id in unmerged.items():
        merged = await _interrupted(live, worktrees, Merged(child=child, call_id=call_id))
        if merged is not None:
            text = _told_late(merged)
            told = FactAdded(
                key=f"merge:{child}",
                message_id=live.new_id(),
                text=text,
                layer="current",
                reason="a sub-agent's work did not come back before the process ended",
                tokens=estimate(text),
                data={INHERITED: ""},
            )
            await live.append(merged, told, durable=True)


def _unmerged(events: Sequence[Event]) -> tuple[dict[str, str], set[str]]:
    """The sub-agents in work trees whose work has not come back, with the calls that wanted them; and
    those whose last work has."""
    found: dict[str, str] = {}
    back: set[str] = set()
    for event in events:
        match event.body:
            case ChildOpened(isolation="worktree") as body:
                found[body.child] = body.call_id
                back.discard(body.child)
            case Merged(child=child):
                found.pop(child, None)
                back.add(child)
            case ChildClosed(report=report) if report.reason != "died":
                found.pop(event.body.child, None)
            case _:
                pass
    return found, back


async def _interrupted(live: Live, worktrees: Path, merged: Merged) -> Merged | None:
    """What became of one sub-agent's work; None where it had done none."""
    tree = await asyncio.to_thread(take_up, worktrees / merged.child, live.env)
    if tree is None:
        try:
            data = kept_patch(worktrees, merged.child).read_bytes()
        except OSError:
            return None
        paths = _paths(data)
        return msgspec.structs.replace(
            merged,
            conflicts=tuple(MergeConflict(path=path, reason=INTERRUPTED) for path in paths),
            patch=await live.blobs.put_blob(data),
        )
    try:
        works = await tree.changes()
        patch = await live.blobs.put_blob(await tree.patch()) if works else ""
    except BaseException:
        await tree.close(keep=True)
        raise
    here: dict[bool, list[str]] = {True: [], False: []}
    for work in works:
        here[same(look(live.workspace.root, work.path), work.new, work.mode)].append(work.path)
    await tree.close()
    if not works:
        return None
    return msgspec.structs.replace(
        merged,
        applied=tuple(here[True]),
        conflicts=tuple(MergeConflict(path=path, reason=INTERRUPTED) for path in here[False]),
        patch=patch,
    )


def _paths(patch: bytes) -> list[str]:
    """The files that a patch of ours changes."""
    rows = [row for row in patch.split(b"\n") if row.startswith(b"diff --git a/")]
    names = [row[len(b"diff --git a/") :] for row in rows]
    return [name[: (len(name) - 3) // 2].decode("utf-8", "replace") for name in names]


def _told_late(merged: Merged) -> str:
    text = (
        f"The sub-agent {merged.child[:8]} worked in a copy of this workspace, and the process ended before "
        "its work had come back."
    )
    if merged.applied:
        text += f" In your workspace: {', '.join(merged.applied)}."
    if merged.conflicts:
        names = ", ".join(conflict.path for conflict in merged.conflicts)
        text += (
            f" Not in your workspace, or not as the sub-agent left it: {names}. Look at these files, then "
            "have the rest done again where it is still wanted."
        )
        if merged.patch:
            text += f" {_way_to(merged)}"
    return text


def _way_to(merged: Merged) -> str:
    """How the session that called the sub-agent gets at the whole of its work."""
    return (
        f"Its caller can read all of its work as a patch: read_result with id {merged.child[:8]}."
    )


async def keep_leftovers(live: Live, worktrees: Path) -> None:
    """At a session's opening: what dead processes have left of work trees is removed, and the user told
    where their work is kept."""
    for left in await recover(worktrees, live.env):
        text = (
            f"A sub-agent's work in {left.files} files has not come back, since its process ended. It is "
            f"kept as a patch: {left.patch}"
        )
        params = {"session": left.session, "patch": str(left.patch), "files": left.files}
        await live.append(Notice(level="warning", code=WORK_KEPT, text=text, params=params))


def told(merged: Merged) -> str:
    """A merge for the model: what was taken over, what was not, and how to go on."""
    if not merged.applied and not merged.conflicts:
        return "It changed no files."
    lines = []
    if merged.applied:
        lines.append(f"Merged into your workspace: {', '.join(merged.applied)}.")
    for conflict in merged.conflicts:
        lines.append(f"Not merged, left as it is: {conflict.path}: {conflict.reason}.")
        if conflict.text:
            lines.append(conflict.text)
    if merged.conflicts:
        lines.append(
            "What was not merged is not in your workspace. Read these files as they are now and make "
            "the sub-agent's changes yourself where they are still wanted."
        )
        if merged.patch:
            lines.append(_way_to(merged))
    return "\n".join(lines)
