"""The project's tree enters once, above everything that may change, and again only after a compaction."""

import pytest

from croze.context.gather import GatherState
from croze.context.project import project
from croze.context.tree_facts import TREE, TreeSource, gather_tree, tree_fact
from croze.context.visited_facts import VISITED, gather_visited
from croze.text.tokens import estimate
from croze.types.event import (
    Compacted,
    Event,
    FactAdded,
    ModelCalled,
    ModelSaid,
    ToolReturned,
    Undone,
    UserSaid,
)
from croze.types.parts import Text
from croze.types.tool import Look
from croze.workspace.cache import HOT, RunCache
from croze.workspace.files import Files
from croze.workspace.tree import SHARED_CHARACTERS, TreeOptions
from croze.workspace.workspace import Workspace

DEFAULT = TreeOptions()


class Session:
    """A log in memory that gathers trees as a live session does."""

    def __init__(self, root, source, *, cache=None, options=DEFAULT, kind="project", bodies=()):
        self.workspace = Workspace("w", root, "main", kind=kind)
        self.cache = RunCache() if cache is None else cache
        self.tree = TreeSource(cache=self.cache, workspace=self.workspace, options=options)
        self.source = source
        self.events = []
        self.since = 0
        self.add(*bodies)

    def add(self, *bodies):
        for body in bodies:
            self.events.append(Event("s", len(self.events) + 1, 0, body))

    async def step(self, *bodies):
        self.add(*bodies)
        undone = next((e.body for e in reversed(self.events) if isinstance(e.body, Undone)), None)
        seen = {
            e.body.key: e.body
            for e in self.events
            if isinstance(e.body, FactAdded) and not (undone and undone.hides(e.seq))
        }
        state = GatherState(
            root=self.workspace.root,
            events=self.events,
            source=self.source,
            seen=seen,
            since=self.since,
            tree=self.tree,
        )
        self.since = len(self.events)
        facts = [*await gather_tree(state), *await gather_visited(state)]
        self.add(*facts)
        return facts


def said(text="Do it."):
    return UserSaid("00000000-0000-4000-8000-00000000000a", (Text(text),))


def called(step=1):
    return ModelCalled(step, "m", "", 1, "", "", 1, 10, 10)


def replied():
    return ModelSaid("00000000-0000-4000-8000-00000000000b", 1, "m", (Text("Yes."),))


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src/a.py").touch()
    (root / "README.md").touch()
    return root


@pytest.fixture
def session(root, source):
    return Session(root, source)


async def test_the_tree_is_told_once_as_a_pair_of_the_documentation(session):
    (fact,) = await session.step(said())
    assert (fact.key, fact.layer, fact.place) == (TREE, "documentation", "history")
    assert fact.reply
    assert "├── src/\n│   └── a.py\n└── README.md" in fact.text
    assert fact.tokens == estimate(fact.text) + estimate(fact.reply)
    assert (fact.data["max_depth"], fact.data["entries"], fact.data["error"]) == (4, 3, None)
    assert fact.data["cached_at"].endswith("Z")
    session.add(called(), replied())
    for number in range(3):
        (session.workspace.root / f"new{number}").touch()
        assert await session.step(said()) == []
    assert session.cache.stats.scans == 1


async def test_the_pair_stands_above_the_request_and_keeps_the_prefix(session):
    before = await session.step(said())
    context = project(session.events, "system", (), ())
    assert [m.role for m in context.messages] == ["user", "assistant", "user"]
    assert [m.layer for m in context.messages[:2]] == ["documentation"] * 2
    session.add(called(), replied(), said("More."))
    grown = project(session.events, "system", (), ())
    assert [m.parts for m in grown.messages[:3]] == [m.parts for m in context.messages]
    assert before


async def test_two_sessions_in_the_same_project_begin_with_the_same_bytes(root, source):
    texts = []
    for _ in range(2):
        (fact,) = await Session(root, source).step(said())
        texts.append((fact.text, fact.reply))
    assert texts[0] == texts[1]


async def test_the_text_says_how_to_use_it_and_shows_no_absolute_path(session, root):
    (fact,) = await session.step(said())
    assert "4 levels deep" in fact.text
    assert "scanned when this conversation began" in fact.text
    assert "Prefer this tree" in fact.text
    assert str(root) not in fact.text


async def test_a_resumed_session_is_told_no_second_tree(session, root, source):
    await session.step(said())
    session.add(called(), replied())
    resumed = Session(root, source, bodies=[event.body for event in session.events])
    assert await resumed.step(said()) == []
    assert resumed.cache.stats.scans == 0


async def test_a_session_that_began_without_a_tree_gets_none_in_its_middle(root, source):
    session = Session(root, source, bodies=[said(), called(), replied()])
    assert await session.step(said()) == []


async def test_a_first_request_that_failed_before_it_was_sent_changes_nothing(session):
    await session.step(said())
    assert await session.step(said()) == []


async def test_undoing_the_first_turn_tells_it_again(session):
    await session.step(said())
    session.add(called(), replied())
    (fact,) = await session.step(
        Undone("u", "undo", (1,), hidden=((1, len(session.events)),)), said()
    )
    assert fact.layer == "documentation"


