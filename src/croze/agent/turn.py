"""One turn of a session: the loop or a workflow over the log as it stands, and however it ends a record of
that."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine

from croze.agent.budget import limited
from croze.agent.compaction import RECOVERIES, overflowed, too_long
from croze.agent.host import CallHost
from croze.agent.limits import Meter
from croze.agent.live import Live
from croze.agent.loop import run_turn, stop
from croze.agent.resume import GO_ON, closing, repairs
from croze.types.agent import StopReason
from croze.types.errors import ModelError, RetriesExhausted, StoreError
from croze.types.event import Body, Notice, Stopped

SwitchToXml = Callable[[Live], Awaitable[tuple[Body, ...]]]
"""Goes over to the xml protocol; gives what is to be recorded of that."""


class Turns:
    """Runs the turns of one session. `broken_off`: the last one could not be recorded to its end."""

    def __init__(self, live: Live, host: CallHost, switch_to_xml: SwitchToXml | None) -> None:
        self._live = live
        self._host = host
        self._switch_to_xml = switch_to_xml
        self.broken_off = False

    async def run(self, cancelled: Callable[[], bool]) -> Stopped:
        """One turn over the log as it stands, to its end; failures end it, they are not raised."""
        live = self._live
        self._host.refused = 0
        halted = None if live.hooks is None else live.hooks.halted
        limits = live.spec.limits
        if live.allowance is not None:
            limits = limited(limits, live.allowance())
        meter = live.meter = Meter(limits, time.monotonic(), halted=halted)
        deadline = asyncio.timeout(meter.limits.seconds)
        start = len(live.log.events)
        try:
            if self.broken_off:
                await self.close_broken_off()
            if cancelled():
                raise asyncio.CancelledError
            async with deadline:
                return await self._steps(meter)
        except asyncio.CancelledError:
            ending = self._end_early(meter, "cancelled", "Stopped by the user.", start)
        except TimeoutError as error:
            if deadline.expired():
                text = f"The limit of {round(meter.limits.seconds or 0, 1):g} seconds is reached."
                ending = self._end_early(meter, "seconds", text, start)
            else:
                ending = self._failed(meter, "failed", error)
        except RetriesExhausted as error:
            ending = self._failed(meter, "retries_exhausted", error)
        except StoreError:
            self.broken_off = True
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
                if not (
                    error.tools_refused
                    and self._switch_to_xml
                    and self._live.dialect.name == "native"
                ):
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

    async def close_broken_off(self) -> None:
        """Close what an interruption left open."""
        live = self._live
        if live.children is not None:
            await live.children.record_died()
        bodies: list[Body] = []
        if live.tracker is not None:
            from croze.agent.rewind import recovered

            bodies += recovered(live.log.events, live.workspace.root, live.tracker.journal)
        bodies += closing(live.log.events, live.new_id)
        if bodies:
            await live.append(*bodies, durable=True)
        if live.tracker is not None:
            live.tracker.recorded()
        self.broken_off = False


async def _uncancelled(work: Coroutine[object, object, Stopped]) -> Stopped:
    """Finish `work` though the task is cancelled meanwhile: it records how a turn ended."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    return task.result()
