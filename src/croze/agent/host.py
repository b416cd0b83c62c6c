"""What a running call may use of its session: the runner's host and the tool's context."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from croze.agent.deltas import RedactedDeltas
from croze.agent.live import Live
from croze.agent.recall import remembered, stored_text
from croze.text.tokens import Counter, counter_for, estimate
from croze.tools.base import Remembered, ToolContext
from croze.tools.rule_syntax import parse_rule
from croze.tools.subject import TERMINAL
from croze.tools.team import Team
from croze.types.errors import CrozeError
from croze.types.event import (
    Answered,
    Asked,
    Body,
    FilesChanged,
    Notice,
    TodoItem,
    ToolReturned,
    ToolStarted,
)
from croze.types.parts import ToolCall
from croze.types.stream import Delta
from croze.web.web import Web
from croze.workspace.background import Background
from croze.workspace.cache import RunCache
from croze.workspace.extraction import Extractions
from croze.workspace.workspace import Workspace

if TYPE_CHECKING:
    from croze.knowledge.libraries import Libraries
    from croze.knowledge.skills import Skills
    from croze.mcp.servers import Servers
    from croze.tools.registry import Outside

NO_USER = "No user is present."
BLIND = "commands_not_followed"
WAITS = "wait"
"""The phase of a command that waits for other agents' commands."""


