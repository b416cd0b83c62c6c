"""Checks find what a provider would refuse or a person should know, and cost what is new."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.context.check import (
    HEADINGS,
    check_context,
    check_head,
    check_start,
    check_usage,
)
from croze.context.project import Projection
from croze.types.context import Budget, Context, Message, Section
from croze.types.event import (
    Event,
    FactAdded,
    ModelCalled,
    ModelSaid,
    ToolReturned,
    UserSaid,
)
from croze.types.model import ModelInfo
from croze.types.parts import CallResult, Text, ToolCall

BUDGET = Budget(window=100_000, reserve=20_000)
MODEL = ModelInfo("openai", "gpt", 128_000, 8_000)


def message(key, role, *parts):
    return Message(key, key, role, parts or (Text("words"),))


def call(name):
    return ToolCall(name, "read_file")


def result(name):
    return CallResult(name, "read_file", True)


def context(*messages, sections=(), tokens=1_000):
    return Context("system", messages, (), sections, tokens)


GOOD = (
    message(1, "user"),
    message(2, "assistant", Text("look"), call("a"), call("b")),
    message(3, "user", result("a"), result("b"), Text("and?")),
    message(4, "assistant", call("c")),
    message(5, "user", result("c")),
)


def codes(checks, level="error"):
    return [check.code for check in checks if check.level == level]


def test_a_sound_context_passes():
    assert check_context(context(*GOOD), BUDGET) == []


def test_a_summary_may_stand_between_messages_but_not_first_alone_last_or_between_a_pair():
    summary = message(1, "system")
    assert check_context(context(message(1, "user"), summary, *GOOD[1:]), BUDGET) == []
    assert check_context(context(summary, message(1, "user")), BUDGET) == []
    assert codes(check_context(context(summary), BUDGET)) == ["roles"]
    assert codes(check_context(context(message(1, "user"), summary), BUDGET)) == ["roles"]
    assert "pairs" in codes(
        check_context(context(*GOOD[:2], message(2, "system"), GOOD[2]), BUDGET)
    )
    odd = message(1, "system", call("z"))
    assert codes(check_context(context(odd, message(1, "user")), BUDGET)) == ["roles"]


def test_documentation_pairs_and_user_messages_in_a_row_pass():
    pair = (message(3, "user"), message(3, "assistant"))
    assert check_context(context(message(1, "user"), *pair, message(4, "user")), BUDGET) == []


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ((), "empty"),
        ((message(1, "assistant"), message(2, "user")), "roles"),
        ((message(1, "user"), message(2, "assistant")), "roles"),
        ((message(5, "user"), message(2, "user")), "order"),
        ((*GOOD[:2], message(3, "user", result("a"))), "pairs"),
        ((*GOOD[:2], message(3, "user")), "pairs"),
        ((*GOOD[:2], message(3, "user", result("a"), result("a"), result("b"))), "pairs"),
        ((*GOOD[:3], message(4, "user", result("a"))), "pairs"),
        ((message(1, "user", result("z")),), "pairs"),
        ((message(1, "user", call("z")),), "pairs"),
        ((*GOOD[:1], message(2, "assistant", result("z")), message(3, "user")), "pairs"),
        ((*GOOD[:2], message(3, "assistant"), message(4, "user", result("a"))), "pairs"),
    ],
    ids=[
        "empty",
        "assistant first",
        "assistant last",
        "backwards",
        "one result missing",
        "no results",
        "a result twice",
        "a result again later",
        "a result without call",
        "a call by the user",
        "a result by the model",
        "results too late",
    ],
)
def test_what_a_provider_would_refuse_is_an_error(messages, code):
    found = check_context(context(*messages), BUDGET)
    assert code in codes(found)
    assert all(check.text for check in found)


def test_a_call_at_the_end_without_its_result_is_an_error_in_any_case():
    found = check_context(context(*GOOD[:2]), BUDGET, start=2)
    assert codes(found) == ["roles", "pairs", "pairs"]


def test_a_reply_that_is_gone_on_with_may_stand_last():
    messages = (message(1, "user"), message(2, "assistant"))
    assert check_context(context(*messages), BUDGET, prefill=True) == []


def test_swapped_results_and_two_replies_in_a_row_are_warnings():
    swapped = context(*GOOD[:2], message(3, "user", result("b"), result("a")))
    assert codes(check_context(swapped, BUDGET), "warning") == ["result_order"]
    twice = context(GOOD[0], message(2, "assistant"), message(3, "assistant"), message(4, "user"))
    assert codes(check_context(twice, BUDGET), "warning") == ["roles"]
    assert codes(check_context(twice, BUDGET)) == []


@pytest.mark.parametrize("start", range(1, len(GOOD) + 1))
def test_a_later_start_sees_breaks_at_the_seam_and_none_before_it(start):
    assert check_context(context(*GOOD), BUDGET, start=start) == []
    broken = [*GOOD]
    broken[start - 1] = message(start, broken[start - 1].role, result("z"), call("y"))
    found = check_context(context(*broken), BUDGET, start=start)
    assert all(check.params.get("message", start) >= start for check in found)


def test_a_step_looks_only_at_new_messages():
    class Counting(tuple):
        looked_at = 0

        def __getitem__(self, index):
            Counting.looked_at += 1
            return super().__getitem__(index)

        def __iter__(self):
            raise AssertionError("walks the whole conversation")

    many = Counting(message(i + 1, "user") for i in range(10_000))
    assert check_context(Context("", many, (), (), 10), BUDGET, start=9_999) == []
    assert Counting.looked_at < 10


@pytest.mark.parametrize(
    ("tokens", "level"),
    [(63_999, None), (64_000, "warning"), (80_000, "warning"), (80_001, "error")],
)
def test_the_window_is_held_against_what_the_budget_leaves(tokens, level):
    found = check_context(context(*GOOD, tokens=tokens), BUDGET)
    assert [check.level for check in found] == ([level] if level else [])


def test_a_budget_of_nothing_is_an_error_not_a_crash():
    assert codes(check_context(context(*GOOD), Budget(100, 200))) == ["window"]


@pytest.mark.parametrize(
    ("layer", "tokens", "window", "reported"),
    [
        ("system", 12_000, 80_000, False),
        ("system", 12_001, 80_000, True),
        ("system", 30_000, 1_000_000, False),
        ("system", 30_001, 1_000_000, True),
        ("history", 37_600, 80_000, False),
        ("history", 37_601, 80_000, True),
        ("current", 3_200, 80_000, False),
        ("current", 3_201, 80_000, True),
        ("documentation", 60_000, 80_000, False),
    ],
)
def test_layers_above_their_ceiling_are_reported(layer, tokens, window, reported):
    section = Section("x", layer, "head", tokens)
    found = check_context(context(*GOOD, sections=(section,)), Budget(window, 0))
    assert codes(found, "warning") == (["share"] if reported else [])
    if reported:
        assert found[0].params["layer"] == layer
        assert check_context(context(*GOOD, sections=(section,)), Budget(window, 0), start=3) == []


def head_text(parts=HEADINGS):
    return "\n\n====\n\n".join(["You are someone.", *(f"{part}\n\nwords" for part in parts)])


def test_a_whole_head_passes():
    assert check_head(head_text() + " read_file", ["read_file"]) == []


@pytest.mark.parametrize("missing", HEADINGS)
def test_a_missing_part_is_an_error_that_names_it(missing):
    text = head_text([part for part in HEADINGS if part != missing])
    (check,) = check_head(f"{missing}\n{text}\n{missing}", [])
    assert (check.level, check.params) == ("error", {"part": missing})


def test_a_missing_core_tool_is_a_warning_that_names_it():
    text = head_text() + "\n<read_files> and search_files."
    found = check_head(text, ["read_file", "search_files", "call_tool"], schemas=["call_tool"])
    assert [(check.level, check.params["tool"]) for check in found] == [("warning", "read_file")]


@given(st.text())
def test_any_text_can_be_checked_as_a_head(text):
    assert codes(check_head(text, ())) == ["head_part"] * len(
        [heading for heading in HEADINGS if f"====\n\n{heading}" not in text]
    )


@pytest.mark.parametrize(
    ("model", "level", "code"),
    [
        (ModelInfo("openai", "", 128_000, 8_000), "error", "no_model"),
        (ModelInfo("openai", "m", 0, 8_000), "error", "no_window"),
        (ModelInfo("ollama", "m", 4_096, 1_000), "warning", "small_window"),
    ],
)
def test_a_start_without_a_usable_model_is_told(model, level, code, core_docs):
    assert [(c.level, c.code) for c in check_start(model, core_docs)] == [(level, code)]


def test_a_start_needs_a_tool(core_docs):
    assert codes(check_start(MODEL, ())) == ["no_tools"]
    assert check_start(MODEL, core_docs) == []


@pytest.mark.parametrize(
    ("estimated", "reported", "told"),
    [
        (10_000, None, False),
        (10_000, 15_000, False),
        (10_000, 15_001, True),
        (15_001, 10_000, True),
        (100, 1_100, False),
        (100, 1_101, True),
        (0, 0, False),
        (5_000, 0, True),
    ],
)
def test_a_usage_far_from_the_estimate_is_told(estimated, reported, told):
    check = check_usage(estimated, reported)
    assert (check is not None) is told
    if check is not None:
        assert (check.level, check.code) == ("warning", "usage")
        assert check.params == {"estimated": estimated, "reported": reported}


def log_of(turns):
    """The bodies of a session: per turn documentation pairs, a request, facts, and steps with some
    calls each."""
    count = 0
    for pairs, facts, steps in turns:
        for i in range(pairs + facts + 1):
            count += 1
            key, name = f"fact-{count}", f"said-{count:04d}"
            if i == pairs:
                yield UserSaid(name, (Text(f"request {count}"),), tokens=5)
            else:
                reply = "Understood." if i < pairs else ""
                yield FactAdded(key, name, "A fact.", reply=reply, tokens=3)
        for step, calls in enumerate([*steps, 0]):
            count += 1
            yield ModelCalled(step, "m", "h", count, "b", "r", 1, 10, 10)
            ids = [f"{count}-{i}" for i in range(calls)]
            parts = (Text("So:"), *(ToolCall(name, "read_file") for name in ids))
            yield ModelSaid(f"model-{count:04d}", step, "m", parts, tokens=9)
            for name in ids:
                yield ToolReturned(name, f"result-{name}", "read_file", True, text="x", tokens=200)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 2), st.lists(st.integers(1, 3), max_size=4)),
        min_size=1,
        max_size=4,
    )
)
def test_what_the_projection_makes_of_a_session_passes_before_each_request(turns):
    projection, checked, requests = Projection(), 0, 0
    for seq, body in enumerate(log_of(turns), start=1):
        if isinstance(body, ModelCalled):
            body = msgspec.structs.replace(body, history=seq - 1)
            found = check_context(projection.context("", (), ()), BUDGET, start=checked)
            assert found == []
            checked, requests = len(projection.messages), requests + 1
        projection.feed(Event("s", seq, 0, body))
    assert requests >= len(turns)
