"""The policy `digest`: digests from the next step on, five rounds raw, a summary at half of the budget, and
what goes first above it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.context.check import check_context
from croze.context.digest_policy import digest
from croze.context.ledger import ledger_of
from croze.context.project import project
from croze.context.summary import check
from croze.dialect.native import NativeDialect
from croze.dialect.xml import XmlDialect
from croze.llm.openai import OpenAIModel
from croze.types.agent import AgentSpec
from croze.types.context import Budget
from croze.types.event import Compacted, HeadSet
from croze.types.model import ModelInfo
from croze.types.parts import CallResult, Text
from tests.context.sessions import (
    Session,
    looked_at,
    replayed,
    sessions,
    sound,
    standing,
    state_of,
    written,
)

LONG = "".join(f"{n}: a line of the file\n" for n in range(400))


def results(session: Session) -> dict[str, str]:
    return {
        part.call_id: part.text
        for message in standing(session)
        for part in message.parts
        if isinstance(part, CallResult)
    }


def apply(session: Session, *, zone: int | None = None, head: int = 0) -> Compacted | None:
    decision = digest(state_of(session, zone=zone, head=head))
    if decision is None:
        return None
    event = written(session, decision)
    session.add(event)
    return event


def listing(session: Session, digest_text: str = "3 files") -> str:
    return session.call("list_files", {"path": "."}, "a.py\nb.py\nc.py\n" * 40, digest=digest_text)


def test_results_of_the_current_step_stay_in_full_and_stand_as_digests_at_the_next() -> None:
    session = Session()
    session.user("go")
    listing(session)
    assert apply(session) is None
    listing(session)
    event = apply(session)
    assert event is not None
    assert len(event.digested) == 1
    first, second = results(session).values()
    assert first.startswith("3 files")
    assert second.startswith("a.py")


def test_one_event_a_step_that_names_only_what_is_new() -> None:
    session = Session()
    session.user("go")
    for n in range(4):
        listing(session)
        event = apply(session, zone=200_000)
        assert (event is None) == (n == 0)
        if event is not None:
            assert len(event.digested) == 1
            assert event.until == 0
    assert apply(session, zone=200_000) is None


def test_a_result_without_a_stored_digest_is_shortened_by_its_kind() -> None:
    session = Session()
    session.user("go")
    session.call("execute_command", {"command": "make"}, LONG)
    session.call("read_file", {"path": "a.py"}, "x = 1\n" * 300)
    session.call("read_file", {"path": "b.py"}, "y = 1\n")
    event = apply(session, zone=100_000)
    assert event is not None
    (shown,) = event.replaced.values()
    assert "399: a line of the file" in shown
    assert "380: a line" in shown
    assert "379: a line" not in shown


def test_from_half_of_the_budget_on_a_summary_stands_for_all_but_five_rounds() -> None:
    session = Session()
    request = session.user("Write the loader.")
    for n in range(12):
        session.call("read_file", {"path": f"src/file_{n}.py"}, "value = 1\n" * 250)
        event = apply(session, zone=16_000, head=2_000)
        if event is not None and event.until:
            break
    assert event is not None
    assert event.tokens_before >= 8_000
    assert check(event.summary) is None
    shown = standing(session)
    assert request in {entry.id for entry in ledger_of(session.events).entries if entry.tokens}
    assert len(results(session)) == 5
    texts = [part.text for part in shown[0].parts if isinstance(part, Text)]
    assert texts[0].startswith("Write the loader.")
    assert texts[-1].startswith("[History Summary]")


def test_no_summary_is_asked_for_that_frees_next_to_nothing() -> None:
    session = Session()
    session.user("x" * 60_000)
    for _ in range(9):
        session.call("read_file", {"path": "a"}, "tiny")
    decision = digest(state_of(session, zone=16_000))
    assert decision is None


def test_above_the_budget_results_become_pieces_the_oldest_first() -> None:
    session = Session()
    session.user("go")
    for n in range(4):
        session.call("read_file", {"path": f"{n}.py"}, f"{n} = 1\n" * 480)
    decision = digest(state_of(session, zone=2_400))
    assert decision is not None
    assert not decision.summarise
    session.add(decision.event)
    sizes = [len(text) for text in results(session).values()]
    assert sizes[0] < 600
    assert sizes[1] < 600
    assert sizes[3] > 2_800, "the current step's result stays in full"
    assert sizes[2] > 2_800, "no more than the budget asks for"
    assert decision.event.tokens_after <= 2_400


def test_above_the_budget_fewer_rounds_stay_raw_but_never_less_than_two() -> None:
    session = Session()
    session.user("go")
    for n in range(6):
        session.asked()
        session.said("thinking aloud " * 300)
        session.user(f"and {n}")
    decision = digest(state_of(session, zone=3_000))
    assert decision is not None
    assert decision.summarise
    session.add(written(session, decision))
    replies = [entry for entry in ledger_of(session.events).entries if entry.kind == "reply"]
    assert [entry.standing for entry in replies] == ["summarised"] * 4 + ["full"] * 2


def test_a_summary_that_stands_is_cut_to_one_sentence_a_line() -> None:
    session = Session()
    session.user("go")
    for n in range(8):
        session.call("read_file", {"path": f"{n}.py"}, "v\n" * 10)
    field = "One thing is done. Another one is not yet done and it takes a while to say so."
    summary = "[History Summary]\n" + "\n".join(
        f"- {name}: {field} {name}"
        for name in (
            "Overall Goal",
            "Current Plan & Progress",
            "Environment / Files",
            "Key Knowledge / Insights",
            "Recent Actions",
            "Left-off Point",
        )
    )
    replies = [entry for entry in ledger_of(session.events).entries if entry.kind == "reply"]
    until = replies[-2].seq - 1
    session.add(Compacted("digest", "r", until=until, summary=summary, figures={"step": 8.0}))
    before = ledger_of(session.events).tokens
    decision = digest(state_of(session, zone=before - 60))
    assert decision is not None
    assert not decision.summarise
    assert decision.event.until == until
    assert decision.event.summary.count("\n- ") == 6
    assert "Another one" not in decision.event.summary
    session.add(decision.event)
    assert ledger_of(session.events).tokens == decision.event.tokens_after


def test_what_the_model_let_go_of_goes_with_its_call_but_never_the_request() -> None:
    session = Session()
    request = session.user("go")
    gone = listing(session)
    listing(session)
    session.mark(request, gone, "no-such-id")
    event = apply(session, zone=100_000)
    assert event is not None
    assert event.hidden == (gone,)
    sound(session)
    assert len(results(session)) == 1


def test_documentation_is_never_touched() -> None:
    session = Session()
    rules = session.fact("rules", "Never do this. " * 2_000)
    session.user("go")
    for n in range(9):
        session.call("read_file", {"path": f"{n}.py"}, LONG)
    for _ in range(3):
        apply(session, zone=4_000)
    entry = ledger_of(session.events).by_id[rules]
    assert entry.tokens == entry.full
    assert "Never do this." in str(standing(session)[0].parts)


def test_one_giant_result_is_seen_once_in_full_and_then_is_a_piece() -> None:
    session = Session()
    session.user("go")
    session.call("read_file", {"path": "big.txt"}, "data " * 200_000)
    assert digest(state_of(session)) is None
    session.call("read_file", {"path": "small.txt"}, "data")
    event = apply(session)
    assert event is not None
    assert event.tokens_after < 1_000


def test_where_nothing_else_is_left_even_the_current_step_is_shortened() -> None:
    session = Session()
    session.user("go")
    session.call("read_file", {"path": "big.txt"}, "data " * 200_000)
    decision = digest(state_of(session, forced=True))
    assert decision is not None
    assert decision.event.tokens_after < 1_000


def test_after_an_undo_it_goes_on_from_what_stands() -> None:
    session = Session()
    session.user("go")
    listing(session)
    listing(session)
    apply(session)
    first = session.last + 1
    listing(session)
    apply(session)
    session.undo(first, session.last)
    session.user("again")
    listing(session)
    event = apply(session)
    assert event is not None
    sound(session)
    texts = list(results(session).values())
    assert [text.startswith("3 files") for text in texts] == [True, True, False]


def test_an_empty_log_needs_nothing() -> None:
    assert digest(state_of(Session())) is None


@pytest.mark.parametrize("takes", [True, False])
def test_the_summary_is_a_system_message_where_the_model_takes_one_amid_the_history(
    takes: bool,
) -> None:
    session = Session()
    info = ModelInfo("acme", "m", 100_000, 8_000, base_url="http://x/v1", mid_system=takes)
    session.add(HeadSet(AgentSpec(), info, "native", "h", 1))
    session.user("Write the loader.")
    for n in range(12):
        session.call("read_file", {"path": f"src/file_{n}.py"}, "value = 1\n" * 250)
    event = apply(session, zone=16_000, head=2_000)
    assert event is not None
    assert event.summary
    context = project(session.events, "You are an agent.", (), ())
    assert check_context(context, Budget(window=1_000_000, reserve=0)) == []
    for dialect in (NativeDialect(), XmlDialect()):
        body = OpenAIModel(info, api_key=None).encode(dialect.encode(context))
        messages = json.loads(body)["messages"]
        found = [m for m in messages if "[History Summary]" in str(m["content"])]
        assert [m["role"] for m in found] == ["system" if takes else "user"]
        assert ("Write the loader." in found[0]["content"].splitlines()[0]) != takes


@settings(max_examples=200, deadline=None)
@given(
    sessions(),
    st.sampled_from([None, 200, 2_000, 8_000]),
    st.sampled_from([0, 3_000]),
    st.booleans(),
)
def test_any_decision_keeps_pairs_and_says_what_will_stand(
    session: Session, zone: int | None, head: int, forced: bool
) -> None:
    state = state_of(session, zone=zone, head=head, forced=forced)
    decision = digest(state)
    assert decision == digest(state_of(session, zone=zone, head=head, forced=forced))
    if decision is None:
        return
    after = replayed(session, written(session, decision))
    sound(after)
    ledger = ledger_of(after.events)
    planned = decision.event.tokens_after - head
    if decision.summarise:
        assert ledger.tokens <= planned + 1_000, "a summary takes about what was planned for it"
    else:
        assert ledger.tokens == planned
        assert planned < state.ledger.tokens
    again = digest(state_of(after, zone=zone, head=head))
    if again is not None:
        assert not set(again.event.digested) & set(decision.event.digested)
        assert again.event.tokens_after <= again.event.tokens_before


@pytest.mark.parametrize("zone", [2_000, 16_000])
def test_a_long_session_stays_near_its_budget_and_each_step_looks_at_little(zone: int) -> None:
    session = Session()
    session.user("go")
    summaries = 0
    for n in range(120):
        session.call("read_file", {"path": f"{n}.py"}, f"line {n}\n" * 60, digest=f"{n}.py read")
        event = apply(session, zone=zone)
        if event is not None:
            summaries += bool(event.until)
            assert len(event.digested) + len(event.replaced) <= 5
        assert ledger_of(session.events).tokens <= zone + 500
    sound(session)
    assert summaries < 120 / 3


def test_below_half_of_its_budget_a_step_looks_at_what_is_new_only() -> None:
    session = Session()
    session.user("go")
    for n in range(200):
        session.call("read_file", {"path": f"{n}.py"}, f"line {n}\n" * 60, digest=f"{n}.py read")
        apply(session, zone=1_000_000)
    listing(session)
    assert looked_at(state_of(session, zone=1_000_000), digest) < 60
