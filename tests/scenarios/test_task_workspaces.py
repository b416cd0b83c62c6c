"""Sub-agents in task workspaces: whole sessions of a parent and its children, in both protocols."""

import json
from pathlib import Path

from croze.app.agent_tree import agent_tree
from croze.app.app import App
from croze.app.timetravel import redo, undo
from croze.types.event import (
    ChildClosed,
    ChildOpened,
    Event,
    FactAdded,
    FilesChanged,
    ModelCalled,
    ToolReturned,
)
from croze.workspace.task_files import list_files, read_file
from tests.scenarios.conftest import Played, Stage, croze
from tests.scenarios.test_agents import own

APART = """\
---
name: apart
description: Works apart.
isolation: task
---
You work apart.
"""
HELPER = "---\nname: helper\ndescription: Helps.\n---\nYou help.\n"


def called(name: str) -> str:
    asked = f"mode: serial\nsubagents:\n  - {{name: {name}, task: Do your part.}}"
    return f"- calls: [{{name: run_named_subagents, args: {{subagents: {json.dumps(asked)}}}}}]\n"


def script(main: str, **agents: str) -> str:
    """The replies of the main agent and of the others, by their names."""
    parts = ["replies:", main.rstrip(), "agents:"]
    for name, replies in agents.items():
        lines = "\n".join(f"    {line}" for line in replies.strip().split("\n"))
        parts.append(f"  - agent: {name}\n    replies:\n{lines}")
    return "\n".join(parts) + "\n"


def child_of(played: Played) -> str:
    (opened,) = [e.body for e in played.events if isinstance(e.body, ChildOpened)]
    return opened.child


async def logs(stage: Stage, session: str) -> list[Event]:
    app = App.open(cwd=stage.project)
    try:
        return await app.store.read(session)
    finally:
        await app.aclose()


async def seen_by(stage: Stage, session: str) -> str:
    """Everything of a session that its model may have been shown."""
    app = App.open(cwd=stage.project)
    try:
        events = await app.store.read(session)
        heads = {e.body.head for e in events if hasattr(e.body, "head") and e.type == "HeadSet"}
        shown = [(await app.store.blob(head)).decode() for head in heads]
        shown += [str(e.body) for e in events if isinstance(e.body, FactAdded | ToolReturned)]
        assert any(isinstance(e.body, ModelCalled) for e in events)
        return "\n".join(shown)
    finally:
        await app.aclose()


def workspaces(stage: Stage) -> Path:
    return App.open(cwd=stage.project).config.store_folder / "workspaces"


WORK = """
- calls: [{name: write_to_file, args: {path: notes/a.md, content: Written apart.}}]
- calls: [{name: execute_command, args: {command: "pwd; cat notes/a.md; realpath notes/a.md; cat ../../none"}}]
- calls: [{name: read_file, args: {path: ../../log.db}}]
- calls: [{name: read_file, args: {path: kept.txt}}]
- calls: [{name: get_workspace_info, args: {}}]
- text: Done apart.
"""


async def test_a_sub_agent_works_apart_and_is_never_told_where(stage: Stage) -> None:
    own("apart.md", APART)
    stage.write("kept.txt", "the project's\n")
    played = await stage.play(script(called("apart") + "- text: Done.\n", apart=WORK))
    child = child_of(played)
    folder = workspaces(stage) / child
    assert (folder / "notes" / "a.md").read_text().rstrip() == "Written apart."
    assert folder.stat().st_mode & 0o777 == 0o700
    assert sorted(p.name for p in stage.project.rglob("*")) == ["kept.txt"]
    events = await logs(stage, child)
    write, command, out, other, info = [e.body for e in events if isinstance(e.body, ToolReturned)]
    assert write.ok
    assert command.text.startswith(".\nWritten apart.")
    assert "./notes/a.md" in command.text
    assert (out.ok, out.code) == (False, "path_traversal_blocked")
    assert (other.ok, other.code) == (False, "file_not_found")
    assert info.data["fileCount"] == 1
    shown = await seen_by(stage, child)
    assert "You work in a folder of your own" in shown
    for place in (folder, stage.project, workspaces(stage).parent):
        assert str(place) not in shown


