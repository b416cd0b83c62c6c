"""Programs beside the conversation, in whole sessions under both protocols."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from croze.agent.outside import redacted
from croze.app.app import App, Session
from croze.app.options import RunOptions
from croze.types.background import BackgroundTask
from croze.types.event import Asked, FactAdded
from tests.sandboxes import need, running, until
from tests.scenarios.conftest import SRC, START, Stage

SERVER = """
import http.server
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
open("port", "w").write(str(server.server_port))
print("listening on port", server.server_port, flush=True)
server.serve_forever()
"""
FETCH = """
import urllib.request
address = "http://127.0.0.1:" + open("port").read() + "/hello.txt"
print(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=60).read().decode())
"""
Call = tuple[str, dict[str, object]]


def script(*turns: Sequence[Call]) -> str:
    """A model that makes each turn's calls, one a step, and is done."""
    replies: list[object] = []
    for calls in turns:
        for name, args in calls:
            replies.append({"text": "On.", "calls": [{"name": name, "args": args}]})
        replies.append({"text": "Done."})
    return json.dumps(replies)


def tasks(session: Session) -> list[tuple[str, str]]:
    return [
        (e.body.task_id, e.body.state) for e in session.events if isinstance(e.body, BackgroundTask)
    ]


def notices(session: Session) -> list[str]:
    return [
        e.body.text
        for e in session.events
        if isinstance(e.body, FactAdded) and e.body.key == "background"
    ]


def options(stage: Stage, model: str, **more: object) -> RunOptions:
    dialect = "xml" if stage.dialect == "xml" else "native"
    return RunOptions(
        model=stage.script(model),
        dialect=dialect,
        mode="full",
        sandbox="off",
        headless=True,
        **more,
    )  # type: ignore[arg-type]


async def test_a_server_is_started_awaited_asked_and_ended(stage: Stage) -> None:
    stage.write("server.py", SERVER)
    stage.write("fetch.py", FETCH)
    stage.write("hello.txt", "hello from the server")
    python = sys.executable
    played = await stage.play(
        script(
            [
                ("execute_command", {"command": f"{python} server.py 7950001", "background": True}),
                ("background_task", {"action": "monitor", "task_id": "bg1", "wait": 60, "until": "port \\d+"}),
                ("execute_command", {"command": f"{python} fetch.py"}),
                ("background_task", {"action": "kill", "task_id": "bg1"}),
                ("background_task", {"action": "list"}),
            ]
        )
    )  # fmt: skip
    started, ready, fetched, ended, listed = played.results
    assert started.message == "Started in the background as bg1."
    assert "The pattern was found" in ready.message
    assert ready.text.startswith("listening on port")
    assert fetched.text == "hello from the server"
    assert ended.ok
    assert "bg1 was ended" in listed.text
    assert running(7950001) == []
    assert played.stopped.reason == "done"
    assert await stage.divergence(played.session) is None


async def test_a_repl_is_driven_over_two_calls_and_a_debugger_over_three(stage: Stage) -> None:
    stage.write("fails.py", "people = []\nprint(10 / len(people))\n")
    python = sys.executable
    pdb = "\\(Pdb\\) $"
    played = await stage.play(
        script(
            [
                ("session_start", {"command": f"PYTHON_BASIC_REPL=1 {python} -q", "wait_for": "^>>> $", "timeout": 60}),
                ("session_interactive", {"session_id": "term1", "input": "x = 6 * 7", "wait_for": "^>>> $", "timeout": 60}),
                ("session_interactive", {"session_id": "term1", "input": "print(x)", "wait_for": "^>>> $", "timeout": 60}),
                ("session_start", {"command": f"{python} -m pdb -c continue fails.py", "wait_for": pdb, "timeout": 60}),
                ("session_interactive", {"session_id": "term2", "input": "p people", "wait_for": pdb, "timeout": 60}),
                ("session_stop", {"session_id": "term2"}),
                ("session_stop", {"session_id": "term1"}),
            ]
        )
    )  # fmt: skip
    assert [result.ok for result in played.results] == [True] * 7
    assert played.results[2].text == ">>> print(x)\n42\n>>> "
    assert "ZeroDivisionError" in played.results[3].text
    assert "p people\n[]" in played.results[4].text
    assert await stage.divergence(played.session) is None


