"""Background programs: owned, bounded, followed to their end, and none of them left."""

import asyncio
import os
import re

import pytest

from croze.workspace.background import (
    FILE_CAP,
    MOST_KEPT,
    MOST_RUNNING,
    Background,
    Command,
    TooManyTasks,
)
from croze.workspace.process import ProcessError, child_environment
from tests.sandboxes import running, until

ENV = child_environment(os.environ)


@pytest.fixture
async def background():
    made = Background()
    yield made
    await made.close()


async def start(background, command, folder):
    job = Command(command, folder)
    await background.start(job, ["/bin/bash", "-c", command], cwd="/", env=ENV, sandbox=None)
    return job


async def test_a_program_is_followed_to_its_end(background, tmp_path):
    ended = []
    background.on_end = lambda: ended.append(True)
    job = await start(background, "echo one; echo two; exit 3", tmp_path)
    assert (job.id, job.kind) == ("bg1", "command")
    await until(lambda: not job.running)
    (event,) = background.take_ended()
    assert (event.task_id, event.state, event.exit_code, event.size, event.last) == (
        "bg1",
        "ended",
        3,
        8,
        "two",
    )
    assert ended == [True]
    assert background.take_ended() == []
    assert job.read(4, 100) == (4, b"two\n")


async def test_stopping_ends_the_whole_tree_also_what_ignores_it(background, tmp_path):
    job = await start(
        background,
        "trap '' TERM HUP INT; setsid bash -c 'trap \"\" TERM; sleep 7910001; :' & "
        "(setsid nohup sleep 7910001 >/dev/null 2>&1 &); sleep 7910001; sleep 7910001",
        tmp_path,
    )
    await until(lambda: len(running(7910001)) == 3)
    await job.stop("killed")
    assert running(7910001) == []
    assert (job.running, job.state, job.event(job.state).exit_code) == (False, "killed", None)


async def test_closing_ends_all_and_takes_the_files_away(tmp_path):
    background = Background()
    jobs = [
        await start(background, f"echo {n}; sleep 7910002", tmp_path / "croze-x") for n in range(3)
    ]
    await until(lambda: len(running(7910002)) == 3 and all(job.total for job in jobs))
    assert len(list((tmp_path / "croze-x").iterdir())) == 3
    await background.close()
    assert running(7910002) == []
    assert [event.state for event in background.take_ended()] == ["closed"] * 3
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TooManyTasks):
        await start(background, "true", tmp_path)


async def test_the_end_of_the_loop_ends_what_it_was_running(tmp_path):
    async def leave():
        await start(Background(), "sleep 7910003", tmp_path)
        await until(lambda: len(running(7910003)) == 1)

    await asyncio.get_running_loop().run_in_executor(None, lambda: asyncio.run(leave()))
    assert running(7910003) == []


async def test_a_flood_is_ended_and_takes_little_room(background, tmp_path, monkeypatch):
    monkeypatch.setattr("croze.workspace.background.MOST_OUTPUT", 100 << 20)
    job = await start(background, "yes 7910004", tmp_path)
    await until(lambda: not job.running, 120)
    assert job.total > 100 << 20
    assert job.path.stat().st_size == FILE_CAP
    assert job.path.stat().st_mode & 0o777 == 0o600
    assert running(7910004) == []
    at, data = job.read(FILE_CAP - 4, 100)
    assert (at, len(data)) == (FILE_CAP - 4, 4)
    at, data = job.read(FILE_CAP, 1 << 20)
    assert at + len(data) == job.total
    assert len(data) <= 128 << 10
    assert re.fullmatch(rb"[\n7910004]+", data)


async def test_without_a_file_the_newest_output_is_kept(background, tmp_path):
    job = await start(background, "seq 100000", tmp_path / "no" / "where")
    await until(lambda: not job.running)
    assert job.path is None
    at, data = job.read(0, 1 << 20)
    assert at > 0
    assert data.endswith(b"99999\n100000\n")


async def test_what_cant_be_started_leaves_nothing(background, tmp_path):
    job = Command("none", tmp_path)
    with pytest.raises(Exception, match="could not be started") as caught:
        await background.start(job, ["/no/such/program"], cwd="/", env=ENV, sandbox=None)
    assert caught.value.code == ProcessError.code
    assert (background.jobs, background.take_ended(), list(tmp_path.iterdir())) == ({}, [], [])


async def test_no_more_than_so_many_run_and_so_many_ended_ones_are_kept(background, tmp_path):
    for _ in range(MOST_RUNNING):
        await start(background, "sleep 7910005", tmp_path)
    with pytest.raises(TooManyTasks, match=str(MOST_RUNNING)):
        await start(background, "true", tmp_path)
    await asyncio.gather(*(job.stop("killed") for job in background.running))
    for _ in range(MOST_KEPT):
        job = await start(background, "true", tmp_path)
        await until(lambda job=job: not job.running)
    await start(background, "true", tmp_path)
    assert len([job for job in background.jobs.values() if not job.running]) <= MOST_KEPT + 1
    assert len(list(tmp_path.iterdir())) == len(background.jobs)


def test_an_id_that_was_used_is_not_given_again():
    background = Background()
    background.know("bg7")
    background.know("term3")
    background.know("odd")
    assert background.number == 7
