"""Which sandbox this machine has: each is proven by a program that tries to get out of it.

A program that is installed proves nothing, so nothing is believed before its canary has come back. What
was proven is remembered until the machine is started anew or something that matters has changed.
"""

import os
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from croze.workspace import landlock, seccomp
from croze.workspace.child_environment import child_environment
from croze.workspace.masks import temporary
from croze.workspace.process import ProcessError, run
from croze.workspace.proof import (
    SYSTEM,
    Kind,
    Proof,
    find_bwrap,
    read_setting,
    remember,
    remembered,
)
from croze.workspace.wrapper import Policy

_SECONDS = 20.0
_CANARY = r"""
import os, socket, sys
inside, outside, port = sys.argv[1:]

def attempt(what):
    try:
        what()
    except OSError:
        pass

def write(path, flags):
    os.write(os.open(path, flags | os.O_WRONLY, 0o600), b"canary")

def connect(family, kind, address):
    with socket.socket(family, kind) as out:
        out.settimeout(2)
        out.connect(address)
        out.send(b"canary")

for spot in (inside, outside):
    attempt(lambda: write(spot + "/made", os.O_CREAT))
attempt(lambda: write(outside + "/kept", os.O_TRUNC))
attempt(lambda: os.rename(outside + "/kept", inside + "/taken"))
attempt(lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(port))))
attempt(lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", int(port))))
attempt(lambda: os.chdir(outside) or connect(socket.AF_UNIX, socket.SOCK_STREAM, "socket"))
try:
    print(open(outside + "/hidden/secret").read())
except OSError:
    pass
print("reached the end")
"""


PROVEN = (
    "files outside could be neither made, changed nor taken",
    "hidden files could not be read",
    "no connection outside: TCP, UDP, unix sockets",
    "files inside could be written",
)
"""What the canary has tried."""


@dataclass(frozen=True, slots=True)
class Prober:
    """Proves sandboxes and remembers it in `folder`, croze's cache."""

    folder: Path
    env: Mapping[str, str]

    async def prove(self, *, anew: bool = False) -> Proof:
        """The best sandbox that holds. A failure is never just believed a second time: it is cheap to
        find out, and its cause may have been mended."""
        known = remembered(self.folder, self.env)
        program = find_bwrap(self.env)
        best: Kind = "bubblewrap" if program else "landlock"
        if known is not None and known.kind == best and not anew:
            return known
        proof = await self._find(program)
        remember(self.folder, self.env, proof)
        return proof

    async def _find(self, program: str | None) -> Proof:
        if program is not None and sys.platform == "linux":
            found = Proof(kind="bubblewrap", program=program)
            reason = await self._try(found)
            if not reason:
                return found
            proof, second = _first_look(program, f"bubblewrap: {reason}")
        else:
            proof, second = _first_look(None)
        if second is None:
            return proof
        reason = await self._try(second)
        if not reason:
            return second
        return Proof(reasons=(*second.reasons, f"Landlock: {reason}"), fix=second.fix)

    async def _try(self, proof: Proof) -> str:
        """Send the canary in; what is wrong, or nothing."""
        try:
            with ExitStack() as stack:
                return await self._canary(proof, stack)
        except (OSError, ProcessError) as error:
            return str(error)

    async def _canary(self, proof: Proof, stack: ExitStack) -> str:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        base = Path(os.path.realpath(tempfile.mkdtemp(prefix="probe-", dir=self.folder)))
        stack.callback(shutil.rmtree, base, ignore_errors=True)
        inside, outside = base / "inside", base / "outside"
        for folder in (inside, outside, outside / "hidden"):
            folder.mkdir()
        (outside / "kept").write_text("kept")
        (outside / "hidden" / "secret").write_text("a secret")
        tcp = stack.enter_context(socket.socket())
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        port = tcp.getsockname()[1]
        udp = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
        with suppress(OSError):
            udp.bind(("127.0.0.1", port))
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        # By a short link, since a socket's name can't be as long as the path may be.
        short = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="croze-"))) / "o"
        short.symlink_to(outside)
        unix.bind(str(short / "socket"))
        unix.listen()
        policy = Policy(
            root=inside,
            level="workspace",
            hidden=(outside / "hidden",),
            temporary=tuple(path for path in temporary(self.env) if path not in base.parents),
            visible=tuple(Path(os.path.realpath(each)) for each in (sys.prefix, sys.base_prefix)),
        )
        arguments = [sys.executable, "-I", "-S", "-c", _CANARY, str(inside), str(outside)]
        ended = await run(
            [*arguments, str(port)],
            cwd=inside,
            env=child_environment(self.env),
            timeout=_SECONDS,
            sandbox=proof.wrapper(policy),
        )
        if ended.exit_code != 0 or "reached the end" not in ended.head:
            return (ended.head + ended.tail).strip()[-500:] or f"it ended with {ended.exit_code}"
        escaped = [what for what, bad in _escapes(outside, tcp, udp, unix) if bad]
        if "a secret" in ended.head:
            escaped.append("a hidden file was read")
        if escaped:
            return "it does not hold: " + ", ".join(escaped)
        if not (inside / "made").exists():
            return "nothing can be written inside"
        return ""


