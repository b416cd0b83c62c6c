"""The chat on a real (pseudo) terminal: what is drawn, keys, signals, and the terminal afterwards."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
START = "import sys; from croze.ui.cli.main import main; sys.exit(main())"
WAIT = 30.0
"""Seconds that a terminal may be silent before a test fails."""


class Terminal:
    """`croze` on a pseudo terminal of 100 by 40."""

    def __init__(self, root: Path, *argv: str, **env: str) -> None:
        project = root / "project"
        project.mkdir(exist_ok=True)
        self.master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (40, 100))
        self.before = termios.tcgetattr(self.master)
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, *argv],
            cwd=project, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            env={
                "HOME": str(root / "home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8",
                "TERM": "xterm", "PYTHONPATH": str(SRC), **env,
            },
            preexec_fn=lambda: __import__("fcntl").ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(slave)
        self.seen = ""

    def until(self, word: str, *, after: int = 0) -> str:
        """All that was shown once `word` has come after position `after`."""
        deadline = time.monotonic() + WAIT
        while word not in self.plain[after:]:
            ready, _, _ = select.select([self.master], [], [], deadline - time.monotonic())
            assert ready, f"{word!r} did not come; seen: {self.plain!r}"
            try:
                block = os.read(self.master, 65_536)
            except OSError:
                block = b""
            assert block, f"the program ended before {word!r}; seen: {self.plain!r}"
            self.seen += block.decode("utf-8", "replace")
            # A terminal answers when it is asked where the cursor is.
            if "\x1b[6n" in block.decode("utf-8", "replace"):
                os.write(self.master, b"\x1b[1;1R")
        return self.plain

    @property
    def plain(self) -> str:
        return re.sub(r"\x1b(\[[0-9;?]*[A-Za-z]|[=>])", "", self.seen)

    def question(self, *, after: int) -> None:
        """Wait until a question can be answered; what is typed before is dropped."""
        self.until("›", after=self.until("y yes", after=after).index("y yes", after))

    def type(self, text: str) -> int:
        """Press keys; gives the position from which on something new is shown."""
        at = len(self.plain)
        os.write(self.master, text.encode())
        return at

    def end(self) -> int:
        """The exit code, once all that it writes has been read."""
        while True:
            ready, _, _ = select.select([self.master], [], [], WAIT)
            assert ready, f"the program does not end; seen: {self.plain!r}"
            try:
                block = os.read(self.master, 65_536)
            except OSError:
                break
            if not block:
                break
            self.seen += block.decode("utf-8", "replace")
        return self.process.wait(WAIT)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.yaml"
    path.write_text(SCRIPT)
    return f"scripted:{path}"


SCRIPT = f"""\
chunk: 8
delay: 0.01
replies:
- text: {"word " * 2000}
- text: Going on.
- calls: [{{name: write_to_file, args: {{path: a.txt, content: hello}}}}]
- text: Ready.
- calls: [{{name: execute_command, args: {{command: "echo begun; sleep 600"}}}}]
- text: After.
"""


@pytest.fixture
def terminal(tmp_path: Path, script: str) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path, "--model", script)
    yield terminal
    terminal.close()


def test_a_whole_chat(terminal: Terminal, tmp_path: Path) -> None:
    terminal.until("›")
    at = terminal.type("say it\r")
    terminal.until("word word", after=at)
    at = terminal.type("\x03")
    terminal.until("Stopped.", after=at)
    at = terminal.type("go on\r")
    terminal.until("Going on.", after=at)
    at = terminal.type("write\r")
    terminal.question(after=at)
    assert not (tmp_path / "project/a.txt").exists()
    at = terminal.type("y\r")
    terminal.until("Ready.", after=at)
    assert (tmp_path / "project/a.txt").exists()
    at = terminal.type("run\r")
    terminal.question(after=at)
    at = terminal.type("y\r")
    terminal.until("│ begun", after=at)
    at = terminal.type("\x03")
    terminal.until("›", after=terminal.until("Stopped.", after=at).index("Stopped.", at))
    terminal.type("\x04")
    assert terminal.end() == 0
    assert "Traceback" not in terminal.seen


def test_what_is_typed_while_the_agent_works_is_not_drawn_and_answers_no_question(
    tmp_path: Path,
) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(
        "replies:\n- text: " + "word " * 200 + "\n  chunk: 8\n  delay: 0.005\n"
        "  calls: [{name: write_to_file, args: {path: a.txt, content: x}}]\n- text: Ready.\n"
    )
    terminal = Terminal(tmp_path, "--model", f"scripted:{path}")
    try:
        terminal.until("›")
        at = terminal.type("go\r")
        terminal.until("word word", after=at)
        terminal.type("y\n")
        terminal.question(after=at)
        at = terminal.type("n\r")
        terminal.until("Ready.", after=at)
        assert not (tmp_path / "project/a.txt").exists()
        words = terminal.plain.partition("word word")[2].partition("write_to_file")[0]
        assert "y" not in words
    finally:
        terminal.close()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["TERM", "HUP"]
)
@pytest.mark.parametrize("moment", ["prompt", "turn", "question"])
def test_a_signal_leaves_the_terminal_as_it_was(
    terminal: Terminal, number: signal.Signals, code: int, moment: str
) -> None:
    terminal.until("›")
    if moment != "prompt":
        at = terminal.type("say it\r")
        terminal.until("word word", after=at)
    if moment == "question":
        at = terminal.type("\x03")
        terminal.until("Stopped.", after=at)
        at = terminal.type("go\r")
        terminal.until("Going on.", after=at)
        at = terminal.type("write\r")
        terminal.question(after=at)
    terminal.process.send_signal(number)
    assert terminal.end() == code
    assert "Traceback" not in terminal.seen
    assert termios.tcgetattr(terminal.master)[3] == terminal.before[3]


def test_a_conversation_that_was_killed_is_kept_and_offered_again(
    terminal: Terminal, tmp_path: Path, script: str
) -> None:
    terminal.until("›")
    at = terminal.type("say it\r")
    terminal.until("word word", after=at)
    terminal.process.kill()
    terminal.process.wait()
    again = Terminal(tmp_path, "--continue", "--model", script)
    try:
        shown = again.until("Press Enter")
        assert "› say it" in shown
        again.until("›", after=shown.index("Press Enter"))
        at = again.type("\r")
        again.until("word word", after=at)
    finally:
        again.close()


def test_ctrl_c_while_it_starts_is_no_traceback(terminal: Terminal) -> None:
    os.write(terminal.master, b"\x03")
    at = len(terminal.plain)
    ready, _, _ = select.select([terminal.master], [], [], WAIT)
    assert ready
    os.write(terminal.master, b"\x04\x04")
    code = terminal.end()
    # An interrupt of the interpreter's own start, before any program of ours, ends it in its own way.
    early = "init_import_site" in terminal.plain
    assert code in (0, 130, -signal.SIGINT) or (early and code == 1)
    assert "croze/ui" not in terminal.plain[at:]
