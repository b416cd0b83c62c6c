"""Where croze keeps things: the user's folders (XDG) and the project a folder belongs to."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_SMALL = 4096


@dataclass(frozen=True, slots=True)
class Paths:
    """The user's four folders; none of them is made by looking at it.

    Linux follows the XDG Base Directory Specification, other systems ask `platformdirs`.
    """

    config: Path
    data: Path
    cache: Path
    state: Path

    @property
    def config_file(self) -> Path:
        return self.config / "config.toml"

    @property
    def keys_file(self) -> Path:
        return self.config / "keys.toml"

    @property
    def trusted_file(self) -> Path:
        return self.state / "trusted.json"

    @property
    def log_file(self) -> Path:
        return self.state / "croze.log"

    @property
    def crash_log(self) -> Path:
        return self.state / "crash.log"

    @classmethod
    def of(cls, env: Mapping[str, str]) -> "Paths":
        """The folders for this environment; a relative XDG value is ignored, as the XDG text demands."""
        if sys.platform != "linux":
            return _native()
        home = Path(env.get("HOME") or os.path.expanduser("~"))

        def folder(name: str, default: str) -> Path:
            value = env.get(name, "")
            return (Path(value) if value.startswith("/") else home / default) / "croze"

        return cls(
            config=folder("XDG_CONFIG_HOME", ".config"),
            data=folder("XDG_DATA_HOME", ".local/share"),
            cache=folder("XDG_CACHE_HOME", ".cache"),
            state=folder("XDG_STATE_HOME", ".local/state"),
        )


def _native() -> Paths:
    import platformdirs

    return Paths(
        config=platformdirs.user_config_path("croze"),
        data=platformdirs.user_data_path("croze"),
        cache=platformdirs.user_cache_path("croze"),
        state=platformdirs.user_state_path("croze"),
    )


@dataclass(frozen=True, slots=True)
class Project:
    """`root` is the top folder (of the git work tree, else the folder itself). `identity` is what
    makes two folders the same project: git's common directory, else the root; both are real paths."""

    root: Path
    identity: Path

    @property
    def config_file(self) -> Path:
        return self.root / ".croze" / "config.toml"

    @property
    def folder_name(self) -> str:
        """A readable, unique name for this project's folder in the data folder."""
        import hashlib

        base = self.identity.parent if self.identity.name == ".git" else self.identity
        name = "".join(c if c.isalnum() or c in "-_." else "-" for c in base.name)[:40] or "root"
        digest = hashlib.sha256(os.fsencode(self.identity)).hexdigest()
        return f"{name.lstrip('.') or 'root'}-{digest[:12]}"


def find_project(cwd: Path) -> Project:
    """The project of `cwd`. Only names are looked at and git's pointer files read: git isn't run."""
    real = Path(os.path.realpath(cwd))
    for folder in (real, *real.parents):
        dot_git = folder / ".git"
        if dot_git.is_dir() and not _is_empty(dot_git):  # that is a sandbox's, or nobody's
            return Project(root=folder, identity=dot_git)
        if dot_git.is_file():
            return Project(root=folder, identity=_common_dir(dot_git) or folder)
    return Project(root=real, identity=real)


def _is_empty(folder: Path) -> bool:
    try:
        return not os.listdir(folder)
    except OSError:
        return False


def _common_dir(pointer: Path) -> Path | None:
    """The common directory behind a work tree's `.git` file. None where it leads nowhere, or to a
    repository that doesn't know of this work tree: then a stranger's folder would be taken for it."""
    line = _first_line(pointer)
    if not line.startswith("gitdir:"):
        return None
    git_dir = Path(os.path.realpath(pointer.parent / line.removeprefix("gitdir:").strip()))
    common, back = _first_line(git_dir / "commondir"), _first_line(git_dir / "gitdir")
    if not common or os.path.realpath(git_dir / back) != os.path.realpath(pointer):
        return None
    found = Path(os.path.realpath(git_dir / common))
    return found if found.is_dir() else None


def _first_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_SMALL).decode("utf-8", "replace").partition("\n")[0].strip()
    except OSError:
        return ""
