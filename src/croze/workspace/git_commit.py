"""One commit of some files, beside the user's index: nothing else of the repository's state is touched."""

import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from croze.workspace.git import Git, GitError

_BATCH = 100
_UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "BISECT_LOG": "a bisection",
}


class CommitFile(Struct, frozen=True):
    """A file to be committed as it stands: `mode` is its `st_mode`, None where it was removed;
    `target` is a link's."""

    path: str
    mode: int | None
    target: bytes | None = None


async def check_ready(git: Git) -> None:
    """Raises `GitError` where a commit of ours would get in the way of something."""
    for name, what in _UNDER_WAY.items():
        if (git.folder / name).exists():
            raise GitError(
                f"{what} is under way in this repository.", hint="Finish it first.",
                code="git_under_way", what=what,
            )  # fmt: skip
    if (git.folder / "index.lock").exists():
        raise GitError(
            "The repository's index is locked by another program.",
            hint=f"Wait for it; where none runs, remove {git.folder / 'index.lock'}.",
            code="git_locked",
            path=str(git.folder / "index.lock"),
        )


async def commit_files(git: Git, files: Sequence[CommitFile], message: str) -> str:
    """Commit these files upon HEAD and give the commit's name. Hooks don't run, nothing is signed.

    The tree is made in an index of its own; of the user's index only these paths' entries change.
    Raises `GitError`; then HEAD is where it was.
    """
    await check_ready(git)
    await git.disarm()
    filtered = await git.filtered([file.path for file in files if file.mode is not None])
    if filtered:
        raise GitError(
            f"git stores {min(filtered)} by a filter program, which isn't run here.",
            hint="Commit this file with git itself.",
            code="git_filtered",
            path=min(filtered),
        )
    head = await git.head()
    entries = await _stored(git, files)
    gone = [file.path for file in files if file.mode is None]
    with tempfile.TemporaryDirectory(prefix="croze-") as folder:
        own = Path(folder) / "index"
        if head is not None:
            await git.call("read-tree", head, index=own)
        await _enter(git, entries, gone, index=own)
        tree = (await git.call("write-tree", index=own)).decode().strip()
    if head is not None:
        before = (await git.call("rev-parse", f"{head}^{{tree}}")).decode().strip()
        if before == tree:
            raise GitError("There is nothing to commit.", code="nothing_to_commit")
    parents = ["-p", head] if head is not None else []
    commit = (await git.call("commit-tree", tree, *parents, "-m", message)).decode().strip()
    subject = message.partition("\n")[0]
    old = head if head is not None else "0" * len(commit)
    await git.call("update-ref", "-m", f"commit: {subject}", "HEAD", commit, old)
    await _enter(git, entries, gone, index=None)
    kept = [path for _, _, path in entries]
    for at in range(0, len(kept), _BATCH):
        await git.call("add", "--refresh", "--", *kept[at : at + _BATCH])
    return commit


async def _stored(git: Git, files: Sequence[CommitFile]) -> list[tuple[str, str, str]]:
    """The files' contents as objects: mode, name and path of each."""
    entries: list[tuple[str, str, str]] = []
    regular = [file for file in files if file.mode is not None and stat.S_ISREG(file.mode)]
    for at in range(0, len(regular), _BATCH):
        batch = regular[at : at + _BATCH]
        made = await git.call("hash-object", "-w", "--", *(file.path for file in batch))
        names = made.decode().split()
        if len(names) != len(batch):
            raise GitError(f"git hash-object gave {len(names)} names for {len(batch)} files.")
        for file, name in zip(batch, names, strict=True):
            assert file.mode is not None
            entries.append(("100755" if file.mode & 0o100 else "100644", name, file.path))
    for file in files:
        if file.target is not None:
            with tempfile.NamedTemporaryFile(prefix="croze-") as link:
                link.write(file.target)
                link.flush()
                made = await git.call("hash-object", "-w", "--no-filters", "--", link.name)
            entries.append(("120000", made.decode().strip(), file.path))
    return entries


async def _enter(
    git: Git, entries: Sequence[tuple[str, str, str]], gone: Sequence[str], index: Path | None
) -> None:
    for at in range(0, len(gone), _BATCH):
        batch = gone[at : at + _BATCH]
        await git.call("update-index", "--force-remove", "--", *batch, index=index)
    for at in range(0, len(entries), _BATCH):
        args = ["--add", "--replace"]
        for mode, name, path in entries[at : at + _BATCH]:
            args += ["--cacheinfo", f"{mode},{name},{path}"]
        await git.call("update-index", *args, index=index)
