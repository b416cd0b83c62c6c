"""External tools and skills in whole sessions: told, loaded, run under approval, in both protocols."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from croze.app import external_tools
from croze.app.app import App
from croze.app.options import RunOptions
from croze.types.agent import Mode
from croze.types.event import Asked, Event, FactAdded, ModelCalled
from tests.scenarios.conftest import Played, Stage, croze

TOOL = """\
#!/bin/sh
# Usage: count.sh FILE
#
# Counts the lines of FILE.
[ "$1" = help ] && echo "Usage: count.sh FILE, in full" && exit
wc -l <"$1"
"""
SKILL = """\
---
name: greet
description: Greets people by their names.
allowed-tools: Bash(./tool.sh:*) Bash(python:*) Read
---
See references/words.md, then run scripts/hi.sh NAME.
"""
ASKED = (
    "for i in $(seq 200); do grep -qs 'in full' $XDG_CACHE_HOME/croze/tools.json && break; "
    "sleep 0.1; done; .croze/tools/count.sh a.txt"
)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_tools, "BESIDE", 0.0)


def trust(stage: Stage, *paths: str) -> None:
    config = App.open(cwd=stage.project).config
    config.trust.add({path: (stage.project / path).read_bytes() for path in paths})


def tool(stage: Stage) -> None:
    stage.write(".croze/tools/count.sh", TOOL).chmod(0o755)
    stage.write("a.txt", "1\n2\n3\n")


def skill(stage: Stage, *, trusted: bool = True) -> None:
    stage.write(".croze/skills/greet/SKILL.md", SKILL)
    stage.write(".croze/skills/greet/references/words.md", "Say hello.\n")
    stage.write(".croze/skills/greet/scripts/hi.sh", 'echo "hello $1"\n')
    stage.write("tool.sh", '#!/bin/sh\necho "ran $1"\n').chmod(0o755)
    if trusted:
        folder = ".croze/skills/greet"
        trust(
            stage, f"{folder}/SKILL.md", f"{folder}/references/words.md", f"{folder}/scripts/hi.sh"
        )


def facts(events: tuple[Event, ...], key: str) -> list[FactAdded]:
    return [e.body for e in events if isinstance(e.body, FactAdded) and e.body.key == key]


async def answered(
    stage: Stage, script: str, answer: Callable[[Asked], str], *, mode: Mode = "ask"
) -> tuple[Played, list[Asked]]:
    """A turn with a user, who answers."""
    app = App.open(cwd=stage.project)
    asked: list[Asked] = []
    options = RunOptions(
        model=stage.script(script),
        dialect="xml" if stage.dialect == "xml" else "native",
        mode=mode,
        sandbox="off",
    )
    try:
        session = await app.session(options)

        def watch(item: object) -> None:
            if isinstance(item, Event) and isinstance(item.body, Asked):
                asked.append(item.body)
                session.answer(item.body.ask_id, answer(item.body), "")

        session.subscribe(watch)
        async with asyncio.timeout(60):
            stopped = await session.submit("Do it.")
        return Played(session.id, stopped, session.events), asked
    finally:
        await app.aclose()


async def test_a_tool_is_told_at_the_opening_and_its_help_once_it_was_asked(stage: Stage) -> None:
    tool(stage)
    trust(stage, ".croze/tools/count.sh")
    script = f"""
- calls: [{{name: execute_command, args: {{command: "{ASKED}"}}}}]
- text: Three.
"""
    played = await stage.play(script)
    (result,) = played.results
    assert result.text.strip() == "3"
    first, second = facts(played.events, "tools")
    assert "Usage: count.sh FILE\n\nCounts the lines of FILE." in first.text
    assert 'run=".croze/tools/count.sh"' in first.text
    assert first.layer == "documentation"
    assert first.reply
    assert "Usage: count.sh FILE, in full" in second.text
    assert "in place of what was told before" in second.text
    assert not second.reply
    assert await stage.divergence(played.session) is None
    again = await stage.play("- text: Again.\n", resume=played.session)
    assert len(facts(again.events, "tools")) == 2
    fresh = await stage.play("- text: Fresh.\n")
    (only,) = facts(fresh.events, "tools")
    assert "in full" in only.text


async def test_tools_that_nobody_trusts_are_not_told_and_not_run(stage: Stage) -> None:
    marker = stage.project / "ran"
    stage.write(".croze/tools/evil.sh", f"#!/bin/sh\n# Usage: evil\ntouch {marker}\n").chmod(0o755)
    stage.write(".autocodertools/evil2.sh", f"touch {marker}\n")
    played = await stage.play("- text: Done.\n")
    assert facts(played.events, "tools") == []
    assert not marker.exists()


async def test_a_command_of_a_tool_asks_as_any_command_does(stage: Stage) -> None:
    tool(stage)
    trust(stage, ".croze/tools/count.sh")
    script = """
