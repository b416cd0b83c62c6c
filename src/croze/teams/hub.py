"""The hub of a run: its agents speak with each other by name, each in a session that remembers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import msgspec

from croze.agent.executor import Executor, InProcess
from croze.teams.group import speak
from croze.teams.talks import Talks, mentions
from croze.text.display import one_line
from croze.text.redact import redact
from croze.tools.shielded import shielded
from croze.tools.team import Reply
from croze.types.agent import AgentSpec
from croze.types.errors import CrozeError, StoreError
from croze.types.event import Body, Event, Stopped
from croze.types.ids import Source
from croze.types.team import (
    HUB,
    ChildOpened,
    ChildReport,
    GroupSpec,
    Lease,
    Order,
    Roster,
    TeamSaid,
)

TASK = 200
"""Characters of a message that stand for the task of the one that is asked."""

_FINAL = frozenset({"budget_exhausted", "too_deep", "unknown_agent"})
"""Codes of refusals that a new session would meet as well."""


class Speaker(Protocol):
    """An agent's open session (`croze.agent.children.Child`)."""

    @property
    def session(self) -> str: ...

    async def submit(self, text: str) -> Stopped: ...

    async def close(self) -> ChildReport: ...


class Opener(Protocol):
    """What opens the sessions of agents (`croze.agent.children.Children`)."""

    async def open(
        self, order: Order, *, call_id: str = "", share: int = 1, resume: str = ""
    ) -> Speaker: ...


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """Something that `member` is asked because of the message `said`; `node` is who waits for the answer.

    `words` gives, when it is the member's turn, what it reads and the id of the last message in that; it
    is told whether the member is new to all of this.
    """

    node: str
    said: TeamSaid
    member: str
    words: Callable[[bool], tuple[str, str]]
    call_id: str = ""
    share: int = 2
    limits: Lease = Lease()


