"""Talk in a group: everyone is asked at once, who is @mentioned is asked again, limits end it."""

import os
from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from croze.teams.talks import mentions, told
from croze.tools.team import Reply
from croze.types.errors import CrozeError, StoreError
from croze.types.team import ChildReport, GroupSpec, Lease, TeamSaid

if TYPE_CHECKING:
    from croze.teams.hub import Voice

AT_ONCE = min(32, 4 * (os.cpu_count() or 1) + 4)
"""Members of a group that work at the same time."""


async def speak(voice: "Voice", group: GroupSpec, text: str, *, call_id: str) -> list[Reply]:
    """Say `text` to the group and see its talk to the end; gives what was answered.

    All members but the speaker are asked, side by side; where the text @mentions members, those only.
    Then those are asked whom the answers mention, and so on. A member is told all that was said in the
    group since it was asked last. The group's messages and cost, for each talk, end it; then the last
    reply is nobody's and says so.
    """
    others = [name for name in dict.fromkeys(group.members) if name != voice.name]
    if not others:
        raise CrozeError(
            f"The group {group.name} has no member but you.",
            hint="Ask an agent with talk_to.",
            code="empty_group",
            group=group.name,
        )
    called = mentions(text, others)
    said = await voice.hub.say(
        TeamSaid(said_id="", sender=voice.name, text=text, group=group.name, mentions=called)
    )
    talk = _Talk(voice, group, said, call_id)
    asked: Sequence[str] = called or others
    while asked:
        room = group.messages - talk.messages
        if (over := talk.over()) or room < 1:
            await talk.end(over or f"it may have {group.messages} messages", asked)
            break
        going_on = await talk.round(asked[:room])
        if asked[room:]:
            await talk.end(f"it may have {group.messages} messages", asked[room:])
            break
        asked = going_on
    return talk.replies


class _Talk:
    """One talk as it goes: what came of it, and what it has used (a cost of None: unknown)."""

    def __init__(self, voice: "Voice", group: GroupSpec, said: TeamSaid, call_id: str) -> None:
        self.replies: list[Reply] = []
        self.messages = 1
        self._cost: float | None = 0.0
        self._voice = voice
        self._group = group
        self._said = said
        self._call_id = call_id

    def over(self) -> str:
        """Why nobody may be asked any more; empty where somebody may."""
        limit = self._group.cost
        if limit is None:
            return ""
        if self._cost is None:
            return f"it may cost ${limit:g}, and what it has cost is unknown"
        return f"it may cost ${limit:g}" if self._cost >= limit else ""

    async def round(self, asked: Sequence[str]) -> list[str]:
        """Ask members side by side; gives those whom their answers mention."""
        called: dict[str, None] = {}
        places = list(range(len(asked)))
        hub = self._voice.hub

        async def ask(at: int) -> tuple[Reply, ChildReport | None]:
            return await self._ask(asked[at], waiting=len(asked) - at)

        async with aclosing(hub.executor.map(ask, places, limit=AT_ONCE)) as outcomes:
            async for at, outcome in outcomes:
                if isinstance(outcome, StoreError):
                    raise outcome  # what can't be recorded must not go on
                if isinstance(outcome, Exception):
                    what = str(outcome) or type(outcome).__name__
                    outcome = Reply(agent=asked[at], ok=False, error=what), None
                reply, report = outcome
                self.replies.append(reply)
                self.messages += 1
                if report is not None:
                    known = self._cost is not None and report.cost is not None
                    self._cost = (self._cost or 0.0) + (report.cost or 0.0) if known else None
                if reply.ok:
                    others = [name for name in self._group.members if name != reply.agent]
                    called |= dict.fromkeys(mentions(reply.text, others))
        called.pop(self._voice.name, None)  # the speaker reads all answers anyway
        return list(called)

    async def _ask(self, member: str, *, waiting: int) -> tuple[Reply, ChildReport | None]:
        """Ask one of `waiting` members that share what is left."""
        from croze.teams.hub import Asking

        cost = None
        if self._group.cost is not None and self._cost is not None:
            cost = (self._group.cost - self._cost) / waiting
        return await self._voice.hub.ask(
            Asking(
                node=self._voice.node,
                said=self._said,
                member=member,
                words=lambda _new: self._words(member),
                call_id=self._call_id,
                share=waiting + 1,
                limits=Lease(cost=cost),
            )
        )

    def _words(self, member: str) -> tuple[str, str]:
        # Another talk may have told the member already; then it answers this one's opening.
        unheard = self._voice.hub.talks.unheard(member, self._group.name) or [self._said]
        members = ", ".join(name for name in self._group.members if name != member)
        return (
            f"Group {self._group.name}; you are {member}, the others are {members or 'nobody else'}. "
            f"New there:\n\n{told(unheard)}\n\n"
            "Your answer goes to the group. Write @name only where that member must answer."
        ), unheard[-1].said_id

    async def end(self, why: str, unasked: Sequence[str]) -> None:
        """Tell the group and the speaker that the talk is over before everyone called has answered."""
        text = f"The talk was ended: {why}. Not asked any more: {', '.join(unasked)}."
        await self._voice.hub.say(
            TeamSaid(said_id="", sender="", text=text, group=self._group.name, error="group_limit")
        )
        self.replies.append(Reply(agent="", ok=False, error=text))
