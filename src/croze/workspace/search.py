"""Searching a workspace: by ripgrep, or by a slower program of our own that prints the same."""

import json
import os
import sys
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from croze.workspace import grep
from croze.workspace.ignore import RULES_FILE
from croze.workspace.matches import Collector, Line
from croze.workspace.paths import PathError
from croze.workspace.process import ProcessResult, child_environment, run
from croze.workspace.workspace import Workspace

LISTED = 300_000
"""Files that a listing holds at most."""

SECONDS = 60.0
"""A longer search is ended."""

_RG = (
    "--no-config",
    "--color=never",
    "--no-messages",
    "--hidden",
    "--no-require-git",
    f"--ignore-file={RULES_FILE}",
    "--null",
)
_RG_LINES = (
    "--heading",
    "--with-filename",
    "--line-number",
    "--no-context-separator",
    "--crlf",
    "--binary",
    "--max-columns=500",
    "--max-columns-preview",
)


class Query(Struct, frozen=True):
    """What to search for. `regex` has Rust's syntax; globs are gitignore's, relative to `path`."""

    regex: str
    path: str = "."
    case_sensitive: bool = True
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    context: int = 0


class Found(Struct, frozen=True):
    """Lines by path and number, the first of them where there are many. `total` counts all matches,
    `files` the files that have any, `binary` the binary files that do; at least so many unless `ended`
    is `itself`. `error` is the searcher's word on a regex or a glob that it does not take; `slow` says
    that ripgrep is missing."""

    lines: tuple[Line, ...] = ()
    total: int = 0
    files: int = 0
    binary: int = 0
    ended: Literal["itself", "timeout", "reader"] = "itself"
    error: str = ""
    slow: bool = False

    @property
    def complete(self) -> bool:
        """Whether everything was searched."""
        return self.ended == "itself"


async def search(workspace: Workspace, query: Query, env: Mapping[str, str]) -> Found:
    """The lines that match. Raises `PathError` where the path can't be searched."""
    if not query.regex:
        return Found(error="It is empty: say what to look for.")
    if not workspace.written:
        return Found()
    rg = ripgrep(env)
    if rg is None and (reason := grep.beyond_common_syntax(query.regex)):
        return Found(error=reason, slow=True)
    flags = [] if query.case_sensitive else ["--ignore-case"]
    flags += [f"--context={query.context}"] if query.context else []
    flags += _globs(query)
    collector = Collector()
    # Two arguments, because ripgrep 13 takes a sign of equality at the start of a value away.
    arguments = [*_RG_LINES, *flags, "--regexp", query.regex]
    own = {"regex": query.regex, "ignore_case": not query.case_sensitive, "context": query.context}
    prefix, result = await _run(workspace, query, env, rg, arguments, own, collector)
    lines = collector.lines(prefix)
    return Found(
        lines=lines,
        total=collector.total,
        files=collector.files,
        binary=collector.binary,
        ended=result.ended,
        error=_reason(result.head) if result.exit_code == 2 and collector.empty else "",
        slow=rg is None,
    )


async def list_files(
    workspace: Workspace, path: str, env: Mapping[str, str]
) -> tuple[list[str], bool]:
    """The files below a folder that are not passed over, sorted; and whether these are all."""
    if not workspace.written:
        return [], True
    rg = ripgrep(env)
    names = _Names()
    prefix, result = await _run(workspace, Query("", path), env, rg, ["--files"], {}, names)
    return names.paths(prefix), result.ended == "itself"


def ripgrep(env: Mapping[str, str]) -> str | None:
    """The program `rg`: on PATH (absolute folders only), else beside this Python, where the wheel
    puts it."""
    folders = [f for f in env.get("PATH", "").split(os.pathsep) if os.path.isabs(f)]
    for folder in [*folders, os.path.dirname(sys.executable)]:
        candidate = os.path.join(folder, "rg")
        if os.access(candidate, os.X_OK) and os.path.isfile(candidate):
            return candidate
    return None


async def _run(
    workspace: Workspace,
    query: Query,
    env: Mapping[str, str],
    rg: str | None,
    arguments: list[str],
    own: dict[str, object],
    reader: "Collector | _Names",
) -> tuple[str, ProcessResult]:
    """Search below a held folder; gives the prefix of the paths that came, and the program's end."""
    found = workspace.files.stat(query.path)
    folder, name = query.path, "./"
    if found is not None and found.kind == "other":
        raise PathError("not_a_file", query.path, f"{query.path} is neither a file nor a folder.")
    if found is not None and found.kind != "folder":
        folder, _, name = found.path.rpartition("/")
        folder = folder or "."
    with workspace.files.folder(folder) as (resolved, handle):
        if rg is not None:
            argv = [rg, *_RG, *arguments, "--", name]
        else:
            globs = {"include": query.include, "exclude": query.exclude}
            job = {"root": str(workspace.root), "start": resolved, "name": name, **globs, **own}
            argv = grep.command(json.dumps(job))
        result = await run(
            argv,
            cwd=handle,
            env=child_environment(env),
            timeout=SECONDS,
            output_limit=4_000,
            on_output=reader.feed,
        )
    return "" if resolved == "." else resolved + "/", result


def _globs(query: Query) -> list[str]:
    """Globs on the name alone become a file type, because `--glob` also brings back ignored files."""
    names = [glob for glob in query.include if "/" not in glob]
    paths = [glob for glob in query.include if "/" in glob]
    if names and not paths:
        return [
            *(f"--type-add=only:{glob}" for glob in names),
            "--type=only",
            *(f"--glob=!{glob}" for glob in query.exclude),
        ]
    return [f"--glob={glob}" for glob in query.include] + [f"--glob=!{g}" for g in query.exclude]


def _reason(output: str) -> str:
    lines = output.strip().splitlines()
    return "\n".join(lines[-6:])


class _Names(Struct):
    """File names, each ended by a NUL."""

    _rest: bytes = b""
    _found: list[bytes] = field(default_factory=list)

    def feed(self, chunk: bytes) -> bool:
        *names, self._rest = (self._rest + chunk).split(b"\0")
        self._found += names
        return len(self._found) <= LISTED

    def paths(self, prefix: str) -> list[str]:
        names = (name.removeprefix(b"./").decode("utf-8", "replace") for name in self._found)
        return sorted(prefix + name for name in names)
