"""The sandbox by bubblewrap: what commands in it can't do, and what they can."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from croze.workspace.bubblewrap import Bubblewrap
from croze.workspace.process import ProcessError, child_environment, run
from croze.workspace.repositories import nested
from croze.workspace.sandbox import Confinement, NoSandbox, explain, unconfinable
from croze.workspace.sockets import MOST_SOCKETS, to_cover
from croze.workspace.wrapper import Policy
from tests.sandboxes import need, running, until

ENV = child_environment(os.environ)


@pytest.fixture(scope="module")
def program():
    return need("bubblewrap").program


class Box:
    """A project folder with a neighbour, and commands in the project's sandbox."""

    def __init__(self, program, base):
        self.program = program
        self.root, self.outside = base / "project", base / "outside"
        self.root.mkdir()
        self.outside.mkdir()

    def policy(self, **options):
        return Policy(**({"root": self.root, "level": "workspace"} | options))

    async def run(self, command, *, timeout=60, output_limit=40_000, **options):
        return await run(
            ["/bin/bash", "-c", command], cwd=options.get("root", self.root), env=ENV, timeout=timeout,
            output_limit=output_limit, sandbox=Bubblewrap(self.program, self.policy(**options)),
        )  # fmt: skip

    async def python(self, code, *arguments, **options):
        prefixes = tuple(Path(os.path.realpath(each)) for each in (sys.prefix, sys.base_prefix))
        return await run(
            [sys.executable, "-I", "-S", "-c", code, *map(str, arguments)], cwd=self.root, env=ENV, timeout=60,
            sandbox=Bubblewrap(self.program, self.policy(**({"visible": prefixes} | options))),
        )  # fmt: skip


@pytest.fixture
def box(program, tmp_path):
    return Box(program, Path(os.path.realpath(tmp_path)))


async def test_a_command_writes_inside_and_tells_its_end_and_output_as_ever(box):
    ended = await box.run("echo in > a.txt; cat a.txt; echo err >&2; exit 3")
    assert (ended.head, ended.exit_code, ended.ended, ended.left) == ("in\nerr\n", 3, "itself", 0)
    assert (box.root / "a.txt").read_text() == "in\n"
    assert os.listdir(box.root) == ["a.txt"]


async def test_nothing_outside_can_be_made_changed_moved_or_removed(box):
    """Incidents 39 and 23: whatever a command tries outside of its workspace."""
    (box.outside / "kept").write_text("kept")
    for command in ("rm -rf {0}", "echo x > {0}/new", "echo x > {0}/kept", "mv {0}/kept .", "chmod 0 {0}",
                    "ln -s {0} l; echo x > l/new", "cd {0} && touch here", "ln {0}/kept hard; echo x > hard"):  # fmt: skip
        await box.run(command.format(box.outside))
    assert (box.outside / "kept").read_text() == "kept"
    assert os.listdir(box.outside) == ["kept"]
    assert box.outside.stat().st_mode & 0o777 == 0o755


async def test_read_only_writes_nowhere_but_in_its_own_temporary_folder(box):
    temporary = (Path(os.path.realpath(tempfile.gettempdir())),)
    ended = await box.run(
        "touch a || echo no; echo x > $TMPDIR/y && cat $TMPDIR/y",
        level="read-only", temporary=temporary,
    )  # fmt: skip
    assert ended.head.split("\n")[-3:] == ["no", "x", ""]
    assert os.listdir(box.root) == []


async def test_missing_protected_folders_cant_be_made_and_leave_nothing_behind(box):
    """Incident 22, CVE-2026-25725; and 21: the agent's own configuration."""
    ended = await box.run(
        "mkdir -p .git/hooks; echo x > .git/config; mkdir .croze; echo x > .croze/config.toml; rmdir .git .croze; "
        "mv .git away; ls -A"
    )
    assert ended.head.endswith(".croze\n.git\n")
    assert os.listdir(box.root) == []


