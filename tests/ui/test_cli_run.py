"""`croze run`: what it prints where, its exit codes, signals, closed pipes, answers by schema."""

import json
import os
import select
import signal
import subprocess
from pathlib import Path
from typing import IO

import pytest

from croze.app.options import RunOptions
from croze.types.errors import ConfigError, RetriesExhausted, StoreError
from croze.types.event import Stopped
from croze.ui.cli.exits import exit_of_error, exit_of_turn
from croze.ui.cli.main import as_run
from tests.ui.conftest import Shell
from tests.ui.fakes import ID


def test_the_answer_alone_is_on_standard_output(shell: Shell) -> None:
    ran = shell.run("run", "what", "is it?")
    assert (ran.code, ran.out) == (0, "42\n")
    assert "fake:one" in ran.err
    assert ID in ran.err
    assert "1.0k tokens in, 50 out, $0.0015" in ran.err
    assert shell.app.live is not None
    assert shell.app.live.prompts == ["what is it?"]
    assert shell.app.closed


@pytest.mark.parametrize("name", ["run", "exec"])
def test_run_has_two_names(shell: Shell, name: str) -> None:
    assert shell.run(name, "x").out == "42\n"


def test_dash_p_is_run(shell: Shell) -> None:
    assert shell.run("-p", "what?").out == "42\n"
    assert shell.run("--mode", "plan", "-p", "what?", "-o", "text").out == "42\n"
    assert shell.app.options is not None
    assert shell.app.options.mode == "plan"


@pytest.mark.parametrize("text", ["--settings=/etc", "--mode=full", "-h", "--", "--version"])
def test_what_follows_dash_p_stays_text_whatever_it_looks_like(shell: Shell, text: str) -> None:
    assert shell.run("-p", text).code == 0
    assert shell.app.live is not None
    assert shell.app.live.prompts == [text]
    assert shell.app.options == RunOptions(headless=True)


def test_dash_p_after_a_command_or_a_double_dash_is_left_alone() -> None:
    assert as_run(["session", "list", "-p", "x"]) == ["session", "list", "-p", "x"]
    assert as_run(["--", "-p", "x"]) == ["--", "-p", "x"]
    assert as_run([]) == []
    assert as_run(["-p"]) == ["run", "--"]


def test_standard_input_joins_the_task(shell: Shell) -> None:
    shell.run("run", "review this", stdin="diff --git\n+x\n")
    assert shell.app.live is not None
    assert shell.app.live.prompts == ["review this\n\ndiff --git\n+x"]
    shell.run("-p", stdin="only this\n")
    assert shell.app.live is not None
    assert shell.app.live.prompts == ["only this"]


def test_no_task_is_a_usage_error_unless_a_conversation_goes_on(shell: Shell) -> None:
    ran = shell.run("run")
    assert ran.code == 2
    assert "there is no task" in ran.err
    assert shell.opener.app is None
    assert shell.run("run", "--continue").code == 0


def test_all_flags_reach_the_application(shell: Shell) -> None:
    ran = shell.run(
        "run", "x", "--model", "a:b", "--resume", "0b5f", "--namespace", "n", "--allow", "r1",
        "--allow", "r2", "--deny", "r3", "--mode", "full", "--sandbox", "off", "--max-turns", "7",
        "--max-cost", "0.5", "--max-time", "60", "--agent", "main", "--system-prompt", "p",
        "--include-rules", "--dialect", "xml", "--record", "f.yaml",
    )  # fmt: skip
    assert ran.code == 0
    assert shell.app.options == RunOptions(
        model="a:b", resume="0b5f", namespace="n", allow=("r1", "r2"), deny=("r3",), mode="full",
        sandbox="off", max_turns=7, max_cost=0.5, max_time=60, agent="main", system_prompt="p",
        include_rules=True, dialect="xml", headless=True, record="f.yaml",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (["--mode", "yolo"], "plan | ask | auto-edit | full"),
        (["--sandbox", "on"], "read-only | workspace | off"),
        (["--output-format", "xml"], "text | json | stream-json"),
        (["--max-turns", "0"], "integer >= 1"),
        (["--max-turns", "1.5"], "integer >= 1"),
        (["--max-cost", "nan"], "number > 0"),
        (["--max-cost", "-1"], "number > 0"),
        (["--max-time", "soon"], "number > 0"),
        (["--modle", "x"], "--mode"),
        (["--model"], "needs a value"),
        (["--verbose=3"], "takes no value"),
    ],
)
def test_a_wrong_flag_is_exit_2_with_what_is_possible(
    shell: Shell, argv: list[str], word: str
) -> None:
    ran = shell.run("run", "x", *argv)
    assert ran.code == 2
    assert ran.out == ""
    assert word in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("answer", 0),
        ("failed", 1),
        ("no model", 2),
        ("limit", 3),
        ("refused", 4),
        ("retries", 75),
        ("unreachable", 1),
        ("bug", 1),
    ],
)
@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
def test_exit_codes_are_the_same_in_every_format(
    shell: Shell, script: str, code: int, form: str
) -> None:
    ran = shell.run("run", "x", "-o", form, script=script)
    assert ran.code == code
    assert "Traceback" not in ran.err
    if form == "text" and code not in (0, 4):
        assert ran.out == ""


