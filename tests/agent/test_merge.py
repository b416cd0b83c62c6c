"""What comes back from work trees: over a real session, its log, its journal, and real git."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from croze.agent.live import Live
from croze.agent.merge import merge_back, open_isolated, told
from croze.agent.recall import stored_text
from croze.app.timetravel import undo_live
from croze.types.event import FilesChanged, Merged, UserSaid
from croze.workspace.isolate import Worktree
from tests.agent.conftest import Desk, bodies

TEXT = "".join(f"line {number}\n" for number in range(1, 21))


@pytest.fixture
def root(project: Path) -> Path:
    for args in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first", "--allow-empty")):
        subprocess.run(
            ["git", "-c", "user.name=n", "-c", "user.email=e@x", *args], cwd=project, check=True
        )
    (project / "a.txt").write_text(TEXT)
    (project / "b.txt").write_text("b\n")
    return project


@asynccontextmanager
async def caller(desk: Desk) -> AsyncIterator[Live]:
    async with desk.app() as app:
        session = await app.session(desk.options())
        await session._live.append(UserSaid(message_id="m1", parts=()))
        yield session._live
        await session.close()


async def worked(live: Live, root: Path, child: str, **files: str | None) -> Worktree:
    """A work tree in which a sub-agent has written (None: removed) these files."""
    tree = await open_isolated(live, child, root.parent / "worktrees")
    for name, text in files.items():
        path = tree.root / name.replace("_", ".")
        if text is None:
            path.unlink()
        else:
            path.write_text(text)
    return tree


def changed(text: str, line: int, new: str) -> str:
    return text.replace(f"line {line}\n", f"{new}\n")


async def test_two_sub_agents_in_one_file_are_merged_and_each_change_has_its_owner(
    desk: Desk, root: Path
) -> None:
    async with caller(desk) as live:
        one = await worked(live, root, "one", a_txt=changed(TEXT, 3, "one"))
        two = await worked(live, root, "two", a_txt=changed(TEXT, 15, "two"), new_txt="new\n")
        merges = await asyncio.gather(
            merge_back(live, "one", one, call_id="c"), merge_back(live, "two", two, call_id="c")
        )
        assert [merged.applied for merged in merges] == [("a.txt",), ("a.txt", "new.txt")]
        assert not any(merged.conflicts for merged in merges)
        both = changed(changed(TEXT, 3, "one"), 15, "two")
        assert (root / "a.txt").read_text() == both
        assert bodies(live.log.events, Merged) == merges
        changes = [
            (body.call_id, change.path, change.kind, change.by)
            for body in bodies(live.log.events, FilesChanged)
            for change in body.changes
        ]
        assert changes == [
            ("c", "a.txt", "modified", "one"), ("c", "a.txt", "modified", "two"),
            ("c", "new.txt", "added", "two"),
        ]  # fmt: skip
        assert b"+two" in await live.blobs.blob(merges[1].patch)
        assert os.listdir(root.parent / "worktrees") == []


async def test_the_same_line_twice_is_a_conflict_named_with_both_sides_and_the_rest_is_taken(
    desk: Desk, root: Path
) -> None:
    async with caller(desk) as live:
        one = await worked(live, root, "one", a_txt=changed(TEXT, 3, "one"))
        two = await worked(live, root, "two", a_txt=changed(TEXT, 3, "two"), b_txt="B\n")
        await merge_back(live, "one", one)
        merged = await merge_back(live, "two", two)
        assert merged.applied == ("b.txt",)
        (conflict,) = merged.conflicts
        assert conflict.path == "a.txt"
        assert conflict.text == "line 3\nhere:\n  one\nsub-agent:\n  two"
        assert (root / "a.txt").read_text() == changed(TEXT, 3, "one")
        text = told(merged)
        assert "Merged into your workspace: b.txt." in text
        assert "Not merged, left as it is: a.txt: both sides changed the same lines." in text
        assert conflict.text in text


async def test_a_clash_shows_all_else_that_the_sub_agent_changed_in_the_file(
    desk: Desk, root: Path
) -> None:
    async with caller(desk) as live:
        theirs = changed(changed(TEXT, 3, "two"), 18, "far")
        two = await worked(live, root, "two", a_txt=theirs)
        (root / "a.txt").write_text(changed(TEXT, 3, "one"))
        (conflict,) = (await merge_back(live, "two", two)).conflicts
        assert "all that the sub-agent changed in it:" in conflict.text
        assert "-line 18\n+far\n" in conflict.text


async def test_the_caller_can_read_all_of_the_work_by_the_sub_agents_id(
    desk: Desk, root: Path
) -> None:
    async with caller(desk) as live:
        tree = await worked(live, root, "c0ffee11-1", a_txt=changed(TEXT, 3, "mine"), b_txt="c\n")
        (root / "b.txt").write_text("other\n")
        merged = await merge_back(live, "c0ffee11-1", tree, call_id="call")
        assert "read_result with id c0ffee11" in told(merged)
        for known in ("c0ffee11", "C0FFEE11-1"):
            text = await stored_text(live, known)
            assert "+mine\n" in text
            assert "-b\n+c\n" in text
        for unknown in ("c0f", "c0ffee12", ""):
            assert await stored_text(live, unknown) == ""
        clean = await worked(live, root, "beef2222", a_txt=(root / "a.txt").read_text())
        await merge_back(live, "beef2222", clean)
        assert await stored_text(live, "beef2222") == ""


async def test_what_the_user_changes_meanwhile_stays(desk: Desk, root: Path) -> None:
    async with caller(desk) as live:
        tree = await worked(live, root, "one", a_txt=changed(TEXT, 3, "one"), b_txt="theirs\n")
        (root / "a.txt").write_text(changed(TEXT, 18, "user"))
        (root / "b.txt").write_text("user\n")
        merged = await merge_back(live, "one", tree)
        assert merged.applied == ("a.txt",)
        assert (root / "a.txt").read_text() == changed(changed(TEXT, 3, "one"), 18, "user")
        assert (root / "b.txt").read_text() == "user\n"


async def test_a_merge_is_undone_with_the_turn_of_its_call(desk: Desk, root: Path) -> None:
    async with desk.app() as app:
        session = await app.session(desk.options())
        live = session._live
        await live.append(UserSaid(message_id="m1", parts=()))
        (root / "run.sh").write_text("x\n")
        tree = await worked(live, root, "one", a_txt="all\n", b_txt=None, new_txt="n\n")
        (tree.root / "run.sh").chmod(0o755)
        (tree.root / "deep").mkdir()
        (tree.root / "deep" / "link").symlink_to("../a.txt")
        merged = await merge_back(live, "one", tree)
        assert merged.applied == ("a.txt", "b.txt", "deep/link", "new.txt", "run.sh")
        assert os.access(root / "run.sh", os.X_OK)
        assert os.readlink(root / "deep" / "link") == "../a.txt"
        assert not (root / "b.txt").exists()
        await undo_live(session)
        assert (root / "a.txt").read_text() == TEXT
        assert (root / "b.txt").read_text() == "b\n"
        assert not (root / "new.txt").exists()
        assert not (root / "deep").exists()
        assert not os.access(root / "run.sh", os.X_OK)
        await session.close()


async def test_encodings_line_ends_and_modes_of_the_callers_file_stay(
    desk: Desk, root: Path
) -> None:
    async with caller(desk) as live:
        data = ("\ufeff" + TEXT).replace("\n", "\r\n").encode()
        (root / "a.txt").write_bytes(data)
        (root / "a.txt").chmod(0o640)
        tree = await worked(live, root, "one")
        (tree.root / "a.txt").write_bytes(data.replace(b"line 3\r\n", b"one\r\n"))
        ours = data.replace(b"line 9\r\n", b"ours\r\n")
        (root / "a.txt").write_bytes(ours)
        assert not (await merge_back(live, "one", tree)).conflicts
        assert (root / "a.txt").read_bytes() == ours.replace(b"line 3\r\n", b"one\r\n")
        assert (root / "a.txt").stat().st_mode & 0o777 == 0o640


CASES = {
    "added on both sides": ("n.txt", None, "ours\n", "theirs\n", "was added here too"),
    "removed here, changed there": ("a.txt", TEXT, None, "theirs\n", "was removed here"),
    "changed here, removed there": ("a.txt", TEXT, "ours\n", None, "removed it"),
    "binary": ("a.txt", "\0base", "\0ours", "\0theirs", "no text"),
    "the same line": ("a.txt", "x\n", "ours\n", "theirs\n", "same lines"),
}


@pytest.mark.parametrize("case", CASES)
async def test_what_can_not_be_merged_is_left_as_it_is(desk: Desk, root: Path, case: str) -> None:
    name, base, ours, theirs, says = CASES[case]

    def put(folder: Path, text: str | None) -> None:
        (folder / name).unlink(missing_ok=True)
        if text is not None:
            (folder / name).write_text(text)

    async with caller(desk) as live:
        put(root, base)
        tree = await worked(live, root, "one")
        put(root, ours)
        put(tree.root, theirs)
        merged = await merge_back(live, "one", tree)
        assert merged.applied == ()
        assert says in merged.conflicts[0].reason
        now = (root / name).read_text() if (root / name).exists() else None
        assert now == ours


async def test_links_and_folders_in_the_way_are_conflicts_and_never_followed(
    desk: Desk, root: Path
) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (root / "sub").mkdir()
    (root / "sub" / "f.txt").write_text("f\n")
    (root / "l.txt").write_text("l\n")
    async with caller(desk) as live:
        tree = await worked(live, root, "one", b_txt="theirs\n", l_txt="theirs\n")
        (tree.root / "sub" / "f.txt").write_text("theirs\n")
        subprocess.run(["rm", "-r", str(root / "sub")], check=True)
        (root / "sub").symlink_to(outside)
        (root / "b.txt").unlink()
        (root / "b.txt").mkdir()
        (root / "l.txt").unlink()
        (root / "l.txt").symlink_to(outside / "l.txt")
        merged = await merge_back(live, "one", tree)
        assert {conflict.path: conflict.reason for conflict in merged.conflicts} == {
            "b.txt": "a folder stands here",
            "l.txt": "both sides changed it, and one of them is a link",
            "sub/f.txt": "sub is a link here",
        }
        assert list(outside.iterdir()) == []


async def test_what_both_sides_made_the_same_counts_as_taken_over(desk: Desk, root: Path) -> None:
    async with caller(desk) as live:
        tree = await worked(live, root, "one", a_txt="same\n", b_txt=None)
        (root / "a.txt").write_text("same\n")
        (root / "b.txt").unlink()
        merged = await merge_back(live, "one", tree)
        assert (merged.applied, merged.conflicts) == (("a.txt", "b.txt"), ())
        assert bodies(live.log.events, FilesChanged) == []


async def test_a_sub_agent_that_changed_nothing_leaves_nothing_in_the_log(
    desk: Desk, root: Path
) -> None:
    async with caller(desk) as live:
        before = len(live.log.events)
        merged = await merge_back(live, "one", await worked(live, root, "one"))
        assert told(merged) == "It changed no files."
        assert len(live.log.events) == before


async def test_protected_and_unwritable_names_are_named(desk: Desk, root: Path) -> None:
    async with caller(desk) as live:
        tree = await worked(live, root, "one")
        (tree.root / ".croze").mkdir()
        (tree.root / ".croze" / "config.toml").write_text("x = 1\n")
        odd = os.fsencode(tree.root) + b"/caf\xe9.txt"
        descriptor = os.open(odd, os.O_CREAT | os.O_WRONLY)
        os.close(descriptor)
        merged = await merge_back(live, "one", tree)
        assert merged.applied == ()
        assert sorted(conflict.path for conflict in merged.conflicts)[0] == ".croze/config.toml"
        assert any("not UTF-8" in conflict.reason for conflict in merged.conflicts)
        assert not (root / ".croze").exists()