async def test_the_question_says_where_and_how_it_would_run(stage: Stage) -> None:
    stage.write("sub/a.txt", "a")
    played = await stage.play(
        script(
            [
                ("session_start", {"command": "cat a.txt", "cwd": "sub"}),
                ("execute_command", {"command": "sleep 7950003", "background": True}),
                ("session_interactive", {"session_id": "term1", "input": "ls"}),
                ("session_interactive", {"session_id": "term1"}),
            ]
        ),
        mode="ask",
    )
    asked = [event.body for event in played.events if isinstance(event.body, Asked)]
    root = stage.project.resolve()
    assert [each.cwd for each in asked] == [str(root / "sub"), str(root), str(root)]
    assert [each.view.title for each in asked if each.view is not None] == [
        "Run on a live terminal in sub",
        "Run a command in the background",
        "Type into term1 (?)",
    ]
    assert [result.code for result in played.results] == ["not_allowed"] * 3 + ["unknown_session"]
    assert played.stopped.refused == 3


async def test_an_end_is_recorded_while_idle_and_told_once_with_the_next_request(
    stage: Stage,
) -> None:
    calls: Sequence[Call] = [
        ("execute_command", {"command": "echo bye; exit 3", "background": True})
    ]
    app = App.open(cwd=stage.project)
    try:
        session = await app.session(options(stage, script(calls, [], [])))
        await session.submit("Start it.")
        await until(lambda: tasks(session) == [("bg1", "running"), ("bg1", "ended")])
        await session.submit("And?")
        await session.submit("And now?")
        (text,) = notices(session)
        assert "bg1 (echo bye; exit 3) ended with exit code 3 after" in text
        assert "the last line: bye" in text
    finally:
        await app.aclose()
    assert await stage.divergence(session.id) is None


async def test_leaving_ends_what_runs_and_a_fork_or_resume_is_told(stage: Stage) -> None:
    start: Call = ("execute_command", {"command": "sleep 7950002", "background": True})
    app = App.open(cwd=stage.project)
    try:
        session = await app.session(options(stage, script([start])))
        await session.submit("Start it.")
        await until(lambda: len(running(7950002)) == 1)
        fork = await app.session(options(stage, script([], []), resume=await session.fork()))
        assert tasks(fork) == [("bg1", "running"), ("bg1", "lost")]
        await fork.submit("Go on.")
        assert "ended with the process that ran it" in notices(fork)[0]
        assert len(running(7950002)) == 1
    finally:
        await app.aclose()
    assert running(7950002) == []
    app = App.open(cwd=stage.project)
    try:
        again = await app.session(options(stage, script([start], []), resume=session.id))
        assert tasks(again) == [("bg1", "running"), ("bg1", "closed")]
        await again.submit("Go on.")
        assert "was ended when the conversation was left" in notices(again)[0]
        assert tasks(again)[2] == ("bg2", "running")
    finally:
        await app.aclose()
    assert running(7950002) == []


@pytest.mark.parametrize(
    ("number", "sandbox"),
    [
        (signal.SIGKILL, "off"),
        (signal.SIGINT, "off"),
        (signal.SIGTERM, "off"),
        (signal.SIGHUP, "off"),
        (signal.SIGKILL, "workspace"),
    ],
)
async def test_whatever_ends_croze_ends_what_runs_beside(
    number: int, sandbox: str, tmp_path: Path
) -> None:
    if sandbox != "off":
        need("bubblewrap")
    mark = 7960000 + number + (100 if sandbox == "off" else 0)
    stage = Stage(tmp_path, "native")
    model = stage.script(
        script(
            [
                ("execute_command", {"command": f"trap '' HUP TERM; setsid sleep {mark} & sleep {mark}", "background": True}),
                ("session_start", {"command": f"trap '' HUP TERM; (setsid nohup sleep {mark} &); sleep {mark}", "timeout": 0}),
                ("execute_command", {"command": f"trap '' TERM; sleep {mark}; sleep {mark}"}),
            ]
        )
    )  # fmt: skip
    croze = subprocess.Popen(
        [sys.executable, "-B", "-c", START, "run", "go", "--model", model, "--mode", "full", "--sandbox", sandbox],
        cwd=stage.project, env={**os.environ, "HOME": str(tmp_path / "home"), "PYTHONPATH": str(SRC)},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        await until(lambda: len(running(mark)) == 5 or croze.poll() is not None, 60)
        assert len(running(mark)) == 5
        croze.send_signal(number)
        await asyncio.to_thread(croze.wait, 60)
        await until(lambda: running(mark) == [])
    finally:
        croze.kill()
        croze.wait()
        for pid in running(mark):
            os.kill(pid, signal.SIGKILL)


def test_what_the_log_keeps_of_a_task_holds_no_secret() -> None:
    key = "sk-ant-api03-" + "aB3dE5" * 16
    task = BackgroundTask(
        "bg1", "command", f"curl -H 'x-api-key: {key}'", state="ended", last=f"key={key}", error=key
    )
    kept = redacted(task)
    assert isinstance(kept, BackgroundTask)
    assert key not in kept.command + kept.last + kept.error
    assert redacted(BackgroundTask("bg1", "command", "make")) == BackgroundTask(
        "bg1", "command", "make"
    )
