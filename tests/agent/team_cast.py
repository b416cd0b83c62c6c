"""A model server that plays a caller and its sub-agents, each with replies of its own."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from croze.agent.child import children_of
from croze.agent.session import Session
from croze.types.event import ChildOpened, ModelCalled, ToolReturned
from croze.types.news import ChildNews
from croze.types.team import ChildReport
from tests.agent.conftest import NO_MORE, Desk, bodies
from tests.model_server import Reply, Request

MARK = "</sub_agent>"


def subagents(
    *tasks: str | Mapping[str, Any], mode: str = "parallel"
) -> tuple[str, dict[str, str]]:
    """A call that gives these tasks, to `general` where nobody is named."""
    rows = [
        task if isinstance(task, Mapping) else {"name": "general", "task": task} for task in tasks
    ]
    lines = [f"mode: {mode}", "subagents:"]
    for row in rows:
        lines.append(f"- name: {row['name']}")
        lines += [f"  {key}: {value}" for key, value in row.items() if key != "name"]
    return "run_named_subagents", {"subagents": "\n".join(lines)}


@dataclass
class Cast:
    """Answers by who asks: the caller, or the sub-agent whose task holds a role's name. `asked` keeps
    every request by role; the caller's is `main`."""

    desk: Desk
    main: Sequence[Reply]
    roles: Mapping[str, Sequence[Reply]]
    asked: dict[str, list[Request]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.desk.server.replies = self

    def __call__(self, request: Request) -> Reply:
        text = request.body.decode()
        task = text.rpartition(MARK)[2] if MARK in text else ""
        role = next((name for name in self.roles if name in task), "main") if task else "main"
        asked = self.asked.setdefault(role, [])
        asked.append(request)
        replies = self.main if role == "main" else self.roles[role]
        return replies[len(asked) - 1] if len(asked) <= len(replies) else NO_MORE


def reports(session: Session) -> list[ChildReport]:
    """The reports of the sub-agents that a session has had, in the order of their opening."""
    found = [known.report for known in children_of(session.events)]
    assert None not in found
    return [report for report in found if report is not None]


def opened(session: Session) -> list[ChildOpened]:
    return [known.opened for known in children_of(session.events)]


def results(session: Session) -> list[ToolReturned]:
    return [
        body for body in bodies(session.events, ToolReturned) if body.name == "run_named_subagents"
    ]


async def replays(desk: Desk, *sessions: str) -> None:
    """Each of them comes out the same when it is run again from its record."""
    for session in sessions:
        report = await desk.replay(session)
        log = await desk.log(session)
        assert report.divergence is None
        assert report.requests == len(bodies(log, ModelCalled))


def news_of(session: Session, kind: type) -> asyncio.Future[ChildNews]:
    """The first news of a sub-agent that brings an event of this kind."""
    found: asyncio.Future[ChildNews] = asyncio.get_running_loop().create_future()

    def watch(item: Any) -> None:
        if found.done() or not isinstance(item, ChildNews):
            return
        if isinstance(getattr(item.item, "body", None), kind):
            found.set_result(item)

    session.subscribe(watch)
    return found
