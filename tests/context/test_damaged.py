"""A damaged log: results that stand twice, that answer no call, or that are missing. Each call is sent with
one result all the same, and a damaged place ends no turn."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from croze.context.ledger import Ledger, ledger_of
from croze.context.project import Projection, project
from croze.context.standing import NO_RESULT
from croze.types.event import Body, Compacted, Event, ModelCalled, ModelSaid, ToolReturned, Undone
from croze.types.parts import CallResult, ToolCall
from tests.context.session_logs import called, logged, sessions
from tests.context.test_project_compacted import context_of, errors, plain, texts


@st.composite
def damaged(draw: st.DrawFn) -> list[Event]:
    """A session with results put in that don't belong there, and with others taken out."""
    log = draw(sessions(compactions=True, steps=2))
    results = [event.body for event in log if isinstance(event.body, ToolReturned)]
    extra = st.tuples(st.integers(0, len(log)), st.booleans())
    bodies: list[Body] = []
    now = {0: 0}
    added = draw(st.lists(extra, max_size=4))
    for event in log:
        lost = isinstance(event.body, ToolReturned) and draw(st.integers(0, 9)) == 0
        if not lost:
            bodies.append(moved(event.body, now))
        now[event.seq] = len(bodies)
        for number, (place, orphan) in enumerate(added):
            if place == event.seq and results:
                twice = draw(st.sampled_from(results))
                call = f"orphan{number:03d}" if orphan else twice.call_id
                name = f"{len(bodies):08x}-added"
                bodies.append(replace(twice, call_id=call, message_id=name, text="not to be sent"))
    return logged(bodies)


def moved(body: Body, now: dict[int, int]) -> Body:
    """The body with the events that it names where they stand now."""
    if isinstance(body, Compacted):
        return replace(body, until=now[body.until])
    if isinstance(body, Undone):
        return replace(body, hidden=tuple((now[a - 1] + 1, now[b]) for a, b in body.hidden))
    return body


@settings(max_examples=100)
@given(damaged())
def test_each_call_that_is_sent_has_one_result_whatever_the_log_holds(log: list[Event]) -> None:
    projection, ledger = Projection(), Ledger()
    for seq, event in enumerate(log, 1):
        projection.feed(event)
        ledger.feed(event)
        if isinstance(event.body, ModelCalled) and event.body.purpose == "main":
            now = projection.context("head", (), (), prefill=event.body.prefill)
            assert errors(now) == []
            assert ledger.tokens == sum(m.tokens for m in projection.context("", (), ()).messages)
        if isinstance(event.body, Compacted) or seq == len(log):
            assert plain(projection.context("", (), ()).messages) == plain(
                project(log[:seq], "", (), ()).messages
            )


CALL = ToolCall(id="c1", name="read_file", args={"path": "a"}, raw="<read_file>")
SAID = ModelSaid("m1", step=1, model="m", parts=(CALL,))
RESULT = ToolReturned("c1", "r1", name="read_file", ok=True, text="all of it", tokens=3)


def test_a_second_result_is_not_sent() -> None:
    twice = replace(RESULT, message_id="r2", text="something else")
    log = logged([called(1), SAID, RESULT, twice, called(2)])
    assert "all of it" in texts(context_of(log))
    assert "something else" not in texts(context_of(log))
    assert ledger_of(log).tokens == context_of(log).tokens


def test_a_missing_result_is_said_to_be_missing_when_the_log_goes_on() -> None:
    late = [SAID, called(2), RESULT, replace(SAID, message_id="m2", parts=()), called(3)]
    log = logged([called(1), *late])
    sent = context_of(log)
    results = [p for m in sent.messages for p in m.parts if isinstance(p, CallResult)]
    assert [(r.call_id, r.ok, r.message) for r in results] == [("c1", False, NO_RESULT)]


def test_what_a_running_call_has_not_given_yet_is_no_damage() -> None:
    sent = context_of(logged([called(1), SAID]))
    assert NO_RESULT not in str(sent.messages)
