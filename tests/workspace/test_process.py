"""Programs: bounded output, a time limit that holds, and nothing left running."""

import asyncio
import os
import resource
import sys
import time
from pathlib import Path
from zlib import crc32

import pytest

from croze.workspace.process import ProcessError, child_environment, run
from tests.sandboxes import running

ENV = child_environment(os.environ)


async def bash(command, **options):
    options = {"cwd": "/", "env": ENV, "timeout": 30} | options
    return await run(["/bin/bash", "-c", command], **options)


async def until(condition):
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_output_of_both_streams_comes_in_order_with_the_exit_code():
    ended = await bash("echo a; echo b >&2; echo c; exit 3")
    assert (ended.head, ended.exit_code, ended.signal, ended.ended) == (
        "a\nb\nc\n",
        3,
        None,
        "itself",
    )
    assert (ended.total, ended.omitted, ended.spill) == (6, 0, None)


async def test_the_signal_that_killed_a_program_is_named():
    ended = await bash("kill -SEGV $$")
    assert (ended.exit_code, ended.signal) == (None, "SIGSEGV")


async def test_reading_standard_input_ends_at_once():
    ended = await bash("cat; read x || echo none")
    assert ended.head == "none\n"


async def test_bytes_that_are_no_text_are_replaced():
    ended = await bash(r"printf 'a\0\xff\xc3'")
    assert (ended.head, ended.total) == ("a���", 4)


