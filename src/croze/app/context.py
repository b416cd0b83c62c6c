"""The context inspector: what the model saw, why, what it cost, what was pruned and how to bring it back.

All of it comes from the log alone, so it works on sessions that ended long ago. What is named by
`session` is an id, the start of one, or a name; None is the newest conversation of the project.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from croze.agent.outside import redacted
from croze.app.head import open_dialect
from croze.app.replay import recorded_encoder
from croze.app.scenarios import parse_what_if
from croze.context.breaks import Break, Breaks, Hit, breaks_of
from croze.context.compare import Difference, MessageChange, SectionChange, difference
from croze.context.head import Head
from croze.context.images import Images
from croze.context.ledger import ledger_of
from croze.context.receipts import RESTORED, Pruned, Receipt, Receipts, receipts_of
from croze.context.report import (
    LayerRow,
    MessageRow,
    Report,
    SectionRow,
    Unrecorded,
    report_of,
    unrecorded,
)
from croze.context.requests import (
    Call,
    Exactness,
    Moment,
    Wires,
    calls_of,
    find_call,
    moment_of,
    rebuild,
)
from croze.context.spans import SHORT, Span, find_span
from croze.context.whatif import Outcome, WhatIf
from croze.context.whatif import what_if as play
from croze.context.why import Answer, Gone, Holder, why
from croze.dialect.base import Dialect
from croze.llm.model import Model
from croze.text.tokens import estimate
from croze.types.errors import ConversationNotFound, StoreError, UsageError
from croze.types.event import Event, FactAdded, HeadSet, SessionOpened

if TYPE_CHECKING:
    from croze.agent.session import Session
    from croze.app.app import App

__all__ = [
    "Answer",
    "Break",
    "Breaks",
    "Difference",
    "Exactness",
    "Gone",
    "Hit",
    "Holder",
    "LayerRow",
    "MessageChange",
    "MessageRow",
    "Outcome",
    "Pruned",
    "Receipt",
    "Receipts",
    "Report",
    "Restored",
    "SectionChange",
    "SectionRow",
    "Shown",
    "Span",
    "Unrecorded",
    "WhatIf",
    "body",
    "breaks",
    "compare",
    "explain",
    "receipts",
    "report",
    "restore",
    "restore_live",
    "show",
    "what_if",
]


class Shown(Struct, frozen=True):
    """A span in full. `whole` is what the tool gave where the result itself was cut when it came."""

    session: str
    span: Span
    whole: str | None = None


class Restored(Struct, frozen=True):
    """A span that was brought back: `id` names it, `event` is the new fact's."""

    session: str
    id: str
    origin: str
    event: int
    tokens: int


@dataclass(frozen=True, slots=True)
class _Log:
    """A session's log with its requests, its heads by hash, and its wires."""

    session: str
    name: str
    events: Sequence[Event]
    calls: Sequence[Call]
    heads: Mapping[str, Head]
    wires: Wires

    def moment(self, turn: str | None) -> Moment:
        return moment_of(self.events, find_call(self.calls, turn))

    def head(self, moment: Moment) -> Head | None:
        return self.heads.get(moment.call.body.head)

    def rebuilt(self, moment: Moment) -> tuple[bytes | None, Exactness]:
        return rebuild(moment, self.head(moment), self.wires)

    def report(self, moment: Moment) -> Report:
        _, exact = self.rebuilt(moment)
        return report_of(
            moment, self.head(moment), exact, calls=self.calls, events=self.events, name=self.name
        )


async def find(app: "App", session: str | None, namespace: str | None = None) -> str:
    """The id of the session that is meant. Raises UsageError where there is none at all,
    ConversationNotFound where none is named so."""
    if session is None:
        newest = await app.conversations.list(limit=1, namespace=namespace)
        if not newest:
            raise UsageError(
                "There is no conversation here yet.",
                hint="Start one with croze, or name another project's folder.",
                code="no_conversations",
            )
        return newest[0].id
    try:
        return await app.conversations.resolve(session)
    except ConversationNotFound:
        every = await app.conversations.list(
            limit=10_000, namespace=namespace, include_children=True
        )
        named = [one.id for one in every if one.name == session]
        if len(named) == 1:
            return named[0]
        raise


async def _load(app: "App", session: str | None, namespace: str | None) -> _Log:
    found = await find(app, session, namespace)
    events = await app.store.read(found)
    calls = calls_of(events)
    heads: dict[str, Head] = {}
    for digest in {call.body.head for call in calls}:
        try:
            heads[digest] = Head.decode(await app.store.blob(digest))
        except (StoreError, msgspec.DecodeError):
            continue  # purged or damaged: the report goes without the exact bytes and says so
    opened = next((e.body for e in events if isinstance(e.body, SessionOpened)), None)
    name = opened.name if opened is not None else ""
    images = Images()
    for event in events:
        images.know(event.body)
    for digest in images.missing:
        try:
            images.put({digest: await app.store.blob(digest)})
        except StoreError:
            images.put({digest: None})
    return _Log(found, name, events, calls, heads, Wires(_open, images))


def _open(head: HeadSet) -> tuple[Dialect, Model]:
    return open_dialect(head.dialect), recorded_encoder(head.model)


async def report(
    app: "App",
    session: str | None = None,
    *,
    turn: str | None = None,
    namespace: str | None = None,
) -> Report | Unrecorded:
    """What the model saw at a step (`turn`: a step, or `step.request` where it has several; None: the
    last). A conversation without any recorded request gives its messages only."""
    log = await _load(app, session, namespace)
    if not log.calls and turn is None:
        return unrecorded(log.session, log.name, log.events)
    return await asyncio.to_thread(lambda: log.report(log.moment(turn)))


