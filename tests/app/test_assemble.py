"""What the settings put into a session: plugins, the temperature, keys."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from croze.app.app import App
from croze.app.config import load
from croze.app.models import environment_with_keys
from croze.app.options import RunOptions
from croze.types.errors import ConfigError
from croze.types.event import HeadSet, ToolReturned
from tests.model_server import ModelServer, Reply

PLUGIN = '''
from typing import ClassVar
from croze.tools.base import Tool, ToolSpec
from croze.types.tool import Access, ToolResult

class Greet(Tool, frozen=True):
    """Greets somebody by name."""
    spec: ClassVar[ToolSpec] = ToolSpec(name="greet", summary="greets", access=Access(read=True))
    name: str
    async def run(self, ctx):
        return ToolResult(ok=True, message=f"Good day, {self.name}.")
'''


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed distribution with one tool."""
    site = tmp_path / "site"
    info = site / "croze_greeter-1.dist-info"
    info.mkdir(parents=True)
    (site / "croze_greeter.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: croze-greeter\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[croze.tools]\ngreeter = croze_greeter:Greet\n")
    monkeypatch.syspath_prepend(str(site))
    yield
    sys.modules.pop("croze_greeter", None)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home")}


def configure(env: dict[str, str], text: str) -> None:
    path = Path(env["HOME"]) / ".config/croze/config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.usefixtures("plugin")
async def test_a_plugin_that_the_user_names_is_a_tool_of_the_session(
    project: Path, tmp_path: Path, env: dict[str, str]
) -> None:
    script = tmp_path / "s.yaml"
    script.write_text("- calls: [{name: greet, args: {name: Ann}}]\n- text: Done.\n")
    said = []
    for settings in ("", "[plugins]\ntools = ['greeter']\n"):
        configure(env, settings)
        app = App.open(cwd=project, env=env)
        session = await app.session(RunOptions(model=f"scripted:{script}", headless=True))
        await session.submit("greet Ann")
        said += [e.body for e in session.events if isinstance(e.body, ToolReturned)]
        await app.aclose()
    assert [body.ok for body in said] == [False, True]
    assert said[1].message == "Good day, Ann."


async def test_a_plugin_that_is_not_installed_is_a_usage_error(
    project: Path, tmp_path: Path, env: dict[str, str]
) -> None:
    script = tmp_path / "s.yaml"
    script.write_text("[]")
    configure(env, "[plugins]\ntools = ['nobody']\n")
    app = App.open(cwd=project, env=env)
    with pytest.raises(ConfigError, match="nobody is not installed") as caught:
        await app.session(RunOptions(model=f"scripted:{script}"))
    assert caught.value.code == "plugin_unknown"
    await app.aclose()


def test_a_project_can_not_name_plugins(project: Path, env: dict[str, str]) -> None:
    (project / ".croze").mkdir()
    (project / ".croze/config.toml").write_text("[plugins]\ntools = ['evil']\n")
    config = load(project, env=env, trust=True)
    assert config.settings.plugins.tools == ()
    assert [notice.code for notice in config.notices] == ["project_may_not"]


async def test_the_temperature_goes_out_with_every_request(
    project: Path, env: dict[str, str]
) -> None:
    async with ModelServer([Reply(text="a"), Reply(text="b")]) as server:
        env |= {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": server.url}
        for settings in ("", "[model]\ntemperature = 0.5\n"):
            configure(env, settings)
            app = App.open(cwd=project, env=env)
            session = await app.session(RunOptions(model="openai:test", headless=True))
            await session.submit("hi")
            await app.aclose()
        bodies = [request.json for request in server.requests]
    assert "temperature" not in bodies[0]
    assert bodies[1]["temperature"] == 0.5


async def test_another_temperature_is_recorded_when_a_conversation_goes_on(
    project: Path, env: dict[str, str]
) -> None:
    async with ModelServer([Reply(text="a"), Reply(text="b"), Reply(text="c")]) as server:
        env |= {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": server.url}
        app = App.open(cwd=project, env=env)
        session = await app.session(RunOptions(model="openai:test", headless=True))
        await session.submit("hi")
        await app.aclose()
        configure(env, "[model]\ntemperature = 0.5\n")
        for model in (None, "openai:test"):
            app = App.open(cwd=project, env=env)
            session = await app.session(RunOptions(model=model, resume=session.id, headless=True))
            await session.submit("more")
            heads = [e.body for e in session.events if isinstance(e.body, HeadSet)]
            report = await app.replay(session.id)
            await app.aclose()
            assert report.divergence is None
        bodies = [request.json for request in server.requests]
    assert [body.get("temperature") for body in bodies] == [None, None, 0.5]
    assert [head.model.options.get("temperature") for head in heads] == [None, 0.5]
    assert len({head.head for head in heads}) == 1


@pytest.mark.parametrize("value", ["", "  "])
def test_an_empty_variable_hides_no_stored_key(
    project: Path, env: dict[str, str], value: str
) -> None:
    keys = Path(env["HOME"]) / ".config/croze/keys.toml"
    keys.parent.mkdir(parents=True)
    keys.write_text('openai = "stored"\n')
    keys.chmod(0o600)
    config = load(project, env=env)
    assert environment_with_keys(config, {"OPENAI_API_KEY": value})["OPENAI_API_KEY"] == "stored"
    assert environment_with_keys(config, {"OPENAI_API_KEY": "mine"})["OPENAI_API_KEY"] == "mine"