async def test_present_protected_folders_can_be_read_not_written_nor_moved_away(box):
    for name in (".git", ".croze"):
        (box.root / name).mkdir()
        (box.root / name / "config").write_text("good")
    (box.root / "nested").mkdir()
    (box.root / "nested" / ".git").write_text("gitdir: elsewhere")
    ended = await box.run(
        "for d in .git .croze; do cat $d/config; echo bad > $d/config; echo x > $d/new; mv $d away; rm -rf $d; done; "
        "echo bad > nested/.git; rm nested/.git"
    )
    assert ended.head.count("good") == 2
    for name in (".git", ".croze"):
        assert os.listdir(box.root / name) == ["config"]
        assert (box.root / name / "config").read_text() == "good"
    assert (box.root / "nested" / ".git").read_text() == "gitdir: elsewhere"


async def test_git_shows_and_what_it_cant_do_is_explained(box):
    subprocess.run(["git", "init", "-q", box.root], check=True)
    (box.root / "a.txt").write_text("a")
    shown = await box.run("git status --short")
    assert shown.head == "?? a.txt\n"
    refused = await box.run("git add a.txt")
    assert refused.exit_code != 0
    (told,) = explain(box.policy(), refused.head)
    assert ".git read-only" in told


async def test_two_commands_at_once_keep_the_protection_until_both_have_ended(box):
    long = asyncio.create_task(
        box.run("touch on; until [ -e go ]; do sleep 0.05; done; mkdir -p .git/hooks; touch .git/x")
    )
    await until((box.root / "on").exists)
    await box.run("true")
    assert (box.root / ".git").is_dir()
    (box.root / "go").touch()
    ended = await long
    assert "Read-only" in ended.head
    assert sorted(os.listdir(box.root)) == ["go", "on"]


async def test_an_empty_folder_that_a_crash_left_is_protected_and_removed(box):
    (box.root / ".git").mkdir()
    await box.run("touch .git/x")
    assert os.listdir(box.root) == []


async def test_hidden_files_and_folders_are_empty_or_closed(box):
    secrets = box.outside / ".ssh"
    secrets.mkdir()
    (secrets / "id").write_text("the key")
    (box.outside / ".netrc").write_text("the password")
    ended = await box.run(
        f"ls -A {secrets}; cat {secrets}/id {box.outside}/.netrc",
        hidden=(secrets, box.outside / ".netrc"),
    )
    assert "the key" not in ended.head
    assert "the password" not in ended.head
    assert (secrets / "id").read_text() == "the key"


CONNECT = """
import socket, sys
kind, address = sys.argv[1:]
family = socket.AF_UNIX if kind == "unix" else socket.AF_INET
out = socket.socket(family, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
out.settimeout(5)
out.connect(address if kind == "unix" else ("127.0.0.1", int(address)))
out.send(b"secret")
print("sent")
"""


@pytest.mark.parametrize("kind", ["tcp", "udp"])
async def test_servers_of_this_machine_cant_be_reached(box, kind):
    """Incident 26: not even a packet to the loopback comes out."""
    with socket.socket(type=socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        if kind == "tcp":
            server.listen()
        server.setblocking(False)
        await box.python(CONNECT, kind, server.getsockname()[1])
        with pytest.raises(BlockingIOError):
            server.accept() if kind == "tcp" else server.recv(9)
        granted = await box.python(CONNECT, kind, server.getsockname()[1], network=True)
        assert granted.head == "sent\n"


async def test_unix_sockets_of_servers_outside_cant_be_reached(box):
    """Incident 40: docker.sock; a read-only mount is no bar to connecting."""
    name = Path(tempfile.mkdtemp(prefix="s")) / "docker.sock"
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(name))
            server.listen()
            server.setblocking(False)
            for temporary in ((), (name.parent,)):
                ended = await box.python(CONNECT, "unix", name, temporary=temporary)
                assert "sent" not in ended.head
            with pytest.raises(BlockingIOError):
                server.accept()
            subprocess.run([sys.executable, "-c", CONNECT, "unix", str(name)], check=True)
            server.setblocking(True)
            server.accept()[0].close()
    finally:
        shutil.rmtree(name.parent)


@contextmanager
def servers(folder, *names):
    """Servers that listen on sockets of these names."""
    with ExitStack() as stack:
        for name in names:
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(os.path.join(os.fsencode(folder), name))
            server.listen()
        yield


@pytest.fixture
def short():
    """A folder with a name that is short enough for sockets."""
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="s")))
    yield folder
    shutil.rmtree(folder)


ODD = [b"new\nline", b"end ", b" a  b", b"\xff\xfe", b"quote'\"$(x)", b"00ab: 0000"]


