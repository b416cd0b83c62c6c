"""Stored files of every version open; migrations go forward, whole or not at all."""

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from croze.store import schema
from croze.store.conversations import Conversations
from croze.store.schema import APPLICATION_ID, MIGRATIONS, migrate
from croze.types.errors import StoreError
from croze.types.event import SessionOpened, ToolReturned, Unknown, UserSaid

from .conftest import Opener

STORED = sorted(Path(__file__).parent.glob("v*.sql"))


def restore_sql(script: Path, path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script.read_text())


def test_there_is_a_stored_file_of_every_version() -> None:
    assert [path.stem for path in STORED] == [f"v{n + 1}" for n in range(len(MIGRATIONS))]


@pytest.mark.parametrize("script", STORED, ids=lambda path: path.stem)
async def test_a_stored_file_of_each_version_opens_and_goes_on(
    script: Path, folder: Path, open_store: Opener
) -> None:
    restore_sql(script, folder / "log.db")
    store = open_store()
    assert store.notices == []
    conversations = Conversations(store)
    (summary,) = await conversations.list()
    assert (summary.name, summary.message_count, summary.namespace) == ("Renamed", 3, "work")
    assert summary.cost == pytest.approx(0.75)
    assert summary.children_cost == pytest.approx(0.25)
    assert summary.tools == {"read_file": 1}
    assert await conversations.current("work") == summary.id
    with closing(await store.open_log(summary.id)) as log:
        assert [event.seq for event in log.events] == list(range(1, 8))
        assert isinstance(log.events[0].body, SessionOpened)
        assert isinstance(log.events[3].body, ToolReturned)
        assert log.events[5].body == Unknown("FromTheFuture", 3, '{"x":  1}')
        assert await store.blob(log.events[3].body.blobs[0]) == b"the whole output " * 40
        (added,) = await log.append(UserSaid("new", ()))
        assert added.seq == 8
    assert [hit.role for hit in await conversations.search("tokenizer")] == ["user"]
    (version,) = store.database.connection.execute("PRAGMA user_version").fetchone()
    assert version == len(MIGRATIONS)


def steps(log: list[str], *, fail_at: int = 0) -> list[Callable[[sqlite3.Connection], None]]:
    def step(number: int) -> Callable[[sqlite3.Connection], None]:
        def run(connection: sqlite3.Connection) -> None:
            connection.execute(f"CREATE TABLE t{number}(x)")
            log.append(str(number))
            if number == fail_at:
                connection.execute("INSERT INTO nowhere VALUES(1)")

        return run

    return [step(number) for number in (1, 2, 3)]


def test_only_the_missing_steps_run_and_a_failed_one_leaves_nothing() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        log: list[str] = []
        migrate(connection, "x", steps(log)[:1])
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, "x", steps(log, fail_at=3))
        assert log == ["1", "2", "3"]
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema")]
        assert tables == ["t1", "t2"]
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        migrate(connection, "x", steps(log))
        assert log == ["1", "2", "3", "3"]


async def test_a_file_of_a_newer_version_is_left_alone(folder: Path, open_store: Opener) -> None:
    open_store().close()
    with closing(sqlite3.connect(folder / "log.db")) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    before = (folder / "log.db").read_bytes()
    with pytest.raises(StoreError, match="newer croze") as caught:
        open_store()
    assert caught.value.code == "store_newer"
    assert (folder / "log.db").read_bytes() == before


async def test_an_old_file_is_brought_up_to_date_when_it_is_opened(
    folder: Path, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()
    (await store.create(session_id="s")).close()
    store.close()
    added = (*MIGRATIONS, lambda connection: connection.execute("CREATE TABLE later(x)"))
    monkeypatch.setattr(schema, "MIGRATIONS", added)
    monkeypatch.setattr("croze.store.db.MIGRATIONS", added)
    monkeypatch.setattr(migrate, "__defaults__", (added,))
    again = open_store()
    assert again.database.connection.execute("SELECT * FROM later").fetchall() == []
    assert await again.resolve("s") == "s"


def test_the_application_id_reads_croz() -> None:
    assert re.fullmatch(b"CROZ", APPLICATION_ID.to_bytes(4, "big"))
