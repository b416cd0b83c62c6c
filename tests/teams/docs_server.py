"""Agents that behave as models do: who sees no tree lists folders first. For what sharing saves."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from croze.app.app import App
from croze.app.docs import docs_options, write_docs
from croze.app.options import RunOptions
from croze.teams.docs.values import DocsOptions
from croze.types.event import ChildClosed, ChildOpened, ModelCalled, ModelSaid
from croze.types.parts import ToolCall
from croze.workspace.cache import RunCache
from croze.workspace.files import Files
from croze.workspace.tree import scan
from tests.model_server import Reply, Request, ServerThread

PAGES = 12
COMMON = "src/common.py"
BRIEF = '{"title": "T", "summary": "S", "audience": "A", "scope": "C"}'


@dataclass
class Counts:
    """What a run took: scans, the agents' listings and readings, what of that reached the disk, requests and
    their tokens (estimated), and how many agents worked at the same time."""

    scans: int = 0
    disk: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    agents: int = 0
    requests: int = 0
    tokens: int = 0
    reason: str = ""
    at_once: int = 0


def make_project(root: Path) -> Path:
    """A project of some 60 files."""
    project = root / "project"
    for module in range(PAGES):
        folder = project / "src" / f"part{module}"
        folder.mkdir(parents=True)
        for name in ("__init__", "model", "view", "store"):
            (folder / f"{name}.py").write_text(
                f'"""Part {module}, {name}."""\n\n\ndef run_{name}() -> int:\n    return {module}\n'
            )
    (project / COMMON).write_text('"""What all parts share."""\n' + "VALUE = 1\n" * 40)
    for name in (
        "README.md",
        "LICENSE",
        "pyproject.toml",
        "Makefile",
        "CHANGELOG.md",
        ".gitignore",
    ):
        (project / name).write_text(f"{name}\n")
    return project


def play(request: Request) -> Reply:
    """The next reply of the agent whose conversation this is."""
    messages = request.json["messages"]
    text = str(messages)
    made = sum(len(m.get("tool_calls") or ()) for m in messages if m["role"] == "assistant")
    looks: list[tuple[str, dict[str, Any]]] = []
    if "<project_tree>" not in text:
        looks += [("list_files", {"path": "."}), ("list_files", {"path": "src"})]
    if "Write one page" in text:
        looks.append(("read_file", {"path": COMMON}))
    if made < len(looks):
        return Reply(calls=[looks[made]])
    if "Settle what a set" in text:
        return Reply(text=BRIEF)
    if "Divide the documentation" in text:
        pages = ", ".join(
            f'{{"path": "part{n}.md", "title": "Part {n}", "purpose": "Use part {n}.", '
            f'"sources": ["src/part{n}/model.py", "src/part{n}/view.py"]}}'
            for n in range(PAGES)
        )
        return Reply(text=f'{{"pages": [{pages}]}}')
    number = text.partition("Your page is part")[2].partition(".md")[0]
    return Reply(text=f"# Part {number}\n\nCall `run_model()`; see [the set](index.md).\n")


class Forgetful(RunCache):
    """A cache that keeps nothing: every agent looks for itself."""

    def __init__(self) -> None:
        super().__init__(limit=0)


async def measure(root: Path, *, shared: bool) -> Counts:
    """One run of `croze docs` over the project below `root`, with what its agents share or without."""
    counts = Counts()
    with ServerThread(play) as server, _counted(counts):
        env = {
            **os.environ,
            "OPENAI_API_KEY": "sk-test",
            "OPENAI_BASE_URL": server.url,
            "CROZE_WORKSPACE__TREE": "true" if shared else "false",
        }
        app = App.open(cwd=root / "project", env=env)
        try:
            options = docs_options(RunOptions(model="openai:gpt-4.1", headless=True))
            cache = RunCache() if shared else Forgetful()
            session = await app.session(options, cache=cache)
            stopped = await write_docs(session, DocsOptions())
            counts.reason = f"{stopped.reason}: {stopped.text}"
            working = 0
            for event in session.events:
                working -= isinstance(event.body, ChildClosed)
                if isinstance(event.body, ChildOpened):
                    working += 1
                    counts.at_once = max(counts.at_once, working)
                    counts.agents += 1
                    await _count(app, event.body.child, counts)
        finally:
            await app.aclose()
    return counts


async def _count(app: App, session: str, counts: Counts) -> None:
    for event in await app.store.read(session):
        if isinstance(event.body, ModelCalled):
            counts.requests += 1
            counts.tokens += event.body.tokens
        elif isinstance(event.body, ModelSaid):
            counts.calls.update(p.name for p in event.body.parts if isinstance(p, ToolCall))


@contextmanager
def _counted(counts: Counts) -> Iterator[None]:
    """Count scans, and what is asked of the disk."""
    opened, listed = Files.open, Files.list

    def open_(self: Files, path: str) -> Any:
        counts.disk[f"read {path}"] += 1
        return opened(self, path)

    def list_(self: Files, path: str = ".") -> Any:
        counts.disk[f"list {path}"] += 1
        return listed(self, path)

    def scan_(*args: Any, **given: Any) -> Any:
        counts.scans += 1
        return scan(*args, **given)

    with (
        patch.object(Files, "open", open_),
        patch.object(Files, "list", list_),
        patch("croze.workspace.cache.scan", scan_),
    ):
        yield
