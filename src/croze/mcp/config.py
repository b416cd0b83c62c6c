"""MCP servers as they are configured: the well-known `{"mcpServers": {...}}`, checked and filled in."""

import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from croze.types.errors import ConfigError

CONNECT = 30.0
"""Seconds in which a server has to be there."""

CALL = 60.0
"""Seconds in which a call has to answer, or to show progress."""

MOST_SERVERS = 64
_LONGEST = 3_600
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]|_(?!_)){0,63}(?<!_)\Z")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_URL = re.compile(r"https?://[^\s/?#]+[^\s]*\Z")

Source = Literal["user", "project"]


class ServerSpec(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One server as its file has it: a `command` with arguments, or a `url`. Times are in seconds; `key`
    changes with everything that decides what is started or reached."""

    name: str
    source: Source = "user"
    path: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    timeout: float = CALL
    connect_timeout: float = CONNECT
    disabled: bool = False

    @property
    def transport(self) -> Literal["stdio", "http"]:
        return "http" if self.url else "stdio"

    @property
    def key(self) -> str:
        """A short hash of what this server is; where a project's file names it, of the file's place too."""
        made_of = [self.name, self.source, self.path if self.source == "project" else ""]
        made_of += [self.command, *self.args, self.cwd, self.url]
        made_of += [f"{name}={value}" for name, value in sorted(self.env.items())]
        made_of += [f"{name}: {value}" for name, value in sorted(self.headers.items())]
        return sha256(msgspec.json.encode(made_of)).hexdigest()[:24]

    def where(self) -> str:
        """The address or the command line, as it is written (variables not filled in, so no secrets)."""
        return self.url or " ".join([self.command, *self.args])


class Problem(Struct, frozen=True):
    """What is wrong with a server's entry, or with a file as a whole (`name` is empty)."""

    name: str
    reason: str


def parse(data: bytes, source: Source, path: Path) -> tuple[list[ServerSpec], list[Problem]]:
    """The servers of a file, and what is wrong with the others."""
    try:
        document = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf") or b"{}")
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        return [], [Problem("", f"it is not valid JSON: {error}")]
    servers = document.get("mcpServers", {}) if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        return [], [Problem("", 'it has no object "mcpServers"')]
    found: list[ServerSpec] = []
    problems: list[Problem] = []
    for name, entry in servers.items():
        if len(found) == MOST_SERVERS:
            problems.append(Problem(name, f"only {MOST_SERVERS} servers are read"))
            break
        try:
            found.append(_server(name, entry, source, path))
        except ValueError as error:
            problems.append(Problem(name, str(error)))
    return found, problems


def _server(name: str, entry: object, source: Source, path: Path) -> ServerSpec:
    if not _NAME.match(name):
        raise ValueError("a name has letters, digits, . - and single _, 64 at most")
    if not isinstance(entry, dict):
        raise ValueError("it has to be an object with command or url")
    kind = entry.get("type", entry.get("transport", ""))
    if kind == "sse":
        raise ValueError("the old SSE transport is not spoken; use its streamable HTTP address")
    if kind not in ("", "stdio", "http", "streamable-http", "streamableHttp", "streamable_http"):
        raise ValueError(f"there is no transport {kind!r}; there are stdio and http")
    url = _text(entry, "url") or _text(entry, "httpUrl") or _text(entry, "serverUrl")
    command = _text(entry, "command")
    if bool(url) == bool(command):
        raise ValueError("it needs either command or url")
    if kind == "stdio" and url:
        raise ValueError("stdio needs command")
    if kind not in ("", "stdio") and command:
        raise ValueError(f"{kind} needs url")
    if url and not (_URL.match(url) or url.startswith("${")):
        raise ValueError("url has to begin with http:// or https://")
    args = entry.get("args", [])
    if not isinstance(args, list) or not all(isinstance(each, str) for each in args):
        raise ValueError("args has to be a list of texts")
    return ServerSpec(
        name=name,
        source=source,
        path=str(path),
        command=command,
        args=tuple(args),
        env=_texts(entry, "env"),
        cwd=_text(entry, "cwd"),
        url=url,
        headers=_texts(entry, "headers"),
        timeout=_seconds(entry, "timeout", CALL),
        connect_timeout=_seconds(entry, "connectTimeout", CONNECT),
        disabled=entry.get("disabled") is True or entry.get("enabled") is False,
    )


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key, "")
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f"{key} has to be a text")
    return value.strip()


def _texts(entry: Mapping[str, Any], key: str) -> dict[str, str]:
    value = entry.get(key, {})
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise ValueError(f"{key} has to be an object of texts")
    if any("\0" in each or "\n" in each for each in (*value, *value.values())):
        raise ValueError(f"{key} may hold no NUL and no line break")
    return dict(value)


def _seconds(entry: Mapping[str, Any], key: str, default: float) -> float:
    value = entry.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ValueError(f"{key} has to be a number of seconds above 0")
    if value > _LONGEST:  # others give milliseconds
        value = value / 1000
    return float(min(value, _LONGEST))


def filled_in(spec: ServerSpec, env: Mapping[str, str]) -> ServerSpec:
    """The server with its `${NAME}` and `${NAME:-default}` taken from the user's environment.

    A project's file gets what it names, but secrets only into `env` and `headers`, where they are not shown and
    not logged. Raises ConfigError where a variable is not set.
    """
    missing: list[str] = []

    def fill(text: str, *, secret: bool) -> str:
        def value(match: re.Match[str]) -> str:
            name, default = match[1], match[2]
            if not secret and spec.source == "project" and _SECRET.search(name):
                raise ConfigError(
                    f"The MCP server {spec.name} of this project wants ${{{name}}} outside of env and headers.",
                    hint=f"Put it into env or headers in {spec.path}.",
                    code="mcp_secret",
                    server=spec.name,
                    variable=name,
                )
            if name not in env and default is None:
                missing.append(name)
            return env.get(name) or default or ""

        return _VARIABLE.sub(value, text)

    whole = replace(
        spec,
        command=fill(spec.command, secret=False),
        args=tuple(fill(each, secret=False) for each in spec.args),
        cwd=fill(spec.cwd, secret=False),
        url=fill(spec.url, secret=False),
        env={name: fill(value, secret=True) for name, value in spec.env.items()},
        headers={name: fill(value, secret=True) for name, value in spec.headers.items()},
    )
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        raise ConfigError(
            f"The MCP server {spec.name} needs variables that are not set: {names}.",
            hint=f"Set them, or write ${{NAME:-default}} in {spec.path}.",
            code="mcp_variable",
            server=spec.name,
            names=names,
        )
    return whole
