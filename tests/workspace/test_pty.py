"""Live terminals: real programs, what is typed to them, and that nothing of them is left."""

import asyncio
import os
import shutil
import sys

import pytest

from croze.text.patterns import Pattern
from croze.workspace.background import Background
from croze.workspace.process import child_environment
from croze.workspace.pty import Terminal, TerminalStuck, keys_of
from croze.workspace.wrapper import Policy
from tests.sandboxes import need, running, until

ENV = {**child_environment(os.environ), "TERM": "xterm", "PS1": "$ ", "PYTHON_HISTORY": "/dev/null"}
LONG = 120.0


@pytest.fixture
async def background():
    made = Background()
    yield made
    await made.close()


async def start(background, *argv, rows=24, columns=80, cwd="/", sandbox=None, **env):
    terminal = Terminal(" ".join(argv), rows=rows, columns=columns)
    await background.start(
        terminal, argv, cwd=cwd, env={**ENV, **env}, sandbox=terminal.entrance(sandbox)
    )
    return terminal


async def say(terminal, text="", keys="Enter", *, until=None):
    """Type, and wait for a line: every wait here has a pattern, none a measured time."""
    data = text.encode() + keys_of(keys)
    await terminal.type(data)
    pattern = None if until is None else Pattern(until)
    return await terminal.wait(typed=bool(data), pattern=pattern, quiet=0.2, timeout=LONG)


async def test_a_python_repl_is_driven_over_several_turns(background):
    terminal = await start(background, sys.executable, "-q", PYTHON_BASIC_REPL="1")
    assert (await say(terminal, keys="", until="^>>> $")).text == ">>> "
    seen = await say(terminal, "x = 6 * 7", until="^>>> $")
    assert (seen.why, seen.kind) == ("found", "output")
    assert seen.text == ">>> x = 6 * 7\n>>> "
    seen = await say(terminal, "for n in range(2): print(n + x)\r", until="^43$")
    assert "\n42\n43\n" in seen.text + "\n"
    await say(terminal, keys="C-d")
    await until(lambda: not terminal.running)
    assert terminal.result.exit_code == 0


async def test_the_program_has_a_terminal_of_its_own(background):
    terminal = await start(
        background, "/bin/bash", "-c", "test -t 0 && test -t 1 && test -t 2 && echo yes $(stty size); "
        "echo tty > /dev/tty; read x; echo got $x",
        rows=11, columns=44,
    )  # fmt: skip
    assert (await say(terminal, keys="", until="^tty$")).text.startswith("yes 11 44\ntty")
    seen = await say(terminal, "it", until="got it")
    assert seen.text.endswith("got it\n")


async def test_a_shell_runs_jobs_and_an_interrupt_ends_only_the_job(background):
    terminal = await start(background, "/bin/bash", "--norc", "--noprofile", "-i")
    await say(terminal, keys="", until=r"\$ $")
    await terminal.type(b"sleep 7930001\r")
    await until(lambda: len(running(7930001)) == 1)
    await say(terminal, keys="C-c", until=r"\$ $")
    assert running(7930001) == []
    seen = await say(terminal, "echo status $?", until="status 130")
    assert terminal.running
    assert seen.kind == "output"


async def test_the_program_is_told_of_another_size(background):
    terminal = await start(
        background,
        "/bin/bash",
        "-c",
        "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.05; done",
    )
    await say(terminal, keys="", until="ready")
    terminal.resize(30, 100)
    seen = await say(terminal, keys="", until="30 100")
    assert seen.why in ("found", "ended")
    await until(lambda: not terminal.running)


@pytest.mark.skipif(shutil.which("less") is None, reason="no less here")
async def test_a_pager_is_seen_as_its_screen(background, tmp_path):
    (tmp_path / "text").write_text("".join(f"line {n}\n" for n in range(1, 101)))
    terminal = await start(background, "less", "text", rows=6, columns=30, cwd=tmp_path, LESS="")
    seen = await say(terminal, keys="", until="^line 5$")
    assert (seen.kind, seen.text.split("\n")[:2]) == ("screen", ["line 1", "line 2"])
    seen = await say(terminal, " ", "", until="^line 10$")
    assert seen.text.split("\n")[:5] == [f"line {n}" for n in range(6, 11)]
    seen = await say(terminal, "G", "", until="^line 100$")
    assert "line 96" in seen.text
    await say(terminal, "q", "")
    await until(lambda: not terminal.running)


