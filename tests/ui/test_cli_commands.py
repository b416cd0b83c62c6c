"""The commands beside `run`: session, config, doctor, replay, completion, help, languages."""

import asyncio
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import click
import pytest
from scripts.cli_reference import TARGET, reference

from croze import __version__
from croze.app.options import ReplayReport
from croze.app.paths import Paths, find_project
from croze.app.settings import SECTIONS, TABLES, fields_of
from croze.store.compose import Draft
from croze.store.conversations import Conversations
from croze.store.store import Store
from croze.types.ids import SystemSource
from croze.ui.cli.config import DESCRIPTIONS
from croze.ui.cli.main import main
from croze.ui.cli.root import COMMANDS, cli
from tests.ui.conftest import Shell

ROOT = Path(__file__).parents[2]


def store_folder(shell: Shell) -> Path:
    return Paths.of(shell.env).data / find_project(shell.project).folder_name


def converse(shell: Shell, name: str, *texts: str) -> str:
    async def create() -> str:
        store = Store.open(store_folder(shell), source=SystemSource())
        try:
            messages = [
                Draft(role="user" if i % 2 == 0 else "assistant", content=text)
                for i, text in enumerate(texts)
            ]
            made = await Conversations(store).create(name=name, messages=messages)
            return made.id
        finally:
            store.close()

    return asyncio.run(create())