def test_every_reason_and_error_has_its_code() -> None:
    codes = {
        reason: int(exit_of_turn(Stopped(reason=reason)))
        for reason in ("done", "cancelled", "steps", "seconds", "cost", "repeated", "failed")
    }
    assert codes == {
        "done": 0, "cancelled": 130, "steps": 3, "seconds": 3, "cost": 3, "repeated": 3, "failed": 1,
    }  # fmt: skip
    assert exit_of_turn(Stopped(reason="failed", refused=2)) == 1
    errors = (ConfigError("x"), RetriesExhausted("x"), StoreError("x"))
    assert [int(exit_of_error(error)) for error in errors] == [2, 75, 1]


def test_a_refusal_that_stood_names_the_flag_that_allows_it(shell: Shell) -> None:
    ran = shell.run("run", "x", script="refused")
    assert ran.out == "I could not run it.\n"
    assert "refused: execute_command was not allowed" in ran.err
    assert "--allow 'execute_command(make)'" in ran.err


def test_a_limit_says_how_to_go_on(shell: Shell) -> None:
    ran = shell.run("run", "x", script="limit")
    assert ran.err.count("The limit of 1 steps is reached.") == 1
    assert f"croze run --resume {ID[:8]}" in ran.err


def test_progress_is_one_line_a_tool_call_and_harmless(shell: Shell) -> None:
    ran = shell.run("run", "x", script="tools")
    assert "croze: read_file: a.py lines 1-1" in ran.err.splitlines()
    assert "try 1 failed (too many); the next in 0.5 s" in ran.err
    assert "\x1b" not in ran.err
    assert "hm" not in ran.err.split()


def test_verbose_shows_text_as_it_comes(shell: Shell) -> None:
    assert "\n4\n" in shell.run("run", "x", "-v").err


def test_json_is_one_object_at_the_end(shell: Shell) -> None:
    ran = shell.run("run", "x", "--output-format", "json", script="tools")
    found = json.loads(ran.out)
    kept = found.pop("record")
    assert (kept["edit_operations"], kept["response"]) == ([], "Line one\nline two")
    assert [(e["tool"], e["reason"], e["params"]) for e in kept["history"]] == [
        ("read_file", "Reading.", {"path": "a.py"})
    ]
    assert found == {
        "type": "result", "v": 1, "session": ID, "seq": None, "at": None, "model": "fake:one",
        "ok": True, "exit_code": 0, "reason": "done", "answer": "Line one\nline two", "data": None,
        "error": None, "steps": 1, "seconds": 0.5, "input_tokens": 2000, "output_tokens": 100,
        "cost": 0.0015, "refused": 0, "files_changed": ["b\u2028.py"],
    }  # fmt: skip


def test_stream_json_is_one_object_a_line_split_on_lf_alone(shell: Shell) -> None:
    ran = shell.run("run", "x", "--output-format", "stream-json", script="tools")
    lines = [json.loads(line) for line in ran.out.removesuffix("\n").split("\n")]
    assert [line["type"] for line in lines] == [
        "conversation_id", "window_change", "thinking", "text", "tool_call", "token_usage",
        "tool_result", "file_changed", "retry", "notice", "thinking", "text", "token_usage",
        "completion", "stopped",
    ]  # fmt: skip
    assert all(line["v"] == 1 and line["session"] == ID for line in lines)
    call = lines[4]
    assert (call["name"], call["raw"]) == ("read_file", "<read_file>…")
    assert lines[-2]["result"] == "Line one\nline two"


def test_stream_json_shows_pieces_when_verbose(shell: Shell) -> None:
    ran = shell.run("run", "x", "-o", "stream-json", "-v")
    texts = [json.loads(li) for li in ran.out.splitlines() if '"type":"text"' in li]
    assert [(t["text"], t["partial"]) for t in texts] == [("4", True), ("42", False)]


