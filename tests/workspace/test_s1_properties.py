"""The ten properties of task workspaces, each on real folders with at least 100 examples."""

import os
import tempfile
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from croze.workspace.agents import ROOT, USER, AgentTree
from croze.workspace.task import task_workspace
from croze.workspace.task_files import list_files, read_file, workspace_info, write_file

EXAMPLES = settings(max_examples=120, deadline=None)

IDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,40}", fullmatch=True)
NAMES = st.one_of(
    st.sampled_from(["a", "b.txt", "a..b", "[...slug].tsx", "..a", "b..", "...", "ü ö", " x", "-rf", "日本.md", "C", "a:b"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\\\0"), min_size=1, max_size=12),
).filter(lambda name: name.strip() and name not in (".", "..") and len(name.encode()) <= 200)  # fmt: skip
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join).filter(
    lambda path: path.strip() and path[1:2] != ":"
)  # fmt: skip
TEXTS = st.one_of(
    st.sampled_from(["", "\ufeff", "\r", "\r\n", "a\r\nb\rc\n", "\ufeffa\r\n", "\0", "no end", "…\u2028x"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
)  # fmt: skip


class Ground:
    """A data folder of one example's own."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        self.data = Path(os.path.realpath(self._folder.name)) / "data"
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def workspace(self, agent="agent-1"):
        return task_workspace(self.data, agent)


def is_writable(path):
    """Whether croze itself would let a tool write there: .git and its own folder are protected."""
    plain = [part.casefold().rstrip(". ") for part in path.split("/")]
    return not any(part.endswith(("git", "croze", "git~1")) for part in plain)


@EXAMPLES
@given(agent=IDS, path=PATHS)
def test_property_01_no_folder_is_there_before_the_first_write(agent, path):
    with Ground() as ground:
        tree = AgentTree(ground.data)
        tree.spawn(ROOT, "worker", agent=agent)
        workspace = tree.find_workspace(agent)
        read_file(workspace, path)
        list_files(workspace)
        list_files(workspace, path)
        workspace_info(workspace)
        assert not workspace.root.exists()
        assert not ground.data.exists()
        assert [record.lazy_created for record in tree.records()] == [False]


@EXAMPLES
@given(path=PATHS, text=TEXTS)
def test_property_02_the_first_write_makes_the_folder_for_its_owner_alone(path, text):
    assume(is_writable(path))
    with Ground() as ground:
        workspace = ground.workspace()
        assert write_file(workspace, path, text) == {"ok": True}
        assert workspace.root == ground.data / "workspaces" / "agent-1"
        for folder in (workspace.root, workspace.root.parent):
            assert folder.stat().st_mode & 0o777 == 0o700


@EXAMPLES
@given(path=PATHS, texts=st.lists(TEXTS, min_size=1, max_size=3))
def test_property_03_what_is_read_is_what_was_written_last(path, texts):
    assume(is_writable(path))
    with Ground() as ground:
        for text in texts:
            assert write_file(ground.workspace(), path, text) == {"ok": True}
            assert read_file(ground.workspace(), path) == {"content": text}
        assert (ground.workspace().root / path).read_bytes() == texts[-1].encode()


@EXAMPLES
@given(agent=IDS, path=st.one_of(st.just("."), PATHS))
def test_property_04_listing_an_unwritten_workspace_is_empty_and_no_error(agent, path):
    with Ground() as ground:
        assert list_files(ground.workspace(agent)) == {"files": []}
        assert list_files(ground.workspace(agent), path) == {"files": []}


PIECES = st.lists(st.one_of(NAMES, st.sampled_from([".", "", "\0", "x"])), max_size=3)
LEADING_OUT = st.one_of(
    st.tuples(PIECES, PIECES, st.sampled_from("/\\"), st.sampled_from("/\\")).map(
        lambda t: "".join([*(f"{p}{t[2]}" for p in t[0]), "..", *(f"{t[3]}{p}" for p in t[1])])
    ),
    PATHS.map(lambda path: f"/{path}"),
    PATHS.map(lambda path: f"\\{path}"),
    PATHS.map(lambda path: f"\\\\host\\{path}"),
    st.tuples(st.sampled_from("abcXYZ"), st.sampled_from(["", "/", "\\"]), PATHS).map(
        lambda t: f"{t[0]}:{t[1]}{t[2]}"
    ),
)


@EXAMPLES
@given(path=LEADING_OUT, written=st.booleans())
def test_property_05_dots_absolute_paths_and_drives_are_blocked(path, written):
    with Ground() as ground:
        workspace = ground.workspace()
        if written:
            write_file(workspace, "x", "")
        blocked = "path_traversal_blocked"
        assert write_file(workspace, path, "out") == {"ok": False, "error": blocked}
        assert read_file(workspace, path) == {"error": blocked}
        assert list_files(workspace, path) == {"error": blocked}
        assert workspace.root.exists() == written
        assert sorted(os.listdir(ground.data.parent)) == (["data"] if written else [])


SHAPES = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from(["shared", "shared", "task"])), max_size=12
)


def grow(tree, shape):
    """A tree of agents: each one's parent is one that was made before, or root."""
    made = [ROOT]
    for at, isolation in shape:
        parent = made[at % len(made)]
        made.append(tree.spawn(parent, "role", isolation=isolation))
    return made[1:]


@EXAMPLES
@given(shape=SHAPES)
def test_property_06_the_nearest_ancestors_workspace_is_used(shape):
    with Ground() as ground:
        tree = AgentTree(ground.data)
        for agent in grow(tree, shape):
            at = agent
            while tree.agent(at).parent != ROOT and not tree.agent(at).own:
                at = tree.agent(at).parent
            assert tree.find_workspace(agent) is tree.find_workspace(at)
            assert tree.find_workspace(agent).id == at
            assert write_file(tree.find_workspace(agent), "who", agent) == {"ok": True}
            assert read_file(tree.find_workspace(at), "who") == {"content": agent}
        assert tree.find_workspace(ROOT) is tree.find_workspace(USER) is None


@EXAMPLES
@given(agents=st.lists(IDS, min_size=2, max_size=6, unique_by=str.casefold), path=PATHS)
def test_property_07_two_children_of_root_never_share_a_folder(agents, path):
    assume(is_writable(path))
    agents = [agent for agent in agents if agent.casefold() not in (ROOT, USER)]
    with Ground() as ground:
        tree = AgentTree(ground.data)
        for agent in agents:
            tree.spawn(ROOT, "role", agent=agent)
        roots = {tree.find_workspace(agent).root for agent in agents}
        assert len(roots) == len(agents)
        assert not any(one in two.parents for one in roots for two in roots)
        for agent in agents:
            write_file(tree.find_workspace(agent), path, agent)
        for agent in agents:
            assert read_file(tree.find_workspace(agent), path) == {"content": agent}


@EXAMPLES
@given(agent=st.one_of(st.just(""), IDS.filter(lambda name: name not in (ROOT, USER))))
def test_property_08_the_workspace_of_a_child_of_root_has_its_id(agent):
    with Ground() as ground:
        tree = AgentTree(ground.data)
        made = tree.spawn(ROOT, "role", agent=agent)
        assert made == agent or not agent
        assert tree.find_workspace(made).id == made
        (record,) = tree.records()
        assert record.workspace_id == made
        assert record.workspace_path == str(ground.data / "workspaces" / made)
        assert datetime.fromisoformat(record.created_at).tzinfo is not None


@EXAMPLES
@given(parts=st.lists(NAMES, min_size=2, max_size=8), text=TEXTS)
def test_property_09_missing_parents_are_made(parts, text):
    path = "/".join(parts)
    assume(is_writable(path) and path[1:2] != ":")
    with Ground() as ground:
        workspace = ground.workspace()
        assert write_file(workspace, path, text) == {"ok": True}
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            (only,) = list_files(workspace, folder)["files"]
            kind = "file" if depth == len(parts) - 1 else "directory"
            size = len(text.encode()) if kind == "file" else 0
            assert only == {"name": parts[depth], "type": kind, "size": size}


@EXAMPLES
@given(files=st.dictionaries(PATHS, TEXTS, max_size=8), removed=st.booleans())
def test_property_10_the_numbers_are_those_of_the_disk(files, removed):
    with Ground() as ground:
        workspace = ground.workspace()
        for path, text in files.items():
            write_file(workspace, path, text)
        real = [p for p in ground.data.rglob("*") if workspace.root in p.parents]
        if removed and any(p.is_file() for p in real):
            next(p for p in real if p.is_file()).unlink()
            real = [p for p in ground.data.rglob("*") if workspace.root in p.parents]
        info = workspace_info(workspace)
        assert info["fileCount"] == sum(p.is_file() for p in real)
        assert info["dirCount"] == sum(p.is_dir() for p in real)
        assert info["totalSize"] == sum(p.stat().st_size for p in real if p.is_file())
        if not workspace.written:
            assert info["lastModified"] is None
        else:
            newest = max(p.stat().st_mtime for p in [workspace.root, *real])
            told = datetime.fromisoformat(info["lastModified"]).timestamp()
            assert told == pytest.approx(newest, abs=0.002)
