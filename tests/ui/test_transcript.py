"""A conversation as text, and its way out of the store and back by the command line."""

import json
import re
from pathlib import Path

import pytest

from tests.ui.test_cli_real import Croze

WORK = """\
- text: I look.
  calls:
  - {name: read_file, args: {path: a.txt}}
  - {name: read_file, args: {path: nope.txt}}
- text: Last.
  calls: [{name: execute_command, args: {command: "echo hi; exit 3"}}]
- calls: [{name: attempt_completion, args: {result: "All fine.\\n\\nSecond paragraph."}}]
"""
TAGS = """\
- text: "I look.\\n<read_file>\\n<path>a.txt</path>\\n</read_file>"
- text: "<attempt_completion>\\n<result>All fine.</result>\\n</attempt_completion>"
"""


@pytest.fixture
def croze(tmp_path: Path) -> Croze:
    croze = Croze(tmp_path)
    (croze.project / "a.txt").write_text("x = 1\n")
    return croze


def talk(croze: Croze, script: str, *argv: str) -> str:
    """Run a task and give the conversation's id."""
    model = croze.script(script)
    _code, _out, err = croze.run("run", "look at it", "--model", model, *argv)
    found = re.search(r"conversation ([0-9a-f-]{36})", err)
    assert found is not None
    return found[1]


def body(shown: str) -> list[str]:
    """The transcript without its header, times and ids."""
    return [re.sub(r"  20.*", "", line) for line in shown.splitlines()[3:]]


def test_a_call_is_one_line_with_its_subject_its_result_and_whether_it_failed(croze: Croze) -> None:
    session = talk(croze, WORK, "--mode", "full", "--sandbox", "off")
    code, out, _err = croze.run("session", "show", session[:8])
    assert code == 0
    assert body(out) == [
        "── user",
        "look at it",
        "",
        "── assistant",
        "I look.",
        "✓ read_file a.txt, lines 1-1 of 1",
        "✗ read_file nope.txt does not exist.",
        "",
        "── assistant",
        "Last.",
        "✗ execute_command echo hi; exit 3: Exit code 3.",
        "",
        "── assistant",
        "All fine.",
        "",
        "Second paragraph.",
    ]


def test_calls_as_tags_stand_as_they_were_written_with_their_results_below(croze: Croze) -> None:
    session = talk(croze, TAGS, "--dialect", "xml")
    shown = body(croze.run("session", "show", session)[1])
    assert shown[3:9] == [
        "── assistant",
        "I look.",
        "<read_file>",
        "<path>a.txt</path>",
        "</read_file>",
        "✓ read_file a.txt, lines 1-1 of 1",
    ]


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_a_conversation_goes_out_and_comes_back(croze: Croze, tmp_path: Path, suffix: str) -> None:
    session = talk(croze, WORK, "--mode", "full", "--sandbox", "off")
    shown = croze.run("session", "show", session)[1]
    file = tmp_path / f"out.{suffix}"
    assert croze.run("session", "export", session[:8], str(file))[0] == 0
    code, _out, err = croze.run("session", "import", str(file))
    assert code == 1
    assert session in err
    assert croze.run("session", "delete", "--yes", session)[0] == 0
    assert croze.run("session", "import", str(file))[:2] == (0, f"{session}\n")
    again = croze.run("session", "show", session)[1]
    assert body(again) == body(shown)
    code, new, _err = croze.run("session", "import", "--new-id", str(file))
    assert code == 0
    assert new.strip() != session
    assert len(croze.run("session", "list")[1].splitlines()) == 2


def test_a_conversation_is_forked_renamed_found_and_counted(croze: Croze) -> None:
    session = talk(croze, WORK, "--mode", "full", "--sandbox", "off")
    messages = json.loads(croze.run("session", "show", session, "--format", "json")[1])["messages"]
    first = messages[0]["message_id"]
    code, forked, _err = croze.run("session", "fork", session, "--at", first, "--name", "分支")
    assert code == 0
    assert body(croze.run("session", "show", forked.strip())[1]) == ["── user", "look at it"]
    assert croze.run("session", "rename", session, "an older one")[0] == 0
    rows = croze.run("session", "list")[1].splitlines()
    assert len(rows) == 2
    columns = [re.split(r"\s{2,}", row) for row in rows]
    assert {row[4] for row in columns} == {"an older one", "分支"}
    assert {row[2] for row in columns} == {"1 message", "8 messages"}
    hits = croze.run("session", "search", "paragraph")[1]
    assert "All fine. Second paragraph." in hits
    assert "an older one" in hits
    assert croze.run("session", "search", "no-such-word")[0] == 1
    stats = croze.run("session", "stats")[1]
    assert re.search(r"^conversations +2$", stats, re.MULTILINE)
    assert re.search(r"^read_file +2$", stats, re.MULTILINE)


def test_columns_stand_below_each_other_in_chinese_too(croze: Croze) -> None:
    croze.env["LANG"] = "zh_CN.UTF-8"
    from croze.ui.cli.output import cells

    for name in ("项目", "a"):
        script = croze.script("- text: 好\n")
        croze.run("run", "你好", "--model", script)
        session = json.loads(croze.run("session", "list", "--format", "json")[1])[0]["id"]
        croze.run("session", "rename", session, name)
    rows = croze.run("session", "list")[1].splitlines()
    assert len({cells(row[: row.index("你好")]) for row in rows}) == 1
    assert "2 条消息" in rows[0]
