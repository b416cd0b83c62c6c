"""Hooks at work in a live session: real programs at every point, over a real wire; each session is
replayed when it is closed, and no hook runs then."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from croze.agent.callbacks import POINTS as CALLBACKS
from croze.agent.hooks import MOST_HOLDS, HookRunner, PluginHook
from croze.app.paths import Paths
from croze.types.event import (
    Answered,
    Asked,
    Compacted,
    FactAdded,
    HooksRan,
    ModelCalled,
    Stopped,
    ToolReturned,
    ToolStarted,
    UserSaid,
)
from tests.agent.conftest import BOUND, Desk, bodies, is_event, kinds, seen
from tests.agent.test_compaction import SUMMARY, answers, files, reads

READ = [("read_file", {"path": "a.txt"})]


class Hooked:
    """A desk whose user has hooks; what a hook was told lies in a file of its name."""

    def __init__(self, desk: Desk, folder: Path) -> None:
        self.desk = desk
        self.folder = folder
        self._text = ""
        (desk.project / "a.txt").write_text("alpha\n")
        (desk.project / "b.txt").write_text("beta\n")

    def hook(self, point: str, script: str, **more: Any) -> None:
        """A shell script as a hook; `$told` is where it may leave what it was told."""
        path = self.folder / f"{point}{self._text.count('[[')}.sh"
        path.write_text(f"told={self.folder}/{point}.json\n{script}\n")
        options = "".join(f"{name} = {json.dumps(value)}\n" for name, value in more.items())
        self._text += f"[[{point}]]\ncommand = {json.dumps(f'sh {path}')}\n{options}\n"
        config = Paths.of(os.environ).config
        config.mkdir(parents=True, exist_ok=True)
        (config / "hooks.toml").write_text(self._text)

    def told(self, point: str) -> Any:
        return json.loads((self.folder / f"{point}.json").read_text())


@pytest.fixture
def hooked(dialect_desk: Desk, tmp_path: Path) -> Hooked:
    folder = tmp_path / "hooks"
    folder.mkdir()
    return Hooked(dialect_desk, folder)


def printing(**fields: Any) -> str:
    """A script that prints a PreToolUse answer."""
    answer = {"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}}
    return f"cat > $told; cat <<'END'\n{json.dumps(answer)}\nEND"


def sent(desk: Desk) -> str:
    """The newest request's body."""
    return desk.server.requests[-1].body.decode()


async def test_a_blocked_call_does_not_run_and_the_model_is_told_why(hooked: Hooked) -> None:
    hooked.hook("PreToolUse", "cat > $told; echo 'leave a.txt alone' >&2; exit 2", matcher="Read")
    desk = hooked.desk
    desk.says(desk.reply(calls=READ), desk.reply("I see."))
    session, [stopped] = await desk.run("Read it.")
    [result] = bodies(session.events, ToolReturned)
    assert (result.ok, result.code) == (False, "blocked_by_hook")
    assert "leave a.txt alone" in result.message
    assert bodies(session.events, ToolStarted) == []
    assert (stopped.reason, stopped.refused) == ("done", 1)
    told = hooked.told("PreToolUse")
    assert told["session_id"] == session.id
    assert told["cwd"] == str(desk.project)
    assert told["hook_event_name"] == "PreToolUse"
    assert (told["tool_name"], told["tool_input"]) == ("read_file", {"path": "a.txt"})
    assert "leave a.txt alone" in sent(desk)


async def test_another_input_is_checked_run_and_told_the_model(hooked: Hooked) -> None:
    hooked.hook("PreToolUse", printing(updatedInput={"file_path": "b.txt"}), matcher="Read")
    desk = hooked.desk
    desk.says(desk.reply(calls=READ), desk.reply("I see."))
    session, _ = await desk.run("Read it.")
    [result] = bodies(session.events, ToolReturned)
    assert result.ok
    assert "beta" in result.text
    assert "alpha" not in result.text
    assert "changed this call's input before it ran (path)" in result.text
    assert bodies(session.events, ToolStarted)[0].args == {"path": "b.txt"}
    assert bodies(session.events, HooksRan)[0].args == {"file_path": "b.txt"}


