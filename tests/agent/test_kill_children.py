"""kill -9 while sub-agents work: the caller's log tells what they had done, every one of them is closed,
nothing is run twice, and their sessions can be gone on with."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from croze.agent.child import children_of
from croze.types.event import Event, FilesChanged, SessionOpened, Stopped, ToolReturned, UserSaid
from tests.agent.team_cast import MARK, subagents
from tests.agent.test_kill import AT_ONCE, croze, replayed, sessions
from tests.model_server import Reply, Request, ServerThread

ROLES = {
    "main": (
        Reply(
            text="I ask two.",
            calls=[
                ("write_to_file", {"path": "main.txt", "content": "main\n"}),
                subagents("do alpha", "do beta"),
            ],
        ),
        Reply(calls=[("attempt_completion", {"result": "all done"})]),
    ),
    "alpha": (
        Reply(text="alpha begins", calls=[("write_to_file", {"path": "a.txt", "content": "a\n"})]),
        Reply(calls=[("execute_command", {"command": "echo alpha >> ran.txt"})]),
        Reply(text="alpha is done"),
    ),
    "beta": (
        Reply(text="beta begins", calls=[("execute_command", {"command": "echo beta >> ran.txt"})]),
        Reply(text="beta is done"),
    ),
}


def by_progress(request: Request) -> Reply:
    """What comes next depends on who asks and how many of his replies the request holds."""
    text = request.body.decode()
    task = text.rpartition(MARK)[2] if MARK in text else ""
    role = next((name for name in ("alpha", "beta") if name in task), "main") if task else "main"
    replies = [m for m in request.json["messages"] if m["role"] == "assistant"]
    made = sum(bool(m.get("tool_calls")) or "is done" in str(m.get("content")) for m in replies)
    steps = ROLES[role]
    return steps[min(made, len(steps) - 1)]


def check(logs: dict[str, list[Event]], main: str) -> None:
    """The whole family is in order."""
    for session, log in logs.items():
        known = children_of(log)
        assert all(each.report is not None for each in known)
        assert len({each.opened.child for each in known}) == len(known)
        returned = [e.body.call_id for e in log if isinstance(e.body, ToolReturned)]
        assert len(set(returned)) == len(returned)
        first = log[0].body
        assert isinstance(first, SessionOpened)
        assert first.parent == (None if session == main else main)
    children = {known.opened.child for known in children_of(logs[main])}
    assert set(logs) - {main} <= children
    owned = {
        (change.path, change.after, change.by)
        for event in logs[main]
        if isinstance(event.body, FilesChanged)
        for change in event.body.changes
        if change.by
    }
    theirs = {
        (change.path, change.after, child)
        for child in children & set(logs)
        for event in logs[child]
        if isinstance(event.body, FilesChanged)
        for change in event.body.changes
    }
    assert owned == theirs


def lines(project: Path) -> Sequence[str]:
    file = project / "ran.txt"
    return file.read_text().splitlines() if file.exists() else ()


def killed_then_resumed(tmp_path: Path, name: str, number: int) -> bool:
    home, project = tmp_path / f"home-{name}-{number}", tmp_path / f"project-{name}-{number}"
    home.mkdir()
    project.mkdir()
    with ServerThread(by_progress) as server:
        if croze(home, project, server.url, "the task", failpoint=f"{name}:{number}") == 0:
            return False
        before = sessions(home)
        mains = [
            session
            for session, log in before.items()
            if isinstance(log[0].body, SessionOpened) and log[0].body.parent is None
        ]
        if not mains:
            return True
        (main,) = mains
        log = before[main]
        if not any(isinstance(event.body, Stopped) for event in log):
            said = any(isinstance(event.body, UserSaid) for event in log)
            args = ("--resume", main) if said else ("the task", "--resume", main)
            assert croze(home, project, server.url, *args) == 0
        after = sessions(home)
        assert after[main][: len(log)] == log
        check(after, main)
        stopped = after[main][-1].body
        assert isinstance(stopped, Stopped)
        assert (stopped.reason, stopped.text) == ("done", "all done")
        told = "\n".join(e.body.text for e in after[main] if isinstance(e.body, ToolReturned))
        for known in children_of(after[main]):
            report = known.report
            assert report is not None
            if report.reason == "died":
                assert f"session {known.opened.child[:8]}: died" in told
                assert not report.text or report.text in told
        assert len(set(lines(project))) == len(lines(project))
        for session in after:
            assert asyncio.run(replayed(home, project, session)).divergence is None
    return True


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "stride", "least"),
    [
        ("create.after", 1, 3),
        ("append.before", 3, 10),
        ("append.after", 3, 10),
        ("sync.after", 2, 6),
        ("journal.intent", 1, 2),
    ],
)
def test_a_kill_while_children_work_loses_nothing_and_repeats_nothing(
    tmp_path: Path, name: str, stride: int, least: int
) -> None:
    kills = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for first in range(1, 120, AT_ONCE * stride):
            numbers = range(first, first + AT_ONCE * stride, stride)
            killed = list(pool.map(lambda at: killed_then_resumed(tmp_path, name, at), numbers))
            kills += sum(killed)
            if not all(killed):
                break
    assert kills >= least


@pytest.mark.slow
def test_a_child_that_died_can_be_gone_on_with_by_its_id(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    with ServerThread(by_progress) as server:
        child = ""
        for number in range(30, 60):
            if (
                croze(home, project, server.url, "the task", failpoint=f"append.after:{number}")
                == 0
            ):
                break
            for session, log in sessions(home).items():
                first = log[0].body
                stopped = any(isinstance(event.body, Stopped) for event in log)
                said = any(isinstance(event.body, UserSaid) for event in log)
                if isinstance(first, SessionOpened) and first.parent and said and not stopped:
                    child = session
            if child:
                break
        assert child
        assert croze(home, project, server.url, "--resume", child) == 0
        last = sessions(home)[child][-1].body
        assert isinstance(last, Stopped)
        assert last.text in ("alpha is done", "beta is done")
