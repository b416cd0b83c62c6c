"""The policy `batch`: when it acts, what it takes first, what it never takes, and when it stops."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from croze.context.batch import batch, break_even, calls_left, diagnosis
from croze.context.check import check_context
from croze.context.ledger import ledger_of
from croze.context.policies import Decision, Zone, decide, high_of, parse_zone, zone_of
from croze.context.project import project
from croze.context.rank import candidates
from croze.types.context import Budget
from croze.types.event import Compacted, Event, FactAdded, Notice, ToolReturned
from croze.types.model import Prices
from croze.types.tool import Look
from tests.context.long_sessions import HEAD, WIDE, Story, after, content

ZONE = 20_000


def long_story(reads: int = 16, tokens: int = 1_200) -> Story:
    story = Story()
    story.says("Please mend it.")
    for number in range(reads):
        story.reads(f"file{number}.py", tokens)
    return story


def decided(story: Story, **options: object) -> Decision:
    decision = decide(story.state(zone=ZONE, **options))  # type: ignore[arg-type]
    assert decision is not None
    return decision


def taken(story: Story, **options: object) -> list[str]:
    """The message ids of the results that a decision clears, in the order of the log."""
    event = decided(story, **options).event
    ledger = story.ledger
    return [ledger.by_call[call].id for call in event.replaced]


def test_nothing_happens_below_the_watermark() -> None:
    assert decide(long_story(reads=8).state(zone=ZONE)) is None


def test_one_batch_goes_down_to_the_low_watermark() -> None:
    story = long_story()
    event = decided(story).event
    assert event.tokens_before > ZONE
    assert ZONE * 0.35 < event.tokens_after <= ZONE * 0.5
    ledger = after(story, event)
    assert HEAD + ledger.tokens == event.tokens_after
    assert (event.until, event.hidden, event.cut) == (0, (), {})


def test_the_last_six_messages_small_results_and_the_user_are_never_cleared() -> None:
    story = long_story(reads=9)
    small = story.does(("read_file", {"path": "small.py"}, content("small", 100)))[0]
    for number in range(3):
        story.reads(f"late{number}.py", 2_000)
    event = decided(story).event
    ledger = after(story, event)
    late = [e for e in ledger.entries if e.kind == "result"][-3:]
    assert all(e.standing == "full" for e in late)
    assert ledger.by_id[small].standing == "full"
    assert all(e.standing == "full" for e in ledger.entries if e.kind == "user" or e.pinned)


def test_what_was_read_again_goes_first_then_what_was_edited_since() -> None:
    story = long_story(reads=2)
    first = story.reads("again.py", 2_000)
    changed = story.reads("changed.py", 2_000)
    story.does(("replace_in_file", {"path": "changed.py", "diff": "x"}, "Edited."))
    story.reads("again.py", 2_000)
    for number in range(7):
        story.reads(f"more{number}.py", 2_000)
    assert set(taken(story)) >= {first, changed}
    order = list(decided(story).event.replaced)
    ledger = story.ledger
    assert [ledger.by_call[call].id for call in order][:2] == [first, changed]


def test_a_part_of_a_file_is_superseded_by_a_later_read_of_more_of_it() -> None:
    story = long_story(reads=2)
    part = story.reads("big.py", 2_000, start_line=10, end_line=20)
    other = story.reads("big.py", 2_000, start_line=500, end_line=600)
    story.reads("big.py", 2_000, start_line=1, end_line=100)
    for number in range(7):
        story.reads(f"more{number}.py", 2_000)
    order = [story.ledger.by_call[call].id for call in decided(story).event.replaced]
    assert order[0] == part
    assert order.index(other) > 0 if other in order else True


def test_listings_and_logs_go_before_reads_and_quoted_results_stay_longest() -> None:
    story = Story()
    story.says("Please mend it.")
    quoted = story.reads("quoted.py", 2_000)
    plain = story.reads("plain.py", 2_000)
    listing = story.does(("list_files", {"path": "lib"}, content("listing", 2_000)))[0]
    log = story.does(("execute_command", {"command": "make"}, content("log", 2_000)))[0]
    for number in range(9):
        story.reads(f"more{number}.py", 1_000)
    story.does(("search_files", {"regex": "compute_quoted"}, "one match"))
    order = [story.ledger.by_call[call].id for call in decided(story).event.replaced]
    assert order.index(listing) < order.index(plain)
    assert order.index(log) < order.index(plain)
    assert quoted not in order


def test_an_open_error_stays_until_the_same_thing_succeeds() -> None:
    story = Story()
    story.says("Please mend it.")
    error = story.does(("execute_command", {"command": "make"}, content("e", 2_000)), ok=False)[0]
    for number in range(10):
        story.reads(f"more{number}.py", 2_000)
    assert error not in taken(story)
    story.does(("execute_command", {"command": "make"}, "fine"))
    assert error in taken(story)


def test_a_stub_names_tool_path_size_and_the_way_back() -> None:
    story = long_story()
    event = decided(story).event
    call, text = next(iter(event.replaced.items()))
    entry = story.ledger.by_call[call]
    assert entry.args["path"] in text
    assert f"{entry.full:,}" in text
    assert f"read_result {entry.id[:8]}" in text


def test_a_summary_comes_only_where_clearing_is_not_enough() -> None:
    story = Story()
    story.says("Please mend it.")
    for number in range(40):  # words of the model can't be cleared
        story.does(
            ("search_files", {"regex": f"r{number}"}, "none"), text=content(f"w{number}", 500)
        )
    decision = decided(story)
    event = decision.event
    assert decision.summarise
    assert event.until > 0
    kept = [e for e in story.ledger.entries if e.seq > event.until and e.kind == "reply"]
    assert len(kept) == 6
    assert event.tokens_after <= ZONE * 0.75


def test_hot_results_stay_verbatim_beside_a_summary_with_their_calls() -> None:
    story = Story()
    story.says("Please mend it.")
    hot = story.reads("hot.py", 1_500)
    story.reads("cold.py", 1_500)
    for number in range(40):
        story.does(
            ("search_files", {"regex": f"r{number}"}, "none"), text=content(f"w{number}", 500)
        )
    story.does(("search_files", {"regex": "compute_hot"}, "none"))
    event = decided(story).event
    assert hot in event.pinned
    whole = replace(event, summary="S", receipt="R")
    ledger = after(story, whole)
    assert ledger.by_id[hot].standing == "full"
    made = ledger.call_of(ledger.by_id[hot].call_id)
    assert made is not None
    assert made[0].standing == "full"
    pinned = sum(ledger.by_id[i].tokens for i in event.pinned)
    assert pinned <= ZONE * 0.2


def test_arguments_are_cut_last() -> None:
    story = Story()
    story.says("Write the files.")
    for number in range(8):
        story.does(
            (
                "write_to_file",
                {"path": f"{number}.py", "content": content(str(number), 4_000)},
                "ok",
            )
        )
    event = decided(story).event
    assert event.until > 0
    assert event.cut
    assert set(next(iter(event.cut.values()))) == {"content"}
    ledger = after(story, replace(event, summary="S"))
    last = [e for e in ledger.entries if e.kind == "reply"][-3:]
    assert all(not e.cut for e in last)


def test_after_a_batch_the_context_must_grow_before_the_next() -> None:
    story = long_story()
    story.takes(replace(decided(story).event, tokens_after=ZONE + 100))
    for number in range(2):
        story.reads(f"x{number}.py", 300)
    state = story.state(zone=ZONE)
    assert decide(replace(state, tokens=ZONE + 2_000)) is None
    grown = replace(state, tokens=ZONE + 2_200)
    assert batch(grown) is None or decide(grown) is not None


def test_a_batch_that_gains_too_little_is_left_out_and_said() -> None:
    story = Story()
    story.says(content("paste", 17_000))
    for number in range(4):
        story.reads(f"x{number}.py", 700)
    state = story.state(zone=ZONE)
    assert state.tokens > ZONE
    assert decide(state) is None
    notice = diagnosis(state)
    assert notice is not None
    assert notice.code == "compaction_stuck"
    assert "your messages" in notice.text
    story.add(Notice("warning", notice.code, notice.text, notice.params))
    assert diagnosis(story.state(zone=ZONE)) is None
    story.reads("much.py", 2_500)
    assert diagnosis(story.state(zone=ZONE)) is not None


def test_what_the_model_lets_go_of_waits_until_it_pays() -> None:
    story = long_story(reads=6, tokens=1_500)
    old = story.ledger.entries[3].id
    story.marks(old)
    assert decide(story.state(zone=ZONE)) is None
    newest = [e.id for e in story.ledger.entries if e.kind == "result"][-2]
    story.marks(old, newest)
    (only,) = taken(story)
    assert only == newest
    event = decided(story).event
    assert event.figures["break_even"] < event.figures["calls_left"]


def test_a_cold_cache_makes_letting_go_free() -> None:
    story = long_story(reads=6, tokens=1_500)
    old = next(e.id for e in story.ledger.entries if e.kind == "result")
    story.marks(old)
    assert taken(story, idle=301.0) == [old]
    assert taken(story, idle=None) == [old]
    assert decide(story.state(zone=ZONE, idle=299.0)) is None


def test_the_users_words_stay_though_the_model_lets_go_of_them() -> None:
    story = long_story(reads=4)
    story.marks(story.says("Never touch main.py."), "law", "env")
    assert decide(story.state(zone=ZONE, idle=None)) is None


def test_what_the_model_has_not_seen_yet_is_not_taken() -> None:
    story = long_story(reads=4)
    newest = [e.id for e in story.ledger.entries if e.kind == "result"][-1]
    story.marks(newest)
    assert decide(story.state(zone=ZONE, idle=None)) is None


def test_a_cold_cache_is_used_a_little_below_the_watermark() -> None:
    story = long_story(reads=11)
    assert ZONE * 0.75 < story.state().tokens < ZONE
    assert decide(story.state(zone=ZONE)) is None
    event = decided(story, idle=None).event
    assert event.tokens_after <= ZONE * 0.5
    assert event.reason == "the cache is cold"


@pytest.mark.parametrize(
    ("prices", "factor"),
    [
        (Prices(), 11.5),
        (Prices(input=3.0, cached=0.3, cache_write=3.75), 11.5),
        (Prices(input=1.0, cached=0.25, cache_write=1.0), 3.0),
        (Prices(input=1.0, cached=0.1, cache_write=1.0), 9.0),
    ],
)
def test_break_even_is_the_price_of_writing_over_that_of_reading(
    prices: Prices, factor: float
) -> None:
    state = long_story(reads=1).state(prices=prices)
    assert break_even(state, 1_000, 1_000) == pytest.approx(factor)
    assert break_even(state, 500, 1_000) == pytest.approx(factor / 2)
    assert break_even(state, 0, 1_000) == 0


def test_a_turn_is_expected_to_go_on_for_as_long_as_it_has() -> None:
    assert calls_left(long_story(reads=1).state()) == 3
    assert calls_left(long_story(reads=20).state()) == 20
    story = long_story(reads=30)
    story.says("And now?")
    assert calls_left(story.state()) == 15


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("80k", 81_920), ("1.5M", 1_572_864), ("81920", 81_920), ("0.5", 0.5), (".25", 0.25), ("auto", None)],
)  # fmt: skip
def test_a_zone_is_written_as_a_size_a_number_or_a_share(text: str, tokens: object) -> None:
    assert parse_zone(text) == tokens


@pytest.mark.parametrize("text", ["", "0", "1.0", "1.5", "-3", "80 kb", "0.0", "k", "all", "80G"])
def test_anything_else_is_no_zone(text: str) -> None:
    with pytest.raises(ValueError, match="is no zone"):
        parse_zone(text)


def test_the_watermark_follows_the_window_and_the_users_zone() -> None:
    story = long_story(reads=1)
    small = Budget(window=32_000, reserve=8_000)
    assert high_of(story.state()) == 80_000
    assert high_of(story.state(budget=small)) == 19_200
    assert high_of(story.state(zone=10_000)) == 10_000
    assert high_of(story.state(zone=500_000)) == 162_000
    assert zone_of("batch", "0.5", small).zone == 12_000
    assert zone_of("zone", "", small).policy == "none"


def test_the_policy_none_never_acts() -> None:
    story = long_story(reads=60)
    assert decide(story.state(policy="none", zone=ZONE)) is None


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_it_decides_the_same_again_and_what_it_decides_breaks_no_rule(data: st.DataObject) -> None:
    draw = data.draw
    story = Story()
    budget = draw(st.sampled_from([WIDE, Budget(window=8_192, reserve=2_048)]))
    zone = draw(st.sampled_from([None, 9_000, 20_000]))
    for turn in range(draw(st.integers(1, 3))):
        story.says(f"Turn {turn}.")
        for _ in range(draw(st.integers(1, 12))):
            number = draw(st.integers(0, 5))
            kind = draw(st.integers(0, 4))
            size = draw(st.sampled_from([50, 400, 3_000]))
            if kind == 0:
                story.does(("list_files", {"path": "."}, content("list", size)))
            elif kind == 1:
                calls = [
                    ("read_file", {"path": f"{n}.py"}, content(f"n{n}", size)) for n in (0, number)
                ]
                story.does(*calls)
            elif kind == 2:
                story.does(
                    ("write_to_file", {"path": "w.py", "content": content("w", size)}, "ok"),
                    ok=draw(st.booleans()),
                )
            else:
                story.reads(f"{number}.py", size)
            if kind == 3:
                story.marks(draw(st.sampled_from([e.id for e in story.ledger.entries])))
            if kind == 4:
                story.add(
                    FactAdded(
                        key="todo", message_id=story._id("todo"), text="recap", layer="current",
                        place="tail", tokens=10,
                    )
                )  # fmt: skip
            state = story.state(zone=zone, budget=budget, idle=draw(st.sampled_from([1.0, None])))
            decision = decide(state)
            assert decision == decide(copy.copy(state))
            if decision is None:
                continue
            event = decision.event
            assert event.tokens_after < event.tokens_before or event.figures["freed"] >= 0
            if decision.summarise:
                event = replace(event, summary="S" * 2_600, receipt="R" * 1_300)
            story.takes(event)
            wide = Budget(window=10**9, reserve=0)
            context = project(story.events, "head", (), ())
            errors = [c for c in check_context(context, wide) if c.level == "error"]
            assert errors == []
            ledger = ledger_of(story.events)
            assert ledger.tokens == sum(m.tokens for m in context.messages)
            if not decision.summarise:
                assert HEAD + ledger.tokens == event.tokens_after
            assert all(e.standing == "full" for e in ledger.entries if e.kind == "user")


def test_a_zone_is_a_value() -> None:
    assert Zone() == Zone(policy="batch", zone=None, low=0.5, gain=0.1)
    assert Compacted("p", "r").figures == {}


def law(number: int, tokens: int = 600) -> FactAdded:
    return FactAdded(
        key="law", message_id=f"law{number}", text=content("law", tokens), tokens=tokens
    )


def test_a_batch_takes_the_law_as_it_was_and_never_the_newest() -> None:
    story = long_story(reads=8)
    story.add(law(1))
    story.add(law(2))
    for number in range(8, 16):
        story.reads(f"file{number}.py", 1_200)
    event = decided(story).event
    assert event.hidden == ("law1",)  # the first law of the story is too small to be worth it
    ledger = after(story, event)
    assert ledger.by_id["law2"].standing == "full"
    assert HEAD + ledger.tokens == event.tokens_after


def test_what_points_back_to_an_earlier_read_does_not_take_its_place() -> None:
    story = long_story(reads=2)
    read = story.reads("again.py", 2_000)
    twice = story.reads("twice.py", 2_000)
    (pointer,) = story.does(("read_file", {"path": "again.py"}, content("pointer", 20)))
    last = story.events[-1]
    assert isinstance(last.body, ToolReturned)
    look = Look(key="read:again.py", digest="d", unchanged=read, saved=2_000)
    story.events[-1] = Event(last.session, last.seq, last.at, replace(last.body, look=look))
    story.reads("twice.py", 2_000)
    ledger = story.ledger
    groups = {c.entry.id: c.group for c in candidates(ledger.entries, ledger.step, last.seq + 1)}
    assert groups[read] == 2
    assert groups[twice] == 0
    assert pointer not in groups


def test_low_and_gain_are_the_users_to_set() -> None:
    deep = long_story().state(zone=ZONE)
    decision = batch(replace(deep, zone=replace(deep.zone, low=0.8)))
    assert decision is not None
    assert ZONE * 0.65 < decision.event.tokens_after <= ZONE * 0.8
    assert batch(replace(deep, zone=replace(deep.zone, gain=0.99))) is None
    zone = zone_of("batch", "20k", WIDE, low=0.9, gain=0.3)
    assert (zone.low, zone.gain) == (
        0.7,
        0.3,
    )  # a batch that may go no lower could never free enough
