"""A live session: the four verbs submit, cancel, answer and fork, and events for whoever watches."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from croze.agent.afterwards import CLOSING, Afterwards
from croze.agent.beside import Beside
from croze.agent.bus import Watcher
from croze.agent.callbacks import register
from croze.agent.compaction import compact_asked
from croze.agent.host import CallHost
from croze.agent.live import Heard, Live
from croze.agent.resume import unfinished, used
from croze.agent.turn import SwitchToXml, Turns
from croze.text.tokens import estimate
from croze.types.context import Context
from croze.types.errors import StoreError, UsageError
from croze.types.event import Compacted, Event, FactAdded, Stopped, Undone, UserSaid
from croze.types.model import ModelInfo
from croze.types.parts import Part, Text
from croze.types.stream import Delta

if TYPE_CHECKING:
    from croze.agent.children import Children
    from croze.agent.rewind import Rewinder

Fork = Callable[[str | None], Awaitable[str]]


class Session:
    """One session, run by this process alone. Made by `croze.app.App.session`."""

    def __init__(
        self,
        live: Live,
        *,
        fork: Fork,
        switch_to_xml: SwitchToXml | None,
        on_rule: Callable[[str], None],
    ) -> None:
        self._live = live
        self._host = CallHost(live, on_rule)
        self._fork = fork
        self._turns = Turns(live, self._host, switch_to_xml)
        self._turn: asyncio.Task[Stopped] | None = None
        self._compacting: asyncio.Task[Compacted | None] | None = None
        self._submitting = 0
        self._hearing: set[asyncio.Task[Heard]] = set()
        self._begun = False
        self._cancelled = False
        self._closed = False
        self._beside = Beside(live, lambda: self.running)
        self._afterwards = Afterwards(self._after)

    @property
    def id(self) -> str:
        return self._live.log.session

    @property
    def model(self) -> ModelInfo:
        return self._live.model.info

    @property
    def events(self) -> tuple[Event, ...]:
        """The log so far."""
        return tuple(self._live.log.events)

    def context(self) -> Context:
        """What the model sees if it is asked now, with its sections."""
        return self._live.context()

    @property
    def used(self) -> bool:
        """Whether anything was ever said in this session."""
        return used(self._live.log.events)

    @property
    def dialect(self) -> str:
        return self._live.dialect.name

    @property
    def children(self) -> "Children | None":
        """Its sub-agents; None where it can have none."""
        return self._live.with_children()

    @property
    def running(self) -> bool:
        return self._turn is not None and not self._turn.done()

    def subscribe(self, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` with every event and delta from now on; gives the function that ends it."""
        return self._live.bus.subscribe(watcher)

    def on(self, point: str, callback: Watcher) -> Callable[[], None]:
        """Register a callback at a named point (see `croze.agent.callbacks.POINTS`)."""
        return register(self._live.bus, point, callback)

    async def open(self, *, resumed: bool = False) -> None:
        """Bring the log into a state to go on from: what an interruption left open is closed."""
        live = self._live
        live.fold()
        if live.hooks is not None:
            live.hooks.start("resume" if resumed else "startup")
        if not resumed:
            live.bus.publish(live.log.events[0])
            await self._settle()
            return
        live.publish(Delta(kind="phase", name="resume", session=self.id))
        await self._turns.close_broken_off()
        await self._settle()
        await self._beside.record_lost()
        live.publish(Delta(kind="phase", name="resume", done=True, session=self.id))

    async def _settle(self) -> None:
        children = self._live.children
        if children is not None and self._live.depth == 0:
            await children.sessions.settle(self._live)

    async def submit(self, text: str, *, parts: tuple[Part, ...] = ()) -> Stopped:
        """Say something to the agent; gives the end of the turn. While a turn runs, what is said joins
        it at its next step. An empty text takes a turn up again that was interrupted, cancelled or
        ended by a limit or a failure; UsageError where there is none."""
        said = (*parts, Text(text=text)) if text else parts
        if self._compacting is not None:
            await asyncio.wait([self._compacting])
        if self._cancelled and self._turn is not None and self.running:
            await asyncio.wait([self._turn])
        await self._afterwards.wait()
        if said:
            dropped = await self._say(said)
            if dropped and not self.running:
                self._cancelled = False
                return Stopped(reason="hook", text=dropped, refused=1)
        elif not self.running and not self._resumable():
            raise UsageError(
                "There is nothing to go on with in this session.",
                hint="Say what is to be done.",
                code="nothing_to_do",
            )
        if not self.running:
            self._begun = False
            self._turn = asyncio.create_task(self._run(), name=f"turn of {self.id}")
            self._turn.add_done_callback(lambda _turn: self._beside.ended())
            if self._live.after_turn is not None:
                self._turn.add_done_callback(self._afterwards.begin)
        assert self._turn is not None
        try:
            return await asyncio.shield(self._turn)
        except asyncio.CancelledError:
            self.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._turn
            raise

    async def _after(self, stopped: Stopped) -> None:
        if self._live.after_turn is not None and not self._turns.broken_off:
            await self._live.after_turn(self._live, stopped)

    async def _say(self, parts: tuple[Part, ...]) -> str:
        """Record what was said; where a hook drops it, that alone, and give the reason."""
        tokens = sum(estimate(part.text) for part in parts if isinstance(part, Text))
        said = UserSaid(message_id=self._live.new_id(), parts=parts, tokens=tokens)
        self._submitting += 1
        try:
            heard = await self._heard(parts)
            bodies = heard.before if heard.dropped else (*heard.before, said, *heard.after)
            await self._live.append(*bodies, durable=True)
        finally:
            self._submitting -= 1
        return heard.dropped

    async def _heard(self, parts: tuple[Part, ...]) -> Heard:
        """What the hooks make of a message; a cancel ends them, and the message stands as it is."""
        if self._live.hooks is None:
            return Heard()
        hearing = asyncio.create_task(self._live.hooks.said(parts))
        self._hearing.add(hearing)
        try:
            return await hearing
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return Heard()
        finally:
            self._hearing.discard(hearing)

    def unfinished(self) -> bool:
        """Whether the log's last turn never came to its end."""
        return unfinished(self._live.log.events)

    def _resumable(self) -> bool:
        """Whether the last turn could go on by itself."""
        for event in reversed(self._live.log.events):
            if isinstance(event.body, Undone):
                return False
            if isinstance(event.body, Stopped):
                return event.body.reason != "done" or self.unfinished()
        return self.unfinished()

    async def compact(self) -> Compacted | None:
        """Make the context smaller now, by the session's policy; None where nothing is to be gained, or
        where it was cancelled. UsageError while the agent works."""
        at_work = self._compacting is not None and not self._compacting.done()
        if self.running or self._submitting or at_work:
            raise UsageError(
                "The context can't be made smaller while the agent works.",
                hint="Stop it first, or wait until it is done.",
                code="compact_while_running",
            )
        task = self._compacting = asyncio.create_task(compact_asked(self._live))
        (done,) = await asyncio.gather(task, return_exceptions=True)
        if isinstance(done, Exception):
            raise done
        return done if isinstance(done, Compacted) else None

    def cancel(self) -> None:
        """Stop the running step; what arrived is kept, and the session can go on. Again: nothing."""
        if self._compacting is not None:
            self._compacting.cancel()
        if not self.running and not self._closed:
            self._afterwards.cancel()
        if self._cancelled or not (self.running or self._submitting):
            return
        self._cancelled = True
        for hearing in self._hearing:
            hearing.cancel()
        if self._turn is not None and self.running and self._begun:
            self._turn.cancel()

    def answer(self, ask_id: str, answer: str, note: str = "") -> bool:
        """Answer a question (`Asked`), a sub-agent's too: once, always or no for approvals, else a text."""
        if self._host.answer(ask_id, answer, note):
            return True
        children = self._live.children
        return children is not None and children.answer(ask_id, answer, note)

    def new_id(self) -> str:
        """A message id that no other message of the session begins like."""
        return self._live.new_id()

    async def add_fact(self, fact: FactAdded) -> Event:
        """Tell the model something from its next request on."""
        return (await self._live.append(fact, durable=True))[0]

    def rewinder(self) -> "Rewinder":
        """What undoes and redoes this session's turns. UsageError while one runs."""
        from croze.agent.rewind import Rewinder

        live = self._live
        if self.running or live.tracker is None:
            raise UsageError(
                "Nothing can be undone while the agent works.",
                hint="Stop it first, or wait until it is done.",
                code="undo_while_running",
            )
        return Rewinder(
            log=live,
            events=live.log.events,
            root=live.workspace.root,
            journal=live.tracker.journal,
            new_id=live.source.uuid,
        )

    async def fork(self, message_id: str | None = None) -> str:
        """A new session that shares the log up to a message (None: all of it); gives its id."""
        return await self._fork(message_id)

    async def close(self) -> None:
        """End the running turn, close the connections and give the lease back. Again: nothing."""
        if self._closed:
            return
        self._closed = True
        self.cancel()
        for task in filter(None, (self._turn, self._compacting)):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        await self._afterwards.wait(CLOSING)
        if self._live.children is not None:
            with contextlib.suppress(StoreError):  # the next opening records what is missing
                await self._live.children.close()
        await self._beside.close()
        for close in self._live.closing:
            await close()
        if self._live.hooks is not None and not self._turns.broken_off:
            with contextlib.suppress(StoreError):
                await self._live.hooks.end("exit")
        await self._live.model.aclose()
        if self._live.tracker is not None and not self._turns.broken_off:
            self._live.tracker.close()
        if self._live.workspace.confinement is not None:
            self._live.workspace.confinement.close()
        self._live.log.close()

    async def _run(self) -> Stopped:
        """Turns, one after the other, as long as something was said that no turn has answered."""
        self._begun = True
        try:
            while True:
                said = self._live.last_user
                stopped = await self.turn()
                if self._cancelled or not (self.unfinished() or self._unheard(stopped, said)):
                    return stopped
        finally:
            if self._cancelled:  # what came when the turn was over must not end this task
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0)
            self._cancelled = False

    def _unheard(self, stopped: Stopped, said: int) -> bool:
        """Whether something was said just before the turn's end was recorded, too late for its verdict;
        `said` is what had been said last when the turn began."""
        heard = max(said, self._live.last_called)
        return stopped.reason == "done" and self._live.last_user > heard

    async def turn(self) -> Stopped:
        """One turn over the log as it stands, to its end; failures end it, they are not raised."""
        return await self._turns.run(lambda: self._cancelled)
