"""What became of the context over time, in the terminal: breaks, receipts, differences, the way of a text,
and what other policies would have come to."""

from typing import TYPE_CHECKING

from croze.text.display import one_line, safe
from croze.ui.cli.output import local_time
from croze.ui.i18n import _
from croze.ui.inspector.table import WIDE, count, money, percent, prose, rows, span, word
from croze.ui.render import Screen

if TYPE_CHECKING:
    from croze.app.context import (
        Answer,
        Break,
        Breaks,
        Difference,
        Gone,
        Hit,
        Holder,
        Receipt,
        Receipts,
        Restored,
        Shown,
        WhatIf,
    )

SHORT = 8
SPANS = 12
"""Spans of one receipt that are shown; `--json` has all."""


def draw_breaks(screen: Screen, found: "Breaks") -> None:
    """Each break of the byte prefix with its cause and price, then what the cache missed without one."""
    if not found.breaks:
        text = _("each of the {count} requests begins with the one before, byte for byte",
                 count=found.requests)  # fmt: skip
        prose(screen, text)
    for item in found.breaks:
        _draw_break(screen, item)
    if found.breaks:
        prose(screen,
            _(
                "{breaks} breaks in {requests} requests: {tokens} tokens written again, {price}",
                breaks=len(found.breaks), requests=found.requests, tokens=count(found.again),
                price=money(found.price),
            ),
            "bold",
        )  # fmt: skip
    _draw_cache(screen, found)


def _draw_break(screen: Screen, item: "Break") -> None:
    step = f"{item.step}.{item.part}" if item.part > 1 else str(item.step)
    cause = word(item.cause)
    detail = f": {one_line(item.detail, 160)}" if item.detail else ""
    prose(screen, _("step {step}", step=step) + f"  {cause}{detail}", "bold")
    where = word(item.section)
    if item.message is not None:
        where = _("{layer}, message {number} (event {event})", layer=where,
                  number=item.message, event=item.message_event)  # fmt: skip
    if item.byte is None:
        at = _("in {where}", where=where)
    else:
        at = _("first at byte {byte}, in {where}", byte=count(item.byte), where=where)
    prose(screen, f"    {at}")
    prose(screen,
        "    " + _("{tokens} tokens written again, {price}", tokens=count(item.again),
                   price=money(item.price)),
        "dim",
    )  # fmt: skip


def _draw_cache(screen: Screen, found: "Breaks") -> None:
    if found.reported is None:
        prose(screen, _("the provider reports no cached tokens"), "dim")
        return
    prose(screen,
        _(
            "cached: {reported} tokens of {expected} that could have been",
            reported=count(found.reported), expected=count(found.expected),
        )
    )  # fmt: skip
    cold = [hit for hit in found.hits if hit.verdict == "cold"]
    for hit in cold:
        prose(screen, _cold(hit), "yellow")
    if len(cold) > 1:
        text = _(
            "{count} cold caches: {price} more", count=len(cold), price=money(found.cold_price)
        )
        prose(screen, text, "bold")


def _cold(hit: "Hit") -> str:
    return _(
        "step {step}: cold cache after {idle}: {reported} of {expected} tokens, {price} more",
        step=hit.step, idle=span(hit.idle), reported=count(hit.reported),
        expected=count(hit.expected), price=money(hit.price),
    )  # fmt: skip


def draw_receipts(screen: Screen, found: "Receipts") -> None:
    """Each compaction with what it took, and what that saved or cost up to now."""
    if not found.receipts:
        prose(screen, _("nothing of this conversation was pruned"))
    for receipt in found.receipts:
        _draw_receipt(screen, receipt)
    if found.receipts:
        prose(screen,
            _(
                "in all {saved} tokens not sent again, {rewritten} written again: {money}",
                saved=count(found.saved), rewritten=count(found.rewritten),
                money=_balance(found.money),
            ),
            "bold",
        )  # fmt: skip
        prose(
            screen,
            _("`croze context --show ID` prints a span, `--restore ID` brings it back"),
            "dim",
        )
    if found.marked:
        ids = ", ".join(name[:SHORT] for name in found.marked[:SPANS])
        text = _("marked by the model, not yet pruned: {count} ({ids})",
                 count=len(found.marked), ids=ids)  # fmt: skip
        prose(screen, text, "dim")


