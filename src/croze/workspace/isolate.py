"""A work tree of its own for an agent: the project as it stands, in croze's data folder.

A folder `<worktrees>/<name>` holds `lock` (held while the agent works), `about` (whose it is), `base`
(what was copied), `git` (a repository that borrows the user's objects), and `tree`, the work tree with
a copy of that repository. In the user's repository nothing is written, so a crash leaves nothing there.

The rule for what a crash leaves here: a folder whose lock nobody holds is a leftover. Where its agent
changed nothing it is removed; else its work is first kept as `kept/<name>.patch`, and told.
"""

import asyncio
import fcntl
import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec import Struct

from croze.store.failpoint import passes
from croze.store.files import open_lock, private_folder
from croze.types.errors import CrozeError
from croze.workspace.git import Git
from croze.workspace.isolate_copy import (
    Copied,
    IsolationError,
    Work,
    copy_files,
    keep_object,
    make_folder,
    named,
)
from croze.workspace.isolate_git import (
    Repository,
    make_git_folder,
    of_others,
    read_repository,
    write_index,
)
from croze.workspace.restore import look
from croze.workspace.sandbox import Confinement

KEPT = "kept"
_BATCH = 100
_OTHERS = "what lies in another repository is not taken over"
_EMPTY = frozenset({"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"})
"""What an index may name without there being an object."""


class About(Struct, frozen=True):
    """Whose work tree it is."""

    project: str
    session: str


class Leftover(Struct, frozen=True):
    """A work tree that a crash left: the session that worked in it, and the patch that keeps its work."""

    session: str
    patch: Path
    files: int


@dataclass(slots=True)
class Worktree:
    """One work tree. `root` is where the agent works; `notes` tell what isn't in it."""

    folder: Path
    env: Mapping[str, str]
    notes: tuple[str, ...]
    _form: str
    _base: dict[str, Copied]
    _lock: int = field(default=-1, repr=False)

    @property
    def root(self) -> Path:
        return self.folder / "tree"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def changes(self) -> list[Work]:
        """What differs from what was copied, by path: files that git is told to ignore left out."""
        new = await self._new()
        found = await asyncio.to_thread(self._compared, [p for p in new if not p.endswith("/")])
        wanted = {copied.blob: copied.size for _, copied in found if copied is not None}
        old = await self._git().blobs(wanted) if wanted else {}
        works = [
            work if copied is None else _with_base(work, copied, old.get(copied.blob))
            for work, copied in found
        ]
        others = await of_others(self._git(), self.root, new)
        return works + [Work(path, None, None, None, None, _OTHERS) for path in others]

    async def _new(self) -> list[str]:
        """The files and (with "/") repositories that weren't there, without what git is told to ignore."""
        git = self._git()
        listing = await git.call(
            "ls-files", "-z", "--others", "--exclude-standard", index=git.folder / "index"
        )
        return [os.fsdecode(row) for row in listing.split(b"\0") if row]

    def _compared(self, new: Sequence[str]) -> list[tuple[Work, Copied | None]]:
        found: list[tuple[Work, Copied | None]] = []
        for path, copied in self._base.items():
            try:
                if copied.is_as(os.lstat(self.root / path)):
                    continue
            except OSError:
                pass
            work = self._now(path, copied.mode)
            same = work.new is not None and named(work.new, self._form) == copied.blob
            if not (same and work.mode is not None and _same_mode(work.mode, copied.mode)):
                found.append((work, copied))
        found += [
            (work, None)
            for path in new
            if path not in self._base and (work := self._now(path, None)).mode is not None
        ]
        return sorted(found, key=lambda item: item[0].path)

    def _now(self, path: str, base_mode: int | None) -> Work:
        present = look(self.root, path)
        if present is None or present.is_folder:
            return Work(path, None, base_mode, None, None)
        lost = "" if present.data is not None else "it is too large, or no regular file"
        return Work(path, None, base_mode, present.data, present.mode, lost)

    async def patch(self) -> bytes:
        """All of the work as a diff that `git apply` takes."""
        git = self._git()
        index = git.folder / "index.patch"
        shutil.copyfile(git.folder / "index", index)
        try:
            new = [path for path in await self._new() if not path.endswith("/")]
            for at in range(0, len(new), _BATCH):
                batch = new[at : at + _BATCH]
                await git.call("add", "--intent-to-add", "--", *batch, index=index)
            return await git.call(
                "diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv",
                "--no-renames", "--src-prefix=a/", "--dst-prefix=b/", index=index,
            )  # fmt: skip
        finally:
            index.unlink(missing_ok=True)

    async def close(self, *, keep: bool = False) -> None:
        """The work has come back, or isn't wanted: remove everything. With `keep` the folder stays, and
        becomes a leftover."""
        if self._lock < 0:
            return
        if not keep:
            await asyncio.to_thread(_remove, self.folder)
        os.close(self._lock)
        self._lock = -1

    def _git(self) -> Git:
        return Git(self.root, self.folder / "git", self.env)