async def test_a_hundred_megabytes_take_little_memory_and_are_spilled_up_to_a_cap(tmp_path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ended = await bash(
        "echo first; head -c 100M /dev/zero; echo; echo last", spill=tmp_path, output_limit=9_000
    )
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert ended.exit_code == 0
    assert ended.total == (100 << 20) + 12
    assert ended.head == "first\n"
    assert ended.tail == "last\n"
    assert ended.omitted == ended.total - 11
    assert grown < 50 << 10
    assert ended.spill.stat().st_size == 64 << 20
    assert ended.spill.stat().st_mode & 0o777 == 0o600
    assert ended.spill.read_bytes()[:8] == b"first\n\0\0"


async def test_output_within_the_limit_is_whole_and_not_spilled(tmp_path):
    ended = await bash("head -c 9000 /dev/zero | tr '\\0' x", spill=tmp_path, output_limit=9_000)
    assert ended.head + ended.tail == "x" * 9_000
    assert os.listdir(tmp_path) == []


async def test_the_spilled_file_holds_everything_in_order(tmp_path):
    ended = await bash("seq 100000", spill=tmp_path, output_limit=1_000)
    assert ended.spill.read_text() == "".join(f"{n}\n" for n in range(1, 100_001))
    assert ended.head.startswith("1\n2\n")
    assert ended.tail.endswith("99999\n100000\n")
    assert len(ended.head) + len(ended.tail) + ended.omitted == ended.total


async def test_endless_output_ends_at_the_time_limit():
    ended = await bash("yes 7310001", timeout=0.5)
    assert ended.ended == "timeout"
    assert running(7310001) == []


async def test_the_reader_of_the_output_can_end_the_program():
    seen = []
    ended = await bash("yes 7310002", on_output=lambda chunk: bool(seen.append(chunk)))
    assert (ended.ended, len(seen)) == ("reader", 1)
    assert running(7310002) == []


async def test_a_program_that_ignores_term_is_killed_after_the_grace():
    started = time.monotonic()
    ended = await bash("trap '' TERM; echo on; while :; do sleep 7310003; done", timeout=0.3)
    assert (ended.ended, ended.signal, ended.head) == ("timeout", "SIGKILL", "on\n")
    assert time.monotonic() - started < 0.3 + 3
    assert running(7310003) == []


@pytest.mark.parametrize(
    "command",
    [
        "sleep {} &",
        "setsid sleep {} &",
        "setsid sleep {} >/dev/null 2>&1 & disown",
        "(setsid nohup sleep {} >/dev/null 2>&1 &)",
        "(trap '' TERM; exec sleep {}) &",
        "setsid bash -c '(setsid sleep {} &) ; exec sleep {}' &",
        "bash -c 'sleep {} & kill -STOP $!'",
    ],
)
async def test_what_a_command_leaves_running_is_ended(command, request):
    mark = 7320000 + crc32(command.encode()) % 9999
    ended = await bash(command.replace("{}", str(mark)) + "\necho done")
    assert (ended.exit_code, ended.head, ended.ended) == (0, "done\n", "itself")
    assert ended.left >= 1
    assert running(mark) == []
    assert ended.seconds < 4


async def test_children_that_left_the_group_end_with_the_time_limit_too():
    ended = await bash("setsid setsid sleep 7330001 & sleep 7330002", timeout=0.3)
    assert ended.ended == "timeout"
    assert running(7330001) + running(7330002) == []


async def test_another_command_and_its_children_are_left_alone():
    other = asyncio.create_task(bash("(setsid sleep 7340001 &); sleep 0.7; echo fine"))
    await until(lambda: running(7340001))
    await bash("setsid sleep 7340002 & true")
    assert running(7340002) == []
    assert len(running(7340001)) == 1
    assert (await other).head == "fine\n"
    assert running(7340001) == []


async def test_children_of_the_host_program_are_left_alone():
    host = await asyncio.create_subprocess_exec("sleep", "7350001")
    await bash("setsid sleep 7350002 & true")
    assert host.returncode is None
    assert len(running(7350001)) == 1
    host.kill()
    assert await host.wait() == -9


async def test_cancelling_ends_the_tree_within_a_second():
    task = asyncio.create_task(
        bash("trap '' TERM; setsid sleep 7360001 & sleep 7360002; sleep 7360002")
    )
    await until(lambda: running(7360001) and running(7360002))
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 1
    assert running(7360001) + running(7360002) == []


async def test_cancelling_twice_still_ends_the_tree():
    task = asyncio.create_task(bash("trap '' TERM; echo on; sleep 7370001; sleep 7370001"))
    await until(lambda: running(7370001))
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert running(7370001) == []


async def test_cancelling_removes_a_spilled_file(tmp_path):
    task = asyncio.create_task(bash("yes", spill=tmp_path))
    await until(lambda: os.listdir(tmp_path))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert os.listdir(tmp_path) == []


def children() -> set[str]:
    """The children of this process, the dead ones too; other tests of the worker may have some."""
    return {
        child
        for task in os.listdir("/proc/self/task")
        for child in Path(f"/proc/self/task/{task}/children").read_text().split()
    }


async def test_no_descriptor_or_zombie_is_left_behind():
    await bash("true")
    before = os.listdir("/proc/self/fd")
    others = children()
    for _ in range(20):
        await bash("sleep 0 & echo x")
    assert len(os.listdir("/proc/self/fd")) == len(before)
    assert children() <= others


@pytest.mark.parametrize(
    ("argv", "cwd", "says"),
    [
        (["/no/such/program"], "/", "/no/such/program could not be started"),
        (["/bin/true"], "/no/such/folder", "folder /no/such/folder does not exist"),
        (["/bin/echo", "a\0b"], "/", "null byte"),
        (["/bin/echo", "\ud800"], "/", "can't be run"),
        (["/bin/echo", "x" * 5_000_000], "/", "too long"),
    ],
)
async def test_what_cant_be_started_is_told(argv, cwd, says):
    with pytest.raises(ProcessError) as caught:
        await run(argv, cwd=cwd, env=ENV, timeout=5)
    assert says in str(caught.value)


def test_a_program_sees_no_keys_and_no_pager():
    base = {
        "PATH": "/bin", "LC_ALL": "C", "OPENAI_API_KEY": "k", "AWS_SECRET_ACCESS_KEY": "k", "GITHUB_TOKEN": "k",
        "HTTP_PROXY": "http://proxy:3128", "HTTPS_PROXY": "http://me:secret@proxy", "PAGER": "less", "BASH_ENV": "/x",
    }  # fmt: skip
    env = child_environment(base)
    assert env["PATH"] == "/bin"
    assert env["HTTP_PROXY"] == "http://proxy:3128"
    assert (env["PAGER"], env["GIT_PAGER"], env["GIT_TERMINAL_PROMPT"]) == ("cat", "cat", "0")
    assert not {
        "OPENAI_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "HTTPS_PROXY",
        "BASH_ENV",
    } & set(env)


async def test_without_pidfd_and_lists_of_children_it_works_the_same(monkeypatch):
    from croze.workspace import descendants

    monkeypatch.delattr(os, "pidfd_open")
    monkeypatch.setattr(descendants, "_has_lists_of_children", lambda: False)
    ended = await run(
        [sys.executable, "-c", "import subprocess; subprocess.Popen(['setsid', 'sleep', '7380001'])"],
        cwd="/", env=ENV, timeout=10,
    )  # fmt: skip
    assert (ended.exit_code, ended.left) == (0, 1)
    assert running(7380001) == []


async def test_an_orphan_that_is_just_becoming_another_program_is_found(monkeypatch):
    """While a program is replaced the kernel shows no environment; whose it is can't be told yet."""
    from croze.workspace import descendants

    looks, environment = [], descendants._environment
    bare = descendants._status

    def late(pid):
        looks.append(pid)
        return b"" if len(looks) <= 5 else environment(pid)

    monkeypatch.setattr(descendants, "_environment", late)
    monkeypatch.setattr(
        descendants, "_status", lambda pid: (s := bare(pid)) and s._replace(bare=False)
    )
    ended = await bash("(setsid nohup sleep 7390001 >/dev/null 2>&1 &)\nsleep 0.3")
    assert (ended.left, len(looks) > 5) == (1, True)
    assert running(7390001) == []


async def test_a_child_of_the_host_with_no_environment_is_left_alone():
    other = await asyncio.create_subprocess_exec("/bin/sleep", "7390002", env={})
    try:
        ended = await bash("true")
        assert (ended.left, other.returncode) == (0, None)
        assert running(7390002) == [other.pid]
    finally:
        other.kill()
        await other.wait()
