"""The outlines of a workspace's files: read by child processes, known ones kept for the run."""

import asyncio
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock

import msgspec
from msgspec import Struct, field

from croze.edit.grammar import language
from croze.retrieval.outline import Outline
from croze.retrieval.reader import Job, Report, command
from croze.workspace.files import Files, Mark
from croze.workspace.paths import PathError
from croze.workspace.process import child_environment, run
from croze.workspace.workspace import Workspace

LIMIT = 48 << 20
"""About how many bytes the known outlines take; the least recently used go first."""

SECONDS = 60.0
"""What isn't read by then is left out."""

_BATCH_FILES = 250
_BATCH_BYTES = 80_000
_MOST_FAULTS = 3
_MOST_AT_ONCE = 4
_COARSE_NS = 2_000_000_000
_REFERENCE_BYTES = 40
_DEFINITION_BYTES = 400


class Outlines(Struct, frozen=True):
    """Outlines by path, sorted. `skipped` counts the files that have none, by the reason; `late` those
    that there was no time for."""

    found: Mapping[str, Outline]
    skipped: Mapping[str, int] = field(default_factory=dict)
    late: int = 0


class OutlineCache:
    """The outlines that a run knows, by the hash of the file's content. Safe to use from threads."""

    def __init__(self, *, limit: int = LIMIT) -> None:
        self._limit = limit
        self._lock = Lock()
        self._marks: dict[tuple[str, str], tuple[Mark, str, str]] = {}
        self._held: OrderedDict[tuple[str, str], tuple[Outline | None, str, int]] = OrderedDict()
        self._names: dict[str, str] = {}
        self._bytes = 0

    @property
    def bytes(self) -> int:
        """About what the outlines take."""
        return self._bytes

    def known(self, root: str, path: str, mark: Mark) -> tuple[Outline | None, str] | None:
        """The outline of a file with this stat, or why it has none; None where it must be read."""
        with self._lock:
            held = self._marks.get((root, path))
            if held is None or held[0] != mark:
                return None
            key = held[1], held[2]
            if key not in self._held:
                return None
            self._held.move_to_end(key)
            found, skipped, _ = self._held[key]
            return found, skipped

    def keep(self, root: str, report: Report, *, named: bool) -> Outline | None:
        """Keep what was read, unless it may have changed in the same tick of the clock; gives the
        outline with its names shared with the others'."""
        with self._lock:
            found = None if report.outline is None else self._shared(report.outline)
            mark = report.mark
            if mark is None or max(mark[3], mark[4]) > report.began - _COARSE_NS:
                return found
            if named and found is not None:  # as part of a folder it might be passed over
                return found
            key = report.sha256, language(report.path)
            self._marks[root, report.path] = mark, *key
            self._drop(key)
            size = _weight(found)
            self._held[key] = found, report.skipped, size
            self._bytes += size
            while self._bytes > self._limit:
                self._drop(next(iter(self._held)))
            return found

    def _shared(self, outline: Outline) -> Outline:
        if len(self._names) > 1_000_000:
            self._names.clear()
        share = self._names.setdefault
        references = {share(name, name): times for name, times in outline.references.items()}
        return msgspec.structs.replace(outline, references=references)

    def _drop(self, key: tuple[str, str]) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._bytes -= held[2]


async def outlines(
    workspace: Workspace,
    paths: Iterable[str],
    env: Mapping[str, str],
    cache: OutlineCache,
    *,
    named: bool = False,
    seconds: float = SECONDS,
) -> Outlines:
    """The outlines of files (resolved paths); those of no language are passed over without a count.

    Cancelling ends the child processes.
    """
    wanted = sorted(path for path in set(paths) if language(path))
    found, skipped, unknown = await asyncio.to_thread(
        _known, workspace.files, wanted, cache, named=named
    )
    batches = list(_batches(unknown))
    until = time.monotonic() + seconds
    waiting = iter(batches)
    done = 0

    def take(report: Report) -> None:
        nonlocal done
        done += 1
        outline = cache.keep(str(workspace.root), report, named=named)
        if outline is None:
            skipped[report.skipped] = skipped.get(report.skipped, 0) + 1
        else:
            found[report.path] = outline

    async def work() -> None:
        for batch in waiting:
            await _read(workspace, batch, env, take, named=named, until=until)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(len(batches), os.cpu_count() or 1, _MOST_AT_ONCE)):
            group.create_task(work())
    ordered = {path: found[path] for path in wanted if path in found}
    return Outlines(ordered, dict(sorted(skipped.items())), len(unknown) - done)


def _known(
    files: Files, paths: Sequence[str], cache: OutlineCache, *, named: bool
) -> tuple[dict[str, Outline], dict[str, int], list[str]]:
    root = str(files.root)
    found: dict[str, Outline] = {}
    skipped: dict[str, int] = {}
    unknown = []
    for path in paths:
        try:
            stat = files.stat(path)
        except PathError:
            stat = None
        held = None if stat is None else cache.known(root, path, stat.mark)
        if held is None or (named and held[0] is None):
            unknown.append(path)
        elif held[0] is None:
            skipped[held[1]] = skipped.get(held[1], 0) + 1
        else:
            found[path] = held[0]
    return found, skipped, unknown


def _batches(paths: Sequence[str]) -> Iterable[list[str]]:
    """As many paths at once as fit into an argument; fewer where there are few, for all processors."""
    most = max(20, min(_BATCH_FILES, len(paths) // 4))
    batch: list[str] = []
    size = 0
    for path in paths:
        length = len(msgspec.json.encode(path)) + 1
        if batch and (len(batch) >= most or size + length > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += length
    if batch:
        yield batch


async def _read(
    workspace: Workspace,
    batch: list[str],
    env: Mapping[str, str],
    take: Callable[[Report], None],
    *,
    named: bool,
    until: float,
) -> None:
    """Take what became of each file of a batch, but for those that there is no time for. A file that
    ends the child process is passed over, the ones after it are read by another."""
    faults = 0
    while batch and faults < _MOST_FAULTS:
        left = until - time.monotonic()
        if left <= 0:
            return
        reader = _Lines(take)
        job = Job(str(workspace.root), tuple(batch), named=named)
        result = await run(
            command(job),
            cwd=workspace.root,
            env=child_environment(env),
            timeout=left,
            output_limit=2_000,
            on_output=reader.feed,
        )
        batch = batch[reader.taken :]
        if result.ended != "itself":
            return
        if batch:
            take(Report(batch.pop(0), skipped="fault in the parser"))
            faults += 1


class _Lines:
    """Reports as they arrive, one a line."""

    def __init__(self, take: Callable[[Report], None]) -> None:
        self.taken = 0
        self._take = take
        self._rest = b""

    def feed(self, chunk: bytes) -> bool:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            try:
                report = msgspec.json.decode(line, type=Report)
            except msgspec.DecodeError:
                continue  # a warning of the interpreter
            self.taken += 1
            self._take(report)
        return True


def _weight(outline: Outline | None) -> int:
    if outline is None:
        return _REFERENCE_BYTES
    return _DEFINITION_BYTES * (1 + len(outline.definitions)) + _REFERENCE_BYTES * len(
        outline.references
    )
