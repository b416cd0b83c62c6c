"""`croze knowledge`: every file that could tell an agent something is there, with what became of it."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from croze.app.config import load
from croze.app.hooks_config import load_hooks
from croze.ui.cli.main import main
from croze.ui.cli.state import State
from croze.ui.findings import REASONS, because
from croze.ui.i18n import use_language

AGENT = "---\nname: {name}\ndescription: d\n{more}---\nprompt\n"
HOOK = '[[Stop]]\ncommand = "scripts/hook.sh"\n'


class Desk:
    """A project and a user's home on disk, and the command line over them."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.project, self.home = root / "project", root / "home"
        self.project.mkdir()
        self.env = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
        self._capsys = capsys

    def put(self, path: str, text: str, *, trusted: bool = False) -> Path:
        """A file below the project, or with `~/` below the home."""
        file = self.home / path[2:] if path.startswith("~/") else self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        if trusted:
            load(self.project, env=self.env).trust.add({path: file.read_bytes()})
        return file

    def run(self, *argv: str, language: str = "C.UTF-8") -> tuple[int, str, str]:
        self._capsys.readouterr()
        state = State(env={**self.env, "LANG": language}, cwd=self.project)
        try:
            code = main(["knowledge", *argv], state=state)
        finally:
            use_language("en")
        out, err = self._capsys.readouterr()
        return code, out, err

    def found(self, *argv: str) -> list[dict[str, Any]]:
        code, out, _err = self.run("--json", *argv)
        assert code == 0
        values: list[dict[str, Any]] = json.loads(out)
        return values


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, capsys)


def test_every_agent_file_is_listed_with_what_became_of_it(desk: Desk) -> None:
    desk.put(".croze/agents/a.md", AGENT.format(name="one", more=""), trusted=True)
    desk.put(".claude/agents/b.md", AGENT.format(name="two", more=""))
    desk.put("~/.config/croze/agents/c.md", AGENT.format(name="one", more=""))
    desk.put("~/.config/croze/agents/d.md", AGENT.format(name="three", more="tools: fly, Read\n"))
    desk.put("~/.claude/agents/e.md", "no front matter")
    desk.put("~/.claude/agents/f.md", AGENT.format(name="four", more="model: opus\nzone: moon\n"))
    desk.put("~/.claude/agents/g.md", AGENT.format(name="five", more="model: opus\n"))
    found = desk.found("--kind", "agents")
    home = desk.home
    assert [(each["name"], each["path"], each["state"], each["reason"]) for each in found] == [
        ("one", ".croze/agents/a.md", "loaded", ""),
        ("two", ".claude/agents/b.md", "untrusted", "the user doesn't trust this content of it"),
        (
            "one", f"{home}/.config/croze/agents/c.md", "shadowed",
            ".croze/agents/a.md has the same name",
        ),
        (
            "three", f"{home}/.config/croze/agents/d.md", "loaded",
            "there is no tool named fly",
        ),
        (
            "e", f"{home}/.claude/agents/e.md", "broken",
            "it has no front matter with a description",
        ),
        (
            "four", f"{home}/.claude/agents/f.md", "broken",
            "zone can't be 'moon': 80k, 1.5M, a number, a share such as 0.5, or auto; "
            "the model opus can't be used here",
        ),
        (
            "five", f"{home}/.claude/agents/g.md", "loaded",
            "the model opus can't be used here",
        ),
    ]  # fmt: skip
    first = (desk.project / ".croze/agents/a.md").read_bytes()
    assert found[0]["size"] == len(first)
    assert found[0]["sha256"] == hashlib.sha256(first).hexdigest()
    assert found[0]["tokens"] > 0


def test_the_projects_law_is_there_once_however_many_names_lead_to_it(desk: Desk) -> None:
    law = desk.put("AGENTS.md", "Be kind.\n", trusted=True)
    load(desk.project, env=desk.env).trust.add({"code_law.md": b"Be kind.\n"})
    (desk.project / "code_law.md").symlink_to(law)
    found = desk.found("--kind", "law")
    assert [(each["path"], each["state"]) for each in found] == [
        ("code_law.md", "loaded"), ("AGENTS.md", "shadowed"),
    ]  # fmt: skip


