"""Work trees apart: they hold the project as it stands, and the user's repository is never written."""

import hashlib
import os
import stat
import subprocess
from pathlib import Path

import pytest

from croze.workspace.isolate import Worktree, open_worktree
from croze.workspace.isolate_copy import IsolationError, Work
from tests.workspace.test_git import Repository


def state(root: Path, *, times: bool = True) -> dict[str, tuple[int, int, str]]:
    """Every file and folder: mode, time of change, content."""
    found: dict[str, tuple[int, int, str]] = {}
    for folder, names, files in os.walk(os.fsencode(root)):
        for name in [*names, *files, b"."]:
            path = os.path.join(folder, name)
            now = os.lstat(path)
            data = b""
            if stat.S_ISREG(now.st_mode):
                data = Path(os.fsdecode(path)).read_bytes()
            at = now.st_mtime_ns if times else 0
            found[os.fsdecode(path)] = now.st_mode, at, hashlib.sha256(data).hexdigest()
    return found


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repository")
    made.commit(
        **{"a.txt": "a\n", "deep/er/b.txt": "b\n", ".gitignore": "*.o\n", "gone.txt": "x\n"}
    )
    return made


async def opened(repository: Repository, name: str = "one") -> Worktree:
    folder = repository.root.parent / "data" / name
    return await open_worktree(repository.root, folder, dict(os.environ), session=name)


def git(tree: Worktree, *args: str) -> str:
    return subprocess.run(
        ["git", *args], cwd=tree.root, capture_output=True, text=True, check=True
    ).stdout


def works(changes: list[Work]) -> dict[str, tuple[bytes | None, bytes | None]]:
    assert not any(work.lost for work in changes)
    return {work.path: (work.base, work.new) for work in changes}


async def test_it_holds_the_project_as_it_stands_without_what_git_ignores(
    repository: Repository,
) -> None:
    repository.write("a.txt", "dirty\n")
    repository.write("staged.txt", "staged\n")
    repository.run("add", "staged.txt")
    repository.write("staged.txt", "and changed\n")
    repository.write("new/untracked.txt", "new\n")
    repository.write("junk.o", "junk\n")
    (repository.root / "gone.txt").unlink()
    async with await opened(repository) as tree:
        found = {
            str(path.relative_to(tree.root)): path.read_text()
            for path in tree.root.rglob("*")
            if path.is_file() and ".git/" not in str(path)
        }
        assert found == {
            ".gitignore": "*.o\n", "a.txt": "dirty\n", "deep/er/b.txt": "b\n",
            "staged.txt": "and changed\n", "new/untracked.txt": "new\n",
        }  # fmt: skip
        assert stat.S_IMODE(tree.folder.stat().st_mode) == 0o700
        assert await tree.changes() == []
        assert await tree.patch() == b""


async def test_git_works_inside_and_shows_the_agents_own_changes(repository: Repository) -> None:
    repository.run("tag", "v1")
    repository.write("untracked.txt", "u\n")
    async with await opened(repository) as tree:
        assert git(tree, "diff") == ""
        assert git(tree, "status", "--short") == "A  untracked.txt\n"
        assert git(tree, "log", "--format=%s", "v1") == "before\n"
        assert git(tree, "rev-parse", "--abbrev-ref", "HEAD") == "main\n"
        (tree.root / "a.txt").write_text("agent\n")
        assert git(tree, "diff", "--stat").startswith(" a.txt | 2 +-")
        assert git(tree, "fsck", "--no-dangling") == ""


async def test_nothing_is_written_in_the_users_repository_whatever_is_done_in_the_tree(
    repository: Repository,
) -> None:
    repository.write("a.txt", "dirty\n")
    repository.write("untracked.txt", "u\n")
    before = state(repository.root)
    async with await opened(repository) as tree:
        (tree.root / "a.txt").write_text("agent\n")
        (tree.root / "empty.txt").write_text("")
        git(tree, "status")
        git(tree, "diff", "HEAD")
        assert len(await tree.changes()) == 2
        await tree.patch()
    assert state(repository.root) == before
    # An agent that commits lets git renew the times of objects that it finds borrowed, no more.
    before = state(repository.root, times=False)
    tree = await opened(repository)
    (tree.root / "a.txt").write_text("agent\n")
    (tree.root / "more.txt").write_text("more\n")
    git(tree, "add", "-A")
    git(tree, "-c", "user.name=a", "-c", "user.email=a@x", "commit", "-qm", "agent's")
    git(tree, "branch", "mine")
    git(tree, "gc", "-q")
    assert works(await tree.changes()) == {
        "a.txt": (b"dirty\n", b"agent\n"), "more.txt": (None, b"more\n"),
    }  # fmt: skip
    assert b"+agent" in await tree.patch()
    await tree.close()
    assert state(repository.root, times=False) == before
    assert not tree.folder.exists()


