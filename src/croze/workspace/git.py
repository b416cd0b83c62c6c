"""Git without the repository's own programs: hooks, filters, monitors and drivers are never started.

Every call names its folders itself, turns off what a hostile `.git/config` could have run, takes no
locks of its own accord and starts no transport. Calls that only read run in a read-only sandbox where
the machine has one.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from croze.types.errors import CrozeError
from croze.workspace.git_index import Indexed, blob_name, read_index
from croze.workspace.process import ProcessError, child_environment, run
from croze.workspace.sandbox import Confinement
from croze.workspace.wrapper import Wrapper

TIMEOUT = 60.0
"""Seconds for one call."""

MOST_BYTES = 256 << 20
_BATCH_PATHS = 200
_BATCH_BYTES = 64 << 20
_SMALL = 4096

_OFF = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.untrackedCache": "false",
    "core.pager": "cat",
    "core.editor": "false",
    "core.askPass": "false",
    "core.sshCommand": "false",
    "core.alternateRefsCommand": "",
    "credential.helper": "",
    "diff.external": "",
    "commit.gpgSign": "false",
    "log.showSignature": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "submodule.recurse": "false",
}
_ENV = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_EDITOR": "false",
    "GIT_EXTERNAL_DIFF": "",
    "LC_ALL": "C",
}
_READING = frozenset(
    {
        "blame",
        "cat-file",
        "check-attr",
        "config",
        "for-each-ref",
        "ls-files",
        "ls-tree",
        "rev-parse",
        "show",
    }
)
_IDENTITY = ("GIT_AUTHOR_", "GIT_COMMITTER_", "EMAIL")


class GitError(CrozeError):
    """A git call that failed; `message` has git's own words."""

    code = "git"


class Listed(Struct, frozen=True):
    """An entry of a tree or of the index: mode as git writes it, and the object's name."""

    mode: str
    blob: str


