"""The weaker sandbox: Landlock and a system call filter."""

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from croze.workspace import landlock, seccomp
from croze.workspace.landlock import Landlock
from croze.workspace.process import child_environment, run
from croze.workspace.wrapper import Policy
from tests.sandboxes import need, running

ENV = child_environment(os.environ)


class Box:
    def __init__(self, abi, base):
        self.abi = abi
        self.root, self.outside = base / "project", base / "outside"
        self.root.mkdir()
        self.outside.mkdir()

    async def run(self, *argv, timeout=60, **options):
        policy = Policy(**({"root": self.root, "level": "workspace"} | options))
        return await run(
            list(map(str, argv)), cwd=self.root, env=ENV, timeout=timeout, sandbox=Landlock(self.abi, policy)
        )  # fmt: skip

    async def bash(self, command, **options):
        return await self.run("/bin/bash", "-c", command, **options)


@pytest.fixture
def box(tmp_path):
    return Box(need("landlock").abi, Path(os.path.realpath(tmp_path)))


async def test_writing_stays_inside_also_through_links(box):
    (box.outside / "kept").write_text("kept")
    (box.root / "link").symlink_to(box.outside)
    ended = await box.bash(
        f"echo x > a; echo x > link/b; echo x > {box.outside}/kept; : > link/kept; rm -f link/kept; mv link/kept .; "
        "echo x > $TMPDIR/t && cat a $TMPDIR/t /dev/null > /dev/null && echo fine"
    )
    assert ended.head.endswith("fine\n")
    assert (box.root / "a").read_text() == "x\n"
    assert os.listdir(box.outside) == ["kept"]
    assert (box.outside / "kept").read_text() == "kept"


async def test_read_only_writes_nowhere(box):
    ended = await box.bash("touch a || echo no", level="read-only")
    assert ended.head.endswith("no\n")
    assert os.listdir(box.root) == []


async def test_hidden_files_cant_be_read_and_others_can(box):
    (box.outside / "hidden").mkdir()
    (box.outside / "hidden" / "id").write_text("the key")
    (box.outside / "open").write_text("fine")
    ended = await box.bash(
        f"cat {box.outside}/hidden/id; cat {box.outside}/open", hidden=(box.outside / "hidden",)
    )
    assert "the key" not in ended.head
    assert ended.head.endswith("fine")


async def test_no_socket_but_a_pair_can_be_opened(box):
    code = """
import socket
for family, kind in ((socket.AF_INET, 1), (socket.AF_INET, 2), (socket.AF_INET6, 2), (socket.AF_UNIX, 1), (40, 1)):
    try:
        socket.socket(family, kind)
        print("open")
    except OSError as error:
        print(error.errno)
one, other = socket.socketpair()
one.send(b"x")
print("pair")
"""
    ended = await box.run(sys.executable, "-I", "-S", "-c", code)
    assert ended.head == "1\n1\n1\n1\n1\npair\n"
    granted = await box.run(
        sys.executable, "-c", "import socket; socket.socket(); print('open')", network=True
    )
    assert granted.head == "open\n"


async def test_the_restrictions_are_the_commands_alone(box):
    await box.bash("true")
    (box.outside / "free").write_text("x")
    with socket.socket(socket.AF_UNIX), socket.socket():
        pass
    outcome = []
    thread = threading.Thread(
        target=lambda: outcome.append((box.outside / "thread").write_text("x"))
    )
    thread.start()
    thread.join()
    assert outcome == [1]


async def test_a_command_cant_signal_what_is_not_its_own(box):
    if box.abi < 6:
        pytest.skip(f"Landlock version 6 is needed, here is {box.abi}")
    victim = subprocess.Popen(["sleep", "7820001"])
    try:
        await box.bash(f"kill -9 {victim.pid}; kill -9 -1 2>/dev/null; true")
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


async def test_a_change_of_git_is_told(box):
    subprocess.run(["git", "init", "-q", box.root], check=True)
    quiet = await box.bash("git status >/dev/null; echo x > a")
    assert quiet.notes == ()
    loud = await box.bash("git config core.fsmonitor ./evil; echo x > .git/hooks/pre-commit")
    (note,) = loud.notes
    assert ".git/config" in note
    assert ".git/hooks/pre-commit" in note


