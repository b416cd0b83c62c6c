"""Commands in task workspaces, in every sandbox and without: they work, make nothing they didn't write, and
never show where they are."""

import os
import sys

import pytest

from croze.tools.builtin.background import BackgroundTasks
from croze.tools.builtin.files import ReadFile
from croze.tools.builtin.pty_session import SessionInteractive, SessionStart
from croze.tools.builtin.search import FindFiles, ListFiles, SearchFiles
from croze.tools.builtin.shell import OUTPUT_LIMIT, ExecuteCommand
from croze.tools.builtin.workspace_info import GetWorkspaceInfo
from croze.workspace.sandbox import Confinement
from croze.workspace.task import task_workspace
from croze.workspace.task_files import write_file
from tests.sandboxes import need, until

PYTHON = os.path.realpath(sys.executable)
"""The interpreter itself: a sandbox hides the temporary folder, where a clone's own link to it may lie."""

LONG = 20


@pytest.fixture(params=["none", "bubblewrap", "landlock"])
async def context(fake_context, tmp_path, request):
    confinement = None
    if request.param != "none":
        confinement = Confinement(
            root=tmp_path / "project",
            env=dict(os.environ),
            cache=tmp_path / "cache",
            own=(tmp_path / "data",),
            _proof=need(request.param),
        )
    fake_context.workspace = task_workspace(
        tmp_path / "data" / "p", "agent-1", confinement=confinement
    )
    fake_context.env = {**os.environ, "TMPDIR": str(tmp_path), "PS1": "$ "}
    yield fake_context
    await fake_context.background.close()


def hidden(context, *shown):
    """Whether no place is in what was shown, live or in the end."""
    told = "".join([*context.outputs, *map(str, shown)])
    places = (str(context.workspace.root), "/run/workspace", str(context.workspace.root.parent))
    return not any(place in told for place in places)


async def sh(context, command, **arguments):
    return await ExecuteCommand(command=command, **arguments).run(context)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("pwd", "."),
        ("pwd -P; echo $PWD/x", ".\n./x"),
        (f"{PYTHON} -c 'import os; print(os.getcwd())'", "."),
        ("echo x > a.txt; realpath a.txt; readlink -f .", "./a.txt\n."),
        ("mkdir -p a/b; cd a/b; pwd", "./a/b"),
        ("pwd >&2; exit 3", "."),
        ("p=$PWD; for i in $(seq ${#p}); do printf %s \"${p:i-1:1}\"; sleep 0.005; done; printf '/x\\n'", "./x"),
        ("printf '%s%s' $PWD $PWD", ".."),
    ],
)  # fmt: skip
async def test_no_command_shows_where_it_runs(context, command, text):
    result = await sh(context, command)
    assert result.text == text
    assert "".join(context.outputs).rstrip() == text
    assert hidden(context, result)


async def test_a_traceback_names_its_files_by_the_workspace(context):
    write_file(context.workspace, "lib/fails.py", "raise ValueError(__file__)\n")
    write_file(context.workspace, "main.py", "import lib.fails\n")
    result = await sh(context, f"{PYTHON} main.py")
    assert 'File "./main.py", line 1' in result.text
    assert "ValueError: ./lib/fails.py" in result.text
    assert hidden(context, result)


async def test_what_a_command_writes_is_kept_and_what_writes_nothing_makes_no_folder(context):
    workspace = context.workspace
    assert (await sh(context, "ls")).text == ""
    assert not workspace.root.exists()
    assert (await sh(context, "cat none")).code == "exit_status"
    assert not workspace.root.exists()
    await sh(context, "mkdir sub; printf kept > sub/a")
    assert (workspace.root / "sub" / "a").read_text() == "kept"
    assert workspace.root.stat().st_mode & 0o777 == 0o700
    await sh(context, "rm -r sub")
    assert not workspace.root.exists()


async def test_two_commands_at_once_keep_the_folder_for_each_other(context):
    begun = await sh(
        context, "for i in 1 2 3 4 5; do sleep 0.2; done; echo late > late", background=True
    )
    assert (await sh(context, "true")).ok
    job = context.background.jobs[begun.data["task_id"]]
    await until(lambda: not job.running)
    assert (context.workspace.root / "late").read_text() == "late\n"


async def test_a_long_output_is_cut_behind_the_hiding_and_told_without_a_path(context):
    result = await sh(context, 'for i in $(seq 2000); do echo "$PWD/$i"; done')
    assert len(result.text) < 2 * OUTPUT_LIMIT
    assert {line.split("/")[0] for line in result.text.split("\n") if "[" not in line} == {"."}
    assert result.data["output_file"] is None
    assert result.whole.startswith("./1\n./2\n")
    assert hidden(context, result)


async def test_a_program_in_the_background_shows_no_place_either(context):
    begun = await sh(context, "pwd; echo $PWD/a; sleep 0.3; pwd", background=True)
    name = begun.data["task_id"]
    job = context.background.jobs[name]
    await until(lambda: not job.running)
    told = await BackgroundTasks(action="monitor", task_id=name).run(context)
    assert told.text.rstrip().endswith(".\n./a\n.")
    listed = await BackgroundTasks(action="list").run(context)
    assert hidden(context, begun, told, listed, context.background.take_ended())


async def test_a_terminal_shows_no_place_however_narrow_it_is(context):
    begun = await SessionStart(
        command="bash --norc --noprofile", cols=20, wait_for=r"[$#] $", timeout=LONG
    ).run(context)
    told = await SessionInteractive(
        session_id="term1",
        input="pwd; echo $PWD/abc; cd ..; cd -",
        wait_for=r"[$#] $",
        timeout=LONG,
    ).run(context)
    assert "\n.\n./abc\n.\n" in told.text
    assert hidden(context, begun, told)


async def test_the_tools_that_look_find_nothing_and_make_nothing_where_nothing_was_written(context):
    listed = await ListFiles(path=".").run(context)
    searched = await SearchFiles(regex="x").run(context)
    found = await FindFiles(pattern="*.py").run(context)
    read = await ReadFile(path="a.txt").run(context)
    info = await GetWorkspaceInfo().run(context)
    assert (listed.ok, searched.ok, found.ok, info.ok) == (True, True, True, True)
    assert (read.ok, read.code) == (False, "file_not_found")
    assert info.message == "The workspace is empty: nothing was written yet."
    assert info.data == {"fileCount": 0, "dirCount": 0, "totalSize": 0, "lastModified": None}
    assert not context.workspace.root.exists()
    assert hidden(context, listed, searched, found, read, info)


async def test_a_file_that_is_read_again_is_always_given_whole(context):
    write_file(context.workspace, "long.txt", "line\n" * 400)
    first = context.remember(await ReadFile(path="long.txt").run(context))
    second = context.remember(await ReadFile(path="long.txt").run(context))
    assert second.text == first.text
    assert "unchanged" not in second.message
    await ListFiles(path=".").run(context)
    assert "long.txt" in (await ListFiles(path=".").run(context)).text


async def test_the_workspaces_size_is_that_of_the_disk_hidden_and_ignored_files_too(context):
    for path in (".gitignore", "node_modules/x.js", ".env", "a/b/c.txt"):
        write_file(context.workspace, path, "node_modules\n")
    info = await GetWorkspaceInfo().run(context)
    assert info.data["fileCount"] == 4
    assert info.data["dirCount"] == 3
    assert info.data["totalSize"] == 4 * 13
    assert info.message.startswith("4 files, 3 folders, 52 bytes; last change 20")
