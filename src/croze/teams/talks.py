"""What the agents of a run have said to each other, folded from the log; pure."""

import re
from collections.abc import Sequence

from croze.text.headings import below
from croze.types.event import Event, SessionOpened
from croze.types.team import HUB, ChildOpened, TeamSaid

TOLD = 30
"""Messages that an agent is told of that it has not heard; earlier ones are counted."""
LONG = 4_000
"""Characters of each of them that it is told."""


class Talks:
    """The sessions of the agents that are talked to, and what was said; `feed` takes the events in.

    `sessions` has the session of each agent, `groups` what was said in each group, `direct` what was said
    between an agent and those who spoke to it alone.
    """

    def __init__(self) -> None:
        self.sessions: dict[str, str] = {}
        self.groups: dict[str, list[TeamSaid]] = {}
        self.direct: dict[str, list[TeamSaid]] = {}
        self._heard: dict[tuple[str, str], int] = {}
        self._fed = 0
        self._foreign = 0

    def feed(self, events: Sequence[Event]) -> None:
        """Take in the events of the log that are new since the last time."""
        for event in events[self._fed :]:
            match event.body:
                case SessionOpened(forked_from=(_, cut)):
                    self._foreign = cut  # those sessions belong to the other branch
                case ChildOpened(label=label) if label == HUB and event.seq > self._foreign:
                    self._take_session(event.body)
                case TeamSaid() as said:
                    self._take(said)
                case _:
                    pass
        self._fed = len(events)

    def _take_session(self, opened: ChildOpened) -> None:
        if self.sessions.get(opened.agent) == opened.child:
            return
        self.sessions[opened.agent] = opened.child
        for member, group in tuple(self._heard):
            if member == opened.agent:
                del self._heard[member, group]

    def _take(self, said: TeamSaid) -> None:
        if not said.group:
            agent = said.sender if said.reply_to else said.to
            self.direct.setdefault(agent, []).append(said)
            return
        talk = self.groups.setdefault(said.group, [])
        answered = bool(said.reply_to) and not said.error  # who failed may never have read it
        for at in range(len(talk) - 1, -1, -1) if answered else ():
            if talk[at].said_id == said.reply_to:
                key = (said.sender, said.group)
                self._heard[key] = max(self._heard.get(key, 0), at + 1)
                break
        talk.append(said)

    def unheard(self, member: str, group: str) -> list[TeamSaid]:
        """What was said in a group since the member was asked there last, without its own words."""
        talk = self.groups.get(group, [])
        since = self._heard.get((member, group), 0)
        return [said for said in talk[since:] if said.sender != member or since == 0]

    def record(self, agent: str, before: str) -> str:
        """What was said to an agent alone and what it said, up to the message `before`; for one that is
        started anew."""
        said = self.direct.get(agent, [])
        ids = [each.said_id for each in said]
        return told(said[: ids.index(before)] if before in ids else said)


def told(said: Sequence[TeamSaid]) -> str:
    """Messages as an agent reads them: the newest, each with its speaker."""
    blocks = []
    if len(said) > TOLD:
        blocks.append(f"({len(said) - TOLD} earlier messages are left out.)")
    for each in said[-TOLD:]:
        text = each.text or f"(no answer: {each.error})"
        if len(text) > LONG:
            text = f"{text[:LONG]} [… {len(text) - LONG:,} characters more]"
        to = f" to {each.to}" if each.to else ""
        blocks.append(f"## {each.sender or 'The hub'}{to}\n{below(text)}")
    return "\n\n".join(blocks)


def mentions(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """Those of `names` that a text calls by @name, in its order, each once. An address such as a@b.org
    calls nobody; a longer name wins over one that it begins with."""
    if "@" not in text or not names:
        return ()
    known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    found = re.findall(rf"(?<![A-Za-z0-9_.+@-])@({known})(?![A-Za-z0-9_-])", text)
    return tuple(dict.fromkeys(found))
