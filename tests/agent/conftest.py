"""Sessions over the real stack: store, workspace, tools, wires and a model server on the loopback."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from croze.app.app import App, Session
from croze.app.options import ReplayReport, RunOptions
from croze.types.event import Body, Event, ModelCalled, Stopped
from tests.model_server import ModelServer, Reply

MODELS = {"openai": "openai:gpt-4.1", "anthropic": "anthropic:claude-sonnet-4-5"}
BOUND = 20.0
"""Seconds that something may take at most before a test gives up on it."""

NO_MORE = Reply(fault="400", message="the test has no reply left")
CALL = tuple[str, Mapping[str, Any]]


def as_tags(name: str, args: Mapping[str, Any]) -> str:
    """A call as the xml protocol writes it."""
    lines = [f"<{key}>{value}</{key}>" for key, value in args.items()]
    return "\n".join([f"<{name}>", *lines, f"</{name}>"])


def bodies(events: Sequence[Event], kind: type) -> list[Any]:
    return [event.body for event in events if isinstance(event.body, kind)]


def kinds(events: Sequence[Event]) -> list[str]:
    return [event.type for event in events]


@dataclass
class Desk:
    """One project with one model server: opens apps and sessions for a wire and a protocol."""

    project: Path
    server: ModelServer
    wire: str = "openai"
    dialect: str = "native"
    overrides: dict[str, object] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)

    @property
    def model(self) -> str:
        return MODELS[self.wire]

    def reply(self, text: str = "", calls: Sequence[CALL] = (), **more: Any) -> Reply:
        """A reply with calls in the form of the protocol."""
        if self.dialect == "native":
            return Reply(text=text, calls=calls, **more)
        tags = "\n\n".join(as_tags(name, args) for name, args in calls)
        return Reply(text=f"{text}\n\n{tags}" if text and tags else text or tags, **more)

    def says(self, *replies: Reply) -> None:
        """What the server answers from now on."""
        left = iter(replies)
        self.server.replies = lambda _request: next(left, NO_MORE)

    def open(self) -> App:
        base = self.server.url.removesuffix("/v1")
        env = {
            **os.environ,
            "OPENAI_API_KEY": "sk-test-key",
            "OPENAI_BASE_URL": self.server.url,
            "ANTHROPIC_API_KEY": "sk-ant-test-key",
            "ANTHROPIC_BASE_URL": base,
            **self.env,
        }
        overrides = {"store.backup_enabled": False, **self.overrides}
        return App.open(cwd=self.project, overrides=overrides, env=env)

    @asynccontextmanager
    async def app(self) -> AsyncIterator[App]:
        app = self.open()
        try:
            yield app
        finally:
            await app.aclose()

    def options(self, **more: Any) -> RunOptions:
        given = {
            "model": self.model,
            "dialect": self.dialect,
            "mode": "full",
            "sandbox": "off",
            "headless": True,
            **more,
        }
        return RunOptions(**given)

    @asynccontextmanager
    async def session(self, **more: Any) -> AsyncIterator[Session]:
        """A live session. When it is closed it is replayed: whatever happened in it must come out the
        same, byte for byte."""
        async with self.app() as app:
            session = await app.session(self.options(**more))
            yield session
            await app.leave(session)
            report = await app.replay(session.id)
            assert report.divergence is None
            assert report.requests == len(bodies(session.events, ModelCalled))

    async def run(self, *texts: str, **more: Any) -> tuple[Session, list[Stopped]]:
        """A session in which these things are said one after the other; closed again."""
        async with self.session(**more) as session:
            stopped = [await asyncio.wait_for(session.submit(text), BOUND) for text in texts]
            return session, stopped

    async def replay(self, session: str) -> ReplayReport:
        async with self.app() as app:
            return await app.replay(session)

    async def log(self, session: str) -> list[Event]:
        async with self.app() as app:
            return await app.store.read(session)

    async def write_log(self, session: str, *added: Body) -> None:
        """Append events as a process that died after them would have left the log."""
        async with self.app() as app:
            log = await app.store.open_log(session)
            await log.append(*added)
            log.close()


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
def desk(project: Path, server: ModelServer) -> Desk:
    """The OpenAI wire with native calls."""
    return Desk(project, server)


@pytest.fixture(params=["openai-native", "openai-xml", "anthropic-native", "anthropic-xml"])
def any_desk(request: pytest.FixtureRequest, project: Path, server: ModelServer) -> Desk:
    """Every wire with every protocol."""
    wire, _, dialect = request.param.partition("-")
    return Desk(project, server, wire=wire, dialect=dialect)


@pytest.fixture(params=["openai", "anthropic"])
def wire_desk(request: pytest.FixtureRequest, project: Path, server: ModelServer) -> Desk:
    """Every wire, with native calls."""
    return Desk(project, server, wire=request.param)


@pytest.fixture(params=["native", "xml"])
def dialect_desk(request: pytest.FixtureRequest, project: Path, server: ModelServer) -> Desk:
    """Every protocol, over the OpenAI wire."""
    return Desk(project, server, dialect=request.param)


@pytest.fixture
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries follow each other at once."""
    monkeypatch.setattr("croze.llm.retry.BASE_SECONDS", 0.0)


def seen(session: Session, matches: Callable[[Any], bool]) -> asyncio.Future[Any]:
    """The first event or delta from now on that `matches`."""
    found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def watch(item: Any) -> None:
        if not found.done() and matches(item):
            found.set_result(item)

    session.subscribe(watch)
    return found


def is_event(kind: type) -> Callable[[Any], bool]:
    return lambda item: isinstance(getattr(item, "body", None), kind)


def is_delta(kind: str) -> Callable[[Any], bool]:
    return lambda item: getattr(item, "kind", "") == kind