async def open_worktree(
    project: Path,
    folder: Path,
    env: Mapping[str, str],
    *,
    session: str = "",
    confinement: Confinement | None = None,
) -> Worktree:
    """A work tree in `folder` (made, 0700) of `project` as it stands: uncommitted and untracked files
    too, ignored ones not. Raises `IsolationError` where that can't be; then nothing is left."""
    git = Git.of(project, env, confinement)
    if git is None:
        raise IsolationError(
            f"{project} is no git repository, so it has no work trees.",
            hint="Use isolation: task or shared for this agent, or run `git init` there.",
            code="worktree_needs_git",
            path=str(project),
        )
    if os.path.lexists(folder):
        raise IsolationError(f"{folder} is there already.", hint="Remove it, or use another name.")
    private_folder(folder)
    lock = _locked(folder / "lock")
    try:
        about = About(project=os.fsencode(project).decode("utf-8", "replace"), session=session)
        _private(folder / "about", msgspec.json.encode(about))
        repository = await read_repository(git)
        passes("worktree.begun")
        base, notes = await asyncio.to_thread(_fill, project, folder, repository)
        passes("worktree.made")
        return Worktree(folder, env, notes, repository.form, base, lock)
    except BaseException as error:
        await asyncio.to_thread(_remove, folder)
        os.close(lock)
        if isinstance(error, CrozeError) and not isinstance(error, IsolationError):
            raise IsolationError(
                f"No work tree could be made of {project}: {error.message}",
                hint=error.hint or "Use isolation: shared.",
                reason=error.message,
            ) from error
        if isinstance(error, OSError):
            raise IsolationError(
                f"No work tree could be made in {folder}: {error.strerror}.",
                hint="Free some space there, or use isolation: shared.",
                reason=error.strerror,
            ) from error
        raise


def _fill(
    project: Path, folder: Path, repository: Repository
) -> tuple[dict[str, Copied], tuple[str, ...]]:
    tree, git = Path(os.path.realpath(folder)) / "tree", folder / "git"
    tree.mkdir(0o700)
    make_git_folder(git, repository, own=project.parent.parent == folder.parent)
    known = {blob for _, blob in repository.tracked.values()} - _EMPTY

    def keep(blob: str, data: bytes) -> None:
        if blob not in known:
            keep_object(git / "objects", blob, data)
            known.add(blob)

    paths = {*repository.tracked, *repository.untracked}
    copy = copy_files(project, tree, paths, keep, repository.form)
    for link in repository.links:
        make_folder(tree, link)
    write_index(git / "index", repository, copy.files)
    shutil.copytree(git, tree / ".git")
    _private(folder / "base", _encoded(repository.form, copy.files))
    return {file.path: file for file in copy.files}, _notes(repository, copy.left_out)


def _encoded(form: str, files: Sequence[Copied]) -> bytes:
    rows = [(os.fsencode(file.path), *msgspec.structs.astuple(file)[1:]) for file in files]
    return msgspec.msgpack.encode((form, rows))


_Row = tuple[bytes, str, int, int, int, int, int, int]


def _decoded(data: bytes) -> tuple[str, dict[str, Copied]]:
    form, rows = msgspec.msgpack.decode(data, type=tuple[str, list[_Row]])
    return form, {os.fsdecode(row[0]): Copied(os.fsdecode(row[0]), *row[1:]) for row in rows}