def test_an_empty_law_is_told(desk: Desk) -> None:
    desk.put("AGENTS.md", "", trusted=True)
    (found,) = desk.found("--kind", "law")
    assert (found["state"], found["reason"]) == ("broken", "it is empty")


def test_hooks_of_a_project_need_trust_and_so_does_what_they_run(desk: Desk) -> None:
    desk.put("~/.config/croze/hooks.toml", HOOK)
    desk.put(".croze/hooks.toml", HOOK, trusted=True)
    script = desk.put("scripts/hook.sh", "true\n")
    found = desk.found("--kind", "hooks")
    assert [(each["path"], each["state"]) for each in found] == [
        (".croze/hooks.toml", "loaded"),
        (f"{desk.home}/.config/croze/hooks.toml", "loaded"),
        ("scripts/hook.sh", "untrusted"),
    ]
    desk.put("scripts/hook.sh", script.read_text(), trusted=True)
    assert [each["state"] for each in desk.found("--kind", "hooks")] == ["loaded", "loaded"]


def test_the_audit_says_of_hooks_what_a_session_does_with_them(desk: Desk) -> None:
    desk.put(".croze/hooks.toml", HOOK)
    (found,) = desk.found("--kind", "hooks")
    assert found["state"] == "untrusted"
    assert load_hooks(load(desk.project, env=desk.env), desk.env).hooks == ()


def test_people_get_a_table_with_files_sizes_and_reasons(desk: Desk) -> None:
    desk.put("AGENTS.md", "Be kind.\n", trusted=True)
    desk.put("~/.claude/agents/e.md", "no front matter")
    desk.put(".croze/agents/a.md", AGENT.format(name="one", more=""))
    code, out, err = desk.run()
    assert code == 0
    assert [" ".join(line.split()) for line in out.splitlines()] == [
        "law:",
        "loaded AGENTS AGENTS.md 9 bytes 3 tokens",
        "agents:",
        "untrusted one .croze/agents/a.md 40 bytes 13 tokens the user doesn't trust this content of it",
        "not usable e ~/.claude/agents/e.md 15 bytes 5 tokens it has no front matter with a description",
        "loaded 1, untrusted 1, not usable 1; about 3 tokens are used",
    ]
    assert err.count("not trusted") == 1


def test_the_table_speaks_chinese(desk: Desk) -> None:
    desk.put("~/.claude/agents/e.md", "no front matter")
    _code, out, _err = desk.run(language="zh_CN.UTF-8")
    assert "无法使用" in out
    assert "它没有带 description 的 front matter" in out


def test_where_there_is_nothing_that_is_said(desk: Desk) -> None:
    code, out, err = desk.run()
    assert (code, out) == (0, "")
    assert "no such files" in err
    assert desk.found() == []


def test_an_unknown_kind_is_refused_with_those_there_are(desk: Desk) -> None:
    code, _out, err = desk.run("--kind", "spells")
    assert code == 2
    assert "agents" in err


def test_what_a_file_is_called_cannot_steer_the_terminal(desk: Desk) -> None:
    desk.put("~/.claude/agents/\x1b[31mred.md", "no front matter")
    _code, out, _err = desk.run()
    assert "\x1b" not in out


def test_reasons_of_several_parts_are_translated_each() -> None:
    use_language("zh_CN")
    try:
        told = because("there is no tool named fly; croze does not use hooks")
    finally:
        use_language("en")
    assert told == "没有名为 fly 的工具; croze 不使用 hooks"
    assert len(set(REASONS)) == len(REASONS)


def test_tools_of_a_configured_server_are_known_and_those_of_no_server_are_told(
    desk: Desk,
) -> None:
    desk.put("~/.config/croze/mcp.json", '{"mcpServers": {"odd": {"command": "true"}}}')
    more = "tools: [Read, mcp__odd__echo, mcp__gone__echo]\ndisallowedTools: mcp__odd\n"
    desk.put("~/.config/croze/agents/one.md", AGENT.format(name="one", more=more))
    (one,) = desk.found("--kind", "agents")
    assert one["reason"] == "there is no tool named mcp__gone__echo"