class TestSession:
    def test_list_shows_the_newest_first(self, shell: Shell) -> None:
        assert shell.run("session", "list").err == "no conversations here yet\n"
        first = converse(shell, "first", "hello there")
        second = converse(shell, "second \x1b[31mred", "bye", "ok")
        ran = shell.run("session", "list")
        lines = ran.out.splitlines()
        assert [line[:8] for line in lines] == [second[:8], first[:8]]
        assert "\x1b" not in ran.out
        assert "hello there" in lines[1]
        assert len(shell.run("session", "list", "-n", "1").out.splitlines()) == 1
        assert shell.run("session", "list", "--offset", "1").out.startswith(first[:8])
        found = json.loads(shell.run("session", "list", "--format", "json").out)
        assert [row["id"] for row in found] == [second, first]

    def test_show_search_rename_and_fork_take_the_start_of_an_id(self, shell: Shell) -> None:
        made = converse(shell, "one", "find the zebra", "it is striped")
        shown = shell.run("session", "show", made[:8]).out
        assert "find the zebra" in shown
        assert "it is striped" in shown
        assert made[:8] in shell.run("session", "search", "zebra").out
        assert shell.run("session", "search", "giraffe").code == 1
        assert shell.run("session", "rename", made[:8], "two").code == 0
        assert shell.run("session", "rename", made[:8], " ").code == 2
        found = json.loads(shell.run("session", "show", made, "--format", "json").out)
        assert found["name"] == "two"
        first_message = found["messages"][0]["message_id"]
        forked = shell.run("session", "fork", made, "--at", first_message[:8]).out.strip()
        again = json.loads(shell.run("session", "show", forked, "--format", "json").out)
        assert [m["content"] for m in again["messages"]] == ["find the zebra"]

    def test_what_does_not_exist_is_one_line_with_the_next_step(self, shell: Shell) -> None:
        for command in ("show", "fork", "delete"):
            ran = shell.run("session", command, "nope")
            assert ran.code == 1
            assert "croze session list" in ran.err
            assert "Traceback" not in ran.err

    def test_delete_asks_and_without_a_terminal_wants_yes(self, shell: Shell) -> None:
        made = converse(shell, "one", "x")
        ran = shell.run("session", "delete", made)
        assert ran.code == 2
        assert "--yes" in ran.err
        assert shell.run("session", "delete", "--yes", made).code == 0
        assert shell.run("session", "show", made).code == 1

    def test_export_and_import_bring_a_conversation_back(
        self, shell: Shell, tmp_path: Path
    ) -> None:
        made = converse(shell, "one", "hello", "hi")
        for name in ("c.json", "c.jsonl"):
            target = tmp_path / name
            assert shell.run("session", "export", made[:8], str(target)).code == 0
            taken = shell.run("session", "import", str(target))
            assert taken.code == 1
            assert made in taken.err
            new = shell.run("session", "import", "--new-id", str(target)).out.strip()
            assert "hello" in shell.run("session", "show", new).out
        folder = tmp_path / "all"
        assert "3 conversations" in shell.run("session", "export", "--all", str(folder)).err
        assert len(list(folder.glob("*.json"))) == 4
        shutil.rmtree(store_folder(shell))
        assert len(shell.run("session", "import", str(folder)).out.split()) == 3
        assert shell.run("session", "export", made).code == 2

    def test_a_file_that_is_no_conversation_is_refused(self, shell: Shell, tmp_path: Path) -> None:
        bad = tmp_path / "bad.json"
        bad.write_text("[1")
        for path in (bad, tmp_path / "missing.json"):
            ran = shell.run("session", "import", str(path))
            assert ran.code == 1
            assert path.name in ran.err

    def test_a_backup_brings_back_what_was_deleted(self, shell: Shell) -> None:
        made = converse(shell, "one", "hello")
        assert "no backups" in shell.run("session", "backup", "--list").err
        backup = Path(shell.run("session", "backup").out.strip())
        assert sqlite3.connect(backup).execute("PRAGMA quick_check").fetchone() == ("ok",)
        assert backup.name in shell.run("session", "backup", "--list").out
        shell.run("session", "delete", "-y", made)
        assert shell.run("session", "restore").code == 2
        assert shell.run("session", "restore", "--yes", "nope.db").code == 1
        ran = shell.run("session", "restore", "--yes")
        assert ran.code == 0
        assert backup.name in ran.err
        assert "hello" in shell.run("session", "show", made).out

    def test_stats_add_up(self, shell: Shell) -> None:
        converse(shell, "one", "a", "b")
        found = json.loads(shell.run("session", "stats", "--format", "json").out)
        assert (found["conversations"], found["messages"]) == (1, 2)
        assert "conversations" in shell.run("session", "stats").out

    def test_a_damaged_store_is_set_aside_and_told(self, shell: Shell) -> None:
        converse(shell, "one", "a")
        (store_folder(shell) / "log.db").write_bytes(b"garbage" * 1000)
        for leftover in store_folder(shell).glob("log.db-*"):
            leftover.unlink()
        ran = shell.run("session", "list")
        assert ran.code == 0
        assert "set aside" in ran.err

    def test_a_reader_that_goes_away_is_quiet(self, shell: Shell) -> None:
        read, write = os.pipe()
        os.close(read)
        process = shell.spawn("config", "list", stdout=write)
        os.close(write)
        _out, err = process.communicate(timeout=20)
        assert (process.returncode, err) == (141, b"")


