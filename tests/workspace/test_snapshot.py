"""Looking at a project round a command: what changed, and where its old bytes come from."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from croze.types.tool import FileChange
from croze.workspace import commands, snapshot
from croze.workspace.files import sha256
from croze.workspace.git import Git
from croze.workspace.journal import Journal
from croze.workspace.snapshot import Scanner, compare
from croze.workspace.track import Tracker
from croze.workspace.workspace import Workspace


class Project:
    """A folder with a tracker, and a shell."""

    def __init__(self, root: Path) -> None:
        self.root = root / "project"
        self.root.mkdir(exist_ok=True)
        self.work = Workspace("w", self.root, "main")
        self.journal = Journal(root / "journal")
        self.tracker = self.new_tracker()
        self.calls = 0

    def new_tracker(self) -> Tracker:
        git = Git.of(self.root, dict(os.environ))
        return Tracker(self.work.files, self.root, self.journal, "s", git)

    def write(self, path: str, data: str | bytes) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
        return file

    def git(self, *args: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-c", "maintenance.auto=false", *args],
            cwd=self.root, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout

    def commit_all(self) -> None:
        """A clean repository, whose index was written well after its files."""
        if not (self.root / ".git").exists():
            self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-qm", "all")
        for path in self.root.rglob("*"):
            if ".git" not in path.parts and not path.is_symlink():
                os.utime(path, (1_000_000_000, 1_000_000_000))
        self.git("update-index", "-q", "--refresh")
        self.tracker = self.new_tracker()

    async def sh(self, command: str) -> dict[str, FileChange]:
        """What a command changes, by path."""
        self.calls += 1
        await self.tracker.begin(f"c{self.calls}", command=True)
        subprocess.run(["bash", "-c", command], cwd=self.root, check=True)
        found = await self.tracker.changes()
        return {change.path: change for change in found}

    def old(self, change: FileChange) -> bytes | None:
        return None if change.before is None else self.journal.get(change.before)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


async def test_added_modified_and_deleted_files_are_found_with_their_old_bytes(
    project: Project,
) -> None:
    project.write("a.txt", "one\n")
    project.write("d/b.txt", "two\n")
    found = await project.sh("echo more >> a.txt; rm d/b.txt; mkdir -p x/y; echo new > x/y/c.txt")
    assert {path: change.kind for path, change in found.items()} == {
        "a.txt": "modified", "d/b.txt": "deleted", "x/y/c.txt": "added",
    }  # fmt: skip
    assert project.old(found["a.txt"]) == b"one\n"
    assert project.old(found["d/b.txt"]) == b"two\n"
    assert found["x/y/c.txt"].made == ("x", "x/y")
    assert found["a.txt"].diff == "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n one\n+more\n"
    assert not any(change.lost for change in found.values())


async def test_nothing_changed_is_nothing_told(project: Project) -> None:
    project.write("a.txt", "one\n")
    assert await project.sh("cat a.txt > /dev/null") == {}
    assert await project.sh("touch a.txt") == {}
    assert await project.sh("cp a.txt b.txt; rm b.txt") == {}


async def test_a_moved_file_is_a_move_and_a_mode_is_a_change(project: Project) -> None:
    project.write("a.txt", "one\n")
    project.write("run.sh", "#!/bin/sh\n")
    found = await project.sh("mkdir d; mv a.txt d/b.txt; chmod +x run.sh")
    assert (found["d/b.txt"].kind, found["d/b.txt"].moved_from) == ("moved", "a.txt")
    change = found["run.sh"]
    assert change.kind == "modified"
    assert change.before == change.after
    assert change.mode_before is not None
    assert change.mode_after is not None
    assert stat.S_IMODE(change.mode_after) & 0o111
    assert not stat.S_IMODE(change.mode_before) & 0o111


async def test_links_are_what_they_point_to(project: Project) -> None:
    project.write("a.txt", "one\n")
    (project.root / "l").symlink_to("a.txt")
    found = await project.sh("ln -sf nowhere l; ln -s a.txt new; rm a.txt; ln -s l a.txt")
    assert project.old(found["l"]) == b"a.txt"
    assert found["l"].after == sha256(b"nowhere")
    assert stat.S_ISLNK(found["new"].mode_after or 0)
    assert stat.S_ISREG(found["a.txt"].mode_before or 0)
    assert stat.S_ISLNK(found["a.txt"].mode_after or 0)
    assert project.old(found["a.txt"]) == b"one\n"


async def test_binary_files_change_without_a_diff(project: Project) -> None:
    project.write("a.bin", b"\0\1\2" * 100)
    found = await project.sh("printf '\\3' >> a.bin")
    assert found["a.bin"].diff == ""
    assert project.old(found["a.bin"]) == b"\0\1\2" * 100


async def test_a_file_becomes_a_folder_and_a_folder_a_file(project: Project) -> None:
    project.write("a", "file\n")
    project.write("d/x", "inside\n")
    found = await project.sh("rm a; mkdir a; echo new > a/b; rm -r d; echo flat > d")
    kinds = {path: change.kind for path, change in found.items()}
    assert kinds == {"a": "deleted", "a/b": "added", "d/x": "deleted", "d": "added"}
    assert found["a/b"].made == ("a",)


async def test_ignored_and_excluded_folders_are_not_looked_at(project: Project) -> None:
    project.write(".gitignore", "*.log\n/out2/\n")
    project.write("a.txt", "a")
    assert set(
        await project.sh(
            "mkdir -p node_modules out2 .hidden .github .git .croze;"
            "for d in node_modules out2 .hidden .github .git .croze; do echo x > $d/f; done;"
            "echo x > x.log; echo x > .env; echo x > .dotfile"
        )
    ) == {".github/f", ".dotfile"}


async def test_what_becomes_ignored_is_not_gone_and_what_no_longer_is_was_there(
    project: Project,
) -> None:
    project.write("a.log", "log\n")
    project.write("b.tmp", "tmp\n")
    project.write(".gitignore", "*.tmp\n")
    old = 1_000_000_000
    for name in ("a.log", "b.tmp", ".gitignore"):
        os.utime(project.root / name, (old, old))
    await project.sh("true")
    await wait_for_the_clock(project.root)
    found = await project.sh("echo '*.log' > .gitignore")
    assert set(found) == {".gitignore"}
    assert project.old(found[".gitignore"]) == b"*.tmp\n"


async def wait_for_the_clock(root: Path) -> None:
    """Until a change of a file is surely later than what was there before (kernel ticks)."""
    start = (root / "a.log").stat().st_ctime_ns
    probe = root.parent / "probe"
    while True:
        probe.write_text("x")
        if probe.stat().st_ctime_ns > start + 2 * snapshot.RACY_NS:
            return


async def test_a_change_in_the_same_tick_and_size_is_found(project: Project) -> None:
    project.write("a.txt", "1")
    await project.sh("true")
    for number in range(20):
        await project.tracker.begin("w", command=False)
        written = project.work.files.write("a.txt", f"{number % 10}".encode())
        project.tracker.record("a.txt", written.before, f"{number % 10}".encode())
        await project.tracker.changes()
        await project.tracker.begin("c", command=True)
        entry = (project.root / "a.txt").stat()
        with (project.root / "a.txt").open("r+b") as file:
            file.write(b"X")
        os.utime(project.root / "a.txt", ns=(entry.st_atime_ns, entry.st_mtime_ns))
        found = await project.tracker.changes()
        assert [change.before for change in found] == [sha256(f"{number % 10}".encode())]


async def test_what_somebody_changes_between_two_commands_is_not_the_commands_doing(
    project: Project,
) -> None:
    project.write("a.txt", "one\n")
    await project.sh("true")
    project.write("a.txt", "the user's\n")
    project.write("mine.txt", "the user's\n")
    assert set(await project.sh("echo x > c.txt")) == {"c.txt"}
    found = await project.sh("echo more >> a.txt; rm mine.txt")
    assert project.old(found["a.txt"]) == b"the user's\n"
    assert project.old(found["mine.txt"]) == b"the user's\n"


async def test_old_bytes_of_clean_files_come_from_git_and_nothing_is_copied(
    project: Project,
) -> None:
    for number in range(30):
        project.write(f"f{number}.txt", f"content {number}\n" * 50)
    project.commit_all()
    project.git("gc", "-q")
    await project.tracker.begin("c", command=True)
    assert not list(project.journal.folder.rglob("?" * 64))
    found = await project.sh("for f in f*.txt; do echo more >> $f; done; rm f3.txt; git add -A")
    assert len(found) == 30
    for number in range(30):
        assert project.old(found[f"f{number}.txt"]) == f"content {number}\n".encode() * 50


async def test_dirty_and_untracked_files_are_copied_before(project: Project) -> None:
    project.write("clean.txt", "clean\n")
    project.write("dirty.txt", "before\n")
    project.commit_all()
    project.write("dirty.txt", "dirty\n")
    project.write("untracked.txt", "untracked\n")
    found = await project.sh("rm *.txt")
    assert {path: project.old(change) for path, change in found.items()} == {
        "clean.txt": b"clean\n", "dirty.txt": b"dirty\n", "untracked.txt": b"untracked\n",
    }  # fmt: skip


async def test_what_nobody_has_a_copy_of_is_lost_and_never_guessed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "SNAPSHOT_BYTES", 100)
    project.tracker = project.new_tracker()
    project.tracker._commands._budget = 100
    project.write("small.txt", "s" * 50)
    project.write("large.txt", "L" * 5000)
    found = await project.sh("echo x >> small.txt; echo x >> large.txt; rm -f nothing")
    assert (found["small.txt"].lost, project.old(found["small.txt"])) == (False, b"s" * 50)
    assert (found["large.txt"].lost, found["large.txt"].before) == (True, None)
    assert found["large.txt"].kind == "modified"
    assert found["large.txt"].diff == ""


async def test_a_file_behind_a_filter_program_is_not_taken_from_git(project: Project) -> None:
    project.write(".gitattributes", "*.big filter=rot\n")
    project.write("a.big", "abc\n")
    project.git("init", "-q")
    project.git("config", "filter.rot.clean", "tr a-z b-za")
    project.git("config", "filter.rot.smudge", "tr b-za a-z")
    project.commit_all()
    assert project.git("cat-file", "-p", "HEAD:a.big") == "bcd\n"
    found = await project.sh("rm a.big")
    assert found["a.big"].lost
    assert project.old(found["a.big"]) is None


async def test_line_ends_that_git_converted_come_back(project: Project) -> None:
    project.git("init", "-q")
    project.git("config", "core.autocrlf", "true")
    project.write("a.txt", "one\r\ntwo\r\n")
    project.write("unix.txt", "three\n")
    project.commit_all()
    assert project.git("cat-file", "-s", "HEAD:a.txt") == "8\n"
    found = await project.sh("rm a.txt unix.txt")
    assert project.old(found["a.txt"]) == b"one\r\ntwo\r\n"
    assert project.old(found["unix.txt"]) == b"three\n"


async def test_the_same_object_with_other_line_ends_elsewhere_is_not_guessed(
    project: Project,
) -> None:
    project.git("init", "-q")
    project.git("config", "core.autocrlf", "input")
    project.write("dos.txt", "one\r\ntwo\r\n")
    project.write("unix.txt", "one\ntwo\n")
    project.commit_all()
    found = await project.sh("rm dos.txt unix.txt")
    for path, content in (("dos.txt", b"one\r\ntwo\r\n"), ("unix.txt", b"one\ntwo\n")):
        assert project.old(found[path]) in (content, None)
        assert found[path].lost is (project.old(found[path]) is None)


async def test_a_file_tool_and_a_command_share_what_they_know(project: Project) -> None:
    project.write("a.txt", "one\n")
    await project.sh("true")
    await project.tracker.begin("w", command=False)
    written = project.work.files.write("a.txt", b"two\n")
    project.tracker.record("a.txt", written.before, b"two\n")
    (change,) = await project.tracker.changes()
    assert (change.before, change.after) == (sha256(b"one\n"), sha256(b"two\n"))
    found = await project.sh("echo three > a.txt")
    assert found["a.txt"].before == sha256(b"two\n")
    assert project.old(found["a.txt"]) == b"two\n"


async def test_unreadable_files_and_vanishing_folders_stop_nothing(project: Project) -> None:
    project.write("d/a.txt", "a")
    os.mkfifo(project.root / "pipe")
    found = await project.sh(
        "rm -r d; rm pipe; mkfifo pipe2; mkdir 'odd\nname'; echo x > 'odd\nname/ü'"
    )
    assert set(found) == {"d/a.txt", "odd\nname/ü"}


async def test_too_many_files_are_not_followed_and_said_so(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "MOST_FILES", 10)
    for number in range(12):
        project.write(f"{number}.txt", "x")
    assert await project.sh("echo x > 1.txt") == {}
    assert project.tracker.blind
    await project.tracker.begin("w", command=False)
    written = project.work.files.write("1.txt", b"two\n")
    project.tracker.record("1.txt", written.before, b"two\n")
    assert len(await project.tracker.changes()) == 1


def test_a_second_look_reads_no_folder_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        file = project.write(f"d{number % 4}/{number}.txt", "x")
        os.utime(file, (1e9, 1e9))
    for folder in (project.root, *project.root.iterdir()):
        os.utime(folder, (1e9, 1e9))
    scanner = Scanner(project.work.files, project.root)
    first = scanner.scan()
    listed: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(path) or scandir(path))
    second = scanner.scan()
    assert len(second.entries) == 40
    assert listed == []
    assert compare(first, second) == snapshot.Difference((), (), (), ())
    project.write("d1/new.txt", "x")
    assert compare(second, scanner.scan()).added == ("d1/new.txt",)
    assert listed == [f"{project.root}/d1/"]
