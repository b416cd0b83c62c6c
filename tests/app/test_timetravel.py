"""Undo, redo, diff and checkpoints over real sessions: a scripted model, real files, a real store."""

import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from croze.agent.rewind import UndoConflict
from croze.app import timetravel
from croze.app.app import App
from croze.app.options import RunOptions
from croze.types.errors import SessionBusy, UsageError
from croze.types.event import Compacted, Event, FactAdded, Undoing, Undone
from croze.types.parts import CallResult, Text, ToolCall
from croze.types.tool import FileChange
from croze.workspace.commands import SNAPSHOT_BYTES

SRC = Path(__file__).parents[2] / "src"
START = "import sys; from croze.ui.cli.main import main; sys.exit(main())"

Tree = dict[str, tuple[int, bytes]]


def tree(root: Path) -> Tree:
    """Every file and link with its mode and content; folders by an empty content."""
    found: Tree = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if name.split("/")[0] == ".git":
            continue
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            found[name] = (mode, os.readlink(path).encode())
        else:
            found[name] = (mode, b"" if path.is_dir() else path.read_bytes())
    return found


def write(path: str, content: str) -> dict[str, Any]:
    return {"name": "write_to_file", "args": {"path": path, "content": content}}


def sh(command: str) -> dict[str, Any]:
    return {"name": "execute_command", "args": {"command": command}}


def todo(*tasks: str) -> dict[str, Any]:
    return {"name": "todo_write", "args": {"action": "create", "content": "\n".join(tasks)}}


class Story:
    """A project in which turns are played, each in an application of its own as `croze run` does."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / "project"
        self.project.mkdir()
        self.session: str | None = None

    def put(self, path: str, data: str | bytes) -> Path:
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
        return file

    def tree(self) -> Tree:
        return tree(self.project)

    def script(self, *replies: Sequence[dict[str, Any]]) -> str:
        path = self.root / "script.yaml"
        written = [{"text": "Working.", "calls": list(calls)} for calls in replies]
        path.write_text(yaml.safe_dump([*written, {"text": "Done."}]))
        return f"scripted:{path}"

    def options(self, model: str) -> RunOptions:
        return RunOptions(
            model=model, mode="full", sandbox="off", headless=True, resume=self.session
        )

    async def play(self, *replies: Sequence[dict[str, Any]], task: str = "Do it.") -> None:
        """A turn: each argument is a reply's calls."""
        app = App.open(cwd=self.project)
        try:
            session = await app.session(self.options(self.script(*replies)))
            stopped = await session.submit(task)
            assert stopped.reason == "done", stopped
            self.session = session.id
        finally:
            await app.aclose()

    async def ask(self, work: Any, *args: Any, **options: Any) -> Any:
        """One operation in an application of its own."""
        app = App.open(cwd=self.project)
        try:
            return await work(app, *args, **options)
        finally:
            await app.aclose()

    async def undo(self, **options: Any) -> timetravel.UndoReport:
        return await self.ask(timetravel.undo, **options)

    async def redo(self) -> timetravel.UndoReport:
        return await self.ask(timetravel.redo)

    async def diff(self, **options: Any) -> dict[str, FileChange]:
        return {change.path: change for change in await self.ask(timetravel.diff, **options)}

    async def checkpoints(self) -> Sequence[timetravel.Checkpoint]:
        return await self.ask(timetravel.checkpoints)

    async def events(self) -> list[Event]:
        async def read(app: App) -> list[Event]:
            assert self.session is not None
            return await app.store.read(self.session)

        return await self.ask(read)

    async def replayed(self) -> str | None:
        async def replay(app: App) -> str | None:
            assert self.session is not None
            return (await app.replay(self.session)).divergence

        return await self.ask(replay)

    async def seen(self) -> str:
        """All texts that the model sees if it is asked now."""
        app = App.open(cwd=self.project)
        try:
            session = await app.session(self.options(self.script()))
            texts = []
            for message in session.context().messages:
                for part in message.parts:
                    if isinstance(part, Text):
                        texts.append(part.text)
                    elif isinstance(part, CallResult):
                        texts.append(f"{part.message} {part.text}")
                    elif isinstance(part, ToolCall):
                        texts.append(part.raw)
            return "\n".join(texts)
        finally:
            await app.aclose()

    async def titles(self) -> list[str]:
        """What the user says in the conversation as it is shown and exported."""

        async def get(app: App) -> list[str]:
            assert self.session is not None
            found = await app.conversations.get(self.session)
            return [str(m.content) for m in found.messages if m.role == "user"]

        return await self.ask(get)


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


