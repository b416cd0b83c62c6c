"""`croze demo` as a user runs it: a program of its own, with nothing but a home and a path."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from croze.types.event import Event, ToolReturned, ToolStarted
from croze.types.tool import Access
from croze.ui.cli.state import State
from croze.ui.demo.show import SCRIPT, TESTS, runs_of_tests, show

ROOT = Path(__file__).parents[2]
FIXED = "max(merged[-1].end, span.end)"
START = "import sys; from croze.ui.cli.main import main; sys.exit(main())"


class Desk:
    """A home, a folder for scratch files, and `croze` as a program among them."""

    def __init__(self, root: Path) -> None:
        self.home, self.tmp = root / "home", root / "tmp"
        self.home.mkdir()
        self.tmp.mkdir()
        self.env = {
            "HOME": str(self.home), "TMPDIR": str(self.tmp), "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT / "src"),
        }  # fmt: skip

    def croze(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-B", "-c", START, *argv],
            cwd=self.home,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize("dialect", ["native", "xml"])
def test_the_demo_goes_from_red_to_green_and_leaves_nothing_behind(
    desk: Desk, dialect: str
) -> None:
    ran = desk.croze("demo", "--dialect", dialect)
    lines = ran.stdout.splitlines()
    assert (ran.returncode, ran.stderr) == (0, "")
    red, green = (
        at for at, line in enumerate(lines) if line.startswith(f"● execute_command {TESTS}")
    )
    ends = [at for at, line in enumerate(lines) if re.match(r"  [✓✗] Exit code", line)]
    assert [lines[at][2] for at in ends] == ["✗", "✓"]
    assert any("FAIL: test_a_span_within_another" in line for line in lines[red : ends[0]])
    assert "  │ OK" in lines[green : ends[1]]
    diff = [line.strip() for line in lines[red:green] if line.startswith(("  -  ", "  +  "))]
    assert [line[0] for line in diff] == ["-", "+"]
    assert FIXED in diff[1]
    assert f"{dialect} protocol" in ran.stdout
    assert "Commands run unconfined, in the scratch copy" in ran.stdout
    assert any("5 steps" in line and "1 file +1 −1" in line for line in lines)
    assert lines[-1] == "The tests failed before and pass now."
    assert list(desk.home.iterdir()) == []
    assert list(desk.tmp.iterdir()) == []


def test_the_tokens_of_the_sections_add_up(desk: Desk) -> None:
    lines = desk.croze("demo").stdout.splitlines()
    begin = next(at for at, line in enumerate(lines) if line.startswith("Tokens of the last"))
    rows = [line.split() for line in lines[begin + 1 : begin + 6]]
    counts = {row[0]: int(row[1].replace(",", "")) for row in rows[:4]}
    assert list(counts) == ["system", "documentation", "history", "current"]
    assert counts["system"] > 1_000
    assert counts["history"] > 500
    assert sum(counts.values()) == int(rows[4][0].replace(",", ""))


def test_the_folder_to_keep_has_the_project_and_a_log_that_can_be_read(desk: Desk) -> None:
    keep = desk.home / "my demo"
    ran = desk.croze("demo", "--keep", str(keep))
    assert ran.returncode == 0
    assert FIXED in (keep / "project/tidetable/hours.py").read_text()
    log = re.search(r"^Session log: (.*)$", ran.stdout, re.MULTILINE)
    assert log is not None
    assert Path(log[1]).is_file()
    command = re.search(r"^To read it: (.*)$", ran.stdout, re.MULTILINE)
    assert command is not None
    program = f"croze() {{ {sys.executable} -c '{START}' \"$@\"; }}; {command[1]}"
    shown = subprocess.run(
        ["bash", "-c", program], env=desk.env, cwd=desk.home, capture_output=True, text=True
    )
    assert shown.returncode == 0, shown.stderr
    assert "replace_in_file" in shown.stdout
    assert sorted(path.name for path in desk.home.iterdir()) == ["my demo"]


def test_a_folder_in_use_is_refused_untouched(desk: Desk) -> None:
    (desk.home / "full").mkdir()
    (desk.home / "full/mine.txt").write_text("mine")
    ran = desk.croze("demo", "--keep", "full")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "is not empty" in ran.stderr
    assert [path.name for path in (desk.home / "full").iterdir()] == ["mine.txt"]
    ran = desk.croze("demo", "--keep", "full/mine.txt/demo")
    assert ran.returncode == 2
    assert "can't be used: Not a directory" in ran.stderr


def test_a_repository_around_the_folder_to_keep_is_left_alone(desk: Desk) -> None:
    (desk.home / ".git").mkdir()
    (desk.home / ".git/HEAD").write_text("ref: refs/heads/theirs\n")
    (desk.home / "tidetable").mkdir()
    theirs = desk.home / "tidetable/hours.py"
    theirs.write_text("theirs")
    assert desk.croze("demo", "--keep", "demo").returncode == 0
    assert theirs.read_text() == "theirs"


def test_the_users_own_settings_do_not_touch_the_demo(desk: Desk) -> None:
    (desk.home / ".config/croze").mkdir(parents=True)
    (desk.home / ".config/croze/config.toml").write_text(
        '[permissions]\ndeny = ["replace_in_file"]\n[limits]\nmax_turns = 1\n'
    )
    desk.env["CROZE_LIMITS__MAX_TURNS"] = "1"
    assert desk.croze("demo").returncode == 0


def test_it_speaks_chinese(desk: Desk) -> None:
    desk.env["LANG"] = "zh_CN.UTF-8"
    ran = desk.croze("demo")
    assert ran.returncode == 0
    assert ran.stdout.endswith("测试先前失败，现在通过。\n")


def test_a_closed_output_ends_the_demo_without_a_trace(desk: Desk) -> None:
    program = f"set -o pipefail; {sys.executable} -c '{START}' demo | head -n 4"
    ran = subprocess.run(
        ["bash", "-c", program], env=desk.env, cwd=desk.home, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (141, "")
    assert list(desk.tmp.iterdir()) == []


def play(tmp_path: Path, capsys: pytest.CaptureFixture[str], script: str) -> tuple[int, str]:
    """The exit code and the output of a demo that plays another script."""
    path = tmp_path / "script.yaml"
    path.write_text(script)
    state = State(env=dict(os.environ), cwd=tmp_path)
    code = show(state, dialect="native", script=path)
    return code, capsys.readouterr().out


def test_a_script_that_leaves_the_session_ends_with_what_came_instead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = SCRIPT.read_text().replace("FAILED (failures=2)", "FAILED (failures=3)")
    code, out = play(tmp_path, capsys, script)
    assert code == 1
    assert "reply 2 expects 'FAILED (failures=3)', but there came" in out
    assert out.endswith("The demo failed: the session ended early (failed).\n")


def test_a_false_fix_is_found_out_by_the_tests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = SCRIPT.read_text().replace("max(merged[-1].end, span.end)", "min(0, span.end)")
    script = script.replace('["+1 -1 lines", "Ran 6 tests", "OK"]', '"FAILED"')
    code, out = play(tmp_path, capsys, script)
    assert code == 1
    assert out.endswith("The demo failed: the tests still fail.\n")


@pytest.mark.parametrize(
    ("replies", "problem"),
    [
        ("[{text: It works.}]", "the tests were never seen to fail"),
        (f"[{{calls: [{{name: execute_command, args: {{command: {TESTS}}}}}]}}, {{text: So.}}]", "the tests still fail"),
    ],
)  # fmt: skip
def test_what_the_model_only_claims_counts_for_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], replies: str, problem: str
) -> None:
    code, out = play(tmp_path, capsys, replies)
    assert (code, out.splitlines()[-1]) == (1, f"The demo failed: {problem}.")


def test_green_tests_without_the_reported_end_are_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = SCRIPT.read_text().partition('  - expect: ["+1')[0]
    code, out = play(tmp_path, capsys, kept + "  - text: It is mended.\n")
    assert (code, out.splitlines()[-1]) == (
        1,
        "The demo failed: the task was not reported as done.",
    )


def test_only_runs_of_the_projects_tests_are_counted() -> None:
    bodies = []
    for call, command, ok in (("a", TESTS, False), ("b", "true", True), ("c", TESTS, True)):
        bodies += [
            ToolStarted(
                call_id=call, name="execute_command", access=Access(exec=True),
                args={"command": command},
            ),
            ToolReturned(call_id=call, message_id=call, name="execute_command", ok=ok),
        ]  # fmt: skip
    events = [Event(session="s", seq=at, at=0, body=body) for at, body in enumerate(bodies, 1)]
    assert runs_of_tests(events) == [False, True]


@pytest.mark.slow
def test_a_wheel_holds_all_that_the_demo_needs(desk: Desk, tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    desk.env["PYTHONPATH"] = str(tmp_path / "site")
    place = subprocess.run(
        [sys.executable, "-c", "import croze; print(croze.__file__)"],
        env=desk.env,
        capture_output=True,
        text=True,
    )
    assert place.stdout.startswith(str(tmp_path / "site"))
    ran = desk.croze("demo")
    assert ran.returncode == 0, ran.stderr
    assert "The tests failed before and pass now." in ran.stdout
