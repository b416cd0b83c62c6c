"""`croze blame` as a program over real sessions, real git and a real journal."""

import json
import subprocess
from typing import Any

import pytest

from tests.ui.test_timetravel_cli import Croze

FIRST = """\
- text: Working.
  calls: [{name: write_to_file, args: {path: a.txt, content: "one\\ntwo\\nthree\\n"}}]
- text: Done.
"""
SECOND = """\
- text: Working.
  calls:
  - name: replace_in_file
    args: {path: a.txt, diff: "<<<<<<< SEARCH\\ntwo\\n=======\\nTWO\\n>>>>>>> REPLACE"}
- text: Done.
"""


@pytest.fixture
def croze(tmp_path: Any) -> Croze:
    made = Croze(tmp_path)
    made.git("init", "-q", "-b", "main")
    made.put("a.txt", "one\ntwo\n")
    made.git("add", "-A")
    made.git("commit", "-qm", "first")
    return made


def origins(croze: Croze, path: str = "a.txt") -> list[tuple[str, dict[str, Any]]]:
    found = json.loads(croze.run("blame", path, "--json")[0])
    assert [line["line"] for line in found["lines"]] == list(range(1, len(found["lines"]) + 1))
    return [(line["text"], line["origin"]) for line in found["lines"]]


def test_each_line_has_its_session_turn_and_tool_and_the_rest_is_gits(croze: Croze) -> None:
    croze.play(FIRST, "write")
    croze.play(SECOND, "change", "--continue")
    one, two, three = (origin for _, origin in origins(croze))
    assert (one["by"], one["author"]) == ("git", "n")
    assert one["commit"] == croze.git("rev-parse", "HEAD").strip()
    assert (two["by"], two["turn"], two["tool"]) == ("croze", 2, "replace_in_file")
    assert (three["by"], three["turn"], three["tool"]) == ("croze", 1, "write_to_file")
    assert two["session"] == three["session"]
    assert two["agent"] == "main"
    assert two["call"] != three["call"]
    assert two["at"] > three["at"]


def test_what_the_user_wrote_before_between_and_after_is_the_users(croze: Croze) -> None:
    croze.put("a.txt", "mine\none\ntwo\n")
    croze.play(FIRST.replace("one\\ntwo\\nthree", "mine\\none\\ntwo\\nthree"), "write")
    croze.put("a.txt", "mine\nbetween\none\ntwo\nthree\n")
    croze.play(SECOND, "change, in another session")
    croze.put("a.txt", "mine\nbetween\none\nTWO\nthree\nafter\n")
    by = [(text, origin["by"]) for text, origin in origins(croze)]
    assert by == [
        ("mine", "you"), ("between", "you"), ("one", "git"), ("TWO", "croze"), ("three", "croze"),
        ("after", "you"),
    ]  # fmt: skip


def test_a_commit_does_not_take_lines_from_the_session_that_wrote_them(croze: Croze) -> None:
    croze.play(FIRST, "write")
    croze.git("commit", "-qam", "second")
    assert [origin["by"] for _, origin in origins(croze)] == ["git", "git", "croze"]


def test_an_undo_gives_the_lines_back_to_those_who_wrote_them(croze: Croze) -> None:
    croze.play(FIRST, "write")
    before = origins(croze)
    croze.play(SECOND, "change", "--continue")
    changed = origins(croze)
    croze.run("undo")
    assert origins(croze) == before
    croze.run("redo")
    assert origins(croze) == changed


def test_a_moved_file_keeps_its_history(croze: Croze) -> None:
    croze.play(FIRST, "write")
    move = """\
- text: Working.
  calls: [{name: execute_command, args: {command: "mv a.txt b.txt"}}]
- text: Done.
"""
    croze.play(move, "move", "--continue")
    text, origin = origins(croze, "b.txt")[2]
    assert (text, origin["tool"], origin["turn"]) == ("three", "write_to_file", 1)


def test_without_git_what_nobody_recorded_is_unknown(tmp_path: Any) -> None:
    croze = Croze(tmp_path)
    croze.put("a.txt", "one\ntwo\n")
    assert [origin["by"] for _, origin in origins(croze)] == ["unknown", "unknown"]
    croze.play(FIRST, "write")
    assert [origin["by"] for _, origin in origins(croze)] == ["unknown", "unknown", "croze"]


def test_the_table_names_who_and_where_in_both_languages(croze: Croze) -> None:
    croze.play(FIRST, "write")
    croze.put("a.txt", "one\ntwo\nthree\nfour\x1b]0;title\x07\n")
    rows = croze.run("blame", "a.txt")[0].splitlines()
    assert rows[0].split()[1] == "n"
    assert "main" in rows[2]
    assert "turn 1 write_to_file" in rows[2]
    assert rows[2].endswith("3  three")
    assert rows[3].startswith("you ")
    assert "\x1b" not in rows[3]
    croze.env["LANG"] = "zh_CN.UTF-8"
    rows = croze.run("blame", "a.txt")[0].splitlines()
    assert "第 1 轮 write_to_file" in rows[2]
    assert rows[3].startswith("你 ")


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("missing.txt", "There is no file missing.txt"),
        ("../outside.txt", "is outside of the project"),
        ("/etc/hostname", "is outside of the project"),
        ("folder", "is a folder"),
        ("binary", "binary"),
    ],
)
def test_what_can_not_be_blamed_is_said_with_the_next_step(
    croze: Croze, path: str, says: str
) -> None:
    (croze.project / "folder").mkdir()
    (croze.project / "binary").write_bytes(b"\0\1\2")
    (croze.project.parent / "outside.txt").write_text("x\n")
    told = croze.run("blame", path, code=2)[1]
    assert says in told
    assert len(told.strip().splitlines()) == 2


def test_a_link_is_followed_to_the_file_and_other_folders_work(croze: Croze) -> None:
    (croze.project / "sub").mkdir()
    croze.put("sub/b.txt", "b\n")
    done = subprocess.run(
        ["git", "-C", str(croze.project), "status", "--short"], capture_output=True, check=True
    )
    assert b"sub" in done.stdout
    assert [origin["by"] for _, origin in origins(croze, "sub/../sub/b.txt")] == ["you"]


def test_nothing_that_the_repository_names_is_run(croze: Croze) -> None:
    marker = croze.root / "ran"
    script = croze.root / "run.sh"
    script.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    script.chmod(0o755)
    (croze.project / ".gitattributes").write_text("*.txt filter=evil diff=evil\n")
    for key in ("filter.evil.clean", "diff.evil.textconv", "core.fsmonitor"):
        croze.git("config", key, str(script))
    croze.put("a.txt", "one\ntwo\nnew\n")
    assert len(origins(croze)) == 3
    assert not marker.exists()