async def body(
    app: "App",
    session: str | None = None,
    *,
    turn: str | None = None,
    namespace: str | None = None,
) -> tuple[bytes, Exactness]:
    """The bytes of the request of a step, and whether they are the very ones that were sent. Raises
    StoreError where they can't be made."""
    log = await _load(app, session, namespace)
    data, exact = log.rebuilt(log.moment(turn))
    if data is None:
        raise StoreError(
            f"The request can't be rebuilt: {exact.text}",
            code="no_body",
            reason=exact.text,
        )
    return data, exact


async def explain(
    app: "App",
    text: str,
    session: str | None = None,
    *,
    turn: str | None = None,
    namespace: str | None = None,
) -> Answer:
    """Where a text stands in the context of a step, since when and at what cost; or how it went."""
    log = await _load(app, session, namespace)
    moment = log.moment(turn)
    return await asyncio.to_thread(
        lambda: why(log.events, log.calls, moment, log.head(moment), text)
    )


async def compare(
    app: "App",
    a: str,
    b: str,
    session: str | None = None,
    *,
    namespace: str | None = None,
) -> Difference:
    """What came, went and changed from step `a` to step `b`."""
    log = await _load(app, session, namespace)

    def work() -> Difference:
        moments = [log.moment(turn) for turn in (a, b)]
        reports = [log.report(moment) for moment in moments]
        heads = [log.head(moment) for moment in moments]
        digests = [{s.key: s.digest for s in head.sections} if head else {} for head in heads]
        labels = [moment.call.label for moment in moments]
        return difference(
            (labels[0], reports[0]), (labels[1], reports[1]), (digests[0], digests[1])
        )

    return await asyncio.to_thread(work)


async def breaks(app: "App", session: str | None = None, *, namespace: str | None = None) -> Breaks:
    """Where requests didn't begin with the one before, why and at what price; and the cache's hits."""
    log = await _load(app, session, namespace)
    find_call(log.calls, None)
    return await asyncio.to_thread(lambda: breaks_of(log.events, log.calls, log.heads, log.wires))


async def receipts(
    app: "App", session: str | None = None, *, namespace: str | None = None
) -> Receipts:
    """What was pruned, when, by which policy, and what it saved up to now."""
    log = await _load(app, session, namespace)

    def work() -> Receipts:
        found = breaks_of(log.events, log.calls, log.heads, log.wires)
        return receipts_of(log.session, log.events, log.calls, found.breaks)

    return await asyncio.to_thread(work)


async def what_if(
    app: "App",
    specs: Sequence[str],
    session: str | None = None,
    *,
    namespace: str | None = None,
) -> WhatIf:
    """Play the session's log under other policies, windows or prices; each of `specs` is as in
    `parse_what_if`. Raises UsageError for one that can't be understood."""
    scenarios = [scenario for spec in specs for scenario in parse_what_if(app, spec)]
    log = await _load(app, session, namespace)
    find_call(log.calls, None)
    return await asyncio.to_thread(lambda: play(log.session, log.events, log.calls, scenarios))


async def show(
    app: "App", wanted: str, session: str | None = None, *, namespace: str | None = None
) -> Shown:
    """A span in full, from the log. Raises MessageNotFound."""
    found = await find(app, session, namespace)
    span = find_span(await app.store.read(found), wanted)
    whole = None
    if span.whole:
        try:
            whole = (await app.store.blob(span.whole)).decode("utf-8", "replace")
        except StoreError:
            whole = None  # purged: what the log itself holds is all there is
    return Shown(found, span, whole)


async def restore(
    app: "App", wanted: str, session: str | None = None, *, namespace: str | None = None
) -> Restored:
    """Bring a span back into its session's context: a fact is appended, nothing else changes, so what
    is cached stays so. Raises SessionBusy where the session is being run, UsageError where the span
    stands there in full."""
    found = await find(app, session, namespace)
    with closing(await app.store.open_log(found)) as log:
        fact, span = _fact_of(log.events, wanted, app.store.source.uuid)
        (event,) = await log.append(redacted(fact), durable=True)
        return Restored(log.session, span.id, span.origin, event.seq, fact.tokens)


async def restore_live(session: "Session", wanted: str) -> Restored:
    """`restore` in a session that this process runs."""
    fact, span = _fact_of(session.events, wanted, session.new_id)
    event = await session.add_fact(fact)
    return Restored(session.id, span.id, span.origin, event.seq, fact.tokens)


def _fact_of(
    events: Sequence[Event], wanted: str, new_id: Callable[[], str]
) -> tuple[FactAdded, Span]:
    span = find_span(events, wanted)
    ledger = ledger_of(events)
    entry = ledger.by_id.get(span.id)
    back = f"message {span.id}"
    again = any(
        e.key == RESTORED and e.standing == "full" and _origin(events, e.seq) == back
        for e in ledger.entries
    )
    if again or (entry is not None and entry.standing == "full" and not entry.cut):
        raise UsageError(
            f"The message {span.id[:SHORT]} stands in the context in full.",
            hint="`croze context --receipts` lists what was pruned.",
            code="not_pruned",
            id=span.id[:SHORT],
        )
    known = {getattr(event.body, "message_id", "")[:SHORT] for event in events}
    message_id = new_id()
    while message_id[:SHORT] in known:
        message_id = new_id()
    text = f"The user brought back message {span.id[:SHORT]} ({span.origin}):\n{span.text}"
    fact = FactAdded(
        key=RESTORED,
        message_id=message_id,
        text=text,
        layer="history",
        reason="brought back by the user",
        origin=back,
        tokens=estimate(text),
    )
    return fact, span


def _origin(events: Sequence[Event], seq: int) -> str:
    return next(
        (e.body.origin for e in events if e.seq == seq and isinstance(e.body, FactAdded)), ""
    )
