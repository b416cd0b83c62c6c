"""An application for tests of the command line: real configuration and store, a scripted session.

Run as a program it is `croze` over that application; CROZE_FAKE names the session's script.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from croze.app.config import Config, load
from croze.app.options import Finding, ReplayReport, RunOptions
from croze.store.conversations import Conversations
from croze.store.store import Store
from croze.types.errors import ModelError, UsageError
from croze.types.event import (
    Answered,
    Asked,
    Body,
    Event,
    FilesChanged,
    ModelCalled,
    ModelSaid,
    Notice,
    Retried,
    Stopped,
    ToolReturned,
    UserSaid,
)
from croze.types.ids import SystemSource
from croze.types.model import Cost, ModelInfo, Usage
from croze.types.parts import Text, Thinking, ToolCall
from croze.types.stream import Delta
from croze.types.tool import FileChange, View
from croze.ui.cli.main import main
from croze.ui.cli.state import State

ID = "0b5f6a1e-1111-4222-8333-944455556666"

Step = Body | Delta
Watcher = Callable[[Event | Delta], None]


def said(text: str, *calls: ToolCall, message: str = "m1") -> ModelSaid:
    return ModelSaid(
        message_id=message,
        step=1,
        model="fake:one",
        parts=(Thinking(text="hm"), Text(text=text), *calls),
        finish="stop",
        usage=Usage(input=1000, output=50, cached=200),
        cost=Cost(input=0.001, output=0.0005),
    )


def done(text: str = "", **fields: Any) -> Stopped:
    return Stopped(reason="done", text=text, steps=1, seconds=0.5, cost=0.0015, **fields)


CALLED = ModelCalled(
    step=1, model="fake:one", head="", history=1, body="", rolling="", encoder=1, tokens=900, size=9
)
READ = ToolCall(id="abcdefghi", name="read_file", args={"path": "a.py"}, raw="<read_file>…")
RUN = ToolCall(id="abcdefghj", name="execute_command", args={"command": "make"}, raw="<x>")

SCRIPTS: dict[str, list[list[Step]]] = {
    "answer": [[CALLED, Delta(kind="text", text="4"), said("42"), done("42")]],
    "tools": [
        [
            CALLED,
            said("Reading.", READ),
            ToolReturned(
                call_id=READ.id, message_id="m2", name="read_file", ok=True, text="x = 1",
                view=View(title="a.py lines 1-1"),
            ),
            FilesChanged(
                call_id=READ.id, changes=(FileChange(path="b\u2028.py", kind="added", added=1),)
            ),
            Retried(attempt=1, delay=0.5, error="rate_limit", message="too many"),
            Notice(level="warning", code="window", text="The window is \x1b[31mnearly full."),
            said("Line one\nline two", message="m3"),
            done("Line one\nline two"),
        ]
    ],
    "refused": [
        [
            CALLED,
            said("", RUN),
            Asked(
                ask_id="q1", kind="approval", text="run: make", call_id=RUN.id,
                rule="execute_command(make)",
            ),
            Answered(ask_id="q1", answer="no", note="no user", by="headless"),
            ToolReturned(
                call_id=RUN.id, message_id="m2", name="execute_command", ok=False,
                message="execute_command was not allowed. Allow it with --allow 'execute_command(make)'.",
                code="not_allowed",
            ),
            said("I could not run it.", message="m3"),
            done("I could not run it.", refused=1),
        ]
    ],
    "limit": [[CALLED, said("half"), Stopped(reason="steps", text="The limit of 1 steps is reached.", steps=1)]],
    "failed": [
        [
            Notice(level="error", code="model", text="boom"),
            Stopped(reason="failed", text="boom"),
        ]
    ],
    "retries": [[Stopped(reason="retries_exhausted", text="gave up")]],
    "json": [[CALLED, said('{"n": 1}'), done()]],
    "json second": [
        [CALLED, said("It is one."), done()],
        [CALLED, said('```json\n{"n": 1}\n```'), done()],
    ],
    "json never": [[CALLED, said("no"), done()], [CALLED, said('{"n": "x"}'), done()]],
    "wait": [[CALLED, Delta(kind="text", text="wor")]],
    "flood": [[CALLED, *[said("x" * 1000, message=f"m{i}") for i in range(500)]]],
}  # fmt: skip


class FakeSession:
    """Plays one list of a script a turn; a turn without an end waits until it is cancelled."""

    id = ID
    model = ModelInfo(provider="fake", model="one", window=1000, max_output=100)

    def __init__(self, script: list[list[Step]]) -> None:
        self.script = list(script)
        self.prompts: list[str] = []
        self.events: tuple[Event, ...] = ()
        self.closed = False
        self._watchers: list[Watcher] = []
        self._cancelled = asyncio.Event()

    def subscribe(self, watcher: Watcher) -> Callable[[], None]:
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    async def submit(self, text: str) -> Stopped:
        self.prompts.append(text)
        self._publish(UserSaid(message_id="u", parts=(Text(text=text),)))
        for step in self.script.pop(0):
            self._publish(step)
            await asyncio.sleep(0)
            if isinstance(step, Stopped):
                return step
            if self._cancelled.is_set():
                break
        await self._cancelled.wait()
        stopped = Stopped(reason="cancelled", text="Stopped by the user.")
        self._publish(stopped)
        return stopped

    def _publish(self, step: Step) -> None:
        item: Event | Delta = step if isinstance(step, Delta) else self._event(step)
        for watcher in tuple(self._watchers):
            watcher(item)

    def _event(self, body: Body) -> Event:
        event = Event(session=self.id, seq=len(self.events) + 1, at=1, body=body)
        self.events = (*self.events, event)
        return event

    def cancel(self) -> None:
        self._cancelled.set()

    async def close(self) -> None:
        self.closed = True


class FakeApp:
    """Real configuration, conversations and store; sessions from a script; canned replay and checks."""

    def __init__(self, config: Config, script: str) -> None:
        self.config = config
        self.script = script
        self.options: RunOptions | None = None
        self.live: FakeSession | None = None
        self.report = ReplayReport(requests=3)
        self.closed = False
        self._store: Store | None = None

    @property
    def store(self) -> Store:
        if self._store is None:
            self._store = Store.open(self.config.store_folder, source=SystemSource())
        return self._store

    @property
    def notices(self) -> list[Notice]:
        return self.store.notices

    @property
    def conversations(self) -> Conversations:
        return Conversations(self.store)

    async def session(self, options: RunOptions) -> FakeSession:
        self.options = options
        if self.script == "no model":
            raise UsageError("There is no model.", hint="Set a key.", code="no_model")
        if self.script == "unreachable":
            raise ModelError("The server can't be reached.", hint="Is it running?")
        if self.script == "bug":
            raise RuntimeError("a bug with \x1b]0;title\x07 in it")
        self.live = FakeSession(SCRIPTS[self.script])
        return self.live

    async def replay(self, session: str) -> ReplayReport:
        await self.conversations.resolve(session)
        return self.report

    async def doctor(self) -> list[Finding]:
        return [Finding(level="ok", topic="store", text="fine")]

    async def aclose(self) -> None:
        self.closed = True
        if self._store is not None:
            self._store.close()
            self._store = None


class Opener:
    """Opens the fake application and remembers it."""

    def __init__(self, script: str) -> None:
        self.script = script
        self.app: FakeApp | None = None

    def __call__(
        self, *, cwd: Path, overrides: Mapping[str, object], env: Mapping[str, str]
    ) -> Any:
        self.app = FakeApp(load(cwd, overrides=overrides, env=env), self.script)
        return self.app


if __name__ == "__main__":
    opener = Opener(os.environ["CROZE_FAKE"])
    sys.exit(main(state=State(env=os.environ, cwd=Path.cwd(), opener=opener)))
