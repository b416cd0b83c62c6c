"""Three sub-agents change one repository at once, each in a work tree of its own: the whole program."""

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.sandboxes import need
from tests.ui.test_timetravel_cli import START, Croze

TEXT = "".join(f"line {number}\n" for number in range(1, 31))
AGENT = """\
---
name: apart
description: Works apart.
isolation: worktree
---
You change code.
"""


def told_to(agents: dict[str, str]) -> str:
    """A script: `agents` maps a task to the calls of the one that gets it (YAML)."""
    asked = "mode: parallel\nsubagents:\n" + "".join(
        f"- {{name: apart, task: {task}}}\n" for task in agents
    )
    roles = "".join(
        f"- {{agent: apart, task: {task}, replies: [{{calls: [{calls}]}}, {{text: Done.}}]}}\n"
        for task, calls in agents.items()
    )
    return (
        f"replies:\n- calls: [{{name: run_named_subagents, args: {{subagents: {json.dumps(asked)}}}}}]\n"
        f"- text: All done.\nagents:\n{roles}"
    )


def change(path: str, old: str, new: str) -> str:
    diff = f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE"
    args = json.dumps({"path": path, "diff": diff})
    return json.dumps({"name": "replace_in_file"})[:-1] + f', "args": {args}}}'


def write(path: str, text: str) -> str:
    return json.dumps({"name": "write_to_file", "args": {"path": path, "content": text}})


def command(line: str) -> str:
    return json.dumps({"name": "execute_command", "args": {"command": line}})


@pytest.fixture
def croze(tmp_path: Path) -> Croze:
    made = Croze(tmp_path)
    agents = tmp_path / "home" / ".config" / "croze" / "agents"
    agents.mkdir(parents=True)
    (agents / "apart.md").write_text(AGENT)
    made.git("init", "-q", "-b", "main")
    made.put("a.txt", TEXT)
    made.put("b.txt", TEXT)
    made.git("add", "-A")
    made.git("commit", "-qm", "first")
    made.put("note.txt", "untracked\n")
    return made


