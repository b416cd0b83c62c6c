"""A command line in a temporary home."""

import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from croze.ui.cli.main import main
from croze.ui.cli.state import State
from croze.ui.i18n import use_language
from tests.ui.fakes import FakeApp, Opener


@dataclass
class Ran:
    code: int
    out: str
    err: str


class Shell:
    """Runs `croze` in this process over the fake application."""

    def __init__(
        self, root: Path, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch
    ) -> None:
        self.project = root / "project"
        self.project.mkdir()
        self.env = {"HOME": str(root / "home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        self.opener = Opener("answer")
        self._capsys = capsys
        self._patch = patch

    @property
    def config_file(self) -> Path:
        return Path(self.env["HOME"]) / ".config" / "croze" / "config.toml"

    @property
    def app(self) -> FakeApp:
        assert self.opener.app is not None
        return self.opener.app

    def run(self, *argv: str, script: str = "answer", stdin: str = "") -> Ran:
        self.opener = Opener(script)
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        self._capsys.readouterr()
        state = State(env=self.env, cwd=self.project, opener=self.opener)
        try:
            code = main(argv, state=state)
        finally:
            use_language("en")
        out, err = self._capsys.readouterr()
        return Ran(code, out, err)

    def spawn(
        self, *argv: str, script: str = "answer", **options: object
    ) -> subprocess.Popen[bytes]:
        """The same as a program of its own, for signals and pipes."""
        root = Path(__file__).parents[2]
        env = {**self.env, "CROZE_FAKE": script, "PYTHONPATH": f"{root}/src:{root}"}
        given = {
            "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
            **options,
        }  # fmt: skip
        command = [sys.executable, "-m", "tests.ui.fakes", *argv]
        return subprocess.Popen(command, cwd=self.project, env=env, **given)  # type: ignore[call-overload,no-any-return]


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    return Shell(tmp_path, capsys, monkeypatch)
