"""An agent's file as the main agent: its prompt, its tools and nothing else, in both protocols."""

from pathlib import Path

import pytest

from croze.app.app import App
from croze.app.options import RunOptions
from croze.types.errors import UsageError
from croze.types.event import HeadSet
from tests.scenarios.conftest import Stage, croze

READER = """\
---
name: reader
description: Reads files.
tools: Read
max_turns: 5
---
You only read. TOKEN-OF-THE-READER
"""
TRIES = """
- calls: [{name: write_to_file, args: {path: a.txt, content: x}}]
- calls: [{name: execute_command, args: {command: touch a.txt}}]
- calls: [{name: call_tool, args: {name: write_to_file, arguments: {path: a.txt, content: x}}}]
- calls: [{name: read_file, args: {path: b.txt}}]
- text: Done.
"""


def own(name: str, text: str) -> Path:
    """A file among the user's own agents."""
    path = App.open(cwd=Path.cwd()).config.paths.config / "agents" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


async def test_an_agents_tool_list_is_what_it_has(stage: Stage) -> None:
    own("reader.md", READER)
    stage.write("b.txt", "words\n")
    played = await stage.play(TRIES, agent="reader")
    done = [(result.name, result.ok) for result in played.results]
    assert done[-1] == ("read_file", True)
    assert not any(ok for _name, ok in done[:-1])
    assert len(done) == (4 if stage.dialect == "native" else len(done))
    assert not (stage.project / "a.txt").exists()
    assert "ToolStarted write_to_file" not in played.story
    assert "ToolStarted execute_command" not in played.story


async def test_an_agent_without_tools_answers_in_words(stage: Stage) -> None:
    own("quiet.md", "---\nname: quiet\ndescription: Talks.\ntools:\n---\nYou talk.\n")
    played = await stage.play("- text: Words.\n", agent="quiet")
    assert (played.stopped.reason, played.stopped.text) == ("done", "Words.")


async def test_the_head_is_made_of_the_agents_prompt_and_kept_on_resume(stage: Stage) -> None:
    file = own("reader.md", READER)
    stage.write("AGENTS.md", "The project's law.")
    first = await stage.play("- text: One.\n", agent="reader")
    file.unlink()
    again = await stage.play("- text: Two.\n", resume=first.session)
    heads = [event.body for event in again.events if isinstance(event.body, HeadSet)]
    assert {head.head for head in heads} == {heads[0].head}
    assert {head.agent.name for head in heads} == {"reader"}
    assert "TOKEN-OF-THE-READER" in heads[-1].agent.prompt
    assert heads[-1].agent.tools == ("read_file",)
    assert not any("FactAdded law" in line for line in again.story)


async def test_a_named_agent_gets_the_projects_law_where_it_asks_for_rules(stage: Stage) -> None:
    own("ruled.md", "---\nname: ruled\ndescription: d\ninclude_rules: true\n---\nYou.\n")
    stage.write("AGENTS.md", "The project's law.")
    played = await stage.play("- text: One.\n", agent="ruled")
    assert "FactAdded law" in played.story


async def test_an_agents_own_limit_ends_its_turn(stage: Stage) -> None:
    own("short.md", "---\nname: short\ndescription: d\nmax_turns: 1\n---\nYou.\n")
    stage.write("b.txt", "words\n")
    script = "- calls: [{name: read_file, args: {path: b.txt}}]\n- text: Done.\n"
    played = await stage.play(script, agent="short")
    assert (played.stopped.reason, played.stopped.steps) == ("steps", 1)


async def test_another_agent_can_go_on_with_a_conversation(stage: Stage) -> None:
    own("reader.md", READER)
    first = await stage.play("- text: One.\n", agent="reader")
    again = await stage.play("- text: Two.\n", resume=first.session, agent="main")
    heads = [event.body for event in again.events if isinstance(event.body, HeadSet)]
    assert [head.agent.name for head in heads] == ["reader", "main"]
    assert heads[-1].agent.prompt == ""


async def test_an_unknown_agent_is_refused_with_the_names_there_are(stage: Stage) -> None:
    own("reader.md", READER)
    with pytest.raises(UsageError) as caught:
        await stage.play("- text: One.\n", agent="raeder")
    assert caught.value.code == "unknown_agent"
    assert "main" in caught.value.hint
    assert "reader" in caught.value.hint


async def test_a_project_that_is_not_trusted_lends_no_agent(stage: Stage) -> None:
    stage.write(".croze/agents/reader.md", READER)
    with pytest.raises(UsageError) as caught:
        await stage.play("- text: One.\n", agent="reader")
    assert caught.value.code == "agent_untrusted"
    assert caught.value.params["path"] == ".croze/agents/reader.md"


