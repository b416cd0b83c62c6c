"""`croze trust`, and the question that a chat begins with."""

import json
import os
import pty
from pathlib import Path

import pytest

from croze.ui.cli.main import main
from croze.ui.cli.state import State
from croze.ui.i18n import use_language
from tests.app.hostile import Hostile
from tests.ui.test_terminal import Terminal

EVIL = '[[Stop]]\ncommand = "true \\u001b[8m; touch x \\u202e саt"\n'


class Desk:
    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.project = root / "project"
        self.project.mkdir()
        self.env = {"HOME": str(root / "home"), "PATH": os.environ["PATH"]}
        self._capsys = capsys

    def write(self, path: str, text: str) -> Path:
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def run(self, *argv: str, language: str = "C.UTF-8", cwd: str = ".") -> tuple[int, str, str]:
        self._capsys.readouterr()
        state = State(env={**self.env, "LANG": language}, cwd=self.project / cwd)
        try:
            code = main(["trust", *argv], state=state)
        finally:
            use_language("en")
        return (code, *self._capsys.readouterr())

    def states(self, *argv: str) -> dict[str, str]:
        code, out, _err = self.run("--json", *argv)
        assert code == 0
        return {each["path"]: each["state"] for each in json.loads(out)["files"]}


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, capsys)


@pytest.fixture
def terminal(tmp_path: Path) -> Hostile:
    return Hostile(tmp_path)


def test_a_project_with_nothing_to_trust_says_so(desk: Desk) -> None:
    code, out, err = desk.run()
    assert (code, out) == (0, "")
    assert "nothing in" in err


def test_without_a_terminal_it_shows_all_and_trusts_nothing(desk: Desk) -> None:
    desk.write(".croze/hooks.toml", EVIL)
    desk.write("AGENTS.md", "law\u200b\n")
    code, out, err = desk.run()
    assert code == 2
    assert "--yes" in err
    assert "Stop: true ␛[8m; touch x \\u202e с⟨U+0441⟩а⟨U+0430⟩t" in out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "1 characters that can't be seen" in out
    assert set(desk.states().values()) == {"new"}


def test_yes_trusts_and_a_change_is_shown_as_a_difference(desk: Desk) -> None:
    desk.write("AGENTS.md", "one\ntwo\n")
    desk.write("CLAUDE.md", "other\n")
    assert desk.run("--yes")[0] == 0
    assert set(desk.states().values()) == {"trusted"}
    desk.write("AGENTS.md", "one\n\x1b[2Jthree\n")
    desk.write("new/AGENTS.md", "nested\n")
    assert desk.states() == {
        "AGENTS.md": "changed", "CLAUDE.md": "trusted", "new/AGENTS.md": "new",
    }  # fmt: skip
    code, out, _err = desk.run("--show")
    assert code == 0
    assert "-two\n+␛[2Jthree" in out
    assert "+nested" in out
    assert "other" not in out
    (desk.project / "CLAUDE.md").unlink()
    assert json.loads(desk.run("--json")[1])["gone"] == ["CLAUDE.md"]
    assert "was trusted and is gone" in desk.run()[1]
    desk.run("--yes")
    assert json.loads(desk.run("--json")[1])["gone"] == []


def test_one_file_is_trusted_alone(desk: Desk) -> None:
    desk.write("AGENTS.md", "one\n")
    desk.write(".croze/hooks.toml", EVIL)
    assert desk.run("--yes", "AGENTS.md")[0] == 0
    assert desk.states() == {".croze/hooks.toml": "new", "AGENTS.md": "trusted"}
    assert desk.run("--yes", ".croze/hooks.toml")[0] == 0
    assert desk.states() == {".croze/hooks.toml": "trusted", "AGENTS.md": "trusted"}
    desk.write("plain.txt", "nothing to trust\n")
    for path in ("nowhere.md", "plain.txt", "/etc/nowhere/x"):
        assert desk.run("--yes", path)[0] == 2


def test_a_folder_below_the_project_is_its_project(desk: Desk) -> None:
    (desk.project / ".git").mkdir()
    (desk.project / ".git/HEAD").write_text("ref: refs/heads/main\n")
    desk.write("AGENTS.md", "one\n")
    desk.write("src/a.py", "")
    assert desk.run("--yes", cwd="src")[0] == 0
    assert desk.states() == {"AGENTS.md": "trusted"}


def test_projects_are_listed_and_forgotten(desk: Desk) -> None:
    desk.write("AGENTS.md", "one\n")
    assert desk.run("--list")[1] == ""
    desk.run("--yes")
    assert str(desk.project) in desk.run("--list")[1]
    (row,) = json.loads(desk.run("--list", "--json")[1])
    assert (row["root"], list(row["files"])) == (str(desk.project), ["AGENTS.md"])
    assert desk.run("--remove")[0] == 0
    assert desk.states() == {"AGENTS.md": "new"}
    assert json.loads(desk.run("--remove", "--json")[1])["removed"] is False


