"""The repository of library documentation: fetched by git, kept as plain Markdown files in the user's cache.

Nothing of it is ever checked out. Git fetches one commit into a folder that is thrown away; the Markdown
files in it that are files are written out as such, and take the place of the ones before in one step.
"""

import asyncio
import fcntl
import os
import re
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from croze.store.files import open_lock, private_folder, sync_folder
from croze.text.redact import redact
from croze.types.errors import CrozeError, UsageError
from croze.workspace.git import Git
from croze.workspace.process import ProcessError, child_environment, run

SECONDS = 300.0
"""For one fetch."""
MOST_PACK = 512 << 20
"""Bytes that a fetch may bring."""
MOST_FILES = 20_000
MOST_FILE = 1_000_000
MOST_BYTES = 200 << 20
"""Of the Markdown files: how many, bytes of one, bytes of all; what is more is left out and counted."""

_DEEPEST = 3
_LOCKED = 60.0
_FETCHED = "refs/croze/fetched"
_ADDRESS = re.compile(r"(https?|ssh|file)://[^\s]+\Z")
_SSH = re.compile(r"[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^\s:][^\s]*\Z")
_FILE_MODES = ("100644", "100755")
_REFUSED = re.compile(r"[\x00-\x1f\x7f\\:]|\A\.git\Z|\A\.{0,2}\Z", re.IGNORECASE)
_SPEAKS = ("SSH_AUTH_SOCK", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH")
_QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "GCM_INTERACTIVE": "never",
    "GIT_ALLOW_PROTOCOL": "file:http:https:ssh",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    "LC_ALL": "C",
}
_SETTINGS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "submodule.recurse=false", "gc.auto=0",
    "maintenance.auto=false", "fetch.recurseSubmodules=false", "fetch.fsckObjects=false",
    "http.lowSpeedLimit=1000", "http.lowSpeedTime=30", "fetch.unpackLimit=1",
)  # fmt: skip


class Snapshot(Struct, frozen=True):
    """What is there: where it came from, which commit, when (UNIX seconds), and what was left out of it
    by reason."""

    url: str
    commit: str
    fetched_at: float
    files: int
    left_out: Mapping[str, int] = {}


def checked_url(url: str) -> str:
    """The address as git gets it. Raises UsageError for what is none: other transports run programs."""
    url = url.strip()
    if url.startswith(("/", "~/")):
        return os.path.realpath(os.path.expanduser(url))
    if _ADDRESS.match(url) or _SSH.match(url):
        return url
    raise UsageError(
        f"{url!r} is no address of a git repository.",
        hint="Give an https, ssh or file address, user@host:path, or an absolute path.",
        code="library_url",
        url=repr(url),
    )