- calls: [{name: execute_command, args: {command: .croze/tools/count.sh a.txt}}]
- text: Done.
"""
    refused = await stage.play(script, mode="ask")
    assert [result.code for result in refused.results] == ["not_allowed"]
    rule = "execute_command(.croze/tools/count.sh:*)"
    allowed = await stage.play(script, mode="ask", allow=(rule,))
    assert [result.ok for result in allowed.results] == [True]


LOADS = """
- calls: [{name: call_tool, args: {name: load_skill, arguments: {name: greet}}}]
- calls:
  - {name: call_tool, args: {name: load_skill, arguments: {name: greet, file: references/words.md}}}
- calls: [{name: execute_command, args: {command: sh .croze/skills/greet/scripts/hi.sh Ada}}]
- text: Done.
"""


async def test_a_skill_is_told_by_its_line_and_loaded_read_and_run_under_approval(
    stage: Stage,
) -> None:
    skill(stage)
    played, asked = await answered(
        stage, LOADS, lambda question: "no" if question.kind == "question" else "once"
    )
    (fact,) = facts(played.events, "skills")
    assert "- greet: Greets people by their names." in fact.text
    assert "references/words.md" not in fact.text
    body, words, ran = played.results
    assert body.text.startswith("See references/words.md, then run scripts/hi.sh NAME.")
    assert "- scripts/hi.sh" in body.text
    assert "the user's rules hold as before" in body.text
    assert "Bash(python:*): that is too wide" in body.text
    assert words.text == "Say hello.\n"
    assert ran.text == "hello Ada"
    assert [question.kind for question in asked] == ["question", "approval"]
    assert await stage.divergence(played.session) is None


async def test_what_a_skill_asks_for_is_allowed_after_the_users_yes_and_deny_stays(
    stage: Stage,
) -> None:
    skill(stage)
    script = """
- calls: [{name: call_tool, args: {name: load_skill, arguments: {name: greet}}}]
- calls: [{name: execute_command, args: {command: ./tool.sh one}}]
- calls: [{name: execute_command, args: {command: ./tool.sh two}}]
- calls: [{name: call_tool, args: {name: load_skill, arguments: {name: greet}}}]
- text: Done.
"""
    played, asked = await answered(
        stage, script, lambda question: "yes" if question.kind == "question" else "no"
    )
    load, one, two, again = played.results
    assert "Without a question in this session: Bash(./tool.sh:*)." in load.text
    assert (one.text, two.text) == ("ran one", "ran two")
    assert [question.kind for question in asked] == ["question"]
    assert "Bash(./tool.sh:*)" in asked[0].text
    assert "python" not in asked[0].text
    assert again.ok
    stage.write(".croze/config.toml", '[permissions]\ndeny = ["Bash(./tool.sh:*)"]\n')
    trust(stage, ".croze/config.toml")
    denied, asked = await answered(stage, script, lambda _question: "yes")
    assert [result.ok for result in denied.results] == [True, False, False, True]


async def test_without_a_user_a_skill_allows_nothing(stage: Stage) -> None:
    skill(stage)
    script = """
- calls: [{name: call_tool, args: {name: load_skill, arguments: {name: greet}}}]
- calls: [{name: execute_command, args: {command: ./tool.sh one}}]
- text: Done.
"""
    played = await stage.play(script, mode="ask")
    assert "the user's rules hold as before" in played.results[0].text
    assert played.results[1].code == "not_allowed"


async def test_a_skill_that_nobody_trusts_is_not_told_and_not_loaded(stage: Stage) -> None:
    skill(stage, trusted=False)
    played = await stage.play(LOADS)
    assert facts(played.events, "skills") == []
    assert [result.code for result in played.results[:2]] == ["untrusted", "untrusted"]
    assert all("Greets people" not in result.text for result in played.results)


async def test_a_file_of_a_trusted_skill_that_was_changed_is_not_read(stage: Stage) -> None:
    skill(stage)
    stage.write(".croze/skills/greet/references/words.md", "Do something else.\n")
    played = await stage.play(LOADS)
    assert [result.code for result in played.results[:2]] == [None, "untrusted"]


async def test_an_unknown_skill_or_file_is_answered_with_what_there_is(stage: Stage) -> None:
    skill(stage)
    played = await stage.play("""
