"""Work trees of a run's sub-agents: opened beside their sessions, merged back when these are closed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from pathlib import Path

from croze.agent.live import Live
from croze.agent.merge import account_for, keep_leftovers, merge_back, open_isolated
from croze.store.store import Store
from croze.text.tokens import estimate
from croze.types.event import Event, FactAdded, SessionOpened
from croze.types.team import INHERITED, ChildOpened, Merged
from croze.workspace.agents import ISOLATION
from croze.workspace.isolate import Worktree
from croze.workspace.workspace import Workspace


@dataclass(slots=True)
class Worktrees:
    """Those that are open, by the sub-agent's session. `folder` is the project's for them."""

    folder: Path
    _open: dict[str, Worktree] = field(default_factory=dict)

    async def open(self, caller: Live, session: str, name: str) -> Workspace:
        """A workspace for the sub-agent `name` in a work tree of its own. Raises `IsolationError`."""
        tree = await open_isolated(caller, session, self.folder)
        self._open[session] = tree
        confinement = caller.workspace.confinement
        if confinement is not None:
            confinement = changed(
                confinement.another(), root=tree.root, _visible=None, _repositories=None
            )
        return Workspace(id=session, root=tree.root, owner=name, confinement=confinement)

    def told(self, live: Live) -> list[FactAdded]:
        """What the sub-agent has to know of its work tree."""
        tree = self._open.get(live.log.session)
        if tree is None:
            return []
        text = "\n".join(
            (
                "<work_tree>",
                "You work in a copy of the project as it stood when you were called, uncommitted changes "
                "too: change files, don't commit. What differs in the end is merged into your caller's "
                "files; what git ignores is not.",
                *tree.notes,
                "</work_tree>",
            )
        )
        return [
            FactAdded(
                key="work_tree",
                message_id=live.new_id(),
                text=text,
                reason="the agent's isolation is worktree",
                tokens=estimate(text),
                data={INHERITED: ""},
            )
        ]

    def told_again(self, live: Live, caller: Live) -> FactAdded:
        """What a sub-agent has to know that is taken up again: its copy is another one, and what of its
        earlier work is in it."""
        child = live.log.session
        merges = [e.body for e in caller.log.events if isinstance(e.body, Merged)]
        before = next((each for each in reversed(merges) if each.child == child), None)
        lines = [
            "<work_tree>",
            "You go on in a new copy of the project, made from your caller's files as they stand now. The "
            "one that you worked in before is gone.",
        ]
        if before is not None and before.applied:
            lines.append(f"Your work that came back to your caller: {', '.join(before.applied)}.")
        if before is not None and before.conflicts:
            names = ", ".join(each.path for each in before.conflicts)
            lines.append(
                f"Your work that did not come back, and is not in this copy: {names}. Look at these files "
                "as they are here, and do it again where it is still wanted."
            )
        text = "\n".join((*lines, "</work_tree>"))
        return FactAdded(
            key=f"work_tree:{live.log.events[-1].seq}",
            message_id=live.new_id(),
            text=text,
            layer="current",
            reason="a sub-agent in a work tree is taken up again",
            tokens=estimate(text),
            data={INHERITED: ""},
        )

    async def bring_back(self, caller: Live, opened: ChildOpened) -> Merged | None:
        """Merge what the sub-agent did, now that its session is closed; None where it had no work tree."""
        tree = self._open.pop(opened.child, None)
        if tree is None:
            return None
        return await merge_back(caller, opened.child, tree, call_id=opened.call_id)

    async def settle(self, live: Live) -> None:
        """What crashes have left of work trees is accounted for when a session is opened."""
        await account_for(live, self.folder)
        await keep_leftovers(live, self.folder)

    async def drop(self, session: str) -> None:
        """The sub-agent could not be started."""
        tree = self._open.pop(session, None)
        if tree is not None:
            await tree.close()


ALONE = "work_tree:alone"


async def tell_alone(live: Live) -> None:
    """Tell a sub-agent that the user takes up by itself that its copy is gone: it works in the project."""
    events = live.log.events
    opened = events[0].body
    if not isinstance(opened, SessionOpened) or opened.metadata.get(ISOLATION) != "worktree":
        return
    keys = [e.body.key for e in events if isinstance(e.body, FactAdded)]
    if next((key for key in reversed(keys) if key.startswith("work_tree")), "") == ALONE:
        return
    await live.append(
        FactAdded(
            key=ALONE,
            message_id=live.new_id(),
            text="<work_tree>\nThe user goes on with you directly. The copy that you worked in is gone: you work "
            "in the project's own files now, as they stand. Look at them before you rely on what you saw.\n"
            "</work_tree>",
            layer="current",
            reason="a sub-agent that had a work tree is taken up by the user",
            data={INHERITED: ""},
        )
    )


async def left_tree(
    events: Sequence[Event], session: str, store: Store, folder: Path
) -> Path | None:
    """The work tree that a session worked in whose process died, where it is still there."""
    while events and isinstance(first := events[0].body, SessionOpened) and first.parent:
        tree = folder / session / "tree"
        if first.metadata.get(ISOLATION) == "worktree" and tree.is_dir():
            return tree
        session = first.parent
        events = await store.read(session)
    return None