async def test_another_input_that_is_none_is_a_failure_and_nothing_runs(hooked: Hooked) -> None:
    hooked.hook("PreToolUse", printing(updatedInput={"start_line": "first"}))
    desk = hooked.desk
    desk.says(desk.reply(calls=READ), desk.reply("I see."))
    session, _ = await desk.run("Read it.")
    [result] = bodies(session.events, ToolReturned)
    assert (result.ok, result.code) == (False, "invalid_arguments")
    assert bodies(session.events, ToolStarted) == []


async def test_the_question_shows_the_new_input(hooked: Hooked) -> None:
    hooked.hook("PreToolUse", printing(updatedInput={"command": "rm other"}))
    desk = hooked.desk
    desk.says(desk.reply(calls=[("execute_command", {"command": "rm a.txt"})]), desk.reply("No."))
    async with desk.session(mode="ask", headless=False) as session:
        asked = seen(session, is_event(Asked))
        turn = asyncio.create_task(session.submit("Clean up."))
        question = (await asyncio.wait_for(asked, BOUND)).body
        assert question.view.body == "rm other"
        session.answer(question.ask_id, "no")
        await asyncio.wait_for(turn, BOUND)
    assert (desk.project / "a.txt").exists()


async def test_a_new_input_is_held_against_the_rules_again(hooked: Hooked) -> None:
    hooked.hook("PreToolUse", printing(updatedInput={"path": "b.txt"}, permissionDecision="allow"))
    desk = hooked.desk
    desk.says(desk.reply(calls=READ), desk.reply("I see."))
    session, _ = await desk.run("Read it.", deny=("read_file(b.txt)",))
    [result] = bodies(session.events, ToolReturned)
    assert (result.ok, result.code) == (False, "not_allowed")


async def test_a_hook_allows_what_would_be_asked(hooked: Hooked) -> None:
    hooked.hook("PreToolUse", printing(permissionDecision="allow"), matcher="Write")
    desk = hooked.desk
    write = [("write_to_file", {"path": "new.txt", "content": "new"})]
    desk.says(desk.reply(calls=write), desk.reply("Written."))
    session, [stopped] = await desk.run("Write it.", mode="ask")
    assert (desk.project / "new.txt").read_text().strip() == "new"
    assert stopped.refused == 0
    assert bodies(session.events, HooksRan)[0].decision == "allow"


async def test_a_hook_asks_about_what_would_just_run(hooked: Hooked) -> None:
    hooked.hook("PreToolUse", printing(permissionDecision="ask", permissionDecisionReason="look"))
    desk = hooked.desk
    desk.says(desk.reply(calls=READ), desk.reply("I see."))
    session, [stopped] = await desk.run("Read it.")
    [asked] = bodies(session.events, Asked)
    assert "a hook wants a question: look" in asked.text
    assert asked.options == ("once", "no")
    assert bodies(session.events, Answered)[0].by == "headless"
    assert stopped.refused == 1


async def test_calls_side_by_side_are_each_looked_at(hooked: Hooked) -> None:
    script = 'grep -q a.txt && { echo "not a" >&2; exit 2; }; exit 0'
    hooked.hook("PreToolUse", script, matcher="Read")
    desk = hooked.desk
    calls = [("read_file", {"path": name}) for name in ("b.txt", "a.txt", "b.txt")]
    desk.says(desk.reply(calls=calls), desk.reply("I see."))
    session, _ = await desk.run("Read them.")
    results = {r.call_id: r.ok for r in bodies(session.events, ToolReturned)}
    assert list(results.values()) == [True, False, True]
    assert len(bodies(session.events, ToolStarted)) == 2


async def test_the_model_hears_what_a_hook_says_of_a_result(hooked: Hooked) -> None:
    hooked.hook("PostToolUse", "cat > $told; echo 'the linter is not happy' >&2; exit 2")
    desk = hooked.desk
    desk.says(desk.reply(calls=[*READ, *READ]), desk.reply("I see."))
    session, _ = await desk.run("Read it.")
    told = hooked.told("PostToolUse")
    assert told["tool_response"]["success"] is True
    assert "alpha" in told["tool_response"]["text"]
    assert sent(desk).count("the linter is not happy") == 2
    assert all(result.ok for result in bodies(session.events, ToolReturned))