def test_what_can_not_be_trusted_is_told_and_left_out(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("x")
    (desk.project / "AGENTS.md").symlink_to(tmp_path / "outside")
    desk.write("CLAUDE.md", "ok\n")
    code, out, err = desk.run("--yes")
    assert code == 0
    assert "Can't be trusted:\n  AGENTS.md" in out
    assert "1 files" in err
    assert desk.states() == {"AGENTS.md": "broken", "CLAUDE.md": "trusted"}


def test_a_configuration_that_can_not_be_loaded_does_not_keep_anyone_from_removing_trust(
    desk: Desk,
) -> None:
    desk.write(".croze/config.toml", "[model]\nmodel = 'a:b'\n")
    desk.run("--yes")
    desk.write(".croze/config.toml", "= = =")
    desk.run("--yes")
    assert desk.run("--show")[0] == 0
    assert desk.run("--remove")[0] == 0


def test_options_exclude_each_other_and_speak_chinese(desk: Desk) -> None:
    assert desk.run("--yes", "--remove")[0] == 2
    desk.write("AGENTS.md", "one\n")
    _code, out, err = desk.run(language="zh_CN.UTF-8")
    assert "会指示智能体：" in out
    assert "不受信任" in out
    assert "没有信任任何内容" in err


def test_at_a_terminal_it_asks_and_no_trusts_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write("AGENTS.md", "one\n")
    for answer, code, state in (("n\n", 4, "new"), ("y\n", 0, "trusted")):
        master, slave = pty.openpty()
        os.write(master, answer.encode())
        with os.fdopen(slave, "r") as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            assert desk.run()[0] == code
        os.close(master)
        assert desk.states() == {"AGENTS.md": state}


def test_names_of_any_bytes_are_shown_and_kept(tmp_path: Path, desk: Desk) -> None:
    desk.project = Path(os.fsdecode(os.fsencode(tmp_path) + b"/pro\xff\x1b[31mject"))
    (desk.project / ".croze/skills/s").mkdir(parents=True)
    desk.write(".croze/skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\nx\n")
    desk.write("AGENTS.md", "law\n")
    os.close(
        os.open(os.fsencode(desk.project) + b"/.croze/skills/s/\xff\x1b", os.O_CREAT | os.O_WRONLY)
    )
    code, out, err = desk.run("--yes")
    assert code == 0
    assert "\x1b" not in out + err
    assert sorted(desk.states().values()) == ["broken", "trusted", "trusted"]
    assert desk.run("--list")[0] == 0
    assert json.loads(desk.run("--list", "--json")[1])
    assert json.loads(desk.run("--remove", "--json")[1])["removed"] is True


HOOK = '[[SessionStart]]\ncommand = "touch {}"\n'


def chat(terminal: Hostile, script: str = "- text: One.\n") -> Terminal:
    return Terminal(terminal.root, "--model", terminal.script(script))


def prompt(opened: Terminal) -> str:
    """All that was shown once the chat waits for the user."""
    return opened.until("›", after=opened.until("/help").index("/help"))


def leave(opened: Terminal) -> None:
    prompt(opened)
    opened.type("/exit\r")
    opened.end()
    opened.close()


def test_a_chat_asks_once_shows_what_there_is_and_a_yes_lets_it(terminal: Hostile) -> None:
    terminal.write("AGENTS.md", "law of the project\n")
    terminal.write(".croze/hooks.toml", HOOK.format(terminal.marks / "started"))
    opened = chat(terminal)
    seen = opened.until("y trust them")
    assert f"SessionStart: touch {terminal.marks / 'started'}" in seen
    assert terminal.marked == []
    at = opened.type("s\r")
    opened.until("+law of the project", after=at)
    opened.until("y trust them", after=at + 10)
    opened.type("y\r")
    leave(opened)
    assert terminal.marked == ["started"], opened.plain
    again = chat(terminal)
    assert "y trust them" not in prompt(again)
    leave(again)


def test_a_no_is_kept_for_these_contents_and_a_change_asks_again(terminal: Hostile) -> None:
    terminal.write("AGENTS.md", "law\n")
    terminal.write(".croze/hooks.toml", HOOK.format(terminal.marks / "started"))
    opened = chat(terminal)
    opened.until("y trust them")
    opened.type("n\r")
    opened.until("without effect: .croze/hooks.toml")
    leave(opened)
    again = chat(terminal)
    again.until("without effect: .croze/hooks.toml")
    assert "y trust them" not in again.plain
    leave(again)
    terminal.write(".croze/hooks.toml", HOOK.format(terminal.marks / "other"))
    third = chat(terminal)
    third.until("y trust them")
    third.type("\x04")
    third.until("without effect")
    leave(third)
    assert terminal.marked == []


def test_ctrl_c_at_the_question_leaves_and_nothing_is_kept(terminal: Hostile) -> None:
    terminal.write("AGENTS.md", "law\n")
    opened = chat(terminal)
    opened.until("y trust them")
    opened.type("\x03")
    assert opened.end() == 130
    opened.close()
    assert not (terminal.home / ".local/state/croze/trusted.json").exists()
