"""Several processes, or several stores in one process, on the same folder."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from croze.store.conversations import Conversations
from croze.store.store import Store  # noqa: TC001
from croze.types.errors import LockTimeout, SessionBusy
from croze.types.event import Annotated, UserSaid
from croze.types.parts import Text

from .conftest import Opener
from .test_crash import start


def said(text: str) -> UserSaid:
    return UserSaid(message_id=text, parts=(Text(text),))


async def test_two_processes_append_side_by_side_while_both_annotate_a_third_session(
    folder: Path, open_store: Opener
) -> None:
    store = open_store()
    log = await store.create(session_id="shared")
    writers = [start(folder, name, "append", "200") for name in ("a", "b")]
    writers.append(start(folder, "shared", "annotate", "200"))
    for number in range(200):
        await log.append(said(str(number)))
    for writer in writers:
        with writer:
            writer.communicate(timeout=100)
        assert writer.returncode == 0
    await log.refresh()
    assert [event.seq for event in log.events] == list(range(1, 402))
    assert log.events == await store.read("shared")
    texts = [e.body.message_id for e in log.events if isinstance(e.body, UserSaid)]
    assert texts == [str(number) for number in range(200)]
    for name in ("a", "b"):
        events = await store.read(name)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert len(events) > 200


async def test_a_session_that_runs_elsewhere_is_refused_with_its_process_id(
    folder: Path, open_store: Opener
) -> None:
    with start(folder, "s", "hold", "0") as process:
        assert process.stdout is not None
        process.stdout.readline()
        store = open_store()
        with pytest.raises(SessionBusy, match=f"process {process.pid}"):
            await store.open_log("s")
        with pytest.raises(SessionBusy, match=str(process.pid)):
            await Conversations(store).delete("s")
        await store.annotate("s", Annotated(name="renamed from outside"))
        assert [event.type for event in await store.read("s")] == ["SessionOpened", "Annotated"]
        process.communicate(timeout=60)
    with closing(await store.open_log("s")) as log:
        assert len(log.events) == 2


async def test_the_holder_reads_annotations_on_and_goes_on_behind_them(
    open_store: Opener,
) -> None:
    holder, other = open_store(), open_store()
    log = await holder.create()
    await log.append(said("one"))
    late = await other.annotate(log.session, Annotated(name="new name"))
    assert late.seq == 3
    (mine,) = await log.append(said("two"))
    assert mine.seq == 4
    assert [event.seq for event in log.events] == [1, 2, 3, 4]
    assert log.events[2] == late
    await other.annotate(log.session, Annotated(name="newer name"))
    (news,) = await log.refresh()
    assert isinstance(news.body, Annotated)
    assert news.body.name == "newer name"
    assert await log.refresh() == ()


async def test_an_annotation_that_comes_with_the_close_is_not_lost_to_lists(
    open_store: Opener,
) -> None:
    holder, other = open_store(), open_store()
    log = await holder.create()
    await other.annotate(log.session, Annotated(name="late"))
    log.close()
    (summary,) = await Conversations(open_store()).list()
    assert summary.name == "late"


async def test_a_lease_comes_back_with_close_and_a_second_open_in_one_process_is_refused(
    open_store: Opener, folder: Path
) -> None:
    first, second = open_store(), open_store()
    log = await first.create()
    for store in (first, second):
        with pytest.raises(SessionBusy):
            await store.open_log(log.session)
    log.close()
    log.close()
    with closing(await second.open_log(log.session[:8])) as again:
        assert again.session == log.session
        assert (folder / "locks" / log.session).stat().st_mode & 0o777 == 0o600
    assert not (folder / "locks" / log.session).exists()


async def test_a_writer_waits_for_another_and_gives_up_with_a_clear_error(
    open_store: Opener, folder: Path
) -> None:
    store = open_store(lock_timeout=0.2)
    log = await store.create()
    with closing(sqlite3.connect(folder / "log.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LockTimeout, match=r"log\.db"):
            await log.append(said("blocked"))
        assert len(await store.read(log.session)) == 1
        assert len(await Conversations(store).list()) == 1
        other.execute("COMMIT")
    await log.append(said("free"))
    assert [event.seq for event in log.events] == [1, 2]


async def test_readers_see_every_committed_event_while_another_store_writes(
    open_store: Opener,
) -> None:
    writer, reader = open_store(), open_store()
    log = await writer.create()
    for number in range(30):
        await log.append(said(str(number)))
        assert await reader.read(log.session) == log.events


async def test_closing_the_flushed_file_keeps_other_processes_locks_away(
    open_store: Opener, folder: Path
) -> None:
    """POSIX locks fall when any descriptor of their file closes; a flush must not close one."""
    store: Store = open_store()
    log = await store.create()
    store.database.connection.execute("BEGIN IMMEDIATE")
    store.database._flush()
    store.database._wal, old = -1, store.database._wal
    os.close(old)
    probe = (
        "import sqlite3,sys; c=sqlite3.connect(sys.argv[1],timeout=0,isolation_level=None)\n"
        "try: c.execute('BEGIN IMMEDIATE'); print('taken')\n"
        "except sqlite3.OperationalError as e: print(e)"
    )
    result = subprocess.run(
        [sys.executable, "-c", probe, str(folder / "log.db")], capture_output=True, text=True
    )
    assert result.stdout == "database is locked\n"
    store.database.connection.execute("ROLLBACK")
    await log.append(said("on"), durable=True)
