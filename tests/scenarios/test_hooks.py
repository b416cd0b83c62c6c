"""Hooks as people meet them: `croze run` in a project, what is printed, the exit code, the replay."""

import hashlib
import json
import subprocess
from pathlib import Path

from tests.scenarios.conftest import Stage, croze

WRITE = """
- calls: [{name: write_to_file, args: {path: shop.py, content: "total = sum"}}]
- text: That is all.
"""
SAY = "- text: Hello.\n"


def folder_of(stage: Stage, name: str) -> Path:
    """One of the user's folders, as `croze()` sets them."""
    path = stage.project.parent / "home" / name / "croze"
    path.mkdir(parents=True, exist_ok=True)
    return path


def user_hooks(stage: Stage, text: str) -> None:
    (folder_of(stage, ".config") / "hooks.toml").write_text(text)


def trust(stage: Stage, *names: str) -> None:
    found = {n: hashlib.sha256((stage.project / n).read_bytes()).hexdigest() for n in names}
    trusted = {str(stage.project.resolve()): found}
    (folder_of(stage, ".local/state") / "trusted.json").write_text(json.dumps(trusted))


def run(stage: Stage, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    model = ("--model", stage.script(script), "--dialect", stage.dialect)
    return croze(stage.project, "run", "Do it.", *model, *options)


def test_a_blocked_write_is_told_and_is_exit_code_4(stage: Stage) -> None:
    user_hooks(
        stage,
        '[[PreToolUse]]\nmatcher = "Write"\ncommand = "echo shop.py is frozen >&2; exit 2"\n',
    )
    ran = run(stage, WRITE, "--mode", "auto-edit")
    assert (ran.returncode, ran.stdout) == (4, "That is all.\n")
    assert "shop.py is frozen" in ran.stderr
    assert not (stage.project / "shop.py").exists()
    [conversation] = json.loads(croze(stage.project, "session", "list", "--format", "json").stdout)
    replayed = croze(stage.project, "replay", conversation["id"])
    assert replayed.returncode == 0, replayed.stderr


def test_a_failing_hook_is_one_warning_and_the_run_succeeds(stage: Stage) -> None:
    user_hooks(stage, '[[Stop]]\ncommand = "echo no such branch >&2; exit 7"\n')
    ran = run(stage, SAY)
    assert (ran.returncode, ran.stdout) == (0, "Hello.\n")
    assert ran.stderr.count("failed (exit code 7): no such branch") == 1


def test_a_dropped_message_is_exit_code_4_and_leaves_no_conversation(stage: Stage) -> None:
    user_hooks(stage, '[[UserPromptSubmit]]\ncommand = "echo not today >&2; exit 2"\n')
    ran = run(stage, SAY)
    assert (ran.returncode, ran.stdout) == (4, "")
    assert "dropped this message: not today" in ran.stderr
    assert "goes on" not in ran.stderr
    assert json.loads(croze(stage.project, "session", "list", "--format", "json").stdout) == []


def test_programs_see_what_hooks_decided(stage: Stage) -> None:
    user_hooks(stage, '[[PreToolUse]]\ncommand = "echo frozen >&2; exit 2"\n')
    ran = run(stage, WRITE, "--mode", "auto-edit", "--output-format", "stream-json")
    objects = [json.loads(line) for line in ran.stdout.splitlines()]
    [hook] = [each for each in objects if each["type"] == "hook"]
    assert (hook["point"], hook["decision"], hook["reason"]) == ("PreToolUse", "deny", "frozen")


def test_an_untrusted_repositorys_hooks_leave_no_marker(stage: Stage) -> None:
    marker = stage.project.parent / "marker"
    points = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")
    text = "".join(f'[[{point}]]\ncommand = "touch {marker}"\n' for point in points)
    stage.write(".croze/hooks.toml", text)
    stage.write(".croze/config.toml", "[model]\n")
    hooks = {p: [{"hooks": [{"type": "command", "command": f"touch {marker}"}]}] for p in points}
    stage.write(".claude/settings.json", json.dumps({"hooks": hooks}))
    ran = run(stage, WRITE, "--mode", "auto-edit")
    assert (ran.returncode, ran.stdout) == (0, "That is all.\n")
    assert not marker.exists()
    told = [line for line in ran.stderr.splitlines() if "not trusted" in line]
    assert len(told) == 1
    assert "hooks.toml" in told[0]
    assert "config.toml" in told[0]
    trust(stage, ".croze/hooks.toml")
    assert run(stage, WRITE, "--mode", "auto-edit").returncode == 0
    assert marker.exists()


def test_a_trusted_script_that_the_agent_has_changed_is_not_run(stage: Stage) -> None:
    marker = stage.project.parent / "marker"
    stage.write("guard.sh", "exit 0\n")
    stage.write(".croze/hooks.toml", '[[PreToolUse]]\nmatcher = "Write"\ncommand = "sh guard.sh"\n')
    trust(stage, ".croze/hooks.toml", "guard.sh")
    script = f"""
- calls: [{{name: write_to_file, args: {{path: guard.sh, content: "touch {marker}"}}}}]
- calls: [{{name: write_to_file, args: {{path: other.txt, content: "x"}}}}]
- text: That is all.
"""
    ran = run(stage, script, "--mode", "auto-edit")
    assert ran.returncode == 4
    assert "guard.sh is not as it was when it was trusted" in ran.stderr
    assert not marker.exists()
    assert not (stage.project / "other.txt").exists()
