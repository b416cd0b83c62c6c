"""kill -9 at every commit point: nothing that was shown is lost, nothing is run twice, every call has
exactly one result, and the session goes on."""

import asyncio
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from croze.app.app import App
from croze.app.options import ReplayReport
from croze.store.store import Store
from croze.types.event import Event, ModelSaid, Stopped, ToolReturned, ToolStarted, UserSaid
from croze.types.ids import SystemSource
from croze.types.parts import ToolCall
from tests.model_server import Reply, Request, ServerThread

CROZE = Path(sys.executable).parent / "croze"
BOUND = 60
AT_ONCE = 2
"""Kills that are tried side by side."""

STEPS = (
    Reply(
        text="First a command and a file.",
        calls=[
            ("execute_command", {"command": "echo one >> ran.txt", "requires_approval": False}),
            ("write_to_file", {"path": "made.txt", "content": "made\n"}),
        ],
    ),
    Reply(
        text="Then two readings.",
        calls=[
            ("list_files", {"path": "."}),
            ("search_files", {"regex": "one", "path": "."}),
        ],
    ),
    Reply(calls=[("execute_command", {"command": "echo two >> ran.txt"})]),
    Reply(calls=[("attempt_completion", {"result": "all done"})]),
)


def by_progress(request: Request) -> Reply:
    """What comes next depends on how many replies the request holds, as with a real model."""
    replies = sum(message["role"] == "assistant" for message in request.json["messages"])
    return STEPS[min(replies, len(STEPS) - 1)]


def croze(home: Path, project: Path, url: str, *args: str, failpoint: str = "") -> int:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "OPENAI_API_KEY": "sk-test",
        "OPENAI_BASE_URL": url,
        "CROZE_STORE__BACKUP_ENABLED": "false",
    }
    if failpoint:
        env["CROZE_FAILPOINT"] = failpoint
    done = subprocess.run(
        [CROZE, "run", *args, "--model", "openai:gpt-4.1", "--mode", "full", "--sandbox", "off"],
        cwd=project, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=BOUND, check=False,
    )  # fmt: skip
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode


def sessions(home: Path) -> dict[str, list[Event]]:
    """Every session of every store below `home`."""

    async def read() -> dict[str, list[Event]]:
        found = {}
        for path in home.glob(".local/share/croze/*/log.db"):
            store = Store.open(path.parent, source=SystemSource())
            try:
                names = [
                    str(row[0])
                    for row in store.database.connection.execute("SELECT id FROM sessions")
                ]
                for name in names:
                    found[name] = await store.read(name)
            finally:
                store.close()
        return found

    return asyncio.run(read())


def check(log: list[Event], *, complete: bool) -> None:
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    calls: list[str] = []
    for event in log:
        if isinstance(event.body, ModelSaid):
            calls += [part.id for part in event.body.parts if isinstance(part, ToolCall)]
    started = [event.body.call_id for event in log if isinstance(event.body, ToolStarted)]
    returned = [event.body.call_id for event in log if isinstance(event.body, ToolReturned)]
    assert len(set(started)) == len(started)
    assert len(set(returned)) == len(returned)
    assert set(returned) <= set(calls)
    if complete:
        assert sorted(returned) == sorted(calls)
        assert isinstance(log[-1].body, Stopped)
        assert log[-1].body.reason == "done"
        assert log[-1].body.text == "all done"


async def replayed(home: Path, project: Path, session: str) -> ReplayReport:
    app = App.open(cwd=project, env={"HOME": str(home)})
    try:
        return await app.replay(session)
    finally:
        await app.aclose()


def killed_then_resumed(tmp_path: Path, name: str, number: int) -> bool:
    """Kill at the n-th pass of a fail point, resume, check; False where that pass is never reached."""
    home, project = tmp_path / f"home-{name}-{number}", tmp_path / f"project-{name}-{number}"
    home.mkdir()
    project.mkdir()
    with ServerThread(by_progress) as server:
        code = croze(home, project, server.url, "the task", failpoint=f"{name}:{number}")
        if code == 0:
            return False
        before = sessions(home)
        assert len(before) <= 1
        for session, log in before.items():
            check(log, complete=False)
            said = any(isinstance(event.body, UserSaid) for event in log)
            over = any(isinstance(event.body, Stopped) for event in log)
            if not over:
                args = ("--resume", session) if said else ("the task", "--resume", session)
                assert croze(home, project, server.url, *args) == 0
            after = sessions(home)[session]
            assert after[: len(log)] == log
            check(after, complete=True)
            report = asyncio.run(replayed(home, project, session))
            assert report.divergence is None
            file = project / "ran.txt"
            ran = file.read_text().splitlines() if file.exists() else []
            assert len(set(ran)) == len(ran)
            assert set(ran) <= {"one", "two"}
    return True


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["create.after", "append.before", "append.after", "sync.after"])
def test_a_kill_at_any_commit_point_loses_nothing_and_repeats_nothing(
    tmp_path: Path, name: str
) -> None:
    kills = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for first in range(1, 60, AT_ONCE):
            numbers = range(first, first + AT_ONCE)
            killed = list(
                pool.map(lambda number: killed_then_resumed(tmp_path, name, number), numbers)
            )
            kills += sum(killed)
            if not all(killed):
                break
    assert kills >= {"create.after": 1, "sync.after": 5}.get(name, 15)
