"""Wrong input to the real program: one clear message, the next step, the right code, nothing lost."""

import io
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from croze.app.config import load
from croze.ui.cli.main import main
from croze.ui.cli.state import State
from croze.ui.i18n import use_language
from tests.model_server import Reply, ServerThread
from tests.ui.test_cli_real import Croze

TALKS = "- text: One.\n- text: Two.\n"


class Program:
    """`croze` in this process, over the real application."""

    def __init__(self, root: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        self.root = root
        self.project = root / "project"
        self.project.mkdir()
        self.home = root / "home"
        self.env = {
            "HOME": str(self.home), "PATH": os.environ["PATH"], "OLLAMA_HOST": "127.0.0.1:1",
        }  # fmt: skip
        self._capture = capsysbinary
        script = root / "script.yaml"
        script.write_text(TALKS)
        self.model = f"scripted:{script}"

    @property
    def config_file(self) -> Path:
        return self.home / ".config/croze/config.toml"

    @property
    def store(self) -> Path:
        return load(self.project, env=self.env).store_folder

    def configure(self, text: str) -> None:
        self.config_file.parent.mkdir(parents=True, exist_ok=True)
        self.config_file.write_text(text)

    def run(self, *argv: str, stdin: bytes = b"") -> tuple[int, str, str]:
        self._capture.readouterr()
        before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin))
        try:
            code = main(argv, state=State(env=self.env, cwd=self.project))
        finally:
            sys.stdin = before
            use_language("en")
        out, err = (text.decode() for text in self._capture.readouterr())
        assert "Traceback" not in err
        assert "unexpected error" not in err
        return code, out, err

    def task(self, *argv: str, stdin: bytes = b"") -> tuple[int, str, str]:
        return self.run("run", "--model", self.model, *argv, stdin=stdin)