def _notes(repository: Repository, left_out: Sequence[str]) -> tuple[str, ...]:
    told = []
    for what, paths in (
        ("Submodules are empty folders here", sorted(repository.links)),
        ("Repositories in the project are not copied", sorted(repository.nested)),
        ("These could not be read and are missing here", sorted(left_out)),
    ):
        if paths:
            more = f" and {len(paths) - 10} more" if len(paths) > 10 else ""
            told.append(f"{what}: {', '.join(paths[:10])}{more}.")
    return tuple(told)


def _with_base(work: Work, copied: Copied, data: bytes | None) -> Work:
    if data is None and copied.size == 0 and not stat.S_ISLNK(copied.mode):
        data = b""
    lost = work.lost or ("" if data is not None else "its content at the start is lost")
    return msgspec.structs.replace(work, base=data, lost=lost)


def _same_mode(one: int, other: int) -> bool:
    """As git sees it: the kind, and for files whether they can be run."""
    if stat.S_IFMT(one) != stat.S_IFMT(other):
        return False
    return not stat.S_ISREG(one) or bool(one & 0o100) == bool(other & 0o100)


def take_up(folder: Path, env: Mapping[str, str]) -> Worktree | None:
    """A work tree whose process died; None where there is none, or it is in use, or nobody had begun to
    work in it."""
    lock = _try_lock(folder / "lock")
    if lock is None:
        return None
    try:
        form, base = _decoded((folder / "base").read_bytes())
    except (OSError, msgspec.DecodeError):
        os.close(lock)
        return None
    return Worktree(folder, env, (), form, base, lock)


def discard(folder: Path) -> None:
    """Remove a left-over work tree whose work has come back."""
    lock = _try_lock(folder / "lock")
    if lock is not None:
        _remove(folder)
        os.close(lock)


async def recover(worktrees: Path, env: Mapping[str, str]) -> list[Leftover]:
    """Remove what dead processes have left in this folder of work trees, after keeping what was done
    there; those that are in use are passed by. What can't be read is left as it is."""
    found: list[Leftover] = []
    try:
        names = sorted(name for name in os.listdir(worktrees) if name != KEPT)
    except OSError:
        return found
    for name in names:
        with suppress(CrozeError, OSError, msgspec.DecodeError):
            found += await _recovered(worktrees / name, env)
    return found


async def _recovered(folder: Path, env: Mapping[str, str]) -> list[Leftover]:
    if not (folder / "base").exists():
        await asyncio.to_thread(discard, folder)
        return []
    tree = take_up(folder, env)
    if tree is None:
        return []
    try:
        about = msgspec.json.decode((folder / "about").read_bytes(), type=About)
        changes = await tree.changes() if tree.root.is_dir() else []
        patch = kept_patch(folder.parent, folder.name)
        if changes:
            private_folder(patch.parent)
            _private(patch, await tree.patch())
    except BaseException:
        await tree.close(keep=True)
        raise
    await tree.close()
    return [Leftover(about.session or folder.name, patch, len(changes))] if changes else []


def kept_patch(worktrees: Path, name: str) -> Path:
    """Where the work of a left-over tree is kept."""
    return worktrees / KEPT / f"{name}.patch"


def _private(path: Path, data: bytes) -> None:
    """Write a new file 0600, whole or not at all."""
    temporary = path.with_name(f".{path.name}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(descriptor)
    os.rename(temporary, path)


def _locked(path: Path) -> int:
    descriptor = open_lock(path)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def _try_lock(path: Path) -> int | None:
    """The lock, where nobody holds it; None where somebody does or there is none."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _remove(folder: Path) -> None:
    """`base` goes first and the lock last, so that a removal that was broken off is taken up again, and
    not taken for an agent that has removed its files."""

    def writable(_call: object, path: str, _error: object) -> None:
        with suppress(OSError):
            os.chmod(os.path.dirname(path), 0o700)
            os.unlink(path)

    for name in ("base", "tree", "git", "about"):
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, onerror=writable)
        else:
            path.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
