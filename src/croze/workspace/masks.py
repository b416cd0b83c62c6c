"""What commands have no business to read: keys and tokens in the user's home."""

import os
from collections.abc import Mapping
from pathlib import Path

_AT_HOME = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".oci",
    ".terraform.d",
    ".password-store",
    ".mozilla",
    ".thunderbird",
    ".config/gh",
    ".config/gcloud",
    ".config/op",
    ".config/hub",
    ".config/rclone",
    ".config/sops",
    ".config/doctl",
    ".config/github-copilot",
    ".config/google-chrome",
    ".config/chromium",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".s3cfg",
    ".boto",
    ".vault-token",
    ".terraformrc",
    ".git-credentials",
    ".config/git/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".claude.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
    ".mysql_history",
    ".node_repl_history",
)

_START_FILES = (
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".inputrc",
    ".gitconfig",
    ".config/git",
    ".config/fish",
    ".config/systemd",
    ".config/autostart",
    ".local/bin",
    "bin",
)
"""What runs by itself when the user logs in, or comes first on PATH."""

_TEMPORARY = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - the folders that are replaced


def hidden(env: Mapping[str, str], own: tuple[Path, ...]) -> tuple[Path, ...]:
    """The places with secrets that are there, and `own`: where croze keeps its state and its keys."""
    home = env.get("HOME") or os.path.expanduser("~")
    candidates = [os.path.join(home, each) for each in _AT_HOME] if os.path.isabs(home) else []
    candidates += [str(each) for each in own]
    named = ("AWS_SHARED_CREDENTIALS_FILE", "KUBECONFIG", "NETRC", "GNUPGHOME", "DOCKER_CONFIG")
    candidates += [value for name in named if os.path.isabs(value := env.get(name, ""))]
    return tuple(
        dict.fromkeys(Path(os.path.realpath(each)) for each in candidates if os.path.exists(each))
    )


def guarded(env: Mapping[str, str], root: Path, own: tuple[Path, ...]) -> tuple[Path, ...]:
    """What a project that is the user's home must not get at: what runs by itself, and croze's own
    folders where they are not there yet (then the first part of the path that is missing)."""
    found = []
    if os.path.realpath(env.get("HOME") or os.path.expanduser("~")) == str(root):
        found += [root / each for each in _START_FILES if (root / each).exists()]
    for folder in map(Path, map(os.path.realpath, own)):
        if root in folder.parents and not folder.exists():
            while not folder.parent.exists():
                folder = folder.parent
            found.append(folder)
    return tuple(dict.fromkeys(found))


def temporary(env: Mapping[str, str]) -> tuple[Path, ...]:
    """The folders that programs use for what passes: the sandbox has its own, empty ones."""
    runtime = env.get("XDG_RUNTIME_DIR", "")
    found = [*_TEMPORARY, *([runtime] if os.path.isabs(runtime) else [])]
    return tuple(
        dict.fromkeys(
            Path(each)
            for each in map(os.path.realpath, found)
            if os.path.isdir(each) and each != "/"
        )
    )


def visible(env: Mapping[str, str], root: Path) -> tuple[Path, ...]:
    """What commands need although it may lie in a temporary folder: programs, the name server's
    address, and the git folder of a linked work tree."""
    folders = [each for each in env.get("PATH", "").split(os.pathsep) if os.path.isabs(each)]
    folders += [
        os.path.dirname(each)
        for each in folders
        if os.path.exists(os.path.join(os.path.dirname(each), "pyvenv.cfg"))
    ]
    folders += [value for value in (env.get("VIRTUAL_ENV", ""),) if os.path.isabs(value)]
    folders += ["/etc/resolv.conf", *_git_folders(root), *_borrowed(root)]
    return tuple(
        dict.fromkeys(Path(each) for each in map(os.path.realpath, folders) if os.path.exists(each))
    )


def _git_folders(root: Path) -> list[str]:
    """The git folder that a work tree's `.git` file leads to, where it is one; and the common one."""
    try:
        line = (root / ".git").read_bytes()[:4096].partition(b"\n")[0]
    except OSError:
        return []
    if not line.startswith(b"gitdir:"):
        return []
    own = os.path.realpath(root / os.fsdecode(line.removeprefix(b"gitdir:").strip()))
    try:
        common = os.path.join(own, os.fsdecode(Path(own, "commondir").read_bytes()[:4096].strip()))
    except OSError:
        common = own
    common = os.path.realpath(common)
    is_git = all(os.path.exists(os.path.join(common, name)) for name in ("HEAD", "objects", "refs"))
    return list({own, common}) if is_git and os.path.isfile(os.path.join(own, "HEAD")) else []


def _borrowed(root: Path) -> list[str]:
    """The objects of another repository that the one at `root` borrows, where that is a repository."""
    try:
        lines = (root / ".git" / "objects" / "info" / "alternates").read_bytes()[:4096].split(b"\n")
    except OSError:
        return []
    folders = [os.path.realpath(os.fsdecode(line)) for line in lines if line.startswith(b"/")]
    return [
        each
        for each in folders
        if os.path.basename(each) == "objects"
        and all(os.path.exists(os.path.join(os.path.dirname(each), n)) for n in ("HEAD", "refs"))
    ]
