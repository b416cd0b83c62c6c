"""The tree of agents: who works where, and that the logs alone tell it again."""

import random
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.workspace.agents import ROOT, USER, AgentTree, AgentTreeError, Opened
from croze.workspace.task_files import read_file, write_file
from croze.workspace.workspace import Workspace


def worker(tree, parent=ROOT, **more):
    return tree.spawn(parent, "worker", **more)


@pytest.fixture
def tree(tmp_path):
    return AgentTree(tmp_path / "data")


@pytest.fixture
def project(tmp_path):
    (tmp_path / "project").mkdir()
    return Workspace("session", tmp_path / "project", "main")


def test_root_and_user_have_no_workspace_and_can_not_be_made(tree):
    assert tree.find_workspace(ROOT) is tree.find_workspace(USER) is None
    for name in (ROOT, USER):
        with pytest.raises(AgentTreeError) as caught:
            worker(tree, agent=name)
        assert caught.value.code == "agent_exists"


@pytest.mark.parametrize("parent", ["nobody", USER, ""])
def test_an_unknown_parent_is_an_error(tree, parent):
    with pytest.raises(AgentTreeError) as caught:
        worker(tree, parent)
    assert caught.value.code == "unknown_parent"
    assert tree.records() == ()


def test_an_agent_can_not_be_made_a_second_time_so_no_cycle_can_arise(tree):
    one = worker(tree, agent="one")
    two = worker(tree, one, agent="two")
    for agent, parent in (("one", two), ("two", "two"), ("ONE", ROOT)):
        with pytest.raises(AgentTreeError) as caught:
            worker(tree, parent, agent=agent)
        assert caught.value.code == "agent_exists"
    assert tree.agent("one").parent == ROOT


def test_an_agent_that_is_not_known_has_no_workspace(tree):
    assert tree.find_workspace("nobody") is None


def test_the_main_agent_works_in_the_project_and_so_do_those_below_it(tree, project):
    main = tree.spawn(ROOT, "main", workspace=project)
    below = worker(tree, worker(tree, main))
    assert tree.find_workspace(main) is tree.find_workspace(below) is project
    assert tree.records() == ()


def test_isolation_gives_a_workspace_at_any_depth(tree, project):
    main = tree.spawn(ROOT, "main", workspace=project)
    apart = worker(tree, worker(tree, main), isolation="task")
    below = worker(tree, apart)
    assert tree.find_workspace(below).id == apart
    assert tree.find_workspace(below).kind == "task"


def test_a_worktree_is_an_agents_own_and_its_childrens(tree, project, tmp_path):
    main = tree.spawn(ROOT, "main", workspace=project)
    work = Workspace("w", tmp_path / "work", "writer")
    writer = tree.spawn(main, "writer", workspace=work)
    assert tree.find_workspace(worker(tree, writer)) is work


def test_the_record_is_what_programs_read(tree, tmp_path):
    worker(tree, agent="a-1", opened=1_700_000_000_123_456)
    before = msgspec.to_builtins(tree.records())
    write_file(tree.find_workspace("a-1"), "x", "x")
    after = msgspec.to_builtins(tree.records())
    assert before == (
        {
            "workspaceId": "a-1",
            "workspacePath": str(tmp_path / "data" / "workspaces" / "a-1"),
            "createdAt": "2023-11-14T22:13:20.123456+00:00",
            "lazyCreated": False,
        },
    )
    assert after == ({**before[0], "lazyCreated": True},)


NODES = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from(["shared", "task", "worktree"]), st.booleans()),
    max_size=20,
)


@settings(max_examples=100, deadline=None)
@given(nodes=NODES, seed=st.integers(0, 99))
def test_the_logs_give_the_same_tree_in_any_order(nodes, seed):
    """Another process, after a kill: all it has are the first events of the sessions."""
    folder, project = Path("/nowhere/data"), Workspace("p", Path("/nowhere/p"), "main")
    tree, made, logs, worktrees = AgentTree(folder), [None], [], {}
    for number, (at, isolation, in_project) in enumerate(nodes):
        parent = made[at % len(made)]
        agent, where = f"session-{number}", None
        if parent is None and in_project:
            where = project
        elif isolation == "worktree":
            where = worktrees[agent] = Workspace("w", Path(f"/nowhere/{agent}"), agent)
        made.append(agent)
        tree.spawn(
            parent or ROOT,
            f"role-{number}",
            agent=agent,
            workspace=where,
            isolation="task" if isolation == "task" else "shared",
            opened=number,
        )
        metadata = {"agent": f"role-{number}", "isolation": isolation}
        logs.append(Opened(agent, parent, number, "/nowhere/p" if in_project else "", metadata))
    random.Random(seed).shuffle(logs)
    again = AgentTree.of(folder, logs, project=project, worktrees=worktrees)
    assert again.records() == tree.records()
    for agent in made[1:]:
        assert again.agent(agent) == tree.agent(agent)
        assert again.find_workspace(agent) == tree.find_workspace(agent)


def test_what_was_written_is_found_by_the_tree_that_another_process_reads_from_the_logs(tmp_path):
    tree = AgentTree(tmp_path)
    worker(tree, agent="s1", opened=5)
    write_file(tree.find_workspace("s1"), "notes/a.md", "kept")
    logs = [Opened("s1", None, 5), Opened("s2", "s1", 6), Opened("s3", None, 7)]
    again = AgentTree.of(tmp_path, logs)
    assert read_file(again.find_workspace("s2"), "notes/a.md") == {"content": "kept"}
    assert [(r.workspace_id, r.lazy_created) for r in again.records()] == [
        ("s1", True),
        ("s3", False),
    ]


def test_logs_without_their_parents_and_in_a_circle_are_left_out(tmp_path):
    logs = [Opened("a", "gone", 1), Opened("b", "c", 2), Opened("c", "b", 3), Opened("d", None, 4)]
    tree = AgentTree.of(tmp_path, logs)
    assert [tree.agent(name) is not None for name in "abcd"] == [False, False, False, True]


def test_a_worktree_that_is_gone_is_not_the_projects_folder_instead(tmp_path, project):
    logs = [
        Opened("main", None, 1, project="/p"),
        Opened("w", "main", 2, metadata={"isolation": "worktree"}),
        Opened("below", "w", 3),
    ]
    tree = AgentTree.of(tmp_path, logs, project=project)
    assert tree.find_workspace("main") is project
    assert tree.find_workspace("below") is None


def test_a_fork_has_a_workspace_of_its_own_though_it_has_its_origins_metadata(tmp_path):
    logs = [
        Opened("one", None, 1, metadata={"agent_id": "agent-1", "agent": "writer"}),
        Opened("fork", None, 2, metadata={"agent_id": "agent-1", "agent": "writer"}),
    ]
    tree = AgentTree.of(tmp_path, logs)
    assert len({record.workspace_path for record in tree.records()}) == 2


def test_a_thousand_generations_are_no_problem(tree):
    agent = first = worker(tree)
    for _ in range(1000):
        agent = worker(tree, agent)
    assert tree.find_workspace(agent).id == first
