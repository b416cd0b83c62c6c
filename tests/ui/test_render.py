"""What a session looks like on the terminal: one line a call, nothing doubled, nothing hidden."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from croze.types.event import (
    Asked,
    BackgroundTask,
    Body,
    Event,
    FilesChanged,
    ModelCalled,
    ModelSaid,
    Notice,
    Retried,
    Stopped,
    ToolReturned,
    ToolStarted,
)
from croze.types.model import Usage
from croze.types.parts import Text
from croze.types.stream import Delta
from croze.types.tool import Access, FileChange, View
from croze.ui.calls import subject_of
from croze.ui.cli.output import cells
from croze.ui.i18n import use_language
from croze.ui.render import HEAD_LINES, Screen, one_line_kept


class Page:
    """A screen and what was written on it."""

    def __init__(self, *, color: bool = False, width: int = 80, live: bool = False) -> None:
        self.written: list[str] = []
        self.screen = Screen(self.written.append, color=color, width=width, live=live)

    def show(self, *items: Body | Delta) -> str:
        for item in items:
            event = item if isinstance(item, Delta) else Event(session="s", seq=1, at=1, body=item)
            self.screen.watch(event)
        return self.text

    @property
    def text(self) -> str:
        return "".join(self.written)

    @property
    def lines(self) -> list[str]:
        """The lines as a terminal shows them in the end."""
        return [re.sub(r".*\r\x1b\[K", "", line) for line in self.text.split("\n")]


def started(name: str, call_id: str = "c1", **args: Any) -> ToolStarted:
    return ToolStarted(call_id=call_id, name=name, access=Access(), args=args)


def returned(name: str, title: str = "", call_id: str = "c1", **fields: Any) -> ToolReturned:
    given = {"ok": True, "view": View(title=title) if title else None, **fields}
    return ToolReturned(call_id=call_id, message_id="m", name=name, **given)


def output(text: str) -> Delta:
    return Delta(kind="output", text=text, call_id="c1")


def test_a_quiet_call_is_one_line_that_says_its_verb_once() -> None:
    page = Page()
    page.show(
        started("read_file", path="a.py"), returned("read_file", "Read a.py (lines 1-2 of 2)")
    )
    assert page.lines == ["✓ read_file a.py (lines 1-2 of 2)", ""]


def test_calls_that_run_beside_each_other_keep_a_line_each() -> None:
    page = Page(live=True)
    page.show(
        started("read_file", "c1", path="a.py"),
        started("read_file", "c2", path="b.py"),
        returned("read_file", "Read b.py (all)", "c2"),
        returned("read_file", "Read a.py (all)", "c1"),
    )
    assert page.lines == ["✓ read_file b.py (all)", "✓ read_file a.py (all)", ""]


def test_a_failed_call_names_what_it_was_about_once() -> None:
    page = Page()
    page.show(
        started("read_file", path="a.py"),
        returned("read_file", ok=False, message="The tool failed: PermissionError"),
        started("read_file", path="b.py"),
        returned("read_file", ok=False, message="b.py does not exist."),
        returned("nonsense", ok=False, message="Not run: there is no tool 'nonsense'."),
    )
    assert page.lines == [
        "✗ read_file a.py: The tool failed: PermissionError",
        "✗ read_file b.py does not exist.",
        "✗ nonsense Not run: there is no tool 'nonsense'.",
        "",
    ]


@pytest.mark.parametrize("live", [False, True])
def test_a_long_output_shows_its_beginning_and_its_end(live: bool) -> None:
    page = Page(live=live)
    whole = "".join(f"line {i}\n" for i in range(1, 31))
    page.show(started("execute_command", command="seq 30"))
    for at in range(0, len(whole), 7):
        page.show(output(whole[at : at + 7]))
    page.show(
        returned(
            "execute_command", ok=False, message="Exit code 3.",
            view=View(title="$ seq 30", body=whole, kind="output"),
        )
    )  # fmt: skip
    assert page.lines == [
        "● execute_command seq 30",
        *[f"  │ line {i}" for i in range(1, HEAD_LINES + 1)],
        "  │ … 18 more lines",
        *[f"  │ line {i}" for i in range(27, 31)],
        "  ✗ Exit code 3.",
        "",
    ]


def test_an_output_that_fits_is_shown_once() -> None:
    page = Page()
    page.show(
        started("execute_command", command="echo hi"),
        output("hi\n"),
        returned(
            "execute_command", message="Exit code 0.", seconds=1.25,
            view=View(title="$ echo hi", body="hi\n", kind="output"),
        ),
    )  # fmt: skip
    assert page.lines == [
        "● execute_command echo hi", "  │ hi", "  ✓ Exit code 0. (1.2 s)", "",
    ]  # fmt: skip


def test_a_diff_that_was_asked_about_is_not_shown_again() -> None:
    diff = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n"
    changes = (FileChange(path="x.py", kind="modified", diff=diff, added=1, removed=1),)
    asked = Asked(
        ask_id="q", kind="approval", text="May replace_in_file run? (it changes files)",
        call_id="c1", view=View(title="Edit x.py +1 -1", body=diff, kind="diff"),
    )  # fmt: skip
    rest = (
        started("replace_in_file", path="x.py"),
        FilesChanged(call_id="c1", changes=changes),
        returned("replace_in_file", "Edited x.py +1 -1"),
    )
    unasked, page = Page(), Page()
    unasked.show(*rest)
    page.show(asked, *rest)
    hunk = ["  @@ -1 +1 @@", "  -a", "  +b"]
    assert unasked.lines == ["✓ replace_in_file Edited x.py +1 -1", *hunk, ""]
    assert page.lines == [
        "? May replace_in_file run? (it changes files)", "  Edit x.py +1 -1", *hunk,
        "✓ replace_in_file Edited x.py +1 -1", "",
    ]  # fmt: skip


def test_a_command_to_approve_is_shown_to_its_last_character() -> None:
    command = "echo " + "a" * 500 + "; rm -rf \x1b[2K/\nsecond line"
    page = Page(width=60)
    page.show(
        Asked(
            ask_id="q", kind="approval", text="May execute_command run? (it runs a command)",
            call_id="c1", view=View(title="Run a command", body=command, kind="output"),
        )
    )  # fmt: skip
    assert "  echo " + "a" * 500 + "; rm -rf / ⏎" in page.lines
    assert "  second line" in page.lines
    assert "\x1b" not in page.text


def test_a_known_reason_is_asked_in_the_users_language_and_an_unknown_one_as_it_is() -> None:
    use_language("zh_CN")
    try:
        known = Page().show(
            Asked(ask_id="q", kind="approval", text="May write_to_file run? (it changes files)")
        )
        other = Page().show(Asked(ask_id="q", kind="approval", text="May x run? (because)"))
    finally:
        use_language("en")
    assert known == "? 允许运行 write_to_file 吗？（会修改文件）\n"
    assert other == "? May x run? (because)\n"


def test_a_question_of_the_agents_is_shown_once() -> None:
    page = Page()
    page.show(
        started("ask_followup_question", question="Which?"),
        Asked(ask_id="q", kind="question", text="Which?", options=("a", "b")),
        returned("ask_followup_question", "Answer: a"),
    )
    assert page.text.count("Which?") == 1
    assert "Answer" not in page.text


def test_the_answer_is_shown_in_full() -> None:
    answer = "# Title\n\n" + "\n".join(f"- point {i} " + "x" * 200 for i in range(100))
    page = Page()
    page.show(started("attempt_completion", result=answer), returned("attempt_completion", "Done"))
    assert page.text == answer + "\n"


def test_every_turn_is_summed_up_on_its_own() -> None:
    page = Page()
    said = ModelSaid(
        message_id="m", step=1, model="x", parts=(Text(text="t"),),
        usage=Usage(input=1000, output=20, cached=500),
    )  # fmt: skip
    change = FileChange(path="x", kind="modified", added=2, removed=1)
    page.show(
        said, said, FilesChanged(call_id="c", changes=(change,)),
        Stopped(reason="done", steps=2, cost=0.5),
        said, Stopped(reason="done", steps=1, cost=0.25),
    )  # fmt: skip
    assert page.lines == [
        "2 steps · 1 file +2 −1 · 2.0k tokens in (50 % cached), 40 out · $0.5000",
        "1 step · 1.0k tokens in (50 % cached), 20 out · $0.2500",
        "",
    ]


def test_what_is_unknown_is_left_out_of_the_sum() -> None:
    page = Page()
    page.show(
        ModelSaid(message_id="m", step=1, model="x", parts=(), usage=Usage()),
        Stopped(reason="cancelled", steps=1),
    )
    assert page.lines[-2] == "1 step"


def test_the_bottom_line_of_a_live_terminal_leaves_nothing_behind() -> None:
    page = Page(live=True)
    page.show(
        ModelCalled(
            step=1, model="m", head="", history=1, body="", rolling="", encoder=1, tokens=1, size=1
        ),
        Delta(kind="text", text="Hel"),
        Delta(kind="text", text="lo"),
        Delta(kind="call", name="write_to_file", call_id="c1"),
        started("write_to_file", path="a.py"),
        returned("write_to_file", "Created a.py"),
    )
    assert page.lines == ["Hello", "✓ write_to_file Created a.py", ""]
    assert "\x1b[K" not in Page().show(Delta(kind="call", name="write_to_file", call_id="c1"))


def test_what_comes_after_ctrl_c_begins_on_a_line_of_its_own() -> None:
    page = Page()
    page.show(started("execute_command", command="sleep 9"), output("start\n"))
    page.screen.interrupted()
    page.show(
        returned("execute_command", ok=False, message="interrupted, outcome unknown"),
        Stopped(reason="cancelled", steps=1),
    )
    assert "  ✗ interrupted, outcome unknown" in page.lines


def test_errors_come_with_their_next_step_and_retries_in_a_line() -> None:
    page = Page()
    page.show(
        Retried(attempt=1, delay=0.5, error="x", message="The server\nfailed."),
        Notice(level="error", code="x", text="No key.", params={"hint": "Set it."}),
        Stopped(reason="failed", text="No key."),
    )
    assert page.lines[:3] == ["The server failed.; next try in 0.5 s", "No key.", "  Set it."]
    assert page.text.count("No key.") == 1


@given(st.text(), st.integers(40, 120))
def test_nothing_from_outside_reaches_the_terminal_as_a_control(text: str, width: int) -> None:
    page = Page(width=width)
    page.show(
        Delta(kind="text", text=text),
        started("read_file", path=text),
        returned("read_file", text),
        started("execute_command", command=text),
        output(text),
        returned("execute_command", ok=False, message=text),
        Notice(level="error", code="x", text=text, params={"hint": text}),
        Asked(ask_id="q", kind="approval", text=text, view=View(title=text, body=text)),
        Stopped(reason="steps", text=text, steps=1),
    )
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page.text)


@given(st.text(st.characters(exclude_categories=["Cs", "Mn"]), max_size=60), st.integers(2, 40))
def test_a_cut_line_fits_the_terminal(text: str, width: int) -> None:
    assert cells(one_line_kept(text, width)) <= width


def test_the_most_telling_argument_is_the_subject() -> None:
    assert subject_of({"path": ".", "regex": "def x"}) == "def x"
    assert subject_of({"names": ["a", "b"]}) == "a, b"
    assert subject_of({"path": " ", "other": 3}) == ""


def test_the_end_of_a_background_task_is_one_line_unless_it_is_known() -> None:
    task = BackgroundTask("bg1", "command", "make \x1b[2J all\nmore")
    for known in (task, replace(task, state="killed"), replace(task, state="ended", told=True)):
        assert Page().show(known) == ""
    shown = Page(width=60).show(replace(task, state="ended", exit_code=2))
    assert shown.startswith("bg1 has ended with exit code 2 · make ")
    assert shown.count("\n") == 1
    assert "\x1b" not in shown
    assert cells(shown.rstrip("\n")) <= 60
    lost = Page().show(replace(task, state="lost"))
    assert lost.startswith("bg1 has ended with the croze that ran it · make")
    assert "SIGHUP" in Page().show(replace(task, state="ended", signal="SIGHUP"))


@pytest.mark.parametrize(
    ("title", "shown"), [("Run a command", 0), ("Run a command in the background", 1)]
)
def test_how_a_command_would_run_is_said_where_it_isnt_the_usual_way(
    title: str, shown: int
) -> None:
    asked = Asked(
        ask_id="a",
        kind="approval",
        text="May execute_command run? (it runs a command)",
        call_id="c1",
        view=View(title=title, body="make", kind="output"),
    )
    assert Page().show(asked).count(title) == shown
