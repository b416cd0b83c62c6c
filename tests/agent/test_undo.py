"""The fold of changes and undos: whatever is done and undone, the plan leads back to what was."""

import hashlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.agent.undo import History, Plan, effects, history, plan_redo, plan_undo, total
from croze.types.errors import UsageError
from croze.types.event import (
    Body,
    Event,
    FilesChanged,
    ModelCalled,
    Stopped,
    TodoItem,
    TodoSet,
    Undone,
    UserSaid,
)
from croze.types.parts import Text
from croze.types.tool import FileChange

Files = dict[str, str]


def digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


class Session:
    """A log and the files that it speaks of, as a table."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.files: Files = {}
        self.calls = 0

    def add(self, *bodies: Body) -> None:
        for body in bodies:
            seq = len(self.events) + 1
            self.events.append(Event(session="s", seq=seq, at=seq, body=body))

    def turn(self, *edits: dict[str, str | None], title: str = "Go") -> None:
        """Each edit is a call: paths with their new content, None where it is removed."""
        self.add(UserSaid(message_id=f"m{len(self.events)}", parts=(Text(text=title),)))
        for edit in edits:
            self.call(edit)
        self.add(Stopped(reason="done"))

    def call(self, edit: dict[str, str | None]) -> None:
        self.calls += 1
        changes = []
        for path, content in edit.items():
            before = self.files.pop(path, None)
            if content is not None:
                self.files[path] = content
            if before != content:
                kind: Any = (
                    "added" if before is None else "deleted" if content is None else "modified"
                )
                changes.append(
                    FileChange(
                        path=path, kind=kind,
                        before=None if before is None else digest(before),
                        after=None if content is None else digest(content),
                    )
                )  # fmt: skip
        if changes:
            self.add(FilesChanged(call_id=f"c{self.calls}", changes=tuple(changes)))

    @property
    def history(self) -> History:
        return history(self.events)

    def carry_out(self, plan: Plan, contents: dict[str, str]) -> None:
        """What `Rewinder` does, in the table; a file that isn't as planned is an error."""
        assert not plan.broken
        for change in plan.undoing.files:
            present = self.files.pop(change.path, None)
            assert (None if present is None else digest(present)) == change.before
            if change.after is not None:
                self.files[change.path] = contents[change.after]
        self.add(plan.undoing, plan.undoing.then)


PATHS = st.sampled_from(["a", "b", "d/c"])
EDITS = st.dictionaries(PATHS, st.one_of(st.none(), st.sampled_from("xyz")), min_size=1, max_size=3)
TURNS = st.lists(EDITS, max_size=3)
ACTIONS = st.lists(
    st.one_of(TURNS, st.sampled_from(["undo", "undo 2", "files", "redo"])), min_size=2, max_size=12
)


@settings(max_examples=300, deadline=None)
@given(actions=ACTIONS)
def test_any_course_of_turns_undos_and_redos_leads_to_states_that_were(actions: list[Any]) -> None:
    session = Session()
    contents = {digest(c): c for c in "xyz"}
    back: list[tuple[Files, tuple[tuple[int, int], ...]]] = []
    for number, action in enumerate(actions):
        log = session.history
        if isinstance(action, list):
            session.turn(*action)
            back.clear()
            continue
        before = dict(session.files)
        try:
            if action == "redo":
                plan = plan_redo(log, str(number))
            else:
                plan = plan_undo(
                    log, str(number), turns=2 if "2" in action else 1, files_only=action == "files"
                )
        except UsageError:
            assert (
                action == "redo"
                or not any(not log.is_hidden(t) for t in log.turns)
                or (action == "files" and not any(log.active(t) for t in log.turns))
            )
            assert action != "redo" or not back
            continue
        session.carry_out(plan, contents)
        now = session.history
        if action == "redo":
            files, hidden = back.pop()
            assert session.files == files
            assert now.hidden == hidden
        else:
            back.append((before, log.hidden))
    log = session.history
    if any(not log.is_hidden(turn) for turn in log.turns):
        session.carry_out(plan_undo(log, "last", turns=99), contents)
    assert session.files == {}
    assert all(session.history.is_hidden(turn) for turn in session.history.turns)


