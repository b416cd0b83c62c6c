"""The program that reads and parses files for outlines: a child process, so that neither a large file
nor a fault in a grammar holds up or ends croze."""

import sys
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from croze.edit.grammar import language
from croze.retrieval.outline import LARGEST, Outline, outline, unsuited
from croze.workspace.files import Files, Mark
from croze.workspace.paths import PathError

_PROGRAM = "import sys; sys.path.append({!r}); from croze.retrieval.reader import main; main()"


class Job(msgspec.Struct, frozen=True):
    """Files below a root to be read. `named`: the user's own choice, so generated files too."""

    root: str
    paths: tuple[str, ...]
    named: bool = False


class Report(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What became of one file. `skipped` says why it has no outline; `mark` is its stat as it was read,
    at `began` in nanoseconds since the epoch."""

    path: str
    sha256: str = ""
    mark: Mark | None = None
    began: int = 0
    outline: Outline | None = None
    skipped: str = ""


def command(job: Job) -> Sequence[str]:
    """The command that does a job. Isolated (-I), so that nothing in the folder it is started in can be
    imported."""
    source = str(Path(__file__).resolve().parents[2])
    return [sys.executable, "-I", "-c", _PROGRAM.format(source), msgspec.json.encode(job).decode()]


def main() -> None:
    """Do the job that stands in the first argument: a line of JSON for each file, in their order."""
    job = msgspec.json.decode(sys.argv[1], type=Job)
    files = Files(Path(job.root), kind="project")
    sys.setrecursionlimit(10_000)
    for path in job.paths:
        sys.stdout.buffer.write(msgspec.json.encode(_report(files, path, named=job.named)) + b"\n")
        sys.stdout.buffer.flush()


def _report(files: Files, path: str, *, named: bool) -> Report:
    began = time.time_ns()
    try:
        read = files.read(path, LARGEST + 1)
    except PathError as error:
        return Report(path, skipped=error.code)
    reason = unsuited(read.data, named=named)
    found = None if reason else outline(read.data, language(path))
    if found is None:
        reason = reason or "no grammar"
    digest = sha256(read.data).hexdigest()
    return Report(path, digest, read.stat.mark, began, found, reason)