class Hub:
    """The agents and groups of a run, and what they say to each other.

    An agent's session is opened when it is first spoken to, and taken up again for each message: it is
    open, and holds a part of the budget, only while it works. Its messages come one at a time, in their
    order. What is said stands in the log of the run's own session (`append`, `events`), so a run that
    was killed goes on with the same sessions.
    """

    def __init__(
        self,
        children: Opener,
        roster: Roster,
        append: Callable[[Body], Awaitable[object]],
        *,
        events: Sequence[Event],
        source: Source,
        executor: Executor | None = None,
    ) -> None:
        self.executor: Executor = executor or InProcess()
        self._children = children
        self._agents = {spec.name: spec for spec in roster.agents}
        self._groups = {spec.name: spec for spec in roster.groups}
        self._append = append
        self._events = events
        self._source = source
        self._talks = Talks()
        self._turns: dict[str, asyncio.Lock] = {}
        self._asked: dict[str, list[str]] = {}
        self._parents: dict[str, str] = {}
        self.asker: dict[str, str] = {}
        """By the name of an agent: the node of the one that it works for now, or did last."""

    @property
    def roster(self) -> Roster:
        """Whom there is to speak to, by name, sorted."""
        agents = tuple(self._agents[name] for name in sorted(self._agents))
        return Roster(agents, tuple(self._groups[name] for name in sorted(self._groups)))

    def register(self, spec: AgentSpec | GroupSpec) -> None:
        """Add an agent or a group, or put another in the place of one of its name. Heads that were
        rendered before don't tell of it."""
        if isinstance(spec, GroupSpec):
            self._groups[spec.name] = spec
        else:
            self._agents[spec.name] = spec

    @property
    def talks(self) -> Talks:
        """What was said so far."""
        self._talks.feed(self._events)
        return self._talks

    def voice(self, name: str) -> "Voice":
        """What the run's own agent, or a program, speaks with."""
        return Voice(self, name, "")

    def join(self, opened: ChildOpened, parent: str) -> "Voice":
        """What a sub-agent of this run speaks with; `parent` is the node of the one that it works for."""
        if opened.label == HUB:
            return Voice(self, opened.agent, f"@{opened.agent}")
        self._parents[opened.child] = parent
        return Voice(self, opened.agent, opened.child)

    def group(self, name: str) -> GroupSpec:
        """The group of that name; CrozeError where there is none."""
        found = self._groups.get(name)
        if found is None:
            agent = name in self._agents
            raise CrozeError(
                f"There is no group named {name}.",
                hint=f"{name} is an agent: use talk_to." if agent else self._there_are(),
                code="unknown_group",
                group=name,
            )
        return found

    def check(self, node: str, sender: str, member: str) -> None:
        """Raise CrozeError where `member` can't answer: there is none of that name, it is the speaker
        itself, or it waits for the speaker."""
        if member not in self._agents:
            group = member in self._groups
            raise CrozeError(
                f"There is no agent named {member}.",
                hint=f"{member} is a group: use talk_to_group." if group else self._there_are(),
                code="unknown_agent",
                agent=member,
            )
        if member == sender:
            raise CrozeError(
                f"You are {member}: don't talk to yourself.",
                hint="Do it yourself, or ask another agent.",
                code="talk_to_self",
                agent=member,
            )
        if f"@{member}" in self._waiting_for(node):
            raise CrozeError(
                f"{member} waits for you to end, so it can't answer you now.",
                hint="Put what you would ask it into your answer.",
                code="talk_in_circle",
                agent=member,
            )

    def _there_are(self) -> str:
        agents = f"Agents: {', '.join(sorted(self._agents)) or 'none'}."
        return f"{agents} Groups: {', '.join(sorted(self._groups))}." if self._groups else agents

    def _waiting_for(self, node: str) -> set[str]:
        """All whose work goes on only when that of `node` is over."""
        found: set[str] = set()
        left = [node]
        while left:
            at = left.pop()
            waiters = set(self._asked.get(at, ()))
            if at in self._parents:
                waiters.add(self._parents[at])
            left += waiters - found
            found |= waiters
        return found

    @contextmanager
    def _waits(self, node: str, member: str) -> Iterator[None]:
        waiters = self._asked.setdefault(f"@{member}", [])
        waiters.append(node)
        try:
            yield
        finally:
            waiters.remove(node)

    async def say(self, said: TeamSaid) -> TeamSaid:
        """Record something that is said, without secrets; gives it with its id."""
        said = msgspec.structs.replace(
            said,
            said_id=self._source.uuid(),
            text=redact(said.text)[0],
            error=redact(said.error)[0],
        )
        await self._append(said)
        return said

    async def ask(self, asking: Asking) -> tuple[Reply, ChildReport | None]:
        """Let an agent work on what is said to it, when those before are done, and record its answer.
        What goes wrong with it is told in the reply; a StoreError is raised."""
        said = asking.said
        last, report = said.said_id, None
        try:
            self.check(asking.node, said.sender, asking.member)
            with self._waits(asking.node, asking.member):
                async with self._turns.setdefault(asking.member, asyncio.Lock()):
                    reply, report, last = await self._work(asking)
        except StoreError:
            raise
        except CrozeError as error:
            why = f"{error.message} {error.hint}".strip()
            reply = Reply(agent=asking.member, ok=False, error=why)
        called: tuple[str, ...] = ()
        if said.group and reply.ok:
            members = self._groups[said.group].members
            called = mentions(reply.text, [name for name in members if name != asking.member])
        await self.say(
            TeamSaid(
                said_id="",
                sender=asking.member,
                text=reply.text,
                to="" if said.group else said.sender,
                group=said.group,
                reply_to=last,
                mentions=called,
                error=reply.error,
            )
        )
        return reply, report

    async def _work(self, asking: Asking) -> tuple[Reply, ChildReport, str]:
        """One turn of the agent's session."""
        before = self.talks.sessions.get(asking.member, "")
        self.asker[asking.member] = asking.node
        speaker, lost = await self._open(asking, before)
        closed: list[ChildReport] = []

        async def close() -> None:
            closed.append(await speaker.close())

        try:
            text, last = asking.words(speaker.session != before)
            await speaker.submit(text)
        finally:
            await shielded(close())
        report = closed[0]
        text = f"{lost}\n\n{report.text}" if lost else report.text
        error = "" if report.ok else report.error or f"It was stopped: {report.reason}."
        return Reply(agent=asking.member, ok=report.ok, text=text, error=error), report, last

    async def _open(self, asking: Asking, before: str) -> tuple[Speaker, str]:
        """The agent's session; where it can't be taken up, a new one, and a sentence that says so."""
        order = Order(
            agent=asking.member,
            task=f"{asking.said.sender}: {one_line(asking.said.text, TASK)}",
            label=HUB,
            limits=asking.limits,
        )
        lost = ""
        if before:
            try:
                speaker = await self._children.open(
                    order, call_id=asking.call_id, share=asking.share, resume=before
                )
            except CrozeError as error:
                if error.code in _FINAL:
                    raise
                lost = (
                    f"({asking.member} was started anew and knows what was said before from the record "
                    f"only: {error.message})"
                )
            else:
                return speaker, ""
        return await self._children.open(order, call_id=asking.call_id, share=asking.share), lost


class Voice:
    """What one agent of a run says: the two verbs of `croze.tools.team.Team`. `node` tells it from others of
    its name."""

    def __init__(self, hub: Hub, name: str, node: str) -> None:
        self.hub = hub
        self.name = name
        self.node = node

    async def talk(self, to: str, text: str, *, call_id: str = "") -> Reply:
        """Say something to an agent and wait for its answer. Raises CrozeError where it can't answer."""
        hub = self.hub
        hub.check(self.node, self.name, to)
        said = await hub.say(TeamSaid(said_id="", sender=self.name, text=text, to=to))

        def words(new: bool) -> tuple[str, str]:
            before = hub.talks.record(to, said.said_id) if new else ""
            known = (
                "You are started anew and remember nothing of what was said before. This is the record "
                f"of it:\n\n{before}\n\n"
                if before
                else ""
            )
            return f"{known}Message from {self.name}:\n\n{text}", said.said_id

        reply, _ = await hub.ask(
            Asking(
                node=self.node,
                said=said,
                member=to,
                words=words,
                call_id=call_id,
            )
        )
        return reply

    async def talk_to_group(self, group: str, text: str, *, call_id: str = "") -> Sequence[Reply]:
        """Say something to a group and wait until its talk is over; the answers are in the order in which
        they came. Raises CrozeError where there is nobody to hear it."""
        return await speak(self, self.hub.group(group), text, call_id=call_id)