async def test_servers_with_odd_names_cant_be_reached_either(box, short):
    code = CONNECT.replace("sys.argv[1:]", "'unix', bytes.fromhex(sys.argv[1])")
    with servers(short, *ODD):
        for name in ODD:
            hexed = (os.fsencode(short) + b"/" + name).hex()
            ended = await box.python(code, hexed)
            assert "refused" in ended.head + ended.tail, (name, ended.head)


async def test_a_socket_that_goes_while_the_sandbox_is_set_up_fails_no_command(
    box, short, monkeypatch
):
    asked, shown = [], []

    def listed(replaced):
        asked.append(1)
        return [str(short / "gone")] if len(asked) == 1 else to_cover(replaced)

    monkeypatch.setattr("croze.workspace.bubblewrap.to_cover", listed)
    ended = await run(
        ["/bin/echo", "in"], cwd=box.root, env=ENV, timeout=60,
        on_output=lambda piece: not shown.append(piece), sandbox=Bubblewrap(box.program, box.policy()),
    )  # fmt: skip
    assert (ended.head, b"".join(shown), len(asked)) == ("in\n", b"in\n", 2)


async def test_many_sockets_are_covered_and_too_many_close_all(box, short, monkeypatch):
    many = [short / str(number) for number in range(MOST_SOCKETS)]
    for path in many:
        path.write_text("a server's")
    with monkeypatch.context() as patch:
        patch.setattr("croze.workspace.bubblewrap.to_cover", lambda _: [str(each) for each in many])
        ended = await box.run(f"cat {short}/*; echo in")
        assert ended.head.endswith("in\n")
        assert "a server's" not in ended.head
    monkeypatch.setattr("croze.workspace.sockets.MOST_SOCKETS", 2)
    with servers(short, b"a", b"b", b"c"):
        ended = await box.python(CONNECT, "unix", short / "a")
        assert "Operation not permitted" in ended.head
        ended = await box.run("python3 -c 'import socket; socket.socketpair()' && echo in")
        assert ended.head == "in\n"


def test_only_sockets_that_a_command_could_reach_are_covered(short):
    for name in ("open", "closed", "replaced"):
        (short / name).mkdir()
    names = [b"open/s", b"closed/s", b"replaced/s", b"gone"]
    (short / "link").symlink_to("open")
    with servers(short, *names, b"link/by-link"):
        (short / "closed").chmod(0o600)
        (short / "gone").unlink()
        found = to_cover(lambda path: path.startswith(f"{short}/replaced"))
        (short / "closed").chmod(0o700)
        here = [each for each in found if each.startswith(str(short))]
        assert here == [f"{short}/open/by-link", f"{short}/open/s"]


@pytest.mark.parametrize("name", ["relative", "../up", "/proc/self/fd/7/s"])
def test_a_socket_whose_place_is_not_told_closes_all(tmp_path, monkeypatch, name):
    table = tmp_path / "unix"
    row = "ffff888000000000: 00000002 00000000 00010000 0001 01 12345 {}\n"
    head = "Num       RefCount Protocol Flags    Type St Inode Path\n"
    monkeypatch.setattr("croze.workspace.sockets._LIST", str(table))
    table.write_text(head + row.format("@abstract") + row.format("/nowhere/at/all"))
    assert to_cover(lambda _: False) == []
    table.write_text(head + row.format("@abstract") + row.format(name))
    assert to_cover(lambda _: False) is None


SYSTEM_CALLS = """
import ctypes, errno, fcntl, os, pty, sys
call = ctypes.CDLL(None, use_errno=True)
def error(result): return errno.errorcode.get(ctypes.get_errno(), "?") if result < 0 else "ok"
print("ptrace", error(call.ptrace(0, 0, 0, 0)))
print("io_uring", error(call.syscall(425, 1, ctypes.create_string_buffer(120))))
master, slave = pty.openpty()
try:
    fcntl.ioctl(slave, 0x5412, b"x")
    print("TIOCSTI ok")
except OSError as failed:
    print("TIOCSTI", errno.errorcode[failed.errno])
try:
    import socket
    socket.socket(40, 1)
    print("vsock ok")
except OSError as failed:
    print("vsock", errno.errorcode[failed.errno])
"""


async def test_system_calls_that_could_lead_out_fail(box):
    ended = await box.python(SYSTEM_CALLS)
    assert ended.head == "ptrace EPERM\nio_uring ENOSYS\nTIOCSTI EPERM\nvsock EPERM\n"


