"""Breaks of the byte prefix: where, why, at what price; and caches that went cold without one."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.context.breaks import Breaks, breaks_of
from croze.context.receipts import receipts_of
from croze.context.requests import calls_of, moments
from croze.types.event import MessagesMarked
from croze.types.model import Usage
from tests.context.recording import PRICES, Recording, info

LONG = "".join(f"line {n}\n" for n in range(1_500))
MARK = b',"cache_control":{"type":"ephemeral"}'
MARK_FIRST = b'"cache_control":{"type":"ephemeral"},'


def breaks(log: Recording) -> Breaks:
    return breaks_of(log.events, calls_of(log.events), log.heads, log.wires)


def bodies(log: Recording) -> list[bytes]:
    """The requests' bytes, cache markers and closing brackets left out."""
    found = []
    for moment in moments(log.events, calls_of(log.events)):
        head = log.heads[moment.call.body.head]
        data = log.wires.encode(moment.call, head, moment.context(head).messages)
        found.append(data.replace(MARK, b"").replace(MARK_FIRST, b"").removesuffix(b"]}"))
    return found


def start(**more: object) -> Recording:
    log = Recording(info(**more))
    log.fact("rules", "Be kind.", layer="documentation", reply="Understood.")
    log.user("Begin.")
    return log


def results(log: Recording) -> list:
    return [event.body for event in log.events if event.type == "ToolReturned"]


@pytest.mark.parametrize("wire", ["anthropic", "openai"])
def test_a_session_that_only_grows_has_no_break(wire: str) -> None:
    log = start(wire=wire)
    for number in range(4):
        log.work("read_file", {"path": f"{number}"}, LONG)
    log.user("Meanwhile.")
    log.work("list_files", {"path": "."}, "x")
    found = breaks(log)
    assert (found.breaks, found.requests, found.again) == ((), 5, 0)


