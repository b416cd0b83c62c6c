"""Opening a store, its files, ids, durability and blobs."""

import asyncio
import os
import threading
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest

from croze.store.conversations import Conversations
from croze.store.store import Store
from croze.types.errors import (
    ConversationExists,
    ConversationNotFound,
    StoreError,
    StoreFull,
    UsageError,
)
from croze.types.event import Annotated, Notice, SessionOpened, Stopped, UserSaid
from croze.types.ids import SystemSource
from croze.types.parts import Text

from .conftest import Opener, Steps


def said(text: str) -> UserSaid:
    return UserSaid(message_id=text, parts=(Text(text),))


async def test_a_session_begins_with_what_was_asked_for(store: Store) -> None:
    log = await store.create(
        name="Fix it",
        description="d",
        namespace="n",
        project="/p",
        metadata={"k": [1]},
        version="0.1",
    )
    (first,) = log.events
    assert first.seq == 1
    assert first.body == SessionOpened(
        name="Fix it",
        description="d",
        namespace="n",
        project="/p",
        metadata={"k": [1]},
        version="0.1",
    )
    unnamed = await store.create(parent=log.session)
    assert isinstance(unnamed.events[0].body, SessionOpened)
    assert unnamed.events[0].body.name == f"Conversation {unnamed.session[:8]}"
    assert unnamed.events[0].body.namespace == "default"


async def test_several_bodies_are_one_append_with_neighbouring_seqs(store: Store) -> None:
    log = await store.create()
    events = await log.append(said("a"), said("b"), Stopped(reason="done"))
    assert [event.seq for event in events] == [2, 3, 4]
    assert len({event.at for event in events}) == 1
    assert await log.append() == ()
    assert log.events[1:] == list(events)
    assert await store.read(log.session) == log.events


async def test_appends_of_many_tasks_keep_the_order_of_the_calls(store: Store) -> None:
    log = await store.create()
    await asyncio.gather(*(log.append(said(str(n)), durable=n % 3 == 0) for n in range(50)))
    ids = [e.body.message_id for e in log.events if isinstance(e.body, UserSaid)]
    assert ids == [str(n) for n in range(50)]
    assert await store.read(log.session) == log.events


async def test_on_a_quick_disk_each_durable_append_flushes_by_itself(store: Store) -> None:
    log = await store.create()
    threads = []
    real = os.fdatasync

    def counted(fd: int) -> None:
        threads.append(threading.current_thread() is threading.main_thread())
        real(fd)

    with patch("os.fdatasync", counted), patch("croze.store.db.QUICK_FLUSH", 60.0):
        for n in range(3):
            await log.append(said(str(n)), durable=True)
    assert threads == [False, True, True]


async def test_durable_appends_that_wait_together_share_a_flush(store: Store) -> None:
    log = await store.create()
    flushes = []
    real = os.fdatasync

    def counted(fd: int) -> None:
        flushes.append(os.readlink(f"/proc/self/fd/{fd}"))
        real(fd)

    with patch("os.fdatasync", counted), patch("croze.store.db.QUICK_FLUSH", 0.0):
        await log.append(said("first"), durable=True)
        assert len(flushes) == 1
        assert flushes[0].endswith("log.db-wal")
        await asyncio.gather(*(log.append(said(str(n)), durable=True) for n in range(20)))
        assert 2 <= len(flushes) <= 4
        await log.append(said("not durable"))
        assert len(flushes) <= 4


async def test_a_failed_flush_is_told_and_the_next_one_is_tried(store: Store) -> None:
    log = await store.create()
    with (
        patch("os.fdatasync", side_effect=OSError(28, "No space left on device")),
        pytest.raises(StoreFull, match="No space left"),
    ):
        await log.append(said("a"), durable=True)
    await log.append(said("b"), durable=True)
    assert [event.seq for event in await store.read(log.session)] == [1, 2, 3]


async def test_a_cancelled_append_is_whole_or_absent_and_the_log_goes_on(store: Store) -> None:
    log, cancelled = await store.create(), 0
    for delay in range(6):
        task = asyncio.create_task(log.append(said(f"x{delay}"), durable=True))
        for _ in range(delay):
            await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            cancelled += 1
        else:  # it was committed before the cancel came
            assert log.events[-1].body == said(f"x{delay}")
    assert cancelled >= 1
    await log.append(said("last"), durable=True)
    assert await store.read(log.session) == log.events
    assert [event.seq for event in log.events] == list(range(1, len(log.events) + 1))