def git_folder(croze: Croze) -> dict[str, str]:
    """Every file of the user's `.git` with its content."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((croze.project / ".git").rglob("*"))
        if path.is_file()
    }


def events(croze: Croze, kind: str) -> list[dict[str, Any]]:
    (path,) = (croze.root / "home" / ".local" / "share" / "croze").glob("*/log.db")

    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        rows = connection.execute("SELECT body FROM events WHERE type = ? ORDER BY id", (kind,))
        return [
            json.loads(zlib.decompress(body) if isinstance(body, bytes) else body)
            for (body,) in rows
        ]


def worktrees(croze: Croze) -> list[str]:
    (folder,) = (croze.root / "home" / ".local" / "share" / "croze").glob("*/worktrees")
    return sorted(os.listdir(folder))


THREE = {
    "first": change("a.txt", "line 3", "FIRST"),
    "second": change("a.txt", "line 20", "SECOND") + ", " + change("b.txt", "line 7", "SECOND"),
    "third": change("b.txt", "line 7", "THIRD") + ", " + write("new.txt", "new\n"),
}


def test_different_places_are_merged_the_same_line_is_named_and_blame_shows_each(
    croze: Croze,
) -> None:
    before = git_folder(croze)
    model = croze.script(told_to(THREE))
    shown = croze.run("run", "go", "--model", model, "--mode", "full", "--sandbox", "off")[1]
    assert "not merged: b.txt (both sides changed the same lines)" in shown
    text = croze.get("a.txt")
    assert text == TEXT.replace("line 3\n", "FIRST\n").replace("line 20\n", "SECOND\n")
    assert croze.get("b.txt") in (
        TEXT.replace("line 7\n", "SECOND\n"), TEXT.replace("line 7\n", "THIRD\n"),
    )  # fmt: skip
    assert croze.get("new.txt") == "new\n"
    assert git_folder(croze) == before
    assert worktrees(croze) == []
    conflicts = [each for merged in events(croze, "Merged") for each in merged.get("conflicts", ())]
    assert [each["path"] for each in conflicts] == ["b.txt"]
    assert "line 7" in conflicts[0]["text"]
    (returned,) = [e for e in events(croze, "ToolReturned") if e["name"] == "run_named_subagents"]
    assert "b.txt" in returned["text"]
    assert "same lines" in returned["text"]
    opened = {each["task"]: each["child"] for each in events(croze, "ChildOpened")}
    rows = json.loads(croze.run("blame", "a.txt", "--json")[0])["lines"]
    for line, task in ((3, "first"), (20, "second")):
        origin = rows[line - 1]["origin"]
        assert (origin["session"], origin["agent"]) == (opened[task], "apart")
        assert (origin["turn"], origin["tool"]) == (1, "replace_in_file")
    assert rows[0]["origin"]["by"] == "git"
    for child in opened.values():
        croze.run("replay", child)
    croze.run("replay", json.loads(croze.run("session", "list", "--format", "json")[0])[0]["id"])
    croze.run("undo")
    assert croze.get("a.txt") == TEXT
    assert croze.get("b.txt") == TEXT
    assert croze.get("new.txt") is None


def test_one_that_the_user_takes_up_is_told_that_its_copy_is_gone(croze: Croze) -> None:
    croze.play(told_to({"first": write("x.txt", "x\n")}), "go")
    (opened,) = events(croze, "ChildOpened")
    child = opened["child"]
    for reply in ("One.", "Two."):
        croze.play(f"- text: {reply}\n", "and now?", "--resume", child)
    facts = [each for each in events(croze, "FactAdded") if each["key"] == "work_tree:alone"]
    assert len(facts) == 1
    assert "project's own files" in facts[0]["text"]
    croze.run("replay", child)


def test_commands_see_their_own_copy_and_git_works_in_it(croze: Croze) -> None:
    croze.play(
        told_to(
            {
                "look": command(
                    "git status --short > seen.txt; git log --format=%s >> seen.txt; cat note.txt >> seen.txt"
                )
            }
        ),
        "go",
    )
    assert croze.get("seen.txt") == "A  note.txt\n?? seen.txt\nfirst\nuntracked\n"


def test_in_the_sandbox_git_works_and_neither_copy_nor_project_can_be_committed_to(
    croze: Croze,
) -> None:
    need("bubblewrap")
    line = (
        "git log --format=%s > seen.txt; git diff --stat; git status --short >> seen.txt; "
        f"git commit -qam x || echo refused >> seen.txt; echo x > {croze.project}/b.txt"
    )
    model = croze.script(told_to({"look": command(line)}))
    croze.run("run", "go", "--model", model, "--mode", "full", "--sandbox", "workspace")
    seen = (croze.get("seen.txt") or "").splitlines()
    assert seen == ["first", "A  note.txt", "?? seen.txt", "refused"]
    assert croze.get("b.txt") == TEXT


def test_a_project_without_git_is_told_to_the_model(tmp_path: Path, croze: Croze) -> None:
    subprocess.run(["rm", "-rf", str(croze.project / ".git")], check=True)
    croze.play(told_to({"first": write("x.txt", "x\n")}), "go")
    (returned,) = [e for e in events(croze, "ToolReturned") if e["name"] == "run_named_subagents"]
    assert "is no git repository" in returned["text"]
    assert croze.get("x.txt") is None


@pytest.mark.parametrize("point", ["worktree.made:2", "merge.file:1", "merge.done:1"])
def test_a_kill_in_the_middle_leaves_git_alone_and_all_is_told_on_resume(
    croze: Croze, point: str
) -> None:
    before = git_folder(croze)
    model = croze.script(told_to(THREE))
    done = subprocess.run(
        [sys.executable, "-c", START, "run", "go", "--model", model, "--mode", "full",
         "--sandbox", "off"],
        cwd=croze.project, env={**croze.env, "CROZE_FAILPOINT": point},
        stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == -9
    assert git_folder(croze) == before
    for path in ("a.txt", "b.txt"):
        text = croze.get(path)
        assert text is not None
        assert text.count("\n") == 30
    croze.play("- text: I see.\n", "go on", "--continue")
    assert [name for name in worktrees(croze) if name != "kept"] == []
    assert git_folder(croze) == before
    children = {each["child"] for each in events(croze, "ChildOpened")}
    closed = {each["child"] for each in events(croze, "ChildClosed")}
    assert closed == children
    merged = {each["child"] for each in events(croze, "Merged")}
    if point.startswith("merge"):
        assert merged
    applied = [path for each in events(croze, "Merged") for path in each.get("applied", ())]
    assert ("FIRST\n" in (croze.get("a.txt") or "")) <= ("a.txt" in applied)
    croze.run("replay", json.loads(croze.run("session", "list", "--format", "json")[0])[0]["id"])
