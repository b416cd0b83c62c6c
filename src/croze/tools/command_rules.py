"""Commands in approval rules: prefixes of parsed commands for what is allowed, and a lenient search of
the text for what is forbidden.

Convenience, never the boundary: that is the sandbox.
"""

import posixpath
import re
from collections.abc import Sequence
from functools import lru_cache

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+\Z")
_WORD = re.compile(r"[A-Za-z0-9_@%+=:,./~\-]+")
_QUOTES = str.maketrans("", "", "'\"\\")
_VERSIONED = re.compile(r"[\d.]+\Z")

_NEVER_ALWAYS_TEXT = """
sh bash zsh dash ksh csh tcsh fish ash busybox pwsh powershell python pypy ipython node nodejs
deno bun ruby irb perl php lua luajit R Rscript julia osascript awk gawk mawk nawk sed ed ex
vi vim nvim emacs gdb lldb tclsh expect sqlite psql mysql mongosh sudo su doas pkexec runuser
run0 gosu setpriv env nice ionice nohup timeout time stdbuf setsid strace ltrace xargs find
parallel watch entr script unshare nsenter chroot bwrap firejail flatpak systemd-run at batch
crontab eval exec source . command builtin trap alias export declare set hash enable docker
podman nerdctl kubectl helm vagrant ansible npx bunx pnpx uvx pipx curl wget aria2c httpie
http https ssh scp sftp rsync ftp lftp tftp telnet nc ncat netcat socat dig nslookup host
drill ping traceroute whois openssl gpg aws gcloud az gh glab rm rmdir shred dd mkfs mount
umount chmod chown kill killall pkill reboot shutdown pip pipenv conda gem xonsh nu elvish rlwrap
unbuffer sshpass mosh chronic chrt taskset numactl prlimit flock tee dotnet-script ts-node tsx
make-kpkg pdb ipdb jshell scala groovy ghci runghc swipl wine cmd proot fakeroot chpst s6-setuidgid
git-shell mail sendmail nft iptables ip route systemctl service launchctl
"""
NEVER_ALWAYS = frozenset(_NEVER_ALWAYS_TEXT.split())
"""First words for which no lasting rule is offered: they run what their arguments say, reach the
network, or destroy."""

PREFIXES: dict[str, frozenset[str]] = {
    "git": frozenset({"status", "log", "show", "blame", "add", "ls-files", "rev-parse"}),
    "npm": frozenset({"test"}),
    "yarn": frozenset({"test", "lint", "build"}),
    "pnpm": frozenset({"test", "lint", "build"}),
    "cargo": frozenset({"test", "build", "check", "clippy", "fmt", "bench"}),
    "go": frozenset({"test", "build", "vet", "fmt"}),
    "dotnet": frozenset({"test", "build"}),
    "pytest": frozenset(),
    "ruff": frozenset({"check", "format"}),
    "mypy": frozenset(),
    "black": frozenset(),
    "tsc": frozenset(),
    "eslint": frozenset(),
    "ls": frozenset(),
}
"""Commands for which "always" means a prefix: the command alone, or with one of these words."""


def is_allowed_by(pattern: str, argv: Sequence[str], text: str) -> bool:
    """Whether an allow rule's pattern covers one simple command: `words:*` (or `words *`) by its first
    words, `=text` by being this text, anything else by being the same words."""
    prefix = prefix_of(pattern)
    if prefix is not None:
        return list(argv[: len(prefix)]) == prefix
    if is_exactly(pattern, text):
        return True
    return _words_of(pattern) == tuple(argv)


@lru_cache(maxsize=1024)
def _words_of(pattern: str) -> tuple[str, ...] | None:
    """The words of a pattern that is one simple command, None of any other."""
    from croze.tools.shell_syntax import Script, read

    script = read(pattern) if not pattern.startswith("=") else None
    if isinstance(script, Script) and len(script.parts) == 1:
        return script.parts[0].argv
    return None


