"""Three sub-agents mend a real library (`real_library.py`): one reads, two change one file side by side."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.conftest import croze
from tests.scenarios.real_library import HERE, contents, suite

pytestmark = [pytest.mark.registry, pytest.mark.slow]

MODEL = f"scripted:{HERE / 'team.yaml'}"
AGENT = "---\nname: apart\ndescription: Works apart.\nisolation: worktree\n---\nYou change code.\n"
PLAN = """\
replies:
- text: "The base is looked at, and CHANGES.txt is written."
agents:
- agent: planner
  task: log (failed
  replies:
  - expect: "I can only read"
    text: |-
      tasks:
      - {id: note, agent: general, task: Write CHANGES.txt.}
      - {id: sum, needs: [find, note], task: Sum both up.}
- agent: planner
  replies:
  - calls: [{name: search_files, args: {regex: "class int_convert", path: parse.py}}]
  - expect: "class int_convert:"
    text: |-
      tasks:
      - {id: find, agent: explore, task: Find where integers are converted.}
      - {id: log, agent: explore, task: Write the changelog.}
      - {id: sum, needs: [find, log], task: Sum both up.}
- agent: explore
  task: Find where integers
  replies:
  - calls: [{name: search_files, args: {regex: "class int_convert", path: parse.py}}]
  - text: In int_convert of parse.py.
- {agent: explore, task: Write the changelog, replies: [{text: "NOT DONE: I can only read."}]}
- agent: general
  task: Write CHANGES.txt
  replies:
  - calls: [{name: write_to_file, args: {path: CHANGES.txt, content: "1.17.1\\n"}}]
  - text: CHANGES.txt has 1.17.1.
- agent: general
  task: Sum both up
  replies:
  - {expect: ["In int_convert of parse.py.", "CHANGES.txt has 1.17.1."], text: Both are there.}
"""
PAGE = "`{name}` of parse.py.\n\n## Use\n\nSee [the library](../../parse.py).\n"
DOCS = f"""\
agents:
- agent: docs-create
  replies:
  - text: |
      title: parse
      summary: Parsing by format strings.
      audience: its users
      scope: its API
- agent: docs-structure
  replies:
  - text: |
      title: parse
      pages:
      - {{path: parse.md, title: Parse, purpose: What it does., sources: [parse.py]}}
      - {{path: tests.md, title: Tests, purpose: What is tested., sources: [test_parse.py, parse.py]}}
- agent: docs-detail
  task: Your page is parse.md.
  replies: [{{text: {json.dumps("# Parse" + chr(10) * 2 + PAGE.format(name="parse"))}}}]
- agent: docs-detail
  task: Your page is tests.md.
  replies: [{{text: {json.dumps("# Tests" + chr(10) * 2 + PAGE.format(name="test_parse"))}}}]
replies: []
"""
STORY = {
    "explore": ["search_files", "done"],
    "mend": ["replace_in_file +8 -7", "execute_command", "done"],
    "notes": ["replace_in_file +2 -1", "done"],
}


@pytest.fixture
def repository(library: Path) -> Path:
    agents = library.parent / "home" / ".config" / "croze" / "agents"
    agents.mkdir(parents=True)
    (agents / "apart.md").write_text(AGENT)
    for args in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "1.17.0")):
        subprocess.run(
            ["git", "-c", "user.name=n", "-c", "user.email=e@x", *args], cwd=library, check=True
        )
    return library


def ran(folder: Path, *argv: str, code: int = 0) -> str:
    done = croze(folder, *argv)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def team(folder: Path, dialect: str, form: str) -> str:
    return ran(
        folder, "run", "Mend the failing test.", "--model", MODEL, "--dialect", dialect,
        "--mode", "full", "--sandbox", "off", "-o", form,
    )  # fmt: skip


def replay_all(folder: Path, session: str) -> None:
    """A conversation and its sub-agents' come out the same from their records, and nothing new is made."""
    tree = json.loads(ran(folder, "session", "tree", session, "--format", "json"))
    for each in (tree, *tree.get("children", ())):
        told = ran(folder, "replay", each["session"])
        assert told.endswith("all the same byte for byte\n"), told
    assert json.loads(ran(folder, "session", "tree", session, "--format", "json")) == tree


def story(objects: list[dict[str, Any]]) -> dict[str, list[str]]:
    """What each sub-agent did, by its label, in words."""
    labels = {
        each["child"]: each.get("label") or each["agent"]
        for each in objects
        if each["type"] == "sub_agent_started"
    }
    told: dict[str, list[str]] = {label: [] for label in labels.values()}
    changes: dict[str, str] = {}
    for each in objects:
        if each["type"] != "sub_agent_event":
            continue
        steps, event = told[labels[each["child"]]], each["event"]
        if event["type"] == "file_changed":
            change = event["change"]
            changes[event["call_id"]] = f" +{change['added']} -{change['removed']}"
        elif event["type"] == "tool_result":
            steps.append(event["name"] + changes.pop(event["call_id"], ""))
        elif event["type"] == "stopped":
            steps.append(event["reason"])
    return told


@pytest.mark.parametrize("dialect", ["native", "xml"])
def test_three_mend_a_published_library_side_by_side(repository: Path, dialect: str) -> None:
    assert suite(repository).returncode == 1
    before = contents(repository)
    result = json.loads(team(repository, dialect, "json"))
    assert result["ok"], result
    assert "all 78 tests pass" in result["answer"]
    assert suite(repository).returncode == 0
    after = contents(repository)
    assert {path for path in after if before.get(path) != after[path]} == {"parse.py"}
    (listed,) = json.loads(ran(repository, "session", "list", "--format", "json"))
    tree = json.loads(ran(repository, "session", "tree", listed["id"], "--format", "json"))
    members = [(each["agent"], each.get("label", ""), each["steps"]) for each in tree["children"]]
    assert members == [("explore", "", 2), ("apart", "mend", 3), ("apart", "notes", 2)]
    assert tree["steps"] == 10
    assert [each.get("files", []) for each in tree["children"]] == [[], ["parse.py"], ["parse.py"]]
    replay_all(repository, listed["id"])
    rows = json.loads(ran(repository, "blame", "parse.py", "--json"))["lines"]
    writers = {row["origin"].get("session", "") for row in rows} - {""}
    assert writers == {each["session"] for each in tree["children"][1:]}
    ran(repository, "undo")
    assert contents(repository) == before
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=repository, capture_output=True, text=True
    )
    assert status.stdout == ""