@pytest.mark.parametrize("wire", ["anthropic", "openai"])
def test_a_compaction_breaks_at_what_it_replaced_and_the_rest_is_paid_again(wire: str) -> None:
    log = start(wire=wire)
    for number in range(4):
        log.work("read_file", {"path": f"{number}"}, LONG)
    log.compact(replaced={results(log)[1].call_id: "[cleared]"}, reason="too full")
    log.work("list_files", {"path": "."}, "x")
    (found,) = breaks(log).breaks
    assert (found.step, found.cause, found.detail) == (5, "compaction", "batch: too full")
    assert found.section == "history"
    old, new = bodies(log)[-2:]
    same = next(at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
    assert found.byte == same
    third = results(log)[2].tokens
    assert third < found.again < third + 400  # the last result had never been sent
    assert found.price == pytest.approx(
        found.again * ((PRICES.cache_write or 0) - (PRICES.cached or 0)) / 1e6
    )


def test_an_undo_another_model_and_another_head_are_told_apart() -> None:
    log = start()
    log.work("read_file", {"path": "a"}, LONG)
    first = len(log.events) + 1
    log.user("A detour.")
    log.work("read_file", {"path": "b"}, LONG)
    log.undo(first, len(log.events))
    log.user("Go on.")
    log.work("read_file", {"path": "c"}, LONG)
    log.wear(info(model="other"), system="You are croze.")
    log.work("read_file", {"path": "d"}, LONG)
    log.wear(info(model="other"), system="You are another.")
    log.work("read_file", {"path": "e"}, LONG)
    log.wear(info(model="other"), system="You are another.", dialect="xml")
    log.work("read_file", {"path": "f"}, LONG)
    found = breaks(log).breaks
    assert [item.cause for item in found] == ["undo", "model", "head", "protocol"]
    assert found[1].detail == "anthropic:m → anthropic:other"
    assert found[2].section == "role"
    assert [item.message is None for item in found] == [False, True, True, True]
    assert found[0].again < 30  # the result above what was undone is still the same
    assert found[1].again > 4 * 1_000


def test_a_reply_that_the_model_went_on_with_is_a_break_by_itself() -> None:
    log = start()
    log.ask()
    first = log.say("The answer begins with on", usage=Usage(input=100), finish="length")
    log.ask(prefill=True, same_step=True)
    log.say("The answer begins with one.", usage=Usage(input=120), continues=first, joined=True)
    log.user("Thanks.")
    log.ask()
    (found,) = breaks(log).breaks
    assert (found.cause, found.section) == ("joined", "history")
    assert 0 < found.again < 30


def test_a_cold_cache_is_a_miss_without_a_break() -> None:
    log = start()
    log.work("read_file", {"path": "a"}, LONG, cached=0)
    log.work("list_files", {"path": "."}, "x", cached=0)
    log.work("list_files", {"path": "."}, "x", cached=5_000)
    log.work("list_files", {"path": "."}, "x", cached=0, idle=900)
    found = breaks(log)
    assert [hit.verdict for hit in found.hits] == ["first", "small", "hit", "cold"]
    cold = found.hits[-1]
    assert cold.idle == pytest.approx(900)
    assert cold.reported == 0
    assert cold.expected > 4_000
    assert found.cold == 1
    assert found.cold_price == cold.price == pytest.approx(cold.expected * (3.75 - 0.3) / 1e6)


def test_a_provider_that_reports_nothing_missed_nothing() -> None:
    log = start()
    log.work("read_file", {"path": "a"}, LONG)
    log.work("read_file", {"path": "b"}, LONG)
    found = breaks(log)
    assert found.reported is None
    assert {hit.verdict for hit in found.hits} == {"first", "unreported"}


def test_without_the_head_the_cause_is_told_all_the_same() -> None:
    log = start()
    log.work("read_file", {"path": "a"}, LONG)
    log.work("read_file", {"path": "b"}, LONG)
    log.compact(replaced={results(log)[0].call_id: "[cleared]"})
    log.work("list_files", {"path": "."}, "x")
    (found,) = breaks_of(log.events, calls_of(log.events), {}, log.wires).breaks
    assert (found.cause, found.byte) == ("compaction", None)


def receipts(log: Recording):
    calls = calls_of(log.events)
    found = breaks_of(log.events, calls, log.heads, log.wires)
    return receipts_of("session-1", log.events, calls, found.breaks)


def test_a_receipt_says_what_was_taken_and_what_that_saved_and_cost() -> None:
    log = start()
    for number in range(3):
        log.work("read_file", {"path": f"{number}"}, LONG, cached=1_000)
    first, second, third = results(log)
    log.compact(
        replaced={first.call_id: "[cleared]"}, hidden=(second.message_id,),
        digested=(third.call_id,), tokens_before=9_000, tokens_after=2_000,
    )  # fmt: skip
    log.add(MessagesMarked((first.message_id, third.message_id)))
    log.work("list_files", {"path": "."}, "x", cached=500)
    log.work("list_files", {"path": "."}, "x", cached=1_500)
    found = receipts(log)
    (receipt,) = found.receipts
    assert (receipt.step, receipt.policy, receipt.freed, receipt.requests) == (4, "batch", 7_000, 2)
    assert receipt.saved == 14_000
    spans = {span.id: (span.how, span.origin) for span in receipt.spans}
    assert spans == {
        first.message_id: ("replaced", 'read_file {"path":"0"}'),
        second.message_id: ("hidden", 'read_file {"path":"1"}'),
        third.message_id: ("digested", 'read_file {"path":"2"}'),
    }
    dear = receipt.rewritten * (3.75 - 0.3) / 1e6
    assert receipt.money == pytest.approx(14_000 * 0.3 / 1e6 - dear)
    assert found.marked == ()


def test_a_compaction_at_the_end_or_soon_undone_stands_after_the_step_before_it() -> None:
    log = start()
    log.work("read_file", {"path": "a"}, LONG)
    begun = len(log.events) + 1
    log.user("More.")
    log.compact(hidden=(results(log)[0].message_id,))
    (asked,) = receipts(log).receipts
    assert (asked.step, asked.requests) == (1, 0)
    log.undo(begun, len(log.events))
    for _ in range(3):
        log.work("list_files", {"path": "."}, "x")
    (taken,) = receipts(log).receipts
    assert (taken.step, taken.requests, taken.undone) == (1, 0, True)


def test_a_receipt_can_be_a_loss() -> None:
    log = start()
    for number in range(6):
        log.work("read_file", {"path": f"{number}"}, LONG, cached=1_000)
    log.compact(
        replaced={results(log)[0].call_id: "[cleared]"}, tokens_before=20_000, tokens_after=19_500
    )
    log.work("list_files", {"path": "."}, "x", cached=500)
    found = receipts(log)
    assert found.money is not None
    assert found.money < 0


def test_a_receipt_names_what_a_summary_stands_for_and_what_an_undo_took_back() -> None:
    log = start()
    log.work("read_file", {"path": "a"}, LONG)
    log.work("read_file", {"path": "b"}, LONG)
    first, second = results(log)
    begun = len(log.events) + 1
    log.user("More.")
    log.compact(
        until=begun - 1, pinned=(second.message_id,), summary="[History Summary]\nOverall Goal: x",
        tokens_before=5_000, tokens_after=1_000,
    )  # fmt: skip
    log.work("list_files", {"path": "."}, "x")
    log.undo(begun, len(log.events))
    log.user("Else.")
    log.work("list_files", {"path": "."}, "y")
    (receipt,) = receipts(log).receipts
    assert receipt.undone
    assert receipt.requests == 1
    how = {span.id: span.how for span in receipt.spans}
    assert how[first.message_id] == "summarised"
    assert second.message_id not in how


@given(st.lists(st.sampled_from(["work", "user", "compact", "undo", "model"]), max_size=12))
def test_a_break_is_told_exactly_where_the_bytes_say_so(kinds: list[str]) -> None:
    log = start(wire="openai")
    last_user = len(log.events)
    for number, kind in enumerate(kinds):
        match kind:
            case "user":
                last_user = len(log.events) + 1
                log.user(f"More {number}.")
            case "compact" if results(log):
                log.compact(replaced={results(log)[0].call_id: f"[cleared {number}]"})
            case "undo" if last_user > 4:
                log.undo(last_user, len(log.events))
                log.user(f"After the undo {number}.")
            case "model":
                log.wear(info(wire="openai", model=f"m{number}"), system="You are croze.")
            case _:
                log.work("read_file", {"path": f"{number}"}, f"text {number}\n" * 20)
    log.user("The last.")
    log.ask()
    found = {item.event: item for item in breaks(log).breaks}
    sent = bodies(log)
    calls = calls_of(log.events)
    for call, (old, new) in zip(calls[1:], itertools.pairwise(sent), strict=True):
        broke = found.get(call.event.seq)
        assert new.startswith(old) is (broke is None)
        if broke is not None:
            same = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), -1)
            assert broke.byte == (same if same >= 0 else min(len(old), len(new)))
