"""What if: the same log under other policies, windows and prices, by the real policy functions."""

import pytest
from msgspec.structs import replace

from croze.context.evidence import Score, evidence_of, terms
from croze.context.ledger import ledger_of
from croze.context.policies import Decision, Policy, State, Zone, decide
from croze.context.requests import calls_of
from croze.context.whatif import NOTE, Outcome, Scenario, WhatIf, what_if
from croze.types.agent import AgentSpec
from croze.types.event import Compacted, Event, HeadSet, Notice
from croze.types.model import Prices
from tests.context.recording import Recording, info

LONG = "".join(f"line_{n} = {n}\n" for n in range(1_000))


def session(steps: int = 12, **more: object) -> Recording:
    log = Recording(info(**more))
    log.user("Begin with src/a_file.py.")
    sent = 0
    for number in range(steps):
        log.work("read_file", {"path": f"src/part_{number}.py"}, LONG, cached=sent)
        sent += 3_000
    return log


def play(log: Recording, *names: str, policy: Policy = decide, **more: object) -> WhatIf:
    tried = [Scenario(policy=name, **more) for name in names]
    return what_if("session-1", log.events, calls_of(log.events), tried, policy=policy)


def none(log: Recording, **more: object) -> Outcome:
    return play(log, "none", **more).outcomes[0]


def test_a_session_that_was_never_pruned_comes_out_as_it_was() -> None:
    log = session()
    found = play(log, "none")
    (outcome,) = found.outcomes
    assert outcome.tokens == found.recorded.tokens
    assert outcome.requests == found.recorded.requests == 12
    assert (outcome.compactions, outcome.over, outcome.evidence) == (0, 0, found.recorded.evidence)
    assert outcome.peak == found.recorded.peak
    assert found.note == NOTE


def test_what_the_recorded_policy_took_stands_again_under_none() -> None:
    log = session(6)
    bodies = [e.body for e in log.events if e.type == "ToolReturned"]
    log.compact(hidden=tuple(b.message_id for b in bodies[:4]))
    log.add(Notice("warning", "compaction_stuck", "stuck", {"tokens": 5}))
    log.work("list_files", {"path": "."}, "x")
    found = play(log, "none")
    assert found.recorded.compactions == 1
    assert found.outcomes[0].tokens > found.recorded.tokens + 10_000


def test_a_smaller_window_shows_how_often_only_recovery_would_have_helped() -> None:
    small = none(session(), window=10_000)
    assert (small.recoveries, small.over) == (10, 0)
    assert small.peak <= 9_000
    plain = none(session())
    assert (plain.recoveries, plain.over) == (0, 0)
    tiny = Recording()
    tiny.user(LONG)
    tiny.ask()
    assert none(tiny, window=3_000).over == 1


def test_prices_are_those_that_were_asked_for() -> None:
    log = session()
    dear = none(log, prices=Prices(input=6.0, output=30.0, cached=0.6, cache_write=7.5))
    plain = none(log)
    assert dear.cost == pytest.approx(2 * (plain.cost or 0))
    assert none(log, prices=Prices(input=6.0)).cost is None
    uncached = none(log, prices=Prices(input=1.0, output=0.0))
    assert uncached.cost == pytest.approx(uncached.tokens / 1e6)


def test_the_real_policies_make_the_context_smaller_and_say_what_was_lost() -> None:
    log = session(30)
    for number in (0, 29):
        log.work(
            "search_files", {"regex": f"line_{number}99", "path": f"src/part_{number}.py"}, "x"
        )
    found = play(log, "none", "batch", "digest", "zone")
    kept, batched, digested, zoned = found.outcomes
    assert kept.peak > batched.peak
    assert kept.evidence == 1.0
    assert kept.peak > digested.peak
    assert digested.compactions > 0
    assert digested.tokens < kept.tokens
    assert zoned.policy == "zone"
    assert zoned.compactions > 0
    assert zoned.peak <= 90_000
    assert digested.evidence is not None
    assert digested.evidence <= 1.0
    assert found.quoted > 0


def test_what_is_not_named_is_the_sessions_own() -> None:
    log = session(30)
    plain = play(log, "batch").outcomes
    for number, event in enumerate(log.events):
        if isinstance(event.body, HeadSet):
            body = replace(event.body, agent=AgentSpec(zone="20k", low=0.3, gain=0.2))
            log.events[number] = Event(event.session, event.seq, event.at, body)
    seen: set[Zone] = set()

    def watching(state: State) -> Decision | None:
        seen.add(state.zone)
        return decide(state)

    own = play(log, "batch", "digest", policy=watching).outcomes
    assert seen == {Zone(name, 20 * 1024, low=0.3, gain=0.2) for name in ("batch", "digest")}
    assert own[0].peak < plain[0].peak
    seen.clear()
    play(log, "batch", policy=watching, zone="auto")
    assert seen == {Zone("batch", None, low=0.3, gain=0.2)}
    seen.clear()
    play(log, "zone", policy=watching, zone="40k")
    assert seen == {Zone("zone", 40 * 1024, low=0.3, gain=0.2)}


