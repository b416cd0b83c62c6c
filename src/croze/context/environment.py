"""What the agent should know of the machine and the project's surroundings, read without a process."""

import locale
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from msgspec import Struct

from croze.types.ids import Source

MAX_ENTRIES = 2_000
"""Entries of the project's root that are looked at for signs of a toolchain."""

MAX_PROGRAMS = 8
"""Programs named in all, so that a root with signs of everything stays within its tokens."""

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BRANCH = re.compile(r"[^\x00-\x20\x7f~^:?*\[\\<>]{1,100}")
_GITDIR = re.compile(r"gitdir: (.+?)\n?")
_UNDER_WAY = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "BISECT_LOG": "bisect",
}
_TOOLCHAINS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    (
        "Python",
        ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "tox.ini", "*.py"),
        ("python3", "python", "uv", "pytest", "poetry", "tox"),
    ),
    ("Node", ("package.json", "deno.json"), ("node", "npm", "pnpm", "yarn", "bun", "deno")),
    ("Go", ("go.mod", "go.work", "*.go"), ("go",)),
    ("Rust", ("Cargo.toml",), ("cargo",)),
    ("Java", ("pom.xml", "build.gradle", "build.gradle.kts"), ("java", "mvn", "gradle")),
    (
        "C/C++",
        ("CMakeLists.txt", "meson.build", "configure", "*.c", "*.cpp"),
        ("cc", "cmake", "meson"),
    ),
    ("Ruby", ("Gemfile", "*.gemspec"), ("ruby", "bundle")),
    ("PHP", ("composer.json",), ("php", "composer")),
    (".NET", ("*.sln", "*.csproj"), ("dotnet",)),
    ("Elixir", ("mix.exs",), ("mix",)),
    ("Make", ("Makefile", "makefile", "GNUmakefile"), ("make",)),
)


class SystemInfo(Struct, frozen=True):
    """The machine as the head tells it; nothing in it changes between two sessions. `shell` is what
    commands run in, `user_shell` what the user works in."""

    os: str
    shell: str
    user_shell: str
    encoding: str


def read_system(env: Mapping[str, str], *, shell: str = "") -> SystemInfo:
    """Operating system and version (/etc/os-release), the shells, the locale's encoding. `shell` is the
    program that runs commands; without one the user's own, which is `$SHELL`."""
    name = ""
    for line in _read_small("/etc/os-release").splitlines():
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            name = value.strip("\"'")
    kernel = os.uname()
    user_shell = os.path.basename(env.get("SHELL", "")) or os.path.basename(shell) or "sh"
    return SystemInfo(
        os=_line(f"{name or kernel.sysname} ({kernel.sysname}, {kernel.machine})"),
        shell=_line(os.path.basename(shell) or user_shell),
        user_shell=_line(user_shell),
        encoding=locale.getencoding().lower(),
    )


def environment_facts(
    root: Path, source: Source, *, env: Mapping[str, str], paths: bool = True
) -> str:
    """The facts of the first message: date, project, user, git state, toolchains; some 100 tokens.

    `paths` says whether absolute paths may be shown; else `root` is a task workspace, which knows nothing
    of what it lies in. Whether the git tree is dirty is left out: that
    takes a process, and an untrusted repository's configuration may make git run programs.
    """
    today = datetime.fromtimestamp(source.now() / 1e6, tz=UTC).astimezone().date()
    where = f"Project: {_line(root.name or str(root))}, at {_line(str(root))}"
    where = (
        where if paths else "Workspace: a folder apart from any project; paths are relative to it"
    )
    lines = [f"Date: {today.isoformat()}", where]
    user = env.get("USER") or env.get("LOGNAME")
    if paths:
        who = [_line(user)] if user else []
        home = env.get("HOME")
        who += [f"home {_line(home)}"] if home else []
        lines += [f"User: {', '.join(who)}"] if who else []
    lines.append(f"Git: {_git_state(root, outer=paths) or 'not a repository'}")
    lines += [f"Toolchain: {toolchain}" for toolchain in _toolchains(root, env.get("PATH", ""))]
    return "\n".join(("<environment>", *lines, "</environment>"))


