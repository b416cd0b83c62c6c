"""Whoever is spoken to can do no more for the speaker than the speaker itself can."""

from pathlib import Path

from croze.app.app import App
from croze.types.event import ToolReturned
from tests.scenarios.conftest import Stage

WRITES = "{calls: [{name: write_to_file, args: {path: out.txt, content: x}}]}"


def agent(name: str, head: str) -> None:
    path = App.open(cwd=Path.cwd()).config.paths.config / "agents" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nname: {name}\ndescription: Asks.\n{head}\n---\nYou ask.\n")


def orders(*names: str) -> str:
    rows = ", ".join(f"{{name: {name}, task: go}}" for name in names)
    return (
        "{calls: [{name: run_named_subagents, "
        f"args: {{subagents: 'mode: serial\n\n  subagents: [{rows}]'}}}}]}}"
    )


def says(to: str, message: str) -> str:
    return (
        "{calls: [{name: call_tool, args: {name: talk_to, "
        f"arguments: {{agent: {to}, message: {message}}}}}}}]}}"
    )


async def results_of(stage: Stage, name: str) -> list[ToolReturned]:
    """The results that the agents of this name had, oldest first."""
    app = App.open(cwd=stage.project)
    try:
        found = []
        for each in await app.conversations.list(include_children=True):
            if each.parent and each.name.startswith(f"{name}:"):
                found += [
                    e.body
                    for e in await app.store.read(each.id)
                    if isinstance(e.body, ToolReturned)
                ]
        return found
    finally:
        await app.aclose()


async def test_whoever_is_asked_has_no_more_tools_than_the_one_that_asks(stage: Stage) -> None:
    agent("reader", "tools: read_file, talk_to")
    played = await stage.play(
        f"""
replies:
- {orders("reader")}
- {says("general", "mine")}
- text: Done.
agents:
- agent: reader
  replies: [{says("general", "theirs")}, {{text: asked}}]
- agent: general
  task: mine
  replies: [{WRITES}, {{text: written}}]
- agent: general
  replies: [{WRITES}, {{text: not written}}]
"""
    )
    assert played.stopped.reason == "done"
    codes = [r.code for r in await results_of(stage, "general")]
    assert codes == ["unknown_tool", None]
    assert (stage.project / "out.txt").read_text() == "x\n"


async def test_one_that_is_kept_apart_reaches_the_project_through_nobody(stage: Stage) -> None:
    agent("scratch", "isolation: task")
    played = await stage.play(
        f"""
replies:
- {orders("scratch")}
- text: Done.
agents:
- agent: scratch
  replies: [{says("general", "write it")}, {{text: asked}}]
- agent: general
  replies: [{WRITES}, {{text: not written}}]
"""
    )
    assert played.stopped.reason == "done"
    assert not (stage.project / "out.txt").exists()


async def test_a_replay_knows_no_tool_that_the_agent_did_not_have(stage: Stage) -> None:
    agent("reader", "tools: read_file, run_named_subagents")
    await stage.play(
        f"""
replies:
- {orders("reader")}
- text: Done.
agents:
- agent: reader
  replies: [{orders("general")}, {{text: asked}}]
- agent: general
  replies: [{WRITES}, {{text: not written}}]
"""
    )
    app = App.open(cwd=stage.project)
    try:
        everyone = await app.conversations.list(include_children=True)
        reports = [await app.replay(each.id) for each in everyone]
        assert len(reports) == 3
        assert [report.divergence for report in reports] == [None] * 3
    finally:
        await app.aclose()