def clear_first(state: State) -> Decision | None:
    """Replaces the first result once, when four have come."""
    results = [entry for entry in state.ledger.entries if entry.kind == "result"]
    if len(results) != 4 or results[0].standing != "full":
        return None
    gone = {results[0].call_id: "[cleared: src/part_0.py]"}
    return Decision(Compacted(policy="mine", reason="test", replaced=gone))


def test_a_compaction_costs_what_stands_behind_it() -> None:
    log = session(8)
    kept = none(log)
    mine = play(log, "batch", policy=clear_first).outcomes[0]
    assert mine.compactions == 1
    assert mine.tokens < kept.tokens
    assert mine.cached < kept.cached
    log.work("search_files", {"regex": "line_123"}, "x")
    log.work("read_file", {"path": "src/part_0.py"}, "x")
    mine = play(log, "batch", policy=clear_first).outcomes[0]
    assert mine.evidence == 1.0  # the path stands in the stub, the identifier in the other reads


def test_evidence_counts_what_was_quoted_after_it_had_gone() -> None:
    log = Recording()
    log.user("Begin.")
    log.work("read_file", {"path": "a_file.py"}, "def compute_total(rows):\n    return sum(rows)\n")
    for _ in range(3):
        log.work("list_files", {"path": "."}, "nothing")
    diff = (
        "<<<<<<< SEARCH\ndef compute_total(rows):\n=======\ndef compute(rows):\n>>>>>>> REPLACE\n"
    )
    log.work("replace_in_file", {"path": "a_file.py", "diff": diff}, "done")
    mine = play(log, "batch", policy=clear_first).outcomes[0]
    kept = none(log)
    assert kept.evidence == 1.0
    assert mine.evidence is not None
    assert mine.evidence < 0.5
    assert mine.lost == ("def compute_total(rows):",)


def test_a_summary_is_written_by_code_and_paid_for() -> None:
    def summarise(state: State) -> Decision | None:
        if state.ledger.step != 6 or state.ledger.until:
            return None
        until = state.ledger.entries[-1].seq
        return Decision(Compacted(policy="mine", reason="full", until=until), summarise=True)

    log = session(10)
    mine = play(log, "batch", policy=summarise).outcomes[0]
    assert (mine.compactions, mine.summaries) == (1, 1)
    assert mine.summary_cost is not None
    assert mine.summary_cost > 800 * 15.0 / 1e6
    assert mine.peak < none(log).peak


def test_an_undone_turn_is_undone_in_every_scenario() -> None:
    log = session(4)
    first = len(log.events) + 1
    log.user("A detour.")
    log.work("read_file", {"path": "src/detour.py"}, LONG)
    log.undo(first, len(log.events))
    log.user("Go on.")
    log.work("list_files", {"path": "."}, "x")
    found = play(log, "none")
    assert found.outcomes[0].tokens == found.recorded.tokens


def test_an_idle_cache_is_cold_in_every_scenario() -> None:
    log = session(4)
    log.work("list_files", {"path": "."}, "x", idle=4_000)
    warm = session(4)
    warm.work("list_files", {"path": "."}, "x")
    assert none(log).tokens == none(warm).tokens
    assert none(log).cached < none(warm).cached


def test_quotes_are_names_and_search_lines_not_words() -> None:
    text = "  12 | result = compute_total(rows)\nplain words of English\nsrc/app.py"
    words, lines = {"compute_total", "src/app.py", "app.py"}, {"result = compute_total(rows)"}
    assert terms(text, words, lines) == {"compute_total", "src/app.py", *lines}
    talk = Recording()
    talk.user("Look at compute_total in src/app.py.")
    talk.work("search_files", {"regex": "compute_total is English", "path": "src/app.py"}, "x")
    assert evidence_of(talk.events, calls_of(talk.events)).made[0] == {
        "compute_total",
        "src/app.py",
    }
    log = session(2)
    evidence = evidence_of(log.events, calls_of(log.events))
    assert evidence.made[0] == {"src/part_0.py"}
    score = Score()
    assert score.share is None
    ledger = ledger_of(log.events)
    score.judge(evidence, calls_of(log.events)[0], ledger, {}, "", upto=3)
    assert score.share is None  # nobody had shown the model that path
