"""A report accounts for every token and cent of a request, says how each message stands, and is exact."""

import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.context.compare import difference
from croze.context.paid import follow
from croze.context.report import Report, report_of, unrecorded
from croze.context.requests import calls_of, find_call, moment_of, moments, rebuild
from croze.context.spans import find_span
from croze.context.why import why
from croze.types.errors import MessageNotFound, UsageError
from croze.types.event import ModelCalled, Unknown
from croze.types.model import Usage
from tests.context.recording import Recording, info

LONG = "".join(f"line {n}\n" for n in range(400))


def report(log: Recording, turn: str | None = None, *, head: bool = True) -> Report:
    calls = calls_of(log.events)
    moment = moment_of(log.events, find_call(calls, turn))
    found = log.heads.get(moment.call.body.head) if head else None
    _, exact = rebuild(moment, found, log.wires)
    return report_of(moment, found, exact, calls=calls, events=log.events)


def three_steps() -> Recording:
    log = Recording()
    log.fact("rules", "Be kind. " * 40, layer="documentation", reply="Understood.", origin="R.md")
    log.user("Begin.")
    log.fact("environment", "Date: today", layer="current", reason="the day")
    log.work("read_file", {"path": "a.txt"}, LONG, cached=0)
    log.work("read_file", {"path": "b.txt"}, LONG.replace("line", "row"), cached=200)
    log.work("list_files", {"path": "."}, "a.txt\nb.txt", cached=1_000)
    return log


def test_the_sections_account_for_all_tokens_and_all_money() -> None:
    log = three_steps()
    for turn in ("1", "2", "3"):
        found = report(log, turn)
        assert sum(row.tokens for row in found.sections) == found.tokens == found.reported
        assert sum(row.cached or 0 for row in found.sections) == found.cached
        assert sum(row.cost or 0.0 for row in found.sections) == pytest.approx(found.cost_input)
        assert sum(row.share for row in found.sections) == pytest.approx(1.0)
        assert sum(layer.tokens for layer in found.layers) == found.tokens


def test_what_is_cached_lies_in_front_and_what_is_new_behind() -> None:
    found = report(three_steps(), "3")
    stands = {(row.layer, row.name): row.stability for row in found.sections}
    assert stands["system", "role"] == "frozen"
    assert stands["documentation", "rules"] == "prefix"
    assert stands["current", "current"] == "new"
    rules = next(row for row in found.sections if row.name == "rules")
    assert rules.cached == rules.tokens
    assert rules.origin.startswith("R.md")
    new = next(row for row in found.sections if row.stability == "new")
    assert new.cached == 0


def test_a_price_that_is_unknown_is_no_zero() -> None:
    log = Recording(info(prices=msgspec.structs.replace(info().prices, input=None)))
    log.user("Begin.")
    log.work("read_file", {"path": "a"}, "text", cached=0)
    found = report(log)
    assert {row.cost for row in found.sections} == {None}
    assert found.cost_input is None


def test_without_a_report_of_the_provider_the_estimate_stands_and_says_so() -> None:
    log = Recording()
    log.user("Begin.")
    log.ask()
    found = report(log)
    assert (found.counted, found.reported) == ("estimate", None)
    assert found.tokens == found.estimated
    assert {row.cached for row in found.sections} == {None}


def test_layers_above_their_ceiling_are_marked() -> None:
    log = Recording(info(window=2_000, max_output=100), system="You are. " * 300)
    log.user("Begin.")
    log.ask()
    over = {layer.layer: layer.over for layer in report(log).layers}
    assert over == {"system": True, "current": False}


def test_messages_tell_how_they_stand() -> None:
    log = three_steps()
    calls = [row for row in report(log).messages if row.role == "reply"]
    assert len(calls) == 2
    first, second = [e.body for e in log.events if e.type == "ToolReturned"][:2]
    log.compact(replaced={first.call_id: "[cleared]"}, hidden=(second.message_id,))
    log.work("list_files", {"path": "x"}, "nothing")
    rows = {row.id: row for row in report(log).messages}
    assert (rows[first.message_id].standing, rows[first.message_id].text) == (
        "replaced",
        "[cleared]",
    )
    assert rows[first.message_id].tokens < rows[first.message_id].full
    assert rows[second.message_id].standing == "hidden"
    assert rows[second.message_id].tokens == 0
    log.compact(until=len(log.events), summary="[History Summary]\nOverall Goal: all done")
    log.user("And now?")
    log.ask()
    assert {row.standing for row in report(log).messages if row.role == "reply"} == {"summarised"}
    assert any(row.name == "summary" for row in report(log).sections)


