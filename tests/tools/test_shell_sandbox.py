"""execute_command in a sandbox: what the model is told, and what it can't get."""

import os
import socket
from pathlib import Path

import msgspec
import pytest

from croze.tools.builtin.shell import ExecuteCommand
from croze.tools.registry import builtin
from croze.types.event import Notice
from croze.workspace.sandbox import Confinement
from croze.workspace.workspace import Workspace
from tests.sandboxes import need


@pytest.fixture
def boxed(fake_context, tmp_path):
    """A context whose commands run in the sandbox."""
    need("bubblewrap")
    return with_sandbox(fake_context, tmp_path)


def with_sandbox(context, tmp_path, **options):
    root = context.workspace.root
    confinement = Confinement(
        root=root,
        env=dict(context.env),
        cache=tmp_path / "cache",
        own=(tmp_path / "own",),
        **options,
    )
    context.workspace = Workspace("w", root, "main", confinement=confinement)
    return context


async def sh(context, command, **arguments):
    return await ExecuteCommand(command=command, **arguments).run(context)


async def test_a_command_works_and_its_output_is_shown_live(boxed):
    result = await sh(boxed, "pwd; echo x > a; cat a; echo ü >&2")
    assert (result.ok, result.message) == (True, "Exit code 0.")
    assert result.text == f"{boxed.workspace.root}\nx\nü"
    assert "".join(boxed.outputs) == result.text + "\n"
    assert boxed.events == []


async def test_what_fails_for_the_sandbox_is_explained(boxed):
    git = await sh(boxed, "git init -q .")
    assert "The sandbox keeps .git read-only" in git.message
    outside = await sh(boxed, "touch /usr/croze-was-here")
    assert "Only the workspace and /tmp can be written" in outside.message
    assert not Path("/usr/croze-was-here").exists()
    for _ in range(2):
        network = await sh(boxed, "exec 3<>/dev/tcp/127.0.0.1/9")
        assert "no network" in network.message
        assert "--allow network" in network.message
    (notice,) = boxed.events
    assert (notice.code, "--allow network" in notice.text) == ("no_network", True)
    plain = await sh(boxed, "exit 3")
    assert plain.message == "Exit code 3, no output."


async def test_what_is_killed_in_it_is_told_by_its_signal(boxed):
    assert (await sh(boxed, "kill -9 $$")).message == "Killed by SIGKILL."
    told = "Exit code 137 (as after SIGKILL), no output."
    assert (await sh(boxed, "exit 137")).message == told


async def test_what_was_left_running_is_told(boxed):
    result = await sh(boxed, "sleep 7840001 & echo on")
    assert "1 process that it left running was ended" in result.message


async def test_long_output_can_be_read_by_the_next_command(boxed, tmp_path):
    boxed.env = dict(boxed.env) | {"TMPDIR": "/tmp"}
    result = await sh(boxed, "seq 100000")
    path = Path(result.data["output_file"])
    try:
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        again = await sh(boxed, f"tail -n 1 {path}; echo x > {path}")
        assert again.text.startswith("100000\n")
        assert path.read_text().count("\n") == 100_000
    finally:
        boxed.workspace.confinement.close()
    assert not path.parent.exists()


async def test_with_the_grant_commands_have_network_and_nothing_is_said(fake_context, tmp_path):
    need("bubblewrap")
    with_sandbox(fake_context, tmp_path, network=True)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        reached = await sh(fake_context, f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo in")
    assert reached.text == "in"
    refused = await sh(fake_context, f"exec 3<>/dev/tcp/127.0.0.1/{port}")
    assert "network" not in refused.message
    assert fake_context.events == []


async def test_keys_in_the_home_cant_be_read(boxed, tmp_path):
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("the key")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "keys.toml").write_text("the key")
    boxed.workspace.confinement.env = dict(boxed.env) | {"HOME": str(home)}
    result = await sh(
        boxed, f"cat {home}/.ssh/id {tmp_path}/own/keys.toml; find {tmp_path} -name id"
    )
    assert "the key" not in result.text


async def test_planning_writes_nothing(fake_context, tmp_path):
    need("bubblewrap")
    with_sandbox(fake_context, tmp_path, mode=lambda: "plan")
    result = await sh(fake_context, "touch a")
    assert "Only /tmp can be written" in result.message
    assert os.listdir(fake_context.workspace.root) == []


@pytest.fixture
def nothing(monkeypatch):
    for module in ("probe", "sandbox", "proof"):
        monkeypatch.setattr(f"croze.workspace.{module}.find_bwrap", lambda _env: None)


async def test_without_a_sandbox_it_is_said_once_and_the_command_runs(
    fake_context, tmp_path, nothing, monkeypatch
):
    monkeypatch.setattr("croze.workspace.landlock.abi", lambda: 0)
    with_sandbox(fake_context, tmp_path)
    for _ in range(2):
        assert (await sh(fake_context, "echo x")).text == "x"
    (notice,) = fake_context.events
    assert isinstance(notice, Notice)
    assert (notice.level, notice.code) == ("warning", "no_sandbox")
    assert notice.text.startswith("No OS sandbox: bubblewrap is not installed")


async def test_a_sandbox_that_was_asked_for_and_is_missing_refuses_the_command(
    fake_context, tmp_path, nothing, monkeypatch
):
    monkeypatch.setattr("croze.workspace.landlock.abi", lambda: 0)
    with_sandbox(fake_context, tmp_path, wanted="workspace")
    result = await sh(fake_context, "touch a")
    assert (result.ok, result.code) == (False, "no_sandbox")
    assert os.listdir(fake_context.workspace.root) == []


async def test_the_weaker_sandbox_is_said_once(fake_context, tmp_path, nothing):
    need("landlock")
    with_sandbox(fake_context, tmp_path)
    for _ in range(2):
        assert (await sh(fake_context, "echo x > a; cat a")).text == "x"
    (notice,) = fake_context.events
    assert notice.code == "weaker_sandbox"
    assert ".git is not write-protected" in notice.text


@pytest.mark.parametrize("extra", [{"cwd": "/"}, {"sandbox": "off"}, {"env": {"PATH": "/x"}}])
def test_the_model_chooses_neither_the_folder_nor_the_sandbox(extra):
    """Incident 23, CVE-2025-59532: a working folder from the model widens nothing."""
    kind = builtin().get("execute_command")
    with pytest.raises(msgspec.ValidationError):
        kind.bind({"command": "true", **extra})


async def test_a_planted_link_for_the_output_is_not_followed(fake_context, tmp_path, monkeypatch):
    """Incident 35, CVE-2026-46406: names in the shared temporary folder can't be guessed, and a link under
    the very name isn't followed."""
    monkeypatch.setattr("croze.workspace.capture.secrets.token_hex", lambda _count: "known")
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (tmp_path / "croze-output-known.txt").symlink_to(victim)
    fake_context.env = dict(fake_context.env) | {"TMPDIR": str(tmp_path)}
    result = await sh(fake_context, "seq 100000")
    assert victim.read_text() == "kept"
    assert result.data["output_file"] is None
