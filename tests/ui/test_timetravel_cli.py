"""`croze undo`, `redo`, `diff`, `checkpoints` and `commit` as programs over real sessions."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
START = "import sys; from croze.ui.cli.main import main; sys.exit(main())"

WORK = """\
- text: Working.
  calls:
  - {name: write_to_file, args: {path: a.txt, content: "new\\n"}}
  - {name: execute_command, args: {command: "echo made > made.txt; mv old.txt moved.txt"}}
- text: Done.
"""
MORE = """\
- text: Working.
  calls: [{name: write_to_file, args: {path: a.txt, content: "newer\\n"}}]
- text: Done.
"""
SHOUT = "- text: |-\n    ```\n    Shout louder\n\n    Because.\n    ```\n"


class Croze:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / "project"
        self.project.mkdir()
        self.env = {
            "HOME": str(root / "home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8",
            "PYTHONPATH": str(SRC),
        }  # fmt: skip

    def put(self, path: str, text: str) -> None:
        (self.project / path).write_text(text)

    def get(self, path: str) -> str | None:
        file = self.project / path
        return file.read_text() if file.exists() else None

    def script(self, text: str, name: str = "script.yaml") -> str:
        path = self.root / name
        path.write_text(text)
        return f"scripted:{path}"

    def put_away(self, session: str) -> str:
        """Every event of a session, as JSON lines."""
        path = self.project.parent / "events.jsonl"
        self.run("session", "export", session, str(path))
        return path.read_text()

    def run(self, *argv: str, code: int = 0) -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, "-c", START, *argv],
            cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout, done.stderr

    def play(self, text: str, task: str, *more: str) -> None:
        model = self.script(text)
        self.run("run", task, "--model", model, "--mode", "full", "--sandbox", "off", *more)

    def git(self, *args: str) -> str:
        return subprocess.run(
            ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-c", "maintenance.auto=false", *args],
            cwd=self.project, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip


@pytest.fixture
def croze(tmp_path: Path) -> Croze:
    made = Croze(tmp_path)
    made.put("a.txt", "one\n")
    made.put("old.txt", "old\n")
    return made


@pytest.fixture
def repository(croze: Croze) -> Croze:
    croze.git("init", "-q", "-b", "main")
    croze.git("config", "user.name", "The User")
    croze.git("config", "user.email", "user@example.org")
    croze.git("add", "-A")
    croze.git("commit", "-qm", "before")
    return croze


def test_a_turn_is_undone_and_redone_from_another_process(croze: Croze) -> None:
    croze.play(WORK, "Make it new")
    out, err = croze.run("undo")
    assert out.splitlines()[0] == "undone: turn 1"
    assert set(out.splitlines()[1:]) == {
        "  M a.txt",
        "  D made.txt",
        "  D moved.txt",
        "  A old.txt",
    }
    assert "croze redo" in err
    assert (croze.get("a.txt"), croze.get("old.txt"), croze.get("made.txt")) == (
        "one\n", "old\n", None,
    )  # fmt: skip
    out, _err = croze.run("redo")
    assert out.startswith("redone: turn 1\n")
    assert (croze.get("a.txt"), croze.get("moved.txt")) == ("new\n", "old\n")


def test_a_changed_file_is_named_and_nothing_happens(croze: Croze) -> None:
    croze.play(WORK, "Make it new")
    croze.put("made.txt", "mine\n")
    _out, err = croze.run("undo", code=1)
    assert "made.txt" in err
    assert "Nothing was touched" in err
    assert croze.get("a.txt") == "new\n"


def test_the_diff_is_of_all_turns_or_one_and_a_table(croze: Croze) -> None:
    croze.play(WORK, "First")
    croze.play(MORE, "Second", "--continue")
    out, _ = croze.run("diff")
    assert "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+newer\n" in out
    assert "rename from old.txt\nrename to moved.txt\n" in out
    out, _ = croze.run("diff", "--turn", "2")
    assert out == "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-new\n+newer\n"
    out, _ = croze.run("diff", "--stat")
    assert [line.split() for line in out.splitlines()] == [
        ["M", "+1", "-1", "a.txt"],
        ["A", "+1", "-0", "made.txt"],
        ["R", "+0", "-0", "old.txt", "→", "moved.txt"],
    ]
    out, _ = croze.run("diff", "--format", "json")
    assert {change["path"] for change in json.loads(out)} == {"a.txt", "made.txt", "moved.txt"}
    _, err = croze.run("diff", "--turn", "7", code=2)
    assert "no turn 7" in err


def test_checkpoints_list_turns_and_calls_to_undo(croze: Croze) -> None:
    croze.play(WORK, "First task")
    croze.play(MORE, "Second", "--continue")
    points = json.loads(croze.run("checkpoints", "--format", "json")[0])
    call = points[1]["calls"][0]["call_id"]
    out, _ = croze.run("undo", "--call", call)
    assert "  M a.txt" in out
    assert croze.get("a.txt") == "new\n"
    out, _ = croze.run("checkpoints", "--calls")
    rows = [line.split() for line in out.splitlines()]
    assert rows[0][0] == "1"
    assert rows[0][3:6] == ["4", "files", "+2"]
    assert rows[0][-2:] == ["First", "task"]
    assert rows[-1] == [call, "write_to_file", "+1", "-1", "undone", "a.txt"]
    assert "files undone" in out


def test_wrong_usage_is_said_in_one_line(croze: Croze) -> None:
    assert "no current conversation" in croze.run("undo", code=2)[1]
    croze.play(WORK, "First task")
    assert "exclude each other" in croze.run("undo", "--call", "x", "--turns", "2", code=2)[1]
    assert "There is no session" in croze.run("undo", "nobody", code=1)[1]
    assert "nothing to redo" in croze.run("redo", code=2)[1]
    assert "no git repository" in croze.run("commit", code=2)[1]


def test_one_commit_holds_the_sessions_files_and_leaves_the_rest(repository: Croze) -> None:
    repository.put("dirty.txt", "mine\n")
    repository.play(WORK, "Make it new, please")
    repository.put("staged.txt", "staged\n")
    repository.git("add", "staged.txt")
    out, _ = repository.run("commit", "--dry-run")
    assert out.startswith("Make it new, please\n")
    assert repository.git("log", "--format=%s").split("\n")[0] == "before"
    out, _ = repository.run("commit")
    assert out.split("\n")[0].endswith(" Make it new, please")
    assert repository.git("show", "--format=%s", "--name-status", "--no-renames", "HEAD").split() == [
        "Make", "it", "new,", "please", "M", "a.txt", "A", "made.txt", "A", "moved.txt", "D", "old.txt",
    ]  # fmt: skip
    assert repository.git("status", "--porcelain").splitlines() == ["A  staged.txt", "?? dirty.txt"]
    assert "nothing to commit" in repository.run("commit", code=1)[1]
    repository.play(MORE, "And newer", "--continue")
    repository.run("commit", "-m", "My own words")
    assert repository.git("log", "-1", "--format=%s") == "My own words\n"
    assert repository.git("show", "--format=", "--name-only", "HEAD") == "a.txt\n"


@pytest.mark.parametrize(
    ("when", "says"),
    [("before", "before the session"), ("since", "changed since"), ("staged", "staged")],
)
def test_files_with_changes_of_the_users_own_are_protected(
    repository: Croze, when: str, says: str
) -> None:
    if when == "before":
        repository.put("a.txt", "mine\n")
    repository.play(WORK, "Make it new")
    if when == "since":
        repository.put("a.txt", "mine\n")
    if when == "staged":
        repository.put("a.txt", "mine\n")
        repository.git("add", "a.txt")
        repository.put("a.txt", "new\n")
    head = repository.git("rev-parse", "HEAD")
    _, err = repository.run("commit", code=1)
    assert "a.txt" in err
    assert says in err
    assert "--all" in err
    assert repository.git("rev-parse", "HEAD") == head
    repository.run("commit", "--all")
    assert "a.txt" in repository.git("show", "--format=", "--name-only", "HEAD")


def test_only_the_last_turn_and_no_ignored_file_is_committed(repository: Croze) -> None:
    repository.put(".gitignore", "secret.txt\n")
    repository.git("add", ".gitignore")
    repository.git("commit", "-qm", "ignore")
    repository.play(WORK, "First")
    repository.play(MORE.replace("a.txt", "secret.txt"), "Second", "--continue")
    _, err = repository.run("commit", "--last", code=1)
    assert "nothing to commit" in err
    repository.play(MORE.replace("a.txt", "b.txt"), "Third", "--continue")
    repository.run("commit", "--last")
    assert repository.git("show", "--format=%s", "--name-only", "HEAD").split() == [
        "Third",
        "b.txt",
    ]
    _, err = repository.run("commit")
    assert "secret.txt (git ignores it)" in err


def test_the_commit_model_writes_the_message_and_its_failure_is_no_failure(
    repository: Croze,
) -> None:
    repository.play(WORK, "Make it new")
    repository.env["CROZE_MODEL__COMMIT"] = "scripted:/nowhere/at/all.yaml"
    out, err = repository.run("commit", "--dry-run")
    assert out.startswith("Make it new\n")
    assert "the model wrote no message" in err
    repository.env["CROZE_MODEL__COMMIT"] = repository.script(SHOUT, "shout.yaml")
    report = json.loads(repository.run("commit", "--format", "json")[0])
    assert (report["by"], report["message"]) == ("model", "Shout louder\n\nBecause.\n")
    assert repository.git("log", "-1", "--format=%B").strip() == "Shout louder\n\nBecause."
    shown, _ = repository.run("session", "show", report["session"])
    assert "Shout louder" not in shown  # asked aside: recorded and paid, no part of the talk
    exported = repository.put_away(report["session"])
    assert exported.count('"purpose":"commit"') == 2
    again, _ = repository.run("replay", report["session"])
    assert "all the same byte for byte" in again


def test_undo_works_on_after_a_commit_and_leaves_git_alone(repository: Croze) -> None:
    repository.play(WORK, "Make it new")
    repository.run("commit")
    head = repository.git("rev-parse", "HEAD")
    repository.run("undo")
    assert repository.get("a.txt") == "one\n"
    assert repository.git("rev-parse", "HEAD") == head
    assert "nothing to commit" in repository.run("commit", code=1)[1]
