"""Whether a repository's own files name programs that git would run when it is only asked.

The local configuration has to consist of known lines: keys that a clone, a commit and a branch leave
there. Whatever else stands in it (a monitor, a filter, a driver, an include, an alias, a promised object
that would be fetched) makes the repository one to be asked about. So do submodules, whose own
configurations git would read, and the one hook that reading commands may run.
"""

import os
import re
from functools import lru_cache
from pathlib import Path

_SECTION = re.compile(r'\[(core|remote|branch|user|init|pull|push|lfs|gui)(?: "[^"\\\n]*")?\]\Z')
_KEYS = {
    "core": {
        "repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase",
        "precomposeunicode", "symlinks", "autocrlf", "eol", "longpaths", "quotepath", "untrackedcache",
    },
    "remote": {"url", "fetch", "pushurl", "tagopt", "prune", "gh-resolved"},
    "branch": {
        "remote", "merge", "rebase", "description", "pushremote", "vscode-merge-base", "gh-merge-base",
        "github-pr-owner-number",
    },
    "user": {"name", "email"},
    "init": {"defaultbranch"},
    "pull": {"rebase", "ff"},
    "push": {"default", "autosetupremote"},
    "lfs": {"repositoryformatversion"},
    "gui": {"wmstate", "geometry"},
}  # fmt: skip
_LINE = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*=\s*([^\\\"]*)\Z")
_GITLINK = b"\x00\x00\xe0\x00"
_MOST = 64 << 20
_SMALL = 1 << 20


def why_not_plain(root: Path) -> str:
    """Why git commands that only read might run a program of the repository at `root`; empty where
    they would not. Completes "it …"."""
    dot_git = root / ".git"
    folder = common = dot_git
    if not dot_git.is_dir():
        line = _text(dot_git) or ""
        if not line.startswith("gitdir:"):
            return "would read a repository above the workspace, if any"
        folder = Path(os.path.realpath(root / line.removeprefix("gitdir:").strip()))
        common = Path(os.path.realpath(folder / (_text(folder / "commondir") or "").strip()))
    if not (folder / "HEAD").is_file() or not all(
        (common / each).is_dir() for each in ("objects", "refs")
    ):
        return "would read a repository that is not whole"
    if (common / "hooks" / "post-index-change").exists():
        return "may run a hook of the repository"
    config = _text(common / "config")
    if config is None or (why := _strange_line(config)):
        return f"may run what the repository's configuration names ({why})" if config else _UNREAD
    if _has_submodules(folder):
        return "may run what a submodule's configuration names"
    return ""


_UNREAD = "would read a repository whose configuration can't be read"


def _strange_line(config: str) -> str:
    """The first line of a configuration that isn't known to be harmless."""
    section = ""
    for raw in config.split("\n"):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if found := _SECTION.match(line):
            section = found[1]
            continue
        key = _LINE.match(line)
        if not key or key[1].lower() not in _KEYS.get(section, ()):
            return line[:60]
        if key[1].lower() in ("url", "pushurl") and "::" in key[2]:
            return line[:60]
    return ""


def _has_submodules(folder: Path) -> bool:
    try:
        if any(name.startswith("sharedindex.") for name in os.listdir(folder)):
            return True
        found = (folder / "index").stat()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return _mentions_gitlink(folder / "index", found.st_mtime_ns, found.st_size, found.st_ino)


@lru_cache(maxsize=8)
def _mentions_gitlink(index: Path, mtime: int, size: int, inode: int) -> bool:
    """Whether the mode of a submodule's entry stands anywhere in the index: more than where it counts."""
    if size > _MOST:
        return True
    try:
        return _GITLINK in index.read_bytes()
    except OSError:
        return True


def _text(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            data = file.read(_SMALL + 1)
        return data.decode("utf-8") if len(data) <= _SMALL else None
    except (OSError, UnicodeDecodeError):
        return None