def test_programs_see_what_each_of_them_does(repository: Path) -> None:
    objects = [json.loads(line) for line in team(repository, "native", "stream-json").splitlines()]
    kinds = [each["type"] for each in objects]
    assert kinds.count("sub_agent_started") == kinds.count("sub_agent_finished") == 3
    assert story(objects) == STORY
    merged = [each for each in objects if each["type"] == "merged"]
    assert [(each["applied"], each["conflicts"]) for each in merged] == [(["parse.py"], [])] * 2
    (asked,) = [each for each in objects if each.get("name") == "run_named_subagents"][1:]
    assert [(row["label"], row["steps"], row["status"]) for row in asked["data"]] == [
        ("", 2, "done"),
        ("mend", 3, "done"),
        ("notes", 2, "done"),
    ]
    assert objects[-1]["type"] == "stopped"
    assert objects[-1]["steps"] == 10


def test_a_plan_whose_task_fails_is_made_again(library: Path) -> None:
    script = library.parent / "plan.yaml"
    script.write_text(PLAN)
    before = contents(library)
    out = ran(
        library, "run", "Look through it.", "--agent", "orchestrator", "--model",
        f"scripted:{script}", "--mode", "full", "--sandbox", "off", "-o", "json",
    )  # fmt: skip
    assert json.loads(out)["ok"]
    after = contents(library)
    assert {path for path in after if before.get(path) != after[path]} == {"CHANGES.txt"}
    (listed,) = json.loads(ran(library, "session", "list", "--format", "json"))
    plan = json.loads(ran(library, "session", "plan", listed["id"], "--format", "json"))["plan"]
    assert plan["revision"] == 2
    states = {task["id"]: task["state"] for task in plan["tasks"]}
    assert {name: states[name] for name in ("find", "note", "sum")} == dict.fromkeys(
        ("find", "note", "sum"), "done"
    )
    replay_all(library, listed["id"])


def test_its_documentation_is_written_from_its_sources(library: Path) -> None:
    script = library.parent / "docs.yaml"
    script.write_text(DOCS)
    out = ran(library, "docs", "--json", "--model", f"scripted:{script}")
    report = json.loads(out)
    assert report["ok"], report
    assert {page["path"]: page["state"] for page in report["pages"]} == {
        "parse.md": "written",
        "tests.md": "written",
    }
    text = (library / "docs" / "reference" / "index.md").read_text()
    assert "parse.md" in text
    again = json.loads(ran(library, "docs", "--json", "--model", f"scripted:{script}"))
    assert {page["state"] for page in again["pages"]} == {"unchanged"}
    for row in json.loads(ran(library, "session", "list", "--format", "json")):
        replay_all(library, row["id"])
    ran(library, "undo", report["session"], code=0)
    assert not (library / "docs").exists()