class LibraryRepository:
    """The documentation below `folder`, from whatever address. Its files lie in `docs` as
    `domain/user/library/….md`; one process changes it at a time."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.folder = folder
        self._env = env

    def snapshot(self) -> Snapshot | None:
        """What is there; None before the first fetch, or where its files are gone."""
        try:
            found = msgspec.json.decode((self.folder / "current.json").read_bytes(), type=Snapshot)
        except (OSError, msgspec.DecodeError):
            return None
        return found if self._docs_of(found.commit).is_dir() else None

    @property
    def docs(self) -> Path | None:
        """The folder of the files as they are now."""
        found = self.snapshot()
        return None if found is None else self._docs_of(found.commit)

    def _docs_of(self, commit: str) -> Path:
        return self.folder / f"docs-{commit[:12]}"

    def libraries(self) -> list[str]:
        """All libraries, as `domain/user/library`, sorted."""
        docs = self.docs
        return [] if docs is None else sorted(_folders(docs, _DEEPEST))

    def files(self, library: str) -> dict[str, Path]:
        """The files of a library, by their path in it, sorted."""
        docs = self.docs
        if docs is None or library.count("/") != _DEEPEST - 1:
            return {}
        top, found = docs / library, {}
        for folder, folders, names in os.walk(top):
            folders.sort()
            for name in names:
                path = Path(folder, name)
                found[path.relative_to(top).as_posix()] = path
        return dict(sorted(found.items()))

    async def fetch(
        self, url: str, on_progress: Callable[[str], None] = lambda _line: None
    ) -> tuple[Snapshot, bool]:
        """The newest state of what is at `url`, and whether anything has changed. Where it fails, what was
        there stays. Raises CrozeError."""
        url = checked_url(url)
        private_folder(self.folder)
        async with _locked(self.folder / "lock"):
            self._sweep()
            before = self.snapshot()
            temporary = self.folder / f".fetch-{secrets.token_hex(8)}"
            temporary.mkdir(0o700)
            try:
                commit = await self._fetch(url, temporary, on_progress)
                if before is not None and (before.commit, before.url) == (commit, url):
                    return before, False
                docs = self._docs_of(commit)
                if before is None or before.commit != commit:
                    files, left_out = await _extract(temporary, self._env)
                    shutil.rmtree(docs, ignore_errors=True)
                    os.rename(temporary / "docs", docs)
                else:
                    files, left_out = before.files, dict(before.left_out)
                now = Snapshot(url, commit, time.time(), files, left_out)
                self._set_current(now)
            except OSError as error:
                raise CrozeError(
                    f"The library documentation can't be kept in {self.folder}: {error.strerror or error}",
                    hint="Free space there, or make it writable.",
                    code="library_not_kept",
                    path=str(self.folder),
                    reason=error.strerror or str(error),
                ) from error
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
            self._sweep()
            return now, True

    def _set_current(self, snapshot: Snapshot) -> None:
        draft = self.folder / ".current.json"
        draft.write_bytes(msgspec.json.encode(snapshot))
        os.replace(draft, self.folder / "current.json")
        sync_folder(self.folder)

    def _sweep(self) -> None:
        """Remove what killed fetches and earlier states have left."""
        current = self.docs
        for name in os.listdir(self.folder):
            path = self.folder / name
            if name.startswith((".fetch-", "docs-")) and path != current:
                shutil.rmtree(path, ignore_errors=True)

    async def _fetch(self, url: str, folder: Path, on_progress: Callable[[str], None]) -> str:
        packs, too_large = folder / "objects" / "pack", False

        def take(piece: bytes) -> bool:
            nonlocal too_large
            lines = [line for line in re.split(rb"[\r\n]", piece) if line.strip()]
            if lines:
                on_progress(lines[-1].decode("utf-8", "replace").strip())
            too_large = _size(packs) > MOST_PACK
            return not too_large

        env = {**child_environment(self._env), **_QUIET, "GIT_CEILING_DIRECTORIES": str(folder)}
        env |= {name: self._env[name] for name in _SPEAKS if name in self._env}
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        fetch = ("fetch", "--progress", "--depth=1", "--no-tags", "--no-recurse-submodules")
        said = ""
        for args in (
            ("init", "--quiet", "--bare", "--template=", "."),
            (*fetch, "--no-write-fetch-head", "--", url, f"+HEAD:{_FETCHED}"),
        ):
            try:
                ended = await run(
                    ["git", *settings, *args],
                    cwd=folder,
                    env=env,
                    timeout=SECONDS,
                    on_output=take,
                )
            except ProcessError as error:
                raise _failed(url, error.message, "Install git.") from error
            said = ended.tail or ended.head
            if too_large or _size(packs) > MOST_PACK:
                raise _failed(url, f"it has more than {MOST_PACK >> 20} MB", _OTHER)
            if ended.ended == "timeout":
                raise _failed(url, f"no end within {SECONDS:g} s", _AGAIN)
            if ended.exit_code != 0:
                raise _failed(url, _words(said), _AGAIN)
        git = Git(folder, folder, self._env)
        return (await git.call("rev-parse", "--verify", f"{_FETCHED}^{{commit}}")).decode().strip()


_AGAIN = "Check the address and the network; `croze lib proxy URL` takes another address."
_OTHER = "`croze lib proxy URL` takes another address."


def _failed(url: str, reason: str, hint: str) -> CrozeError:
    shown = redact(re.sub(r"(://)[^/@\s]+@", r"\1", url))[0]
    return CrozeError(
        f"The library documentation can't be fetched from {shown}: {reason}",
        hint=hint,
        code="library_fetch",
        url=shown,
        reason=reason,
    )


def _words(said: str) -> str:
    """Git's own words without progress, on one line."""
    lines = [line.strip() for line in re.split(r"[\r\n]", said)]
    told = [line for line in lines if line.startswith(("fatal:", "error:", "ssh:"))] or lines
    text = redact("; ".join(filter(None, told)))[0]
    return re.sub(r"(://)[^/@\s]+@", r"\1", text)[:500] or "git failed"


