"""Plans as values, and reading them from a planner's answer."""

import yaml
from hypothesis import given
from hypothesis import strategies as st

from croze.teams.plan import (
    MOST_TASKS,
    changed,
    cycle,
    failed,
    faults,
    halted,
    ready,
    revised,
    without_hope,
)
from croze.teams.planner import read_plan
from croze.types.team import PlanSet, PlanTask

AGENTS = {"general", "explore"}


def task(id, *needs, state="pending", agent="general", text="Do it.", **more):
    return PlanTask(id=id, text=text, agent=agent, needs=needs, state=state, **more)


def plan(*tasks, **more):
    return PlanSet(plan_id="p", objective="All of it.", tasks=tasks, **more)


def ids(tasks):
    return [each.id for each in tasks]


@st.composite
def plans(draw):
    """Plans without a circle: a task needs some of those that come before it."""
    count = draw(st.integers(0, 12))
    tasks = []
    for number in range(count):
        needs = draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else set()
        tasks.append(task(f"t{number}", *(f"t{need}" for need in sorted(needs))))
    return plan(*draw(st.permutations(tasks)))


def test_a_task_is_ready_when_all_that_it_needs_is_done():
    found = plan(task("a", state="done"), task("b", "a"), task("c", "a", "b"), task("d"))
    assert ids(ready(found)) == ["b", "d"]


def test_what_needs_a_failed_task_is_skipped_through_and_through():
    found = without_hope(plan(task("a", state="failed"), task("b", "a"), task("c", "b"), task("d")))
    assert [each.state for each in found.tasks] == ["failed", "skipped", "skipped", "pending"]
    assert found.tasks[2].error == "it needs b"
    assert without_hope(found) is found


def test_halting_keeps_the_child_that_was_at_work():
    found = halted(plan(task("a", state="running", child="s"), task("b", state="done")))
    assert [(each.state, each.child) for each in found.tasks] == [("pending", "s"), ("done", "")]


def test_a_new_planning_keeps_what_is_done_and_nothing_disappears():
    old = plan(
        task("a", state="done", result="A"),
        task("b", state="failed", attempts=1, error="broken"),
        task("c", "b"),
        task("d", state="failed", attempts=2),
    )
    new = revised(old, [task("b", "a", text="Another way."), task("e", "b")], "failed: b")
    assert [(t.id, t.state, t.attempts) for t in new.tasks] == [
        ("a", "done", 0),
        ("c", "skipped", 0),
        ("d", "skipped", 2),
        ("b", "pending", 1),
        ("e", "pending", 0),
    ]
    assert new.tasks[0].result == "A"
    assert new.tasks[1].error == "left out by planning 2"
    assert (new.revision, new.state, new.reason) == (2, "working", "failed: b")


def test_a_worker_that_was_interrupted_keeps_a_task_that_is_given_again_as_it_was():
    old = plan(task("a", child="s", attempts=1), task("b", child="t", attempts=1))
    new = revised(old, [task("a"), task("b", text="Otherwise.")], "the user said more")
    assert [(each.child, each.attempts) for each in new.tasks] == [("s", 1), ("", 1)]


def test_faults_are_named_one_by_one():
    tasks = [
        task("a", "x"),
        task("a"),
        task("no id!"),
        task("b", agent="nobody"),
        task("c", text="  "),
        task("old"),
    ]
    found = faults(tasks, agents=AGENTS, done={"old"})
    assert found == [
        "The id a is given twice.",
        "'no id!' is no id: use at most 40 letters, digits, '-', '_' and '.'.",
        "The task old is done already: leave it out, or use a new id.",
        "The task a needs 'x', which is no task of the plan.",
        "The task b names the agent 'nobody'; there are: explore, general.",
        "The task c says nothing: its `task` is empty.",
    ]


def test_too_many_tasks_are_a_fault():
    tasks = [task(f"t{number}") for number in range(MOST_TASKS + 1)]
    assert faults(tasks, agents=AGENTS) == [
        f"There are {MOST_TASKS + 1} tasks; at most {MOST_TASKS} are allowed."
    ]


def test_a_circle_is_told_as_its_tasks_in_order():
    assert cycle([task("a", "b"), task("b", "c"), task("c", "a"), task("d", "a")]) in (
        ["a", "b", "c", "a"],
        ["b", "c", "a", "b"],
        ["c", "a", "b", "c"],
    )
    assert cycle([task("a", "a")]) == ["a", "a"]
    assert cycle([task("a"), task("b", "a")]) == []
    (told,) = faults([task("a", "b"), task("b", "a")], agents=AGENTS)
    assert told.startswith("These tasks need each other in a circle: ")


