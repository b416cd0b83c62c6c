"""Git read and written without running anything that the repository names."""

import contextlib
import os
import subprocess
import zlib
from pathlib import Path

import pytest

from croze.workspace.git import Git, GitError
from croze.workspace.git_commit import CommitFile, commit_files
from croze.workspace.git_index import blob_name, read_index

REGULAR, PROGRAM, LINK = 0o100644, 0o100755, 0o120777


class Repository:
    def __init__(self, root: Path, *, form: str = "sha1") -> None:
        self.root = root
        root.mkdir()
        self.run("init", "-q", "-b", "main", f"--object-format={form}")
        self.run("config", "user.name", "The User")
        self.run("config", "user.email", "user@example.org")

    def run(self, *args: str, check: bool = True) -> str:
        done = subprocess.run(
            ["git", "-c", "maintenance.auto=false", *args],
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def write(self, path: str, data: str | bytes = "x\n") -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)

    def commit(self, **files: str | bytes) -> None:
        for path, data in files.items():
            self.write(path, data)
        self.run("add", "-A")
        self.run("commit", "-qm", "before")

    @property
    def git(self) -> Git:
        found = Git.of(self.root, dict(os.environ))
        assert found is not None
        return found


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def settled(repository: Repository) -> None:
    """Files older than the index, so that their stat says that they are clean."""
    for path in repository.root.rglob("*"):
        if ".git" not in path.relative_to(repository.root).parts and not path.is_symlink():
            os.utime(path, (1e9, 1e9))
    repository.run("update-index", "-q", "--refresh")


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_the_index_is_read_as_git_reads_it(tmp_path: Path, version: str, form: str) -> None:
    repository = Repository(tmp_path / "r", form=form)
    names = [
        "a",
        "dir/b",
        "dir/bb",
        "dir/ü",
        "x" * 300,
        *(f"n/{i}/{'y' * (i % 9)}z" for i in range(60)),
    ]
    for name in names:
        repository.write(name if len(name) < 200 else f"long/{name[:200]}", name)
    repository.run("add", "-A")
    if version == "3":
        repository.write("later", "z")
        repository.run("add", "-N", "later")
    repository.run("update-index", "--index-version", version if version != "3" else "2")
    settled(repository)
    entries = read_index(repository.root / ".git" / "index")
    rows = repository.run("-c", "core.quotePath=off", "ls-files", "-s").splitlines()
    split = [row.split("\t") for row in rows if not row.endswith("\tlater")]
    listed = {path: about.split(" ")[1] for about, path in split}
    assert {path: entry.blob for path, entry in entries.items() if path != "later"} == listed
    for path, entry in entries.items():
        found = (repository.root / path).lstat()
        if path != "later":
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode)
            assert entry.is_clean(stamp)
            assert not entry.is_clean((found.st_mtime_ns + 10**9, *stamp[1:]))
            assert not entry.is_clean((*stamp[:3], found.st_mode ^ 0o100))


def test_a_file_written_when_the_index_was_is_not_taken_for_clean(repository: Repository) -> None:
    repository.write("a", "1")
    repository.run("add", "a")
    index = repository.root / ".git" / "index"
    stamp = (repository.root / "a").stat().st_mtime_ns
    os.utime(index, ns=(stamp, stamp))
    assert read_index(index) == {}


@pytest.mark.parametrize("cut", [0, 3, 11, 40, 100])
def test_a_broken_index_has_no_entries(repository: Repository, cut: int) -> None:
    repository.commit(a="1", b="2")
    index = repository.root / ".git" / "index"
    index.write_bytes(index.read_bytes()[:cut])
    assert read_index(index) == {}
    assert read_index(repository.root / "nowhere") == {}


async def test_objects_are_read_loose_and_packed_many_at_once(repository: Repository) -> None:
    contents = [os.urandom(100 + number) for number in range(450)] + [b"", b"text\n", b"\0\r\n"]
    for number, data in enumerate(contents):
        repository.write(f"f{number}", data)
    repository.run("add", "-A")
    repository.run("commit", "-qm", "all")
    wanted = {blob_name(data, "0" * 40): len(data) for data in contents}
    for _ in range(2):
        found = await repository.git.blobs(wanted)
        assert found == {blob_name(data, "0" * 40): data for data in contents}
        repository.run("gc", "-q")


async def test_a_missing_or_damaged_object_is_left_out_and_the_others_come(
    repository: Repository,
) -> None:
    repository.commit(a="one\n", b="two\n")
    names = {data: blob_name(data, "0" * 40) for data in (b"one\n", b"two\n", b"never\n")}
    damaged = names[b"two\n"]
    path = repository.root / ".git" / "objects" / damaged[:2] / damaged[2:]
    path.chmod(0o644)
    path.write_bytes(zlib.compress(b"blob 4\0bad\n"))
    found = await repository.git.blobs({name: len(data) for data, name in names.items()})
    assert found == {names[b"one\n"]: b"one\n"}


