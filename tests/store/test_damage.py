"""Damaged, half-written, full and unwritable stores: a clear error or work that goes on."""

import asyncio
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from croze.store import rows
from croze.store.conversations import Conversations
from croze.store.db import StoreSettings
from croze.store.schema import PAGE_SIZE
from croze.store.store import Store
from croze.types.errors import StoreError
from croze.types.event import Unknown, UserSaid
from croze.types.ids import SystemSource
from croze.types.parts import Text

from .conftest import Opener
from .test_crash import SOURCE

QUIET = StoreSettings(backup_enabled=False, lock_timeout=2.0)


def said(text: str) -> UserSaid:
    return UserSaid(message_id=text[:8], parts=(Text(text),))


async def build(folder: Path, *, sessions: int = 2, messages: int = 12) -> None:
    store = Store.open(folder, source=SystemSource(), settings=QUIET)
    for number in range(sessions):
        with closing(await store.create(session_id=f"s{number}")) as log:
            for count in range(messages):
                await log.append(said(f"{count:08} message of session {number} " * 9))
    await store.put_blob(b"blob" * 1_000)
    await Conversations(store).search("message")
    store.close()


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample") / "store"
    asyncio.run(build(folder))
    return folder


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder in memory, where a copy and an open cost least."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


async def use(folder: Path) -> list[str]:
    """Do everything a user might with a store; gives the codes of what it told. Anything but a
    `StoreError` fails the test."""
    told = []
    try:
        store = Store.open(folder, source=SystemSource(), settings=QUIET)
    except StoreError as error:
        return [error.code]
    try:
        told += [notice.code for notice in store.notices]
        conversations = Conversations(store)
        for step in ("list", "search", "read", "append", "create", "stats"):
            try:
                await _step(store, conversations, step)
            except StoreError as error:
                told.append(error.code)
    finally:
        try:
            store.close()
        except StoreError as error:
            told.append(error.code)
            store.database.close()
    return told


async def _step(store: Store, conversations: Conversations, step: str) -> None:
    match step:
        case "list":
            for summary in await conversations.list():
                await conversations.get(summary.id)
        case "search":
            await conversations.search("message session")
        case "read":
            events = await store.read("s1")
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
        case "append":
            with closing(await store.open_log("s0")) as log:
                await log.append(said("one more"), durable=True)
        case "create":
            with closing(await store.create()) as log:
                (event,) = await log.append(said("new"), durable=True)
                assert event in await store.read(log.session)
        case "stats":
            await conversations.stats()


def copy(sample: Path, target: Path, *, unclean: bool) -> Path:
    shutil.copytree(sample, target)
    if unclean:
        (target / "locks" / ".store").write_bytes(b"open")
    return target / "log.db"


