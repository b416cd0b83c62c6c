"""What the tools for teams may do, over a session's sub-agents and the hub of its run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from croze.agent.children import Children
from croze.tools.team import Reply
from croze.types.team import ChildReport, Order, Roster


class Talks(Protocol):
    """Delivers what one agent says to others (`croze.teams.hub`)."""

    async def talk(self, to: str, text: str, *, call_id: str) -> Reply: ...

    async def talk_to_group(self, group: str, text: str, *, call_id: str) -> Sequence[Reply]: ...


@dataclass(slots=True)
class SessionTeam:
    """The agents that one session can call; `hub` gives what it speaks to them with."""

    children: Children
    hub: Callable[[], Talks]

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