async def _extract(folder: Path, env: Mapping[str, str]) -> tuple[int, dict[str, int]]:
    """Write the Markdown files of the fetched commit below `folder/docs`; how many, and what was left out."""
    git = Git(folder, folder, env)
    listing = await git.call("ls-tree", "-r", "-l", "-z", "--full-tree", _FETCHED)
    wanted: dict[str, tuple[str, int]] = {}
    left_out: dict[str, int] = {}
    total = 0
    for path, mode, blob, size in _entries(listing):
        if not path.casefold().endswith(".md") or path.count("/") < _DEEPEST:
            continue
        reason = ""
        if mode not in _FILE_MODES:
            reason = "links and submodules"
        elif any(map(_REFUSED.search, path.split("/"))) or len(path) > 500:
            reason = "names that can't be used"
        elif size > MOST_FILE:
            reason = "files that are too large"
        elif len(wanted) >= MOST_FILES or total + size > MOST_BYTES:
            reason = "more than is kept"
        if reason:
            left_out[reason] = left_out.get(reason, 0) + 1
            continue
        wanted[path] = (blob, size)
        total += size
    blobs = await git.blobs(dict(wanted.values()))
    count = await asyncio.to_thread(_write, folder / "docs", wanted, blobs)
    if count < len(wanted):
        left_out["files that can't be read"] = len(wanted) - count
    return count, left_out


def _write(top: Path, wanted: Mapping[str, tuple[str, int]], blobs: Mapping[str, bytes]) -> int:
    top.mkdir(0o700)
    written = 0
    for path, (blob, _size) in wanted.items():
        target = top / path
        # A tree may name the same thing as a file and as a folder: the first counts.
        with suppress(FileExistsError, NotADirectoryError, IsADirectoryError):
            if blob in blobs:
                target.parent.mkdir(parents=True, exist_ok=True)
                with open(target, "xb") as file:
                    file.write(blobs[blob])
                written += 1
    return written


def _entries(listing: bytes) -> Iterator[tuple[str, str, str, int]]:
    """Path, mode, object and size of each entry of a tree; what is no UTF-8 has replaced characters."""
    for row in filter(None, listing.split(b"\0")):
        about, _, name = row.partition(b"\t")
        mode, _kind, blob, size = about.decode().split()
        path = name.decode("utf-8", "surrogateescape")
        if not _is_text(path):
            path = name.decode("utf-8", "replace").replace("�", "\0")
        yield path, mode, blob, int(size) if size.isdigit() else 0


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _folders(top: Path, depth: int) -> Iterator[str]:
    """The folders that lie `depth` below `top`."""
    try:
        names = sorted(entry.name for entry in os.scandir(top) if entry.is_dir())
    except OSError:
        return
    for name in names:
        if depth == 1:
            yield name
        else:
            yield from (f"{name}/{below}" for below in _folders(top / name, depth - 1))


def _size(folder: Path) -> int:
    total = 0
    with suppress(OSError):
        for entry in os.scandir(folder):
            with suppress(OSError):
                total += entry.stat().st_size
    return total


@asynccontextmanager
async def _locked(path: Path) -> AsyncIterator[None]:
    """Hold the lock; it dies with its holder. Raises CrozeError where another holds it for too long."""
    descriptor = open_lock(path)
    try:
        end = time.monotonic() + _LOCKED
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise CrozeError(
                        "Another croze is fetching the library documentation.",
                        hint="Try again when it has ended.",
                        code="library_busy",
                    ) from None
            await asyncio.sleep(0.05)
        yield
    finally:
        os.close(descriptor)
