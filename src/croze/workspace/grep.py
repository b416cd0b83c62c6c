"""The searcher for machines without ripgrep: a program run as a child process, in plain Python.

It takes only what Rust's and Python's regular expressions have in common, and prints as
`rg --null --no-heading` does.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from croze.workspace.files import Files
from croze.workspace.listing import files_below
from croze.workspace.paths import PathError

_FILE_LIMIT = 32 << 20
_COLUMNS = 500
_COMMON_ESCAPES = frozenset("dDwWsSbBntrfvaA")
_GROUP = re.compile(r"\?(?::|P<[A-Za-z_]\w*>|[ims]+\)|[ims]+:)")
_TOKEN = re.compile(
    r"\\(.)|\((?=\?)|\[\^?\]?(?:\\.|[^\]\\])*\]|[*+?}]\+|\{(?!\d+(?:,\d*)?\})", re.DOTALL
)
_PROGRAM = "import sys; sys.path.append({!r}); from croze.workspace.grep import main; main()"


def command(job: str) -> list[str]:
    """The command that does a job, given as JSON. Isolated (-I), so that nothing in the folder it is
    started in can be imported."""
    source = str(Path(__file__).resolve().parents[2])
    return [sys.executable, "-I", "-c", _PROGRAM.format(source), job]


def beyond_common_syntax(regex: str) -> str:
    """Why `regex` can't be searched for without ripgrep; "" where it can."""
    for token in _TOKEN.finditer(regex):
        text = token.group()
        if text.startswith("\\"):
            if text[1].isalnum() and text[1] not in _COMMON_ESCAPES:
                return _not_without(text)
        elif text == "(":
            if not _GROUP.match(regex, token.end()):
                return _not_without(regex[token.start() : token.start() + 4])
        elif text.startswith("["):
            if re.search(r"\[:|&&|--|~~|(?<!\\)\[", text[1:]) or re.search(r"\\[pPxuUbB]", text):
                return _not_without(text)
        else:
            return _not_without(text)
    try:
        re.compile(regex)
    except re.error as error:
        return f"{error} in {regex!r}"
    return ""


def main() -> None:
    """Do the job that stands in the first argument."""
    job: dict[str, Any] = json.loads(sys.argv[1])
    files = Files(Path(job["root"]), kind="project")
    write = sys.stdout.buffer.write
    try:
        for path, shown in _candidates(files, job):
            if "regex" not in job:
                write(os.fsencode(shown) + b"\0")
            else:
                for row in _matches(files, path, job):
                    write(os.fsencode(shown) + b"\0" + row + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os._exit(1)


def _candidates(files: Files, job: dict[str, Any]) -> Iterator[tuple[str, str]]:
    start, name = job["start"], job["name"]
    if name != "./":
        yield (name if start == "." else f"{start}/{name}"), name
        return
    include, exclude = _spec(job["include"]), _spec(job["exclude"])
    for path in files_below(files, start):
        shown = path if start == "." else path[len(start) + 1 :]
        if include and not include.match_file(shown):
            continue
        if not (exclude and exclude.match_file(shown)):
            yield path, shown


def _spec(globs: Sequence[str]) -> Any:
    if not globs:
        return None
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(globs)


def _matches(files: Files, path: str, job: dict[str, Any]) -> Iterator[bytes]:
    try:
        data = files.read(path, _FILE_LIMIT).data
    except PathError:
        return
    if b"\0" in data:
        return
    flags = re.IGNORECASE if job["ignore_case"] else 0
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    if lines[-1] == "":
        lines.pop()
    pattern = re.compile(job["regex"], flags)
    hits = [at for at, line in enumerate(lines) if pattern.search(line.removesuffix("\r"))]
    context: int = job["context"]
    wanted = {near for at in hits for near in range(max(0, at - context), at + context + 1)}
    matching = set(hits)
    for at in sorted(wanted):
        if at < len(lines):
            sign = ":" if at in matching else "-"
            row = f"{at + 1}{sign}{lines[at][:_COLUMNS]}"
            yield row.encode("utf-8", "surrogateescape")


def _not_without(part: str) -> str:
    return f"{part!r} can't be searched for without ripgrep; install it, or use a simpler regex"