def _balance(amount: float | None) -> str:
    if amount is None:
        return _("price unknown")
    if amount < 0:
        return _("{money} dearer", money=money(-amount))
    return _("{money} saved", money=money(amount))


def _draw_receipt(screen: Screen, receipt: "Receipt") -> None:
    undone = f" ({word('undone')})" if receipt.undone else ""
    title = (
        _("before step {step}", step=receipt.step)
        if receipt.requests
        else _("after step {step}", step=receipt.step)
    )
    prose(screen, f"{title}  {local_time(receipt.at)}  {word(receipt.policy)}{undone}", "bold")
    prose(screen, f"    {one_line(receipt.reason, screen.width - 6)}")
    prose(screen,
        "    "
        + _(
            "{before} → {after} tokens; since then {requests} requests: {saved} not sent again, "
            "{rewritten} written again, {money}",
            before=count(receipt.before), after=count(receipt.after), requests=receipt.requests,
            saved=count(receipt.saved), rewritten=count(receipt.rewritten),
            money=_balance(receipt.money),
        )
    )  # fmt: skip
    table = [
        [
            f"    {item.id[:SHORT]}", word(item.how), f"{count(item.tokens)} → {count(item.left)}",
            _("restored") if item.restored else "", item.origin,
        ]
        for item in receipt.spans[:SPANS]
    ]  # fmt: skip
    for text in rows(table, width=screen.width - 1, right=frozenset((2,))):
        screen.line(text)
    if len(receipt.spans) > SPANS:
        prose(screen, "    " + _("and {count} more", count=len(receipt.spans) - SPANS), "dim")
    if receipt.summary:
        name = f"event:{receipt.event}"
        prose(screen, "    " + _("with a summary: --show {id}", id=name), "dim")


def draw_difference(screen: Screen, found: "Difference") -> None:
    """What came, went and changed from one step to another."""
    more = found.after - found.before
    prose(screen,
        _(
            "step {a} → step {b}: {before} → {after} tokens ({more})",
            a=found.a, b=found.b, before=count(found.before), after=count(found.after),
            more=f"{'+' if more >= 0 else '−'}{abs(more):,}",
        ),
        "bold",
    )  # fmt: skip
    table = [
        [_SIGNS[item.change], word(item.layer), item.name,
         f"{count(item.before)} → {count(item.after)}"]
        for item in found.sections
    ]  # fmt: skip
    for text in rows(table, width=screen.width - 1, right=frozenset((3,))):
        screen.line(text)
    if found.messages:
        screen.line("")
        prose(screen, _("messages"), "bold")
    changes = [
        [
            _SIGNS[item.change], item.id[:SHORT], word(item.role), one_line(item.name, 18),
            f"{count(item.before)} → {count(item.after)}",
            "" if item.change == "came" else word(item.now), item.text,
        ]
        for item in found.messages
    ]  # fmt: skip
    for text, item in zip(
        rows(changes, width=screen.width - 1, right=frozenset((4,))), found.messages, strict=True
    ):
        screen.line(text, _COLOURS[item.change])
    prose(screen, _("{count} messages are the same", count=found.unchanged), "dim")


_SIGNS = {"came": "+", "went": "−", "changed": "~"}
_COLOURS = {"came": "green", "went": "red", "changed": "yellow"}


def draw_answer(screen: Screen, answer: "Answer") -> None:
    """Why a text is in the context of a step, or how it went."""
    if not (answer.here or answer.gone or answer.later):
        prose(screen, _("nobody in this conversation ever said that"))
        return
    if answer.here:
        prose(screen, _("in the context of step {step}", step=answer.step), "bold")
    for holder in answer.here:
        _draw_holder(screen, holder)
    if answer.gone:
        prose(screen, _("no longer there"), "bold")
    for gone in answer.gone:
        _draw_gone(screen, gone)
    if answer.later:
        prose(screen, _("said later"), "bold")
    for later in answer.later:
        prose(screen, f"  {later.id[:SHORT]}  {later.kind}  {one_line(later.origin, 120)}")
        prose(screen, f"    {one_line(later.excerpt, screen.width - 6)}", "dim")