async def test_not_even_a_file_that_holds_the_path_shows_it(stage: Stage) -> None:
    own("apart.md", APART)
    reads = """
- calls: [{name: execute_command, args: {command: "echo start $PWD/x end | tee long.txt > p.txt; for i in $(seq 900); do cat p.txt >> long.txt; done"}}]
- calls: [{name: read_file, args: {path: p.txt}}]
- calls: [{name: search_files, args: {regex: start}}]
- calls: [{name: execute_command, args: {command: cat long.txt}}]
- calls: [{name: execute_command, args: {command: "sleep 0.1; pwd", background: true}}]
- calls: [{name: background_task, args: {action: monitor, task_id: bg1, wait: 20}}]
- calls: [{name: session_start, args: {command: pwd, cwd: nowhere}}]
- text: Done.
"""
    played = await stage.play(script(called("apart") + "- text: Done.\n", apart=reads))
    child = child_of(played)
    results = [e.body for e in await logs(stage, child) if isinstance(e.body, ToolReturned)]
    assert results[1].text.endswith("start ./x end")
    assert "start ./x end" in results[2].text
    assert str(workspaces(stage)) not in await seen_by(stage, child)


async def test_what_it_changes_is_none_of_its_callers_files(stage: Stage) -> None:
    own("apart.md", APART)
    played = await stage.play(script(called("apart") + "- text: Done.\n", apart=WORK))
    assert not any(isinstance(e.body, FilesChanged) for e in played.events)
    (closed,) = [e.body for e in played.events if isinstance(e.body, ChildClosed)]
    assert (closed.report.ok, closed.report.text, closed.report.files) == (True, "Done apart.", ())
    changed = [
        e.body for e in await logs(stage, child_of(played)) if isinstance(e.body, FilesChanged)
    ]
    assert [change.path for body in changed for change in body.changes] == ["notes/a.md"]


async def test_an_agent_that_only_looks_leaves_no_folder(stage: Stage) -> None:
    own("apart.md", APART)
    looks = """
- calls: [{name: list_files, args: {path: .}}]
- calls: [{name: execute_command, args: {command: ls -A}}]
- calls: [{name: search_files, args: {regex: x}}]
- text: Nothing there.
"""
    played = await stage.play(script(called("apart") + "- text: Done.\n", apart=looks))
    assert not (workspaces(stage) / child_of(played)).exists()


async def test_those_below_work_in_their_nearest_ancestors_workspace(stage: Stage) -> None:
    own("apart.md", APART)
    own("helper.md", HELPER)
    helps = """
- calls: [{name: write_to_file, args: {path: helped.md, content: Helped.}}]
- text: Helped.
"""
    played = await stage.play(
        script(called("apart") + "- text: Done.\n", apart=called("helper") + "- text: Done.\n", helper=helps)
    )  # fmt: skip
    child = child_of(played)
    assert (workspaces(stage) / child / "helped.md").exists()
    assert [p.name for p in workspaces(stage).iterdir()] == [child]
    below = next(e.body.child for e in await logs(stage, child) if isinstance(e.body, ChildOpened))
    shown = await seen_by(stage, below)
    assert str(workspaces(stage)) not in shown
    assert str(stage.project) not in shown


async def test_two_runs_of_one_agent_are_kept_apart(stage: Stage) -> None:
    own("apart.md", APART)
    one = await stage.play(script(called("apart") + "- text: Done.\n", apart=WORK))
    two = await stage.play(script(called("apart") + "- text: Done.\n", apart=WORK))
    folders = {p.name for p in workspaces(stage).iterdir()}
    assert folders == {child_of(one), child_of(two)}


