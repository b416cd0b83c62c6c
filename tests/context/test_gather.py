"""Facts are appended when they are new, once, and at the price of what is new."""

import itertools

import pytest

from croze.context.gather import MAX_ITEMS, GatherState, gather, gather_todo, recap
from croze.context.tree_facts import TreeSource
from croze.text.tokens import estimate
from croze.types.event import (
    Compacted,
    Event,
    FactAdded,
    Notice,
    TodoItem,
    TodoSet,
    UserSaid,
)
from croze.types.parts import Text
from croze.workspace.cache import RunCache
from croze.workspace.task import task_workspace


class Session:
    """A log in memory: appends what is gathered, keeps the latest facts and how far it has come."""

    def __init__(self, root, source, bodies=()):
        self.events = []
        self.add(*bodies)
        self.root, self.source, self.tree = root, source, None
        self.seen, self.folded, self.since = {}, 0, 0

    def add(self, *bodies):
        for body in bodies:
            self.events.append(Event("s", len(self.events) + 1, 0, body))

    async def step(self, *bodies):
        self.add(*bodies)
        for i in range(self.folded, len(self.events)):
            body = self.events[i].body
            if isinstance(body, FactAdded):
                self.seen[body.key] = body
        state = GatherState(
            root=self.root,
            events=self.events,
            source=self.source,
            seen=self.seen,
            since=self.since,
            tree=self.tree,
        )
        self.since = self.folded = len(self.events)
        facts = await gather(state)
        self.add(*facts)
        return facts


def said(text="Fix it."):
    return UserSaid("00000000-0000-4000-8000-000000000000", (Text(text),))


def todo(*texts, done=0):
    return TodoSet(
        tuple(
            TodoItem(i + 1, text, "completed" if i < done else "pending")
            for i, text in enumerate(texts)
        )
    )


@pytest.fixture
def session(tmp_path, source):
    return Session(tmp_path, source)


async def test_the_environment_is_told_once_after_the_first_request(session, tmp_path):
    (fact,) = await session.step(said())
    assert fact.key == "environment"
    assert fact.layer == "current"
    assert str(tmp_path) in fact.text
    assert fact.tokens == estimate(fact.text)
    assert fact.reason
    for _ in range(3):
        assert await session.step(said()) == []


async def test_the_environment_is_not_told_again_after_a_resume(session, tmp_path, source):
    await session.step(said())
    resumed = Session(tmp_path, source, [event.body for event in session.events])
    assert await resumed.step(said()) == []


async def test_a_task_workspace_is_told_no_absolute_path(session, tmp_path):
    workspace = task_workspace(tmp_path, "agent-1")
    session.root = workspace.root
    session.tree = TreeSource(cache=RunCache(), workspace=workspace, options=None)
    (fact,) = await session.step(said())
    assert "Workspace: a folder apart from any project" in fact.text
    assert str(tmp_path) not in fact.text


async def test_the_todo_list_is_told_when_it_has_changed_and_only_then(session):
    await session.step(said())
    (fact,) = await session.step(todo("read", "write"))
    assert (fact.key, fact.place) == ("todo", "tail")
    assert fact.text == "<todo>\n0 of 2 done\n[ ] 1. read\n[ ] 2. write\n</todo>"
    assert await session.step() == []
    assert await session.step(todo("read", "write")) == []
    (fact,) = await session.step(todo("x", "y"), todo("read", "write", done=1))
    assert fact.text == "<todo>\n1 of 2 done\n[ ] 2. write\n</todo>"


async def test_an_emptied_todo_list_is_told_and_one_that_was_always_empty_is_not(session):
    await session.step(said())
    assert await session.step(TodoSet(())) == []
    await session.step(todo("read"))
    (fact,) = await session.step(TodoSet(()))
    assert fact.text == "<todo>The list is empty.</todo>"


async def test_the_todo_list_is_told_again_after_a_compaction(session):
    await session.step(said())
    assert await session.step(Compacted("batch", "full")) == []
    (before,) = await session.step(todo("read"))
    (after,) = await session.step(Compacted("batch", "full"))
    assert after.text == before.text
    assert after.message_id != before.message_id
    assert await session.step() == []


async def test_a_resume_tells_the_todo_list_only_where_it_is_news(session, tmp_path, source):
    await session.step(said())
    await session.step(todo("read"))
    bodies = [event.body for event in session.events]
    assert await Session(tmp_path, source, bodies).step() == []
    lost = Session(tmp_path, source, [*bodies, todo("read", done=1)])
    (fact,) = await lost.step()
    assert fact.text == "<todo>\n1 of 1 done\n</todo>"


async def test_a_gathering_looks_only_at_new_events(tmp_path, source):
    class Counting(list):
        looked_at = 0

        def __getitem__(self, index):
            self.looked_at += 1
            return super().__getitem__(index)

    session = Session(tmp_path, source)
    session.events = Counting()
    await session.step(said(), *itertools.repeat(Notice("info", "x", "y"), 5_000))
    session.events.looked_at = 0
    await session.step(Notice("info", "x", "y"))
    assert session.events.looked_at <= 10


async def test_another_gatherer_joins_without_a_change_elsewhere(session, monkeypatch):
    async def rules(state):
        if "rules" in state.seen:
            return ()
        return (FactAdded("rules", state.source.uuid(), "Be kind.", reply="I will."),)

    monkeypatch.setattr("croze.context.gather.GATHERERS", (rules, gather_todo))
    assert [fact.key for fact in await session.step(said(), todo("read"))] == ["rules", "todo"]
    assert await session.step() == []


def test_a_long_list_is_cut_to_its_tokens_with_the_number_left_out():
    items = [TodoItem(i, f"item {i} " + "word\n" * 40) for i in range(1, 41)]
    text = recap(items, told_before=False)
    assert f"and {40 - MAX_ITEMS} more" in text
    assert len(text.splitlines()) == MAX_ITEMS + 4
    assert estimate(text) <= 350
    short = [TodoItem(i, "Write the parser's test for this") for i in range(1, 9)]
    assert estimate(recap(short, told_before=False)) <= 200


def test_the_item_in_progress_is_marked():
    assert "[>] 1. now" in recap([TodoItem(1, "now", "in_progress")], told_before=False)