@pytest.mark.skipif(shutil.which("vim") is None, reason="no vim here")
async def test_an_editor_edits(background, tmp_path):
    terminal = await start(
        background, "vim", "-u", "NONE", "-N", "file", cwd=tmp_path, HOME=str(tmp_path)
    )
    seen = await say(terminal, keys="", until="^~")
    assert seen.kind == "screen"
    seen = await say(terminal, "ihello", "", until="^hello")
    await say(terminal, keys="Esc")
    await say(terminal, ":wq")
    await until(lambda: not terminal.running)
    assert (tmp_path / "file").read_text() == "hello\n"


async def test_stopping_ends_what_ignores_it_and_what_has_left_the_session(background):
    terminal = await start(
        background, "/bin/bash", "-c",
        "trap '' TERM HUP INT; setsid bash -c 'trap \"\" TERM HUP; sleep 7930002; :' & "
        "(setsid nohup sleep 7930002 >/dev/null 2>&1 &); sleep 7930002; sleep 7930002",
    )  # fmt: skip
    await until(lambda: len(running(7930002)) == 3)
    await terminal.stop("killed")
    assert running(7930002) == []
    assert not terminal.running


async def test_a_program_that_lets_go_of_its_terminal_can_be_ended(background):
    terminal = await start(
        background, "/bin/bash", "-c", "exec </dev/null >/dev/null 2>&1; exec sleep 7930003"
    )
    await until(lambda: len(running(7930003)) == 1)
    assert terminal.running
    await background.close()
    assert running(7930003) == []


async def test_a_flood_waits_for_its_reader_and_takes_little_room(background):
    terminal = await start(background, "yes", "7930004")
    await terminal.wait(typed=False, pattern=None, quiet=5, timeout=1)
    seen = await terminal.wait(typed=False, pattern=Pattern("^7930004$"), quiet=5, timeout=LONG)
    assert (seen.why, seen.kind) == ("found", "output")
    assert len(seen.text) < 20_000
    await terminal.stop("killed")
    assert running(7930004) == []


async def test_a_program_that_takes_no_input_is_told(background, monkeypatch):
    monkeypatch.setattr("croze.workspace.pty._PATIENCE", 0.2)
    terminal = await start(
        background, "/bin/bash", "-c", "stty raw -echo; echo ready; sleep 7930005"
    )
    await say(terminal, keys="", until="ready")

    async def flood():
        for _ in range(200):
            await terminal.type(b"x" * 4_096)

    with pytest.raises(TerminalStuck, match="takes no input"):
        await flood()


async def test_a_program_that_isnt_there_says_so(background):
    terminal = await start(background, "/no/such/program")
    await until(lambda: not terminal.running)
    assert terminal.result.exit_code == 127
    assert (
        "No such file" in (await terminal.wait(typed=False, pattern=None, quiet=1, timeout=1)).text
    )


async def test_no_descriptors_are_left_behind(background):
    async def once():
        terminal = await start(background, "/bin/true")
        await until(lambda: not terminal.running)
        background.forget(terminal)

    await once()
    before = len(os.listdir("/proc/self/fd"))
    await asyncio.gather(*(once() for _ in range(5)))
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
async def test_a_terminal_in_the_sandbox_is_one_and_confined(background, kind, tmp_path):
    proof = need(kind)
    sandbox = proof.wrapper(Policy(root=tmp_path, level="workspace"))
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    terminal = await start(
        background, "/bin/bash", "--norc", "--noprofile", "-i", cwd=tmp_path, sandbox=sandbox
    )
    await say(terminal, keys="", until=r"\$ $")
    await say(
        terminal,
        f"echo no > {outside}; echo in > here; test -t 0 && echo a ter''minal",
        until="a terminal",
    )
    assert not outside.exists()
    assert (tmp_path / "here").read_text() == "in\n"
    await terminal.type(b"sleep 7930006\r")
    await until(lambda: len(running(7930006)) == 1)
    await say(terminal, keys="C-c", until=r"\$ $")
    assert running(7930006) == []
    await terminal.type(b"setsid sleep 7930006 & sleep 7930006\r")
    await until(lambda: len(running(7930006)) == 2)
    await terminal.stop("killed")
    assert running(7930006) == []


@pytest.mark.parametrize(
    ("names", "sent"),
    [("Enter", b"\r"), ("C-c C-d", b"\x03\x04"), ("Up esc", b"\x1b[A\x1b"), ("M-x F5", b"\x1bx\x1b[15~"), ("", b""), ("C-[", b"\x1b")],
)  # fmt: skip
def test_keys_have_names(names, sent):
    assert keys_of(names) == sent


@pytest.mark.parametrize("name", ["Entr", "C-", "C-é", "-"])
def test_an_unknown_key_is_refused(name):
    with pytest.raises(ValueError, match="is no key"):
        keys_of(name)