- calls: [{name: call_tool, args: {name: load_skill, arguments: {name: grete}}}]
- calls: [{name: call_tool, args: {name: load_skill, arguments: {name: greet, file: nope.md}}}]
- calls: [{name: call_tool, args: {name: load_skill, arguments: {name: greet, file: ../../../a}}}]
- text: Done.
""")
    unknown, nothing, outside = played.results
    assert unknown.code == "unknown_skill"
    assert "There are: greet." in unknown.message
    assert (nothing.code, outside.code) == ("no_such_file", "no_such_file")
    assert "- references/words.md" in nothing.text


async def test_a_skill_that_changes_or_goes_is_told_and_the_prefix_holds(stage: Stage) -> None:
    skill(stage)
    first = await stage.play("- text: One.\n")
    stage.write(".croze/skills/greet/SKILL.md", SKILL.replace("Greets", "Salutes"))
    trust(stage, ".croze/skills/greet/SKILL.md")
    second = await stage.play("- text: Two.\n", resume=first.session)
    told = facts(second.events, "skills")
    assert len(told) == 2
    assert "in place of what was told before" in told[1].text
    assert "Salutes people" in told[1].text
    (stage.project / ".croze/skills/greet/SKILL.md").unlink()
    third = await stage.play("- text: Three.\n", resume=first.session)
    assert "There are no skills any more" in facts(third.events, "skills")[-1].text
    calls = [e.body for e in third.events if isinstance(e.body, ModelCalled)]
    assert len(calls) == 3
    assert await stage.divergence(first.session) is None


async def test_an_agent_that_cannot_use_them_is_told_of_no_tools_and_skills(stage: Stage) -> None:
    tool(stage)
    skill(stage)
    trust(stage, ".croze/tools/count.sh")
    agents = App.open(cwd=Path.cwd()).config.paths.config / "agents"
    agents.mkdir(parents=True)
    (agents / "r.md").write_text("---\nname: r\ndescription: d\ntools: Read\n---\nYou read.\n")
    played = await stage.play("- text: One.\n", agent="r")
    assert facts(played.events, "tools") == facts(played.events, "skills") == []


def test_tools_and_skills_of_the_user_work_from_the_command_line_in_the_sandbox(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("1\n2\n")
    folder = tmp_path / "home/.config/croze"
    (folder / "tools").mkdir(parents=True)
    (folder / "tools/count").write_text(TOOL)
    (folder / "tools/count").chmod(0o755)
    (folder / "keys.toml").write_text('somebody = "hidden-value-1"\n')
    (folder / "keys.toml").chmod(0o600)
    (folder / "skills/greet/scripts").mkdir(parents=True)
    (folder / "skills/greet/SKILL.md").write_text(SKILL)
    (folder / "skills/greet/scripts/hi.sh").write_text('echo "hello $1"\n')
    (tmp_path / "script.yaml").write_text(f"""
- calls: [{{name: execute_command, args: {{command: "{folder}/tools/count a.txt"}}}}]
- calls: [{{name: execute_command, args: {{command: "sh {folder}/skills/greet/scripts/hi.sh Ada"}}}}]
- calls: [{{name: execute_command, args: {{command: "cat {folder}/keys.toml; ls -A {folder}"}}}}]
- calls: [{{name: execute_command, args: {{command: "touch {folder}/tools/more"}}}}]
- text: Done.
""")
    model = f"scripted:{tmp_path / 'script.yaml'}"
    ended = croze(
        project, "run", "--model", model, "--mode", "full", "--sandbox", "workspace",
        "--output-format", "stream-json", "Go.",
    )  # fmt: skip
    if "No OS sandbox" in ended.stderr:
        pytest.skip("no sandbox here")
    assert ended.returncode == 0, ended.stderr
    assert "hello Ada" in ended.stdout
    assert "hidden-value-1" not in ended.stdout
    assert not (folder / "tools/more").exists()


async def test_what_is_trusted_in_the_middle_of_a_conversation_counts_from_then_on(
    stage: Stage,
) -> None:
    skill(stage, trusted=False)
    tool(stage)
    app = App.open(cwd=stage.project)
    options = RunOptions(
        model=stage.script("- text: One.\n- text: Two.\n- text: Three.\n"),
        headless=True,
        sandbox="off",
    )
    try:
        session = await app.session(options)
        await session.submit("One")
        assert facts(session.events, "tools") == facts(session.events, "skills") == []
        trust(stage, ".croze/skills/greet/SKILL.md", ".croze/tools/count.sh")
        await session.submit("Two")
        (skills,), (tools,) = facts(session.events, "skills"), facts(session.events, "tools")
        assert "greet" in skills.text
        assert "count.sh" in tools.text
        assert not tools.reply
        stage.write(".croze/tools/count.sh", TOOL + "touch ran\n")
        await session.submit("Three")
        assert "There are no external tools any more" in facts(session.events, "tools")[-1].text
    finally:
        await app.aclose()
