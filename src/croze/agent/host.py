"""What a running call may use of its session: the runner's host and the tool's context."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from croze.agent.deltas import RedactedDeltas
from croze.agent.live import Live
from croze.agent.recall import remembered, stored_text
from croze.text.tokens import Counter, counter_for
from croze.tools.base import Remembered, ToolContext
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

NO_USER = "No user is present."
BLIND = "commands_not_followed"


class CallHost:
    """Serves the runner of one session: appends, asks, and knows which files a call changed."""

    def __init__(self, live: Live, on_rule: Callable[[str], None]) -> None:
        self._live = live
        self._on_rule = on_rule
        self._waiting: dict[str, asyncio.Future[tuple[str, str]]] = {}
        self._outputs: dict[str, RedactedDeltas] = {}
        self.refused = 0

    def output(self, delta: Delta) -> None:
        """Show a running call's output as it comes, without secrets."""
        shown = self._outputs.get(delta.call_id)
        if shown is None:
            shown = self._outputs[delta.call_id] = RedactedDeltas(self._live.publish)
        shown.publish(delta)

    async def append(self, *bodies: Body, durable: bool = False) -> None:
        """Append, and follow what a call changes: from its `ToolStarted` to its `ToolReturned`."""
        for body in bodies:
            if isinstance(body, ToolReturned) and body.call_id in self._outputs:
                self._outputs.pop(body.call_id).finish()
        tracker = self._live.tracker
        appending = self._live.append(*bodies, durable=durable)
        if tracker is None:
            await appending
            return
        changing = [
            body for body in bodies if isinstance(body, ToolStarted) and not body.access.read_only
        ]
        if changing:
            # While the disk makes sure of the one, the other is looked at.
            begun = tracker.begin(changing[-1].call_id, command=changing[-1].access.exec)
            await asyncio.gather(appending, begun)
            await self._tell_blind()
            return
        await appending
        if any(isinstance(b, ToolReturned) and b.call_id == tracker.call for b in bodies):
            tracker.recorded()

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
