"""What a killed process leaves of its work trees: removed where nothing was done, else kept as a patch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from croze.workspace.isolate import kept_patch, open_worktree, recover
from tests.workspace.test_git import Repository

SRC = Path(__file__).parents[2] / "src"

WORKER = """\
import asyncio, os, sys
from pathlib import Path
from croze.workspace.isolate import open_worktree

async def main():
    tree = await open_worktree(Path(sys.argv[1]), Path(sys.argv[2]), dict(os.environ), session="s")
    for change in sys.argv[4:]:
        (tree.root / change).write_text("work\\n")
    print("ready", flush=True)
    if sys.argv[3] == "close":
        await tree.close()
    else:
        sys.stdin.read()

asyncio.run(main())
"""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repository")
    made.commit(**{"a.txt": "a\n", "b.txt": "b\n"})
    return made


def worker(repository: Repository, *args: str, failpoint: str = "") -> "subprocess.Popen[bytes]":
    folder = repository.root.parent / "worktrees" / "child"
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    if failpoint:
        env["CROZE_FAILPOINT"] = failpoint
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(repository.root), str(folder), *args],
        env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


def left(repository: Repository) -> list[str]:
    return sorted(os.listdir(repository.root.parent / "worktrees"))


@pytest.mark.parametrize("point", ["worktree.begun:1", "worktree.made:1"])
async def test_a_kill_while_it_is_made_leaves_nothing_behind(
    repository: Repository, point: str
) -> None:
    before = repository.run("status", "--short"), sorted(os.listdir(repository.root / ".git"))
    killed = worker(repository, "close", failpoint=point)
    assert killed.communicate(timeout=30)[0] == b""
    assert killed.returncode == -9
    assert left(repository) == ["child"]
    assert await recover(repository.root.parent / "worktrees", dict(os.environ)) == []
    assert left(repository) == []
    after = repository.run("status", "--short"), sorted(os.listdir(repository.root / ".git"))
    assert after == before


async def test_work_that_has_not_come_back_is_kept_before_the_tree_goes(
    repository: Repository,
) -> None:
    busy = worker(repository, "wait", "a.txt", "new.txt")
    assert busy.stdout is not None
    assert busy.stdout.readline() == b"ready\n"
    worktrees = repository.root.parent / "worktrees"
    assert await recover(worktrees, dict(os.environ)) == []
    assert left(repository) == ["child"]
    busy.kill()
    busy.communicate(timeout=30)
    (found,) = await recover(worktrees, dict(os.environ))
    assert (found.session, found.files) == ("s", 2)
    assert found.patch == kept_patch(worktrees, "child")
    assert left(repository) == ["kept"]
    assert found.patch.stat().st_mode & 0o777 == 0o600
    repository.run("apply", str(found.patch))
    assert (repository.root / "new.txt").read_text() == "work\n"
    assert (repository.root / "a.txt").read_text() == "work\n"
    assert await recover(worktrees, dict(os.environ)) == []


async def test_a_dead_agents_tree_without_changes_is_just_removed(repository: Repository) -> None:
    busy = worker(repository, "wait")
    assert busy.stdout is not None
    assert busy.stdout.readline() == b"ready\n"
    busy.kill()
    busy.communicate(timeout=30)
    assert await recover(repository.root.parent / "worktrees", dict(os.environ)) == []
    assert left(repository) == []


async def test_a_tree_whose_work_is_wanted_still_becomes_a_leftover(
    repository: Repository,
) -> None:
    worktrees = repository.root.parent / "worktrees"
    tree = await open_worktree(repository.root, worktrees / "child", dict(os.environ))
    (tree.root / "a.txt").write_text("work\n")
    assert await recover(worktrees, dict(os.environ)) == []
    await tree.close(keep=True)
    (found,) = await recover(worktrees, dict(os.environ))
    assert b"+work" in found.patch.read_bytes()


async def test_what_can_not_be_understood_is_left_alone(repository: Repository) -> None:
    worktrees = repository.root.parent / "worktrees"
    (worktrees / "foreign").mkdir(parents=True)
    (worktrees / "foreign" / "file").write_text("x")
    tree = await open_worktree(repository.root, worktrees / "child", dict(os.environ))
    (tree.root / "a.txt").write_text("work\n")
    await tree.close(keep=True)
    (tree.folder / "base").write_bytes(b"\xc1")
    assert await recover(worktrees, dict(os.environ)) == []
    assert left(repository) == ["child", "foreign"]


async def test_there_need_be_no_folder(tmp_path: Path) -> None:
    assert await recover(tmp_path / "none", {}) == []
