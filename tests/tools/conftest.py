"""A session's side of a running tool, in memory: what a call tells of itself is kept for assertions."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from croze.text.tokens import Counter, counter_for, estimate
from croze.tools.base import Remembered
from croze.tools.team import Team
from croze.types.event import Body, TodoItem, ToolReturned
from croze.types.parts import ToolCall
from croze.types.tool import ToolResult
from croze.web.web import Web
from croze.workspace.background import Background
from croze.workspace.cache import RunCache
from croze.workspace.extraction import Extractions
from croze.workspace.workspace import Workspace


@dataclass
class FakeContext:
    """Implements `ToolContext`. `remember` does what the session does with a result's hashes."""

    workspace: Workspace
    session: str = "session"
    call: ToolCall = field(default_factory=lambda: ToolCall("123456789", "tool"))
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    todo: tuple[TodoItem, ...] = ()
    answer: str | None = None
    hashes: dict[str, str] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    events: list[Body] = field(default_factory=list)
    asked: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    kept: dict[str, bytes] = field(default_factory=dict)
    changes: list[tuple[str, bytes | None, bytes | None]] = field(default_factory=list)
    marked: tuple[str, ...] = ()
    policy: str = "batch"
    counter: Counter = field(default_factory=lambda: counter_for("none"))
    messages: list[Remembered] = field(default_factory=list)
    stored: dict[str, str] = field(default_factory=dict)
    cache: RunCache = field(default_factory=RunCache)
    results: list[ToolReturned] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    documents: Extractions = field(default_factory=Extractions)
    web: Web = field(default_factory=Web)
    background: Background = field(default_factory=Background)
    vision: bool = False
    team: Team | None = None
    mcp: Any = None
    libraries: Any = None
    outside: Any = None

    def visible(self, message_id: str) -> bool:
        return message_id not in self.gone and any(
            returned.message_id == message_id for returned in self.results
        )

    def looked(self, key: str) -> Sequence[ToolReturned]:
        return [
            returned
            for returned in self.results
            if returned.look is not None and returned.look.key == key
            if self.visible(returned.message_id)
        ]

    def seen(self, path: str) -> str | None:
        return self.hashes.get(path)

    def remember(self, result: ToolResult) -> ToolResult:
        self.hashes.update(result.observed)
        number = len(self.results) + 1
        self.results.append(
            ToolReturned(
                call_id=f"call{number:05}",
                message_id=f"{number:08x}-0000-4000-8000-000000000000",
                name="tool",
                ok=result.ok,
                message=result.message,
                text=result.text,
                tokens=estimate(result.text) + estimate(result.message),
                look=result.look,
            )
        )
        return result

    def output(self, text: str) -> None:
        self.outputs.append(text)

    async def emit(self, body: Body) -> None:
        self.events.append(body)

    async def ask(self, text: str, options: Sequence[str] = ()) -> str | None:
        self.asked.append((text, tuple(options)))
        return self.answer

    async def keep(self, data: bytes) -> str:
        digest = sha256(data).hexdigest()
        self.kept[digest] = data
        return digest

    def describe(self, names: Sequence[str]) -> tuple[str, list[str]]:
        return "\n".join(f"## {name}" for name in names), []

    def remembered(self) -> Sequence[Remembered]:
        return self.messages

    async def recall(self, message_id: str) -> str:
        return self.stored.get(message_id, "")

    def record_change(self, path: str, before: bytes | None, after: bytes | None) -> None:
        self.changes.append((path, before, after))


@pytest.fixture
def fake_context(tmp_path: Path) -> FakeContext:
    root = tmp_path / "project"
    root.mkdir()
    return FakeContext(Workspace("w", root, "main"))