class TestConfig:
    def test_set_get_list_and_unset(self, shell: Shell) -> None:
        assert shell.run("config", "get", "store.lock_timeout").out == "10\n"
        assert shell.run("config", "set", "store.lock_timeout", "3").code == 0
        assert shell.run("config", "get", "store.lock_timeout").out == "3\n"
        rows = shell.run("config", "list", "--changed").out
        assert rows.split() == ["store.lock_timeout", "3", "your", "config.toml"]
        found = json.loads(shell.run("config", "list", "--format", "json").out)
        assert {"key": "store.lock_timeout", "value": 3.0, "source": "user"} in found
        assert shell.run("config", "unset", "store.lock_timeout").code == 0
        assert "was not set" in shell.run("config", "unset", "store.lock_timeout").err
        assert shell.config_file.stat().st_mode & 0o777 == 0o600

    def test_set_says_when_another_source_wins(self, shell: Shell) -> None:
        shell.env["CROZE_UI__COLOR"] = "never"
        assert (
            "environment sets ui.color too" in shell.run("config", "set", "ui.color", "always").err
        )
        assert shell.run("config", "get", "ui.color").out == "never\n"

    def test_wrong_keys_and_values_are_usage_errors(self, shell: Shell) -> None:
        wrong = shell.run("config", "set", "ui.color", "pink")
        assert (wrong.code, wrong.out) == (2, "")
        assert "auto | always | never" in wrong.err
        assert not shell.config_file.exists()
        assert "ui.color" in shell.run("config", "get", "ui.colr").err

    def test_every_setting_is_described(self, shell: Shell) -> None:
        keys = {f"{s}.{name}" for s, struct in SECTIONS.items() for name in fields_of(struct)}
        keys |= {f"{t}.*.{name}" for t, struct in TABLES.items() for name in fields_of(struct)}
        assert set(DESCRIPTIONS) == keys
        out = shell.run("config", "list", "--describe").out
        assert "permissions.mode  [plan | ask | auto-edit | full]" in out
        assert DESCRIPTIONS["permissions.mode"] in out

    def test_edit_opens_the_editor_and_checks_the_result(
        self, shell: Shell, tmp_path: Path
    ) -> None:
        editor = tmp_path / "my editor"
        editor.write_text('#!/bin/sh\necho \'[ui]\' > "$2"; echo "color = \'$1\'" >> "$2"\n')
        editor.chmod(0o755)
        shell.env["EDITOR"] = f"'{editor}' never"
        assert "1 settings" in shell.run("config", "edit").err
        assert shell.run("config", "get", "ui.color").out == "never\n"
        shell.env["EDITOR"] = f"'{editor}' pink"
        ran = shell.run("config", "edit")
        assert ran.code == 2
        assert "ui.color" in ran.err
        shell.env["VISUAL"] = "/no/such/editor"
        assert "/no/such/editor" in shell.run("config", "edit").err

    def test_a_broken_file_stops_every_command_but_edit_with_one_line(self, shell: Shell) -> None:
        shell.config_file.parent.mkdir(parents=True)
        shell.config_file.write_text("[ui\n")
        for argv in (["run", "x"], ["config", "list"], ["session", "list"]):
            ran = shell.run(*argv)
            assert ran.code == 2
            assert str(shell.config_file) in ran.err
        shell.env["EDITOR"] = "truncate -s 0"
        assert shell.run("config", "edit").code == 0

    def test_an_untrusted_project_is_told_in_one_line(self, shell: Shell) -> None:
        (shell.project / ".croze").mkdir()
        (shell.project / ".croze" / "config.toml").write_text("[permissions]\nmode = 'full'\n")
        ran = shell.run("run", "x")
        assert ran.code == 0
        assert sum("not trusted" in line for line in ran.err.splitlines()) == 1
        assert shell.run("config", "get", "permissions.mode").out == "ask\n"


class TestDoctor:
    def test_everything_is_named_and_no_key_is_shown(self, shell: Shell) -> None:
        shell.env["OPENAI_API_KEY"] = "sk-very-secret"
        ran = shell.run("doctor")
        assert ran.code == 0
        assert "OPENAI_API_KEY" in ran.out
        assert "sk-very-secret" not in ran.out + ran.err
        for topic in (
            "croze",
            "python",
            "sqlite",
            "rg",
            "git",
            "bash",
            "sandbox",
            "config",
            "store",
        ):
            assert f" {topic}: " in ran.out
        assert re.search(r"sandbox: .*(proven|none): ", ran.out)

    def test_a_broken_configuration_is_a_finding(self, shell: Shell) -> None:
        shell.config_file.parent.mkdir(parents=True)
        shell.config_file.write_text("[ui\n")
        ran = shell.run("doctor")
        assert ran.code == 1
        assert "FAIL config:" in ran.out

    def test_missing_programs_are_warnings(self, shell: Shell, tmp_path: Path) -> None:
        shell.env["PATH"] = str(tmp_path)
        ran = shell.run("doctor")
        assert ran.code == 0
        assert "warn git: not found on PATH" in ran.out

    def test_a_state_folder_open_to_others_is_told(self, shell: Shell) -> None:
        data = Paths.of(shell.env).data
        data.mkdir(parents=True)
        data.chmod(0o755)
        assert f"chmod 700 {data}" in shell.run("doctor").out


