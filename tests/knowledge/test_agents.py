"""Agent files on real folders: what is read of them, what is wrong with them, and which of them count."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.knowledge.agents import AgentFile, read_agent, read_agents
from croze.knowledge.find import Finder, Found, Loaded, Places

WHOLE = """\
---
name: reviewer
description: Reviews changes.
model: a:b
tools:
  - read_file
  - Grep
disallowedTools: Bash
include_rules: yes
isolation: worktree
policy: digest
zone: 80k
maxTurns: 12
max_cost: 0.5
max_time: 90
---

You review.

Be brief.
"""


def agent(text: str, name: str = "file") -> AgentFile:
    found = Found(kind="agents", name=name, path=f"{name}.md", source="user")
    file = read_agent(Loaded(found, text))
    assert file is not None
    return file


def test_all_that_a_file_says_is_read() -> None:
    file = agent(WHOLE)
    assert (file.name, file.description, file.prompt) == (
        "reviewer", "Reviews changes.", "You review.\n\nBe brief.",
    )  # fmt: skip
    assert (file.tools, file.without, file.model) == (("read_file", "Grep"), ("Bash",), "a:b")
    assert (file.include_rules, file.isolation) == (True, "worktree")
    assert (file.policy, file.zone) == ("digest", "80k")
    assert (file.max_turns, file.max_cost, file.max_time) == (12, 0.5, 90)
    assert (file.found.state, file.found.reason) == ("loaded", "")


def test_what_a_file_leaves_out_is_the_callers_or_the_default() -> None:
    file = agent("---\ndescription: Helps.\n---\n")
    assert (file.name, file.prompt, file.tools, file.model) == ("file", "", None, "")
    assert (file.include_rules, file.isolation, file.policy, file.zone) == (False, "shared", "", "")


@pytest.mark.parametrize(
    ("line", "tools"),
    [
        ("tools: read_file, search_files", ("read_file", "search_files")),
        ("tools: [read_file]", ("read_file",)),
        ("tools:\n- read_file\n- '*'", None),
        ("tools: *", None),
        ('tools: "*"', None),
        ('tools: ""', ()),
        ("tools:", ()),
        ("tools: []", ()),
        ("color: red", None),
    ],
)
def test_a_tool_list_is_text_or_a_list_and_empty_is_none_of_them(
    line: str, tools: tuple[str, ...] | None
) -> None:
    assert agent(f"---\nname: a\ndescription: b\n{line}\n---\n").tools == tools


@pytest.mark.parametrize("model", ["inherit", "", "~"])
def test_the_callers_model_can_be_asked_for_in_words(model: str) -> None:
    assert agent(f"---\nname: a\ndescription: b\nmodel: {model}\n---\n").model == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Just words.", "it has no front matter with a description"),
        ("---\nname: a\n---\n", "it has no description"),
        ("---\nname: a\ndescription: [x\n---\n", "its front matter can't be read: line 4"),
        ("---\nname: main\ndescription: b\n---\n", "main is the name of croze's own agent"),
        ("---\nname: two words\ndescription: b\n---\n", "'two words' is no name for an agent"),
        ("---\nname: ../up\ndescription: b\n---\n", "'../up' is no name for an agent"),
        ("---\nname: a\ndescription: [b]\n---\n", "description must be text"),
        ("---\nname: a\ndescription: b\ntools: {x: y}\n---\n", "tools must be"),
        ("---\nname: a\ndescription: b\nisolation: moon\n---\n", "isolation can't be 'moon'"),
        ("---\nname: a\ndescription: b\npolicy: big\n---\n", "policy can't be 'big'"),
        ("---\nname: a\ndescription: b\nmax_turns: 1.5\n---\n", "max_turns must be a whole number"),
        ("---\nname: a\ndescription: b\nmax_cost: -1\n---\n", "max_cost must be a number above 0"),
        ("---\nname: a\ndescription: b\nmax_time: nan\n---\n", "max_time must be a number above 0"),
        ("---\nname: a\ndescription: b\ninclude_rules: 7\n---\n", "include_rules must be true"),
    ],
)
def test_a_bad_file_is_told_and_gives_no_agent(text: str, reason: str) -> None:
    file = agent(text)
    assert file.found.state == "broken"
    assert file.found.reason.startswith(reason)
    assert (file.description, file.prompt) == ("", "")


def test_what_croze_does_not_use_of_another_agents_file_is_told() -> None:
    file = agent(
        "---\nname: a\ndescription: b\npermissionMode: bypass\nhooks: x\ncolor: red\n---\n"
    )
    assert (file.found.state, file.found.reason) == (
        "loaded", "croze does not use hooks, permissionMode",
    )  # fmt: skip


def test_names_may_be_of_any_language() -> None:
    assert agent("---\nname: 翻译\ndescription: 翻译文字\n---\n").name == "翻译"


def test_a_folders_readme_is_no_agent(tmp_path: Path) -> None:
    folder = tmp_path / "home/.claude/agents"
    put(folder, "a.md", "helper")
    (folder / "README.md").write_text("# What lies here\n")
    assert [file.name for file in read(tmp_path)] == ["helper"]


def put(folder: Path, file: str, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(f"---\nname: {name}\ndescription: d\n---\n{folder.name}")


def read(tmp_path: Path, *, trusted: bool = True) -> list[AgentFile]:
    places = Places(tmp_path / "proj", tmp_path / "home", tmp_path / "home/.config/croze")
    places.root.mkdir(exist_ok=True)
    return read_agents(Finder(places, lambda _path, _data: trusted))


def test_all_places_are_searched_in_their_order(tmp_path: Path) -> None:
    project, home = tmp_path / "proj", tmp_path / "home"
    folders = (
        project / ".croze/agents", project / ".autocoderagents",
        project / ".auto-coder/.autocoderagents", project / ".claude/agents",
        home / ".config/croze/agents", home / ".auto-coder/.autocoderagents", home / ".claude/agents",
        home / ".config/croze/agents/repos/proj", home / ".auto-coder/.autocoderagents/repos/proj",
        home / ".claude/agents/repos/proj",
    )  # fmt: skip
    for number, folder in enumerate(folders):
        put(folder, f"{'zyxwvutsrq'[number]}.md", f"a{number}")
    assert [file.name for file in read(tmp_path)] == [f"a{number}" for number in range(10)]


def test_overriding_goes_by_the_name_in_the_file(tmp_path: Path) -> None:
    put(tmp_path / "proj/.croze/agents", "one.md", "helper")
    put(tmp_path / "proj/.croze/agents", "two.md", "helper")
    put(tmp_path / "home/.claude/agents", "helper.md", "other")
    put(tmp_path / "home/.claude/agents", "three.md", "helper")
    assert [(f.name, f.found.state, f.found.reason) for f in read(tmp_path)] == [
        ("helper", "loaded", ""),
        ("helper", "shadowed", ".croze/agents/one.md has the same name"),
        ("other", "loaded", ""),
        ("helper", "shadowed", ".croze/agents/one.md has the same name"),
    ]


def test_a_projects_agent_that_is_not_trusted_takes_nobodys_name(tmp_path: Path) -> None:
    put(tmp_path / "proj/.claude/agents", "a.md", "helper")
    put(tmp_path / "home/.config/croze/agents", "b.md", "helper")
    files = read(tmp_path, trusted=False)
    assert [(f.found.source, f.found.state) for f in files] == [
        ("project", "untrusted"), ("user", "loaded"),
    ]  # fmt: skip


@given(st.text(), st.text())
def test_no_file_at_all_breaks_the_reader(fields: str, body: str) -> None:
    file = agent(f"---\n{fields}\n---\n{body}")
    assert file.found.state in ("loaded", "broken")
    assert (file.description == "") == (file.found.state == "broken")
