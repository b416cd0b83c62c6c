"""Which files hold secrets by their very name: they never enter a cache or an index."""

import re

_LOOK_ALIKES = re.compile(
    r"(?:^|[._-])(?:example|sample|template|tmpl|tpl|dist|defaults?|schema|public|pub)(?:[._-]|$)"
)
"""A word in a name that says: made to be shown."""

_NAMES = frozenset(
    [
        ".dockercfg",
        ".envrc",
        ".git-credentials",
        ".htpasswd",
        ".my.cnf",
        ".netrc",
        ".npmrc",
        ".pgpass",
        ".pypirc",
        ".vault-token",
        ".yarnrc.yml",
        "_netrc",
        "application_default_credentials.json",
        "credentials",
        "credentials.csv",
        "credentials.json",
        "credentials.toml",
        "credentials.yaml",
        "credentials.yml",
        "kubeconfig",
        "secrets.json",
        "secrets.toml",
        "secrets.yaml",
        "secrets.yml",
    ]
)
_PATTERNS = re.compile(
    r"""
      \.env(?:[._-].*)?                             # .env, .env.local
    | .*\.env                                       # production.env
    | .*\.(?:pem|key|p12|pfx|keystore|jks|ppk|kdbx|kubeconfig)
    | id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?:[._-].*)?
    | .*service[._-]?account.*\.json
    | client[._-]?secrets?.*\.json
    | kubeconfig[._-].*
    """,
    re.VERBOSE | re.DOTALL,
)
_MAYBE = re.compile(
    r"env|key|pem|p12|pfx|jks|ppk|kdbx|kube|id_|secret|account|credential|rc(?:\.|$)|pass|cfg|cnf|token"
    r"|\.aws/|\.gnupg/|\.ssh/|\.docker/",
    re.IGNORECASE,
)
"""Stands in every path that is sensitive: most paths are told apart by this alone."""

_FOLDERS = frozenset({".aws", ".gnupg", ".ssh"})
_SHOWN = frozenset({"authorized_keys", "config", "known_hosts"})
_PATHS = (".kube/config", ".docker/config.json")


def is_sensitive(path: str) -> bool:
    """Whether a path (`/` between its parts) leads to a file that holds keys or passwords, by its name.
    Public keys and files made to be shown, such as `.env.example`, are none."""
    if not _MAYBE.search(path):
        return False
    *folders, name = path.casefold().split("/")
    if name in _NAMES:
        return True
    if name.endswith(".pub") or _LOOK_ALIKES.search(name):
        return False
    if _PATTERNS.fullmatch(name):
        return True
    whole = f"/{path.casefold()}"
    if any(whole.endswith(f"/{known}") for known in _PATHS):
        return True
    return not _FOLDERS.isdisjoint(folders) and name not in _SHOWN
