"""The YAML in which a model gives work to sub-agents: read as it is meant, or refused with what is wrong."""

import contextlib
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from croze.tools.orders import MOST, Orders, OrdersError, read_orders
from croze.types.team import Lease, Order

KNOWN = ("explore", "general")


def problem(text: str) -> str:
    with pytest.raises(OrdersError) as raised:
        read_orders(text, KNOWN)
    return str(raised.value)


def test_mode_names_tasks_labels_and_limits_are_read() -> None:
    text = """
mode: serial
subagents:
  - name: explore
    task: Look at it.
    label: first
    max_turns: 5
    max_cost: 0.5
    max_time: 60
  - name: general
    task: |
      Change it:
        with two lines
"""
    limits = Lease(steps=5, cost=0.5, seconds=60.0)
    assert read_orders(text, KNOWN) == Orders(
        "serial",
        (
            Order(agent="explore", task="Look at it.", label="first", limits=limits),
            Order(agent="general", task="Change it:\n  with two lines"),
        ),
    )


def test_without_a_mode_they_work_side_by_side() -> None:
    assert read_orders("subagents:\n- {name: explore, task: x}", KNOWN).mode == "parallel"


def test_a_bare_list_will_do() -> None:
    assert len(read_orders("- {name: explore, task: x}", KNOWN).orders) == 1


def test_json_will_do() -> None:
    text = '{"mode": "parallel", "subagents": [{"name": "explore", "task": "a: b # c"}]}'
    assert read_orders(text, KNOWN).orders[0].task == "a: b # c"


def test_a_fence_round_it_will_do() -> None:
    text = "```yaml\nsubagents:\n- name: explore\n  task: x\n```"
    assert read_orders(text, KNOWN).orders[0].task == "x"


@pytest.mark.parametrize(
    "task",
    [
        "Fix issue #12 in the parser",
        "Do this: read a.py, then b.py",
        "It's `x`, not 'y'",
        "@alice asked for 50% more",
        "Look at a.py:10 - see the `dict`",
    ],
)
def test_a_task_on_its_keys_line_is_taken_whole(task: str) -> None:
    text = f"mode: parallel\nsubagents:\n  - name: explore\n    task: {task}\n  - name: general\n    task: x"
    assert [order.task for order in read_orders(text, KNOWN).orders] == [task, "x"]


def test_a_block_is_left_as_it_is() -> None:
    text = "subagents:\n- name: explore\n  task: |\n    task: this is no key # nor a comment\n    label: 'x'\n"
    (order,) = read_orders(text, KNOWN).orders
    assert order.task == "task: this is no key # nor a comment\nlabel: 'x'"
    assert order.label == ""


def test_a_task_that_goes_on_below_is_taken_whole() -> None:
    text = "subagents:\n- name: explore\n  task: one\n    two\n  label: l\n"
    (order,) = read_orders(text, KNOWN).orders
    assert (order.task, order.label) == ("one two", "l")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello", "no list named subagents"),
        ("mode: parallel", "no list named subagents"),
        ("subagents: []", "at least one entry"),
        ("mode: both\nsubagents:\n- {name: explore, task: x}", "mode is 'both'"),
        ("subagents:\n- {name: explore}", "Entry 1: task is missing."),
        ("subagents:\n- {task: x}", "Entry 1: name is missing."),
        ("subagents:\n- {name: explore, task: x}\n- {name: explor, task: y}",
         "Entry 2: there is no agent named 'explor' (did you mean explore? there are explore, general)."),
        ("subagents:\n- explore", "Entry 1: it is 'explore', not a name and a task."),
        ("subagents:\n- {name: explore, task: [a]}", "Entry 1: task must be text."),
        ("subagents:\n- {name: explore, task: x, colour: red}", "Entry 1: 'colour' isn't known."),
        ("subagents:\n- {name: explore, task: x, max_turns: 1.5}", "max_turns must be a whole number"),
        ("subagents:\n- {name: explore, task: x, max_cost: -1}", "max_cost must be a number above 0"),
        ("subagents:\n- {name: explore, task: x, max_time: nan}", "max_time must be a number above 0"),
        ("subagents:\n- name: explore\n task: x", "Line 3 is not YAML"),
        ("subagents: &a\n- *a", "alias"),
        ("other: 1\nsubagents:\n- {name: explore, task: x}", "other isn't known"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(text: str, words: str) -> None:
    assert words in problem(text)


def test_all_that_is_wrong_is_told_at_once() -> None:
    told = problem("mode: x\nsubagents:\n- {name: a}\n- {task: b}")
    for words in ("mode is", "Entry 1: task is missing", "Entry 2: name is missing"):
        assert words in told


def test_there_is_a_most() -> None:
    rows = "\n".join(f"- {{name: explore, task: t{n}}}" for n in range(MOST + 1))
    assert f"{MOST} are allowed" in problem(f"subagents:\n{rows}")


TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")),
    min_size=1,
    max_size=60,
).filter(lambda text: text.strip() == text and text != "")


@given(
    st.lists(st.tuples(st.sampled_from(KNOWN), TEXTS), min_size=1, max_size=5),
    st.sampled_from(["parallel", "serial"]),
)
def test_what_a_yaml_writer_writes_is_read_back(rows: list[tuple[str, str]], mode: Any) -> None:
    value = {"mode": mode, "subagents": [{"name": name, "task": task} for name, task in rows]}
    text = yaml.safe_dump(value, allow_unicode=True, sort_keys=False, width=10**6)
    found = read_orders(text, KNOWN)
    assert found.mode == mode
    assert [(order.agent, order.task) for order in found.orders] == rows


@given(st.text(max_size=300))
def test_no_text_breaks_it(text: str) -> None:
    with contextlib.suppress(OrdersError):
        read_orders(text, KNOWN)


@given(TEXTS.filter(lambda text: text[0] not in "'\"|>[{&*!" and "\t" not in text))
def test_a_plain_task_is_never_cut(task: str) -> None:
    text = f"subagents:\n- name: explore\n  task: {task}\n"
    assert read_orders(text, KNOWN).orders[0].task == task