@pytest.mark.parametrize("unclean", [True, False])
async def test_a_store_cut_anywhere_opens_or_says_what_is_wrong(
    sample: Path, scratch: Path, unclean: bool
) -> None:
    size = (sample / "log.db").stat().st_size
    step = 97 * (1 + size // 97 // 60)
    for number, length in enumerate(range(0, size, step)):
        path = copy(sample, scratch / str(number), unclean=unclean)
        os.truncate(path, length)
        told = await use(path.parent)
        if unclean and 0 < length < size - PAGE_SIZE:  # a cut last page may cost only a record
            assert told[:1] == ["store_set_aside"], (length, told)
            (aside,) = path.parent.glob("log-damaged-*.db")
            assert aside.read_bytes() == (sample / "log.db").read_bytes()[:length]
        shutil.rmtree(path.parent)


@pytest.mark.parametrize("unclean", [True, False])
async def test_a_store_with_flipped_bytes_opens_or_says_what_is_wrong(
    sample: Path, scratch: Path, unclean: bool
) -> None:
    chance = random.Random(5)
    whole = (sample / "log.db").read_bytes()
    for number in range(60):
        path = copy(sample, scratch / str(number), unclean=unclean)
        data = bytearray(whole)
        # the first page, with header and schema, is where it hurts most
        top = 1_024 if number % 3 == 0 else len(data)
        for _ in range(chance.choice((1, 3, 30))):
            data[chance.randrange(top)] = chance.randrange(256)
        path.write_bytes(data)
        told = await use(path.parent)
        if told[:1] == ["store_set_aside"]:
            (aside,) = path.parent.glob("log-damaged-*.db")
            assert aside.read_bytes() == data
        shutil.rmtree(path.parent)


async def test_a_block_of_zeros_costs_the_events_in_it_and_no_others(
    sample: Path, scratch: Path
) -> None:
    found = 0
    for page in range(4, (sample / "log.db").stat().st_size // 1_024, 5):
        path = copy(sample, scratch / str(page), unclean=False)
        with path.open("r+b") as file:
            file.seek(page * 1_024)
            file.write(bytes(1_024))
        store = Store.open(path.parent, source=SystemSource(), settings=QUIET)
        for session in ("s0", "s1"):
            try:
                events = await store.read(session)
            except StoreError:
                continue
            damaged = [e.seq for e in events if isinstance(e.body, Unknown)]
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
            if damaged:
                found += 1
                assert len(damaged) < len(events)
                assert store.notices[-1].code == "events_damaged"
                assert store.notices[-1].params["seqs"] == damaged
            for event in events[1:]:
                if isinstance(event.body, UserSaid):
                    assert event.body.message_id == f"{event.seq - 2:08}"
        store.database.close()
        shutil.rmtree(path.parent)
    assert found


async def test_a_write_ahead_log_cut_anywhere_leaves_a_prefix(scratch: Path) -> None:
    store = Store.open(scratch / "a", source=SystemSource(), settings=QUIET)
    log = await store.create(session_id="s")
    for count in range(20):
        await log.append(said(f"{count:08} text"))
    wal = (scratch / "a" / "log.db-wal").read_bytes()
    database = (scratch / "a" / "log.db").read_bytes()
    lengths = []
    for length in [*range(len(wal) - 1, len(wal) // 2, -997), len(wal)]:
        folder = scratch / "b"
        folder.mkdir()
        (folder / "log.db").write_bytes(database)
        (folder / "log.db-wal").write_bytes(wal[:length])
        other = Store.open(folder, source=SystemSource(), settings=QUIET)
        try:
            events = await other.read("s")
        except StoreError:
            events = []
        assert events == log.events[: len(events)]
        lengths.append(len(events))
        other.close()
        shutil.rmtree(folder)
    assert lengths[-1] == 21
    assert sorted(set(lengths))[-2] > 5
    store.close()


async def test_a_damaged_file_is_set_aside_and_the_newest_backup_named(
    folder: Path, open_store: Opener
) -> None:
    await build(folder)
    (folder / "backups").mkdir()
    for name, at in (("log-old.db", 1), ("log-new.db", 2)):
        (folder / "backups" / name).write_bytes(b"x")
        os.utime(folder / "backups" / name, (at, at))
    (folder / "log.db").write_bytes(b"this is no database at all" * 100)
    (folder / "log.db-wal").write_bytes(b"nor is this")
    store = open_store()
    (notice,) = store.notices
    assert notice.level == "error"
    assert "croze session restore log-new.db" in notice.text
    aside = Path(notice.params["path"])
    assert aside.read_bytes() == b"this is no database at all" * 100
    assert Path(f"{aside}-wal").read_bytes() == b"nor is this"
    assert await Conversations(store).list() == []
    await (await store.create()).append(said("the program works on"))


async def test_a_lost_database_file_does_not_take_its_write_ahead_log_with_it(
    folder: Path, open_store: Opener
) -> None:
    folder.mkdir()
    (folder / "log.db-wal").write_bytes(b"the only copy")
    (notice,) = open_store().notices
    assert Path(notice.params["path"] + "-wal").read_bytes() == b"the only copy"


async def test_a_database_of_another_program_is_not_written_to(
    folder: Path, open_store: Opener
) -> None:
    folder.mkdir()
    with closing(sqlite3.connect(folder / "log.db")) as other:
        other.execute("CREATE TABLE theirs(x)")
        other.commit()
    before = (folder / "log.db").read_bytes()
    (notice,) = open_store().notices
    assert Path(notice.params["path"]).read_bytes() == before


async def test_columns_of_wrong_types_become_unknown_events(
    folder: Path, open_store: Opener
) -> None:
    store = open_store()
    log = await store.create(session_id="s")
    await log.append(*[said(str(number)) for number in range(6)])
    change = store.database.connection.execute
    base = rows.base_of(1)
    change("UPDATE events SET body = x'00ff' WHERE id = ?", (base + 2,))
    change("UPDATE events SET body = CAST(x'ff00fe' AS TEXT) WHERE id = ?", (base + 3,))
    change("UPDATE events SET v = 'x', at = 'y' WHERE id = ?", (base + 4,))
    change("UPDATE events SET type = 'Nonsense' WHERE id = ?", (base + 5,))
    change("DELETE FROM events WHERE id = ?", (base + 6,))
    log.close()
    events = await store.read("s")
    assert [isinstance(e.body, Unknown) for e in events] == [False, *[True] * 5, False]
    assert store.notices[-1].params["seqs"] == [2, 4, 6]
    assert (await Conversations(store).get("s")).message_count == 1


FILL = """
import asyncio, resource, sys
from pathlib import Path
from croze.store.db import StoreSettings
from croze.store.store import Store
from croze.types.errors import StoreFull
from croze.types.event import UserSaid
from croze.types.ids import SystemSource
from croze.types.parts import Text

async def main():
    store = Store.open(Path(sys.argv[1]), source=SystemSource(),
                       settings=StoreSettings(backup_enabled=False))
    log = await store.create(session_id="s")
    if len(sys.argv) > 2:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    try:
        for number in range(100_000):
            await log.append(UserSaid(str(number), (Text("x" * 1_000),)), durable=number % 50 == 0)
    except StoreFull as error:
        print(len(log.events), error.hint[:10], sys.argv[1] in str(error))
    try:
        await log.append(UserSaid("again", (Text("x" * 1_000),)))
    except StoreFull:
        print("still full")
    store.close()
asyncio.run(main())
"""


def fill(*command: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=60, check=False
    )


async def check_filled(folder: Path, said: str) -> None:
    count, hint, named = said.splitlines()[0].split(" ", 1)[0], "Free space", "True"
    assert said == f"{count} {hint} {named}\nstill full\n"
    store = Store.open(folder, source=SystemSource(), settings=QUIET)
    assert store.notices == []
    with closing(await store.open_log("s")) as log:
        assert [event.seq for event in log.events] == list(range(1, len(log.events) + 1))
        assert len(log.events) == int(count) > 20
        await log.append(UserSaid("space again", (Text("y"),)), durable=True)
    store.close()


async def test_a_full_disk_stops_with_a_clear_error_and_keeps_what_was_saved(
    folder: Path,
) -> None:
    result = fill(sys.executable, "-c", FILL, str(folder), "limit")
    assert result.returncode == 0, result.stderr
    await check_filled(folder, result.stdout)


async def test_a_full_file_system_stops_with_a_clear_error_and_keeps_what_was_saved(
    tmp_path: Path,
) -> None:
    """In a mount of its own, which goes away with the process: so its content is copied out."""
    mount = tmp_path / "mount"
    mount.mkdir()
    script = (
        'mount -t tmpfs -o size=400k none "$1" && "$2" -c "$3" "$1/store"; code=$?;'
        ' cp -a "$1/store" "$4"; exit $code'
    )
    probe = fill("unshare", "-rm", "mount", "-t", "tmpfs", "none", str(mount))
    if probe.returncode:
        pytest.skip(f"no mounts here: {probe.stderr.strip()}")
    result = fill(
        "unshare",
        "-rm",
        "sh",
        "-c",
        script,
        "sh",
        str(mount),
        sys.executable,
        FILL,
        str(tmp_path / "copy"),
    )
    assert result.returncode == 0, result.stderr
    await check_filled(tmp_path / "copy", result.stdout)


@pytest.mark.parametrize("existing", [True, False])
async def test_a_read_only_folder_is_named_with_the_way_out(tmp_path: Path, existing: bool) -> None:
    script = (
        "import sys; from pathlib import Path; from croze.store.store import Store\n"
        "from croze.types.errors import StoreFull; from croze.types.ids import SystemSource\n"
        "try: Store.open(Path(sys.argv[1]), source=SystemSource())\n"
        "except StoreFull as e: print(sys.argv[1] in str(e), 'STORAGE_PATH' in e.hint)\n"
    )
    folder = tmp_path / "place" / "store"
    folder.parent.mkdir()
    if existing:
        await build(folder)
    mount = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
    command = ["unshare", "-rm", "sh", "-c", mount, "sh", str(folder.parent)]
    probe = fill(*command, "true")
    if probe.returncode:
        pytest.skip(f"no mounts here: {probe.stderr.strip()}")
    result = fill(*command, sys.executable, "-c", script, str(folder))
    assert (result.stdout, result.stderr) == ("True True\n", "")


async def test_a_folder_under_a_file_is_refused_clearly(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="can't write in"):
        Store.open(tmp_path / "file" / "store", source=SystemSource())