def test_a_folder_without_git_is_no_work_tree(tmp_path: Path) -> None:
    assert Git.of(tmp_path, {}) is None
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    assert Git.of(tmp_path, {}) is None


async def test_a_linked_work_tree_has_its_own_index_and_head(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit(a="one\n")
    repository.run("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    git = Git.of(tmp_path / "side", dict(os.environ))
    assert git is not None
    (tmp_path / "side" / "b").write_text("new\n")
    commit = await commit_files(git, [CommitFile("b", REGULAR)], "On the side\n")
    assert repository.run("rev-parse", "side").strip() == commit
    assert repository.run("rev-parse", "main").strip() != commit


HOSTILE = {
    "core.fsmonitor": "{run}",
    "core.sshCommand": "{run}",
    "core.pager": "{run}",
    "core.editor": "{run}",
    "diff.external": "{run}",
    "diff.evil.textconv": "{run}",
    "filter.evil.clean": "{run}",
    "filter.evil.smudge": "{run}",
    "filter.evil.process": "{run}",
    "gpg.program": "{run}",
    "commit.gpgSign": "true",
    "credential.helper": "!{run}",
    "alias.commit-tree": "!{run}",
    "core.alternateRefsCommand": "{run}",
    "remote.origin.url": "ext::{run}",
    "remote.origin.promisor": "true",
    "extensions.partialClone": "origin",
    "protocol.ext.allow": "always",
}
HOOKS = (
    "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-index-change",
    "reference-transaction", "post-rewrite", "fsmonitor-watchman", "post-checkout",
)  # fmt: skip


def make_hostile(repository: Repository, marker: Path) -> None:
    """Everything that a configuration, attributes and hooks can name runs a program that leaves a mark."""
    program = repository.root.parent / "run"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {marker}\ncat 2>/dev/null\n')
    program.chmod(0o755)
    for key, value in HOSTILE.items():
        repository.run("config", key, value.format(run=program))
    for hook in HOOKS:
        path = repository.root / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\necho {hook} >> {marker}\n")
        path.chmod(0o755)
    repository.write(".gitattributes", "*.evil filter=evil diff=evil\n*.txt diff=evil\n")
    repository.write(".git/info/attributes", "*.evil2 filter=evil\n")


async def test_nothing_that_a_hostile_repository_names_is_ever_run(
    repository: Repository, tmp_path: Path
) -> None:
    marker = tmp_path / "marker"
    repository.commit(a="one\n", **{"b.txt": "two\n", "c.evil": "three\n"})
    make_hostile(repository, marker)
    git = repository.git
    names = {blob_name(data, "0" * 40): len(data) for data in (b"one\n", b"two\n", b"gone\n")}
    assert len(await git.blobs(names)) == 2
    assert git.index().keys() <= {"a", "b.txt", "c.evil"}
    assert await git.filtered(["a", "b.txt", "c.evil", "d.evil2"]) == {"c.evil", "d.evil2"}
    repository.write(".git/info/exclude", "ignored.*\n")
    repository.write("ignored.evil")
    assert await git.ignored(["a", "ignored.evil"]) == {"ignored.evil"}
    assert set(await git.in_head(["a", "b.txt"])) == {"a", "b.txt"}
    assert set(await git.in_index(["a", "b.txt"])) == {"a", "b.txt"}
    repository.write("a", "changed\n")
    repository.write("b.txt", "changed\n")
    await commit_files(git, [CommitFile("a", REGULAR), CommitFile("b.txt", None)], "A message\n")
    assert not marker.exists(), marker.read_text()
    repository.run("status", check=False)
    assert marker.exists(), "the trap itself must work"
    with contextlib.suppress(ChildProcessError):  # what git left running is this process's now
        while os.waitpid(-1, os.WNOHANG)[0]:  # noqa: ASYNC222
            pass


async def test_a_commit_holds_these_files_and_nothing_else_changes(repository: Repository) -> None:
    repository.commit(
        **{"a.txt": "a\n", "b.txt": "b\n", "gone.txt": "g\n", "staged.txt": "s\n", "run.sh": "r\n"}
    )
    repository.write("stash.txt", "stashed\n")
    repository.run("stash", "push", "-q", "-u")
    repository.write("staged.txt", "staged\n")
    repository.run("add", "staged.txt")
    repository.write("b.txt", "dirty\n")
    repository.write("untracked.txt", "u\n")
    repository.write("a.txt", "new\n")
    repository.write("dir/made.txt", "made\n")
    (repository.root / "run.sh").chmod(0o755)
    (repository.root / "link").symlink_to("a.txt")
    (repository.root / "gone.txt").unlink()
    config = (repository.root / ".git" / "config").read_bytes()
    files = [
        CommitFile("a.txt", REGULAR),
        CommitFile("dir/made.txt", REGULAR),
        CommitFile("run.sh", PROGRAM),
        CommitFile("link", LINK, b"a.txt"),
        CommitFile("gone.txt", None),
    ]
    commit = await commit_files(repository.git, files, "Subject\n\nBody\n")
    assert repository.run("rev-parse", "HEAD").strip() == commit
    assert repository.run("log", "-1", "--format=%an|%ae|%s|%b").strip() == (
        "The User|user@example.org|Subject|Body"
    )
    assert repository.run("show", "--format=", "--name-status", "HEAD").split() == [
        "M", "a.txt", "A", "dir/made.txt", "D", "gone.txt", "A", "link", "M", "run.sh",
    ]  # fmt: skip
    assert repository.run("status", "--porcelain").splitlines() == [
        " M b.txt", "M  staged.txt", "?? untracked.txt",
    ]  # fmt: skip
    assert repository.run("stash", "list").count("\n") == 1
    assert (repository.root / ".git" / "config").read_bytes() == config
    assert repository.run("fsck", "--strict") == ""
    modes = {row.split("\t")[1]: row[:6] for row in repository.run("ls-tree", "HEAD").splitlines()}
    assert (modes["run.sh"], modes["link"], modes["a.txt"]) == ("100755", "120000", "100644")


async def test_a_file_behind_a_filter_program_is_refused(repository: Repository) -> None:
    repository.commit(**{".gitattributes": "*.big filter=lfs\n"})
    repository.write("a.big")
    with pytest.raises(GitError, match="filter program"):
        await commit_files(repository.git, [CommitFile("a.big", REGULAR)], "m\n")
    repository.run("config", "filter.o=dd.clean", "cat")
    with pytest.raises(GitError, match="can't be turned off"):
        await commit_files(repository.git, [CommitFile("b", REGULAR)], "m\n")


async def test_the_first_commit_of_a_repository_can_be_made(repository: Repository) -> None:
    repository.write("a.txt")
    commit = await commit_files(repository.git, [CommitFile("a.txt", REGULAR)], "First\n")
    assert repository.run("rev-parse", "main").strip() == commit
    assert repository.run("status", "--porcelain") == ""


async def test_a_file_becomes_a_folder_in_a_commit(repository: Repository) -> None:
    repository.commit(a="file\n")
    (repository.root / "a").unlink()
    repository.write("a/b", "inside\n")
    await commit_files(repository.git, [CommitFile("a", None), CommitFile("a/b", REGULAR)], "m\n")
    assert repository.run("status", "--porcelain") == ""


async def test_line_ends_are_stored_as_the_repository_wants_them(repository: Repository) -> None:
    repository.commit(**{".gitattributes": "*.txt text eol=crlf\n"})
    repository.write("a.txt", "one\r\ntwo\r\n")
    await commit_files(repository.git, [CommitFile("a.txt", REGULAR)], "m\n")
    assert repository.run("cat-file", "-s", "HEAD:a.txt") == "8\n"
    assert repository.run("status", "--porcelain") == ""


async def test_hundreds_of_files_with_odd_names_are_committed(repository: Repository) -> None:
    repository.commit(a="1")
    names = [f"d{i}/file {i}" for i in range(250)] + ["-n", "a\nb", "ü", ":(glob)*", "x,y", "'q\""]
    for name in names:
        repository.write(name, name)
    await commit_files(repository.git, [CommitFile(name, REGULAR) for name in names], "m\n")
    assert repository.run("status", "--porcelain") == ""
    assert len(repository.run("ls-tree", "-r", "-z", "HEAD").split("\0")) == len(names) + 2


async def test_what_is_under_way_or_locked_is_not_disturbed(repository: Repository) -> None:
    repository.commit(a="1")
    repository.write("a", "2")
    head = repository.run("rev-parse", "HEAD")
    for name, message in (("MERGE_HEAD", "a merge"), ("index.lock", "locked")):
        (repository.root / ".git" / name).write_text(head)
        with pytest.raises(GitError, match=message):
            await commit_files(repository.git, [CommitFile("a", REGULAR)], "m\n")
        (repository.root / ".git" / name).unlink()
    assert repository.run("rev-parse", "HEAD") == head


async def test_nothing_to_commit_and_nobody_to_commit_as_are_clear_errors(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit(a="1")
    with pytest.raises(GitError, match="nothing to commit"):
        await commit_files(repository.git, [CommitFile("a", REGULAR)], "m\n")
    repository.write("a", "2")
    head = repository.run("rev-parse", "HEAD")
    repository.run("config", "user.useConfigOnly", "true")
    repository.run("config", "--unset", "user.email")
    with pytest.raises(GitError, match=r"user\.email|identity|no email"):
        await commit_files(repository.git, [CommitFile("a", REGULAR)], "m\n")
    assert repository.run("rev-parse", "HEAD") == head


async def test_without_the_program_git_it_is_an_error_with_a_hint(repository: Repository) -> None:
    git = Git(repository.root, repository.root / ".git", {"PATH": "/nowhere"})
    with pytest.raises(GitError) as error:
        await git.call("rev-parse", "HEAD")
    assert "Install git" in error.value.hint