async def test_changes_are_told_even_where_the_agent_removed_the_git_folder(
    repository: Repository,
) -> None:
    async with await opened(repository) as tree:
        subprocess.run(["rm", "-rf", str(tree.root / ".git")], check=True)
        (tree.root / "a.txt").unlink()
        (tree.root / "deep" / "er" / "b.txt").rename(tree.root / "moved.txt")
        (tree.root / "junk.o").write_text("ignored\n")
        assert works(await tree.changes()) == {
            "a.txt": (b"a\n", None), "deep/er/b.txt": (b"b\n", None), "moved.txt": (None, b"b\n"),
        }  # fmt: skip


async def test_a_file_that_was_touched_or_put_back_is_no_change(repository: Repository) -> None:
    async with await opened(repository) as tree:
        os.utime(tree.root / "a.txt", (1, 1))
        (tree.root / "deep/er/b.txt").write_text("other\n")
        (tree.root / "deep/er/b.txt").write_text("b\n")
        assert await tree.changes() == []


async def test_modes_links_and_odd_names_come_over_and_back(repository: Repository) -> None:
    odd = os.fsdecode(b'caf\xe9 "x"\n.txt')
    repository.write(odd, b"\0binary")
    repository.write("run.sh", "#!/bin/sh\n")
    (repository.root / "run.sh").chmod(0o755)
    (repository.root / "link").symlink_to("/etc/passwd")
    (repository.root / "dir").symlink_to("deep")
    repository.run("add", "-A")
    async with await opened(repository) as tree:
        assert (tree.root / odd).read_bytes() == b"\0binary"
        assert os.readlink(tree.root / "link") == "/etc/passwd"
        assert os.readlink(tree.root / "dir") == "deep"
        assert os.access(tree.root / "run.sh", os.X_OK)
        assert git(tree, "diff") == ""
        (tree.root / "run.sh").chmod(0o644)
        (tree.root / "link").unlink()
        (tree.root / "link").symlink_to("a.txt")
        (tree.root / odd).write_bytes(b"\0other")
        found = {work.path: work for work in await tree.changes()}
        assert found.keys() == {"run.sh", "link", odd}
        assert (found["link"].base, found["link"].new) == (b"/etc/passwd", b"a.txt")
        assert (found["run.sh"].base_mode or 0) & 0o111
        assert not (found["run.sh"].mode or 0) & 0o111
        assert found[odd].base == b"\0binary"


async def test_a_link_that_took_a_folders_place_is_not_followed(repository: Repository) -> None:
    outside = repository.root.parent / "outside"
    (outside / "er").mkdir(parents=True)
    (outside / "er" / "b.txt").write_text("secret\n")
    subprocess.run(["rm", "-rf", str(repository.root / "deep")], check=True)
    (repository.root / "deep").symlink_to(outside)
    async with await opened(repository) as tree:
        assert os.readlink(tree.root / "deep") == str(outside)
        assert not (tree.folder / "tree" / "deep").is_dir() or (tree.root / "deep").is_symlink()
        assert "secret" not in str(await tree.changes())


@pytest.mark.parametrize("form", ["sha1", "sha256"])
async def test_an_empty_repository_and_either_hash(tmp_path: Path, form: str) -> None:
    repository = Repository(tmp_path / "repository", form=form)
    async with await opened(repository, "empty") as tree:
        assert git(tree, "status", "--short") == ""
    repository.write("a.txt", "a\n")
    repository.write("empty.txt", "")
    async with await opened(repository) as tree:
        assert git(tree, "status", "--short") == "A  a.txt\nA  empty.txt\n"
        (tree.root / "a.txt").write_text("b\n")
        (tree.root / "empty.txt").write_text("full\n")
        assert works(await tree.changes()) == {
            "a.txt": (b"a\n", b"b\n"),
            "empty.txt": (b"", b"full\n"),
        }
        assert git(tree, "diff", "--name-only") == "a.txt\nempty.txt\n"


