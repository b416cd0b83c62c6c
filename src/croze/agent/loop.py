"""The loop: gather → (compact) → project → stream → run tools → append, until the turn is over."""

import time

from croze.agent.compaction import compact
from croze.agent.exchange import exchange
from croze.agent.host import CallHost
from croze.agent.limits import Meter
from croze.agent.live import Live
from croze.agent.verdict import Patience, judge
from croze.context.check import check_context
from croze.text.redact import redact
from croze.types.agent import StopReason
from croze.types.errors import ModelError
from croze.types.event import Body, Notice, Stopped


async def run_turn(live: Live, host: CallHost, meter: Meter) -> Stopped:
    """Work until the model is done or a limit, a failure or the user ends it; gives the `Stopped` event
    that was appended. Raises ModelError (the caller records it) and CancelledError."""
    return await stop(live, host, meter, *await work(live, host, meter))


async def work(live: Live, host: CallHost, meter: Meter) -> tuple[StopReason, str]:
    """The same without the record of its end: why it is over, and the answer or what there is to say."""
    patience = Patience()
    while True:
        over = meter.exceeded()
        if over is not None:
            return over
        facts = await live.gather(live)
        if facts:
            await live.append(*facts)
        await compact(live)
        await _check(live)
        meter.steps += 1
        heard = live.log.events[-1].seq
        said = await exchange(live, live.steps + 1)
        meter.spend(said.cost)
        meter.calls(said.reply.calls)
        outcome = await live.run_calls(
            said.reply.calls, registry=live.registry, approver=live.approver, host=host
        )
        host.refused += outcome.refused
        verdict = judge(said, outcome, live.spec, patience)
        if live.last_user > heard:
            continue
        if verdict.kind == "done":
            if live.hooks is not None and await live.hooks.stopping(verdict.text):
                continue
            return "done", verdict.text
        if verdict.kind == "failed":
            return "failed", verdict.text
        if verdict.text:
            await live.tell(
                verdict.code, verdict.text, "the last reply could not be used as it was"
            )


async def _check(live: Live) -> None:
    """Hold what is about to be sent against the wires' rules; an error ends the turn, a warning is
    given once."""
    tokens = live.state().tokens
    found = check_context(live.context(), live.budget, start=live.checked, tokens=tokens)
    for check in (*live.invariants.take(), *found):
        if check.level == "error":
            raise ModelError(check.text, code=check.code)
        if check.code not in live.warned:
            await live.append(
                Notice(level="warning", code=check.code, text=check.text, params=check.params)
            )


async def stop(
    live: Live, host: CallHost, meter: Meter, reason: StopReason, text: str, *before: Body
) -> Stopped:
    """Record the end of the turn, with what has to stand `before` it in the same commit. Sub-agents that
    are still open end with it."""
    if live.children is not None:
        await live.children.settle()
    stopped = Stopped(
        reason=reason,
        text=redact(text)[0],
        steps=meter.steps,
        seconds=round(time.monotonic() - meter.started, 3),
        cost=meter.cost,
        refused=host.refused + meter.refused,
    )
    await live.append(*before, stopped, durable=True)
    live.meter = None  # what is done between turns is no turn's to pay
    return stopped