def test_exact_is_what_has_the_recorded_hash_and_nothing_else() -> None:
    log = three_steps()
    calls = calls_of(log.events)
    for moment in moments(log.events, calls):
        head = log.heads[moment.call.body.head]
        data, exact = rebuild(moment, head, log.wires)
        assert exact.exact
        assert data is not None
        assert hashlib.sha256(data).hexdigest() == moment.call.body.body
    assert report(log, head=False).exact.why == "head"


def changed(log: Recording, **fields: object) -> Recording:
    """The log with other facts in its last request."""
    at = max(e.seq for e in log.events if isinstance(e.body, ModelCalled))
    body = msgspec.structs.replace(log.events[at - 1].body, **fields)
    log.events[at - 1] = msgspec.structs.replace(log.events[at - 1], body=body)
    return log


def test_what_can_not_be_exact_says_why() -> None:
    assert report(changed(three_steps(), body="0" * 64)).exact.why == "bytes"
    other = report(changed(three_steps(), body="0" * 64, encoder=99))
    assert (other.exact.exact, other.exact.why) == (False, "encoder")
    unknown = three_steps()
    unknown.wear(info(wire="scripted"), system="You are another.")
    unknown.events[-1] = msgspec.structs.replace(
        unknown.events[-1],
        body=msgspec.structs.replace(unknown.events[-1].body, head="0" * 64),
    )
    assert report(unknown).exact.exact  # a head that nothing was asked with yet


def test_a_step_is_named_by_its_number_and_its_part() -> None:
    log = Recording()
    log.user("Begin.")
    log.ask()
    log.say("one", usage=Usage(input=10), finish="length")
    log.ask(same_step=True)
    log.say("two", usage=Usage(input=10))
    calls = calls_of(log.events)
    assert find_call(calls, None) is find_call(calls, "1") is find_call(calls, "1.2") is calls[1]
    assert find_call(calls, "1.1") is calls[0]
    for wrong in ("2", "1.3", "0", "x", "1.", "-1", ""):
        with pytest.raises(UsageError):
            find_call(calls, wrong)


def test_events_of_other_versions_are_counted_and_disturb_nothing() -> None:
    log = three_steps()
    log.add(Unknown("Telepathy", 3, "{}"))
    log.work("list_files", {"path": "."}, "nothing")
    found = report(log)
    assert found.unknown == 1
    assert found.exact.exact


def test_a_log_without_requests_gives_its_messages() -> None:
    log = Recording()
    log.user("Only this.")
    found = unrecorded("session-1", "", log.events)
    assert (found.requests, found.imported) == (0, False)
    assert [row.text for row in found.messages] == ["Only this."]


def test_two_steps_differ_by_what_came_went_and_changed() -> None:
    log = three_steps()
    first = next(e.body for e in log.events if e.type == "ToolReturned")
    before = report(log, "3")
    log.compact(replaced={first.call_id: "[cleared]"})
    log.work("list_files", {"path": "x"}, "nothing")
    found = difference(("3", before), ("4", report(log)), ({"role": "a"}, {"role": "a"}))
    changes = {(c.change, c.id): c for c in found.messages}
    cleared = changes["changed", first.message_id]
    assert (cleared.was, cleared.now) == ("full", "replaced")
    assert cleared.before > cleared.after
    came = [c.role for c in found.messages if c.change == "came"]
    assert came == ["reply", "result"]
    assert found.unchanged == len(before.messages) - 1
    assert [c.change for c in found.sections if c.layer == "system"] == []
    back = difference(("4", report(log)), ("3", before), ({"role": "a"}, {"role": "b"}))
    assert [c.change for c in back.messages if c.role == "reply"] == ["went"]
    assert [c.name for c in back.sections if c.layer == "system"] == ["role"]


def answer(log: Recording, text: str, turn: str | None = None):
    calls = calls_of(log.events)
    moment = moment_of(log.events, find_call(calls, turn))
    return why(log.events, calls, moment, log.heads.get(moment.call.body.head), text)


def test_why_names_the_call_that_a_text_came_from_and_its_cost() -> None:
    log = three_steps()
    (holder,) = answer(log, "row 77").here
    assert holder.origin == 'read_file {"path":"b.txt"}'
    assert (holder.kind, holder.since, holder.requests) == ("result", 3, 1)
    assert holder.cost == pytest.approx(holder.paid * 3.0 / 1e6, rel=0.01)
    (rule,) = answer(log, "Be kind").here
    assert (rule.layer, rule.section, rule.origin) == ("documentation", "rules", "rules: R.md")
    assert (rule.since, rule.requests) == (1, 3)
    (role,) = answer(log, "You are croze").here
    assert (role.layer, role.section, role.requests) == ("system", "role", 3)


def test_why_tells_what_came_later_and_what_never_came() -> None:
    log = three_steps()
    at_first = answer(log, "row 77", "1")
    assert at_first.here == at_first.gone == ()
    assert [later.origin for later in at_first.later] == ['read_file {"path":"b.txt"}']
    nothing = answer(log, "purple elephants")
    assert (nothing.here, nothing.gone, nothing.later) == ((), (), ())