def at_a_glance() -> Proof | None:
    """The outcome without bubblewrap, where nothing has to be tried for it: there is nothing to try."""
    proof, to_try = _first_look(None)
    return None if to_try else proof


def _first_look(program: str | None, reason: str = "") -> tuple[Proof, Proof | None]:
    """What is left without bubblewrap: no sandbox, and Landlock where it can be tried."""
    if sys.platform != "linux":
        return Proof(reasons=(f"{platform.system()} is not supported yet",)), None
    reasons = [reason or "bubblewrap is not installed"]
    fix = _fix(program, reason)
    version = landlock.abi()
    if seccomp.build(seccomp.NO_SOCKETS) is None:
        reasons.append(f"Landlock: no system call filter for {os.uname().machine}")
    elif version < landlock.LEAST_ABI:
        has = f"version {version}" if version else "not in this kernel"
        reasons.append(f"Landlock: {has}, version {landlock.LEAST_ABI} is needed")
    else:
        second = Proof(kind="landlock", abi=version, reasons=tuple(reasons), fix=fix)
        return Proof(reasons=tuple(reasons), fix=fix), second
    return Proof(reasons=tuple(reasons), fix=fix), None


def _escapes(
    outside: Path, tcp: socket.socket, udp: socket.socket, unix: socket.socket
) -> list[tuple[str, bool]]:
    """What can be seen from outside, and whether it shows that the canary got out."""

    def heard(server: socket.socket, stream: bool) -> bool:
        server.setblocking(False)
        try:
            if stream:
                server.accept()[0].close()
            else:
                server.recv(16)
        except OSError:
            return False
        return True

    try:
        kept = (outside / "kept").read_text() == "kept"
    except OSError:
        kept = False
    return [
        ("a file outside was made", (outside / "made").exists()),
        ("a file outside was changed or taken", not kept),
        ("a TCP connection came out", heard(tcp, stream=True)),
        ("a UDP packet came out", heard(udp, stream=False)),
        ("a unix socket was reached", heard(unix, stream=True)),
    ]


def _fix(program: str | None, reason: str) -> str:
    """One command that makes bubblewrap work, as far as one can be told."""
    if program is None:
        for manager, command in (
            ("apt-get", "apt-get install bubblewrap"),
            ("dnf", "dnf install bubblewrap"),
            ("pacman", "pacman -S bubblewrap"),
            ("zypper", "zypper install bubblewrap"),
            ("apk", "apk add bubblewrap"),
        ):
            if any(os.path.exists(f"{folder}/{manager}") for folder in ("/usr/bin", "/sbin")):
                return command if os.geteuid() == 0 else f"sudo {command}"
        return "install bubblewrap"
    sudo = "" if os.geteuid() == 0 else "sudo "
    if read_setting(SYSTEM[1]) == "1":
        return f"{sudo}sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    if read_setting(SYSTEM[2]) == "0":
        return f"{sudo}sysctl kernel.unprivileged_userns_clone=1"
    if read_setting(SYSTEM[3]) == "0":
        return f"{sudo}sysctl user.max_user_namespaces=15000"
    if os.path.exists("/.dockerenv") or "Operation not permitted" in reason:
        return "start the container with --security-opt seccomp=unconfined --security-opt systempaths=unconfined"
    return f"{program} --unshare-all --ro-bind / / true"
