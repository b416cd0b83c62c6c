"""What the pipeline's nodes work with: the session, its sub-agents, the set's folder, what is left to spend."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from croze.agent.children import Child, Children
from croze.agent.host import CallHost
from croze.agent.limits import Meter
from croze.agent.live import Live
from croze.teams.docs.folder import Folder
from croze.teams.docs.manifest import Manifest
from croze.teams.docs.texts import wrong_task
from croze.teams.state import HistoryEntry, stamp
from croze.types.agent import AgentSpec, StopReason
from croze.types.errors import CrozeError
from croze.types.event import Stopped
from croze.types.team import Order
from croze.workspace.tree import TreeOptions

TRIES = 3
"""How often an agent is asked for an answer that can be used."""

T = TypeVar("T")


class Ended(CrozeError):
    """The turn can't go on: a limit is reached, or the model can't be reached. What is done is kept."""

    code = "docs_ended"

    def __init__(self, reason: StopReason, message: str) -> None:
        super().__init__(message)
        self.reason: StopReason = reason


@dataclass(slots=True, kw_only=True)
class Shop:
    """One turn's parts. `waiting` counts the pages that still want an agent; `tree` says how the project is
    listed (None: it isn't)."""

    live: Live
    host: CallHost
    meter: Meter
    children: Children
    folder: Folder
    tree: TreeOptions | None
    manifest: Manifest = field(init=False)
    waiting: int = 0

    def __post_init__(self) -> None:
        self.manifest = self.folder.manifest()

    async def keep(self, manifest: Manifest) -> None:
        """Set and write the manifest."""
        self.manifest = manifest
        await self.folder.keep(manifest)

    async def settle(
        self, spec: AgentSpec, what: str, task: str, read: Callable[[str], T | str]
    ) -> T:
        """What `read` makes of an agent's answer; where it can't be used (a text says why) it is asked
        again. Raises CrozeError where no answer can be used, and Ended."""
        child = await self.open(spec, what)
        try:
            for _attempt in range(TRIES):
                stopped = await self.submit(child, task)
                if stopped.reason != "done":
                    raise CrozeError(f"{spec.name}: {stopped.text}", code="docs_agent")
                found = read(child.answer)
                if not isinstance(found, str):
                    return found
                task = wrong_task(found)
        finally:
            await child.close()
        raise CrozeError(
            f"{spec.name} gave no answer that can be used: {found}",
            hint=f"Its session {child.session[:8]} has what it said. Another model may do better: --model.",
            code="docs_answer",
            agent=spec.name,
            problem=found,
        )

    async def open(self, spec: AgentSpec, what: str, *, label: str = "", resume: str = "") -> Child:
        """A sub-agent. Raises Ended where the budget is too small for one."""
        self.check()
        order = Order(agent=spec.name, task=what, label=label)
        share = max(1, self.waiting)
        try:
            return await self.children.open(order, share=share, resume=resume)
        except CrozeError as error:
            if error.code == "budget_exhausted":
                raise Ended(self._short(), error.message) from error
            raise

    async def submit(self, child: Child, task: str) -> Stopped:
        """One turn of a sub-agent. Raises Ended where that is the end of this turn, too."""
        stopped = await child.submit(task)
        if stopped.reason == "retries_exhausted":
            raise Ended(stopped.reason, stopped.text)
        if stopped.reason != "done":
            self.check()
        return stopped

    def check(self) -> None:
        """Raises Ended where a limit is reached."""
        over = self.meter.exceeded()
        if over is not None:
            raise Ended(*over)

    def _short(self) -> StopReason:
        """Which limit leaves too little."""
        left = self.meter.left()
        if left.steps is not None and left.steps < 2:
            return "steps"
        return "seconds" if left.seconds is not None and left.seconds <= 0 else "cost"

    def noted(
        self, tool: str, reason: str, params: dict[str, object], result: object
    ) -> HistoryEntry:
        """An entry of the shared state's history."""
        return HistoryEntry(tool, reason, params, result, stamp(self.live.source.now()))


async def closed(child: Child) -> None:
    """Close a sub-agent whose end nobody waits for."""
    with suppress(CrozeError):
        await child.close()
