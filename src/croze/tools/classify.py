"""What a shell command does: reads, reaches the network, or anything else.

A convenience, so that looking round needs no question. It is never the boundary: the sandbox is. What
isn't proven to only read is executed by permission only, and every doubt counts as "not proven": a
command that can't be taken apart, an unknown option, a program that others could have put there, a path
that leads out of the workspace or may hold secrets.
"""

import os
import posixpath
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from croze.tools.option_rules import Unknown
from croze.tools.safe_commands import BUILTINS, reads
from croze.tools.shell_syntax import Opaque, Simple, read
from croze.tools.trusted_path import Place, find_trusted
from croze.workspace.plain_git import why_not_plain
from croze.workspace.sensitive import is_sensitive

Kind = Literal["read", "write", "execute", "network"]
"""What a call does to the world; of a command never `write`, since who writes may as well run."""

_NETWORK_TEXT = """
curl wget aria2c httpie http https ssh scp sftp rsync ftp lftp tftp telnet nc ncat netcat socat dig
nslookup host drill ping traceroute whois aws gcloud az gh glab
"""
NETWORK = frozenset(_NETWORK_TEXT.split())
_GIT_NETWORK = frozenset({"push", "pull", "fetch", "clone", "ls-remote", "submodule", "remote"})
_FETCHERS = frozenset(
    {"npm", "pnpm", "yarn", "pip", "pip3", "uv", "cargo", "go", "gem", "apt", "apt-get"}
)
_FETCHING = frozenset(
    {"install", "i", "add", "ci", "download", "update", "upgrade", "get", "publish"}
)
_SHELL_TEXT = """
. source eval exec alias unalias set shopt hash enable trap builtin let read mapfile readarray getopts
ulimit umask pushd popd wait bind complete compgen
"""
CHANGES_SHELL = frozenset(_SHELL_TEXT.split())
"""Builtins that change what later words mean, or run text as commands (CVE-2026-22708)."""


class Part(Struct, frozen=True):
    """One simple command. `why` says why it isn't proven to only read, empty where it is. `paths` are the
    files that it is known to read, as named and as they really lie below the workspace."""

    argv: tuple[str, ...]
    text: str
    kind: Kind
    why: str = ""
    joined: str = ""
    paths: tuple[str, ...] = ()


class Classified(Struct, frozen=True):
    """A command's class: the most of its parts'. Without parts it was not understood, and `why` tells."""

    kind: Kind
    why: str = ""
    parts: tuple[Part, ...] = ()


def classify(command: str, place: Place) -> Classified:
    """Class a command. Linear in its length; never raises."""
    script = read(command)
    if isinstance(script, Opaque):
        return Classified("execute", script.why)
    parts: list[Part] = []
    whys: dict[tuple[tuple[str, ...], str | None], str] = {}
    folder: str | None = "."
    changed = ""
    for at, simple in enumerate(script.parts):
        if folder != "." and simple.joined not in ("&&", "|"):
            folder = None  # the cd before may have failed
        known = (simple.argv, folder)
        if known not in whys:
            whys[known] = _why_not_read(simple.argv, place, folder)
        part = _classed(simple, whys[known], _paths(simple.argv, place, folder))
        if simple.argv[0] in CHANGES_SHELL:
            changed = simple.argv[0]
            part = replace(part, why=f"changes the shell itself with {changed}")
        elif changed and not part.why:
            why = f"comes after {changed}, which changes the shell"
            part = replace(part, kind="execute", why=why)
        if simple.argv[0] == "cd":
            stays = at == 0 and all(each.joined == "&&" for each in script.parts[1:2])
            if not part.why and stays:
                folder = place.locate(simple.argv[1])
            else:
                folder = None
        parts.append(part)
    first = next((part for part in parts if part.why), None)
    kinds = {part.kind for part in parts}
    kind: Kind = "network" if "network" in kinds else "execute" if first else "read"
    return Classified(kind, first.why if first else "", tuple(parts))


def _paths(argv: tuple[str, ...], place: Place, folder: str | None) -> tuple[str, ...]:
    """What a known command reads, for the rules that forbid to read it."""
    found = reads(argv)
    if isinstance(found, Unknown):
        return ()
    named = [
        path if path[:1] == "/" else posixpath.join(folder or ".", path) for path in found.paths
    ]
    real = (place.locate(path) for path in named)
    return tuple(dict.fromkeys((*named, *(path for path in real if path is not None))))


def _classed(simple: Simple, why: str, paths: tuple[str, ...]) -> Part:
    kind: Kind = "read"
    if why:
        kind = "network" if _reaches_out(simple.argv) else "execute"
    return Part(simple.argv, simple.text, kind, why, simple.joined, paths)


def _why_not_read(argv: tuple[str, ...], place: Place, folder: str | None) -> str:
    found = reads(argv)
    if isinstance(found, Unknown):
        return found.why
    if argv[0] not in BUILTINS and (why := find_trusted(argv[0], place.search, place.root)):
        return why
    if folder is None and (found.paths or argv[0] == "git"):
        return "runs in a folder that can't be told beforehand"
    here = folder or "."
    if argv[0] == "git" and argv[1:] not in (("--version",), ("version",)):
        if here != ".":
            return "may run what another repository's configuration names"
        if why := why_not_plain(place.root):
            return why
    for path in found.paths:
        if why := _why_not_path(path, place, here, only_files=found.only_files):
            return why
    return ""


def _why_not_path(path: str, place: Place, here: str, *, only_files: bool) -> str:
    """Why a path that a command names may not be read without a question."""
    if path == "/dev/null":
        return ""
    full = path if path.startswith("/") else posixpath.join(here, path)
    real = place.locate(full)
    if real is None or real.startswith(("/", "../")) or real == "..":
        return f"reads {path}, which is outside of the workspace"
    if any(map(is_sensitive, (real, path, path.rpartition(":")[2]))):
        return f"reads {path}, which may hold secrets"
    if only_files and os.path.isdir(place.root / real):
        return f"reads {path}, which is a folder"
    return ""


def _reaches_out(argv: tuple[str, ...]) -> bool:
    name = posixpath.basename(argv[0])
    if name in NETWORK:
        return True
    words = [word for word in argv[1:] if not word.startswith("-")]
    if name == "git":
        return bool(_GIT_NETWORK.intersection(words[:3]))
    return name in _FETCHERS and bool(_FETCHING.intersection(words[:2]))