async def test_a_message_gets_more_context_or_is_dropped(hooked: Hooked) -> None:
    script = "cat > $told; grep -q forbidden $told && { echo 'not that' >&2; exit 2; }; echo it is raining"
    hooked.hook("UserPromptSubmit", script)
    desk = hooked.desk
    desk.says(desk.reply("Yes."), desk.reply("Again yes."))
    session, stops = await desk.run("Is it wet?", "the forbidden thing", "Sure?")
    assert [(s.reason, s.text) for s in stops] == [
        ("done", "Yes."),
        ("hook", "not that"),
        ("done", "Again yes."),
    ]
    assert len(bodies(session.events, UserSaid)) == 2
    assert len(bodies(session.events, ModelCalled)) == 2
    assert "it is raining" in sent(desk)
    assert "forbidden" not in sent(desk)
    dropped = bodies(session.events, HooksRan)[1]
    assert (dropped.decision, dropped.runs[0].message) == ("deny", "not that")


async def test_a_session_that_begins_or_ends_runs_its_hooks(hooked: Hooked) -> None:
    hooked.hook("SessionStart", "cat > $told; echo the branch is main")
    hooked.hook("SessionEnd", "cat > $told")
    desk = hooked.desk
    desk.says(desk.reply("Hello."), desk.reply("Hello again."))
    session, _ = await desk.run("Hi.")
    assert hooked.told("SessionStart")["source"] == "startup"
    assert hooked.told("SessionEnd")["hook_event_name"] == "SessionEnd"
    facts = [f for f in bodies(session.events, FactAdded) if f.key.startswith("hook:")]
    assert len(facts) == 1
    assert "the branch is main" in sent(desk)
    events = await desk.log(session.id)
    assert [h.point for h in bodies(events, HooksRan)] == ["SessionStart", "SessionEnd"]
    async with desk.session(resume=session.id) as again:
        await asyncio.wait_for(again.submit("Hi again."), BOUND)
    assert hooked.told("SessionStart")["source"] == "resume"


async def test_a_stop_hook_makes_the_turn_go_on_until_it_is_content(hooked: Hooked) -> None:
    hooked.hook(
        "Stop",
        f"cat > $told; test -e {hooked.folder}/tested || {{ touch {hooked.folder}/tested; "
        "echo 'run the tests first' >&2; exit 2; }",
    )
    desk = hooked.desk
    done = [("attempt_completion", {"result": "Done."})]
    desk.says(desk.reply(calls=done), desk.reply(calls=READ), desk.reply("Tested."))
    session, [stopped] = await desk.run("Do it.")
    assert (stopped.reason, stopped.text, stopped.steps) == ("done", "Tested.", 3)
    assert len(bodies(session.events, Stopped)) == 1
    assert hooked.told("Stop")["stop_hook_active"] is True
    assert hooked.told("Stop")["last_assistant_message"] == "Tested."
    assert "run the tests first" in sent(desk)


async def test_a_stop_hook_that_is_never_content_ends_all_the_same(hooked: Hooked) -> None:
    hooked.hook("Stop", "exit 2")
    desk = hooked.desk
    desk.says(*[desk.reply(f"Done {at}.") for at in range(MOST_HOLDS + 1)])
    session, [stopped] = await desk.run("Do it.")
    assert (stopped.reason, stopped.steps) == ("done", MOST_HOLDS + 1)
    assert "the turn ends" in bodies(session.events, HooksRan)[-1].runs[-1].message


async def test_a_limit_holds_against_a_stop_hook(hooked: Hooked) -> None:
    hooked.hook("Stop", "exit 2")
    desk = hooked.desk
    desk.says(*[desk.reply(f"Done {at}.") for at in range(9)])
    _, [stopped] = await desk.run("Do it.", max_turns=2)
    assert (stopped.reason, stopped.steps) == ("steps", 2)


async def test_a_hook_ends_the_turn(hooked: Hooked) -> None:
    hooked.hook("PostToolUse", """echo '{"continue": false, "stopReason": "budget is used"}'""")
    desk = hooked.desk
    desk.says(desk.reply(calls=READ), desk.reply("Never asked for."), desk.reply("Later."))
    session, [first, second] = await desk.run("Read it.", "And now?")
    assert (first.reason, first.text) == ("hook", "budget is used")
    assert second.reason == "done"
    assert len(bodies(session.events, ModelCalled)) == 2


