"""Edits of real files as models get them wrong: the text that is meant or a refusal, never another."""

import itertools
import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from croze.edit import EditPlan, Refusal, apply, listed_blocks, parse_blocks, plan
from croze.edit.source import edited, read_source
from tests.edit.perturb import CORPUS, DECIDED, DOUBTFUL, as_text, perturbed

SEEDS = st.integers(0, 2**32)


def done(before, blocks):
    edit = blocks if isinstance(blocks, Refusal) else listed_blocks(blocks)
    return edit if isinstance(edit, Refusal) else plan(before, edit)


@pytest.mark.parametrize("kind", sorted({**DECIDED, **DOUBTFUL}))
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_a_perturbed_edit_gives_the_text_that_is_meant_or_is_refused(kind, seed):
    case = perturbed(random.Random(f"{kind}{seed}"), kind)
    if case is None:
        return
    result = done(case.before, case.blocks)
    if isinstance(result, EditPlan):
        assert apply(result) == (case.before if case.after is None else case.after)
    else:
        assert result.message.endswith("Nothing was changed.")


@pytest.mark.parametrize("kind", sorted(DECIDED))
def test_what_the_text_decides_is_hardly_ever_refused(kind):
    right = tried = 0
    for seed in range(60):
        case = perturbed(random.Random(f"{kind} {seed}"), kind)
        if case is not None:
            result = done(case.before, case.blocks)
            out = apply(result) if isinstance(result, EditPlan) else case.before
            right += out == (case.before if case.after is None else case.after)
            tried += 1
    hard = ("first line's indentation lost", "code fences")
    least = 0.7 if kind in hard else 0.93
    assert right >= least * tried


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_blocks_written_as_text_do_the_same_as_blocks_in_fields(seed):
    case = perturbed(random.Random(seed), "plain")
    edit = parse_blocks(as_text(case))
    assert not isinstance(edit, Refusal)
    assert plan(case.before, edit) == done(case.before, case.blocks)


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_an_edit_and_its_reverse_give_the_original(seed):
    case = perturbed(random.Random(seed), "plain")
    result = done(case.before, case.blocks)
    if isinstance(result, EditPlan):
        back = done(apply(result), [(new, search, 0) for search, new, _ in case.blocks])
        assert isinstance(back, Refusal) or apply(back) in (case.before, apply(result))


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, kind=st.sampled_from(sorted(DECIDED)))
def test_line_ends_a_mark_and_a_missing_final_newline_survive(seed, kind):
    chance = random.Random(f"{kind}{seed}")
    case = perturbed(chance, kind)
    assume(case is not None)
    result = done(case.before, case.blocks)
    if isinstance(result, Refusal) or case.after is None:
        return
    whole = apply(result)
    for end, mark, codec in (
        ("\r\n", "", "utf-8"), ("\r\n", "\ufeff", "utf-8"), ("\n", "\ufeff", "utf-16-le"),
    ):  # fmt: skip
        data = (mark + case.before.replace("\n", end)).encode(codec)
        source = read_source(data)
        again = plan(source.text, listed_blocks(case.blocks))
        assert edited(source, again) == (mark + whole.replace("\n", end)).encode(codec)


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, kind=st.sampled_from(["trailing blanks lost", "uniform shift", "typo"]))
def test_lines_that_a_block_restates_keep_their_bytes(seed, kind):
    case = perturbed(random.Random(f"{kind}{seed}"), kind)
    result = done(case.before, case.blocks)
    if isinstance(result, EditPlan):
        lines = case.before.split("\n")
        changed = {at for change in result.changes for at in range(change.start, change.end)}
        kept = [line for at, line in enumerate(lines) if at not in changed]
        left = iter(apply(result).split("\n"))
        assert all(line in left for line in kept)


@settings(max_examples=200, deadline=None)
@given(
    text=st.sampled_from(sorted(CORPUS.values())) | st.text(),
    sides=st.lists(st.tuples(st.text(), st.text(), st.integers(0, 300)), min_size=1, max_size=3),
)
def test_no_input_raises(text, sides):
    assert isinstance(done(text.replace("\r\n", "\n"), sides), EditPlan | Refusal)


WILD = st.lists(
    st.sampled_from(
        ["", " ", "a", "  a", "\ta", "a ", "...", "# ...", "```", "1\ta", "2: b", "&lt;", '\\"', "“", "b",
         "# c", "aaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaabaaaaaaaa", "=======", "a\\nb"]
    ),
    max_size=7,
).map("\n".join)  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(text=WILD, sides=st.lists(st.tuples(WILD, WILD, st.just(0)), min_size=1, max_size=3))
def test_odd_little_texts_neither_raise_nor_change_again(text, sides):
    result = done(text, sides)
    if isinstance(result, EditPlan):
        changes = result.changes
        assert all(0 <= one.start <= one.end <= len(text.split("\n")) for one in changes)
        assert all(a.end <= b.start for a, b in itertools.pairwise(changes))
