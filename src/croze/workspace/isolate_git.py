"""The git folder of a work tree apart: a repository of its own that borrows the user's objects.

Nothing is ever written in the user's repository: no entry, branch, lock or object. What isn't in its
objects is written into the own ones, raw: attributes that would convert contents are turned off.
"""

import hashlib
import os
import shutil
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from croze.workspace.git import Git, GitError
from croze.workspace.isolate_copy import Copied, IsolationError

_RAW = b"* -text -filter -ident -working-tree-encoding\n"
_GITLINK = 0o160000
_SKIP = 0x4000


class Repository(Struct, frozen=True):
    """What a work tree takes from the user's repository. `tracked` are the paths of the index with
    mode and object, `skipped` those that a sparse checkout leaves out, `links` submodules."""

    objects: str
    form: str
    head: bytes
    commit: str | None
    refs: bytes
    shallow: bytes
    exclude: bytes
    excludes_file: str
    filemode: bool
    tracked: dict[str, tuple[int, str]]
    skipped: dict[str, tuple[int, str]]
    links: dict[str, str]
    untracked: tuple[str, ...]
    nested: tuple[str, ...]


async def read_repository(git: Git) -> Repository:
    """Look at the user's repository, without writing anything. Raises `GitError`."""
    asked = ("objects", "shallow", "info/exclude")
    paths = [part for name in asked for part in ("--git-path", name)]
    out = await git.call("rev-parse", "--show-object-format", *paths)
    form, *found = out.decode("utf-8", "surrogateescape").splitlines()
    if form not in ("sha1", "sha256") or len(found) != len(asked):
        raise IsolationError(
            "git answers in a form that croze doesn't know.", hint="Use isolation: shared."
        )
    objects, shallow, exclude = (os.path.realpath(git.root / each) for each in found)
    tracked: dict[str, tuple[int, str]] = {}
    skipped: dict[str, tuple[int, str]] = {}
    links: dict[str, str] = {}
    for row in _rows(await git.call("ls-files", "-s", "-t", "-z", "--full-name")):
        about, _, name = row.partition(b"\t")
        tag, mode, blob, _stage = about.decode().split(" ")
        path = os.fsdecode(name)
        if not _is_below(path):  # no index of git's own making has such a name
            continue
        if int(mode, 8) == _GITLINK:
            links[path] = blob
        elif tag == "S":
            skipped[path] = int(mode, 8), blob
        else:
            tracked[path] = int(mode, 8), blob
    listing = await git.call("ls-files", "-z", "--others", "--exclude-standard", "--full-name")
    others = [os.fsdecode(row) for row in _rows(listing)]
    return Repository(
        objects=objects,
        form=form,
        head=_bytes(git.folder / "HEAD").strip(),
        commit=await git.head(),
        refs=await git.call("for-each-ref", "--format=%(objectname) %(refname)"),
        shallow=_bytes(Path(shallow)),
        exclude=_bytes(Path(exclude)),
        excludes_file=await _setting(git, "core.excludesfile"),
        filemode=await _setting(git, "core.filemode") != "false",
        tracked=tracked,
        skipped=skipped,
        links=links,
        untracked=tuple(path for path in others if not path.endswith("/")),
        nested=tuple(path for path in others if path.endswith("/")),
    )


def make_git_folder(folder: Path, repository: Repository, *, own: bool = False) -> None:
    """The git folder without its index: HEAD, branches and tags as the user has them, objects borrowed.
    With `own` the repository is one made here: its few objects are copied, as commands in a sandbox see
    no other work tree."""
    if own:
        shutil.copytree(repository.objects, folder / "objects")
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        os.makedirs(folder / name, exist_ok=True)
    head = repository.head.partition(b"\n")[0]
    if not head.startswith(b"ref: ") or b".invalid" in head:
        head = (repository.commit or "0" * 40).encode()
    _write(folder / "HEAD", head + b"\n")
    _write(folder / "config", _config(repository))
    if not own:
        _write(folder / "objects/info/alternates", os.fsencode(_quoted(repository.objects)) + b"\n")
    _write(folder / "packed-refs", _packed(repository.refs))
    _write(folder / "info/attributes", _RAW)
    _write(folder / "info/exclude", repository.exclude)
    if repository.shallow:
        _write(folder / "shallow", repository.shallow)