def _draw_holder(screen: Screen, holder: "Holder") -> None:
    place = f"{word(holder.layer)} / {word(holder.section)}"
    event = _("event {event}", event=holder.event) if holder.event else ""
    head = "  ".join(filter(None, (holder.id[:SHORT], place, event)))
    prose(screen, f"  {head}", "cyan")
    origin = " · ".join(filter(None, (holder.origin, holder.reason)))
    prose(screen, f"    {one_line(origin, screen.width - 6)}")
    if holder.requests:
        prose(screen,
            "    "
            + _(
                "{tokens} tokens, since step {since}; sent {requests} times: {paid} tokens, {cost}",
                tokens=count(holder.tokens), since=holder.since, requests=holder.requests,
                paid=count(holder.paid), cost=money(holder.cost),
            )
        )  # fmt: skip
    prose(screen, f"    {one_line(holder.excerpt, screen.width - 6)}", "dim")


def _draw_gone(screen: Screen, gone: "Gone") -> None:
    head = "  ".join((gone.id[:SHORT], word(gone.kind), one_line(gone.origin, 100)))
    prose(screen, f"  {head}", "cyan")
    if gone.by_event is not None:
        by = _("{standing} by {by}, event {event}", standing=word(gone.standing),
               by=word(gone.by), event=gone.by_event)  # fmt: skip
        if gone.at is not None:
            by += ", " + _("from step {step} on", step=gone.at)
        prose(screen, f"    {by}")
    if gone.reason:
        prose(screen, f"    {one_line(gone.reason, screen.width - 6)}")
    prose(screen, f"    {one_line(gone.excerpt, screen.width - 6)}", "dim")
    prose(
        screen,
        "    " + _("`croze context --restore {id}` brings it back", id=gone.id[:SHORT]),
        "dim",
    )


def draw_span(screen: Screen, shown: "Shown") -> None:
    """A span in full, as the log (or what it keeps beside it) has it."""
    item = shown.span
    head = "  ".join(filter(None, (item.id[:SHORT], word(item.kind), item.origin)))
    prose(screen, f"{one_line(head, screen.width - 1)}", "bold")
    at = _("event {event}", event=item.seq)
    reason = one_line(item.reason, 100)
    prose(screen, f"{at} · {local_time(item.at)} · {reason}", "dim")
    screen.line("")
    text = shown.whole if shown.whole is not None else item.text
    screen.line(safe(text).rstrip("\n"))


def draw_restored(screen: Screen, found: "Restored") -> None:
    """What was brought back."""
    prose(screen,
        _(
            "brought back: {id} {origin} ({tokens} tokens); the next request has it at its end",
            id=found.id[:SHORT], origin=one_line(found.origin, 100), tokens=count(found.tokens),
        )
    )  # fmt: skip


def draw_what_if(screen: Screen, found: "WhatIf") -> None:
    """The session as it was beside each scenario."""
    wide = screen.width >= WIDE
    head = [
        _("policy"), _("window"), _("tokens"), _("cached"), _("cost"), _("summaries cost"),
        _("pruned"), _("largest"), _("quoted text there"),
    ]  # fmt: skip
    every = (found.recorded, *found.outcomes)
    table = [head]
    for item in every:
        share = item.cached / item.tokens if item.tokens else 0.0
        largest = count(item.peak) + (f" (!{item.over})" if item.over else "")
        table.append(
            [
                word(item.policy), count(item.window), count(item.tokens), percent(share),
                money(item.cost), money(item.summary_cost), str(item.compactions), largest,
                percent(item.evidence),
            ]
        )  # fmt: skip
    if not wide:
        keep = (0, 2, 3, 4, 6, 7, 8)
        table = [[row[at] for at in keep] for row in table]
    right = frozenset(range(1, len(table[0])))
    for number, text in enumerate(rows(table, width=screen.width - 1, right=right)):
        screen.line(text, *(("dim",) if number == 0 else ("bold",) if number == 1 else ()))
    for prices in dict.fromkeys(item.prices_of for item in every if item.prices_of):
        prose(screen, _("prices: {prices}", prices=prices), "dim")
    if any(item.over for item in every):
        prose(screen, _("(!N): so many requests are larger than the window"), "yellow")
    prose(
        screen,
        _(
            "the recorded replies are played as they are: what a model would have said to another "
            "context can't be foreseen"
        ),
        "dim",
    )
