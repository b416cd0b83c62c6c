"""A process killed while a sub-agent's work comes back: nothing half, nothing forgotten, all of it told."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from croze.agent.merge import account_for, keep_leftovers, merge_back, open_isolated
from croze.types.event import ChildOpened, FactAdded, FilesChanged, Merged, Notice
from tests.agent.conftest import Desk, bodies
from tests.agent.test_merge import root

__all__ = ["root"]

SRC = Path(__file__).parents[2] / "src"

PROGRAM = """\
import asyncio, os, sys
from pathlib import Path
from croze.agent.merge import merge_back, open_isolated
from croze.app.app import App
from croze.app.options import RunOptions
from croze.types.event import ChildOpened, UserSaid

async def main():
    root = Path(sys.argv[1])
    app = App.open(cwd=root, overrides={"store.backup_enabled": False}, env=dict(os.environ))
    session = await app.session(RunOptions(model="openai:gpt-4.1", sandbox="off", headless=True))
    live = session._live
    print(session.id, flush=True)
    await live.append(
        UserSaid(message_id="m1", parts=()),
        ChildOpened(child="kid", agent="general", task="t", call_id="c", isolation="worktree"),
        durable=True,
    )
    tree = await open_isolated(live, "kid", root.parent / "worktrees")
    for name in ("a.txt", "b.txt", "new.txt"):
        (tree.root / name).write_text("kid\\n")
    await merge_back(live, "kid", tree, call_id="c")

asyncio.run(main())
"""


def killed_at(desk: Desk, root: Path, point: str) -> str:
    env = {
        **os.environ, **desk.env, "PYTHONPATH": str(SRC), "OPENAI_API_KEY": "sk-test-key",
        "OPENAI_BASE_URL": desk.server.url, "CROZE_FAILPOINT": point,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(root)], env=env, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == -9, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("point", "here"),
    [
        ("worktree.made:1", None),
        ("merge.file:1", ["a.txt"]),
        ("files.changed:2", ["a.txt", "b.txt"]),
        ("merge.file:3", ["a.txt", "b.txt", "new.txt"]),
    ],
)
async def test_what_had_come_back_is_recorded_and_the_rest_is_told_as_interrupted(
    desk: Desk, root: Path, point: str, here: list[str] | None
) -> None:
    session = killed_at(desk, root, point)
    worktrees = root.parent / "worktrees"
    assert os.listdir(worktrees) == ["kid"]
    async with desk.app() as app:
        live = (await app.session(desk.options(resume=session)))._live
        await account_for(live, worktrees)
        await keep_leftovers(live, worktrees)
        await account_for(live, worktrees)
        events = live.log.events
        if here is None:
            assert bodies(events, Merged) == []
        else:
            (merged,) = bodies(events, Merged)
            assert list(merged.applied) == here
            missing = [name for name in ("a.txt", "b.txt", "new.txt") if name not in here]
            assert [each.path for each in merged.conflicts] == missing
            assert {each.reason for each in merged.conflicts} <= {"interrupted"}
            assert b"+kid" in await live.blobs.blob(merged.patch)
            assert (root / "a.txt").read_text() == "kid\n"
            recorded = {
                change.path for body in bodies(events, FilesChanged) for change in body.changes
            }
            assert recorded == set(here)
            facts = [body for body in bodies(events, FactAdded) if body.key == "merge:kid"]
            assert len(facts) == 1
            for name in missing:
                assert name in facts[0].text.partition("Not in your workspace")[2]
        assert [each for each in os.listdir(worktrees) if each != "kept"] == []
        await live.model.aclose()
        live.log.close()


async def test_a_merge_that_was_recorded_is_not_told_again(desk: Desk, root: Path) -> None:
    session = killed_at(desk, root, "merge.done:1")
    worktrees = root.parent / "worktrees"
    async with desk.app() as app:
        live = (await app.session(desk.options(resume=session)))._live
        await account_for(live, worktrees)
        await keep_leftovers(live, worktrees)
        (merged,) = bodies(live.log.events, Merged)
        assert merged.applied == ("a.txt", "b.txt", "new.txt")
        assert [b.code for b in bodies(live.log.events, Notice) if b.code == "work_kept"] == []
        assert os.listdir(worktrees) == []
        await live.model.aclose()
        live.log.close()


async def test_another_session_keeps_the_work_and_the_caller_hears_of_it_later(
    desk: Desk, root: Path
) -> None:
    session = killed_at(desk, root, "merge.file:1")
    worktrees = root.parent / "worktrees"
    async with desk.app() as app:
        other = (await app.session(desk.options()))._live
        await keep_leftovers(other, worktrees)
        (notice,) = [b for b in bodies(other.log.events, Notice) if b.code == "work_kept"]
        assert Path(notice.params["patch"]).read_bytes().count(b"+kid") == 3
        assert os.listdir(worktrees) == ["kept"]
        live = (await app.session(desk.options(resume=session)))._live
        await account_for(live, worktrees)
        (merged,) = bodies(live.log.events, Merged)
        assert [each.path for each in merged.conflicts] == ["a.txt", "b.txt", "new.txt"]
        for one in (other, live):
            await one.model.aclose()
            one.log.close()


async def test_a_sub_agent_that_was_taken_up_again_does_not_lose_its_second_work(
    desk: Desk, root: Path
) -> None:
    worktrees = root.parent / "worktrees"
    opened = ChildOpened(child="kid", agent="general", task="t", isolation="worktree")
    async with desk.app() as app:
        live = (await app.session(desk.options()))._live
        for text in ("first\n", "second\n"):
            await live.append(opened)
            tree = await open_isolated(live, "kid", worktrees)
            (tree.root / "a.txt").write_text(text)
            if text == "first\n":
                await merge_back(live, "kid", tree)
        await tree.close(keep=True)
        await account_for(live, worktrees)
        first, second = bodies(live.log.events, Merged)
        assert first.applied == ("a.txt",)
        assert [each.path for each in second.conflicts] == ["a.txt"]
        assert b"+second" in await live.blobs.blob(second.patch)
        await live.model.aclose()
        live.log.close()