def test_why_tells_when_and_by_what_a_text_went() -> None:
    log = three_steps()
    first = next(e.body for e in log.events if e.type == "ToolReturned")
    event = log.compact(replaced={first.call_id: "[cleared]"}, reason="too full")
    log.work("list_files", {"path": "x"}, "nothing")
    found = answer(log, "line 77")
    assert found.here == ()
    (gone,) = found.gone
    assert (gone.id, gone.standing, gone.by, gone.by_event) == (
        first.message_id, "replaced", "batch", event,
    )  # fmt: skip
    assert (gone.since, gone.at, gone.reason) == (2, 4, "too full")
    assert [holder.since for holder in answer(log, "line 77", "3").here] == [2]
    (stub,) = answer(log, "[cleared]").here
    assert stub.id == first.message_id


def test_why_knows_of_undone_turns_and_of_summaries() -> None:
    log = three_steps()
    start = len(log.events) + 1
    log.user("Look for the marmot.")
    log.work("list_files", {"path": "x"}, "nothing")
    event = log.undo(start, len(log.events))
    log.user("Something else.")
    log.ask()
    (gone,) = answer(log, "marmot").gone
    assert (gone.standing, gone.by, gone.by_event) == ("undone", "undo", event)
    log.say("yes", usage=Usage(input=100))
    log.compact(until=len(log.events), summary="[History Summary]\nKey Knowledge: badgers dig")
    log.user("Go on.")
    log.ask()
    holder = next(h for h in answer(log, "badgers").here)
    assert (holder.kind, holder.section) == ("summary", "summary")


def test_a_message_costs_the_write_once_and_the_read_from_then_on() -> None:
    log = Recording()
    log.user("Begin.")
    _, name = log.work("read_file", {"path": "a"}, LONG, cached=0)
    for _ in range(4):
        log.work("list_files", {"path": "."}, "x", cached=900)
    seq = next(e.seq for e in log.events if getattr(e.body, "message_id", "") == name)
    paid = follow(log.events, calls_of(log.events), {seq: name})[seq]
    tokens = paid.tokens / 4
    assert (paid.since, paid.requests) == (2, 4)
    assert paid.cost == pytest.approx(tokens * (3.0 + 3 * 0.3) / 1e6, rel=0.02)


def test_spans_are_found_by_the_start_of_their_ids() -> None:
    log = three_steps()
    returned = next(e.body for e in log.events if e.type == "ToolReturned")
    span = find_span(log.events, returned.message_id[:8])
    assert (span.text, span.kind, span.name) == (LONG, "result", "read_file")
    assert find_span(log.events, returned.call_id).id == returned.message_id
    with pytest.raises(MessageNotFound, match="several"):
        find_span(log.events, "0000")
    for wrong in ("zzzzzzzz", "0", ""):
        with pytest.raises(MessageNotFound):
            find_span(log.events, wrong)
    seq = log.compact(until=4, summary="[History Summary]\nOverall Goal: x")
    assert find_span(log.events, f"event:{seq}").kind == "summary"


@given(st.lists(st.sampled_from(["work", "user", "compact", "undo", "fact", "again"]), max_size=14))
def test_whatever_happened_each_request_is_exact_and_its_account_even(kinds: list[str]) -> None:
    log = Recording()
    log.user("Begin.")
    last_user = len(log.events)
    for number, kind in enumerate(kinds):
        results = [e.body for e in log.events if e.type == "ToolReturned"]
        match kind:
            case "work":
                log.work("read_file", {"path": f"{number}"}, f"text {number}\n" * 50, cached=number)
            case "user":
                last_user = len(log.events) + 1
                log.user(f"More {number}.")
            case "fact":
                log.fact("clock", f"It is {number}.", layer="current", place="tail")
            case "compact" if results:
                log.compact(replaced={results[-1].call_id: f"[cleared {number}]"})
            case "undo" if last_user > 3:
                log.undo(last_user, len(log.events))
            case "again":
                log.wear(info(), system=f"You are number {number}.")
            case _:
                pass
    log.user("The last.")
    log.ask()
    calls = calls_of(log.events)
    for moment in moments(log.events, calls):
        head = log.heads[moment.call.body.head]
        _, exact = rebuild(moment, head, log.wires)
        assert exact.exact
        found = report_of(moment, head, exact, calls=calls, events=log.events)
        assert sum(row.tokens for row in found.sections) == found.tokens
        again = moment_of(log.events, moment.call)
        assert [m.parts for m in again.context(head).messages] == [
            m.parts for m in moment.context(head).messages
        ]


def test_a_report_is_a_value_that_goes_through_json() -> None:
    found = report(three_steps())
    assert msgspec.json.decode(msgspec.json.encode(found), type=Report) == found
