"""The searcher for machines without ripgrep: a program run as a child process, in plain Python.

It takes only what Rust's and Python's regular expressions have in common, and prints as
`rg --null --heading` does.
"""

import codecs
import json
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from croze.workspace.files import Files
from croze.workspace.listing import files_below
from croze.workspace.paths import PathError

_FILE_LIMIT = 32 << 20
_COLUMNS = 500
_COMMON_ESCAPES = frozenset("dDwWsSbntrfva")
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
            if (text[1].isalnum() or text[1] in "<>") and text[1] not in _COMMON_ESCAPES:
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
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)
            re.compile(regex)
    except FutureWarning as doubt:
        return f"{str(doubt).lower()} in {regex!r}: escape the brackets and signs in it"
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
                write(_block(files, path, os.fsencode(shown), job))
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

    try:
        return GitIgnoreSpec.from_lines(globs)
    except ValueError as error:
        sys.stdout.write(f"invalid glob: {error}")
        sys.exit(2)


def _block(files: Files, path: str, shown: bytes, job: dict[str, Any]) -> bytes:
    """What is printed of a file, b"" where nothing matches."""
    try:
        data = files.read(path, _FILE_LIMIT).data
    except PathError:
        return b""
    rows, binary = matching(
        data, job["regex"], ignore_case=job["ignore_case"], around=job["context"]
    )
    if binary:
        return shown + b': binary file matches (found "\\0" byte)\n\n' if rows else b""
    return shown + b"\0" + b"".join(row + b"\n" for row in rows) + b"\n" if rows else b""


def matching(
    data: bytes, regex: str, *, ignore_case: bool, around: int
) -> tuple[list[bytes], bool]:
    """The rows of a file's lines that match, with as many lines `around` each; and whether the file is
    binary, which no row of it should be shown of."""
    text = _decoded(data)
    pattern = re.compile(regex, re.IGNORECASE if ignore_case else 0)
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    hits = {at for at, line in enumerate(lines) if pattern.search(line.removesuffix("\r"))}
    wanted = {near for at in hits for near in range(max(0, at - around), at + around + 1)}
    rows = [
        f"{at + 1}{':' if at in hits else '-'}{_cut(lines[at])}".encode("utf-8", "surrogateescape")
        for at in sorted(wanted)
        if at < len(lines)
    ]
    return rows, "\0" in text


def _decoded(data: bytes) -> str:
    """By its byte order mark, as ripgrep does it, else UTF-8."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    return data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")


def _cut(line: str) -> str:
    return line if len(line) <= _COLUMNS else line[:_COLUMNS] + " [... omitted end of long line]"


def _not_without(part: str) -> str:
    return f"{part!r} can't be searched for without ripgrep; install it, or use a simpler regex"