async def test_a_hook_blocks_a_call_and_ends_the_turn_at_once(hooked: Hooked) -> None:
    hooked.hook("PreToolUse", """echo '{"continue": false, "stopReason": "stop here"}'""")
    desk = hooked.desk
    desk.says(desk.reply(calls=[*READ, *READ]), desk.reply("Never asked for."))
    session, [stopped] = await desk.run("Read it.")
    assert (stopped.reason, stopped.text, stopped.refused) == ("hook", "stop here", 2)
    assert bodies(session.events, ToolStarted) == []


BAD = {
    "exits with 1": ("echo broken >&2; exit 1", {}, "failed"),
    "prints rubbish": ("""echo '{"hookSpecificOutput": 1}'""", {}, "invalid"),
    "prints half an object": ("echo '{'", {}, "invalid"),
    "is killed": ("kill -9 $$", {}, "failed|killed"),
    "hangs with a child": ("sleep 600 & wait", {"timeout": 0.2}, "timeout"),
    "prints very much": ("head -c 3000000 /dev/zero | tr '\\0' x", {}, "invalid"),
    "is not there": ("exec /no/such/program", {}, "failed"),
    "is not executable": ("exec /etc/hostname", {}, "failed"),
}


@pytest.mark.parametrize("what", BAD)
async def test_a_bad_hook_is_told_and_breaks_nothing(what: str, desk: Desk, tmp_path: Path) -> None:
    script, more, ended = BAD[what]
    hooked = Hooked(desk, tmp_path)
    hooked.hook("PreToolUse", script, **more)
    desk.says(desk.reply(calls=READ), desk.reply("I see."))
    session, [stopped] = await desk.run("Read it.")
    assert [r.ok for r in bodies(session.events, ToolReturned)] == [True]
    assert (stopped.reason, stopped.refused) == ("done", 0)
    [ran] = bodies(session.events, HooksRan)
    assert ran.runs[0].ended in ended.split("|")  # the shell round it may tell of the signal
    assert ran.decision == ""


@pytest.mark.parametrize("what", ["exits with 1", "prints half an object", "hangs with a child"])
async def test_a_hook_that_must_not_fail_blocks_when_it_does(
    what: str, desk: Desk, tmp_path: Path
) -> None:
    script, more, _ = BAD[what]
    hooked = Hooked(desk, tmp_path)
    hooked.hook("PreToolUse", script, on_failure="block", **more)
    desk.says(desk.reply(calls=READ), desk.reply("I see."))
    session, _ = await desk.run("Read it.")
    assert [r.code for r in bodies(session.events, ToolReturned)] == ["blocked_by_hook"]


async def test_hooks_run_side_by_side_and_deny_wins(desk: Desk, tmp_path: Path) -> None:
    """Each waits for the other one: one after the other they would never end."""
    hooked = Hooked(desk, tmp_path)
    meet = "touch {own}; until test -e {other}; do sleep 0.01; done; "
    first, second = f"{tmp_path}/first", f"{tmp_path}/second"
    hooked.hook(
        "PreToolUse", meet.format(own=first, other=second) + printing(permissionDecision="allow")
    )
    hooked.hook("PreToolUse", meet.format(own=second, other=first) + "echo no >&2; exit 2")
    desk.says(desk.reply(calls=READ), desk.reply("I see."))
    session, _ = await desk.run("Read it.")
    [ran] = bodies(session.events, HooksRan)
    assert [run.ended for run in ran.runs] == ["ok", "blocked"]
    assert ran.decision == "deny"


@pytest.mark.parametrize(
    ("point", "codes"), [("PreToolUse", ["not_run"]), ("PostToolUse", [None]), ("Stop", [None])]
)
async def test_a_cancel_ends_a_hook_that_hangs(
    point: str, codes: list[Any], desk: Desk, tmp_path: Path
) -> None:
    hooked = Hooked(desk, tmp_path)
    hooked.hook(point, f"touch {tmp_path}/runs; sleep 600")
    desk.says(desk.reply(calls=READ), desk.reply("I see."))
    async with desk.session() as session:
        turn = asyncio.create_task(session.submit("Read it."))
        async with asyncio.timeout(BOUND):
            while not (tmp_path / "runs").exists():  # noqa: ASYNC110 - another program makes it
                await asyncio.sleep(0.01)
            session.cancel()
            assert (await turn).reason == "cancelled"
        assert [r.code for r in bodies(session.events, ToolReturned)] == codes


