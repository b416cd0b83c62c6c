"""Tool descriptions and a fixed source, for tests of the context."""

import itertools
from typing import Any

import pytest

from croze.context.environment import SystemInfo
from croze.types.tool import ToolDoc

CORE = (
    "read_file",
    "write_to_file",
    "replace_in_file",
    "search_files",
    "find_files",
    "list_files",
    "execute_command",
    "todo_write",
    "ask_followup_question",
    "attempt_completion",
    "describe_tools",
    "call_tool",
)


class FixedSource:
    """A clock that stands still and ids that count up."""

    def __init__(self) -> None:
        self._count = itertools.count(1)

    def now(self) -> int:
        return 1_790_000_000_000_000

    def uuid(self) -> str:
        return f"00000000-0000-4000-8000-{next(self._count):012d}"

    def call_id(self) -> str:
        return f"{next(self._count):09d}"


def tool_doc(name: str, **more: Any) -> ToolDoc:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    return ToolDoc(name, f"{name} in a line", f"What {name} does in full.", schema, **more)


@pytest.fixture
def core_docs() -> tuple[ToolDoc, ...]:
    return tuple(tool_doc(name, core=True) for name in CORE)


@pytest.fixture
def make_doc() -> Any:
    return tool_doc


@pytest.fixture
def source() -> FixedSource:
    return FixedSource()


@pytest.fixture
def debian() -> SystemInfo:
    return SystemInfo(
        os="Debian GNU/Linux 12 (Linux, x86_64)", shell="bash", user_shell="bash", encoding="utf-8"
    )
