"""What was proven of this machine's sandbox, and how it is remembered."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from croze.workspace.wrapper import Policy, Wrapper

Kind = Literal["bubblewrap", "landlock"]

SYSTEM = (
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/user/max_user_namespaces",
)
"""What a proof stands on: the system as it was started, and its settings."""

_VERSION = 1
_FILE = "sandbox.json"


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What was proven. `kind` None: nothing, and `reasons` tell why; with a kind they tell why none of
    the better ones was taken. `program` is bwrap's path, `abi` Landlock's version."""

    kind: Kind | None = None
    program: str = ""
    abi: int = 0
    reasons: tuple[str, ...] = ()
    fix: str = ""

    @property
    def about(self) -> str:
        """What it is, in a few words."""
        if self.kind == "bubblewrap":
            return f"bubblewrap ({self.program})"
        return f"Landlock (version {self.abi}) and seccomp" if self.kind else "none"

    @property
    def gaps(self) -> tuple[str, ...]:
        """What this sandbox can't do."""
        if self.kind != "landlock":
            return ()
        from croze.workspace.landlock import GAPS

        return GAPS

    def wrapper(self, policy: "Policy") -> "Wrapper | None":
        """The proven sandbox for a policy."""
        if self.kind == "bubblewrap":
            from croze.workspace.bubblewrap import Bubblewrap

            return Bubblewrap(self.program, policy)
        if self.kind is None:
            return None
        from croze.workspace.landlock import Landlock

        return Landlock(self.abi, policy)


def remembered(folder: Path, env: Mapping[str, str]) -> Proof | None:
    """The last outcome, from croze's cache folder, where nothing has changed since; else None."""
    try:
        record = json.loads((folder / _FILE).read_bytes())
        if record["key"] != _key(env):
            return None
        return msgspec.convert(record["proof"], Proof)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remember(folder: Path, env: Mapping[str, str], proof: Proof) -> None:
    """Keep an outcome; where that fails it has to be found out again."""
    record = {"key": _key(env), "proof": msgspec.to_builtins(proof)}
    path = folder / f"sandbox-{os.urandom(8).hex()}"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as stream:
            stream.write(msgspec.json.encode(record))
        os.replace(path, folder / _FILE)


def find_bwrap(env: Mapping[str, str]) -> str | None:
    """bwrap: on PATH, absolute folders only, and never a program that others could have put there."""
    for folder in ["/usr/bin", "/bin", "/usr/local/bin", *env.get("PATH", "").split(os.pathsep)]:
        candidate = os.path.join(folder, "bwrap")
        if os.path.isabs(folder) and os.access(candidate, os.X_OK) and os.path.isfile(candidate):
            return os.path.realpath(candidate)
    return None


def read_setting(path: str) -> str:
    try:
        with open(path, encoding="ascii") as stream:
            return stream.read(100).strip()
    except (OSError, ValueError):
        return ""


def _key(env: Mapping[str, str]) -> list[object]:
    key: list[object] = [_VERSION, os.uname().release, os.geteuid()]
    key += [read_setting(path) for path in SYSTEM]
    program = find_bwrap(env)
    with suppress(OSError):
        if program is not None:
            about = os.stat(program)
            key += [program, about.st_mtime_ns, about.st_size, about.st_mode]
    return key