class CallHost:
    """Serves the runner of one session: appends, asks, and knows which files a call changed."""

    def __init__(self, live: Live, on_rule: Callable[[str], None]) -> None:
        self._live = live
        self._on_rule = on_rule
        self._waiting: dict[str, asyncio.Future[tuple[str, str]]] = {}
        self._outputs: dict[str, RedactedDeltas] = {}
        self._turn: Callable[[], None] | None = None
        self.refused = 0

    def output(self, delta: Delta) -> None:
        """Show a running call's output as it comes, without secrets."""
        shown = self._outputs.get(delta.call_id)
        if shown is None:
            shown = self._outputs[delta.call_id] = RedactedDeltas(self._live.publish)
        shown.publish(delta)

    async def started(self, *starts: ToolStarted, reading: Collection[str], durable: bool) -> None:
        """Append, and follow what the calls change from here on. A command that may change files waits
        until other agents' commands in the same folder have ended: else their changes were its own."""
        tracker = self._live.tracker
        changing = [start for start in starts if not start.access.read_only]
        if tracker is None or not changing:
            await self._live.append(*starts, durable=durable)
            return
        call_id, command = changing[-1].call_id, changing[-1].access.exec
        if command and call_id in reading and not tracker.neighbours.alone(tracker):
            command = False
        if command:
            waits = Delta(kind="phase", name=WAITS, call_id=call_id, session=self._live.log.session)
            self._end_turn()
            self._turn = await tracker.neighbours.take_turn(
                tracker.root, lambda: self._live.publish(waits)
            )
        try:
            # While the disk makes sure of the one, the other is looked at.
            appending = self._live.append(*starts, durable=durable)
            await asyncio.gather(appending, tracker.begin(call_id, command=command))
        except BaseException:
            self._end_turn()
            raise
        await self._tell_blind()

    async def append(self, *bodies: Body, durable: bool = False) -> None:
        """Append, and end what was followed where a call has returned."""
        tracker = self._live.tracker
        for body in bodies:
            if isinstance(body, ToolReturned) and body.call_id in self._outputs:
                self._outputs.pop(body.call_id).finish()
        ended = [body.call_id for body in bodies if isinstance(body, ToolReturned)]
        try:
            await self._live.append(*map(self._with_children, bodies), durable=durable)
            if tracker is not None and tracker.call in ended:
                tracker.recorded()
        finally:
            if tracker is not None and tracker.call in ended:
                self._end_turn()

    def _end_turn(self) -> None:
        """Other agents' commands may run again."""
        if self._turn is not None:
            self._turn()
            self._turn = None

    def _with_children(self, body: Body) -> Body:
        """The result of an interrupted call names what its sub-agents had done."""
        if not isinstance(body, ToolReturned) or body.code != "interrupted":
            return body
        from croze.agent.child import left_behind  # only where something was interrupted

        left = left_behind(self._live.log.events, body.call_id)
        if not left:
            return body
        text = f"{body.text}\n\n{left}"
        return replace(body, text=text, tokens=estimate(text) + estimate(body.message))

    async def _tell_blind(self) -> None:
        tracker = self._live.tracker
        if tracker is None or not tracker.blind or BLIND in self._live.warned:
            return
        text = (
            "This folder holds too many files to follow what commands change in it: "
            "only the file tools' changes can be undone."
        )
        await self._live.append(Notice(level="warning", code=BLIND, text=text))

    def context(self, call: ToolCall) -> ToolContext:
        return CallContext(live=self._live, host=self, call=call)

    def new_message_id(self) -> str:
        return self._live.new_id()

    def explain(self, call: ToolCall) -> str:
        """The right form of the tool that `call` names, in the session's protocol."""
        kind = self._live.registry.get(call.name)
        return "" if kind is None else self._live.dialect.describe([kind.doc])

    async def decide(self, asked: Asked) -> Answered:
        """Put a question to the user and wait; where no user is present the answer is no."""
        live = self._live
        if live.headless:
            answered = Answered(ask_id=asked.ask_id, answer="no", note=NO_USER, by="headless")
            await live.append(asked, answered)
            return answered
        future: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()
        self._waiting[asked.ask_id] = future
        try:
            await live.append(asked)
            if live.hooks is not None:
                live.hooks.notify(asked.text)
            answer, note = await future
        finally:
            self._waiting.pop(asked.ask_id, None)
        answered = Answered(ask_id=asked.ask_id, answer=answer, note=note)
        await live.append(answered, durable=True)
        if answer == "always" and asked.rule:
            live.approver = live.approver.with_rule(f"allow {asked.rule}")
            if (
                f"({TERMINAL}" not in asked.rule
            ):  # a terminal ends with its session, the rule with it
                await self._keep_rule(asked.rule)
        return answered

    async def _keep_rule(self, rule: str) -> None:
        """Keep a rule for later sessions; where that fails it holds for this one."""
        try:
            self._on_rule(rule)
        except (OSError, CrozeError) as error:
            text = f"The rule «{rule}» holds for this session only: {error}."
            params = {"rule": rule, "reason": str(error)}
            await self._live.append(
                Notice(level="warning", code="rule_not_kept", text=text, params=params)
            )

    def answer(self, ask_id: str, answer: str, note: str) -> bool:
        """Give a waiting question its answer; False where none waits under this id."""
        future = self._waiting.get(ask_id)
        if future is None or future.done():
            return False
        future.set_result((answer, note))
        return True

    def record_change(self, path: str, before: bytes | None, after: bytes | None) -> None:
        if self._live.tracker is not None:
            self._live.tracker.record(path, before, after)

    async def changes(self, call: ToolCall) -> FilesChanged | None:
        """The files that `call` changed, with their diffs; None where it changed none."""
        tracker = self._live.tracker
        if tracker is None or tracker.call != call.id:
            return None
        found = await tracker.changes()
        return FilesChanged(call_id=call.id, changes=found) if found else None