async def test_what_is_left_running_is_counted_and_ended(box):
    ended = await box.bash("setsid sleep 7820002 & sleep 7820002 & echo on")
    assert (ended.head, ended.left) == ("on\n", 2)
    assert running(7820002) == []


async def test_its_temporary_folder_is_gone_afterwards(box):
    ended = await box.bash('echo "$TMPDIR"; echo x > "$TMPDIR/x"')
    assert not Path(ended.head.strip()).exists()


async def test_root_loses_its_powers(box):
    ended = await box.bash("grep CapEff /proc/self/status")
    assert ended.head.split()[1].strip("0") == ""


def test_everything_but_the_hidden_is_covered(tmp_path):
    for name in ("a/secret/x", "a/other", "a/deep/secret2", "b"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    base = Path(os.path.realpath(tmp_path))
    found = landlock.readable((base / "a" / "secret", base / "a" / "deep" / "secret2"))

    def covered(path):
        return any(path == each or path.startswith(each + "/") for each in found)

    assert covered(str(base / "a" / "other"))
    assert covered(str(base / "b"))
    assert covered("/etc/passwd")
    for hidden in ("a/secret", "a/secret/x", "a/deep/secret2", "a"):
        assert not covered(str(base / hidden))


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_well_formed_for_each_machine(machine):
    for families in (seccomp.INTERNET, seccomp.NO_SOCKETS):
        program = seccomp.build(families, machine)
        count = len(program) // 8
        assert len(program) % 8 == 0
        for at in range(count):
            code, true, false = program[at * 8], program[at * 8 + 2], program[at * 8 + 3]
            if code in (0x15, 0x35):
                assert at + 1 + max(true, false) < count
        assert program[-8] == 0x06
    assert seccomp.build(seccomp.INTERNET, "vax") is None


def run_filter(program, number, arch, arguments=(0,) * 6):
    """The filter's verdict on a system call, by a tiny interpreter of the instructions that it uses."""
    import struct

    data = struct.pack("=IIQ6Q", number, arch, 0, *arguments)
    steps = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    at = value = 0
    while True:
        code, true, false, k = steps[at]
        at += 1
        if code == 0x20:
            (value,) = struct.unpack_from("=I", data, k)
        elif code == 0x06:
            return k
        else:
            at += true if (value == k if code == 0x15 else value >= k) else false


X86, ARM = 0xC000003E, 0xC00000B7
ALLOW, EPERM, ENOSYS, KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000


@pytest.mark.parametrize(
    ("machine", "number", "arch", "arguments", "verdict"),
    [
        ("x86_64", 0, X86, (), ALLOW),
        ("x86_64", 0, 0x40000003, (), KILL),
        ("x86_64", 0x40000000, X86, (), KILL),
        ("x86_64", 101, X86, (), EPERM),
        ("x86_64", 425, X86, (), ENOSYS),
        ("x86_64", 41, X86, (2,), ALLOW),
        ("x86_64", 41, X86, (40,), EPERM),
        ("x86_64", 16, X86, (0, 0x5412), EPERM),
        ("x86_64", 16, X86, (0, 0xFFFFFFFF00005412), EPERM),
        ("x86_64", 16, X86, (0, 0x541C), EPERM),
        ("x86_64", 16, X86, (0, 0x5413), ALLOW),
        ("aarch64", 117, ARM, (), EPERM),
        ("aarch64", 198, ARM, (1,), ALLOW),
        ("aarch64", 198, ARM, (17,), EPERM),
        ("aarch64", 29, ARM, (0, 0x5412), EPERM),
        ("aarch64", 0, X86, (), KILL),
    ],
)
def test_each_system_call_gets_its_verdict(machine, number, arch, arguments, verdict):
    program = seccomp.build(seccomp.INTERNET, machine)
    assert run_filter(program, number, arch, (*arguments, *(0,) * 6)[:6]) == verdict
