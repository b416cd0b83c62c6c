"""The command line over the real application: a scripted model, a real store, real files."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ui.test_cli_run import read_until

SRC = Path(__file__).parents[2] / "src"


class Croze:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / "project"
        self.project.mkdir()
        self.env = {
            "HOME": str(root / "home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8",
            "PYTHONPATH": str(SRC),
        }  # fmt: skip

    def script(self, text: str) -> str:
        path = self.root / "script.yaml"
        path.write_text(text)
        return f"scripted:{path}"

    def start(self, *argv: str) -> subprocess.Popen[bytes]:
        code = "import sys; from croze.ui.cli.main import main; sys.exit(main())"
        return subprocess.Popen(
            [sys.executable, "-c", code, *argv], cwd=self.project, env=self.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *argv: str) -> tuple[int, str, str]:
        process = self.start(*argv)
        out, err = process.communicate(timeout=60)
        assert b"Traceback" not in err
        return process.returncode, out.decode(), err.decode()


@pytest.fixture
def croze(tmp_path: Path) -> Croze:
    return Croze(tmp_path)


WRITES = """\
- text: Writing.
  calls: [{name: write_to_file, args: {path: a.txt, content: hello}}]
- text: Done.
"""
TALKS = "- text: One.\n- text: Two.\n"
SLOW = f"replies:\n- text: {'a long reply ' * 2000}\nchunk: 5\ndelay: 0.01\n"


def test_what_needs_a_yes_is_refused_and_with_the_mode_it_is_done(croze: Croze) -> None:
    model = croze.script(WRITES)
    code, out, err = croze.run("run", "write it", "--model", model)
    assert (code, out) == (4, "Done.\n")
    assert "--mode auto-edit" in err
    assert not (croze.project / "a.txt").exists()
    code, out, err = croze.run(
        "run", "write it", "--model", model, "--mode", "auto-edit", "-o", "json"
    )
    assert code == 0
    assert json.loads(out)["files_changed"] == ["a.txt"]
    assert (croze.project / "a.txt").read_text().strip() == "hello"


def test_full_needs_a_sandbox_or_the_word_that_there_is_none(croze: Croze) -> None:
    croze.env["HOME"] = str(croze.project / "home")  # what holds the home can't be confined
    full = ("run", "x", "--model", croze.script(TALKS), "--mode", "full")
    code, _out, err = croze.run(*full)
    assert code == 2
    assert "contains the home folder" in err
    assert "--sandbox off" in err
    assert croze.run(*full, "--sandbox", "off")[:2] == (0, "One.\n")
    croze.env["LANG"] = "zh_CN.UTF-8"
    code, _out, err = croze.run(*full)
    assert code == 2
    assert "沙箱" in err


def test_a_conversation_is_replayed_and_goes_on(croze: Croze) -> None:
    model = croze.script(TALKS)
    assert croze.run("run", "first", "--model", model)[:2] == (0, "One.\n")
    (row,) = json.loads(croze.run("session", "list", "--format", "json")[1])
    assert croze.run("replay", row["id"][:8])[0] == 0
    assert croze.run("run", "second", "--continue", "--model", model)[0] == 0
    (row,) = json.loads(croze.run("session", "list", "--format", "json")[1])
    assert row["first"] == "first"
    assert "second" in croze.run("session", "show", row["id"][:8])[1]


def test_without_a_model_the_ways_out_are_named(croze: Croze) -> None:
    code, _out, err = croze.run("run", "x")
    assert code == 2
    assert "ANTHROPIC_API_KEY" in err
    assert croze.run("session", "list")[1] == ""


def test_a_cap_on_money_needs_a_known_price(croze: Croze) -> None:
    croze.env |= {"LAB_BASE_URL": "http://127.0.0.1:9/v1", "LAB_API_KEY": "k"}
    code, _out, err = croze.run("run", "x", "--model", "lab:secret", "--max-cost", "1")
    assert code == 2
    assert "price" in err


def test_ctrl_c_keeps_what_arrived(croze: Croze) -> None:
    with croze.start("run", "talk", "--model", croze.script(SLOW), "-v") as process:
        assert process.stderr is not None
        read_until(process.stderr, b"a long reply")
        process.send_signal(signal.SIGINT)
        _out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"Traceback" not in err
    (row,) = json.loads(croze.run("session", "list", "--format", "json")[1])
    assert "a long reply" in croze.run("session", "show", row["id"])[1]


def test_a_second_process_on_the_same_conversation_is_told_who_runs_it(croze: Croze) -> None:
    model = croze.script(SLOW)
    with croze.start("run", "talk", "--model", model, "-v") as process:
        assert process.stderr is not None
        read_until(process.stderr, b"a long reply")
        code, _out, err = croze.run("run", "me too", "--continue", "--model", model)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert code == 1
    assert str(process.pid) in err
    assert process.returncode == 143


def test_doctor_runs_without_a_network(croze: Croze) -> None:
    code, out, _err = croze.run("doctor")
    assert code == 0
    assert " store: " in out
    assert " model: " in out


def test_what_fails_after_the_turn_is_a_line_beside_the_result(croze: Croze) -> None:
    croze.run("config", "set", "knowledge.active_context", "on")
    model = croze.script(WRITES + "- text: This is no note.\n")
    argv = ("run", "x", "--model", model, "--mode", "auto-edit", "--output-format")
    code, out, err = croze.run(*argv, "json")
    assert code == 0
    assert json.loads(out)["answer"] == "Done."
    assert "The note on . was not written" in err
