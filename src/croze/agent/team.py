"""What the tools for teams may do, over a session's sub-agents and the hub of its run."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from croze.tools.team import Reply, Team
from croze.types.team import ChildReport, Order, Roster

if TYPE_CHECKING:
    from croze.agent.children import Children
    from croze.agent.live import Live


class Talks(Protocol):
    """Delivers what one agent says to others (`croze.teams.hub`)."""

    async def talk(self, to: str, text: str, *, call_id: str) -> Reply: ...

    async def talk_to_group(self, group: str, text: str, *, call_id: str) -> Sequence[Reply]: ...


class SessionTeam:
    """The agents that one session can call; `hub` gives what it speaks to them with."""

    def __init__(self, children: "Children", hub: Callable[[], Talks]) -> None:
        self.children = children
        self.hub = hub

    @property
    def roster(self) -> Roster:
        return self.children.roster()

    async def run(
        self, orders: Sequence[Order], mode: Literal["parallel", "serial"], *, call_id: str
    ) -> Sequence[ChildReport]:
        return await self.children.run_all(orders, mode, call_id=call_id)

    async def talk(self, to: str, text: str, *, call_id: str) -> Reply:
        return await self.hub().talk(to, text, call_id=call_id)

    async def talk_to_group(self, group: str, text: str, *, call_id: str) -> Sequence[Reply]:
        return await self.hub().talk_to_group(group, text, call_id=call_id)


class TeamLater:
    """Stands for a session's team until somebody is called or spoken to: most sessions call nobody.
    `first` gives whom there is to call."""

    def __init__(self, live: "Live", first: Callable[[], Roster]) -> None:
        self._live = live
        self._first = first

    @property
    def roster(self) -> Roster:
        team = self._live.team
        return self._first() if team is None or team is self else team.roster

    async def run(
        self, orders: Sequence[Order], mode: Literal["parallel", "serial"], *, call_id: str
    ) -> Sequence[ChildReport]:
        return await self._made().run(orders, mode, call_id=call_id)

    async def talk(self, to: str, text: str, *, call_id: str) -> Reply:
        return await self._made().talk(to, text, call_id=call_id)

    async def talk_to_group(self, group: str, text: str, *, call_id: str) -> Sequence[Reply]:
        return await self._made().talk_to_group(group, text, call_id=call_id)

    def _made(self) -> Team:
        """The team that `Live.with_children` has set in this one's place."""
        self._live.with_children()
        team = self._live.team
        assert team is not None
        assert team is not self
        return team