def is_exactly(pattern: str, command: str) -> bool:
    """Whether the pattern is this very command."""
    if pattern.startswith("="):
        return command.strip() == pattern[1:].strip()
    return prefix_of(pattern) is None and command.strip() == pattern.strip()


def is_touched_by(pattern: str, command: str, parts: Sequence[Sequence[str]] = ()) -> bool:
    """Whether a deny or ask rule's pattern may concern `command`: its words stand in this order anywhere
    in it, quotes and backslashes taken away, options and their values passed over, the program's folder
    ignored. `parts` are the words of its simple commands, where it was understood."""
    prefix = prefix_of(pattern)
    wanted = pattern.removeprefix("=").split() if prefix is None else prefix
    wanted = [word.translate(_QUOTES) for word in wanted]
    if not wanted or is_exactly(pattern, command):
        return True
    if any(_in_order(wanted, list(argv)) for argv in parts):
        return True
    words = [word for word in _WORD.findall(command.translate(_QUOTES)) if word != "IFS"]
    return _in_order(wanted, words)


def prefix_of(pattern: str) -> list[str] | None:
    """The words of a prefix pattern, None where the pattern is an exact command."""
    if pattern.startswith("="):
        return None
    for ending in (":*", " *"):
        if pattern.endswith(ending):
            return pattern[: -len(ending)].split()
    return [] if pattern == "*" else None


def exact_pattern(command: str) -> str:
    """The pattern that stands for this text and nothing else."""
    command = command.strip()
    plain = prefix_of(command) is None and "*" not in command and command[:1] not in ("=", "!", "#")
    return command if plain else f"={command}"


def always_pattern(argv: Sequence[str]) -> str:
    """The pattern that "always" would add for one simple command, empty where none is offered."""
    words = list(argv)
    if not words or "=" in words[0] or not _PLAIN.match(words[0]):
        return ""
    program = posixpath.basename(words[0])
    if {program, _VERSIONED.sub("", program)} & NEVER_ALWAYS:
        return ""
    subcommands = PREFIXES.get(words[0])
    if subcommands is None:
        return " ".join(words) if _is_simple(words) else ""
    if not subcommands:
        return f"{words[0]}:*"
    if len(words) > 1 and words[1] in subcommands:
        return f"{words[0]} {words[1]}:*"
    if words[0] == "npm" and len(words) > 2 and words[1] == "run":
        return f"npm run {words[2]}:*" if _PLAIN.match(words[2]) else ""
    return " ".join(words) if _is_simple(words) else ""


_RUNS_OTHERS_TEXT = """
exec run dlx x config foreach bisect push pull fetch clone install add publish update upgrade
login ci i get download submodule ls-remote
"""
_RUNS_OTHERS = frozenset(_RUNS_OTHERS_TEXT.split())


def _is_simple(words: list[str]) -> bool:
    """Whether the command may stand as an exact rule: nothing in it runs or sends something else."""
    if not all(map(_PLAIN.match, words)):
        return False
    configured = words[0] in PREFIXES and words[1:2] and words[1].startswith("-")
    return not configured and not _RUNS_OTHERS.intersection(words[1:3])


def _in_order(wanted: list[str], words: list[str]) -> bool:
    """Whether `wanted` stands in `words` with nothing between but options and the words behind them,
    which may be their values. One pass: `states` are the counts of words found so far, with whether an
    option has just gone by."""
    states: set[tuple[int, bool]] = set()
    for word in words:
        is_option = word.startswith("-")
        following: set[tuple[int, bool]] = set()
        for found, behind_option in states:
            if word == wanted[found]:
                following.add((found + 1, False))
            if is_option or behind_option:
                following.add((found, is_option))
        if word == wanted[0] or posixpath.basename(word) == wanted[0]:
            following.add((1, False))
        if any(found == len(wanted) for found, _ in following):
            return True
        states = following
    return False