async def test_after_a_compaction_a_changed_tree_is_told_once(session):
    await session.step(said())
    session.add(called(), replied())
    (session.workspace.root / "new.py").touch()
    (fact,) = await session.step(Compacted("batch", "full"))
    assert (fact.layer, fact.reply) == ("current", "")
    assert "new.py" in fact.text
    assert "Scanned again at 20" in fact.text
    assert await session.step() == []
    assert await session.step(Compacted("batch", "full")) == []


async def test_after_a_compaction_an_unchanged_tree_is_not_told_again(session):
    await session.step(said())
    session.add(called(), replied())
    assert await session.step(Compacted("batch", "full")) == []


async def test_a_later_tree_that_a_summary_took_is_told_again_where_the_first_no_longer_holds(
    session,
):
    await session.step(said())
    session.add(called(), replied())
    (session.workspace.root / "new.py").touch()
    (fact,) = await session.step(Compacted("batch", "full"))
    summary = Compacted("batch", "full", until=len(session.events), summary="Done so far.")
    (again,) = await session.step(summary)
    assert again.data["digest"] == fact.data["digest"]
    (session.workspace.root / "new.py").unlink()
    summary = Compacted("batch", "full", until=len(session.events), summary="Done so far.")
    assert await session.step(summary) == []


async def test_a_task_workspace_and_a_switched_off_tree_give_none(root, source):
    assert await Session(root, source, kind="task").step(said()) == []
    assert await Session(root, source, options=None).step(said()) == []
    state = GatherState(root=root, events=[], source=source, seen={})
    assert await gather_tree(state) == ()


async def test_a_failed_scan_is_told_and_stops_nothing(root, source):
    (fact,) = await Session(root / "README.md", source).step(said())
    assert "List folders on demand" in fact.text
    assert fact.data["error"]
    assert str(root) not in fact.text


async def test_an_empty_project_is_told_as_empty(tmp_path, source):
    (fact,) = await Session(tmp_path, source).step(said())
    assert "holds no files yet" in fact.text


async def test_a_secret_in_a_name_is_not_told(root, source):
    (root / "ghp_16C7e42F292c6912E7710c838347Ae178B4a").touch()
    (fact,) = await Session(root, source).step(said())
    assert "ghp_16C7e42F" not in fact.text


async def test_the_agents_of_a_run_share_one_scan_and_the_folders_listed_so_far(root, source):
    for number in range(400):
        (root / f"f{number:03}.txt").touch()
    cache = RunCache()
    options = TreeOptions(2)
    first = Session(root, source, cache=cache, options=options)
    (alone,) = await first.step(said())
    files = first.workspace.files
    cache.visit(files, {"src": ("a.py",), ".": ("src/", "README.md")})
    (root / "src/deep").mkdir()
    cache.visit(files, {"src/deep": (), "src": ("deep/", "a.py")})
    second = Session(root, source, cache=cache, options=options)
    tree, visited = await second.step(said())
    assert (tree.text, tree.reply) == (alone.text, alone.reply)
    assert (alone.data["shared"], tree.data["shared"]) == (False, True)
    assert (cache.stats.scans, cache.stats.shared) == (1, 1)
    assert (visited.key, visited.layer) == (VISITED, "documentation")
    assert "./: src/, README.md" in visited.text
    assert "src/deep/: (empty)" in visited.text
    assert "src/: deep/, a.py" in visited.text
    assert visited.data["folders"] == [".", "src", "src/deep"]


async def test_folders_that_the_tree_shows_whole_are_not_told_a_second_time(root, source):
    cache = RunCache()
    files = Files(root, kind="project")
    cache.visit(files, {"src": ("a.py",), ".": ("src/", "README.md")})
    (fact,) = await Session(root, source, cache=cache).step(said())
    assert fact.key == TREE


async def test_the_folders_visited_are_told_beside_a_tree_that_was_taken_over(root, source):
    cache = RunCache()
    files = Files(root, kind="project")
    first = Session(root, source, cache=cache)
    (tree,) = await first.step(said())
    (root / "x/y/z/w/deep").mkdir(parents=True)
    cache.visit(files, {"x/y/z/w": ("deep/",)})
    second = Session(root, source, cache=cache, bodies=[tree])
    (visited,) = await second.step(said())
    assert "x/y/z/w/: deep/" in visited.text
    assert (cache.stats.scans, cache.stats.shared) == (1, 0)
    second.add(called(), replied())
    assert await second.step(said()) == []


def test_several_agents_are_given_more_characters():
    assert (TreeOptions().characters, SHARED_CHARACTERS) == (3_000, 10_000)


async def test_too_many_folders_visited_are_cut_with_their_number(root, source):
    cache = RunCache()
    files = Files(root, kind="project")
    for number in range(60):
        folder = root / f"x/y/z/w/folder{number}"
        folder.mkdir(parents=True)
        cache.visit(files, {f"x/y/z/w/folder{number}": tuple(f"file{n}.py" for n in range(20))})
    _, visited = await Session(root, source, cache=cache).step(said())
    assert len(visited.text) < 3_500
    assert "more folders" in visited.text


async def test_hot_files_of_a_resumed_session_are_loaded_early(root, source):
    read = ToolReturned("c", "m", "read_file", True, look=Look("read:src/a.py", "0"))
    session = Session(root, source, bodies=[said(), called(), *[read] * HOT])
    session.cache._clock = lambda: 2**62
    session.add(tree_fact(session.cache.tree(session.workspace.files, TreeOptions())[0], "t"))
    await session.step(said())
    assert session.cache.document(session.workspace.files, "src/a.py").hit