def test_a_turn_goes_from_the_users_word_to_its_end_and_may_be_taken_up_again() -> None:
    session = Session()
    session.add(UserSaid(message_id="m1", parts=(Text(text="First\nline"),)))
    session.call({"a": "x"})
    session.add(UserSaid(message_id="m2", parts=(Text(text="meanwhile"),)), Stopped(reason="steps"))
    session.add(
        ModelCalled(
            step=2, model="m", head="", history=1, body="", rolling="", encoder=1, tokens=1, size=1
        )
    )
    session.call({"b": "y"})
    session.add(Stopped(reason="done"))
    session.turn({"a": "z"}, title="Second")
    first, second = session.history.turns
    assert (first.title, first.first, first.last, first.calls) == ("First line", 1, 7, ["c1", "c2"])
    assert (second.number, second.title, second.open) == (2, "Second", False)


def test_changes_of_one_path_add_up_and_a_gap_between_them_is_told() -> None:
    one = FileChange(path="a", kind="modified", before="1", after="2")
    two = FileChange(path="a", kind="modified", before="2", after="3", made=("d",))
    gap = FileChange(path="a", kind="modified", before="9", after="4")
    found = total([one, two])
    assert (found.effects["a"].before, found.effects["a"].after) == ("1", "3")
    assert (found.effects["a"].made, found.broken) == (("d",), ())
    assert total([one, two, gap]).broken == ("a",)


def test_a_move_is_a_removal_and_an_addition() -> None:
    moved = FileChange(
        path="new", kind="moved", before="1", after="2", moved_from="old",
        mode_before=0o100644, mode_after=0o100755, made=("d",),
    )  # fmt: skip
    gone, came = effects(moved)
    assert (gone.path, gone.before, gone.after, gone.mode_before) == ("old", "1", None, 0o100644)
    assert (came.path, came.before, came.after, came.mode_after) == ("new", None, "2", 0o100755)
    assert came.made == ("d",)


def test_a_lost_content_is_named_and_never_planned() -> None:
    session = Session()
    session.add(UserSaid(message_id="m", parts=(Text(text="Go"),)))
    lost = FileChange(path="big", kind="modified", after="2", lost=True)
    again = FileChange(path="big", kind="modified", before="2", after="3")
    fine = FileChange(path="small", kind="added", after="1")
    session.add(FilesChanged(call_id="c1", changes=(lost, fine)))
    session.add(FilesChanged(call_id="c2", changes=(again,)), Stopped(reason="done"))
    plan = plan_undo(session.history, "u")
    assert plan.lost == ("big",)
    assert [change.path for change in plan.undoing.files] == ["small"]


def test_the_todo_list_is_the_one_before_the_turn_whatever_was_undone_since() -> None:
    session = Session()

    def todo(text: str) -> TodoSet:
        return TodoSet(items=(TodoItem(id=1, text=text),))

    for text in ("one", "two"):
        session.add(UserSaid(message_id=text, parts=(Text(text=text),)), todo(text))
        session.add(Stopped(reason="done"))
    session.carry_out(plan_undo(session.history, "u1"), {})
    assert [item.text for item in session.history.todo] == ["one"]
    session.add(UserSaid(message_id="m3", parts=(Text(text="3"),)), todo("three"))
    session.add(Stopped(reason="done"))
    session.carry_out(plan_undo(session.history, "u2"), {})
    assert [item.text for item in session.history.todo] == ["one"]
    session.carry_out(plan_redo(session.history, "r"), {})
    assert [item.text for item in session.history.todo] == ["three"]


def test_the_beginning_of_a_calls_id_must_be_of_one_call() -> None:
    session = Session()
    session.turn(*({"a": str(number)} for number in range(12)))
    with pytest.raises(UsageError, match="Several calls"):
        plan_undo(session.history, "u", call="c")
    assert plan_undo(session.history, "u", call="c1").undoing.then.calls == ("c1",)


def test_an_undone_event_hides_its_spans_and_no_more() -> None:
    undone = Undone(undo_id="u", kind="undo", hidden=((3, 5), (9, 9)))
    assert [seq for seq in range(1, 12) if undone.hides(seq)] == [3, 4, 5, 9]
