"""A receipt tells from the log what was done, within a bound, with the ids that bring it back."""

from hypothesis import given, settings

from croze.context.receipt import HEADING, LIMIT, receipt
from croze.text.tokens import estimate
from tests.context.sessions import Session, sessions


def test_it_names_files_commands_failures_and_what_is_next() -> None:
    session = Session()
    session.user("go")
    session.call("read_file", {"path": "a.py"}, "text")
    first = session.edit("a.py", 10, 2)
    session.edit("b.py", 1, 0)
    again = session.edit("a.py", 5, 1)
    session.run("pytest -q", "1 failed", code=1)
    ok = session.run("pytest -q", "passed")
    bad = session.run("ruff check .", "E501", code=1)
    session.todo(("release", "pending"), ("fix ruff", "in_progress"), ("parse", "completed"))
    assert receipt(session.events, session.last) == (
        f"{HEADING}\n"
        "Done: 1 read, 3 commands, 3 edits\n"
        f"Files changed: a.py +15 -3 [{again[:8]}]; b.py +1 -0 [{session_id(first, 2)}]\n"
        f"Commands: `ruff check .` exit 1 [{bad[:8]}]; "
        f"`pytest -q` exit 1, then exit 0 (2 runs) [{ok[:8]}]\n"
        f"Failed and still open: execute_command ruff check .: exit 1 [{bad[:8]}]\n"
        "Next: (in work) 2. fix ruff; 1. release\n"
        "read_result brings a result back by the id in brackets."
    )


def session_id(message_id: str, later: int) -> str:
    return f"{int(message_id[:8], 16) + later:08x}"


def test_it_tells_only_of_what_stands_up_to_the_given_event() -> None:
    session = Session()
    session.user("go")
    session.run("make", "ok")
    until = session.last
    session.run("make install", "ok")
    assert "install" not in receipt(session.events, until)


def test_undone_changes_and_calls_are_not_in_it() -> None:
    session = Session()
    session.user("go")
    session.edit("kept.py")
    first = session.last + 1
    session.edit("gone.py")
    session.undo(first, session.last)
    text = receipt(session.events, session.last)
    assert "kept.py" in text
    assert "gone.py" not in text


def test_nothing_done_is_no_receipt() -> None:
    assert receipt([], 0) == ""
    session = Session()
    session.user("hello")
    assert receipt(session.events, session.last) == ""


def test_a_long_session_keeps_the_newest_and_says_how_many_more() -> None:
    session = Session()
    session.user("go")
    for n in range(300):
        session.edit(f"src/{'deep/' * 8}file_{n}.py")
        session.run(f"make target-{n} {'x' * 100}", "no", code=2)
    text = receipt(session.events, session.last)
    assert estimate(text) <= LIMIT
    assert "file_299.py" in text
    assert "target-299" in text
    assert " more" in text


@settings(max_examples=150, deadline=None)
@given(sessions())
def test_it_is_bounded_on_single_lines_and_always_the_same(session: Session) -> None:
    text = receipt(session.events, session.last)
    assert estimate(text) <= LIMIT
    assert text == receipt(list(session.events), session.last)
    assert len(text.split("\n")) <= 7