async def test_a_command_sees_its_own_processes_only_and_has_no_capabilities(box):
    ended = await box.run("ls -d /proc/[0-9]* | wc -l; grep CapEff /proc/self/status; ulimit -u")
    count, capabilities, limit = ended.head.splitlines()
    assert int(count) < 8
    assert capabilities.split()[1].strip("0") == ""
    assert limit == "4096"


async def test_what_a_command_leaves_running_is_counted_and_ends_with_it(box):
    ended = await box.run(
        "sleep 7810001 & setsid nohup sleep 7810001 >/dev/null 2>&1 & (env -i setsid sleep 7810001 &) ; "
        "until [ $(cat /proc/[0-9]*/comm | grep -c sleep) = 3 ]; do sleep 0.05; done; echo on"
    )
    assert (ended.head, ended.left, ended.ended) == ("on\n", 3, "itself")
    assert running(7810001) == []


async def test_at_its_time_limit_a_command_is_asked_to_end_then_made_to(box):
    polite = await box.run(
        "trap 'echo bye; exit 3' TERM; echo on; while :; do sleep 0.1; done", timeout=2
    )
    assert polite.head.startswith("on\n")
    assert (polite.head.endswith("bye\n"), polite.ended) == (True, "timeout")
    deaf = await box.run(
        "trap '' TERM; echo on; setsid sleep 7810002 & sleep 7810002; sleep 7810002", timeout=1
    )
    assert (deaf.ended, deaf.signal) == ("timeout", "SIGKILL")
    assert running(7810002) == []


async def test_a_signal_that_ended_it_is_named_and_an_exit_code_is_one(box):
    """As outside of the sandbox."""
    for name in ("KILL", "TERM", "SEGV", "USR1"):
        ended = await box.run(f"kill -{name} $$")
        assert (ended.exit_code, ended.signal) == (None, f"SIG{name}"), name
    for code in (137, 143, 255, 0):
        ended = await box.run(f"sleep 0 & echo error >&2; exit {code}")
        assert (ended.exit_code, ended.signal, ended.head) == (code, None, "error\n")


async def test_cancelling_ends_all_of_it(box):
    task = asyncio.create_task(box.run("setsid sleep 7810003 & sleep 7810003"))
    await until(lambda: len(running(7810003)) == 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert running(7810003) == []
    assert os.listdir(box.root) == []


async def test_long_binary_and_odd_output_is_the_same_as_without(box):
    ended = await box.run("head -c 20M /dev/zero; printf '\\xff\\xfe'", output_limit=9_000)
    assert ended.total == (20 << 20) + 2
    assert ended.tail.endswith("\ufffd\ufffd")


async def test_no_descriptor_is_left_behind(box):
    await box.run("true")
    before = os.listdir("/proc/self/fd")
    for _ in range(10):
        await box.run("sleep 0 & echo x")
    assert len(os.listdir("/proc/self/fd")) == len(before)


@pytest.mark.parametrize(
    "name", [b"with space", b"new\nline", b"\xff\xfe latin", "ü 'quote\" $(touch pwned)".encode()]
)
async def test_a_project_may_have_any_name(box, name):
    """Incident 7: a name is never a command."""
    root = Path(os.fsdecode(os.fsencode(box.outside) + b"/" + name))
    root.mkdir()
    ended = await box.run("pwd -P > where; touch ../x; mkdir .git", root=root)
    assert ended.exit_code != 0
    assert (root / "where").read_bytes() == os.fsencode(root) + b"\n"
    assert os.listdir(root) == ["where"]
    assert os.listdir(box.outside) == [root.name]


async def test_a_linked_project_and_its_linked_work_tree_work(box, tmp_path):
    main = box.outside / "main"
    git = ["git", "-c", "user.name=U", "-c", "user.email=u@x"]
    subprocess.run(["git", "init", "-q", main], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], cwd=main, check=True)
    tree = box.root / "tree"
    subprocess.run(["git", "worktree", "add", "-q", tree], cwd=main, check=True)
    (tmp_path / "alias").symlink_to(tree)
    confinement = Confinement(
        root=tmp_path / "alias", env=dict(os.environ), cache=tmp_path / "cache"
    )
    sandbox = await confinement.wrapper()
    ended = await run(
        ["/bin/bash", "-c", "git log --format=%s; git status --short; touch a.txt; git add a.txt"],
        cwd=tmp_path / "alias", env=ENV, timeout=60, sandbox=sandbox,
    )  # fmt: skip
    assert ended.head.startswith("first\n")
    assert ended.exit_code != 0
    assert (tree / "a.txt").exists()