def _git_state(root: Path, *, outer: bool) -> str:
    """Branch, commit and operation under way, from git's own files; empty outside a repository. `outer`:
    the repository may lie further up."""
    git = _git_folder(root, outer=outer)
    if git is None:
        return ""
    head = _read_small(f"{git}/HEAD").strip()
    common = _read_small(f"{git}/commondir").strip()
    refs = os.path.normpath(os.path.join(git, common)) if common else git
    if head.startswith("ref: refs/heads/"):
        branch = head.removeprefix("ref: refs/heads/")
        if not _BRANCH.fullmatch(branch) or ".." in branch:
            return "a repository whose branch can't be read"
        commit = _commit_of(refs, f"refs/heads/{branch}")
        state = f"branch {branch}" + (f" at {commit[:8]}" if commit else "")
    elif _COMMIT.fullmatch(head):
        state = f"no branch, at {head[:8]}"
    else:
        return "a repository whose HEAD can't be read"
    for file, operation in _UNDER_WAY.items():
        if os.path.lexists(f"{git}/{file}"):
            return f"{state}, {operation} under way"
    return state


def _git_folder(root: Path, *, outer: bool) -> str | None:
    for folder in (root, *root.parents) if outer else (root,):
        path = f"{folder}/.git"
        try:
            mode = os.stat(path).st_mode
        except OSError:
            continue
        if stat.S_ISDIR(mode):
            return path
        link = _GITDIR.fullmatch(_read_small(path))
        return os.path.normpath(os.path.join(folder, link[1])) if link else None
    return None


def _commit_of(refs: str, ref: str) -> str:
    loose = _read_small(f"{refs}/{ref}").strip()
    if _COMMIT.fullmatch(loose):
        return loose
    packed = _read_small(f"{refs}/packed-refs", limit=1_000_000)
    end = packed.find(f" {ref}\n")
    commit = packed[packed.rfind("\n", 0, end) + 1 : end] if end > 0 else ""
    return commit if _COMMIT.fullmatch(commit) else ""


def _toolchains(root: Path, search_path: str) -> Iterator[str]:
    """The toolchains that the root's entries point to, and which of their programs are there."""
    try:
        with os.scandir(root) as entries:
            names = {entry.name for entry in islice(entries, MAX_ENTRIES)}
    except OSError:
        return
    suffixes = {f"*{os.path.splitext(name)[1]}" for name in names}
    folders = [folder for folder in search_path.split(os.pathsep) if os.path.isabs(folder)]
    left = MAX_PROGRAMS
    for name, signs, programs in _TOOLCHAINS:
        sign = next((s for s in signs if s in names or s in suffixes), None)
        if sign is None:
            continue
        found = [p for p in programs if _on_path(p, folders)][:left]
        left -= len(found)
        if name == "Python" and ".venv" in names:
            found.insert(0, ".venv/bin/python")
        yield f"{name} ({sign}): {', '.join(found) or 'none of its programs found'}"


def _on_path(program: str, folders: list[str]) -> bool:
    for folder in folders:
        path = f"{folder}/{program}"
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return True
    return False


def _read_small(path: str, limit: int = 4_096) -> str:
    """A small regular file's text, empty where there is none: never waits on a pipe or a device."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        return os.read(handle, limit).decode(sys.getfilesystemencoding(), "replace")
    except OSError:
        return ""
    finally:
        os.close(handle)


def _line(text: str) -> str:
    """`text` on one line, without control characters, at most 160 characters."""
    clean = "".join(c if c.isprintable() else "�" for c in text)
    return clean if len(clean) <= 160 else f"{clean[:159]}…"
