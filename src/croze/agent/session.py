"""A live session: the four verbs submit, cancel, answer and fork, and events for whoever watches."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING

from croze.agent.beside import Beside
from croze.agent.bus import Watcher
from croze.agent.callbacks import register
from croze.agent.compaction import RECOVERIES, compact_asked, overflowed, too_long
from croze.agent.host import CallHost
from croze.agent.limits import Meter
from croze.agent.live import Heard, Live
from croze.agent.loop import run_turn, stop
from croze.agent.resume import GO_ON, closing, repairs, unfinished, used
from croze.text.tokens import estimate
from croze.types.agent import StopReason
from croze.types.context import Context
from croze.types.errors import ModelError, RetriesExhausted, StoreError, UsageError
from croze.types.event import (
    Body,
    Compacted,
    Event,
    FactAdded,
    Notice,
    Stopped,
    Undone,
    UserSaid,
)
from croze.types.model import ModelInfo
from croze.types.parts import Part, Text
from croze.types.stream import Delta

if TYPE_CHECKING:
    from croze.agent.rewind import Rewinder

Fork = Callable[[str | None], Awaitable[str]]
SwitchToXml = Callable[[Live], Awaitable[tuple[Body, ...]]]
"""Goes over to the xml protocol; gives what is to be recorded of that."""


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
        self._switch_to_xml = switch_to_xml
        self._turn: asyncio.Task[Stopped] | None = None
        self._compacting: asyncio.Task[Compacted | None] | None = None
        self._submitting = 0
        self._hearing: set[asyncio.Task[Heard]] = set()
        self._begun = False
        self._cancelled = False
        self._broken_off = False
        self._closed = False
        self._beside = Beside(live, lambda: self.running)

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
            return
        live.publish(Delta(kind="phase", name="resume", session=self.id))
        await self._close_broken_off()
        await self._beside.record_lost()
        live.publish(Delta(kind="phase", name="resume", done=True, session=self.id))

    async def submit(self, text: str, *, parts: tuple[Part, ...] = ()) -> Stopped:
        """Say something to the agent; gives the end of the turn. While a turn runs, what is said joins
        it at its next step. An empty text takes a turn up again that was interrupted, cancelled or
        ended by a limit or a failure; UsageError where there is none."""
        said = (*parts, Text(text=text)) if text else parts
        if self._compacting is not None:
            await asyncio.wait([self._compacting])
        if self._cancelled and self._turn is not None and self.running:
            await asyncio.wait([self._turn])
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
        assert self._turn is not None
        try:
            return await asyncio.shield(self._turn)
        except asyncio.CancelledError:
            self.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._turn
            raise

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
        if self._cancelled or not (self.running or self._submitting):
            return
        self._cancelled = True
        for hearing in self._hearing:
            hearing.cancel()
        if self._turn is not None and self.running and self._begun:
            self._turn.cancel()

    def answer(self, ask_id: str, answer: str, note: str = "") -> bool:
        """Answer a question (`Asked`): once, always or no for approvals, else a text."""
        return self._host.answer(ask_id, answer, note)

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
        await self._beside.close()
        if self._live.hooks is not None and not self._broken_off:
            with contextlib.suppress(StoreError):
                await self._live.hooks.end("exit")
        await self._live.model.aclose()
        if self._live.tracker is not None and not self._broken_off:
            self._live.tracker.close()
        if self._live.workspace.confinement is not None:
            self._live.workspace.confinement.close()
        self._live.log.close()

    async def _run(self) -> Stopped:
        """Turns, one after the other, as long as something was said that no turn has answered."""
        self._begun = True
        try:
            while True:
                stopped = await self.turn()
                if self._cancelled or not (self.unfinished() or self._unheard(stopped)):
                    return stopped
        finally:
            if self._cancelled:  # what came when the turn was over must not end this task
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0)
            self._cancelled = False

    def _unheard(self, stopped: Stopped) -> bool:
        """Whether something was said just before the turn's end was recorded, too late for its verdict."""
        return stopped.reason == "done" and self._live.last_user > self._live.last_called

    async def turn(self) -> Stopped:
        """One turn over the log as it stands, to its end; failures end it, they are not raised."""
        live = self._live
        self._host.refused = 0
        halted = None if live.hooks is None else live.hooks.halted
        meter = live.meter = Meter(live.spec.limits, time.monotonic(), halted=halted)
        deadline = asyncio.timeout(meter.limits.seconds)
        start = len(live.log.events)
        try:
            if self._broken_off:
                await self._close_broken_off()
            if self._cancelled:
                raise asyncio.CancelledError
            async with deadline:
                return await self._steps(meter)
        except asyncio.CancelledError:
            ending = self._end_early(meter, "cancelled", "Stopped by the user.", start)
        except TimeoutError as error:
            if deadline.expired():
                text = f"The limit of {meter.limits.seconds:g} seconds is reached."
                ending = self._end_early(meter, "seconds", text, start)
            else:
                ending = self._failed(meter, "failed", error)
        except RetriesExhausted as error:
            ending = self._failed(meter, "retries_exhausted", error)
        except StoreError:
            self._broken_off = True
            raise
        except Exception as error:  # noqa: BLE001 - the log must say how the turn ended
            ending = self._failed(meter, "failed", error)
        return await _uncancelled(ending)

    async def _steps(self, meter: Meter) -> Stopped:
        messages = self._live.context().messages
        if messages and messages[-1].role == "assistant":
            await self._live.tell("go_on", GO_ON, "the turn is taken up after a reply")
        recoveries = 0
        while True:
            try:
                return await (self._live.workflow or run_turn)(self._live, self._host, meter)
            except ModelError as error:
                if error.overflow:
                    if recoveries < RECOVERIES and await overflowed(self._live, error):
                        recoveries += 1
                        continue
                    raise too_long(self._live, error, recoveries) from error
                if not (error.tools_refused and self._switch_to_xml and self.dialect == "native"):
                    raise
                await self._fall_back(error)

    async def _fall_back(self, error: ModelError) -> None:
        assert self._switch_to_xml is not None
        name = self._live.model.info.name
        notice = Notice(
            level="warning",
            code="tools_refused",
            text=f"{name} takes no tools ({error.message}); going on with the xml protocol.",
            params={"model": name, "error": error.message},
        )
        changed = await self._switch_to_xml(self._live)
        await self._live.append(notice, *changed)

    async def _failed(self, meter: Meter, reason: StopReason, error: Exception) -> Stopped:
        code = getattr(error, "code", type(error).__name__)
        text = str(error) or type(error).__name__
        hint = getattr(error, "hint", "")
        params = {"hint": hint} if hint else {}
        notice = Notice(level="error", code=code, text=text, params=params)
        return await self._end(meter, reason, text, notice)

    async def _end(self, meter: Meter, reason: StopReason, text: str, *before: Body) -> Stopped:
        """Record the turn's end, what has to stand `before` it in the same commit."""
        repaired = repairs(self._live.log.events, self._live.new_id)
        return await stop(self._live, self._host, meter, reason, text, *before, *repaired)

    async def _end_early(self, meter: Meter, reason: StopReason, text: str, start: int) -> Stopped:
        """The same, unless the end was recorded already (from event `start`) when the cancel came."""
        for event in self._live.log.events[start:]:
            if isinstance(event.body, Stopped):
                return event.body
        return await self._end(meter, reason, text)

    async def _close_broken_off(self) -> None:
        live = self._live
        bodies: list[Body] = []
        if live.tracker is not None:
            from croze.agent.rewind import recovered

            bodies += recovered(live.log.events, live.workspace.root, live.tracker.journal)
        bodies += closing(live.log.events, live.new_id)
        if bodies:
            await live.append(*bodies, durable=True)
        if live.tracker is not None:
            live.tracker.recorded()
        self._broken_off = False


async def _uncancelled(work: Coroutine[object, object, Stopped]) -> Stopped:
    """Finish `work` though the task is cancelled meanwhile: it records how a turn ended."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    return task.result()
