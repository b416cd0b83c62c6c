"""session_start, session_interactive and session_stop, and when they are asked about."""

import sys
from pathlib import Path

import pytest

from croze.tools.approve import Approver
from croze.tools.builtin.background import BackgroundTasks
from croze.tools.builtin.pty_session import LIMIT, SessionInteractive, SessionStart, SessionStop
from croze.types.parts import ToolCall
from croze.workspace.background import MOST_RUNNING
from tests.sandboxes import running, until

LONG = 120


@pytest.fixture
async def context(fake_context):
    fake_context.env = dict(fake_context.env) | {"PYTHON_BASIC_REPL": "1", "PS1": "$ "}
    yield fake_context
    await fake_context.background.close()


async def start(context, command, **arguments):
    arguments = {"timeout": LONG} | arguments
    return await SessionStart(command=command, **arguments).run(context)


async def say(context, text="", session="term1", **arguments):
    arguments = {"timeout": LONG} | arguments
    return await SessionInteractive(session_id=session, input=text, **arguments).run(context)


async def test_a_python_repl_is_driven_over_two_calls(context):
    begun = await start(context, f"{sys.executable} -q", wait_for="^>>> $")
    assert begun.message == "Started term1. term1 is running."
    assert begun.data["session_id"] == "term1"
    assert [event.state for event in context.events] == ["running"]
    assert (await say(context, "x = 6 * 7", wait_for="^>>> $")).ok
    told = await say(context, "print(x)", wait_for="^>>> $")
    assert (told.text, told.data["waited_for"], told.data["shown"]) == (
        ">>> print(x)\n42\n>>> ",
        "found",
        "output",
    )
    left = await say(context, keys="C-d", wait_for="never")
    assert left.message.startswith("term1 has ended with exit code 0 after")
    assert "The pattern did not come." in left.message
    again = await say(context, "x")
    assert (again.ok, again.code) == (False, "session_ended")
    assert (await SessionStop(session_id="term1").run(context)).ok
    assert (await say(context)).code == "unknown_session"


async def test_a_debugger_finds_what_is_wrong_with_a_script(context):
    (context.workspace.root / "fails.py").write_text(
        "def share(total, people):\n    return total / people\n\n\nprint(share(10, 0))\n"
    )
    begun = await start(
        context, f"{sys.executable} -m pdb -c continue fails.py", wait_for=r"\(Pdb\) $"
    )
    assert "ZeroDivisionError" in begun.text
    asked = await say(context, "p total, people", wait_for=r"\(Pdb\) $")
    assert "(10, 0)" in asked.text
    assert "return total / people" in (await say(context, "list", wait_for=r"\(Pdb\) $")).text


async def test_a_session_begins_in_a_folder_of_the_workspace_only(context, tmp_path):
    (context.workspace.root / "sub").mkdir()
    (context.workspace.root / "out").symlink_to(tmp_path)
    begun = await start(context, "pwd; read x", cwd="sub", wait_for="sub$")
    assert begun.text.strip() == str(context.workspace.root / "sub")
    for outside in ("..", "/", str(tmp_path), "a\0b"):
        result = await start(context, "pwd", cwd=outside)
        assert (result.ok, result.code) == (False, "path_outside"), outside


async def test_what_it_was_sees_its_escapes_gone_and_its_length_bounded(context):
    begun = await start(
        context,
        r"printf '\033]0;t\007\033[31mred\033[0m \033]52;c;eA==\007on\n'; seq -f %060.0f 900; echo do''ne; read x",
        wait_for="^done$",
    )
    assert "\x1b" not in begun.text
    assert len(begun.text) < LIMIT + 200
    assert begun.text.startswith("[… ")
    assert begun.text.endswith("done\n")
    assert begun.truncated


async def test_stopping_ends_all_of_it(context):
    await start(context, "setsid sleep 7940001 & echo go; sleep 7940001", wait_for="go")
    await until(lambda: len(running(7940001)) == 2)
    listed = await BackgroundTasks(action="list").run(context)
    assert "term1 has been running" in listed.text
    assert (
        await BackgroundTasks(action="monitor", task_id="term1").run(context)
    ).code == "wrong_tool"
    stopped = await SessionStop(session_id="term1").run(context)
    assert (stopped.ok, stopped.data["state"]) == (True, "killed")
    assert running(7940001) == []
    assert context.background.jobs == {}


async def test_mistakes_are_results(context):
    assert (await start(context, "cat", wait_for="(")).code == "invalid_arguments"
    assert context.background.jobs == {}
    await start(context, "cat", timeout=0)
    assert (await say(context, keys="Entr")).code == "invalid_arguments"
    assert (await say(context, wait_for="(a*)*")).code == "invalid_arguments"
    assert (await say(context, session="term9")).code == "unknown_session"
    assert (await SessionStop(session_id="term9").run(context)).code == "unknown_session"


async def test_there_can_be_only_so_many(context):
    for _ in range(MOST_RUNNING):
        assert (await start(context, "cat", timeout=0)).ok
    before = len(list(Path("/proc/self/fd").iterdir()))
    assert (await start(context, "cat")).code == "too_many_tasks"
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def decide(approver, tool):
    name = type(tool).spec.name
    call = ToolCall("1", name)
    return approver.decide(name, tool.access(), call, tool)


def test_typing_is_asked_about_unless_this_terminal_was_allowed_and_looking_is_free():
    approver = Approver()
    typed = SessionInteractive(session_id="term1", input="ls")
    decision = decide(approver, typed)
    assert (decision.verdict, decision.kind, decision.rule) == (
        "ask",
        "execute",
        "session_interactive(terminal:term1)",
    )
    allowed = approver.with_rule(f"allow {decision.rule}")
    assert decide(allowed, typed).verdict == "allow"
    assert decide(allowed, SessionInteractive(session_id="term1", keys="C-c")).verdict == "allow"
    assert decide(allowed, SessionInteractive(session_id="term2", input="ls")).verdict == "ask"
    assert decide(approver, SessionInteractive(session_id="term1")).verdict == "allow"
    assert decide(approver, SessionInteractive(session_id="term1", keys="Enter")).verdict == "ask"
    assert decide(approver, SessionStop(session_id="term1")).verdict == "allow"
    assert decide(Approver(mode="plan"), typed).verdict == "deny"


def test_what_may_not_be_run_may_not_be_typed_or_started_on_a_terminal():
    approver = Approver(mode="full", deny=("execute_command(git push:*)",))
    assert decide(approver, SessionStart(command="git push origin")).verdict == "deny"
    assert decide(approver, SessionStart(command="bash")).verdict == "allow"
    assert decide(approver, SessionInteractive(session_id="t", input="git push")).verdict == "deny"
    assert decide(approver, SessionInteractive(session_id="t", input="git log")).verdict == "allow"
    none = Approver(mode="full", deny=("execute_command",))
    assert decide(none, SessionStart(command="bash")).verdict == "deny"


def test_a_session_elsewhere_is_asked_about_though_it_only_reads():
    assert decide(Approver(), SessionStart(command="cat a.txt", cwd="sub")).verdict == "ask"
