"""What the tools for teams may do; wired by the application, never imported from the agent."""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from croze.types.team import ChildReport, Order, Roster


class Reply(Struct, frozen=True, omit_defaults=True):
    """What an agent answered. `error` says why `ok` is false; with no `agent` it says why a group's talk was
    ended."""

    agent: str
    ok: bool
    text: str = ""
    error: str = ""


class Team(Protocol):
    """The agents that a session can call. Nothing here raises for what an agent does: that is told in the
    reports and replies. CrozeError is raised where there is no agent or group of the name, or where the one
    that is spoken to waits for the speaker."""

    @property
    def roster(self) -> Roster:
        """Whom there is to call."""
        ...

    async def run(
        self, orders: Sequence[Order], mode: Literal["parallel", "serial"], *, call_id: str
    ) -> Sequence[ChildReport]:
        """Let sub-agents work and wait for them; the reports are in the order of the orders. Raises
        CrozeError where none of them can be started."""
        ...

    async def talk(self, to: str, text: str, *, call_id: str) -> Reply:
        """Say something to an agent by its name and wait for its answer."""
        ...

    async def talk_to_group(self, group: str, text: str, *, call_id: str) -> Sequence[Reply]:
        """Say something to all members of a group but the caller and wait for their answers."""
        ...
