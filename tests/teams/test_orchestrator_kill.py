"""kill -9 at every commit of an orchestrator's run: when it is taken up again it comes to the same end, and
no worker's command is run twice."""

import asyncio
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from croze.app.app import App
from croze.types.event import ChildOpened, Event, PlanSet, Stopped, UserSaid
from tests.model_server import Reply, Request, ServerThread
from tests.teams.orchestra import bodies

CROZE = Path(sys.executable).parent / "croze"
BOUND = 60
AT_ONCE = 2
PLAN = """```yaml
tasks:
  - {id: one, task: Count one.}
  - {id: two, task: Count two.}
  - {id: three, task: Count three., needs: [one, two]}
```"""


def by_role(request: Request) -> Reply:
    """What comes next depends on who asks and what the request holds, as with a real model."""
    messages = request.json["messages"]
    text = "\n".join(str(message.get("content")) for message in messages)
    if "Plan this objective" in text:
        return Reply(text=PLAN)
    if "Write the final answer" in text:
        return Reply(text="Counted to three.")
    name = next(name for name in ("one", "two", "three") if f'<task id="{name}">' in text)
    results = [str(message["content"]) for message in messages if message["role"] == "tool"]
    if results and ("interrupted" in results[-1] or "not run" in results[-1]):
        again = f"grep -qx {name} ran.txt || echo {name} >> ran.txt"
        return Reply(calls=[("execute_command", {"command": again})])
    if results:
        return Reply(text=f"I counted {name}.")
    return Reply(calls=[("execute_command", {"command": f"echo {name} >> ran.txt"})])


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


async def logs(home: Path, project: Path) -> list[list[Event]]:
    """The logs of the sessions that nobody called."""
    app = App.open(cwd=project, env={"HOME": str(home)})
    try:
        return [await app.store.read(found.id) for found in await app.conversations.list()]
    finally:
        await app.aclose()


async def replayed(home: Path, project: Path, session: str) -> str | None:
    app = App.open(cwd=project, env={"HOME": str(home)})
    try:
        return (await app.replay(session)).divergence
    finally:
        await app.aclose()


def check(log: list[Event], project: Path) -> None:
    """The end is that of an uninterrupted run."""
    assert isinstance(log[-1].body, Stopped)
    assert (log[-1].body.reason, log[-1].body.text) == ("done", "Counted to three.")
    plan = bodies(log, PlanSet)[-1]
    assert (plan.state, plan.revision) == ("done", 1)
    assert [(task.id, task.state, task.result) for task in plan.tasks] == [
        (name, "done", f"I counted {name}.") for name in ("one", "two", "three")
    ]
    ran = (project / "ran.txt").read_text().split()
    assert sorted(ran) == ["one", "three", "two"]
    assert ran[-1] == "three"


def killed_then_resumed(tmp_path: Path, name: str, number: int) -> bool:
    """Kill at the n-th pass of a fail point, resume, check; False where that pass is never reached."""
    home, project = tmp_path / f"home-{name}-{number}", tmp_path / f"project-{name}-{number}"
    home.mkdir()
    project.mkdir()
    with ServerThread(by_role) as server:
        new = ("Count to three.", "--agent", "orchestrator")
        code = croze(home, project, server.url, *new, failpoint=f"{name}:{number}")
        before = asyncio.run(logs(home, project))
        if code == 0:
            check(before[0], project)
            return False
        for log in before:
            session = log[0].session
            if not isinstance(log[-1].body, Stopped):
                said = any(isinstance(event.body, UserSaid) for event in log)
                args = ("--resume", session) if said else (*new, "--resume", session)
                assert croze(home, project, server.url, *args) == 0
            (after,) = asyncio.run(logs(home, project))
            assert after[: len(log)] == log
            check(after, project)
            assert asyncio.run(replayed(home, project, session)) is None
            done = {t.id for plan in bodies(log, PlanSet) for t in plan.tasks if t.state == "done"}
            opened = [o.label for o in bodies(after[len(log) :], ChildOpened)]
            assert not done & set(opened)
    return True


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_killed_before_any_commit_comes_to_the_same_end(tmp_path):
    """Before a commit stands all that the one before it has led to, commands that have run too."""
    number, going_on = 1, True
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while going_on:
            some = range(number, number + AT_ONCE)
            killed = pool.map(lambda n: killed_then_resumed(tmp_path, "append.before", n), some)
            going_on = all(killed)
            number += AT_ONCE
    assert number > 30
