"""What the store's tests share: a source of known times and ids, and stores that get closed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from croze.store.conversations import Conversations
from croze.store.db import StoreSettings
from croze.store.store import Store

START = 1_800_000_000_000_000


class Steps:
    """Counts instead of reading clock and chance; `step` may be negative: a clock that goes back."""

    def __init__(self, *, step: int = 1_000_000, salt: int = 0) -> None:
        self.at = START
        self.step = step
        self._count = salt

    def now(self) -> int:
        self.at += self.step
        return self.at

    def uuid(self) -> str:
        self._count += 1
        return f"{self._count:08x}-0000-4000-8000-{self._count:012x}"

    def call_id(self) -> str:
        self._count += 1
        return f"{self._count:09d}"


Opener = Callable[..., Store]


@pytest.fixture
def source() -> Steps:
    return Steps()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def open_store(folder: Path) -> Iterator[Opener]:
    """Opens the test's store, as often as wanted; all are closed at the end."""
    opened: list[Store] = []

    def opening(
        path: Path | None = folder, *, source: Steps | None = None, **settings: object
    ) -> Store:
        values = {"backup_enabled": False, **settings}
        store = Store.open(
            path,
            source=source or Steps(salt=1_000 * len(opened)),
            settings=StoreSettings(**values),  # type: ignore[arg-type]
        )
        opened.append(store)
        return store

    yield opening
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Opener) -> Store:
    return open_store()


@pytest.fixture
def conversations(store: Store) -> Conversations:
    return Conversations(store)