async def three_turns(story: Story) -> list[Tree]:
    """Turns by tools and by commands; the trees before the first and after each."""
    story.put("a.txt", "one\n")
    story.put("d/b.txt", "two\n")
    story.put("run.sh", "#!/bin/sh\n").chmod(0o755)
    (story.project / "link").symlink_to("a.txt")
    story.put("bin.dat", b"\0\1\2")
    (story.project / "empty").mkdir()
    trees = [story.tree()]
    await story.play(
        [write("a.txt", "one, changed\n"), write("new/deep/c.txt", "c\n")], task="First"
    )
    trees.append(story.tree())
    await story.play(
        [
            sh(
                "rm -r d; chmod -x run.sh; ln -sf nowhere link; echo x >> bin.dat; mkdir e; echo e > e/f"
            )
        ],
        [write("new/deep/c.txt", "c2\n"), write("empty/g.txt", "g\n")],
        task="Second",
    )
    trees.append(story.tree())
    await story.play(
        [sh("mv a.txt moved.txt"), write("moved.txt", "moved and changed\n")], task="Third"
    )
    trees.append(story.tree())
    return trees


async def test_turns_are_undone_one_by_one_and_redone_in_the_other_order(story: Story) -> None:
    trees = await three_turns(story)
    assert len({str(each) for each in trees}) == 4
    for before in (2, 1, 0):
        report = await story.undo()
        assert (report.kind, report.turns, report.lost) == ("undo", (before + 1,), ())
        assert story.tree() == trees[before]
        assert await story.titles() == ["First", "Second", "Third"][:before]
    with pytest.raises(UsageError, match="nothing to undo"):
        await story.undo()
    for after in (1, 2, 3):
        report = await story.redo()
        assert (report.kind, report.turns) == ("redo", (after,))
        assert story.tree() == trees[after]
        assert await story.titles() == ["First", "Second", "Third"][:after]
    with pytest.raises(UsageError, match="nothing to redo"):
        await story.redo()
    assert await story.replayed() is None


async def test_several_turns_are_undone_at_once_and_come_back_at_once(story: Story) -> None:
    trees = await three_turns(story)
    assert (await story.undo(turns=2)).turns == (2, 3)
    assert story.tree() == trees[1]
    await story.redo()
    assert story.tree() == trees[3]
    assert (await story.undo(turns=99)).turns == (1, 2, 3)
    assert story.tree() == trees[0]
    assert await story.titles() == []


async def test_what_is_undone_is_gone_for_the_model_and_the_session_goes_on(story: Story) -> None:
    trees = await three_turns(story)
    await story.undo()
    seen = await story.seen()
    assert "Second" in seen
    assert "Third" not in seen
    assert "moved.txt" not in seen
    await story.play([sh("cat a.txt"), write("z.txt", "z\n")], task="Another third")
    assert "Another third" in await story.seen()
    with pytest.raises(UsageError, match="nothing to redo"):
        await story.redo()
    points = await story.checkpoints()
    assert [(p.turn, p.title, p.undone, p.files) for p in points] == [
        (1, "First", False, 2), (2, "Second", False, 7), (3, "Third", True, 2),
        (4, "Another third", False, 1),
    ]  # fmt: skip
    assert set(await story.diff(turn=4)) == {"z.txt"}
    assert "moved.txt" not in await story.diff()
    await story.undo()
    assert story.tree() == trees[2]
    assert await story.replayed() is None


async def test_undoing_the_first_turn_tells_the_facts_of_the_opening_again(story: Story) -> None:
    await story.play([write("a.txt", "a\n")], task="First")
    await story.undo()
    assert "Project" not in await story.seen()
    await story.play([sh("true")], task="Second")
    keys = [e.body.key for e in await story.events() if isinstance(e.body, FactAdded)]
    assert keys.count("environment") == 2
    assert await story.replayed() is None


