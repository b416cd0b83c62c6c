"""Notes on folders as facts: told when a folder comes into play, and once as long as they stand."""

from pathlib import Path
from typing import Any

import pytest

from croze.context.active_facts import MOST_NOTES, Notes, gather_active_context
from croze.context.gather import GatherState
from croze.context.in_play import InPlay
from croze.context.recover import EXTRAS
from croze.knowledge.active import MOST_CHARACTERS, ActiveContext
from croze.types.event import Compacted, Event, FactAdded, Undone
from tests.context.test_in_play import listed, read


class Session:
    def __init__(self, root: Path, source: Any) -> None:
        self.active, self.play = ActiveContext(root), InPlay()
        self.notes = Notes(self.active, self.play)
        self.root, self.source, self.events = root, source, list[Event]()
        self.rules = True

    async def step(self, *bodies: Any) -> list[FactAdded]:
        self._add(*bodies)
        self.play.follow(self.events)
        state = GatherState(
            root=self.root,
            events=self.events,
            source=self.source,
            seen={},
            rules=self.rules,
            notes=self.notes,
        )
        facts = list(await gather_active_context(state))
        self._add(*facts)
        return facts

    def _add(self, *bodies: Any) -> None:
        for body in bodies:
            self.events.append(Event("s", len(self.events) + 1, 0, body))


@pytest.fixture
def session(tmp_path: Path, source: Any) -> Session:
    return Session(tmp_path, source)


async def test_a_note_is_told_when_its_folder_comes_into_play_and_once(session: Session) -> None:
    session.active.write("src/lib", "What it is: a library.")
    session.active.write(".", "The whole project.")
    assert await session.step(read("src/a.py")) == []
    (fact,) = await session.step(read("src/lib/b.py"))
    assert fact.key == "active_context:src/lib"
    assert fact.key.partition(":")[0] in EXTRAS
    assert (fact.layer, fact.origin) == ("current", ".croze/active-context/src/lib/active.md")
    assert "a library" in fact.text
    assert "they are no instructions" in fact.text
    assert await session.step(read("src/lib/c.py")) == []
    session.active.write("src/lib", "Changed by this very session.")
    assert await session.step(read("src/lib/b.py")) == []
    (fact,) = await session.step(listed("."))
    assert fact.key == "active_context:."


async def test_a_note_that_a_compaction_took_comes_again_when_its_folder_does(
    session: Session,
) -> None:
    session.active.write("src", "Note.")
    (fact,) = await session.step(read("src/a"))
    assert await session.step(Compacted("recovery", "full", hidden=(fact.message_id,))) == []
    (again,) = await session.step(read("src/b"))
    assert again.text == fact.text
    assert await session.step(Compacted("batch", "x", until=len(session.events), summary="s")) == []
    assert len(await session.step(read("src/b"))) == 1
    kept = Compacted("batch", "x", until=2, summary="s")
    assert await session.step(kept, read("src/b")) == []


async def test_undoing_takes_a_note_with_the_files_it_came_for(session: Session) -> None:
    session.active.write("src", "Note.")
    await session.step(read("src/a"))
    undone = Undone("u", "undo", hidden=((1, len(session.events)),))
    assert await session.step(undone) == []
    assert len(await session.step(read("src/a"))) == 1


async def test_notes_are_bounded_and_what_is_left_out_is_named(session: Session) -> None:
    names = [f"f{number}" for number in range(MOST_NOTES + 2)]
    for name in names:
        session.active.write(name, name * 3_000)
    facts = await session.step(*(read(f"{name}/x") for name in names))
    assert len(facts) == MOST_NOTES
    assert all(len(fact.text) < MOST_CHARACTERS + 1_000 for fact in facts)
    assert "read_file .croze/active-context/f0/active.md shows them" in facts[0].text
    assert ".croze/active-context/f9/active.md" in facts[-1].text


async def test_an_agent_without_rules_gets_no_notes(session: Session) -> None:
    session.active.write("src", "Note.")
    session.rules = False
    assert await session.step(read("src/a")) == []
