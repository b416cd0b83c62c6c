"""Backups: made in a child process when due, rotated, good ones brought back."""

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from croze.store import backup
from croze.store.backup import BackupChild, is_due, list_backups, make_backup
from croze.store.compose import Draft
from croze.store.conversations import Conversations
from croze.store.restore import restore
from croze.store.store import Store
from croze.types.errors import LockTimeout, StoreError
from croze.types.event import UserSaid
from croze.types.parts import Text

from .conftest import START, Opener, Steps

HOUR = 3_600_000_000


def ended(child: BackupChild) -> bool:
    deadline = time.monotonic() + 60
    while not child.reap():
        if time.monotonic() > deadline:
            return False
        os.sched_yield()
    return True


async def fill(store: Store, text: str) -> None:
    await Conversations(store).create(session_id=text, messages=[Draft("user", text)])


async def names(store: Store) -> list[str]:
    return sorted(summary.id for summary in await Conversations(store).list())


async def test_a_backup_is_whole_private_and_made_while_a_session_runs(
    store: Store, folder: Path
) -> None:
    await fill(store, "first")
    log = await store.create(session_id="running")
    await log.append(UserSaid("u", (Text("in the write-ahead log"),)))
    made = make_backup(folder, max_backups=3, stamp="20270101T000000")
    assert made is not None
    assert made.stat().st_mode & 0o777 == 0o600
    assert made.parent.stat().st_mode & 0o777 == 0o700
    await log.append(UserSaid("v", (Text("after"),)))
    with closing(sqlite3.connect(made)) as copy:
        assert copy.execute("SELECT count(*) FROM events").fetchone() == (4,)
        assert copy.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert [path.name for path in made.parent.iterdir()] == [made.name]


async def test_only_so_many_backups_are_kept_the_newest_first(store: Store, folder: Path) -> None:
    for number in range(5):
        made = make_backup(folder, max_backups=3, stamp=f"2027010{number}T000000")
        assert made is not None
        os.utime(made, (1_000 + number, 1_000 + number))
    make_backup(folder, max_backups=3, stamp="20270104T000000")
    assert [b.name for b in list_backups(folder)] == [
        "log-20270104T000000-1.db",
        "log-20270104T000000.db",
        "log-20270103T000000.db",
    ]


async def test_one_backup_at_a_time(store: Store, folder: Path) -> None:
    other = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import fcntl,sys; f=open(sys.argv[1],'w'); fcntl.flock(f,2); print(1,flush=True);"
            "sys.stdin.read()",
            str(folder / "locks" / ".backup"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with other:
        assert other.stdout is not None
        other.stdout.readline()
        assert make_backup(folder, max_backups=3, stamp="x") is None
        other.communicate(timeout=60)
    assert make_backup(folder, max_backups=3, stamp="x") is not None


async def test_a_session_starts_a_backup_in_a_child_when_the_last_is_too_old(
    open_store: Opener, folder: Path
) -> None:
    first = open_store(source=Steps(step=1), backup_enabled=True)
    await fill(first, "one")
    assert first._backup is None
    first.close()
    later = Steps(step=1)
    later.at = START + 2 * HOUR
    second = open_store(source=later, backup_enabled=True)
    (await second.open_log("one")).close()
    child = second._backup
    assert child is not None
    assert ended(child)
    (made,) = list_backups(folder)
    assert made.name == "log-20270115T100000.db"
    with closing(sqlite3.connect(folder / "backups" / made.name)) as copy:
        assert copy.execute("SELECT id FROM sessions").fetchall() == [("one",)]
    off = open_store(source=later, backup_enabled=False)
    (await off.open_log("one")).close()
    assert off._backup is None


def test_when_a_backup_is_due(tmp_path: Path) -> None:
    def due(now: int, since: int | None) -> bool:
        return is_due(tmp_path, interval=3600, now=now, since=since)

    (tmp_path / "log.db").write_bytes(b"")
    assert not due(START, None)
    assert not due(START, START - HOUR + 1)
    assert due(START, START - HOUR)
    (tmp_path / "backups").mkdir()
    made = tmp_path / "backups" / "log-x.db"
    made.write_bytes(b"")

    def at(path: Path, moment: int) -> None:
        os.utime(path, ns=(moment * 1_000, moment * 1_000))

    at(tmp_path / "log.db", START)
    at(made, START - HOUR)
    assert due(START, START - 9 * HOUR)
    at(made, START - HOUR // 2)
    assert not due(START, START - 9 * HOUR)
    at(made, START + 9 * HOUR)
    at(tmp_path / "log.db", START + 10 * HOUR)
    assert due(START, START - 9 * HOUR), "the clock was set back"
    at(tmp_path / "log.db", START - 5 * HOUR)
    at(made, START - 3 * HOUR)
    assert not due(START, START - 9 * HOUR), "nothing has changed since"


async def test_a_child_takes_no_code_from_the_current_folder(
    store: Store, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(store, "one")
    (tmp_path / "sqlite3.py").write_text(f"open({str(tmp_path / 'owned')!r}, 'w')\n")
    (tmp_path / "croze").mkdir()
    (tmp_path / "croze" / "__init__.py").write_text("raise SystemExit(9)\n")
    monkeypatch.chdir(tmp_path)
    assert ended(BackupChild.start(folder, max_backups=3, stamp="s"))
    assert [b.name for b in list_backups(folder)] == ["log-s.db"]
    assert not (tmp_path / "owned").exists()


async def test_a_backup_that_fails_leaves_no_half_file(folder: Path, store: Store) -> None:
    store.close()
    (folder / "log.db").write_bytes(b"damaged" * 1_000)
    assert backup.main([str(folder), "3", "s"]) == 1
    assert list((folder / "backups").iterdir()) == []


async def test_restoring_puts_the_newest_good_backup_in_place_and_keeps_the_rest(
    open_store: Opener, folder: Path
) -> None:
    store = open_store()
    await fill(store, "kept")
    good = make_backup(folder, max_backups=9, stamp="good")
    assert good is not None
    os.utime(good, (1_000, 1_000))
    (folder / "backups" / "log-bad.db").write_bytes(b"bad" * 1_000)
    await fill(store, "later")
    with pytest.raises(LockTimeout, match="in use"):
        restore(folder, stamp="now")
    store.close()
    (folder / "log.db-wal").write_bytes(b"torn")
    chosen, aside = restore(folder, stamp="now")
    assert chosen == "log-good.db"
    assert aside is not None
    assert aside.name == "log-replaced-now.db"
    assert Path(f"{aside}-wal").read_bytes() == b"torn"
    again = open_store()
    assert (again.notices, await names(again)) == ([], ["kept"])
    assert (folder / "log.db").stat().st_mode & 0o777 == 0o600
    (await again.open_log("kept")).close()
    assert good.exists()


async def test_a_backup_that_is_not_there_or_not_good_changes_nothing(
    open_store: Opener, folder: Path
) -> None:
    store = open_store()
    await fill(store, "one")
    store.close()
    before = (folder / "log.db").read_bytes()
    with pytest.raises(StoreError, match="there is none"):
        restore(folder, stamp="now")
    (folder / "backups").mkdir()
    (folder / "backups" / "log-bad.db").write_bytes(b"bad" * 1_000)
    for name, words in (
        ("", "log-bad.db"),
        ("log-bad.db", "log-bad.db"),
        ("../log.db", "no backup"),
    ):
        with pytest.raises(StoreError, match=words):
            restore(folder, name, stamp="now")
    assert (folder / "log.db").read_bytes() == before
