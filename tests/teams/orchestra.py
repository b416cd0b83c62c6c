"""A project, the scripts of a planner and its workers, and turns of the orchestrator over them."""

from collections.abc import Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from croze.app.app import App, Session
from croze.app.options import RunOptions
from croze.types.errors import ConversationNotFound
from croze.types.event import ChildOpened, Event, PlanSet, Stopped
from croze.workspace.cache import RunCache

BOUND = 30.0
"""Seconds that a turn may take at most before a test gives up on it."""


def plan_answer(*tasks: dict[str, Any]) -> dict[str, str]:
    """A planner's reply: {id, task, needs, agent} each."""
    full = [{"agent": "general", "needs": [], **task} for task in tasks]
    return {"text": f"```yaml\n{yaml.safe_dump({'tasks': full}, sort_keys=False)}```"}


def planner(*replies: dict[str, Any], when: str = "") -> dict[str, Any]:
    return {"agent": "planner", "task": when, "replies": list(replies)}


def worker(task: str, *replies: dict[str, Any], agent: str = "general") -> dict[str, Any]:
    return {"agent": agent, "task": f'<task id="{task}">', "replies": list(replies)}


@dataclass
class Orchestra:
    """One project, one protocol. `replies` are the orchestrator's own model's."""

    root: Path
    dialect: str
    overrides: dict[str, object] = field(default_factory=dict)

    @property
    def project(self) -> Path:
        return self.root / "project"

    def write(self, path: str, text: str) -> None:
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def script(
        self, *agents: dict[str, Any], replies: Sequence[Any] = ({"text": "All done."},)
    ) -> None:
        """What the models say from now on."""
        text = yaml.safe_dump({"replies": list(replies), "agents": list(agents)}, sort_keys=False)
        (self.root / "script.yaml").write_text(text)

    async def forget(self, session: str) -> None:
        """Delete a conversation."""
        app = App.open(cwd=self.project)
        await app.conversations.delete(session)
        await app.aclose()

    @asynccontextmanager
    async def session(self, **more: Any):
        app = App.open(cwd=self.project, overrides=self.overrides)
        options: dict[str, Any] = {
            "model": f"scripted:{self.root / 'script.yaml'}",
            "agent": "orchestrator",
            "dialect": self.dialect,
            "mode": "full",
            "sandbox": "off",
            "headless": True,
            **more,
        }
        try:
            # What has just changed is not kept; to this cache nothing has.
            cache = RunCache(clock=lambda: 2**62)
            yield await app.session(RunOptions(**options), cache=cache)
        finally:
            await app.aclose()

    async def play(self, text: str = "The objective.", **more: Any) -> "Played":
        async with self.session(**more) as session:
            stopped = await session.submit(text)
            return await self.played(session, stopped)

    async def played(self, session: Session, stopped: Stopped) -> "Played":
        """The session's log, and its sub-agents' by the labels of their orders. A replay of it comes out
        the same."""
        logs: dict[str, list[Event]] = {}
        app = App.open(cwd=self.project)
        try:
            assert (await app.replay(session.id)).divergence is None
            for opened in bodies(session.events, ChildOpened):
                with suppress(ConversationNotFound):
                    logs[opened.label] = await app.store.read(opened.child)
        finally:
            await app.aclose()
        return Played(session.id, stopped, session.events, logs)


@dataclass(frozen=True)
class Played:
    session: str
    stopped: Stopped
    events: Sequence[Event]
    logs: dict[str, list[Event]]

    @property
    def plan(self) -> PlanSet:
        return bodies(self.events, PlanSet)[-1]

    @property
    def states(self) -> dict[str, str]:
        return {task.id: task.state for task in self.plan.tasks}

    @property
    def story(self) -> list[str]:
        """The plan's changes in words."""
        return [told(plan) for plan in bodies(self.events, PlanSet)]


def told(plan: PlanSet) -> str:
    tasks = " ".join(f"{task.id}:{task.state}" for task in plan.tasks)
    return f"{plan.state}{plan.revision} {tasks}".rstrip()


def bodies(events: Sequence[Event], kind: type) -> list[Any]:
    return [event.body for event in events if isinstance(event.body, kind)]


def texts(events: Sequence[Event]) -> str:
    """Everything that was said and told in a log."""
    said = []
    for event in events:
        body: Any = event.body
        said.append(getattr(body, "text", ""))
        said += [getattr(part, "text", "") for part in getattr(body, "parts", ())]
    return "\n".join(said)