async def test_a_linked_work_tree_and_a_detached_head(repository: Repository) -> None:
    linked = repository.root.parent / "linked"
    repository.run("worktree", "add", "-q", "--detach", str(linked))
    (linked / "a.txt").write_text("linked\n")
    before = state(repository.root)
    tree = await open_worktree(linked, repository.root.parent / "wt", dict(os.environ))
    assert (tree.root / "a.txt").read_text() == "linked\n"
    assert git(tree, "rev-parse", "HEAD") == repository.run("rev-parse", "HEAD")
    assert git(tree, "log", "--format=%s") == "before\n"
    (tree.root / "a.txt").write_text("agent\n")
    assert works(await tree.changes()) == {"a.txt": (b"linked\n", b"agent\n")}
    await tree.close()
    assert state(repository.root) == before


async def test_line_ends_and_filters_are_not_converted_and_filters_not_run(
    repository: Repository,
) -> None:
    marker = repository.root.parent / "ran"
    script = repository.root.parent / "filter.sh"
    script.write_text(f"#!/bin/sh\ntouch {marker}\ntr a-z A-Z\n")
    script.chmod(0o755)
    repository.commit(**{".gitattributes": "*.crlf text eol=crlf\n*.big filter=big\n"})
    repository.write("w.crlf", b"one\r\ntwo\r\n")
    repository.run("add", "-A")
    repository.write("x.big", "pointer\n")
    repository.run("add", "-A")
    repository.run("commit", "-qm", "more")
    for name in ("filter.big.clean", "filter.big.smudge", "core.fsmonitor"):
        repository.run("config", name, str(script))
    hook = repository.root / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {marker}\n")
    hook.chmod(0o755)
    async with await opened(repository) as tree:
        assert (tree.root / "w.crlf").read_bytes() == b"one\r\ntwo\r\n"
        assert git(tree, "diff") == ""
        (tree.root / "w.crlf").write_bytes(b"one\r\nTWO\r\n")
        (tree.root / "x.big").write_bytes(b"other\n")
        assert works(await tree.changes()) == {
            "w.crlf": (b"one\r\ntwo\r\n", b"one\r\nTWO\r\n"), "x.big": (b"pointer\n", b"other\n"),
        }  # fmt: skip
        await tree.patch()
    assert not marker.exists()


async def test_submodules_are_empty_and_told_and_repositories_inside_are_left_out(
    repository: Repository,
) -> None:
    inner = Repository(repository.root.parent / "inner")
    inner.commit(**{"i.txt": "i\n"})
    repository.run(
        "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.root), "sub"
    )
    Repository(repository.root / "nested").commit(**{"n.txt": "n\n"})
    async with await opened(repository) as tree:
        assert list((tree.root / "sub").iterdir()) == []
        assert not (tree.root / "nested").exists()
        assert any("sub" in note for note in tree.notes)
        assert any("nested/" in note for note in tree.notes)
        assert git(tree, "diff") == ""
        assert await tree.changes() == []


async def test_what_is_written_into_other_repositories_is_named_and_not_lost_silently(
    repository: Repository,
) -> None:
    commit = repository.run("rev-parse", "HEAD").strip()
    repository.run("update-index", "--add", "--cacheinfo", f"160000,{commit},deep/sub")
    repository.run("update-index", "--add", "--cacheinfo", f"160000,{commit},untouched")
    async with await opened(repository) as tree:
        (tree.root / "deep/sub/z.txt").write_text("z\n")
        Repository(tree.root / "clone").commit(**{"n.txt": "n\n"})
        (tree.root / "own.txt").write_text("own\n")
        found = {work.path: work.lost for work in await tree.changes()}
        assert set(found) == {"deep/sub", "clone", "own.txt"}
        assert "another repository" in found["deep/sub"] == found["clone"]
        assert found["own.txt"] == ""
        assert b"own.txt" in await tree.patch()


@pytest.mark.parametrize("sparse_index", [False, True])
async def test_a_sparse_checkout_stays_sparse(repository: Repository, sparse_index: bool) -> None:
    repository.commit(**{"keep/k.txt": "k\n", "drop/d.txt": "d\n"})
    option = "--sparse-index" if sparse_index else "--no-sparse-index"
    repository.run("sparse-checkout", "set", "--cone", option, "keep")
    assert not (repository.root / "drop").exists()
    async with await opened(repository) as tree:
        assert not (tree.root / "drop").exists()
        assert git(tree, "status", "--short") == ""
        (tree.root / "keep/k.txt").write_text("K\n")
        assert works(await tree.changes()) == {"keep/k.txt": (b"k\n", b"K\n")}