async def test_order_is_by_seq_when_the_clock_goes_back(open_store: Opener) -> None:
    store = open_store(source=Steps(step=-86_400_000_000))
    log = await store.create()
    for number in range(5):
        await log.append(said(str(number)))
    times = [event.at for event in log.events]
    assert times == sorted(times, reverse=True)
    assert await store.read(log.session) == log.events
    log.close()
    (summary,) = await Conversations(store).list()
    assert summary.updated_at == summary.created_at == times[0]


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o277])
async def test_files_are_private_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        store = Store.open(tmp_path / "new" / "store", source=SystemSource())
        log = await store.create()
        await log.append(said("x"), durable=True)
        found = {
            path.relative_to(tmp_path).as_posix(): path.stat().st_mode & 0o777
            for path in tmp_path.rglob("*")
        }
        store.close()
    finally:
        os.umask(before)
    folders = {"new", "new/store", "new/store/locks"}
    assert folders < found.keys()
    assert "new/store/log.db-wal" in found
    for path, mode in found.items():
        assert (path, mode) == (path, 0o700 if path in folders else 0o600)


async def test_a_folder_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    Store.open(tmp_path, source=SystemSource()).close()
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "log.db").stat().st_mode & 0o777 == 0o600


async def test_chosen_ids_are_checked_and_never_taken_twice(store: Store) -> None:
    log = await store.create(session_id="chosen-1.a")
    with pytest.raises(ConversationExists):
        await store.create(session_id="chosen-1.a")
    log.close()
    with pytest.raises(ConversationExists):
        await store.create(session_id="chosen-1.a")
    for bad in ("../etc", "a/b", ".store", "-x", "a b", "x" * 129, "ä", "a\n"):
        with pytest.raises(UsageError):
            await store.create(session_id=bad)
    with pytest.raises(ConversationNotFound):
        await store.create(parent="nobody")


async def test_a_unique_beginning_names_a_session(store: Store) -> None:
    for name in ("abcd", "abce", "abcd-longer"):
        (await store.create(session_id=name)).close()
    assert await store.resolve("abcd-") == "abcd-longer"
    assert await store.resolve("abcd") == "abcd"
    for prefix, words in (("abc", "several"), ("x", "no session"), ("", "no session"), ("%", "no")):
        with pytest.raises(ConversationNotFound, match=words):
            await store.resolve(prefix)
    with closing(await store.open_log("abce")) as log:
        assert log.session == "abce"
    with pytest.raises(ConversationNotFound):
        await store.annotate("nobody", Annotated(name="x"))


async def test_a_closed_log_takes_nothing_more(store: Store) -> None:
    log = await store.create()
    log.close()
    with pytest.raises(StoreError, match="is closed"):
        await log.append(said("late"))
    assert len(await store.read(log.session)) == 1


async def test_blobs_are_kept_once_and_checked(store: Store) -> None:
    big = os.urandom(3_000_000)
    for data in (b"", b"small", big, big):
        assert await store.blob(await store.put_blob(data)) == data
    (count,) = store.database.connection.execute("SELECT count(*) FROM blobs").fetchone()
    assert count == 3
    digest = await store.put_blob(b"precious")
    store.database.connection.execute(
        "UPDATE blobs SET data = ? WHERE hash = ?", (b"prec1ous", bytes.fromhex(digest))
    )
    with pytest.raises(StoreError, match="is damaged"):
        await store.blob(digest)
    for missing in ("0" * 64, "no hash", ""):
        with pytest.raises(StoreError, match="no blob"):
            await store.blob(missing)


async def test_without_a_folder_a_store_works_in_memory_and_says_so(open_store: Opener) -> None:
    store = open_store(None)
    assert [notice.code for notice in store.notices] == ["store_unsaved"]
    log = await store.create(name="lost soon")
    await log.append(said("findable words"), durable=True)
    await store.annotate(log.session, Annotated(metadata={"a": 1}))
    await log.append(said("more"))
    assert await store.blob(await store.put_blob(b"x")) == b"x"
    conversations = Conversations(store)
    (hit,) = await conversations.search("findable")
    assert hit.session == log.session
    log.close()
    fork = await conversations.fork(log.session)
    await conversations.delete(log.session)
    (summary,) = await conversations.list()
    assert summary.id == fork.id
    assert (await conversations.stats()).bytes == 0


async def test_opening_again_continues_and_tells_of_nothing(open_store: Opener) -> None:
    first = open_store()
    log = await first.create(session_id="s")
    await log.append(said("one"))
    first.close()
    second = open_store()
    assert second.notices == []
    with closing(await second.open_log("s")) as again:
        assert [event.seq for event in again.events] == [1, 2]
        assert again.events == log.events
        (added,) = await again.append(Notice("info", "x", "y"))
        assert added.seq == 3
