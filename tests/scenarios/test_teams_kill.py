"""kill -9 of a real process while three sub-agents are at work, on both wires: what they had done is told,
nothing is left over, and the conversation goes on. What it cost is the same wherever it is told."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.agent.team_cast import MARK, subagents
from tests.model_server import Reply, Request, ServerThread
from tests.sandboxes import running

CROZE = Path(sys.executable).parent / "croze"
BOUND = 60
MODELS = {"openai": "openai:gpt-4.1", "anthropic": "anthropic:claude-sonnet-4-5"}
AGENT = "---\nname: apart\ndescription: Works apart.\nisolation: worktree\n---\nYou change code.\n"
ROLES = ("alpha", "beta", "gamma")
FIRST = {
    "alpha": Reply(text="alpha begins", calls=[("write_to_file", {"path": "a.txt", "content": "a\n"})]),
    "beta": Reply(text="beta begins", calls=[("read_file", {"path": "b.txt"})]),
    "gamma": Reply(text="gamma begins", calls=[("write_to_file", {"path": "b.txt", "content": "g\n"})]),
}  # fmt: skip


@dataclass
class Cast:
    """The model of the main agent and of three others, who fall silent after their first call until
    `goes_on` is set."""

    goes_on: bool = False
    asked: dict[str, list[Request]] = field(default_factory=dict)
    at_work: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: Request) -> Reply:
        text = request.body.decode()
        task = text.rpartition(MARK)[2] if MARK in text else ""
        role = next((name for name in ROLES if name in task), "main")
        with self._lock:
            asked = self.asked.setdefault(role, [])
            asked.append(request)
            if not self.goes_on and all(len(self.asked.get(name, ())) >= 2 for name in ROLES):
                self.at_work.set()
        if role == "main":
            return self._main(text, len(asked))
        if len(asked) == 1:
            return FIRST[role]
        return Reply(text=f"{role} is done") if self.goes_on else Reply(fault="silent")

    def _main(self, text: str, number: int) -> Reply:
        if number == 1:
            orders = [
                {"name": "general", "task": "do alpha"},
                {"name": "explore", "task": "do beta"},
                {"name": "apart", "task": "do gamma"},
            ]
            return Reply(text="I ask three.", calls=[subagents(*orders)])
        way = "read_result with id "
        if way in text and "diff --git" not in text:
            child = text[text.index(way) + len(way) :][:8]
            return Reply(text="I look at it.", calls=[("read_result", {"id": child})])
        return Reply(calls=[("attempt_completion", {"result": "all done"})])


@dataclass
class Place:
    root: Path
    url: str
    wire: str

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def command(self) -> list[str]:
        return [
            str(CROZE),
            "run",
            "--model",
            MODELS[self.wire],
            "--mode",
            "full",
            "--sandbox",
            "off",
        ]

    @property
    def env(self) -> dict[str, str]:
        name = self.wire.upper()
        return {
            "PATH": os.environ["PATH"], "HOME": str(self.root / "home"), "LANG": "C.UTF-8",
            f"{name}_API_KEY": "sk-test", f"{name}_BASE_URL": self.url,
            "CROZE_STORE__BACKUP_ENABLED": "false", "CROZE_MARK": str(self.root),
        }  # fmt: skip

    def told(self, *argv: str) -> str:
        done = subprocess.run(
            [*argv], cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=BOUND, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def croze(self, *argv: str) -> str:
        return self.told(str(CROZE), *argv)

    def tree(self, session: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            self.croze("session", "tree", session, "--format", "json")
        )
        return found

    def sessions(self, *flags: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(
            self.croze("session", "list", "--format", "json", *flags)
        )
        return found


@pytest.fixture(params=sorted(MODELS))
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cast() -> Cast:
    return Cast()


@contextmanager
def repository(root: Path, model: Callable[[Request], Reply], wire: str) -> Iterator[Place]:
    agents = root / "home" / ".config" / "croze" / "agents"
    agents.mkdir(parents=True)
    (agents / "apart.md").write_text(AGENT)
    project = root / "project"
    project.mkdir()
    (project / "b.txt").write_text("b\n")
    for args in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "first")):
        named = ["git", "-c", "user.name=n", "-c", "user.email=e@x", *args]
        subprocess.run(named, cwd=project, check=True)
    with ServerThread(model) as server:
        yield Place(root, server.url if wire == "openai" else server.url.removesuffix("/v1"), wire)


@pytest.fixture
def place(tmp_path: Path, cast: Cast, wire: str) -> Iterator[Place]:
    with repository(tmp_path, cast, wire) as made:
        yield made


@pytest.mark.slow
def test_what_three_had_done_when_the_process_was_killed_is_told_and_kept(
    place: Place, cast: Cast
) -> None:
    process = subprocess.Popen(
        [*place.command, "the task"], cwd=place.project, env=place.env, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert cast.at_work.wait(BOUND)
    process.send_signal(signal.SIGKILL)
    assert process.wait(BOUND) == -signal.SIGKILL
    assert running(place.root) == []
    assert (place.project / "a.txt").read_text() == "a\n"
    assert (place.project / "b.txt").read_text() == "b\n"

    cast.goes_on = True
    (main,) = place.sessions()
    result = json.loads(place.told(*place.command, "--resume", main["id"], "-o", "json"))
    assert (result["ok"], result["answer"]) == (True, "all done")
    assert [len(cast.asked[name]) for name in ROLES] == [2, 2, 2], "nobody was asked again"
    last = cast.asked["main"][-1].body.decode()
    for word in ("alpha begins", "beta begins", "gamma begins", "changed: a.txt"):
        assert word in last, word
    assert "diff --git a/b.txt b/b.txt" in last
    assert (place.project / "b.txt").read_text() == "b\n"
    tree = place.tree(main["id"])
    assert [each["state"] for each in tree["children"]] == ["died"] * 3
    (copies,) = (place.root / "home" / ".local" / "share" / "croze").glob("*/worktrees")
    assert [path.name for path in copies.iterdir() if path.name != "kept"] == []
    for each in (tree, *tree["children"]):
        assert place.croze("replay", each["session"]).endswith("all the same byte for byte\n")

    alpha = next(each for each in tree["children"] if each["agent"] == "general")
    gone_on = json.loads(place.told(*place.command, "--resume", alpha["session"], "-o", "json"))
    assert (gone_on["ok"], gone_on["answer"]) == (True, "alpha is done")
    place.croze("undo", main["id"])
    assert not (place.project / "a.txt").exists()


@pytest.mark.slow
def test_what_it_cost_is_the_same_in_the_result_the_list_the_tree_and_for_programs(
    place: Place, cast: Cast
) -> None:
    cast.goes_on = True
    result = json.loads(place.told(*place.command, "the task", "-o", "json"))
    (main,) = place.sessions()
    tree = place.tree(main["id"])
    parts = tree["own_cost"] + sum(each["cost"] for each in tree["children"])
    assert 0 < tree["own_cost"] < tree["cost"]
    assert tree["cost"] == pytest.approx(parts)
    assert main["cost"] == pytest.approx(parts)
    assert main["children_cost"] == pytest.approx(parts - tree["own_cost"])
    assert result["cost"] == pytest.approx(parts)
    assert result["steps"] == tree["steps"] == 8
    assert result["input_tokens"] == 8 * 100
    assert result["files_changed"] == ["a.txt", "b.txt"]
    assert (place.project / "b.txt").read_text() == "g\n"
    kept = {row["id"] for row in place.sessions("--all")}
    assert kept == {main["id"], *(each["session"] for each in tree["children"])}

    # A copy has what the record says of its sub-agents, and none of theirs.
    lines = place.root / "talk.jsonl"
    place.croze("session", "export", main["id"], str(lines))
    (copy,) = place.croze("session", "import", str(lines), "--new-id").split()
    assert place.croze("replay", copy).endswith("all the same byte for byte\n")
    assert [each["cost"] for each in place.tree(copy)["children"]] == [
        each["cost"] for each in tree["children"]
    ]
    assert place.tree(copy)["cost"] == pytest.approx(parts)
    place.croze("session", "delete", copy, "--yes")
    assert {row["id"] for row in place.sessions("--all")} == kept

    # Elsewhere it comes with theirs.
    other = Place(place.root / "other", place.url, place.wire)
    other.project.mkdir(parents=True)
    assert other.croze("session", "import", str(lines)).split() == [main["id"]]
    assert other.tree(main["id"]) == tree
    assert other.sessions()[0]["cost"] == pytest.approx(parts)
    for row in other.sessions("--all"):
        assert other.croze("replay", row["id"]).endswith("all the same byte for byte\n")

    place.croze("session", "backup")
    place.croze("session", "delete", main["id"], "--yes")
    assert place.sessions("--all") == []
    place.croze("session", "restore", "--yes")
    assert {row["id"] for row in place.sessions("--all")} == kept
    assert place.tree(main["id"]) == tree


@pytest.mark.slow
def test_a_worker_whose_copy_is_gone_is_told_what_has_to_be_done_again(tmp_path: Path) -> None:
    seen: list[str] = []
    silent, lost = threading.Event(), threading.Event()

    def model(request: Request) -> Reply:
        text = request.body.decode()
        writes = Reply(calls=[("write_to_file", {"path": "w.txt", "content": "w\n"})])
        if "<task id=" not in text.replace("\\", ""):
            return Reply(text="tasks: [{id: one, agent: apart, task: Write w.txt.}]")
        if "<results>" in text:
            return Reply(text="All is done.")
        seen.append(text)
        if len(seen) == 1 or (lost.is_set() and len(seen) == 3):
            return writes
        if not lost.is_set():
            silent.set()
            return Reply(fault="silent")
        return Reply(text="It is written.")

    with repository(tmp_path, model, "openai") as place:
        command = [*place.command, "--agent", "orchestrator"]
        process = subprocess.Popen(
            [*command, "do it"], cwd=place.project, env=place.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert silent.wait(BOUND)
        process.send_signal(signal.SIGKILL)
        process.wait(BOUND)
        lost.set()
        (main,) = place.sessions()
        result = json.loads(place.told(*command, "--resume", main["id"], "-o", "json"))
        assert result["ok"], result
        assert "did not come back, and is not in this copy: w.txt" in seen[2]
        assert "did not come back" not in seen[1]
        assert (place.project / "w.txt").read_text() == "w\n"
        tree = place.tree(main["id"])
        for each in (tree, *tree["children"]):
            assert place.croze("replay", each["session"]).endswith("all the same byte for byte\n")
