"""A session's side of a running tool, in memory: what a call tells of itself is kept for assertions."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest

from croze.types.event import Body, TodoItem
from croze.types.parts import ToolCall
from croze.types.tool import ToolResult
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

    def seen(self, path: str) -> str | None:
        return self.hashes.get(path)

    def remember(self, result: ToolResult) -> ToolResult:
        self.hashes.update(result.observed)
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

    def record_change(self, path: str, before: bytes | None, after: bytes | None) -> None:
        self.changes.append((path, before, after))


@pytest.fixture
def fake_context(tmp_path: Path) -> FakeContext:
    root = tmp_path / "project"
    root.mkdir()
    return FakeContext(Workspace("w", root, "main"))