async def test_the_todo_list_goes_back_and_forth_with_the_turn(story: Story) -> None:
    await story.play([todo("one", "two")], task="First")
    await story.play([todo("three")], task="Second")
    await story.undo()
    assert "one" in await story.seen()
    undone = [e.body for e in await story.events() if isinstance(e.body, Undone)]
    assert [item.text for item in undone[-1].todo or ()] == ["one", "two"]
    await story.redo()
    undone = [e.body for e in await story.events() if isinstance(e.body, Undone)]
    assert [item.text for item in undone[-1].todo or ()] == ["three"]
    await story.undo(turns=2)
    await story.play([{"name": "todo_read", "args": {}}], task="Third")
    assert "The todo list is empty" in await story.seen()


async def test_files_alone_go_back_and_the_model_is_told(story: Story) -> None:
    trees = await three_turns(story)
    report = await story.undo(files_only=True)
    assert (report.turns, report.conversation) == ((3,), False)
    assert story.tree() == trees[2]
    seen = await story.seen()
    assert "Third" in seen
    assert "undone the file changes of turn 3" in seen
    points = await story.checkpoints()
    assert [(p.undone, p.files_undone) for p in points] == [
        (False, False), (False, False), (False, True),
    ]  # fmt: skip
    await story.undo(files_only=True)
    assert story.tree() == trees[1]
    await story.redo()
    await story.redo()
    assert story.tree() == trees[3]
    assert "brought back" in await story.seen()
    await story.undo()
    assert (await story.titles(), story.tree()) == (["First", "Second"], trees[2])
    assert "brought back" not in await story.seen()
    assert await story.replayed() is None


async def test_after_files_alone_went_back_the_conversation_can_follow(story: Story) -> None:
    story.put("a.txt", "one\n")
    await story.play([write("a.txt", "two\n")])
    await story.undo(files_only=True)
    report = await story.undo()
    assert (report.files, report.conversation) == ((), True)
    assert await story.titles() == []
    await story.redo()
    assert (story.project / "a.txt").read_text() == "one\n"
    await story.redo()
    assert (story.project / "a.txt").read_text() == "two\n"


async def test_a_file_that_was_read_before_an_undo_must_be_read_again(story: Story) -> None:
    story.put("a.txt", "one\n")
    await story.play([write("a.txt", "two\n")])
    await story.undo(files_only=True)
    await story.play([write("a.txt", "three\n")])
    assert "changed since you last read it" in await story.seen()
    assert (story.project / "a.txt").read_text() == "one\n"


async def test_one_call_is_undone_and_redone(story: Story) -> None:
    story.put("a.txt", "one\n")
    await story.play([write("a.txt", "two\n"), write("b.txt", "b\n")], [write("b.txt", "b2\n")])
    first, second, third = (await story.checkpoints())[0].calls
    assert (first.paths, second.paths, third.paths) == (("a.txt",), ("b.txt",), ("b.txt",))
    await story.undo(call=first.call_id)
    assert (story.project / "a.txt").read_text() == "one\n"
    assert (story.project / "b.txt").read_text() == "b2\n"
    with pytest.raises(UsageError, match="undone already"):
        await story.undo(call=first.call_id)
    with pytest.raises(UndoConflict, match=r"b\.txt"):
        await story.undo(call=second.call_id)
    await story.undo(call=third.call_id[:6])
    assert (story.project / "b.txt").read_text() == "b\n"
    await story.undo(call=second.call_id)
    assert not (story.project / "b.txt").exists()
    await story.redo()
    await story.redo()
    assert (story.project / "b.txt").read_text() == "b2\n"
    report = await story.undo()
    assert story.tree() == {"a.txt": (0o100644, b"one\n")}
    assert {change.path for change in report.files} == {"b.txt"}
    with pytest.raises(UsageError, match="No call"):
        await story.undo(call="nothing")


async def test_a_file_changed_since_refuses_all_and_is_named(story: Story) -> None:
    await three_turns(story)
    (story.project / "moved.txt").write_text("the user's\n")
    story.put("a.txt", "the user made this again\n")
    before = story.tree()
    with pytest.raises(UndoConflict) as error:
        await story.undo(turns=3)
    assert set(error.value.params["paths"]) == {"a.txt", "moved.txt"}
    assert "Nothing was touched" in error.value.message
    assert story.tree() == before
    assert not any(isinstance(e.body, Undoing) for e in await story.events())


