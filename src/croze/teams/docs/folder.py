"""The files of a documentation set: read, written and removed so that they can be undone, and nothing
beside them touched."""

import asyncio
import hashlib
import posixpath

from croze.agent.live import Live
from croze.teams.docs.manifest import NAME, Manifest, encoded, read_manifest
from croze.types.errors import UsageError
from croze.types.event import FilesChanged
from croze.workspace.files import Files
from croze.workspace.paths import PathError, refuse_protected
from croze.workspace.sensitive import is_sensitive


class Folder:
    """The folder of a set. Every change goes through the workspace's files: in one step, journaled, told
    in the log."""

    def __init__(self, live: Live, out: str) -> None:
        self.out = checked_out(live.workspace.files, out)
        self._live = live
        self._files = live.workspace.files
        self._turn = asyncio.Lock()

    def path(self, page: str) -> str:
        """Where a page stands, relative to the project."""
        return f"{self.out}/{page}"

    def data(self, page: str) -> bytes | None:
        """A page's bytes; None where there is none. Raises PathError where it can't be read."""
        try:
            return self._files.read(self.path(page)).data
        except PathError as error:
            if error.code == "file_not_found":
                return None
            raise

    def text(self, page: str) -> str | None:
        found = self.data(page)
        return None if found is None else found.decode("utf-8", "replace")

    def digest(self, page: str) -> str:
        """SHA-256 of a page as it stands; empty where there is none."""
        found = self.data(page)
        return "" if found is None else sha256(found)

    def manifest(self) -> Manifest:
        return read_manifest(self.data(NAME), self.path(NAME))

    async def keep(self, manifest: Manifest) -> None:
        """Write the manifest, unless it stands so."""
        data = encoded(manifest)
        if self.data(NAME) != data:
            await self.write(NAME, data)

    async def write(self, page: str, data: bytes, *, expect: str | None = None) -> None:
        """Write a page; `expect` is its present digest ("": there is none). Raises PathError, code
        `file_changed` where it is another."""
        async with self._turn:
            call = await self._begin()
            written = await asyncio.to_thread(
                self._files.write, self.path(page), data, expect=expect
            )
            await self._end(call, written.path, written.before, data)

    async def remove(self, page: str, *, expect: str) -> None:
        """Remove a page that stands as `expect` says; its folder where that is empty now stays."""
        async with self._turn:
            call = await self._begin()
            gone = await asyncio.to_thread(self._files.remove, self.path(page), expect=expect)
            await self._end(call, gone.path, gone.before, None)

    async def _begin(self) -> str:
        call = self._live.source.call_id()
        if self._live.tracker is not None:
            await self._live.tracker.begin(call, command=False)
        return call

    async def _end(self, call: str, path: str, before: bytes | None, after: bytes | None) -> None:
        tracker = self._live.tracker
        if tracker is None:
            return
        tracker.record(path, before, after)
        changes = await tracker.changes()
        if changes:
            await self._live.append(FilesChanged(call_id=call, changes=changes), durable=True)
        tracker.recorded()

    def source_digest(self, path: str) -> str:
        """SHA-256 of a source as it stands; empty where it can't be read."""
        try:
            document = self._live.cache.document(self._files, path)
            return document.sha256 if document else self._files.read(path).sha256
        except PathError:
            return ""

    def source_text(self, path: str) -> str | None:
        """A source's text through the run's cache; None where it is no text or too large."""
        document = self._live.cache.document(self._files, path)
        return None if document is None or document.source is None else document.source.text

    def is_there(self, path: str) -> bool:
        """Whether the project has a file or folder of this path."""
        try:
            return self._files.stat(path) is not None
        except PathError:
            return False

    def source_problem(self, path: str) -> str:
        """What is wrong with a path as a page's source; empty where nothing is."""
        if path != posixpath.normpath(path) or path.startswith(("/", "../")):
            return "must be a plain path relative to the project"
        if path == self.out or path.startswith(f"{self.out}/"):
            return "is a page of the set itself"
        if is_sensitive(path):
            return "may hold secrets"
        try:
            found = self._files.stat(path)
        except PathError as error:
            return f"can't be read: {error.message}"
        if found is None:
            return "does not exist"
        return "" if found.kind == "file" else "is no file; name the files themselves"


def checked_out(files: Files, out: str) -> str:
    """The folder as a plain path below the project. Raises UsageError for any other: what lies outside of
    the project can't be undone, and no session has a say there."""
    path = out.rstrip("/") or "/"
    root = str(files.root)
    if path.startswith(f"{root}/"):
        path = path[len(root) + 1 :]
    path = posixpath.normpath(path)
    if path == "." or path.startswith(("/", "../")) or path == ".." or "\0" in path:
        raise UsageError(
            f"Documentation can't be written to {out}: the folder must lie in the project, and not be it.",
            hint="Name a folder of the project: --out docs/reference.",
            code="docs_out",
            out=out,
        )
    try:
        refuse_protected(path)
        found = files.stat(path)
    except PathError as error:
        raise UsageError(error.message, hint=error.hint, code="docs_out", out=out) from error
    if found is not None and found.kind != "folder":
        raise UsageError(
            f"{out} is no folder.",
            hint="Name a folder of the project: --out docs/reference.",
            code="docs_out",
            out=out,
        )
    return path


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