def _config(repository: Repository) -> bytes:
    extension = repository.form != "sha1"
    lines = [
        "[core]",
        f"\trepositoryformatversion = {int(extension)}",
        "\tbare = false",
        f"\tfilemode = {'true' if repository.filemode else 'false'}",
        "\tlogallrefupdates = false",
        "\tautocrlf = false",
        "\tfsmonitor = false",
        "\thooksPath = /dev/null",
        "[gc]",
        "\tauto = 0",
        "[maintenance]",
        "\tauto = false",
    ]
    if repository.excludes_file:
        quoted = repository.excludes_file.replace("\\", "\\\\").replace('"', '\\"')
        lines.insert(1, f'\texcludesFile = "{quoted}"')
    if extension:
        lines += ["[extensions]", f"\tobjectFormat = {repository.form}"]
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")


def _quoted(path: str) -> str:
    """A path as the file of alternates has it."""
    if not path.startswith('"') and "\n" not in path:
        return path
    raise IsolationError(
        f"git can't borrow objects from the folder {path!r}.", hint="Use isolation: shared."
    )


def _packed(refs: bytes) -> bytes:
    rows = [row for row in refs.split(b"\n") if row and b" refs/replace/" not in row]
    return b"".join(row + b"\n" for row in sorted(rows, key=lambda row: row.partition(b" ")[2]))


def write_index(path: Path, repository: Repository, files: Iterable[Copied]) -> None:
    """An index in which every copy is clean: version 2, or 3 where a sparse checkout leaves files out."""
    rows: list[tuple[bytes, bytes]] = []
    for file in files:
        executable = bool(file.mode & 0o100)
        kind = file.mode & 0o170000
        mode = kind if kind != 0o100000 else 0o100755 if executable else 0o100644
        stat = _pack_stat(file, mode)
        rows.append(_row(file.path, stat, file.blob))
    for link, blob in repository.links.items():
        rows.append(_row(link, _pack_stat(None, _GITLINK), blob))
    for skipped, (mode, blob) in repository.skipped.items():
        rows.append(_row(skipped, _pack_stat(None, mode), blob, skip=True))
    rows.sort()
    version = 3 if repository.skipped else 2
    body = struct.pack(">4sLL", b"DIRC", version, len(rows)) + b"".join(row for _, row in rows)
    if repository.form == "sha256":
        check = hashlib.sha256(body).digest()
    else:
        check = hashlib.sha1(body, usedforsecurity=False).digest()
    _write(path, body + check)


def _pack_stat(file: Copied | None, mode: int) -> bytes:
    if file is None:
        return struct.pack(">10L", 0, 0, 0, 0, 0, 0, mode, 0, 0, 0)
    low = 0xFFFFFFFF
    seconds, nanos = divmod(file.mtime, 10**9)
    changed, changed_nanos = divmod(file.ctime, 10**9)
    return struct.pack(
        ">10L",
        changed & low,
        changed_nanos,
        seconds & low,
        nanos,
        file.device & low,
        file.inode & low,
        mode,
        os.getuid() & low,
        os.getgid() & low,
        file.size & low,
    )


def _row(path: str, stat: bytes, blob: str, *, skip: bool = False) -> tuple[bytes, bytes]:
    name = os.fsencode(path)
    flags = min(len(name), 0xFFF) | (_SKIP if skip else 0)
    row = stat + bytes.fromhex(blob) + struct.pack(">H", flags)
    if skip:
        row += struct.pack(">H", _SKIP)
    row += name
    return name, row + b"\0" * (8 - len(row) % 8)


async def _setting(git: Git, name: str) -> str:
    with suppress(GitError):
        return (
            (await git.call("config", "-z", "--get", name)).rstrip(b"\0").decode("utf-8", "replace")
        )
    return ""


def _is_below(path: str) -> bool:
    return not {"", ".", "..", ".git"} & set(path.split("/"))


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)


def _rows(output: bytes) -> list[bytes]:
    return [row for row in output.split(b"\0") if row]


async def of_others(git: Git, tree: Path, new: Sequence[str]) -> list[str]:
    """The folders below `tree` with files of other repositories: submodules that were empty, and of `new`
    (paths, folders with "/") those that were made there."""
    listing = await git.call("ls-files", "-z", "--stage", index=git.folder / "index")
    rows = (row.partition(b"\t") for row in listing.split(b"\0"))
    links = [os.fsdecode(path) for head, _, path in rows if head.startswith(b"160000 ")]

    def filled(path: str) -> bool:
        place = tree / path
        return place.is_dir() and not place.is_symlink() and any(place.iterdir())

    return [*filter(filled, links), *(path[:-1] for path in new if path.endswith("/"))]