@contextmanager
def nobody():
    """This process with the rights of uid 65534."""
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


async def test_another_user_without_rights_has_the_same_sandbox(program):
    """As uid 65534, where this is run as root."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    base = Path(tempfile.mkdtemp(prefix="croze-test-"))
    try:
        base.chmod(0o755)
        root = base / "project"
        root.mkdir()
        os.chown(root, 65534, 65534)
        (base / "root").mkdir(mode=0o700)
        sandbox = Bubblewrap(program, Policy(root=root, level="workspace"))
        command = ["/bin/sh", "-c", "id -u; echo x > a; touch ../b; cat .git/x"]
        with ExitStack() as stack:
            stack.enter_context(servers(base / "root", b"s"))
            with nobody():
                entry = stack.enter_context(sandbox.enter(command, cwd=root, env=ENV))
            done = subprocess.run(
                entry.argv, cwd=root, env=entry.env, stdin=entry.stdin, pass_fds=entry.descriptors,
                user=65534, group=65534, extra_groups=[], capture_output=True, text=True, timeout=60,
            )  # fmt: skip
            entry.report.started()
            assert entry.report.began(), done.stderr
        assert done.stdout == "65534\n"
        assert sorted(os.listdir(base)) == ["project", "root"]
        assert os.listdir(root) == ["a"]
    finally:
        shutil.rmtree(base)


async def test_a_sandbox_that_cant_be_set_up_is_an_error_never_a_free_run(box):
    (box.root / "bwrap").write_text("#!/bin/sh\necho 'no namespaces' >&2\nexit 1\n")
    (box.root / "bwrap").chmod(0o755)
    box.program = str(box.root / "bwrap")
    with pytest.raises(ProcessError, match="no namespaces"):
        await box.run("touch ran")
    assert not (box.root / "ran").exists()


@pytest.mark.parametrize("root", ["/", "/etc", "/usr", "/proc/self", "/home"])
def test_folders_that_cant_be_confined_are_refused_clearly(root):
    assert unconfinable(Path(root), {"HOME": "/home/me"})


def test_ordinary_projects_can_be_confined(tmp_path):
    for root in (tmp_path, Path("/home/me"), Path("/home/me/work"), Path("/run/user/1000/x")):
        assert not unconfinable(root, {"HOME": "/home/me"})


async def test_a_home_as_project_keeps_its_start_files_and_crozes_folders(program, tmp_path):
    home = Path(os.path.realpath(tmp_path))
    (home / ".bashrc").write_text("good")
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id").write_text("the key")
    own = (home / ".config" / "croze", home / ".local" / "share" / "croze")
    own[1].mkdir(parents=True)
    (own[1] / "log.db").write_text("the log")
    env = dict(os.environ) | {"HOME": str(home)}
    confinement = Confinement(root=home, env=env, cache=home.parent / "cache", own=own)
    ended = await run(
        ["/bin/bash", "-c", "echo bad >> ~/.bashrc; cat ~/.ssh/id ~/.local/share/croze/log.db; "
         "mkdir -p ~/.config/croze; echo x > ~/.config/croze/config.toml; echo y > notes; find ~ -name log.db"],
        cwd=home, env=child_environment(env), timeout=60, sandbox=await confinement.wrapper(),
    )  # fmt: skip
    assert "the key" not in ended.head
    assert "the log" not in ended.head
    assert (home / ".bashrc").read_text() == "good"
    assert not (home / ".config").exists()
    assert (home / "notes").read_text() == "y\n"


async def test_repositories_far_below_the_root_are_protected_as_they_come(program, tmp_path):
    root = tmp_path / "project"
    deep = root / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (root / "node_modules" / "x").mkdir(parents=True)
    (root / "link").symlink_to(tmp_path)
    subprocess.run(["git", "init", "-q", deep], check=True)
    (root / "a" / "b" / ".git").write_text("gitdir: elsewhere")
    assert sorted(nested(str(root))) == [f"{root}/a/b/.git", f"{root}/a/b/c/.git"]
    confinement = Confinement(root=root, env=dict(os.environ), cache=tmp_path / "cache")
    command = "echo evil > a/b/c/.git/config; echo evil > a/b/.git; echo good > a/b/c/file; git -C a/b/c status -s"

    async def attack():
        return await run(
            ["/bin/bash", "-c", command], cwd=root, env=ENV, timeout=60,
            sandbox=await confinement.wrapper(),
        )  # fmt: skip

    for _ in range(2):
        ended = await attack()
        assert ended.head.count("Read-only file system") == 2
        assert ended.head.endswith("?? file\n")
        assert (root / "a" / "b" / ".git").read_text() == "gitdir: elsewhere"
    shutil.rmtree(root / "a" / "b" / "c")
    deep.mkdir()
    ended = await attack()
    assert ended.head.count("Read-only file system") == 1
    assert sorted(os.listdir(deep)) == ["file"]


async def test_planning_only_reads_and_off_is_off(program, tmp_path, monkeypatch):
    mode = "plan"
    confinement = Confinement(
        root=tmp_path, env=dict(os.environ), cache=tmp_path / "cache", mode=lambda: mode
    )
    assert (await confinement.wrapper()).policy.level == "read-only"
    assert confinement.level() == "read-only"
    mode = "ask"
    assert (await confinement.wrapper()).policy.level == "workspace"
    confinement.wanted = "off"
    assert await confinement.wrapper() is None
    assert confinement.level() == "off"


@pytest.fixture
def nothing(monkeypatch):
    """A machine without any sandbox."""
    monkeypatch.setattr("croze.workspace.probe.find_bwrap", lambda _env: None)
    monkeypatch.setattr("croze.workspace.sandbox.find_bwrap", lambda _env: None)
    monkeypatch.setattr("croze.workspace.proof.find_bwrap", lambda _env: None)
    monkeypatch.setattr("croze.workspace.landlock.abi", lambda: 0)


async def test_without_any_sandbox_it_is_said_once_at_the_start_with_the_fix(nothing, tmp_path):
    confinement = Confinement(root=tmp_path, env=dict(os.environ), cache=tmp_path / "cache")
    news = confinement.at_start()
    assert news.text.startswith(
        "No OS sandbox: bubblewrap is not installed; Landlock: not in this kernel"
    )
    assert "Commands will always ask; `full` is off. Fix: " in news.text
    assert confinement.level() is None
    assert await confinement.wrapper() is None
    assert confinement.news() is None
    assert confinement.level() is None


async def test_who_asked_for_a_sandbox_or_is_never_asked_gets_no_unconfined_command(
    nothing, tmp_path
):
    for wanted, mode in (("workspace", "ask"), ("read-only", "ask"), (None, "full")):
        confinement = Confinement(
            root=tmp_path, env=dict(os.environ), cache=tmp_path / "cache", wanted=wanted,
            mode=lambda mode=mode: mode,
        )  # fmt: skip
        with pytest.raises(NoSandbox):
            await confinement.wrapper()


async def test_who_looks_first_believes_in_no_sandbox_that_fails(tmp_path, monkeypatch):
    monkeypatch.setattr("croze.workspace.probe.find_bwrap", lambda _env: "/bin/false")
    monkeypatch.setattr("croze.workspace.landlock.abi", lambda: 0)
    confinement = Confinement(root=tmp_path, env=dict(os.environ), cache=tmp_path / "cache")
    assert confinement.level() == "workspace"
    await confinement.look()
    assert confinement.level() is None
    assert await confinement.wrapper() is None
    assert confinement.news().code == "no_sandbox"


async def test_a_belief_in_a_sandbox_that_proves_wrong_costs_that_command(tmp_path, monkeypatch):
    monkeypatch.setattr("croze.workspace.probe.find_bwrap", lambda _env: "/bin/false")
    monkeypatch.setattr("croze.workspace.landlock.abi", lambda: 0)
    confinement = Confinement(root=tmp_path, env=dict(os.environ), cache=tmp_path / "cache")
    assert confinement.level() == "workspace"
    with pytest.raises(NoSandbox):
        await confinement.wrapper()
    assert confinement.level() is None
    assert await confinement.wrapper() is None
    assert confinement.news().code == "no_sandbox"
