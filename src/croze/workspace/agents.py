"""The tree of agents, and which workspace each of them works in.

The records are kept nowhere but in the session logs: an agent is a session, made when that was opened,
and a workspace is written where its folder is there. `AgentTree.of` reads them back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from croze.types.errors import CrozeError
from croze.types.ids import Source, SystemSource
from croze.workspace.sandbox import Confinement
from croze.workspace.task import task_workspace
from croze.workspace.workspace import Workspace

ROOT = "root"
USER = "user"
"""The two that are always there: all agents descend from the one, neither has a workspace."""

AGENT_ID, ROLE, ISOLATION = "agent_id", "agent", "isolation"
"""Keys of `SessionOpened.metadata`. Without them an agent's id is its session's, and it shares its
parent's workspace."""


class AgentTreeError(CrozeError):
    """An agent that can't be there. Codes: `unknown_parent`, `agent_exists`."""

    code = "agent_tree"


class Agent(Struct, frozen=True, kw_only=True):
    """One agent. `opened` in microseconds since the epoch. `own` says whether it has a workspace of its
    own; `workspace` is that, None where it is not there any more."""

    id: str
    role: str
    parent: str
    opened: int
    own: bool = False
    workspace: Workspace | None = None


class WorkspaceRecord(Struct, frozen=True, rename="camel"):
    """A workspace as programs see it: `workspaceId`, `workspacePath`, `createdAt` (when it was assigned,
    ISO 8601), `lazyCreated` (whether the folder is there)."""

    workspace_id: str
    workspace_path: str
    created_at: str
    lazy_created: bool


class Opened(Struct, frozen=True):
    """What a session log says of its agent: `SessionOpened` and when it was appended (microseconds)."""

    session: str
    parent: str | None
    opened: int
    project: str = ""
    metadata: Mapping[str, Any] = {}


@dataclass(slots=True)
class AgentTree:
    """`folder` is the project's data folder, in which task workspaces are; `confinement` how far commands
    in them may go."""

    folder: Path
    confinement: Confinement | None = None
    source: Source = field(default_factory=SystemSource)
    _agents: dict[str, Agent] = field(default_factory=dict)
    _folders: set[str] = field(default_factory=set)

    @classmethod
    def of(
        cls,
        folder: Path,
        sessions: Iterable[Opened],
        *,
        project: Workspace | None = None,
        worktrees: Mapping[str, Workspace] | None = None,
    ) -> "AgentTree":
        """The tree that session logs tell of, in whatever order they come. `project` is the workspace of
        the main agents, `worktrees` those of agents that have one, by agent. An agent is left out whose
        parent's log is not there."""
        tree = cls(folder)
        waiting: dict[str | None, list[Opened]] = {}
        for each in sessions:
            waiting.setdefault(each.parent, []).append(each)
        ready = [(ROOT, each) for each in waiting.pop(None, ())]
        while ready:
            parent, each = ready.pop()
            agent = str(each.metadata.get(AGENT_ID, each.session))
            if agent in tree._agents:  # a fork takes its origin's metadata over
                agent = each.session
            role, isolation = str(each.metadata.get(ROLE, "")), each.metadata.get(ISOLATION)
            if each.parent is None and each.project:
                tree._add(agent, role, parent, each.opened, project, own=True)
            elif isolation == "worktree":
                tree._add(agent, role, parent, each.opened, (worktrees or {}).get(agent), own=True)
            else:
                tree.spawn(
                    parent,
                    role,
                    agent=agent,
                    isolation="task" if isolation == "task" else "shared",
                    opened=each.opened,
                )
            ready += [(agent, child) for child in waiting.pop(each.session, ())]
        return tree

    def spawn(
        self,
        parent: str,
        role: str,
        *,
        agent: str = "",
        isolation: Literal["shared", "task"] = "shared",
        workspace: Workspace | None = None,
        opened: int | None = None,
    ) -> str:
        """A new agent below `parent`; gives its id. A direct child of root gets a task workspace of its own,
        and so does one whose isolation says so; the others work in their nearest ancestor's.

        With `workspace` it has that instead: the project for a session's main agent, a git worktree. Raises
        `AgentTreeError` and `BadAgentId`.
        """
        if parent != ROOT and parent not in self._agents:
            raise AgentTreeError(
                f"There is no agent {parent!r} to be the parent of another.",
                hint="Agents descend from root, or from an agent that was made before.",
                code="unknown_parent",
                agent=parent,
            )
        agent = agent or self.source.uuid()
        if agent in (ROOT, USER) or agent in self._agents:
            raise _exists(agent)
        own = workspace is not None or parent == ROOT or isolation == "task"
        if own and workspace is None:
            # Compared as the laxest file systems do: two agents never share a folder by their names.
            if agent.casefold() in self._folders:
                raise _exists(agent)
            workspace = task_workspace(self.folder, agent, confinement=self.confinement)
            self._folders.add(agent.casefold())
        opened = self.source.now() if opened is None else opened
        self._add(agent, role, parent, opened, workspace, own=own)
        return agent

    def _add(
        self,
        agent: str,
        role: str,
        parent: str,
        opened: int,
        workspace: Workspace | None,
        *,
        own: bool,
    ) -> None:
        self._agents[agent] = Agent(
            id=agent, role=role, parent=parent, opened=opened, own=own, workspace=workspace
        )

    def agent(self, agent: str) -> Agent | None:
        return self._agents.get(agent)

    def find_workspace(self, agent: str) -> Workspace | None:
        """The workspace that an agent works in: its own, else its nearest ancestor's. None for root, for
        the user, and for an agent that isn't known."""
        found = self._agents.get(agent)
        while found is not None and not found.own:
            found = self._agents.get(found.parent)
        return None if found is None else found.workspace

    def records(self) -> tuple[WorkspaceRecord, ...]:
        """The task workspaces, those made first in front."""
        return tuple(
            WorkspaceRecord(
                workspace_id=agent.id,
                workspace_path=str(agent.workspace.root),
                created_at=datetime.fromtimestamp(agent.opened / 1e6, tz=UTC).isoformat(),
                lazy_created=agent.workspace.written,
            )
            for agent in sorted(self._agents.values(), key=lambda agent: agent.opened)
            if agent.workspace is not None and agent.workspace.kind == "task"
        )


def _exists(agent: str) -> AgentTreeError:
    return AgentTreeError(
        f"There is an agent {agent!r} already.",
        hint="Leave the id to the tree, or choose another.",
        code="agent_exists",
        agent=agent,
    )
