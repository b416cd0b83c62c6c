"""Commands in approval rules, without a shell parser: a command counts as known only when it consists
of plain words; whatever a shell could read otherwise is not matched by a prefix.

Convenience, never the boundary: that is the sandbox.
"""

import posixpath
import re

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./\- ]+\Z")
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
umount chmod chown kill killall pkill reboot shutdown pip pipenv conda gem
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


def plain_words(command: str) -> list[str] | None:
    """The words of a command that a shell can only read in one way; None for any other."""
    stripped = command.strip(" ")
    return stripped.split() if _PLAIN.match(stripped) else None


def is_allowed_by(pattern: str, command: str) -> bool:
    """Whether an allow rule's pattern covers `command`: `words:*` (or `words *`) by its first words,
    anything else by being the very same text."""
    prefix = prefix_of(pattern)
    if prefix is None:
        return command.strip() == pattern.strip()
    words = plain_words(command)
    return words is not None and words[: len(prefix)] == prefix


def is_touched_by(pattern: str, command: str) -> bool:
    """Whether a deny or ask rule's pattern may concern `command`: its words stand in a row anywhere in
    it, quotes and backslashes taken away, options passed over, the program's folder ignored."""
    prefix = prefix_of(pattern)
    wanted = pattern.split() if prefix is None else prefix
    wanted = [word.translate(_QUOTES) for word in wanted]
    if not wanted:
        return True
    if command.strip() == pattern.strip():
        return True
    words = [word for word in _WORD.findall(command.translate(_QUOTES)) if word != "IFS"]
    bare = [word for word in words if not word.startswith("-")]
    return _in_a_row(wanted, words) or _in_a_row(wanted, bare)


def prefix_of(pattern: str) -> list[str] | None:
    """The words of a prefix pattern, None where the pattern is an exact command."""
    for ending in (":*", " *"):
        if pattern.endswith(ending):
            return pattern[: -len(ending)].split()
    return [] if pattern == "*" else None


def always_pattern(command: str) -> str:
    """The pattern that "always" would add for this command, empty where none is offered."""
    words = plain_words(command)
    if not words or "=" in words[0]:
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
        return f"npm run {words[2]}:*"
    return " ".join(words) if _is_simple(words) else ""


_RUNS_OTHERS_TEXT = """
exec run dlx x config foreach bisect push pull fetch clone install add publish update upgrade
login
"""
_RUNS_OTHERS = frozenset(_RUNS_OTHERS_TEXT.split())


def _is_simple(words: list[str]) -> bool:
    """Whether the command may stand as an exact rule: nothing in it runs or sends something else."""
    configured = words[0] in PREFIXES and words[1:2] and words[1].startswith("-")
    return not configured and not _RUNS_OTHERS.intersection(words[1:3])


def _in_a_row(wanted: list[str], words: list[str]) -> bool:
    first, rest = wanted[0], wanted[1:]
    for at, word in enumerate(words):
        same = word == first or posixpath.basename(word) == first
        if same and words[at + 1 : at + len(wanted)] == rest:
            return True
    return False
