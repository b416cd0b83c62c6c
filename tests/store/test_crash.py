"""What is left when the writing process is killed."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from croze.store.conversations import Conversations
from croze.store.failpoint import ENV_NAME
from croze.types.event import UserSaid
from croze.types.parts import Text

from .conftest import Opener

WRITER = Path(__file__).with_name("writer.py")
SOURCE = Path(__file__).parents[2] / "src"


def start(folder: Path, *arguments: str, failpoint: str = "") -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(SOURCE), ENV_NAME: failpoint}
    return subprocess.Popen(
        [sys.executable, str(WRITER), str(folder), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


async def check_prefix(open_store: Opener, session: str, acknowledged: int) -> int:
    """The log is what was written, in order, without gap or duplicate, with all acknowledged."""
    store = open_store()
    assert store.notices == []
    events = await store.read(session)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert acknowledged <= len(events) <= acknowledged + 3
    batch = 1
    while batch < len(events):
        for part in range(1 + batch % 3):
            body = events[batch + part].body
            assert isinstance(body, UserSaid)
            assert body.message_id == f"{batch}-{part}"
            assert body.parts == (Text(f"text {batch} {part} " * 40),)
        batch += 1 + batch % 3
    assert batch == len(events)
    store.close()
    return len(events)


@pytest.mark.parametrize(
    "failpoint",
    [
        "create.after:1",
        "append.before:1",
        "append.after:1",
        "append.before:7",
        "append.after:8",
        "sync.after:1",
        "sync.after:2",
    ],
)
async def test_a_kill_at_a_fail_point_leaves_every_acknowledged_event(
    folder: Path, open_store: Opener, failpoint: str
) -> None:
    with start(folder, "s", "append", "40", failpoint=failpoint) as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    numbers = [int(line) for line in said.split() if line.isdigit()]
    await check_prefix(open_store, "s", max(numbers, default=1))


async def test_kills_at_any_moment_lose_nothing_over_many_resumes(
    folder: Path, open_store: Opener
) -> None:
    chance = random.Random(11)
    reached = 1
    for _ in range(20):
        with start(folder, "s", "append", "100000") as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert first == f"begin {reached}\n"
            said = [process.stdout.readline() for _ in range(chance.randint(1, 60))]
            process.kill()
            rest = process.stdout.read()
            process.wait(timeout=60)
        numbers = [
            int(line) for line in (*said, *rest.splitlines(keepends=True)) if line.endswith("\n")
        ]
        reached = await check_prefix(open_store, "s", max(numbers))


async def test_a_killed_owner_gives_the_lease_back(folder: Path, open_store: Opener) -> None:
    with start(folder, "s", "hold", "0") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begin 1\n"
        process.kill()
        process.wait(timeout=60)
    log = await open_store().open_log("s")
    await log.append(UserSaid(message_id="m", parts=(Text("after"),)))
    assert len(log.events) == 2


async def test_a_killed_session_is_listed_and_found_as_it_was_left(
    folder: Path, open_store: Opener
) -> None:
    with start(folder, "s", "append", "40", failpoint="append.after:12") as process:
        process.communicate(timeout=60)
    store = open_store()
    conversations = Conversations(store)
    (summary,) = await conversations.list()
    events = await store.read("s")
    assert summary.message_count == len(events) - 1
    assert summary.updated_at == events[-1].at
    hits = await conversations.search("text", limit=100)
    assert len(hits) == len(events) - 1