@pytest.mark.parametrize(
    "change",
    [
        "rm a.txt", "rm a.txt; mkdir a.txt", "rm a.txt; ln -s b.txt a.txt", "rm -r n; echo x > n",
        "mv n m; ln -s m n", "rm n/new.txt", "echo more >> n/new.txt", "chmod +x run.sh",
    ],
)  # fmt: skip
async def test_whatever_somebody_did_since_it_is_noticed(story: Story, change: str) -> None:
    story.put("a.txt", "one\n")
    story.put("run.sh", "x\n").chmod(0o755)
    await story.play([write("a.txt", "two\n"), write("n/new.txt", "new\n"), sh("chmod 600 run.sh")])
    subprocess.run(["sh", "-c", change], cwd=story.project, check=True)
    before = story.tree()
    with pytest.raises(UndoConflict):
        await story.undo()
    assert story.tree() == before


async def test_a_mode_that_the_user_set_meanwhile_stays(story: Story) -> None:
    story.put("a.sh", "one\n")
    await story.play([write("a.sh", "two\n")])
    (story.project / "a.sh").chmod(0o755)
    await story.undo()
    assert story.tree() == {"a.sh": (0o100755, b"one\n")}


async def test_what_the_user_changed_between_two_calls_is_not_undone_over(story: Story) -> None:
    story.put("a.txt", "one\n")
    await story.play([write("a.txt", "two\n")])
    (story.project / "a.txt").write_text("the user's\n")
    await story.play([sh("echo three >> a.txt")])
    await story.undo()
    assert (story.project / "a.txt").read_text() == "the user's\n"
    with pytest.raises(UndoConflict):
        await story.undo()
    await story.redo()
    with pytest.raises(UndoConflict, match=r"a\.txt"):
        await story.undo(turns=2)


async def test_other_files_are_never_touched(story: Story) -> None:
    other = story.put("other.txt", "mine\n")
    await story.play([write("a/b.txt", "b\n")])
    other.write_text("mine, changed\n")
    story.put("a/mine.txt", "mine too\n")
    await story.undo()
    assert story.tree() == {
        "other.txt": (0o100644, b"mine, changed\n"),
        "a": (0o040755, b""),
        "a/mine.txt": (0o100644, b"mine too\n"),
    }


async def test_what_cannot_be_put_back_is_named_and_the_rest_is(story: Story) -> None:
    story.put("small.txt", "s\n")
    with (story.project / "huge.bin").open("wb") as file:
        file.truncate(SNAPSHOT_BYTES + 1)
    await story.play([sh("rm small.txt huge.bin")])
    changes = await story.diff()
    assert (changes["huge.bin"].lost, changes["small.txt"].lost) == (True, False)
    report = await story.undo()
    assert report.lost == ("huge.bin",)
    assert set(story.tree()) == {"small.txt"}


async def test_a_content_that_the_journal_lost_is_not_guessed(story: Story) -> None:
    story.put("a.txt", "one\n")
    story.put("b.txt", "b\n")
    await story.play([write("a.txt", "two\n"), write("b.txt", "b2\n")])
    change = (await story.diff())["a.txt"]
    assert change.before is not None
    (found,) = Path(os.environ["XDG_DATA_HOME"]).rglob(change.before)
    found.write_bytes(b"damaged")
    report = await story.undo()
    assert report.lost == ("a.txt",)
    assert (story.project / "a.txt").read_text() == "two\n"
    assert (story.project / "b.txt").read_text() == "b\n"