async def test_a_trusted_projects_agent_is_its_content_not_its_name(stage: Stage) -> None:
    file = stage.write(".croze/agents/reader.md", READER)
    App.open(cwd=stage.project).config.trust.add({".croze/agents/reader.md": file.read_bytes()})
    played = await stage.play("- text: One.\n", agent="reader")
    assert played.stopped.reason == "done"
    file.write_text(READER.replace("tools: Read", "tools: *"))
    with pytest.raises(UsageError, match="don't trust"):
        await stage.play("- text: One.\n", agent="reader")


async def test_what_an_agent_names_that_is_not_there_is_told_and_the_rest_holds(
    stage: Stage,
) -> None:
    own(
        "odd.md",
        "---\nname: odd\ndescription: d\ntools: Read, fly\nmodel: sonnet\n---\nYou.\n",
    )
    app = App.open(cwd=stage.project)
    config = app.config
    options = RunOptions(headless=True, agent="odd", dialect="native")
    try:
        overrides = {"model.model": stage.script("- text: One.\n")}
        app = App.open(cwd=stage.project, overrides=overrides)
        session = await app.session(options)
        notices = [
            e.body for e in session.events if getattr(e.body, "code", "") == "agent_model_unknown"
        ]
        (head,) = (e.body for e in session.events if isinstance(e.body, HeadSet))
        assert head.agent.tools == ("read_file",)
        assert head.model.wire == "scripted"
        assert len(notices) == 1
    finally:
        await app.aclose()
    assert config.notices == ()


def test_the_command_line_says_why_an_agent_cannot_be_used(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".claude/agents").mkdir(parents=True)
    (project / ".claude/agents/reader.md").write_text(READER)
    (tmp_path / "script.yaml").write_text("- text: One.\n")
    model = f"scripted:{tmp_path / 'script.yaml'}"
    ended = croze(project, "run", "--model", model, "--agent", "reader", "Go.")
    assert ended.returncode == 2
    assert "don't trust" in ended.stderr
    ended = croze(project, "run", "--model", model, "--agent", "nobody", "Go.")
    assert ended.returncode == 2
    assert "explore, general" in ended.stderr
    ended = croze(project, "run", "--model", model, "Go.")
    assert (ended.returncode, ended.stdout) == (0, "One.\n")
    assert [line for line in ended.stderr.splitlines() if "trusted" in line] == [
        "croze: not trusted, so without effect: .claude/agents "
        "(`croze trust` shows them and trusts them)"
    ]


DELEGATES = """
replies:
- calls:
  - name: call_tool
    args:
      name: run_named_subagents
      arguments: {subagents: "mode: serial\\nsubagents:\\n- {name: reader, task: look}"}
- text: Over.
agents:
- agent: reader
  replies:
  - calls: [{name: write_to_file, args: {path: a.txt, content: x}}]
  - calls: [{name: execute_command, args: {command: touch a.txt}}]
  - calls: [{name: read_file, args: {path: b.txt}}]
  - text: I could only read.
"""


async def test_an_agents_tool_list_holds_for_it_as_a_sub_agent_too(stage: Stage) -> None:
    own("reader.md", READER.replace("tools: Read", "tools: Read\nmodel: opus"))
    stage.write("b.txt", "words\n")
    played = await stage.play(DELEGATES)
    assert played.stopped.text == "Over."
    notices = [getattr(event.body, "code", "") for event in played.events]
    assert notices.count("agent_model_unknown") == 1
    (result,) = played.results
    assert result.ok
    assert "I could only read." in result.text
    assert not (stage.project / "a.txt").exists()


async def test_the_model_is_told_of_the_agents_there_are_with_their_tools(stage: Stage) -> None:
    own("reader.md", READER)
    own("alien.md", "---\nname: alien\ndescription: Knows space.\n---\nYou.\n")
    app = App.open(cwd=stage.project)
    options = RunOptions(model=stage.script("- text: Words.\n"), headless=True, sandbox="off")
    try:
        session = await app.session(options)
        (head,) = (e.body for e in session.events if isinstance(e.body, HeadSet))
        system = (await app.store.blob(head.head)).decode()
    finally:
        await app.aclose()
    first, second = system.index("alien: Knows space."), system.index("reader: Reads files.")
    assert first < second
    assert "read_file" in system[second : second + 60]


def test_a_bad_file_is_told_when_a_conversation_begins_and_not_again(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    bad = tmp_path / "home/.config/croze/agents/bad.md"
    bad.parent.mkdir(parents=True)
    bad.write_text("no front matter")
    (tmp_path / "script.yaml").write_text("- text: One.\n")
    model = f"scripted:{tmp_path / 'script.yaml'}"
    begun = croze(project, "run", "--model", model, "Go.")
    assert (begun.returncode, begun.stdout) == (0, "One.\n")
    assert f"Not used as agents: {bad} (it has no front matter" in begun.stderr
    again = croze(project, "run", "--model", model, "--continue", "Go.")
    assert again.returncode == 0
    assert "Not used as agents" not in again.stderr
