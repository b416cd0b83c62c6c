"""Whole sessions over the real stack: a project folder, a scripted model, both protocols."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from croze.app.app import App
from croze.app.options import RunOptions
from croze.types.agent import Mode
from croze.types.event import (
    Answered,
    Asked,
    Event,
    FactAdded,
    FilesChanged,
    ModelSaid,
    Notice,
    Stopped,
    ToolReturned,
    ToolStarted,
)
from croze.types.parts import ToolCall
from tests.scenarios.real_library import library as library
from tests.scenarios.real_library import sdists as sdists

SRC = Path(__file__).parents[2] / "src"
START = "import sys; from croze.ui.cli.main import main; sys.exit(main())"


@dataclass(frozen=True)
class Played:
    """A session's log up to the end of a turn."""

    session: str
    stopped: Stopped
    events: tuple[Event, ...]

    @property
    def results(self) -> list[ToolReturned]:
        return [e.body for e in self.events if isinstance(e.body, ToolReturned)]

    @property
    def story(self) -> list[str]:
        """The log in words: an event a line, without what differs from run to run."""
        return [_told(event) for event in self.events]


class Stage:
    """A project and the scripts that are played in it, under one protocol."""

    def __init__(self, root: Path, dialect: str) -> None:
        self.project = root / "project"
        self.project.mkdir()
        self.dialect = dialect
        self._root = root

    def write(self, path: str, text: str) -> Path:
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def script(self, text: str) -> str:
        """The model that plays these replies."""
        path = self._root / "script.yaml"
        path.write_text(text)
        return f"scripted:{path}"

    async def play(
        self,
        script: str,
        task: str = "Do it.",
        *,
        mode: Mode = "full",
        allow: Sequence[str] = (),
        resume: str | None = None,
        agent: str | None = None,
    ) -> Played:
        app = App.open(cwd=self.project)
        options = RunOptions(
            model=self.script(script),
            dialect="xml" if self.dialect == "xml" else "native",
            mode=mode,
            sandbox="off",
            allow=tuple(allow),
            headless=True,
            resume=resume,
            agent=agent,
        )
        try:
            session = await app.session(options)
            stopped = await session.submit(task)
            return Played(session.id, stopped, session.events)
        finally:
            await app.aclose()

    async def divergence(self, session: str) -> str | None:
        """Where a replay of the session differs from the record."""
        app = App.open(cwd=self.project)
        try:
            return (await app.replay(session)).divergence
        finally:
            await app.aclose()


@pytest.fixture(params=["native", "xml"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    return Stage(tmp_path, request.param)


def croze(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """`croze` as a program in `folder`, with a home of its own and this Python as python3."""
    env = {
        "HOME": str(folder.parent / "home"), "LANG": "C.UTF-8", "PYTHONPATH": str(SRC),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-B", "-c", START, *argv],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def _told(event: Event) -> str:
    match event.body:
        case ModelSaid() as body:
            calls = [part.name for part in body.parts if isinstance(part, ToolCall)]
            return " ".join((event.type, *calls))
        case ToolStarted(name=name):
            return f"{event.type} {name}"
        case ToolReturned() as body:
            return f"{event.type} {body.name} {'ok' if body.ok else body.code}"
        case FilesChanged() as body:
            changes = [f"{c.kind} {c.path} +{c.added} -{c.removed}" for c in body.changes]
            return " ".join((event.type, *changes))
        case FactAdded(key=key):
            return f"{event.type} {key}"
        case Asked(kind=kind):
            return f"{event.type} {kind}"
        case Answered() as body:
            return f"{event.type} {body.answer} by {body.by}"
        case Notice(code=code):
            return f"{event.type} {code}"
        case Stopped(reason=reason):
            return f"{event.type} {reason}"
        case _:
            return event.type
