"""The folder of long outputs: it goes with its session, and after a kill with the next one."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from croze.workspace.outputs import PREFIX, Outputs, remove_stale
from croze.workspace.sandbox import Confinement


@pytest.fixture
def temporary(tmp_path):
    return Path(os.path.realpath(tmp_path))


def test_the_folder_is_the_users_own_and_goes_at_the_close(temporary):
    outputs = Outputs(temporary)
    assert (os.listdir(temporary), outputs.made) == ([], None)
    folder = outputs.folder()
    (folder / "long.txt").write_text("x")
    assert folder == outputs.folder() == outputs.made
    assert folder.stat().st_mode & 0o777 == 0o700
    before = len(os.listdir("/proc/self/fd"))
    outputs.close()
    outputs.close()
    assert os.listdir(temporary) == []
    assert len(os.listdir("/proc/self/fd")) == before - 1


def test_a_folder_that_was_removed_is_made_anew(temporary):
    outputs = Outputs(temporary)
    outputs.folder().rmdir()
    assert outputs.made is None
    assert outputs.folder().is_dir()
    outputs.close()
    assert os.listdir(temporary) == []


def test_where_it_cant_be_made_there_is_none(temporary):
    outputs = Outputs(temporary / "missing")
    assert not outputs.folder().exists()
    outputs.close()


HOLD = """
import sys
from pathlib import Path
from croze.workspace.outputs import Outputs
(Outputs(Path(sys.argv[1])).folder() / "long.txt").write_text("x")
print("ready", flush=True)
sys.stdin.read()
"""


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_has_is_not(temporary):
    killed, living = (
        subprocess.Popen(
            [sys.executable, "-c", HOLD, str(temporary)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    )  # fmt: skip
    try:
        for each in (killed, living):
            assert each.stdout.readline() == "ready\n"
        assert len(os.listdir(temporary)) == 2
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        mine = Outputs(temporary)
        mine.folder()
        assert len(os.listdir(temporary)) == 2
        mine.close()
        assert len(os.listdir(temporary)) == 1
    finally:
        for each in (killed, living):
            each.kill()
            each.communicate()


def test_what_only_bears_the_name_is_left_alone(temporary, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "kept").write_text("x")
    (temporary / f"{PREFIX}link").symlink_to(elsewhere)
    (temporary / f"{PREFIX}file").write_text("x")
    (temporary / "croze-other").mkdir()
    before = sorted(os.listdir(temporary))
    remove_stale(temporary)
    assert sorted(os.listdir(temporary)) == before
    assert (elsewhere / "kept").exists()


def test_a_sessions_end_removes_it(temporary, tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    confinement = Confinement(root=cache, env=dict(os.environ), cache=cache)
    folder = confinement.outputs(temporary)
    assert confinement.policy().visible[-1] == folder
    confinement.close()
    assert os.listdir(temporary) == []