class TestReplay:
    def test_the_verdict_is_the_exit_code(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = converse(shell, "one", "a")
        ran = shell.run("replay", made[:8])
        assert (ran.code, ran.out) == (0, "3 requests, all the same byte for byte\n")
        report = ReplayReport(requests=1, divergence="step 2: byte 17 differs")

        async def diverged(_app: object, _session: str) -> ReplayReport:
            return report

        monkeypatch.setattr("tests.ui.fakes.FakeApp.replay", diverged)
        ran = shell.run("replay", made)
        assert ran.code == 1
        assert "byte 17" in ran.out


class TestHelp:
    def test_the_version_is_one_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["--version"]) == 0
        assert capsys.readouterr().out == f"croze {__version__}\n"

    def test_every_command_has_help_in_both_languages(self, shell: Shell) -> None:
        for language in ("C.UTF-8", "zh_CN.UTF-8"):
            shell.env["LANG"] = language
            for name in COMMANDS:
                ran = shell.run(name, "--help")
                assert ran.code == 0
                assert ("Show this help." in ran.out) is (language == "C.UTF-8")

    def test_the_line_of_a_command_stands_for_what_is_imported(self) -> None:
        ctx = click.Context(cli, info_name="croze")
        for name in cli.list_commands(ctx):
            command = cli.get_command(ctx, name)
            assert command is not None
            assert command.help

    def test_a_mistyped_command_is_answered_with_the_nearest(self, shell: Shell) -> None:
        ran = shell.run("sesion")
        assert ran.code == 2
        assert "croze session" in ran.err
        assert "croze session list" in shell.run("session", "lst").err

    def test_the_reference_in_the_docs_is_up_to_date(self) -> None:
        assert TARGET.read_text("utf-8") == reference()

    def test_help_and_version_import_nothing_heavy(self) -> None:
        code = (
            "import sys; from croze.ui.cli.main import main; main(['{flag}']);"
            "print(sorted({{m.partition('.')[0] for m in sys.modules}} & {{'msgspec', 'asyncio',"
            "'rich', 'prompt_toolkit', 'httpx2', 'sqlite3', 'tomllib', 'click'}}), file=sys.stderr)"
        )
        for flag, loaded in (("--version", "[]\n"), ("--help", "['click']\n")):
            ran = subprocess.run(
                [sys.executable, "-c", code.format(flag=flag)],
                capture_output=True, text=True, check=True, timeout=60,
                env={"PYTHONPATH": str(ROOT / "src"), "HOME": "/nonexistent", "LANG": "C.UTF-8"},
            )  # fmt: skip
            assert ran.stderr == loaded

    @pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
    def test_completion_scripts_are_what_the_shell_accepts(
        self, shell: Shell, tmp_path: Path, shell_name: str
    ) -> None:
        ran = shell.run("completion", shell_name)
        assert ran.code == 0
        assert "_CROZE_COMPLETE" in ran.out
        program = shutil.which(shell_name)
        if program is None:
            pytest.skip(f"{shell_name} is not installed")
        script = tmp_path / "script"
        script.write_text(ran.out)
        subprocess.run([program, "-n", str(script)], check=True, timeout=20)

    def test_the_shell_gets_commands_and_words_to_complete(self, shell: Shell) -> None:
        shell.env |= {
            "_CROZE_COMPLETE": "bash_complete",
            "COMP_CWORD": "1",
            "COMP_WORDS": "croze se",
        }
        ran = subprocess.run(
            [sys.executable, "-c", "import sys; from croze.ui.cli.main import main; sys.exit(main())"],
            capture_output=True, text=True, timeout=60, check=False,
            env={**shell.env, "PYTHONPATH": str(ROOT / "src")},
        )  # fmt: skip
        assert ran.stdout == "plain,session\n"
        assert ran.stderr == ""

    def test_an_unknown_shell_is_refused(self, shell: Shell) -> None:
        assert "bash | zsh | fish" in shell.run("completion", "csh").err
