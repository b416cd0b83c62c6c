"""execute_command in the background, and background_task."""

import asyncio
import http.client

import pytest

from croze.tools.builtin.background import BackgroundTasks
from croze.tools.builtin.shell import ExecuteCommand
from tests.sandboxes import running, until


@pytest.fixture
async def context(fake_context, tmp_path):
    fake_context.env = dict(fake_context.env) | {"TMPDIR": str(tmp_path)}
    yield fake_context
    await fake_context.background.close()


async def start(context, command):
    result = await ExecuteCommand(command=command, background=True).run(context)
    assert result.ok, result.message
    return result.data["task_id"]


async def task(context, action, task_id="", **arguments):
    return await BackgroundTasks(action=action, task_id=task_id, **arguments).run(context)


async def test_a_command_in_the_background_returns_at_once_and_is_recorded(context):
    result = await ExecuteCommand(command="echo on; sleep 7920001", background=True).run(context)
    assert (result.ok, result.message) == (True, "Started in the background as bg1.")
    (event,) = context.events
    assert (event.task_id, event.state, event.command, event.call_id) == (
        "bg1", "running", "echo on; sleep 7920001", context.call.id,
    )  # fmt: skip
    assert len(running(7920001)) <= 1


async def test_a_server_is_awaited_asked_and_ended(context):
    code = (
        "import http.server as h; s = h.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler); "
        "print('serving on port', s.server_port, flush=True); s.serve_forever()"
    )
    name = await start(context, f'exec -a server-7920002 python3 -c "{code}" 7920002')
    ready = await task(context, "monitor", name, wait=60, until=r"port \d+")
    assert "The pattern was found" in ready.message
    port = int(ready.text.split()[-1])

    def status():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/")
        return connection.getresponse().status

    assert await asyncio.to_thread(status) == 200
    seen = await task(context, "monitor", name, wait=60, until="GET / HTTP")
    assert seen.data["matched"]
    assert "serving" not in seen.text
    ended = await task(context, "kill", name)
    assert (ended.ok, ended.data["state"]) == (True, "killed")
    assert running(7920002) == []
    with pytest.raises(OSError):
        await asyncio.to_thread(status)


async def test_only_what_is_new_is_shown_and_earlier_output_by_offset(context, tmp_path):
    go = tmp_path / "go"
    name = await start(
        context, f"echo one; until [ -e {go} ]; do sleep 0.05; done; echo two; exit 4"
    )
    first = await task(context, "monitor", name, wait=60, until="one")
    assert (first.text, first.data["next_offset"]) == ("one", 4)
    assert (await task(context, "monitor", name)).text == ""
    go.touch()
    second = await task(context, "monitor", name, wait=60)
    assert (second.text, second.data["state"], second.data["exit_code"]) == ("two", "ended", 4)
    assert second.message.startswith(f"{name} ended with exit code 4 after")
    again = await task(context, "monitor", name, offset=0)
    assert again.text == "one\ntwo"
    (event,) = context.background.take_ended()
    assert event.told


async def test_long_output_is_paged_without_gaps(context):
    name = await start(context, "seq 100000")
    newest = await task(context, "monitor", name, wait=60)
    assert newest.text.endswith("99999\n100000")
    assert newest.text.startswith("[… ")
    assert "offset 0" in newest.truncated
    lines, offset = [], 0
    for _ in range(200):
        page = await task(context, "monitor", name, offset=offset)
        lines += page.text.split("\n")
        offset = page.data["next_offset"]
        if offset == page.data["bytes"]:
            break
    assert lines == [str(n) for n in range(1, 100_001)]


async def test_a_line_that_is_not_whole_waits(context):
    name = await start(context, "echo whole; printf half; sleep 7920003")
    job = context.background.jobs[name]
    await until(lambda: job.total == 10)
    assert (await task(context, "monitor", name)).text == "whole"


async def test_the_list_tells_states_and_last_lines(context):
    assert (await task(context, "list")).message == "There are no background tasks."
    first = await start(context, "echo bad; exit 2")
    second = await start(context, "echo key sk-ant-api03-" + "a1B2" * 20 + "; sleep 7920004")
    jobs = context.background.jobs
    await until(lambda: not jobs[first].running and jobs[second].total)
    listed = await task(context, "list")
    assert listed.message == "2 background tasks, 1 running."
    assert "bg1 ended with exit code 2" in listed.text
    assert "\n  bad\n" in listed.text
    assert "a1B2a1B2" not in listed.text.rsplit("\n", 1)[-1]
    assert (await task(context, "cleanup")).message == "1 ended task is forgotten."
    assert list(jobs) == [second]


@pytest.mark.parametrize("action", ["monitor", "kill"])
async def test_an_unknown_task_is_a_result(context, action):
    result = await task(context, action, "bg9")
    assert (result.ok, result.code) == (False, "unknown_task")


@pytest.mark.parametrize("pattern", ["(", "(a+)+b", "(a|aa)*b", "x" * 400, "a*b*c*d*"])
async def test_a_pattern_that_is_wrong_or_too_costly_is_refused(context, pattern):
    name = await start(context, "sleep 7920005")
    result = await task(context, "monitor", name, until=pattern)
    assert (result.ok, result.code) == (False, "invalid_arguments")


async def test_what_cant_be_started_is_a_result(context):
    context.workspace.root.rmdir()
    result = await ExecuteCommand(command="true", background=True).run(context)
    assert (result.ok, result.code) == (False, "not_started")
    assert context.events == []