async def test_the_sum_of_changes_keeps_added_added_and_moved_moved(story: Story) -> None:
    story.put("old.txt", "line\n" * 20)
    story.put("temp.txt", "t\n")
    story.put("back.txt", "same\n")
    await story.play(
        [write("new.txt", "1\n"), write("gone.txt", "g\n"), write("back.txt", "other\n")],
        [write("new.txt", "1\n2\n"), sh("mv old.txt moved.txt; rm gone.txt temp.txt")],
    )
    await story.play([write("back.txt", "same\n"), sh("echo more >> moved.txt")])
    changes = await story.diff()
    assert {path: change.kind for path, change in changes.items()} == {
        "new.txt": "added", "moved.txt": "moved", "temp.txt": "deleted",
    }  # fmt: skip
    assert changes["new.txt"].diff.endswith("+1\n+2\n")
    assert (changes["moved.txt"].moved_from, changes["moved.txt"].added) == ("old.txt", 1)
    assert (await story.diff(turn=2))["back.txt"].kind == "modified"
    call = (await story.checkpoints())[0].calls[0]
    assert set(await story.diff(call=call.call_id)) == {"new.txt"}
    with pytest.raises(UsageError, match="no turn 9"):
        await story.diff(turn=9)


async def test_a_running_session_refuses_and_names_its_process(story: Story) -> None:
    await story.play([write("a.txt", "a\n")])
    app = App.open(cwd=story.project)
    code = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom croze.app.app import App\n"
        "from croze.app.timetravel import undo\n"
        "async def main():\n"
        "    app = App.open(cwd=Path(sys.argv[1]))\n"
        "    try:\n        await undo(app)\n"
        "    except Exception as error:\n        print(type(error).__name__, error)\n"
        "    finally:\n        await app.aclose()\n"
        "asyncio.run(main())\n"
    )
    session = await app.session(story.options(story.script()))
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, str(story.project)],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        assert done.stdout.startswith(SessionBusy.__name__)
        assert str(os.getpid()) in done.stdout
        report = await timetravel.undo_live(session)
        assert report.turns == (1,)
        assert story.tree() == {}
        assert session.context().messages == ()
        await timetravel.redo_live(session)
        assert set(story.tree()) == {"a.txt"}
    finally:
        await app.aclose()


async def test_a_turn_that_was_cancelled_in_the_middle_of_a_command_is_undone(story: Story) -> None:
    story.put("a.txt", "one\n")
    app = App.open(cwd=story.project)
    try:
        session = await app.session(
            story.options(story.script([sh("echo two > a.txt; touch started; exec sleep 60")]))
        )
        import asyncio

        turn = asyncio.create_task(session.submit("Go"))
        while not (story.project / "started").exists():  # noqa: ASYNC110 (another program's doing)
            await asyncio.sleep(0.01)
        session.cancel()
        assert (await turn).reason == "cancelled"
        story.session = session.id
        assert set(story.tree()) == {"a.txt", "started"}
        await timetravel.undo_live(session)
    finally:
        await app.aclose()
    assert story.tree() == {"a.txt": (0o100644, b"one\n")}


async def test_an_undo_also_takes_back_a_compaction_of_that_turn(story: Story) -> None:
    await story.play([sh("echo first-output")], task="First")
    await story.play([sh("echo second-output")], task="Second")
    app = App.open(cwd=story.project)
    try:
        assert story.session is not None
        log = await app.store.open_log(story.session)
        said = [e for e in log.events if getattr(e.body, "message_id", None)]
        hidden = tuple(e.body.message_id for e in said[:1])  # type: ignore[union-attr]
        seq = log.events[-1].seq
        await log.append(Compacted(policy="p", reason="r", hidden=hidden, summary="It was long."))
        assert log.events[-1].seq == seq + 1
        log.close()
    finally:
        await app.aclose()
    assert "It was long." in await story.seen()
    await story.undo()
    seen = await story.seen()
    assert "It was long." not in seen
    assert "First" in seen


FAILPOINTS = ["undo.intent:1", "undo.rename:1", "undo.rename:2", "undo.file:1", "undo.file:3",
              "undo.file:5", "undo.done:1"]  # fmt: skip