def test_what_is_done_may_be_needed_by_a_later_planning():
    assert faults([task("b", "a")], agents=AGENTS, done={"a"}) == []


@given(plans())
def test_plans_without_a_circle_have_no_faults(found):
    assert faults(found.tasks, agents=AGENTS) == []


@given(plans(), st.integers(1, 5), st.data())
def test_whatever_fails_every_task_ends_in_one_state_and_never_before_its_needs(
    found, parallel, data
):
    running, ended = [], []
    while True:
        found = without_hope(found)
        for each in ready(found)[: parallel - len(running)]:
            states = {t.id: t.state for t in found.tasks}
            assert all(states[need] == "done" for need in each.needs)
            found = changed(found, each.id, state="running")
            running.append(each.id)
        assert len(running) <= parallel
        if not running:
            break
        over = running.pop(data.draw(st.integers(0, len(running) - 1)))
        found = changed(found, over, state=data.draw(st.sampled_from(["done", "failed"])))
        ended.append(over)
    assert len(set(ended)) == len(ended)
    by_id = {each.id: each for each in found.tasks}
    for each in found.tasks:
        assert each.state in ("done", "failed", "skipped")
        lost = any(by_id[need].state != "done" for need in each.needs)
        assert (each.state == "skipped") == lost
        assert (each.id in ended) == (not lost)
    assert set(ids(failed(found))) <= set(ended)


@given(plans())
def test_a_plan_comes_back_from_the_yaml_that_a_planner_writes(found):
    answer = yaml.safe_dump(
        {
            "tasks": [
                {"id": t.id, "agent": t.agent, "needs": list(t.needs), "task": t.text}
                for t in found.tasks
            ]
        }
    )
    text = f"Here is my plan.\n\n```yaml\n{answer}```\n"
    assert read_plan(text, agents=AGENTS, may_be_empty=True) == found.tasks


@given(st.text(max_size=300))
def test_any_text_is_a_plan_or_told_to_be_none(text):
    for answer in (text, f"```yaml\ntasks: {text}\n```", f"tasks:\n- {text}"):
        found = read_plan(answer, agents=AGENTS)
        assert found
        if isinstance(found, list):
            assert all(isinstance(each, str) for each in found)


def test_json_a_bare_list_and_words_that_yaml_would_turn_into_values_are_read():
    json = '{"tasks": [{"id": "a", "task": "Do.", "needs": null}]}'
    assert read_plan(json, agents=AGENTS) == (task("a", text="Do."),)
    bare = "- {id: no, task: 1}\n- {id: 2, task: on, needs: no, agent: explore}"
    assert read_plan(bare, agents=AGENTS) == (
        task("no", text="1"),
        task("2", "no", text="on", agent="explore"),
    )


def test_the_last_block_counts_and_a_fence_inside_of_a_task_does_not_end_it():
    answer = (
        "First I thought:\n```yaml\ntasks: [{id: old, task: x}]\n```\nBetter:\n"
        "```yaml\ntasks:\n  - id: new\n    task: |\n      Write\n      ```\n      x\n      ```\n```"
    )
    (found,) = read_plan(answer, agents=AGENTS)
    assert (found.id, found.text) == ("new", "Write\n```\nx\n```")


def test_an_answer_that_is_no_plan_is_told_what_is_wrong():
    assert read_plan("I can't.", agents=AGENTS) == ["It holds no YAML with `tasks`."]
    assert read_plan("tasks: []", agents=AGENTS) == ["It has no tasks."]
    assert read_plan("tasks: []", agents=AGENTS, may_be_empty=True) == ()
    (wrong,) = read_plan("tasks:\n  - id: a\n   task: b", agents=AGENTS)
    assert wrong.startswith("Line 3 is not YAML")
    (wrong,) = read_plan("tasks: [{id: a, task: b, when: now}]", agents=AGENTS)
    assert "when" in wrong
    assert "not the form" in wrong


def test_aliases_are_refused_before_anything_grows_from_them():
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
    )
    assert read_plan(f"{bomb}tasks: *j", agents=AGENTS) == [
        "It uses a YAML alias (*name): write the text out."
    ]


def test_a_deeply_nested_answer_is_told_and_does_not_break():
    found = read_plan("tasks: " + "[" * 20_000, agents=AGENTS)
    assert isinstance(found, list)