class Git(Struct):
    """One work tree. `folder` is its git folder (of a linked work tree: its own one)."""

    root: Path
    folder: Path
    env: Mapping[str, str]
    confinement: Confinement | None = None
    _index: dict[str, Indexed] = field(default_factory=dict)
    _stamp: tuple[int, int, int] | None = None
    _filters: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, root: Path, env: Mapping[str, str], confinement: Confinement | None = None
    ) -> "Git | None":
        """The work tree whose top is `root`; None where it is none. Git isn't run."""
        dot_git = root / ".git"
        if dot_git.is_dir():
            return cls(root, dot_git, env, confinement)
        try:
            with dot_git.open("rb") as stream:
                line = stream.read(_SMALL).decode("utf-8", "surrogateescape").partition("\n")[0]
        except OSError:
            return None
        if not line.startswith("gitdir:"):
            return None
        folder = Path(os.path.realpath(root / line.removeprefix("gitdir:").strip()))
        return cls(root, folder, env, confinement) if folder.is_dir() else None

    def index(self) -> Mapping[str, Indexed]:
        """The clean entries of the index as it stands; read again only where it has changed."""
        path = self.folder / "index"
        try:
            found = path.stat()
        except OSError:
            return {}
        stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        if stamp != self._stamp:
            self._index, self._stamp = read_index(path), stamp
        return self._index

    async def call(self, *args: str, index: Path | None = None) -> bytes:
        """Run git with these arguments; its output. Raises `GitError`."""
        ended, output = await self._run(args, index)
        if ended != 0:
            words = output.decode("utf-8", "replace").strip()
            raise GitError(f"git {args[0]} failed: {words}", command=args[0], words=words)
        return output

    async def _run(self, args: Sequence[str], index: Path | None) -> tuple[int | None, bytes]:
        argv = ["git", f"--git-dir={self.folder}", f"--work-tree={self.root}"]
        for name, value in _OFF.items():
            argv += ["-c", f"{name}={value}"]
        for name in self._filters:
            argv += ["-c", f"{name}=false" if name.endswith(".required") else f"{name}="]
        env = {**child_environment(self.env), **_ENV}
        env |= {k: v for k, v in self.env.items() if k.startswith(_IDENTITY)}
        if index is not None:
            env["GIT_INDEX_FILE"] = str(index)
        pieces: list[bytes] = []
        taken = 0

        def take(piece: bytes) -> bool:
            nonlocal taken
            taken += len(piece)
            pieces.append(piece)
            return taken <= MOST_BYTES

        try:
            ended = await run(
                [*argv, *args],
                cwd=self.root,
                env=env,
                timeout=TIMEOUT,
                on_output=take,
                sandbox=await self._sandbox(args, index),
            )
        except ProcessError as error:
            raise GitError(error.message, hint="Install git, or leave this out.") from error
        return ended.exit_code, b"".join(pieces)

    async def _sandbox(self, args: Sequence[str], index: Path | None) -> Wrapper | None:
        if self.confinement is None or index is not None or args[0] not in _READING:
            return None
        return await self.confinement.for_reading()

    async def blobs(self, wanted: Mapping[str, int]) -> dict[str, bytes]:
        """The content of objects, by name, as it stood in the work tree, where each had so many bytes
        as `wanted` says. What can't have been so is left out."""
        found: dict[str, bytes] = {}
        for batch in _batches(sorted(wanted), lambda blob: wanted[blob]):
            code, output = await self._run(
                ("show", "--no-textconv", "--no-ext-diff", *batch), index=None
            )
            if code == 0 and len(output) == sum(wanted[blob] for blob in batch):
                at = 0
                for blob in batch:
                    _keep(found, blob, output[at : at + wanted[blob]], wanted[blob])
                    at += wanted[blob]
                continue
            for blob in batch:
                code, output = await self._run(("cat-file", "blob", blob), index=None)
                if code == 0:
                    _keep(found, blob, output, wanted[blob])
        return found

    async def filtered(self, paths: Sequence[str]) -> set[str]:
        """Those of the paths that the repository has a filter program for (git-lfs and such)."""
        found: set[str] = set()
        for batch in _batches(paths):
            fields = (await self.call("check-attr", "-z", "filter", "--", *batch)).split(b"\0")
            for path, _, value in zip(fields[0::3], fields[1::3], fields[2::3], strict=False):
                if value not in (b"unspecified", b"unset"):
                    found.add(os.fsdecode(path))
        return found

    async def disarm(self) -> None:
        """Turn off every filter program that the configuration names, for calls from here on: git runs
        them for files that it only looks at when it writes an index. Raises `GitError`."""
        code, output = await self._run(
            ("config", "-z", "--name-only", "--get-regexp", r"^filter\..*\."), index=None
        )
        drivers = (
            {os.fsdecode(key).rpartition(".")[0] for key in _rows(output)} if code == 0 else set()
        )
        odd = sorted(driver for driver in drivers if "=" in driver)
        if odd:
            raise GitError(
                f"The configuration names a filter that can't be turned off: {odd[0]!r}.",
                hint="Remove it from .git/config, or commit with git itself.",
                code="git_odd_filter",
                name=odd[0],
            )
        self._filters = tuple(
            f"{driver}.{key}"
            for driver in sorted(drivers)
            for key in ("clean", "smudge", "process", "required")
        )

    async def ignored(self, paths: Sequence[str]) -> set[str]:
        """Those of the paths that are files which git is told to ignore."""
        found: set[str] = set()
        for batch in _batches(paths):
            listing = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard")
            found |= {os.fsdecode(path) for path in _rows(await self.call(*listing, "--", *batch))}
        return found

    async def head(self) -> str | None:
        """The commit that HEAD is; None before the first one."""
        code, output = await self._run(
            ("rev-parse", "--verify", "--quiet", "HEAD^{commit}"), index=None
        )
        return output.decode().strip() if code == 0 else None

    async def in_head(self, paths: Sequence[str]) -> dict[str, Listed]:
        """What HEAD has at these paths."""
        if await self.head() is None:
            return {}
        found: dict[str, Listed] = {}
        for batch in _batches(paths):
            for row in _rows(await self.call("ls-tree", "-z", "--full-tree", "HEAD", "--", *batch)):
                about, _, path = row.partition(b"\t")
                mode, _kind, blob = about.decode().split(" ")
                found[os.fsdecode(path)] = Listed(mode, blob)
        return found

    async def in_index(self, paths: Sequence[str]) -> dict[str, Listed]:
        """What is staged at these paths."""
        found: dict[str, Listed] = {}
        for batch in _batches(paths):
            for row in _rows(await self.call("ls-files", "-s", "-z", "--full-name", "--", *batch)):
                about, _, path = row.partition(b"\t")
                mode, blob, _stage = about.decode().split(" ")
                found[os.fsdecode(path)] = Listed(mode, blob)
        return found


def _keep(found: dict[str, bytes], blob: str, data: bytes, size: int) -> None:
    if blob_name(data, blob) != blob:
        return
    if len(data) != size and b"\r\n" not in data:
        # Line ends that git converted: with this size every one of them was CRLF in the work tree.
        data = data.replace(b"\n", b"\r\n")
    if len(data) == size:
        found[blob] = data


def _rows(output: bytes) -> Iterator[bytes]:
    return (row for row in output.split(b"\0") if row)


def _batches(
    names: Sequence[str], size: Callable[[str], int] = lambda _name: 0
) -> Iterator[list[str]]:
    """Few enough for one command line, and for the memory."""
    batch: list[str] = []
    weight = 0
    for name in names:
        if batch and (len(batch) >= _BATCH_PATHS or weight + size(name) > _BATCH_BYTES):
            yield batch
            batch, weight = [], 0
        batch.append(name)
        weight += size(name)
    if batch:
        yield batch
