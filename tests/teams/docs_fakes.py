"""A project whose documentation is written by scripted models."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from croze.app.app import App, Session
from croze.app.options import RunOptions
from croze.teams.docs.manifest import Manifest, read_manifest
from croze.teams.docs.pipeline import FLOW, options_fact, state_of
from croze.teams.docs.values import DocsOptions, DocsState
from croze.teams.flow_record import past
from croze.types.event import Event, FlowStepped, Stopped
from croze.workspace.cache import RunCache

BRIEF = {
    "title": "Cooper",
    "summary": "Cooper makes barrels.",
    "audience": "People who need barrels.",
    "scope": "Using it, not building it.",
}
START = {
    "path": "guide/start.md",
    "title": "Getting started",
    "purpose": "Make a first barrel.",
    "sources": ["README.md", "src/barrel.py"],
}
HOOPS = {
    "path": "hoops.md",
    "title": "Hoops",
    "purpose": "Choose hoops.",
    "sources": ["src/hoops.py"],
}
PAGES = {
    "guide/start.md": "# Getting started\n\nRun `barrel()`; see [hoops](../hoops.md).\n",
    "hoops.md": "# Hoops\n\nIron ones, as in [the code](../../src/hoops.py#L1).\n",
}
FILES = {
    "README.md": "# Cooper\n\nBarrels.\n",
    "src/barrel.py": "def barrel():\n    return 'barrel'\n",
    "src/hoops.py": "IRON = 1\n",
}

Reply = str | dict[str, Any]


@dataclass
class Made:
    """A turn of the pipeline: its log, its state, how it ended."""

    session: str
    stopped: Stopped
    events: tuple[Event, ...]
    state: DocsState

    @property
    def states(self) -> dict[str, str]:
        return {done.path: done.state for done in self.state.done}


class DocsStage:
    """A project folder, and what the agents say there."""

    def __init__(
        self, root: Path, dialect: str = "native", files: Mapping[str, str] = FILES
    ) -> None:
        self.project = root / "project"
        self.project.mkdir()
        self.dialect = dialect
        self._root = root
        for path, text in files.items():
            self.write(path, text)
        self.brief: list[Reply] = [json.dumps(BRIEF)]
        self.structure: list[Reply] = [json.dumps({"pages": [START, HOOPS]})]
        self.mended: dict[str, list[Reply]] = {}
        self.pages: dict[str, list[Reply]] = {path: [text] for path, text in PAGES.items()}

    def write(self, path: str, text: str) -> Path:
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def read(self, page: str, out: str = "docs/reference") -> str:
        return (self.project / out / page).read_text()

    def manifest(self, out: str = "docs/reference") -> Manifest:
        return read_manifest((self.project / out / ".croze-docs.json").read_bytes(), "m")

    def model(self) -> str:
        """The model that plays what the agents say."""
        agents = [
            *(
                {"agent": "docs-detail", "task": f"- {link}: ", "replies": _replies(said)}
                for link, said in self.mended.items()
            ),
            {"agent": "docs-create", "replies": _replies(self.brief)},
            {"agent": "docs-structure", "replies": _replies(self.structure)},
            *(
                {"agent": "docs-detail", "task": f"Your page is {path}.", "replies": _replies(said)}
                for path, said in self.pages.items()
            ),
        ]
        path = self._root / "script.yaml"
        path.write_text(yaml.safe_dump({"replies": [], "agents": agents}))
        return f"scripted:{path}"

    def options(self, **given: Any) -> RunOptions:
        dialect: Literal["xml", "native"] = "xml" if self.dialect == "xml" else "native"
        return RunOptions(agent="docs", model=self.model(), dialect=dialect, headless=True, **given)

    async def log(self, session: str) -> list[Event]:
        """The log of a stored session, such as an agent's."""
        app = App.open(cwd=self.project)
        try:
            return await app.store.read(session)
        finally:
            await app.aclose()

    async def make(
        self,
        options: DocsOptions | None = None,
        *,
        text: str = "Write the documentation.",
        resume: str | None = None,
        cache: RunCache | None = None,
        run: RunOptions | None = None,
        during: Callable[[Session, object], None] | None = None,
    ) -> Made:
        app = App.open(cwd=self.project)
        given = run or self.options(resume=resume)
        try:
            session = await app.session(given, cache=cache)
            if options is not None:
                await session.add_fact(options_fact(options, session.new_id()))
            if during is not None:
                session.subscribe(lambda item: during(session, item))
            stopped = await session.submit(text)
            steps = [e.body for e in session.events if isinstance(e.body, FlowStepped)]
            found = past(steps, FLOW)
            state = (state_of(found) if found else None) or DocsState("", "")
            return Made(session.id, stopped, session.events, state)
        finally:
            await app.aclose()


def _replies(said: Sequence[Reply]) -> list[dict[str, Any]]:
    return [{"text": each} if isinstance(each, str) else each for each in said]
