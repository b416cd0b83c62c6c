"""The compaction step: the policy decides, a model writes the summary where one is wanted, one event says
what became of the context; and recovery, where the window would overflow all the same."""

from contextlib import aclosing

import msgspec

from croze.agent.aside import Record, ask_aside
from croze.agent.live import Live
from croze.context.policies import Decision, State, high_of, overflows
from croze.llm.model import Model
from croze.text.redact import redact
from croze.types.errors import ModelError
from croze.types.event import Compacted, Event, Notice

SUMMARY_FAILED = "summary_failed"
WINDOW_OVERFLOW = "window_overflow"
ASKED = "compaction_asked"
"""Stands before what the user's own wish to compact leads to."""
RECOVERIES = 2
"""How often a turn goes on after the provider said that the context is too long."""


async def compact(live: Live) -> None:
    """Make the context smaller where the session's policy wants it, and where the window is full."""
    state = live.state()
    decision = live.policy(state)
    if decision is not None:
        await _apply(live, decision)
        state = live.state()
    elif state.tokens > high_of(state):
        await _explain(live, state)
    if overflows(state):
        await _recover(live, state)


async def compact_asked(live: Live) -> Compacted | None:
    """Make the context smaller because the user wants it; None where nothing is to be gained."""
    from croze.context.asked import asked

    decision = asked(live.state())
    if decision is None:
        return None
    text = "The context is made smaller, as you asked."
    await live.append(Notice(level="info", code=ASKED, text=text))
    return await _apply(live, decision, trigger="manual")


async def overflowed(live: Live, error: ModelError) -> bool:
    """After the provider's overflow error: whether the context could be made smaller."""
    state = live.state(forced=True)
    from croze.context.recover import recover

    decision = recover(state)
    if decision is None:
        return False
    text = f"The context is too long for {live.model.info.name}; it is made smaller."
    params = {"model": live.model.info.name, "error": error.message}
    await live.append(Notice(level="warning", code=WINDOW_OVERFLOW, text=text, params=params))
    await _apply(live, decision)
    return True


def too_long(live: Live, error: ModelError, recoveries: int) -> ModelError:
    """The provider's overflow error where nothing helps any more, with what was tried and the way out."""
    state = live.state()
    times = {0: "Nothing of it can go", 1: "It was made smaller once"}
    tried = times.get(recoveries, f"It was made smaller {recoveries} times")
    hint = (
        f"{tried}; about {state.tokens:,} tokens are left, {state.head:,} of them the system prompt and "
        f"the tools, and {live.model.info.name} is taken to have a window of {live.budget.window:,}. "
        "State its real window in the configuration, shorten the request, begin a new conversation, or "
        "take a model with a larger window."
    )
    return ModelError(error.message, status=error.status, overflow=True, hint=hint, code=error.code)


async def _recover(live: Live, state: State) -> None:
    from croze.context.recover import recover

    decision = recover(state)
    if decision is not None:
        await _apply(live, decision)


async def _explain(live: Live, state: State) -> None:
    """Say once why a context above its watermark stays as it is."""
    from croze.context.batch import diagnosis

    notice = diagnosis(state)
    if notice is not None and notice.code not in live.warned:
        await live.append(notice)


async def _apply(live: Live, decision: Decision, *, trigger: str = "auto") -> Compacted:
    event = decision.event
    if live.hooks is not None:
        await live.hooks.compacting(trigger)
    if decision.summarise:
        event = await _summarised(live, event)
    await live.append(event)
    facts = await live.gather(live)  # what stood in the tail is told anew
    if facts:
        await live.append(*facts)
    return event


async def _summarised(live: Live, event: Compacted) -> Compacted:
    """The event with its summary and its receipt, and with what it really comes to."""
    from croze.context.ledger import ledger_of
    from croze.context.receipt import receipt
    from croze.context.summary import fallback

    events = live.log.events
    summaries = (_summary_of(event) for event in reversed(live.ledger.compactions))
    earlier = next(filter(None, summaries), "")
    written = await _ask(live, event.until, earlier)
    text = fallback(events, event.until, earlier) if written is None else written
    whole = msgspec.structs.replace(event, summary=text, receipt=receipt(events, event.until))
    last = events[-1]
    would_be = ledger_of([*events, Event(last.session, last.seq + 1, last.at, whole)])
    freed = (live.ledger.tokens - would_be.tokens) * live.scale
    return msgspec.structs.replace(whole, tokens_after=max(0, event.tokens_before - round(freed)))


async def _ask(live: Live, until: int, earlier: str) -> str | None:
    """A summary by the first model that writes one of the right form; None where none does."""
    from croze.context.summary import check, normalise, request

    if live.summarisers is None:
        return None
    async with aclosing(live.summarisers(live)) as models:
        async for model in models:
            system, question = request(live.log.events, until, earlier)
            try:
                answer = await ask_aside(Record.of(live), model, "summary", system, question)
            except ModelError as error:
                await _tell_failed(live, model, error.message)
                continue
            text = normalise(redact(answer)[0])
            wrong = check(text)
            if wrong is None:
                return text
            await _tell_failed(live, model, wrong)
    return None


async def _tell_failed(live: Live, model: Model, error: str) -> None:
    name = model.info.name
    text = f"{name} wrote no usable summary ({error})."
    params = {"model": name, "error": error}
    await live.append(Notice(level="info", code=SUMMARY_FAILED, text=text, params=params))


def _summary_of(event: Event) -> str:
    return event.body.summary if isinstance(event.body, Compacted) else ""
