"""kill -9 while agents speak with each other: the run goes on, with the same sessions."""

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from croze.types.event import ChildClosed, ChildOpened, Event, SessionOpened, Stopped, ToolReturned
from croze.types.team import TeamSaid
from tests.agent.test_kill import croze, sessions
from tests.model_server import Reply, Request, ServerThread

AT_ONCE = 2


def by_progress(request: Request) -> Reply:
    """The run's own agent asks twice; the agent that is asked counts the messages that it has heard."""
    messages = request.json["messages"]
    texts = [str(message["content"]) for message in messages if message["role"] == "user"]
    heard = [text for text in texts if "Message from main" in text]
    if heard:
        return Reply(text=f"I have heard {len(heard)}")
    replies = sum(message["role"] == "assistant" for message in messages)
    if replies < 2:
        asked = {"agent": "explore", "message": f"question {replies + 1}"}
        return Reply(calls=[("call_tool", {"name": "talk_to", "arguments": asked})])
    return Reply(calls=[("attempt_completion", {"result": "all done"})])


def killed_then_resumed(tmp_path: Path, name: str, number: int) -> bool:
    """Kill at the n-th pass of a fail point, resume, check; False where that pass is never reached."""
    home, project = tmp_path / f"home-{number}", tmp_path / f"project-{number}"
    home.mkdir()
    project.mkdir()
    with ServerThread(by_progress) as server:
        code = croze(home, project, server.url, "the task", failpoint=f"{name}:{number}")
        if code == 0:
            return False
        assert code == -signal.SIGKILL
        before = sessions(home)
        root = next((id for id, log in before.items() if parent(log) is None), None)
        if root is None:
            return True
        if not isinstance(before[root][-1].body, Stopped):
            args = ("the task",) if len(before[root]) < 3 else ()
            assert croze(home, project, server.url, *args, "--resume", root) == 0
        check(root, sessions(home))
    return True


def parent(log: list[Event]) -> str | None:
    first = log[0].body
    return first.parent if isinstance(first, SessionOpened) else None


def check(root: str, logs: dict[str, list[Event]]) -> None:
    log = [event.body for event in logs[root]]
    assert isinstance(log[-1], Stopped)
    assert (log[-1].reason, log[-1].text) == ("done", "all done")
    opened = [body for body in log if isinstance(body, ChildOpened)]
    closed = [body for body in log if isinstance(body, ChildClosed)]
    assert [body.child for body in opened] == [body.child for body in closed]
    known = {body.child for body in opened if body.child in logs}
    assert len(known) <= 1, "the agent has one session"
    answers = [b for b in log if isinstance(b, TeamSaid) and b.sender == "explore" and not b.error]
    results = [b for b in log if isinstance(b, ToolReturned) and b.name == "talk_to" and b.ok]
    assert {each.text for each in results} <= {each.text for each in answers}
    if len(results) == 2:
        assert answers[-1].text == "I have heard 2"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["create.after", "append.after"])
def test_a_kill_at_any_commit_of_a_talk_is_gone_on_from(tmp_path: Path, name: str) -> None:
    kills = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for first in range(1, 80, AT_ONCE):
            numbers = range(first, first + AT_ONCE)
            killed = list(pool.map(lambda n: killed_then_resumed(tmp_path, name, n), numbers))
            kills += sum(killed)
            if not all(killed):
                break
    assert kills >= {"create.after": 2}.get(name, 20)