@dataclass(slots=True, kw_only=True)
class CallContext:
    """The `ToolContext` of one call."""

    live: Live
    host: CallHost
    call: ToolCall
    session: str = field(init=False)
    workspace: Workspace = field(init=False)
    env: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.session = self.live.log.session
        self.workspace = self.live.workspace
        self.env = self.live.env

    @property
    def todo(self) -> tuple[TodoItem, ...]:
        return self.live.todo

    @property
    def marked(self) -> tuple[str, ...]:
        return self.live.ledger.marked

    @property
    def policy(self) -> str:
        return self.live.spec.policy

    @property
    def counter(self) -> Counter:
        return counter_for(self.live.model.info.model, self.live.ratio.value)

    def remembered(self) -> Sequence[Remembered]:
        return remembered(self.live)

    async def recall(self, message_id: str) -> str:
        return await stored_text(self.live, message_id)

    @property
    def cache(self) -> RunCache:
        return self.live.cache

    @property
    def documents(self) -> Extractions:
        return self.live.documents

    @property
    def background(self) -> Background:
        return self.live.background

    @property
    def team(self) -> Team | None:
        return self.live.team

    @property
    def web(self) -> Web:
        return self.live.web

    @property
    def outside(self) -> "Outside | None":
        return self.live.registry.outside

    @property
    def mcp(self) -> "Servers | None":
        return self.live.mcp

    @property
    def skills(self) -> "Skills | None":
        return self.live.skills

    @property
    def libraries(self) -> "Libraries | None":
        return None if self.live.libraries is None else self.live.libraries()

    @property
    def vision(self) -> bool:
        return self.live.model.info.vision

    def visible(self, message_id: str) -> bool:
        ledger = self.live.ledger
        entry = ledger.by_id.get(message_id)
        return entry is not None and entry.standing == "full" and message_id not in ledger.marked

    def looked(self, key: str) -> Sequence[ToolReturned]:
        looks = self.live.looks.get(key, ())
        return [returned for returned in looks if self.visible(returned.message_id)]

    def seen(self, path: str) -> str | None:
        return self.live.seen.get(path)

    def output(self, text: str) -> None:
        self.host.output(
            Delta(kind="output", text=text, call_id=self.call.id, session=self.session)
        )

    async def emit(self, body: Body) -> None:
        await self.live.append(body)

    async def ask(self, text: str, options: Sequence[str] = ()) -> str | None:
        if self.live.headless:
            return None
        asked = Asked(
            ask_id=self.live.source.uuid(),
            kind="question",
            text=text,
            call_id=self.call.id,
            options=tuple(options),
        )
        return (await self.host.decide(asked)).answer

    async def allow(self, rules: Sequence[str], text: str) -> bool:
        """The user's yes to rules for the rest of the session. What was allowed in a sandbox is allowed
        there; planning lifts nothing, and in the mode full nothing is asked about."""
        approver = self.live.approver
        level = approver.sandbox() or "off"
        where = "" if level == "off" else f" @{level}"
        wanted = [
            f"{rule}{where}" if parse_rule(rule, "allow").tools == ("execute_command",) else rule
            for rule in rules
        ]
        if all(rule in approver.allow for rule in wanted):
            return True
        if approver.mode in ("plan", "full"):
            return False
        answer = await self.ask(text, ("yes", "no"))
        if answer is None or answer.strip().lower() not in ("yes", "y", "是"):
            return False
        for rule in wanted:
            self.live.approver = self.live.approver.with_rule(f"allow {rule}")
        return True

    async def edit_agent(
        self, path: str, text: str, instructions: str, code_edit: str
    ) -> Sequence[Mapping[str, object]] | None:
        """A model's plan for a sketch that the file doesn't decide; None where no model does this."""
        if self.live.edit_agent is None:
            return None
        return await self.live.edit_agent(self.live, path, text, instructions, code_edit)

    async def keep(self, data: bytes) -> str:
        return await self.live.blobs.put_blob(data)

    def describe(self, names: Sequence[str]) -> tuple[str, list[str]]:
        found, unknown = [], []
        for name in names:
            kind = self.live.registry.get(name)
            if kind is None:
                unknown.append(name)
            else:
                found.append(kind.doc)
        return self.live.dialect.describe(found), unknown

    def record_change(self, path: str, before: bytes | None, after: bytes | None) -> None:
        self.host.record_change(path, before, after)
        if after is None:
            self.live.seen.pop(path, None)
