"""execute_command: what it says of each way that a command can end."""

import asyncio
import os
from pathlib import Path

import pytest

from croze.tools.builtin.shell import ExecuteCommand
from croze.types.parts import ToolCall
from croze.workspace.workspace import Workspace


async def sh(context, command, **arguments):
    return await ExecuteCommand(command=command, **arguments).run(context)


async def test_a_command_runs_in_the_root_and_its_output_is_shown_live(fake_context):
    result = await sh(fake_context, "pwd; echo ü >&2")
    assert (result.ok, result.message, result.code) == (True, "Exit code 0.", None)
    assert result.text == f"{fake_context.workspace.root}\nü"
    assert "".join(fake_context.outputs) == result.text + "\n"
    assert result.data["exit_code"] == 0
    assert result.view.title == "$ pwd; echo ü >&2"


async def test_a_failure_is_a_result_with_its_exit_code(fake_context):
    result = await sh(fake_context, "echo bad; exit 7")
    assert (result.ok, result.code, result.message, result.text) == (
        False,
        "exit_status",
        "Exit code 7.",
        "bad",
    )
    silent = await sh(fake_context, "true")
    assert silent.message == "Exit code 0, no output."
    assert (await sh(fake_context, "kill -9 $$")).message == "Killed by SIGKILL."


async def test_a_command_that_takes_too_long_is_ended(fake_context):
    result = await sh(fake_context, "echo begun; sleep 7410001", timeout=1)
    assert (result.ok, result.code, result.text) == (False, "timeout", "begun")
    assert "1 s" in result.message


async def test_what_was_left_running_is_told(fake_context):
    result = await sh(fake_context, "sleep 7410002 & echo on")
    assert (result.ok, result.text) == (True, "on")
    assert "1 process that it left running was ended" in result.message


async def test_long_output_keeps_its_ends_and_names_the_whole(fake_context, tmp_path):
    fake_context.env = dict(fake_context.env) | {"TMPDIR": str(tmp_path)}
    result = await sh(fake_context, "seq 100000")
    assert result.text.startswith("1\n2\n")
    assert result.text.endswith("99999\n100000")
    assert len(result.text) < 8_500
    assert Path(result.data["output_file"]).read_text().count("\n") == 100_000
    assert result.data["output_file"] in result.text
    assert result.truncated.startswith("581,")


async def test_colours_and_progress_lines_are_left_out(fake_context):
    result = await sh(
        fake_context, r"printf '\033[31mred\033[0m\r\n10%%\r50%%\r100%%\ndone\033]0;title\007\n'"
    )
    assert result.text == "red\n100%\ndone"


async def test_commands_see_no_keys_and_no_terminal(fake_context):
    fake_context.env = dict(os.environ) | {"OPENAI_API_KEY": "sk-1"}
    result = await sh(fake_context, 'echo "[$OPENAI_API_KEY]"; test -t 0 || echo none; cat')
    assert result.text == "[]\nnone"
    assert not (await sh(fake_context, "exec 3</dev/tty")).ok


async def test_a_task_workspace_is_made_and_its_place_not_shown(fake_context, tmp_path):
    lazy = Workspace("t", tmp_path / "lazy", "agent", kind="task")
    fake_context.workspace = lazy
    result = await sh(fake_context, "pwd; seq 100000 | tail -c 20000; echo x > a.txt")
    assert result.text.startswith(".\n")
    assert str(tmp_path) not in result.text + result.message
    assert lazy.files.read("a.txt").data == b"x\n"


@pytest.mark.parametrize("command", ["echo a\0b", "echo \ud800", "echo " + "x" * 3_000_000])
async def test_what_no_system_can_run_is_a_result(fake_context, command):
    result = await sh(fake_context, command)
    assert (result.ok, result.code) == (False, "not_started")


async def test_a_removed_root_is_a_result(fake_context):
    fake_context.workspace.root.rmdir()
    result = await sh(fake_context, "true")
    assert (result.ok, "does not exist" in result.message) == (False, True)


async def test_a_flood_is_passed_on_only_in_part(fake_context, tmp_path):
    fake_context.env = dict(fake_context.env) | {"TMPDIR": str(tmp_path)}
    result = await sh(fake_context, "head -c 50M /dev/zero")
    assert result.ok
    assert sum(map(len, fake_context.outputs)) < 4 << 20


async def test_cancelling_ends_the_command(fake_context):
    task = asyncio.create_task(sh(fake_context, "echo $$; sleep 7410003"))
    async with asyncio.timeout(10):
        while not fake_context.outputs:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not Path(f"/proc/{fake_context.outputs[0].strip()}").exists()


async def test_the_preview_is_the_command_and_the_digest_its_last_lines(fake_context):
    tool = ExecuteCommand(command="seq 30; exit 1")
    assert tool.preview(fake_context).body == "seq 30; exit 1"
    digest = ExecuteCommand.digest(ToolCall("1", "execute_command"), await tool.run(fake_context))
    assert digest.split("\n") == ["Exit code 1.", "… 10 more lines", *map(str, range(11, 31))]


async def test_live_output_comes_without_escapes_like_the_result(fake_context):
    tool = ExecuteCommand(command=r"printf 'a\033[3'; sleep 0.1; printf '1mred\033[0m\n'")
    result = await tool.run(fake_context)
    assert "".join(fake_context.outputs) == "ared\n"
    assert result.text == "ared"
