"""`croze tools`: listing, showing and making tools, from the command line."""

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from croze.app.config import load
from croze.app.mcp import load_mcp
from croze.app.new_tool import LANGUAGES
from croze.mcp.listing import Listing, ListingCache, ToolInfo
from croze.ui.cli.main import main
from croze.ui.cli.state import State
from croze.ui.i18n import use_language
from tests.sandboxes import need

PLUGIN = """
from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.types.tool import Access, ToolResult


class Greet(Tool, frozen=True):
    \"\"\"Greet.\"\"\"

    spec = ToolSpec(name="greet", summary="greet", access=Access(read=True))

    async def run(self, ctx):
        return ToolResult(ok=True)
"""
RUNS = {"py": "python3", "sh": "sh", "js": "node", "rb": "ruby", "pl": "perl", "php": "php"}


class Desk:
    """A project and a user's home on disk, and the command line over them."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.project, self.home = root / "project", root / "home"
        self.project.mkdir()
        self.env = {"HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        self._capsys = capsys

    def put(self, path: str, text: str) -> Path:
        """An executable file below the project, or with `~/` below the home."""
        file = self.home / path[2:] if path.startswith("~/") else self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
        return file

    def run(self, *argv: str, language: str = "C.UTF-8") -> tuple[int, str, str]:
        self._capsys.readouterr()
        state = State(env={**self.env, "LANG": language}, cwd=self.project)
        try:
            code = main(list(argv), state=state)
        finally:
            use_language("en")
        out, err = self._capsys.readouterr()
        return code, out, err

    def rows(self) -> dict[str, dict[str, Any]]:
        code, out, _err = self.run("tools", "list", "--json")
        assert code == 0
        return {row["name"]: row for row in json.loads(out)}


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    need("bubblewrap")
    return Desk(tmp_path, capsys)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_new_tool_works_in_every_language_that_is_there(desk: Desk, language: str) -> None:
    code, out, err = desk.run("tools", "new", "say", "--lang", language)
    path = desk.project / f".croze/tools/say.{language}"
    assert stat.S_IMODE(path.stat().st_mode) & 0o100
    assert str(path) in err
    assert "Usage: say TEXT..." in out
    program = RUNS.get(language)
    if program is None or shutil.which(program) is None:
        return  # a compiler, or nothing: what was found out is told above
    assert code == 0
    assert "what it says to help" in out
    row = desk.rows()[path.name]
    assert (row["state"], row["help_by"], row["kind"]) == ("loaded", "help", "external")
    ran = subprocess.run([path, "hello", "you"], capture_output=True, text=True, check=True)
    assert ran.stdout == "hello you\n"
    for word in ("help", "-h", "--help"):
        helped = subprocess.run([path, word], capture_output=True, text=True, check=True)
        assert helped.stdout.startswith("Usage: say TEXT...")


def test_a_new_tool_is_trusted_as_it_is_and_a_change_takes_that_away(desk: Desk) -> None:
    assert desk.run("tools", "new", "say", "--lang", "sh")[0] == 0
    assert desk.rows()["say.sh"]["state"] == "loaded"
    file = desk.project / ".croze/tools/say.sh"
    file.write_text(file.read_text() + "touch ran\n")
    row = desk.rows()["say.sh"]
    assert (row["state"], row["command"], row["help"]) == ("untrusted", "", "")


def test_a_finished_program_is_taken_over_for_all_projects(desk: Desk) -> None:
    built = desk.put("build/tool.sh", '#!/bin/sh\necho "Usage: built $1"\n')
    built.chmod(0o644)
    code, out, _err = desk.run("tools", "new", "deploy", "--from", "build/tool.sh", "--user")
    assert code == 0
    assert "Usage: built help" in out
    path = desk.home / ".config/croze/tools/deploy.sh"
    assert path.read_text() == built.read_text()
    assert stat.S_IMODE(path.stat().st_mode) & 0o700 == 0o700
    assert desk.rows()["deploy.sh"]["source"] == "user"


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["new", "../up"], "is no name for a tool"),
        (["new", "a b"], "is no name for a tool"),
        (["new", "taken"], "There is already a tool named taken"),
        (["new", "x", "--from", "notes.md"], "nothing here runs a .md file"),
        (["new", "x", "--from", "nothing.sh"], "No such file"),
        (["new", "x", "--lang", "cobol"], "--lang"),
        (["show", "nothing"], "There is no tool named"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_reason(
    desk: Desk, argv: list[str], code: str
) -> None:
    desk.put(".croze/tools/taken.py", "x")
    desk.put("notes.md", "x")
    exit_code, _out, err = desk.run("tools", *argv)
    assert exit_code == 2
    assert code in err
    assert [p.name for p in (desk.project / ".croze/tools").iterdir()] == ["taken.py"]


def test_a_folder_that_is_a_link_out_of_the_project_gets_no_tool(desk: Desk) -> None:
    outside = desk.home / "outside"
    outside.mkdir(parents=True)
    (desk.project / ".croze").symlink_to(outside)
    code, _out, err = desk.run("tools", "new", "say")
    assert code == 2
    assert "leads out of the project" in err
    assert not list(outside.rglob("say*"))


def test_every_kind_of_tool_is_listed_with_what_it_may_do(desk: Desk) -> None:
    desk.put("~/.config/croze/tools/mine.sh", 'echo "Usage: mine $1"\n')
    desk.put("~/.config/croze/tools/gone.rb", "#!/usr/bin/env ruby-that-is-not-there\n")
    desk.put(".croze/tools/theirs.sh", "touch ran; echo Usage\n")
    rows = desk.rows()
    assert rows["read_file"] == {
        "name": "read_file", "kind": "builtin", "source": "croze", "access": ["read"], "core": True,
        "summary": rows["read_file"]["summary"],
    }  # fmt: skip
    assert rows["execute_command"]["access"] == ["exec"]
    mine = rows["mine.sh"]
    assert (mine["summary"], mine["state"], mine["access"]) == (
        "Usage: mine help",
        "loaded",
        ["exec"],
    )
    assert mine["command"].startswith("bash ") or mine["command"].startswith("/")
    assert (rows["gone.rb"]["state"], rows["gone.rb"]["reason"]) == (
        "broken", "ruby-that-is-not-there is not installed",
    )  # fmt: skip
    assert rows["theirs.sh"]["state"] == "untrusted"
    assert not list(desk.project.rglob("ran"))


def test_people_get_tables_in_their_language(desk: Desk) -> None:
    desk.put("~/.config/croze/tools/mine.sh", 'echo "Usage: mine"\n')
    code, out, _err = desk.run("tools", "list")
    assert code == 0
    assert out.index("built in:") < out.index("external:") < out.index("mine.sh")
    _code, out, _err = desk.run("tools", "list", language="zh_CN.UTF-8")
    assert "外部:" in out
    assert "已加载" in out


def test_show_asks_a_tool_anew_and_tells_of_the_built_in_ones(desk: Desk) -> None:
    desk.put("~/.config/croze/tools/mine.sh", "cat text.txt\n")
    text = desk.put("~/.config/croze/tools/text.txt", "Usage: one\n")
    assert "Usage: one" in desk.run("tools", "show", "mine")[1]
    text.write_text("Usage: two\n")
    assert desk.rows()["mine.sh"]["help"] == "Usage: one"
    assert "Usage: two" in desk.run("tools", "show", "mine.sh")[1]
    assert desk.rows()["mine.sh"]["help"] == "Usage: two"
    assert "## read_file" in desk.run("tools", "show", "read_file")[1]
    assert "## execute_command" in desk.run("tools", "show", "Bash")[1]


def test_escapes_in_a_help_do_not_reach_the_terminal(desk: Desk) -> None:
    desk.put("~/.config/croze/tools/mine.sh", "printf '\\033]0;title\\007Usage: \\033[31mred\\n'\n")
    for argv in (["list"], ["show", "mine"], ["list", "--json"]):
        _code, out, _err = desk.run("tools", *argv)
        assert "\x1b" not in out
        assert "Usage: red" in out


def test_knowledge_tells_what_became_of_tools_and_skills(desk: Desk) -> None:
    desk.put("~/.config/croze/tools/mine.sh", "# Usage: mine\n")
    desk.put(".croze/tools/theirs.sh", "# Usage: theirs\n")
    desk.put("~/.claude/skills/a/SKILL.md", "---\nname: a\ndescription: d\n---\n")
    desk.put("~/.agents/skills/b/SKILL.md", "words")
    _code, out, _err = desk.run("knowledge", "--json")
    found = {(row["kind"], row["name"]): (row["state"], row["reason"]) for row in json.loads(out)}
    assert found == {
        ("tools", "theirs"): ("untrusted", "the user doesn't trust this content of it"),
        ("tools", "mine"): ("loaded", ""),
        ("skills", "a"): ("loaded", ""),
        ("skills", "b"): ("broken", "it has no front matter with a description"),
    }


def test_tools_of_servers_and_plugins_are_listed_without_starting_a_server(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "site/croze_listed_plugin-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: croze-listed-plugin\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[croze.tools]\ngreeter = croze_listed_plugin:Greet\n")
    (tmp_path / "site/croze_listed_plugin.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path / "site")
    folder = desk.home / ".config/croze"
    desk.put("~/.config/croze/config.toml", '[plugins]\ntools = ["greeter"]\n')
    servers = {"mcpServers": {"notes": {"command": "touch", "args": [str(tmp_path / "ran")]}}}
    (folder / "mcp.json").write_text(json.dumps(servers))
    config = load(desk.project, env=desk.env)
    (spec,) = load_mcp(config).specs
    info_of = ToolInfo(name="search", description="Search the notes. Long.")
    ListingCache(config.paths.cache).save(spec.key, Listing(tools=(info_of,)))
    rows = desk.rows()
    assert (rows["greet"]["kind"], rows["greet"]["source"]) == ("plugin", "greeter")
    found = rows["notes/search"]
    assert (found["kind"], found["tag"], found["summary"]) == (
        "mcp", "mcp__notes__search", "Search the notes.",
    )  # fmt: skip
    assert "Search the notes. Long." in desk.run("tools", "show", "mcp__notes__search")[1]
    assert not (tmp_path / "ran").exists()


def test_knowledge_tells_whose_help_has_no_room_and_why_a_tool_fails_in_chinese_too(
    desk: Desk,
) -> None:
    for number in range(6):
        text = f"# Usage: {'x' * 2_900}\nexit 3\n"
        desk.put(f"~/.config/croze/tools/t{number}.sh", text)
    _code, out, _err = desk.run("knowledge", "--kind", "tools", "--json")
    states = [(row["state"], row["reason"]) for row in json.loads(out)]
    assert states[:4] == [("loaded", "")] * 4
    assert states[4:] == [("cut", "its help is left out for want of room")] * 2
    desk.put("~/.config/croze/tools/bad.sh", "exit 3\n")
    assert desk.run("tools", "show", "bad")[0] == 0
    _code, out, _err = desk.run("knowledge", "--kind", "tools", language="zh_CN.UTF-8")
    assert "它不给出帮助（help: exit code 3, -h: exit code 3, --help: exit code 3）" in out
    assert "因空间不足，省略了它的帮助" in out