@pytest.mark.parametrize("form", [("index.version", "4"), ("core.splitIndex", "true")])
async def test_any_form_of_index_is_read(repository: Repository, form: tuple[str, str]) -> None:
    repository.run("config", *form)
    repository.commit(**{"late.txt": "late\n"})
    async with await opened(repository) as tree:
        assert (tree.root / "late.txt").read_text() == "late\n"
        assert git(tree, "status", "--short") == ""


async def test_what_is_no_repository_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(IsolationError) as refused:
        await open_worktree(tmp_path / "plain", tmp_path / "wt", dict(os.environ))
    assert refused.value.code == "worktree_needs_git"
    assert "isolation: task" in refused.value.hint
    assert "git init" in refused.value.hint
    assert not (tmp_path / "wt").exists()


async def test_a_broken_repository_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    repository.write("a.txt", "a\n")
    repository.run("add", "a.txt")
    (repository.root / ".git" / "index").write_bytes(b"DIRC nonsense")
    with pytest.raises(IsolationError) as refused:
        await opened(repository)
    assert "No work tree could be made" in refused.value.message
    assert os.listdir(tmp_path / "data") == []


async def test_a_tree_of_a_tree_stands_on_its_own(repository: Repository) -> None:
    tree = await opened(repository, "parent")
    (tree.root / "a.txt").write_text("parent's\n")
    grandchild = await open_worktree(tree.root, tree.folder.parent / "child", dict(os.environ))
    assert (grandchild.root / "a.txt").read_text() == "parent's\n"
    (grandchild.root / "a.txt").write_text("child's\n")
    await tree.close()
    assert works(await grandchild.changes()) == {"a.txt": (b"parent's\n", b"child's\n")}
    assert git(grandchild, "log", "--format=%s") == "before\n"
    await grandchild.close()
    assert os.listdir(tree.folder.parent) == []


async def test_the_patch_makes_the_same_files_of_what_the_agent_began_with(
    repository: Repository,
) -> None:
    repository.write("data.bin", bytes(range(256)))
    repository.write("run.sh", "x\n")
    tree = await opened(repository)
    (tree.root / "data.bin").write_bytes(bytes(range(255, -1, -1)))
    (tree.root / "a.txt").write_bytes(b"no newline at the end")
    (tree.root / "deep/er/b.txt").unlink()
    (tree.root / "new dir").mkdir()
    (tree.root / "new dir" / "é.txt").write_text("new\n")
    (tree.root / "run.sh").chmod(0o755)
    (tree.root / "link").symlink_to("a.txt")
    patch = await tree.patch()
    copy = Repository(repository.root.parent / "copy")
    for path in ("a.txt", "deep/er/b.txt", "data.bin", "run.sh"):
        copy.write(path, (repository.root / path).read_bytes())
    subprocess.run(["git", "apply", "-"], input=patch, cwd=copy.root, check=True)
    for path in ("a.txt", "data.bin", "new dir/é.txt", "run.sh"):
        assert (copy.root / path).read_bytes() == (tree.root / path).read_bytes()
    assert not (copy.root / "deep/er/b.txt").exists()
    assert os.access(copy.root / "run.sh", os.X_OK)
    assert os.readlink(copy.root / "link") == "a.txt"
    await tree.close()


async def test_a_tree_with_folders_that_may_not_be_entered_is_removed(
    repository: Repository,
) -> None:
    tree = await opened(repository)
    (tree.root / "locked" / "inner").mkdir(parents=True)
    (tree.root / "locked" / "inner" / "f").write_text("x")
    (tree.root / "locked" / "inner").chmod(0)
    (tree.root / "locked").chmod(0o500)
    await tree.close()
    assert not tree.folder.exists()


async def test_a_submodule_whose_folder_became_a_link_makes_nothing_elsewhere(
    repository: Repository,
) -> None:
    outside = repository.root.parent / "outside"
    outside.mkdir()
    commit = repository.run("rev-parse", "HEAD").strip()
    for path in ("deep/sub", "other/sub"):
        repository.run("update-index", "--add", "--cacheinfo", f"160000,{commit},{path}")
    subprocess.run(["rm", "-rf", str(repository.root / "deep")], check=True)
    (repository.root / "deep").symlink_to(outside)
    async with await opened(repository) as tree:
        assert list(outside.iterdir()) == []
        assert (tree.root / "other" / "sub").is_dir()