def croze(story: Story, *argv: str, failpoint: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(SRC), "LANG": "C.UTF-8"}
    if failpoint:
        env["CROZE_FAILPOINT"] = failpoint
    return subprocess.run(
        [sys.executable, "-c", START, *argv],
        cwd=story.project, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("failpoint", FAILPOINTS)
async def test_an_undo_that_was_killed_is_completed_by_the_next_one(
    story: Story, failpoint: str
) -> None:
    story.put("a.txt", "one\n")
    story.put("b/c.txt", "two\n")
    story.put("run.sh", "x\n").chmod(0o755)
    before = story.tree()
    await story.play(
        [
            write("a.txt", "two\n"),
            sh("rm -r b; chmod 644 run.sh; echo n > n.txt"),
            write("o/p.txt", "p\n"),
        ]
    )
    after = story.tree()
    assert croze(story, "undo", failpoint=failpoint).returncode == -9
    done = failpoint == "undo.done:1"
    report = await story.undo() if not done else None
    assert done or (report is not None and report.completed)
    assert story.tree() == before
    assert await story.titles() == []
    with pytest.raises(UsageError, match="nothing to undo"):
        await story.undo()
    await story.redo()
    assert story.tree() == after


async def test_what_was_changed_after_an_interrupted_undo_is_left_alone(story: Story) -> None:
    story.put("a.txt", "one\n")
    story.put("b.txt", "one\n")
    await story.play([write("a.txt", "two\n"), write("b.txt", "two\n")])
    assert croze(story, "undo", failpoint="undo.file:1").returncode == -9
    late = next(p for p in ("a.txt", "b.txt") if (story.project / p).read_text() == "two\n")
    (story.project / late).write_text("the user's\n")
    report = await story.undo()
    assert report.left == (late,)
    assert (story.project / late).read_text() == "the user's\n"


RUN = ("--mode", "full", "--sandbox", "off")


async def killed_and_undone(story: Story, failpoint: str) -> bool:
    """Kill a run at a point, then undo: everything must be as it was. False where it isn't reached."""
    story.put("a.txt", "one\n")
    story.put("d/b.txt", "two\n")
    before = story.tree()
    model = story.script(
        [write("a.txt", "changed\n"), write("new/c.txt", "c\n")],
        [write("a.txt", "changed twice\n"), write("d/b.txt", "changed\n")],
    )
    ran = croze(story, "run", "Do it", "--model", model, *RUN, failpoint=failpoint)
    if ran.returncode == 0:
        return False
    assert ran.returncode == -9, ran.stderr
    for path, allowed in {
        "a.txt": {"one\n", "changed\n", "changed twice\n"}, "d/b.txt": {"two\n", "changed\n"},
        "new/c.txt": {"c\n"},
    }.items():  # fmt: skip
        file = story.project / path
        assert not file.exists() or file.read_text() in allowed
    undone = croze(story, "undo")
    assert (
        undone.returncode == 0
        or "nothing to undo" in undone.stderr
        or "no current" in undone.stderr
    ), undone.stderr
    left = story.tree()
    if "new/c.txt" not in left:
        left.pop("new", None)
    assert left == before
    return True


@pytest.mark.parametrize(
    "failpoint",
    ["journal.object:2", "journal.intent:2", "files.announced:1", "files.before:3",
     "files.changed:1", "files.changed:4"],
)  # fmt: skip
async def test_a_run_that_was_killed_in_a_write_is_undone(story: Story, failpoint: str) -> None:
    assert await killed_and_undone(story, failpoint)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "point",
    ["journal.object", "journal.intent", "files.announced", "files.before", "files.changed",
     "append.before", "append.after", "sync.after"],
)  # fmt: skip
async def test_a_run_that_was_killed_anywhere_is_undone(tmp_path: Path, point: str) -> None:
    kills = 0
    for number in range(1, 60):
        folder = tmp_path / str(number)
        folder.mkdir()
        if not await killed_and_undone(Story(folder), f"{point}:{number}"):
            break
        kills += 1
    assert kills >= 4


async def test_a_resumed_run_knows_what_the_killed_one_had_changed(story: Story) -> None:
    story.put("a.txt", "one\n")
    before = story.tree()
    model = story.script([write("a.txt", "changed\n")])
    ran = croze(story, "run", "Do it", "--model", model, *RUN, failpoint="files.changed:1")
    assert ran.returncode == -9
    assert (story.project / "a.txt").read_text() == "changed\n"
    app = App.open(cwd=story.project)
    try:
        (summary,) = await app.conversations.list()
        story.session = summary.id
        session = await app.session(story.options(story.script()))
        await session.submit("Go on")
    finally:
        await app.aclose()
    assert {p: c.kind for p, c in (await story.diff()).items()} == {"a.txt": "modified"}
    await story.undo()
    assert story.tree() == before
