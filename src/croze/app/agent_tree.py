"""The tree of a project's agents, read back from its session logs; and where a session works."""

from collections.abc import Sequence

from croze.app.config import Config
from croze.store.conversations import Conversations
from croze.store.store import Store
from croze.types.event import Event, SessionOpened
from croze.workspace.agents import ISOLATION, AgentTree, Opened
from croze.workspace.sandbox import Confinement
from croze.workspace.task import task_workspace
from croze.workspace.workspace import Workspace

_PAGE = 500


async def agent_tree(config: Config, conversations: Conversations) -> AgentTree:
    """All agents that the project's logs know, whichever process ran them, and where they work. The main
    agents work in the project; a work tree that has gone is None."""
    opened: list[Opened] = []
    while True:
        page = await conversations.list(limit=_PAGE, offset=len(opened), include_children=True)
        opened += [
            Opened(each.id, each.parent, each.created_at, each.project, each.metadata)
            for each in page
        ]
        if len(page) < _PAGE:
            break
    project = Workspace(id="project", root=config.project.root, owner="main")
    return AgentTree.of(config.store_folder, opened, project=project)


async def workspace_of(
    events: Sequence[Event],
    session: str,
    owner: str,
    *,
    config: Config,
    store: Store,
    confinement: Confinement | None = None,
) -> Workspace:
    """The workspace of a session, by its log: the project, or the task workspace that it has of its own or
    from a session above it."""
    agent = session
    while events and isinstance(first := events[0].body, SessionOpened) and first.parent:
        if first.metadata.get(ISOLATION) == "task":
            return task_workspace(config.store_folder, agent, confinement=confinement)
        agent = first.parent
        events = await store.read(agent)
    return Workspace(id=session, root=config.project.root, owner=owner, confinement=confinement)
