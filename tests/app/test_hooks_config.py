"""Where hooks come from, what counts and what is inert."""

import hashlib
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from croze.app.config import load
from croze.app.hook_plugins import load_hook_plugins
from croze.app.hooks_config import Hooks, load_hooks
from croze.app.named import changed_file
from croze.app.paths import Paths
from croze.types.errors import ConfigError

STOP = '[[Stop]]\ncommand = "true"\n'


class Home:
    """A user's folders and a project."""

    def __init__(self, root: Path) -> None:
        self.root = root / "project"
        self.root.mkdir()
        self.env = {"HOME": str(root / "home"), "PATH": os.environ["PATH"]}
        self.paths = Paths.of(self.env)

    def user(self, text: str) -> None:
        self.paths.config.mkdir(parents=True, exist_ok=True)
        (self.paths.config / "hooks.toml").write_text(text)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def trust(self, *names: str) -> None:
        """Trust these files as they are."""
        found = {n: hashlib.sha256((self.root / n).read_bytes()).hexdigest() for n in names}
        self.paths.state.mkdir(parents=True, exist_ok=True)
        self.paths.trusted_file.write_text(json.dumps({str(self.root.resolve()): found}))

    def load(self, **overrides: object) -> Hooks:
        given = {name.replace("__", "."): value for name, value in overrides.items()}
        return load_hooks(load(self.root, overrides=given, env=self.env), self.env)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_without_a_file_there_are_none_and_nothing_is_said(home: Home) -> None:
    assert home.load() == Hooks()


def test_the_users_hooks_are_read_in_their_order(home: Home) -> None:
    home.user(
        """
        [[PreToolUse]]
        matcher = "Bash"
        command = "one"
        timeout = 2.5
        on_failure = "block"

        [[PreToolUse]]
        matcher = "*"
        hooks = [{type = "command", command = "two"}, {command = "three", timeout = 1}]

        [[Stop]]
        command = "four"
        """
    )
    hooks = home.load().hooks
    assert [(h.point, h.matcher, h.command, h.timeout, h.on_failure) for h in hooks] == [
        ("PreToolUse", "Bash", "one", 2.5, "block"),
        ("PreToolUse", "*", "two", 60.0, "warn"),
        ("PreToolUse", "*", "three", 1.0, "warn"),
        ("Stop", "", "four", 60.0, "warn"),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[[BeforeTool]]\ncommand = 'x'", "BeforeTool"),
        ("[[Stop]]\ncomand = 'x'", "comand"),
        ("[[Stop]]\nmatcher = 'x'", "needs a command"),
        ("[[Stop]]\ncommand = ''", "command"),
        ("[[Stop]]\ncommand = 'x'\ntimeout = 0", "timeout"),
        ("[[PreToolUse]]\nmatcher = '('\ncommand = 'x'", "regular expression"),
        ("[Stop]\ncommand = 'x'", "Stop"),
        ("Stop = 1", "Stop"),
        ("[[Stop", "TOML"),
    ],
)
def test_a_wrong_file_is_an_error_that_says_where_and_why(
    home: Home, text: str, reason: str
) -> None:
    home.user(text)
    with pytest.raises(ConfigError) as caught:
        home.load()
    assert reason in caught.value.message
    assert "hooks.toml" in caught.value.message


def test_an_untrusted_projects_hooks_are_inert_unread_and_told_once(home: Home) -> None:
    home.write(".croze/hooks.toml", "nonsense [")
    found = home.load()
    assert found.hooks == ()
    [notice] = found.notices
    assert "not trusted" in notice.text
    assert "croze trust" in notice.hint


def test_a_trusted_projects_hooks_count_until_the_file_changes(home: Home) -> None:
    home.write(".croze/hooks.toml", STOP)
    home.trust(".croze/hooks.toml")
    [hook] = home.load().hooks
    assert (hook.source, hook.command) == ("project", "true")
    home.write(".croze/hooks.toml", STOP.replace("true", "rm -r ."))
    assert home.load().hooks == ()