@pytest.mark.parametrize("form", ["json", "stream-json"])
def test_an_error_before_the_session_is_an_object_too(shell: Shell, form: str) -> None:
    ran = shell.run("run", "x", "-o", form, script="no model")
    assert json.loads(ran.out)["code"] == "no_model"
    assert "There is no model." in ran.err
    assert "Set a key." in ran.err


def test_an_unexpected_error_is_one_line_and_its_traceback_is_kept(shell: Shell) -> None:
    ran = shell.run("run", "x", script="bug")
    log = Path(shell.env["HOME"]) / ".local/state/croze/crash.log"
    assert ran.err.splitlines()[0].startswith("croze: unexpected error: RuntimeError: a bug")
    assert str(log) in ran.err
    assert "Traceback" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600
    assert "Traceback" in shell.run("run", "x", "--verbose", script="bug").err


class TestSchema:
    @pytest.fixture
    def schema(self, tmp_path: Path) -> str:
        path = tmp_path / "schema.json"
        path.write_text('{"type": "object", "properties": {"n": {"type": "integer"}}}')
        return str(path)

    def test_an_answer_that_fits_is_printed(self, shell: Shell, schema: str) -> None:
        ran = shell.run("run", "count", "--output-schema", schema, script="json")
        assert (ran.code, json.loads(ran.out)) == (0, {"n": 1})
        assert shell.app.live is not None
        assert '"integer"' in shell.app.live.prompts[0]
        assert shell.app.options is not None
        assert shell.app.options.output_schema is not None

    def test_one_that_does_not_gets_one_more_turn(self, shell: Shell, schema: str) -> None:
        ran = shell.run(
            "run", "count", "--output-schema", schema, "-o", "json", script="json second"
        )
        assert ran.code == 0
        assert json.loads(ran.out)["data"] == {"n": 1}
        assert shell.app.live is not None
        assert "not JSON" in shell.app.live.prompts[1]

    def test_after_that_the_run_has_failed(self, shell: Shell, schema: str) -> None:
        ran = shell.run("run", "count", "--output-schema", schema, script="json never")
        assert (ran.code, ran.out) == (1, "")
        assert "n must be integer" in ran.err

    @pytest.mark.parametrize("text", ["{", "[]", '{"type": "strin"}', '{"if": {}}', None])
    def test_a_schema_that_can_not_be_checked_is_refused_at_once(
        self, shell: Shell, tmp_path: Path, text: str | None
    ) -> None:
        path = tmp_path / "bad.json"
        if text is not None:
            path.write_text(text)
        ran = shell.run("run", "x", "--output-schema", str(path))
        assert ran.code == 2
        assert str(path) in ran.err
        assert shell.opener.app is None


def read_until(stream: IO[bytes], word: bytes) -> bytes:
    """What the stream says up to `word`; fails after 20 seconds of silence."""
    seen = b""
    while word not in seen:
        ready, _, _ = select.select([stream], [], [], 20)
        assert ready, f"nothing came after {seen!r}"
        piece = os.read(stream.fileno(), 4096)
        assert piece, f"the stream ended after {seen!r}"
        seen += piece
    return seen


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_cancels_the_turn_and_gives_its_code(
    shell: Shell, number: signal.Signals, code: int
) -> None:
    with shell.spawn("run", "x", "-o", "stream-json", script="wait") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        read_until(process.stdout, b"window_change")
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert process.returncode == code
    assert b'"type":"interrupted"' in out
    assert b"everything so far is kept" in err
    assert b"Traceback" not in err


def test_a_reader_that_goes_away_ends_the_run_quietly(shell: Shell) -> None:
    with shell.spawn("run", "x", "-o", "stream-json", script="flood") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        read_until(process.stdout, b"\n")
        process.stdout.close()
        err = process.stderr.read()
        code = process.wait(timeout=20)
    assert code == 141
    assert b"Traceback" not in err
    assert b"BrokenPipe" not in err


def test_a_closed_standard_output_is_no_crash(shell: Shell) -> None:
    process = shell.spawn("run", "x", stdout=None, preexec_fn=lambda: os.close(1))
    _out, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert b"Traceback" not in err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output_is_told(shell: Shell) -> None:
    with open("/dev/full", "wb") as full:
        process = shell.spawn("run", "x", stdout=full)
        _out, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert b"can't be written" in err
    assert b"Traceback" not in err


def test_an_open_silent_pipe_on_standard_input_is_explained(shell: Shell) -> None:
    with shell.spawn("run", "x", stdin=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stdin is not None
        read_until(process.stderr, b"reading standard input")
        process.stdin.close()
        assert process.wait(timeout=20) == 0
