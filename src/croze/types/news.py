"""What a session's watchers are told of its sub-agents while they work."""

from msgspec import Struct

from croze.types.event import Event
from croze.types.stream import Delta


class ChildNews(Struct, frozen=True, omit_defaults=True):
    """Something that a sub-agent did. `session` is the watcher's own; `path` leads from it to the
    sub-agent, as (session, agent's name) each. `cost` is what that sub-agent has spent so far, `subtree`
    what it and its children have, in US dollars (None: unknown)."""

    session: str
    path: tuple[tuple[str, str], ...]
    item: Event | Delta
    cost: float | None = None
    subtree: float | None = None
