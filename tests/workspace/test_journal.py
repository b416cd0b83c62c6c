"""The journal: contents by their hash, what is announced before a change, and the clean-up."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.types.errors import StoreError
from croze.workspace.files import sha256
from croze.workspace.journal import KEPT, Intent, Journal
from croze.workspace.workspace import Workspace


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "data" / "journal")


@given(data=st.binary(max_size=4096))
def test_what_is_put_comes_back_by_its_hash(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    journal = Journal(tmp_path_factory.mktemp("journal"))
    digest = journal.put(data)
    assert digest == sha256(data)
    assert journal.get(digest) == data


def test_the_same_bytes_are_kept_once(journal: Journal) -> None:
    assert journal.put(b"x" * 5000) == journal.put(b"x" * 5000)
    objects = [path for path in journal.folder.rglob("*") if path.is_file()]
    assert len(objects) == 1
    assert objects[0].stat().st_size < 200


def test_what_was_never_put_is_none(journal: Journal) -> None:
    assert journal.get("0" * 64) is None
    assert journal.get("../../etc/passwd") is None


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_a_damaged_object_is_as_good_as_none(journal: Journal, damage: bytes | None) -> None:
    digest = journal.put(b"content")
    path = journal.folder / digest[:2] / digest
    path.write_bytes(path.read_bytes()[:-3] if damage is None else damage)
    assert journal.get(digest) is None


def test_nobody_else_can_read_it_whatever_the_umask(journal: Journal) -> None:
    old = os.umask(0)
    try:
        journal.put(b"secret")
        journal.intents("s").add(Intent("c", "p", None, None))
        journal.settle()
    finally:
        os.umask(old)
    for path in [journal.folder, *journal.folder.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="can't write in"):
        Journal(tmp_path / "file" / "journal").put(b"x")


def test_below_the_quota_nothing_goes(journal: Journal) -> None:
    digest = journal.put(b"x")
    journal.settle()
    assert not journal.is_over_quota()
    assert journal.trim(set(), now=9e9).objects == 0
    assert journal.get(digest) == b"x"


def aged(journal: Journal, data: bytes, seconds: float) -> str:
    digest = journal.put(data)
    os.utime(journal.folder / digest[:2] / digest, (seconds, seconds))
    return digest


def test_the_clean_up_takes_what_no_session_mentions_oldest_first(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", quota=4_000)
    wanted = aged(journal, os.urandom(1000), 1)
    old, older, newer = (aged(journal, os.urandom(1000), at) for at in (20, 10, 30))
    young = aged(journal, os.urandom(1000), 1e9)
    journal.settle()
    assert journal.is_over_quota()
    trimmed = journal.trim({wanted}, now=KEPT + 1000)
    assert (trimmed.objects, trimmed.wanted) == (2, 0)
    assert [journal.get(d) is not None for d in (wanted, older, old, newer, young)] == [
        True, False, False, True, True,
    ]  # fmt: skip
    assert not journal.is_over_quota()


def test_when_that_is_not_enough_the_oldest_that_are_wanted_go_too(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", quota=2_500)
    first, second, third = (aged(journal, os.urandom(1000), at) for at in (1, 2, 3))
    trimmed = journal.trim({first, second, third}, now=KEPT + 1000)
    assert (trimmed.objects, trimmed.wanted) == (2, 2)
    assert journal.get(third) is not None


def test_using_an_object_again_makes_it_young(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", quota=1_400)
    used = aged(journal, b"a" + os.urandom(1000), 1)
    left = aged(journal, os.urandom(1000), 2)
    data = journal.get(used)
    assert data is not None
    journal.put(data)
    journal.trim({used, left}, now=KEPT)
    assert journal.get(used) is not None
    assert not journal.get(left) is not None


def test_half_written_objects_of_dead_processes_go(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", quota=1)
    digest = journal.put(b"x")
    left = journal.folder / digest[:2] / ".00.tmp"
    left.write_bytes(b"half")
    os.utime(left, (1, 1))
    journal.trim({digest}, now=KEPT)
    assert not left.exists()


def test_what_is_announced_is_read_by_the_next_process_until_it_is_settled(
    journal: Journal,
) -> None:
    intents = journal.intents("s")
    first = Intent("c1", "a.txt", None, "1" * 64, made=("d",))
    second = Intent("c1", "b.txt", "2" * 64, None, mode=0o100644)
    intents.add(first)
    intents.add(second)
    assert journal.intents("s").read() == [first, second]
    assert journal.intents("other").read() == []
    intents.settle()
    assert journal.intents("s").read() == []
    intents.add(second)
    assert journal.intents("s").read() == [second]
    intents.close()
    assert not (journal.folder / "pending" / "s").exists()


def test_a_torn_announcement_does_not_count(journal: Journal) -> None:
    intents = journal.intents("s")
    intents.add(Intent("c1", "a.txt", None, None))
    with (journal.folder / "pending" / "s").open("ab") as file:
        file.write(b'{"call_id": "c2", "pa')
    assert [intent.call_id for intent in journal.intents("s").read()] == ["c1"]


CHILD = """
import sys
from pathlib import Path
from croze.workspace.journal import Journal
from croze.workspace.track import Tracker
from croze.workspace.workspace import Workspace

work = Workspace("w", Path(sys.argv[1]), "main")
Tracker(work.files, work.root, Journal(Path(sys.argv[2])), "s", None)
work.files.write("a.txt", b"new")
work.files.write("d/e/b.txt", b"made")
work.files.remove("gone.txt")
"""


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize(
    "point",
    ["journal.object", "journal.intent", "files.announced", "files.before", "files.changed"],
)
def test_a_kill_leaves_old_or_new_bytes_and_the_old_ones_in_the_journal(
    tmp_path: Path, point: str, number: int
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_bytes(b"old")
    (root / "gone.txt").write_bytes(b"last")
    env = {**os.environ, "CROZE_FAILPOINT": f"{point}:{number}"}
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(root), str(tmp_path / "journal")],
        env=env, timeout=60, check=False,
    )  # fmt: skip
    journal = Journal(tmp_path / "journal")
    reached = point not in ("journal.object", "files.before") or number < 3
    assert child.returncode == (-9 if reached else 0)
    now = (root / "a.txt").read_bytes()
    assert now in (b"old", b"new")
    announced = {intent.path: intent for intent in journal.intents("s").read()}
    if now == b"new":
        assert announced["a.txt"].before == sha256(b"old")
        assert journal.get(sha256(b"old")) == b"old"
    if (root / "d" / "e" / "b.txt").exists():
        assert announced["d/e/b.txt"].made == ("d", "d/e")
    if not (root / "gone.txt").exists():
        assert announced["gone.txt"].before == sha256(b"last")
        assert journal.get(sha256(b"last")) == b"last"


def test_where_the_old_content_cannot_be_kept_nothing_is_written(tmp_path: Path) -> None:
    from croze.workspace.track import Tracker

    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("old")
    (tmp_path / "blocked").write_text("")
    work = Workspace("w", tmp_path / "project", "main")
    Tracker(work.files, work.root, Journal(tmp_path / "blocked" / "journal"), "s", None)
    with pytest.raises(StoreError):
        work.files.write("a.txt", b"new")
    assert (tmp_path / "project" / "a.txt").read_text() == "old"
