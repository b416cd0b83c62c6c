"""A summary has one form: asked for within a bound, put right where only its dress is off, refused where it
is rubbish, and made by plain code where no model can."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.context.project import SUMMARY_HEADING
from croze.context.summary import (
    FIELDS,
    LONG_TOKENS,
    carried,
    check,
    fallback,
    fields_of,
    normalise,
    one_sentence,
    request,
)
from croze.text.tokens import estimate
from croze.types.event import Compacted
from tests.context.sessions import Session, sessions

GOOD = """\
[History Summary]
- Overall Goal: make the loader strict. Then release it.
- Current Plan & Progress: parser done; next the tests
- Environment / Files: src/loader.py, tests/test_loader.py
- Key Knowledge / Insights: the format is version 3; see https://example.org/format
- Recent Actions: ran pytest, 2 failed
  edited src/loader.py
- Left-off Point: test_empty still fails with KeyError"""


def worked() -> Session:
    session = Session()
    session.user("Make the loader strict.")
    session.call(
        "read_file", {"path": "src/loader.py"}, "x = 1\n" * 50, observed={"src/loader.py": "h"}
    )
    session.edit("src/loader.py", 12, 4)
    session.run("pytest -q", "2 failed", code=1)
    session.todo(("write the parser", "completed"), ("fix test_empty", "in_progress"))
    session.user("Keep Python 3.9 working.")
    session.asked()
    session.said("The empty file breaks it. I look at the reader next.")
    return session


def test_a_summary_in_the_form_passes_as_it_is() -> None:
    assert check(GOOD) is None
    assert normalise(GOOD) == GOOD


@pytest.mark.parametrize(
    "slip",
    [
        GOOD.replace("\n", "\r\n"),
        f"```markdown\n{GOOD}\n```",
        f"Here is the summary:\n\n{GOOD}\n\nI hope this helps.",
        GOOD.replace("- Overall Goal:", "- **Overall Goal:**"),
        GOOD.replace("- Overall Goal:", "**Overall Goal**:"),
        GOOD.replace("- Current", "Current"),
        GOOD.replace("- Left", "* Left"),
        GOOD.replace("- Environment / Files", "3. Environment/Files"),
        GOOD.replace("Plan & Progress", "Plan and Progress"),
        GOOD.replace("[History Summary]", "## [History Summary]"),
        GOOD.replace("[History Summary]", "**[History Summary]**"),
        GOOD.replace("\n- ", "\n\n- "),
        f"\ufeff{GOOD}\n\n",
    ],
)
def test_small_slips_are_put_right(slip: str) -> None:
    assert normalise(slip) == GOOD


def test_a_field_on_several_lines_becomes_one_and_recent_actions_two() -> None:
    loose = GOOD.replace(
        "src/loader.py, tests/test_loader.py", "\n  - src/loader.py\n  - tests/test_loader.py"
    ).replace("  edited src/loader.py", "  edited src/loader.py\n  ran ruff")
    fixed = normalise(loose)
    assert check(fixed) is None
    assert "- Environment / Files: src/loader.py; tests/test_loader.py\n" in fixed
    assert "- Recent Actions: ran pytest, 2 failed; edited src/loader.py\n  ran ruff\n" in fixed


@pytest.mark.parametrize(
    ("rubbish", "reason"),
    [
        ("", "doesn't begin"),
        ("I can't help with that.", "doesn't begin"),
        (GOOD.replace("[History Summary]", "Summary"), "doesn't begin"),
        (GOOD.rpartition("\n")[0], "lacks the field Left-off Point"),
        (GOOD.replace("test_empty still fails with KeyError", "..."), "says nothing"),
        (
            GOOD.replace("test_empty still fails with KeyError", "<where it stopped>"),
            "says nothing",
        ),
        (GOOD.replace("edited src", "<read_file>\n<path>a</path>\n</read_file>"), "markup"),
        (GOOD.replace("edited src", '<tool_result tool_name="x" success="true">'), "markup"),
        (GOOD.replace("parser done", "aGk" * 200), "isn't prose"),
        (GOOD.replace("parser done", "word " * 900), "tokens instead"),
        ("\n".join([SUMMARY_HEADING, *(f"- {field}: yes" for field in FIELDS)]), "the same"),
    ],
)
def test_rubbish_is_refused_with_the_reason(rubbish: str, reason: str) -> None:
    found = check(normalise(rubbish))
    assert found is not None
    assert reason in found


def test_fields_in_another_order_are_put_in_order() -> None:
    lines = GOOD.split("\n")
    assert normalise("\n".join([lines[0], lines[7], *lines[1:7]])) == GOOD


def test_the_summary_by_code_has_the_form_and_the_facts() -> None:
    session = worked()
    text = fallback(session.events, session.last, "")
    assert check(text) is None
    found = fields_of(text)
    assert "Make the loader strict." in found["Overall Goal"]
    assert "Keep Python 3.9 working." in found["Overall Goal"]
    assert found["Current Plan & Progress"] == "1 of 2 items done; next: fix test_empty"
    assert "src/loader.py (modified +12 -4)" in found["Environment / Files"]
    assert "execute_command pytest -q failed: exit 1" in found["Key Knowledge / Insights"]
    assert "exit 1" in found["Recent Actions"]
    assert found["Left-off Point"].startswith("The empty file breaks it.; open: execute_command")


def test_the_summary_by_code_takes_over_what_only_a_model_could_know() -> None:
    session = worked()
    text = fallback(session.events, session.last, GOOD)
    assert "the format is version 3" in fields_of(text)["Key Knowledge / Insights"]


def test_an_empty_log_has_a_summary_too() -> None:
    assert check(fallback([], 0, "")) is None


@settings(max_examples=150, deadline=None)
@given(sessions(), st.sampled_from(["", GOOD, "nonsense"]))
def test_the_summary_by_code_always_has_the_form(session: Session, earlier: str) -> None:
    text = fallback(session.events, session.last, earlier)
    assert check(text) is None
    assert normalise(text) == text
    assert text == fallback(session.events, session.last, earlier)


@settings(max_examples=60, deadline=None)
@given(sessions(), st.sampled_from([1_500, 3_000, 6_000]), st.sampled_from(["", GOOD, GOOD * 20]))
def test_the_request_keeps_within_its_bound(session: Session, limit: int, earlier: str) -> None:
    system, question = request(session.events, session.last, earlier, limit=limit)
    assert estimate(system) + estimate(question) <= max(limit, 2_400)


def test_a_long_session_is_asked_for_within_the_bound_and_says_what_it_leaves_out() -> None:
    session = Session()
    session.user("First of all, 把这个做完。" * 20)
    for n in range(400):
        session.run(f"make step-{n}", "很长的输出 " * 200, code=n % 2)
        if n % 40 == 0:
            session.user(f"wish number {n}")
    system, question = request(session.events, session.last, "")
    assert 4_000 < estimate(system) + estimate(question) <= 6_000
    assert "把这个做完" in question
    assert "wish number 360" in question
    assert "make step-399" in question
    assert "lines left out]" in question


def test_an_earlier_summary_is_handed_over_as_it_is_and_its_part_is_not_told_again() -> None:
    session = worked()
    session.add(Compacted("digest", "r", until=session.last, summary=GOOD))
    session.run("make release", "done")
    _, question = request(session.events, session.last, GOOD)
    assert GOOD in question
    assert "make release" in question
    assert "pytest -q" not in question.replace(GOOD, "")


def test_an_earlier_summary_that_has_grown_too_long_is_cut_to_goal_files_and_open_work() -> None:
    grown = GOOD.replace("parser done", "parser done and " * 150)
    assert estimate(grown) > LONG_TOKENS
    short = carried(grown)
    assert estimate(short) <= LONG_TOKENS
    assert set(fields_of(short)) == {
        "Overall Goal",
        "Current Plan & Progress",
        "Environment / Files",
        "Left-off Point",
    }
    assert carried(GOOD) == GOOD


def test_what_is_undone_is_not_summarised() -> None:
    session = Session()
    session.user("one")
    first = session.last + 1
    session.run("rm -r build", "gone")
    session.undo(first, session.last)
    session.user("two")
    assert "rm -r build" not in fallback(session.events, session.last, "")
    assert "rm -r build" not in request(session.events, session.last, "")[1]


def test_one_sentence_a_line_keeps_the_form() -> None:
    short = one_sentence(GOOD)
    assert check(short) is None
    assert "- Overall Goal: make the loader strict.\n" in short
    assert estimate(short) < estimate(GOOD)
    assert one_sentence(short) == short
