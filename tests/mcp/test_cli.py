"""`croze mcp` as a program: what is printed, the exit codes, the files that are written."""

import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mcp.conftest import ODD, is_running
from tests.scenarios.conftest import SRC, START


class Desk:
    """A project with a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.project.mkdir()
        self.home = folder / "home"
        self.env = {
            "HOME": str(self.home), "LANG": "C.UTF-8", "PYTHONPATH": str(SRC),
            "PATH": os.environ["PATH"], "ODD_FOLDER": str(folder),
        }  # fmt: skip

    @property
    def user_file(self) -> Path:
        return self.home / ".config" / "croze" / "mcp.json"

    def croze(self, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-B", "-c", START, *argv],
            cwd=self.project,
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def add(self, *options: str, name: str = "odd", mode: str = "plain") -> None:
        env = ("--env", "ODD_FOLDER=${ODD_FOLDER}")
        added = self.croze("mcp", "add", *options, *env, name, "--", sys.executable, str(ODD), mode)
        assert added.returncode == 0, added.stderr


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_server_is_added_listed_tried_and_removed(desk: Desk) -> None:
    desk.add("--timeout", "5")
    entry = json.loads(desk.user_file.read_text())["mcpServers"]["odd"]
    assert (entry["timeout"], entry["env"]) == (5.0, {"ODD_FOLDER": "${ODD_FOLDER}"})
    assert stat.S_IMODE(desk.user_file.stat().st_mode) == 0o600
    listed = json.loads(desk.croze("mcp", "list", "--json").stdout)
    assert [(row["name"], row["state"], row["tools"]) for row in listed] == [
        ("odd", "usable", None)
    ]
    assert not (desk.folder / "starts").exists()
    tried = desk.croze("mcp", "test", "odd")
    assert tried.returncode == 0, tried.stderr
    assert "odd 1, protocol" in tried.stdout
    assert "Does echo." in tried.stdout
    assert "13 tools" in desk.croze("mcp", "list").stdout
    again = desk.croze("mcp", "add", "odd", "--", "true")
    assert (again.returncode, "already" in again.stderr) == (2, True)
    assert desk.croze("mcp", "remove", "odd").returncode == 0
    assert desk.croze("mcp", "remove", "odd").returncode == 2
    assert desk.croze("mcp", "test", "odd").returncode == 2


def test_a_server_that_does_not_start_is_exit_code_1_with_what_it_said(desk: Desk) -> None:
    desk.add(mode="exits")
    tried = desk.croze("mcp", "test", "odd")
    assert tried.returncode == 1
    assert "cannot find the database" in tried.stdout
    assert "exit code 4" in tried.stderr


def test_an_address_keeps_its_headers_and_a_wrong_entry_is_refused(desk: Desk) -> None:
    url = "https://example.org/mcp"
    added = desk.croze("mcp", "add", "docs", url, "--header", "Authorization: Bearer ${DOCS_KEY}")
    assert added.returncode == 0, added.stderr
    entry = json.loads(desk.user_file.read_text())["mcpServers"]["docs"]
    assert entry == {"url": url, "headers": {"Authorization": "Bearer ${DOCS_KEY}"}}
    assert desk.croze("mcp", "add", "a__b", "--", "true").returncode == 2
    assert desk.croze("mcp", "add", "a", "--env", "nothing", "--", "true").returncode == 2


def test_a_projects_file_is_inert_until_it_is_trusted_and_told_once(desk: Desk) -> None:
    entry = {"command": sys.executable, "args": [str(ODD)], "env": {"ODD_FOLDER": str(desk.folder)}}
    (desk.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"odd": entry}}))
    listed = desk.croze("mcp", "list", "--json")
    assert json.loads(listed.stdout)[0]["state"] == "untrusted"
    assert listed.stderr.count("not trusted") == listed.stderr.count(".mcp.json") == 1
    assert desk.croze("mcp", "test", "odd").returncode == 2
    assert desk.croze("mcp", "add", "--project", "more", "--", "true").returncode == 2
    assert not (desk.folder / "starts").exists()


def test_adding_to_a_project_trusts_just_what_was_written(desk: Desk) -> None:
    desk.add("--project")
    path = desk.project / ".mcp.json"
    trusted = json.loads((desk.home / ".local/state/croze/trusted.json").read_text())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    [kept] = trusted["projects"].values()
    assert kept["files"] == {".mcp.json": digest}
    assert desk.croze("mcp", "test", "odd").returncode == 0
    path.write_text(path.read_text().replace("plain", "other"))
    assert json.loads(desk.croze("mcp", "list", "--json").stdout)[0]["state"] == "untrusted"


def test_a_program_of_the_project_is_started_only_as_it_was_trusted(desk: Desk) -> None:
    program = desk.project / "server.py"
    program.write_text(ODD.read_text())
    name = ("mcp", "add", "--project", "--env", "ODD_FOLDER=${ODD_FOLDER}", "own")
    assert desk.croze(*name, "--", sys.executable, "server.py").returncode == 0
    assert desk.croze("mcp", "test", "own").returncode == 0
    (desk.folder / "starts").unlink()
    program.write_text(ODD.read_text() + "# and more\n")
    listed = desk.croze("mcp", "list", "--json")
    assert json.loads(listed.stdout)[0]["state"] == "untrusted"
    assert "not trusted, so without effect: server.py" in listed.stderr
    assert desk.croze("mcp", "test", "own").returncode == 2
    assert not (desk.folder / "starts").exists()


def test_the_users_server_is_not_replaced_by_a_projects_of_the_same_name(desk: Desk) -> None:
    desk.add()
    desk.add("--project", mode="other")
    rows = json.loads(desk.croze("mcp", "list", "--json").stdout)
    assert [(row["source"], row["state"]) for row in rows] == [
        ("user", "usable"),
        ("project", "shadowed"),
    ]


def test_a_change_is_shown_and_approved_by_hand_only(desk: Desk) -> None:
    desk.add()
    assert desk.croze("mcp", "test", "odd").returncode == 0
    (desk.folder / "echo.txt").write_text("Does echo.\u200b And more.")
    shown = desk.croze("mcp", "approve", "odd")
    assert shown.returncode == 2
    assert "+Does echo.\\u200b And more." in shown.stdout
    assert "changed: `croze mcp approve odd`" in desk.croze("mcp", "test", "odd").stdout
    assert desk.croze("mcp", "approve", "--yes", "odd", "echo").returncode == 0
    assert "nothing waits" in desk.croze("mcp", "approve", "odd").stderr


def test_it_speaks_chinese(desk: Desk) -> None:
    desk.add()
    said = desk.croze("mcp", "test", "odd", LANG="zh_CN.UTF-8").stdout
    assert "13 个工具" in said


def test_a_broken_file_is_told_and_stops_nothing_else(desk: Desk) -> None:
    desk.user_file.parent.mkdir(parents=True)
    desk.user_file.write_text('{"mcpServers": ')
    listed = desk.croze("mcp", "list")
    assert listed.returncode == 0
    assert "not valid JSON" in listed.stderr


def test_a_killed_croze_leaves_no_server_behind(desk: Desk) -> None:
    desk.add(mode="stubborn")
    script = desk.folder / "script.yaml"
    script.write_text(
        "- calls: [{name: use_mcp_tool, args: {server_name: odd, tool_name: slow}}]\n- text: Done.\n"
    )
    options = ("--model", f"scripted:{script}", "--mode", "full", "--sandbox", "off")
    program = subprocess.Popen(
        [sys.executable, "-B", "-c", START, "run", "Go.", *options],
        cwd=desk.project,
        env=desk.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait(lambda: (desk.folder / "called").exists())
        pids = [int((desk.folder / name).read_text()) for name in ("pid", "child")]
        program.send_signal(signal.SIGKILL)
        program.wait(10)
        wait(lambda: not any(map(is_running, pids)))
    finally:
        program.kill()
        program.wait()


def test_a_session_that_ends_takes_its_servers_along(desk: Desk) -> None:
    desk.add(mode="stubborn")
    script = desk.folder / "script.yaml"
    script.write_text(
        "- calls: [{name: use_mcp_tool, args: {server_name: odd, tool_name: echo, arguments: {text: a}}}]\n"
        "- text: Done.\n"
    )
    options = ("--model", f"scripted:{script}", "--mode", "full", "--sandbox", "off")
    ran = desk.croze("run", "Go.", *options)
    assert (ran.returncode, ran.stdout) == (0, "Done.\n")
    pids = [int((desk.folder / name).read_text()) for name in ("pid", "child")]
    assert not any(map(is_running, pids))


def wait(happened: Callable[[], object]) -> None:
    """Wait until something has happened in another process."""
    end = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)