@pytest.mark.parametrize(
    "command",
    [
        "python3 .croze/check.py",
        'python3 "$CROZE_PROJECT_DIR/.croze/check.py" --fast',
        "${CROZE_PROJECT_DIR}/.croze/check.py",
        "./.croze/check.py",
        "sh -c .croze/../.croze/check.py",
    ],
)
def test_a_file_that_a_projects_hook_names_has_to_be_trusted_too(home: Home, command: str) -> None:
    home.write(".croze/hooks.toml", f"[[Stop]]\ncommand = '''{command}'''\n")
    home.write(".croze/check.py", "print('hello')\n")
    home.trust(".croze/hooks.toml")
    found = home.load()
    assert found.hooks == ()
    assert "check.py" in found.notices[0].text
    home.trust(".croze/hooks.toml", ".croze/check.py")
    [hook] = home.load().hooks
    assert changed_file(hook.pinned, home.root) == ""
    home.write(".croze/check.py", "print('something else')\n")
    assert changed_file(hook.pinned, home.root) == ".croze/check.py"
    (home.root / ".croze/check.py").unlink()
    assert changed_file(hook.pinned, home.root) == ".croze/check.py"


def test_a_project_can_not_name_plugins(home: Home) -> None:
    home.write(".croze/config.toml", "[plugins]\nhooks = ['evil']\nclaude_hooks = true\n")
    home.trust(".croze/config.toml")
    settings = load(home.root, env=home.env).settings.plugins
    assert (settings.hooks, settings.claude_hooks) == ((), False)


CLAUDE = {
    "permissions": {"allow": ["Bash(ls)"]},
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "guard", "timeout": 5}]},
            {"hooks": [{"type": "prompt", "prompt": "is it good?"}]},
        ],
        "TeammateIdle": [{"hooks": [{"type": "command", "command": "x"}]}],
    },
}


def test_claude_codes_hooks_are_read_only_where_a_setting_asks_and_the_file_is_trusted(
    home: Home,
) -> None:
    home.write(".claude/settings.json", json.dumps(CLAUDE))
    home.trust(".claude/settings.json")
    assert home.load() == Hooks()
    found = home.load(plugins__claude_hooks="true")
    [hook] = found.hooks
    assert (hook.source, hook.point, hook.matcher) == ("claude", "PreToolUse", "Bash")
    assert (hook.command, hook.timeout) == ("guard", 5.0)
    [notice] = found.notices
    assert "PreToolUse, TeammateIdle" in notice.text
    home.write(".claude/settings.json", json.dumps({**CLAUDE, "model": "x"}))
    assert home.load(plugins__claude_hooks="true").hooks == ()


@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": []}', '{"hooks": {"Stop": 1}}'])
def test_claude_codes_settings_that_cannot_be_read_are_named(home: Home, text: str) -> None:
    home.write(".claude/settings.json", text)
    home.trust(".claude/settings.json")
    with pytest.raises(ConfigError, match=r"settings\.json"):
        home.load(plugins__claude_hooks="true")


class Entry:
    """An entry point that gives a value, or fails."""

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self._value = value

    def load(self) -> Any:
        if isinstance(self._value, Exception):
            raise self._value
        return self._value


class Rules:
    async def pre_tool_use(self, call: Any) -> None:
        return None

    async def subagent_stop(self, call: Any) -> None:
        return None


def plugins(monkeypatch: pytest.MonkeyPatch, value: Any) -> None:
    def entry_points(group: str) -> list[Entry]:
        return [Entry("house", value)] if group == "croze.hooks" else []

    monkeypatch.setattr("croze.app.hook_plugins.entry_points", entry_points)


@pytest.mark.parametrize("value", [Rules, Rules()])
def test_a_plugin_is_a_class_or_an_object_with_functions(
    monkeypatch: pytest.MonkeyPatch, value: Any
) -> None:
    plugins(monkeypatch, value)
    found = load_hook_plugins(("house",))
    assert [(plugin.point, plugin.name) for plugin in found] == [
        ("PreToolUse", "house"),
        ("SubagentStop", "house"),
    ]


@pytest.mark.parametrize("value", [ImportError("gone"), ValueError("bad"), SimpleNamespace(), 3])
def test_a_plugin_that_cannot_be_loaded_is_named(
    monkeypatch: pytest.MonkeyPatch, value: Any
) -> None:
    plugins(monkeypatch, value)
    with pytest.raises(ConfigError, match="house can't be loaded"):
        load_hook_plugins(("house",))


def test_a_plugin_that_is_not_installed_is_named_with_those_that_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plugins(monkeypatch, Rules)
    with pytest.raises(ConfigError) as caught:
        load_hook_plugins(("other",))
    assert "other" in caught.value.message
    assert "house" in caught.value.hint