async def test_a_cancel_ends_a_hook_that_looks_at_a_message(desk: Desk, tmp_path: Path) -> None:
    hooked = Hooked(desk, tmp_path)
    hooked.hook("UserPromptSubmit", f"touch {tmp_path}/runs; sleep 600")
    async with desk.session() as session:
        turn = asyncio.create_task(session.submit("Hello."))
        async with asyncio.timeout(BOUND):
            while not (tmp_path / "runs").exists():  # noqa: ASYNC110 - another program makes it
                await asyncio.sleep(0.01)
            session.cancel()
            assert (await turn).reason == "cancelled"
        assert len(bodies(session.events, UserSaid)) == 1


async def test_a_notification_goes_out_when_the_user_is_asked(desk: Desk, tmp_path: Path) -> None:
    hooked = Hooked(desk, tmp_path)
    hooked.hook("Notification", "cat > $told.new; mv $told.new $told")
    desk.says(desk.reply(calls=[("execute_command", {"command": "rm a.txt"})]), desk.reply("No."))
    async with desk.session(mode="ask", headless=False) as session:
        asked = seen(session, is_event(Asked))
        turn = asyncio.create_task(session.submit("Clean up."))
        question = (await asyncio.wait_for(asked, BOUND)).body
        async with asyncio.timeout(BOUND):
            while not (tmp_path / "Notification.json").exists():  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)
            session.answer(question.ask_id, "no")
            await turn
    assert hooked.told("Notification")["message"] == question.text


async def test_the_transcript_holds_what_was_said(hooked: Hooked) -> None:
    hooked.hook("Stop", "cat > $told")
    desk = hooked.desk
    desk.says(desk.reply("I look.", calls=READ), desk.reply("It says alpha."))
    await desk.run("What does it say?")
    path = Path(hooked.told("Stop")["transcript_path"])
    assert path.stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["type"] for line in lines] == ["user", "assistant", "user", "assistant"]
    assert lines[0]["message"]["content"] == [{"type": "text", "text": "What does it say?"}]
    assert "alpha" in lines[2]["message"]["content"][0]["content"]
    assert lines[-1]["message"]["content"][0]["text"] == "It says alpha."


async def test_a_deleted_conversation_takes_its_transcript_along(hooked: Hooked) -> None:
    hooked.hook("Stop", "cat > $told")
    desk = hooked.desk
    desk.says(desk.reply("Hello."))
    session, _ = await desk.run("Hi.")
    async with desk.app() as app:
        await app.conversations.delete(session.id)
    assert not Path(hooked.told("Stop")["transcript_path"]).exists()


async def test_keys_are_not_in_a_hooks_environment(hooked: Hooked) -> None:
    hooked.hook("Stop", "env > $told")
    desk = hooked.desk
    desk.says(desk.reply("Hello."))
    await desk.run("Hi.")
    env = (hooked.folder / "Stop.json").read_text()
    assert f"CROZE_PROJECT_DIR={desk.project}" in env.splitlines()
    assert "sk-test-key" not in env


async def test_without_a_hook_nothing_of_hooks_is_recorded_or_written(desk: Desk) -> None:
    desk.says(desk.reply(calls=READ), desk.reply("I see."))
    session, _ = await desk.run("Read it.")
    assert "HooksRan" not in kinds(session.events)
    async with desk.app() as app:
        assert not (app.config.store_folder / "transcripts").exists()


async def test_callbacks_watch_what_hooks_have_decided(hooked: Hooked) -> None:
    """One bus: a callback sees the call as it ran, a blocked one never as begun."""
    hooked.hook("PreToolUse", printing(updatedInput={"path": "b.txt"}))
    desk = hooked.desk
    desk.says(desk.reply(calls=READ), desk.reply("I see."))
    args = []
    async with desk.session() as session:
        session.on("pre_tool_call", lambda event: args.append(event.body.args))
        await asyncio.wait_for(session.submit("Read it."), BOUND)
    assert args == [{"path": "b.txt"}]
    assert "pre_tool_call" in CALLBACKS


