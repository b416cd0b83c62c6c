"""What of the environment a program that croze starts may see."""

from collections.abc import Mapping

_ALLOWED = frozenset(
    [
        "PATH",
        "HOME",
        "LANG",
        "LANGUAGE",
        "TERM",
        "COLORTERM",
        "NO_COLOR",
        "USER",
        "LOGNAME",
        "SHELL",
        "TMPDIR",
        "TZ",
        "CI",
        "EDITOR",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "CONDA_DEFAULT_ENV",
        "PYTHONPATH",
        "PYENV_ROOT",
        "UV_CACHE_DIR",
        "NVM_DIR",
        "NODE_PATH",
        "JAVA_HOME",
        "GOPATH",
        "GOROOT",
        "GOFLAGS",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "RUSTFLAGS",
        "CC",
        "CXX",
        "CFLAGS",
        "CXXFLAGS",
        "LDFLAGS",
        "PKG_CONFIG_PATH",
        "LD_LIBRARY_PATH",
        "MAKEFLAGS",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "NODE_EXTRA_CA_CERTS",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
    ]
)
_ALLOWED_UNLESS_SECRET = frozenset(
    [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
        "PIP_INDEX_URL",
        "UV_INDEX_URL",
        "UV_DEFAULT_INDEX",
        "NPM_CONFIG_REGISTRY",
        "GOPROXY",
    ]
)
_FIXED = {
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "DEBIAN_FRONTEND": "noninteractive",
}


def child_environment(base: Mapping[str, str]) -> dict[str, str]:
    """What of `base` a program may see: no keys, no tokens; and no pagers or prompts."""
    kept = {
        name: value
        for name, value in base.items()
        if name in _ALLOWED
        or name.startswith("LC_")
        or (name in _ALLOWED_UNLESS_SECRET and "@" not in value)
    }
    return {**kept, **_FIXED}