async def test_another_process_reads_the_tree_from_the_logs(stage: Stage) -> None:
    own("apart.md", APART)
    own("helper.md", HELPER)
    played = await stage.play(script(called("apart") + called("helper") + "- text: Done.\n",
        apart=WORK, helper="- text: Nothing.\n"))  # fmt: skip
    apart, helper = [e.body.child for e in played.events if isinstance(e.body, ChildOpened)]
    app = App.open(cwd=stage.project)
    try:
        tree = await agent_tree(app.config, app.conversations)
    finally:
        await app.aclose()
    (record,) = tree.records()
    assert (record.workspace_id, record.lazy_created) == (apart, True)
    assert record.workspace_path == str(workspaces(stage) / apart)
    found = tree.find_workspace(helper)
    assert found is not None
    assert found.root == stage.project.resolve()
    agent = tree.agent(apart)
    assert agent is not None
    assert (agent.role, agent.parent) == ("apart", played.session)


async def test_a_sub_agents_session_that_is_taken_up_again_is_where_it_was(stage: Stage) -> None:
    own("apart.md", APART)
    played = await stage.play(script(called("apart") + "- text: Done.\n", apart=WORK))
    child = child_of(played)
    again = "- calls: [{name: read_file, args: {path: notes/a.md}}]\n- text: Read.\n"
    resumed = await stage.play(again, resume=child)
    assert resumed.results[-1].ok
    assert "Written apart." in resumed.results[-1].text
    assert str(workspaces(stage)) not in await seen_by(stage, child)


async def test_an_undo_of_its_session_is_in_its_folder_not_in_the_project(stage: Stage) -> None:
    own("apart.md", APART)
    own("helper.md", HELPER)
    writes = (
        "- calls: [{name: write_to_file, args: {path: a.md, content: Apart.}}]\n- text: Done.\n"
    )
    played = await stage.play(
        script(
            called("apart") + "- text: Done.\n",
            apart=called("helper") + "- text: Done.",
            helper=writes,
        )
    )
    child = child_of(played)
    written = workspaces(stage) / child / "a.md"
    theirs = stage.write("a.md", written.read_text())
    app = App.open(cwd=stage.project)
    try:
        await undo(app, child)
        assert not written.exists()
        assert theirs.read_text().rstrip() == "Apart."
        await redo(app, child)
        assert written.exists()
        helper = next(
            e.body.child for e in await app.store.read(child) if isinstance(e.body, ChildOpened)
        )
        await undo(app, helper)
    finally:
        await app.aclose()
    assert not written.exists()
    assert theirs.read_text().rstrip() == "Apart."


async def test_after_a_kill_another_process_finds_what_was_written(stage: Stage) -> None:
    home = stage.project.parent / "home"
    (home / ".config" / "croze" / "agents").mkdir(parents=True)
    (home / ".config" / "croze" / "agents" / "apart.md").write_text(APART)
    dies = """
- calls: [{name: write_to_file, args: {path: notes/a.md, content: Kept.}}]
- calls: [{name: execute_command, args: {command: kill -9 $PPID}}]
"""
    model = stage.script(script(called("apart") + "- text: Done.\n", apart=dies))
    argv = ("run", "--model", model, "--dialect", stage.dialect, "--mode", "full")
    ended = croze(stage.project, *argv, "--sandbox", "off", "Do it.")
    assert ended.returncode == -9, ended.stderr
    app = App.open(cwd=stage.project, env={"HOME": str(home)})
    try:
        tree = await agent_tree(app.config, app.conversations)
    finally:
        await app.aclose()
    (record,) = tree.records()
    workspace = tree.find_workspace(record.workspace_id)
    assert record.lazy_created
    assert read_file(workspace, "notes/a.md")["content"].rstrip() == "Kept."
    assert list_files(workspace)["files"] == [{"name": "notes", "type": "directory", "size": 0}]


async def test_it_replays_to_the_same_bytes(stage: Stage) -> None:
    own("apart.md", APART)
    played = await stage.play(script(called("apart") + "- text: Done.\n", apart=WORK))
    assert await stage.divergence(child_of(played)) is None
    assert await stage.divergence(played.session) is None
