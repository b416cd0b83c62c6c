"""Recovery cuts a context that is about to overflow down to what fits, gently first, to the bone last."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from croze.context.check import check_context
from croze.context.ledger import Ledger, ledger_of
from croze.context.policies import overflows
from croze.context.project import project
from croze.context.recover import recover
from croze.types.context import Budget
from croze.types.event import Compacted, Event, FactAdded
from croze.types.parts import CallResult, Text
from tests.context.long_sessions import HEAD, Story, content

BUDGET = Budget(window=20_000, reserve=4_000)


def recovered(story: Story, **options: object) -> Compacted:
    decision = recover(story.state(policy="none", **{"budget": BUDGET, **options}))  # type: ignore[arg-type]
    assert decision is not None
    event = decision.event
    return replace(event, summary="S" * 2_000, receipt="R" * 500) if decision.summarise else event


def after(story: Story, event: Compacted) -> Ledger:
    last = story.events[-1]
    return ledger_of([*story.events, Event("s", last.seq + 1, last.at, event)])


def texts(story: Story, event: Compacted) -> str:
    last = story.events[-1]
    events = [*story.events, Event("s", last.seq + 1, last.at, event)]
    context = project(events, "head", (), ())
    wide = Budget(window=10**9, reserve=0)
    assert [c for c in check_context(context, wide) if c.level == "error"] == []
    return "\n".join(
        p.text for m in context.messages for p in m.parts if isinstance(p, Text | CallResult)
    )


def full(reads: int = 10, tokens: int = 1_200) -> Story:
    story = Story()
    story.says("Please mend it.")
    for number in range(reads):
        story.reads(f"file{number}.py", tokens)
    return story


def test_below_nine_tenths_of_the_window_nothing_is_taken() -> None:
    story = full(reads=8)
    state = story.state(budget=BUDGET)
    assert state.tokens <= 0.9 * BUDGET.available
    assert not overflows(state)
    assert recover(state) is None


def test_above_it_results_go_first_down_to_eight_tenths() -> None:
    story = full()
    event = recovered(story)
    assert (event.policy, event.until, event.summary) == ("recovery", 0, "")
    assert event.replaced
    assert 0.6 * BUDGET.available < event.tokens_after <= 0.8 * BUDGET.available
    assert HEAD + after(story, event).tokens == event.tokens_after


def test_examples_and_active_context_go_before_anything_else() -> None:
    story = full(reads=2)
    for key in ("examples", "active_context:src"):
        text = content(key.partition(":")[0], 5_000)
        story.add(FactAdded(key=key, message_id=key, text=text, reply="Noted.", tokens=5_000))
    story.reads("last.py", 1_000)
    event = recovered(story)
    assert set(event.hidden) == {"examples", "active_context:src"}
    assert (event.replaced, event.until) == ({}, 0)


def test_then_the_oldest_history_becomes_a_summary() -> None:
    story = Story()
    story.says("Please mend it.")
    for number in range(12):
        story.does(("search_files", {"regex": "r"}, "none"), text=content(f"w{number}", 1_000))
    event = recovered(story)
    assert event.until > 0
    shown = texts(story, event)
    assert "Please mend it." in shown
    assert after(story, event).tokens + HEAD <= 0.8 * BUDGET.available


def test_at_last_only_the_request_and_the_last_step_stay_and_fit() -> None:
    story = Story()
    for number in range(5):
        story.says(f"Question {number}. " + content(f"q{number}", 2_000))
        story.reads(f"file{number}.py", 2_000)
    story.says("The request.")
    story.reads("huge.py", 30_000)
    event = recovered(story)
    shown = texts(story, event)
    assert "The request." in shown
    assert "value_of_huge" in shown
    assert "characters left out to fit the window; read_result" in shown
    assert "Question 0." not in shown
    assert after(story, event).tokens + HEAD <= BUDGET.available


def test_the_providers_word_counts_more_than_our_estimate() -> None:
    story = full(reads=6)
    assert recover(story.state(budget=BUDGET)) is None
    event = recovered(story, forced=True)
    assert event.tokens_after <= 0.8 * event.tokens_before
    story.takes(event)
    again = recovered(story, forced=True)
    assert again.tokens_after < event.tokens_after


def test_where_nothing_can_be_taken_there_is_no_event() -> None:
    story = Story()
    story.says(content("paste", 30_000))
    assert recover(story.state(budget=BUDGET)) is None


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.sampled_from([40, 300, 2_500, 9_000]), min_size=1, max_size=12),
    words=st.sampled_from([5, 700]),
    window=st.sampled_from([8_192, 20_000]),
    said=st.integers(0, 3),
)
def test_whatever_was_read_what_is_left_fits_and_breaks_no_rule(
    sizes: list[int], words: int, window: int, said: int
) -> None:
    story = Story()
    story.says("Begin.")
    for number, size in enumerate(sizes):
        if number % 4 == said:
            story.says(f"More {number}.")
        story.does(
            ("read_file", {"path": f"{number}.py"}, content(f"n{number}", size)),
            text=content(f"w{number}", words),
        )
    budget = Budget(window=window, reserve=window // 8)
    decision = recover(story.state(budget=budget))
    if decision is None:
        assert story.state(budget=budget).tokens <= 0.9 * budget.available
        return
    event = recovered(story, budget=budget)
    texts(story, event)
    assert after(story, event).tokens + HEAD <= budget.available


@pytest.mark.parametrize("forced", [True, False])
def test_it_decides_the_same_again(forced: bool) -> None:
    story = full(reads=30)
    first = recover(story.state(budget=BUDGET, forced=forced))
    assert first == recover(story.state(budget=BUDGET, forced=forced))