@pytest.fixture
def croze(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> Program:
    return Program(tmp_path, capsysbinary)


@pytest.fixture(params=["C.UTF-8", "zh_CN.UTF-8"])
def either(request: pytest.FixtureRequest, croze: Program) -> Program:
    """The program in English and in Chinese."""
    croze.env["LANG"] = request.param
    return croze


@pytest.mark.parametrize(
    ("argv", "env", "code", "words"),
    [
        (["-m", "nonsense", "hi"], {}, 2, ["nonsense", "PROVIDER:MODEL"]),
        (["-m", "opnai:gpt-5.1", "hi"], {}, 2, ["opnai", "openai:gpt-5.1"]),
        (["-m", "openai:gpt-5.1", "hi"], {}, 2, ["OPENAI_API_KEY"]),
        (["hi"], {}, 2, ["ANTHROPIC_API_KEY", "Ollama", "--model"]),
        (["-m", "scripted:/no/such.yaml", "hi"], {}, 2, ["/no/such.yaml"]),
        (["hi"], {"CROZE_LIMITS__MAX_TURNS": "x"}, 2, ["limits.max_turns", "CROZE_LIMITS", "'x'"]),
        (["hi"], {"CROZE_LIMITS__MAX_TRNS": "1"}, 2, ["limits.max_trns", "limits.max_turns"]),
        (["hi", "--max-turns", "x"], {}, 2, ["--max-turns", "'x'"]),
        (["hi", "--resume", "abc", "--continue"], {}, 2, ["--resume", "--continue"]),
        (["hi", "--resume", ""], {}, 2, ["--resume"]),
        (["hi", "--model", " "], {}, 2, ["--model"]),
        (["hi", "--allow", "execute_command("], {}, 2, ["execute_command("]),
        (["hi", "--agent", "nobody"], {}, 2, ["nobody"]),
        (["  "], {}, 2, ["croze run"]),
        (["hi", "--record", "/no/such/folder/x"], {}, 2, ["/no/such/folder/x"]),
        (["hi", "--resume", "zzzz"], {}, 1, ["zzzz", "croze session list"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_the_fault_is_named_with_the_next_step(
    either: Program, argv: list[str], env: dict[str, str], code: int, words: list[str]
) -> None:
    either.env |= env
    named = [] if "-m" in argv or "--model" in argv or argv == ["hi"] else ["-m", either.model]
    got, out, err = either.run("run", *named, *argv)
    assert (got, out) == (code, "")
    assert [word for word in words if word not in err] == []
    assert 1 <= len(err.splitlines()) <= 2
    if either.env["LANG"].startswith("zh"):
        assert any("\u4e00" <= char <= "\u9fff" for char in err)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[model", ["TOML", "croze config edit"]),
        ("[limits]\nmax_turns = 'x'\n", ["limits.max_turns", "'x'"]),
        ("[ui]\ntheme = 'dark'\n", ["ui.theme"]),
    ],
)
def test_a_broken_configuration_names_file_and_place(
    either: Program, text: str, words: list[str]
) -> None:
    either.configure(text)
    for argv in (("run", "hi"), ("session", "list"), (), ("config", "list")):
        code, out, err = either.run(*argv)
        assert (code, out) == (2, "")
        assert [word for word in (*words, str(either.config_file)) if word not in err] == []


def test_a_price_that_is_unknown_can_not_limit(either: Program) -> None:
    either.env["OPENAI_API_KEY"] = "sk-x"
    code, _out, err = either.run("run", "hi", "-m", "openai:no-such", "--max-cost", "1")
    assert code == 2
    assert "openai:no-such" in err
    assert "--max-turns" in err


def test_options_of_a_session_may_stand_before_run_and_are_refused_elsewhere(
    croze: Program,
) -> None:
    code, out, _err = croze.run("--model", croze.model, "--max-turns", "3", "run", "hi")
    assert (code, out) == (0, "One.\n")
    code, _out, err = croze.run("--model", croze.model, "session", "list")
    assert code == 2
    assert "--model" in err


def test_a_local_ollama_is_found_and_named(croze: Program) -> None:
    with ServerThread([Reply(text="Hello from here.")], models={"tiny": 32_768}) as server:
        croze.env["OLLAMA_HOST"] = server.url.removesuffix("/v1")
        code, out, err = croze.run("run", "hi", "--max-turns", "1")
    assert (code, out) == (0, "Hello from here.\n")
    assert "ollama:tiny" in err


def test_a_stored_key_is_not_hidden_by_an_empty_variable(croze: Program) -> None:
    keys = croze.home / ".config/croze/keys.toml"
    keys.parent.mkdir(parents=True)
    keys.write_text('openai = "sk-stored-key-0123456789"\n')
    keys.chmod(0o600)
    with ServerThread([Reply(text="Hello.")]) as server:
        croze.env |= {"OPENAI_API_KEY": " ", "OPENAI_BASE_URL": server.url}
        code, _out, err = croze.run("run", "hi", "-m", "openai:gpt-5.1")
        assert (code, err.count("sk-stored")) == (0, 0)
        sent = server.server.requests[0]
    assert sent.headers["authorization"] == "Bearer sk-stored-key-0123456789"


@pytest.mark.parametrize("damage", [lambda data: data[:3000], lambda data: os.urandom(50_000)])
def test_a_damaged_store_is_set_aside_and_the_work_goes_on(either: Program, damage: object) -> None:
    assert callable(damage)
    assert either.task("first")[0] == 0
    assert either.run("session", "backup")[0] == 0
    log = either.store / "log.db"
    broken = damage(log.read_bytes())
    log.write_bytes(broken)
    for side in either.store.glob("log.db-*"):
        side.unlink()
    code, out, err = either.task("second")
    assert (code, out) == (0, "One.\n")
    (aside,) = either.store.glob("log-damaged-*.db")
    assert aside.read_bytes() == broken
    (backup,) = (either.store / "backups").glob("*.db")
    assert str(aside) in err
    assert backup.name in err
    assert either.run("session", "restore", "--yes")[0] == 0
    assert "first" in either.run("session", "list")[1]


@pytest.mark.parametrize("name", ["XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"])
def test_a_file_where_a_folder_belongs(either: Program, name: str) -> None:
    place = either.root / "a file"
    place.write_text("")
    either.env[name] = str(place)
    code, out, err = either.task("hi")
    if name == "XDG_DATA_HOME":
        assert (code, out) == (1, "")
        assert str(place) in err
        assert "CROZE_STORE__STORAGE_PATH" in err
    else:
        assert (code, out) == (0, "One.\n")


@pytest.mark.parametrize(
    "name", ["with space", "ünï文件", "new\nline", "-dash", b"bad\xff", "'\"$x"]
)
def test_a_project_may_have_any_name(croze: Program, name: str | bytes) -> None:
    croze.project = croze.root / os.fsdecode(name)
    croze.project.mkdir()
    assert croze.task("hi")[:2] == (0, "One.\n")
    assert "hi" in croze.run("session", "list")[1]
    croze.run("doctor")


@pytest.mark.parametrize(
    "stdin", [b"a\xff\xfe\x00b", b"\x00" * 1000, b"x y\n" * 1_250_000, "\u202e\x1b[2J".encode()]
)
def test_standard_input_may_hold_anything(croze: Program, stdin: bytes) -> None:
    code, _out, err = croze.task(stdin=stdin)
    assert code in (0, 1)
    assert code == (1 if len(stdin) > 1_000_000 else 0)
    assert "\x1b" not in err
    listed = croze.run("session", "list")[1]
    assert "\x1b" not in listed
    assert len(listed.splitlines()) == 1


def test_a_running_conversation_is_left_alone_by_others(tmp_path: Path) -> None:
    program = Croze(tmp_path)
    slow = program.script(f"chunk: 5\ndelay: 0.05\nreplies:\n- text: {'slow ' * 500}\n")
    running = program.start("run", "first", "--model", slow, "-o", "stream-json")
    try:
        assert running.stdout is not None
        running.stdout.readline()
        ((session,),) = sqlite3.connect(next(tmp_path.rglob("log.db"))).execute(
            "SELECT id FROM sessions"
        )
        pid = str(running.pid)
        for argv in (("run", "x", "--resume", session), ("session", "delete", "--yes", session)):
            code, out, err = program.run(*argv)
            assert (code, out) == (1, "")
            assert pid in err
        assert program.run("session", "restore", "--yes")[0] == 1
    finally:
        running.terminate()
        running.communicate(timeout=30)
    assert running.returncode == 143
    assert program.run("session", "delete", "--yes", session)[0] == 0


def test_a_folder_that_is_gone_is_told_but_help_and_version_work(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    program = Croze(tmp_path)
    code = (
        "import os, sys; os.rmdir(os.getcwd()); from croze.ui.cli.main import main; "
        "sys.exit(main(sys.argv[1:]))"
    )
    for argv, wanted in (
        (["run", "hi"], 2), ([], 2), (["--version"], 0), (["--help"], 0), (["run", "-h"], 0),
    ):  # fmt: skip
        gone.mkdir()
        ran = subprocess.run(
            [sys.executable, "-c", code, *argv], cwd=gone, env=program.env, capture_output=True,
            stdin=subprocess.DEVNULL, timeout=60,
        )  # fmt: skip
        assert ran.returncode == wanted
        assert b"Traceback" not in ran.stderr
        assert (b"no longer exists" in ran.stderr) == (wanted == 2)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("argv", [["--help"], ["run", "--help"], ["--version"], ["config", "list"]])
def test_a_full_disk_behind_the_output_is_one_line(tmp_path: Path, argv: list[str]) -> None:
    program = Croze(tmp_path)
    code = "import sys; from croze.ui.cli.main import main; sys.exit(main())"
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(
            [sys.executable, "-c", code, *argv], cwd=program.project, env=program.env, stdout=full,
            stderr=subprocess.PIPE, timeout=60,
        )  # fmt: skip
    assert ran.returncode == 1
    assert b"can't be written" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_closed_stream_is_no_crash(tmp_path: Path, closed: int) -> None:
    program = Croze(tmp_path)
    model = program.script(TALKS)
    code = "import sys; from croze.ui.cli.main import main; sys.exit(main())"
    for argv in (["run", "hi", "--model", model], ["--model", model], ["session", "list"]):
        ran = subprocess.run(
            [sys.executable, "-c", code, *argv], cwd=program.project, env=program.env,
            capture_output=True, stdin=subprocess.DEVNULL, timeout=60,
            preexec_fn=lambda: os.close(closed),
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        assert b"Traceback" not in ran.stderr


def test_a_pipe_of_messages_is_a_chat_that_asks_nobody(tmp_path: Path) -> None:
    program = Croze(tmp_path)
    script = program.script(
        "- text: Hello \u4f60.\n- calls: [{name: write_to_file, args: {path: a, content: x}}]\n"
        "- text: Refused.\n"
    )
    code = "import sys; from croze.ui.cli.main import main; sys.exit(main())"
    ran = subprocess.run(
        [sys.executable, "-c", code, "--model", script], cwd=program.project, env=program.env,
        input=b"hi \xff\ny\nno newline".replace(b"\nno newline", b""), capture_output=True, timeout=60,
    )  # fmt: skip
    shown = ran.stdout.decode()
    assert ran.returncode == 4
    assert "Hello \u4f60." in shown
    assert "\x1b" not in shown
    assert "y yes" not in shown
    assert "--mode auto-edit" in shown
    assert not (program.project / "a").exists()


def test_a_reader_of_the_chat_that_goes_away_ends_it(tmp_path: Path) -> None:
    program = Croze(tmp_path)
    slow = program.script(f"chunk: 50\nreplies:\n- text: {'slow ' * 20_000}\n")
    code = "import sys; from croze.ui.cli.main import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", code, "--model", slow], cwd=program.project, env=program.env,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as chat:  # fmt: skip
        assert chat.stdin is not None
        assert chat.stdout is not None
        assert chat.stderr is not None
        chat.stdin.write(b"hi\n")
        chat.stdin.flush()
        chat.stdout.read(2000)
        chat.stdout.close()
        chat.stdin.write(b"more\n")
        chat.stdin.close()
        assert chat.wait(60) == 141
        assert chat.stderr.read() == b""