@pytest.fixture
def plugged(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[PluginHook]:
    """What the configured plugin offers."""
    functions: list[PluginHook] = []
    desk.overrides["plugins.hooks"] = "house"
    monkeypatch.setattr("croze.app.hook_plugins.load_hook_plugins", lambda _names: tuple(functions))
    (desk.project / "a.txt").write_text("alpha\n")
    return functions


async def test_a_python_hook_blocks_a_call(desk: Desk, plugged: list[PluginHook]) -> None:
    async def pre_tool_use(call: Any) -> dict[str, str]:
        call["tool_input"]["path"] = "elsewhere"  # concerns nobody else
        return {"decision": "block", "reason": f"not {call['tool_name']}"}

    plugged.append(PluginHook("PreToolUse", "house", pre_tool_use))
    desk.says(desk.reply(calls=READ), desk.reply("I see."))
    session, _ = await desk.run("Read it.")
    [result] = bodies(session.events, ToolReturned)
    assert "not read_file" in result.message


@pytest.mark.parametrize(
    "error", [RuntimeError("oh no"), asyncio.CancelledError(), TimeoutError(), SystemExit(3)]
)
async def test_what_a_python_hook_raises_breaks_nothing(
    error: BaseException, desk: Desk, plugged: list[PluginHook]
) -> None:
    async def broken(_value: Any) -> None:
        raise error

    for point in ("PreToolUse", "PostToolUse", "Stop", "UserPromptSubmit", "SessionStart"):
        plugged.append(PluginHook(point, "house", broken))  # type: ignore[arg-type]
    desk.says(desk.reply(calls=READ), desk.reply("I see."))
    session, [stopped] = await desk.run("Read it.")
    assert stopped.reason == "done"
    runs = [run for ran in bodies(session.events, HooksRan) for run in ran.runs]
    assert len(runs) == 5
    assert all(run.message and run.ended != "ok" for run in runs)


async def test_a_sub_agents_session_has_a_stop_of_its_own(desk: Desk) -> None:
    asked: list[str] = []

    async def subagent_stop(value: Any) -> dict[str, str]:
        asked.append(value["hook_event_name"])
        return {"decision": "block", "reason": "look again"}

    async def stop(_value: Any) -> None:
        raise AssertionError("a sub-agent's end is not the session's")

    desk.says(desk.reply("Hello."))
    async with desk.session() as session:
        await asyncio.wait_for(session.submit("Hi."), BOUND)
        live = session._live
        opened = live.log.events[0]
        child = msgspec.structs.replace(opened.body, parent="another")
        live.log.events[0] = msgspec.structs.replace(opened, body=child)
        runner = HookRunner(
            live=live,
            hooks=(),
            plugins=(
                PluginHook("SubagentStop", "house", subagent_stop),
                PluginHook("Stop", "house", stop),
            ),
            transcript=Path("/dev/null"),
            changed=lambda _hook: "",
        )
        held = await runner.stopping("Done.")
        live.log.events[0] = opened
    assert (held, asked) == (True, ["SubagentStop"])


async def test_a_compaction_is_announced(desk: Desk, plugged: list[PluginHook]) -> None:
    seen_at: list[str] = []

    async def pre_compact(value: Any) -> None:
        seen_at.append(value["trigger"])

    plugged.append(PluginHook("PreCompact", "house", pre_compact))
    files(desk, 9)
    desk.overrides["context.zone"] = "24k"
    answers(desk, reads(desk, 9), desk.reply(SUMMARY))
    session, [stopped] = await desk.run("Read all files.")
    assert stopped.reason == "done"
    compacted = bodies(session.events, Compacted)
    assert len(compacted) >= 1
    assert seen_at == ["auto"] * len(compacted)


async def test_a_compaction_that_the_user_asks_for_is_announced_as_such(
    desk: Desk, plugged: list[PluginHook]
) -> None:
    seen_at: list[str] = []

    async def pre_compact(value: Any) -> None:
        seen_at.append(value["trigger"])

    plugged.append(PluginHook("PreCompact", "house", pre_compact))
    files(desk, 9)
    answers(desk, [*reads(desk, 9), desk.reply("Still here.")], desk.reply(SUMMARY))
    async with desk.session() as session:
        await asyncio.wait_for(session.submit("Read all files."), BOUND)
        compacted = await asyncio.wait_for(session.compact(), BOUND)
        await asyncio.wait_for(session.submit("And now?"), BOUND)
    assert compacted is not None
    assert seen_at == ["manual"]
