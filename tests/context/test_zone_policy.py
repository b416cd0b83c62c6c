"""The policy `zone`: above the safe zone what was let go of, then the oldest results, then long arguments;
the newest six stay."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.context.ledger import ledger_of
from croze.context.zone_policy import CUT, SAFE_ZONE, zone
from croze.types.event import Compacted
from croze.types.parts import CallResult, ToolCall
from tests.context.sessions import Session, looked_at, replayed, sessions, sound, standing, state_of

TEXT = "a line of output\n" * 200


def results(session: Session) -> list[CallResult]:
    return [p for m in standing(session) for p in m.parts if isinstance(p, CallResult)]


def calls(session: Session) -> list[ToolCall]:
    return [p for m in standing(session) for p in m.parts if isinstance(p, ToolCall)]


def apply(session: Session, safe: int) -> Compacted | None:
    decision = zone(state_of(session, zone=safe))
    if decision is None:
        return None
    session.add(decision.event)
    return decision.event


def worked(count: int) -> Session:
    session = Session()
    session.user("go")
    for n in range(count):
        session.run(f"make {n}", TEXT, code=n % 2)
    return session


def test_in_the_safe_zone_nothing_changes() -> None:
    session = worked(10)
    assert zone(state_of(session)) is None
    assert state_of(session).tokens < SAFE_ZONE


def test_above_it_just_enough_results_are_cleared_the_oldest_first() -> None:
    session = worked(12)
    safe = state_of(session).tokens - 1_500
    event = apply(session, safe)
    assert event is not None
    assert event.tokens_before > safe >= event.tokens_after
    shown = results(session)
    assert [part.text.startswith("[cleared") for part in shown] == [True] * 2 + [False] * 10
    assert ledger_of(session.events).tokens == event.tokens_after


def test_a_cleared_result_keeps_its_tag_and_success_and_says_how_to_get_it_back() -> None:
    session = worked(12)
    first = [e for e in ledger_of(session.events).entries if e.kind == "result"][1]
    apply(session, state_of(session).tokens - 1_500)
    part = results(session)[1]
    assert (part.name, part.ok, part.message) == ("execute_command", False, "Exit code 1.")
    assert part.text.startswith("[cleared to save room: execute_command make 1, about ")
    assert f"read_result {first.id[:8]}" in part.text


def test_the_six_newest_that_could_be_cleared_stay() -> None:
    session = worked(9)
    apply(session, 1)
    shown = results(session)
    # Calls count too: the newest three calls and their three results are six.
    assert [part.text.startswith("[cleared") for part in shown] == [True] * 6 + [False] * 3
    assert apply(session, 1) is None


def test_what_the_model_let_go_of_goes_first_and_only_above_the_zone() -> None:
    session = worked(9)
    entry = [e for e in ledger_of(session.events).entries if e.kind == "result"][4]
    session.mark(entry.id)
    assert zone(state_of(session)) is None
    event = apply(session, state_of(session).tokens - 10)
    assert event is not None
    assert event.hidden == (entry.id,)
    assert event.replaced == {}
    sound(session)
    assert len(calls(session)) == 8


def test_long_arguments_are_cut_when_no_result_is_left() -> None:
    session = Session()
    session.user("go")
    for n in range(8):
        args = {"path": f"{n}.py", "content": "x = 1\n" * 400, "notes": "n" * 900}
        session.call("write_to_file", args, "", message="Written.")
    event = apply(session, state_of(session).tokens - 1_000)
    assert event is not None
    assert event.replaced == {}
    first, *others = calls(session)
    assert len(first.args["content"]) < CUT + 60
    assert first.args["content"].startswith("x = 1\n" * 80)
    assert first.args["content"].endswith("[1,900 more characters cut to save room]")
    assert first.args["notes"] == "n" * 900
    assert first.args["path"] == "0.py"
    assert len(others[1].args["content"]) == 2_400
    assert ledger_of(session.events).tokens == event.tokens_after


def test_it_goes_on_from_where_it_stopped() -> None:
    session = worked(20)
    safe = 4_000
    cleared: list[str] = []
    for n in range(20, 40):
        event = apply(session, safe)
        if event is not None:
            assert not set(event.replaced) & set(cleared)
            cleared += event.replaced
        session.run(f"make {n}", TEXT)
    order = [e.call_id for e in ledger_of(session.events).entries if e.kind == "result"]
    assert cleared == order[: len(cleared)]


def test_a_step_looks_at_what_is_new_only() -> None:
    session = worked(300)
    apply(session, 4_000)
    session.run("make more", TEXT)
    assert looked_at(state_of(session, zone=4_000), zone) < 60


def test_one_giant_result_that_was_not_seen_yet_stays() -> None:
    session = worked(3)
    giant = session.run("cat big", "data " * 100_000)
    apply(session, SAFE_ZONE)
    assert ledger_of(session.events).by_id[giant].standing == "full"
    forced = zone(state_of(session, forced=True))
    assert forced is not None
    assert forced.event.tokens_after < 5_000


def test_small_results_are_left_alone() -> None:
    session = Session()
    session.user("x" * 20_000)
    for n in range(20):
        session.run(f"true {n}", "ok")
    assert zone(state_of(session, zone=100)) is None


def test_after_an_undo_and_in_a_new_process_it_decides_the_same() -> None:
    session = worked(12)
    apply(session, state_of(session).tokens - 1_500)
    first = session.last + 1
    session.run("make more", TEXT)
    apply(session, 4_000)
    session.undo(first, session.last)
    session.user("again")
    event = apply(session, 4_000)
    assert event is not None
    sound(session)
    assert ledger_of(session.events).tokens == event.tokens_after
    stored = msgspec.json.decode(msgspec.json.encode(event), type=Compacted)
    assert stored == event


@settings(max_examples=200, deadline=None)
@given(sessions(), st.sampled_from([50, 500, 4_000]), st.booleans())
def test_any_decision_keeps_pairs_and_says_what_will_stand(
    session: Session, safe: int, forced: bool
) -> None:
    state = state_of(session, zone=safe, forced=forced)
    decision = zone(state)
    assert decision == zone(state_of(session, zone=safe, forced=forced))
    if decision is None:
        return
    after = replayed(session, decision.event)
    sound(after)
    assert ledger_of(after.events).tokens == decision.event.tokens_after
    assert decision.event.tokens_after < state.tokens
    again = zone(state_of(after, zone=safe, forced=forced))
    assert again is None or again.event.tokens_after < decision.event.tokens_after
