"""Kept approval rules: where they lie, who may add to them, and what they say to past sessions."""

import asyncio
import json
import multiprocessing
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from croze.app import permissions
from croze.app.app import App
from croze.app.config import load
from croze.app.options import RunOptions
from croze.app.permissions import Trial
from croze.app.rules import KeptRules, RuleFile
from croze.tools.rule_syntax import Effect
from croze.types.agent import Mode
from croze.types.errors import ConfigError, UsageError
from croze.types.event import Answered, Asked, Event, ToolReturned


class Home:
    """A project, a home of its own, and sessions whose questions are answered as a test says."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / "project"
        self.project.mkdir()
        self.env = {"HOME": str(root / "home"), "PATH": "/usr/local/bin:/usr/bin:/bin"}

    def app(self) -> App:
        return App.open(cwd=self.project, env=self.env)

    def kept(self) -> KeptRules:
        return KeptRules.of(load(self.project, env=self.env))

    def model(self, *commands: str) -> str:
        replies: list[dict[str, Any]] = [
            {"calls": [{"name": "execute_command", "args": {"command": command}}]}
            for command in commands
        ]
        path = self.root / "script.yaml"
        path.write_text(json.dumps([*replies, {"text": "Done."}]))
        return f"scripted:{path}"

    async def session(
        self, *commands: str, answers: Sequence[str] = (), mode: Mode = "ask", **more: Any
    ) -> tuple[str, list[ToolReturned], list[Asked]]:
        """Play a session; its id, results, and the questions that were put."""
        given = list(answers)
        asked: list[Asked] = []
        app = self.app()
        options = RunOptions(
            model=self.model(*commands), mode=mode, sandbox="off", headless=not answers, **more
        )
        try:
            session = await app.session(options)

            def watch(item: object) -> None:
                if isinstance(item, Event) and isinstance(item.body, Asked):
                    asked.append(item.body)
                    if given:
                        answer, ask_id = given.pop(0), item.body.ask_id
                        asyncio.get_running_loop().call_soon(session.answer, ask_id, answer)

            session.subscribe(watch)
            async with asyncio.timeout(60):
                await session.submit("Go.")
            results = [e.body for e in session.events if isinstance(e.body, ToolReturned)]
            return session.id, results, asked
        finally:
            await app.aclose()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


async def test_always_holds_at_once_and_in_the_next_session(home: Home) -> None:
    _, results, asked = await home.session(
        "touch a && ls", "touch a", "touch b", answers=["always", "no"]
    )
    assert [result.ok for result in results] == [True, True, False]
    assert [each.rule for each in asked] == ["execute_command(touch a)", "execute_command(touch b)"]
    assert home.kept().project.rules().allow == ("execute_command(touch a)",)
    _, results, asked = await home.session("touch a", "touch b")
    assert [result.code for result in results] == [None, "not_allowed"]
    assert len(asked) == 1


async def test_a_question_carries_the_whole_command_its_parts_and_its_folder(home: Home) -> None:
    _, _, (asked,) = await home.session("ls -la && touch 'a b'", answers=["no"])
    assert asked.view is not None
    assert asked.view.body == "ls -la && touch 'a b'"
    assert [(part.text, bool(part.why)) for part in asked.parts] == [
        ("ls -la", False),
        ("touch 'a b'", True),
    ]
    assert (asked.cwd, asked.access) == (str(home.project), "execute")


async def test_looking_round_is_not_asked_about_and_commands_that_read_run_in_plan_mode(
    home: Home,
) -> None:
    (home.project / "a.txt").write_text("hello\n")
    _, results, asked = await home.session("cat a.txt | wc -l", "touch b", mode="plan")
    assert [result.code for result in results] == [None, "not_allowed"]
    assert not asked
    assert not (home.project / "b").exists()


async def test_a_refused_command_tells_the_model_what_to_do(home: Home) -> None:
    _, (result,), _ = await home.session("touch a", answers=["no"])
    assert (result.code, result.message) == ("refused", "The user refused this call.")
    assert "another way" in result.text
    _, (result,), _ = await home.session("touch a")
    assert result.code == "not_allowed"
    assert "--allow 'execute_command(touch a)'" in result.message


async def test_a_rule_that_another_process_adds_holds_in_a_running_session(home: Home) -> None:
    app = home.app()
    try:
        options = RunOptions(
            model=home.model("touch a", "touch b"), allow=("execute_command",), sandbox="off",
            headless=True,
        )  # fmt: skip
        session = await app.session(options)

        def watch(item: object) -> None:
            if isinstance(item, Event) and isinstance(item.body, ToolReturned):
                permissions.add(app.config, "user", "deny", "Bash(touch:*)")

        session.subscribe(watch)
        async with asyncio.timeout(60):
            await session.submit("Go.")
        results = [e.body for e in session.events if isinstance(e.body, ToolReturned)]
    finally:
        await app.aclose()
    assert [result.code for result in results] == [None, "not_allowed"]
    assert "deny Bash(touch:*)" in results[1].message


async def test_the_flag_of_a_refusal_allows_exactly_that_call_in_the_next_run(home: Home) -> None:
    command = "echo 'it'\"'\"'s  two' > x\ntouch y"
    _, (refused,), _ = await home.session(command)
    assert refused.data is not None
    flag = refused.data["flag"]
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", f"printf '%s\\0' {flag}", stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    words = out.decode().split("\0")[:-1]
    _, (result,), _ = await home.session(command, allow=tuple(words[1::2]))
    assert result.ok
    assert (home.project / "x").read_text() == "it's  two\n"


def test_rules_lie_outside_of_the_repository_whatever_the_project_says(home: Home) -> None:
    """A trusted project may choose the log's folder; rules that lie there are not the user's."""
    planted = home.project / "store"
    planted.mkdir()
    (planted / "rules.json").write_text('{"allow": ["execute_command"]}')
    env = {**home.env, "CROZE_STORE__STORAGE_PATH": str(planted)}
    config = load(home.project, env=env)
    assert KeptRules.of(config)().allow == ()
    _, path = permissions.add(config, "project", "allow", "Bash(make)")
    assert home.project not in path.parents


def test_files_are_for_the_user_alone(home: Home) -> None:
    config = load(home.project, env=home.env)
    for scope in ("user", "project"):
        _, path = permissions.add(config, scope, "deny", "Bash(rm:*)")  # type: ignore[arg-type]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) & 0o077 == 0
        assert {each.name for each in path.parent.iterdir()} == {"rules.json", "rules.json.lock"}


def test_rules_are_added_once_listed_with_their_source_and_removed(home: Home) -> None:
    env = {**home.env, "CROZE_PERMISSIONS__ASK": "Bash(git push:*)"}
    config = load(home.project, env=env)
    assert permissions.add(config, "user", "deny", "Bash(rm:*)")[0]
    assert not permissions.add(config, "user", "deny", "Bash(rm:*)")[0]
    assert permissions.add(config, "project", "allow", " nope(x) ")[0]
    found = permissions.rules(config)
    assert [(rule.effect, rule.rule, rule.source, rule.known) for rule in found] == [
        ("deny", "Bash(rm:*)", "user", True),
        ("ask", "Bash(git push:*)", "settings: environment", True),
        ("allow", "nope(x)", "project", False),
    ]
    assert permissions.remove(config, ["user", "project"], None, "Bash(rm:*)")[0][0] == "deny"
    assert permissions.remove(config, ["user", "project"], "deny", "nope(x)") == ()
    assert [rule.rule for rule in permissions.rules(config)] == ["Bash(git push:*)", "nope(x)"]


def test_a_project_may_add_to_ask_and_deny_but_not_to_allow(home: Home) -> None:
    from croze.app.config import Layer, _merge

    values: dict[tuple[str, ...], Any] = {}
    notices: list[Any] = []
    given = {("permissions", name): ["Bash(make)"] for name in ("allow", "ask", "deny")}
    _merge(Layer("project", "p", given), values, {}, notices)
    assert set(values) == {("permissions", "ask"), ("permissions", "deny")}
    assert len(notices) == 1


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        '{"allow": "x"}',
        '{"allow": [1]}',
        '{"alow": []}',
        '{"deny": ["Bash("]}',
        "\xff",
    ],
)
async def test_a_broken_file_lets_nothing_run(home: Home, content: str) -> None:
    path = home.kept().user.path
    path.parent.mkdir(parents=True)
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigError) as caught:
        await home.session("ls")
    assert str(path) in caught.value.message
    with pytest.raises(ConfigError):
        permissions.add(load(home.project, env=home.env), "user", "allow", "Bash(ls)")
    assert path.read_bytes() == content.encode("latin-1")


def test_a_bad_rule_is_not_kept(home: Home) -> None:
    config = load(home.project, env=home.env)
    for rule in ("Bash(", "", "Edit(\ud800)"):
        with pytest.raises(ConfigError):
            permissions.add(config, "user", "allow", rule)
    assert not KeptRules.of(config).user.path.exists()


def _add_many(path: str, effect: Effect, first: int) -> None:
    file = RuleFile(Path(path))
    for number in range(first, first + 25):
        file.add(effect, f"Bash(make {number})")


def test_two_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=_add_many, args=(str(path), "allow", number)) for number in (0, 100)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=100)
        assert worker.exitcode == 0
    assert len(RuleFile(path).rules().allow) == 50


def test_a_command_is_judged_without_being_run(home: Home) -> None:
    app = home.app()
    permissions.add(app.config, "project", "allow", "Bash(npm test:*)")
    trial = Trial(sandbox="off")
    found = permissions.judge(app, "ls && npm test; touch x", trial, tool="execute_command")
    assert (found.verdict, found.kind, found.understood) == ("ask", "execute", True)
    assert [(part.text, bool(part.why), part.allowed) for part in found.parts] == [
        ("ls", False, False),
        ("npm test", True, True),
        ("touch x", True, False),
    ]
    assert not (home.project / "x").exists()
    tried = Trial(sandbox="off", allow=("Bash(touch x)",))
    assert permissions.judge(app, "touch x", tried, tool="Bash").verdict == "allow"
    alone = Trial(sandbox="off", alone=True)
    assert permissions.judge(app, "npm test", alone, tool="Bash").verdict == "ask"
    assert permissions.judge(app, "npm test", Trial(mode="plan"), tool="Bash").verdict == "deny"
    assert permissions.judge(app, ".env", alone, tool="Read").verdict == "ask"
    assert permissions.judge(app, "src/a", alone, tool="Write").kind == "write"
    with pytest.raises(UsageError):
        permissions.judge(app, "x", alone, tool="nope")


async def test_past_sessions_are_judged_again_by_other_rules(home: Home) -> None:
    session, _, _ = await home.session(
        "ls", "touch a", "touch b", "touch a", answers=["once", "no", "once"]
    )
    app = home.app()
    try:
        same = await permissions.simulate(app, [session], Trial(sandbox="off"))
        assert (same.questions_then, same.questions_now, same.unread) == (3, 3, 0)
        assert [call.answer for call in same.calls] == ["", "once", "no", "once"]
        assert not any(call.saved or call.risk for call in same.calls)
        freer = Trial(sandbox="off", allow=("Bash(touch:*)",), ask=("Bash(ls)",))
        found = await permissions.simulate(app, [session[:8]], freer)
        assert (found.questions_then, found.questions_now) == (3, 1)
        assert [call.saved for call in found.calls] == [False, True, True, True]
        assert [call.risk for call in found.calls] == [False, True, True, True]
        tighter = await permissions.simulate(app, [session], Trial(mode="plan"))
        assert [call.now for call in tighter.calls] == ["allow", "deny", "deny", "deny"]
    finally:
        await app.aclose()
    assert not (home.project / "b").exists()


async def test_answers_and_rules_are_in_the_log(home: Home) -> None:
    session, _, _ = await home.session("touch a", answers=["always"])
    app = home.app()
    try:
        events = await app.store.read(session)
    finally:
        await app.aclose()
    assert [e.body.answer for e in events if isinstance(e.body, Answered)] == ["always"]
    assert [e.body.rule for e in events if isinstance(e.body, Asked)] == [
        "execute_command(touch a)"
    ]
