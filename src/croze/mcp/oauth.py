"""Logging in to a server over HTTP: OAuth 2.1 by the SDK, the browser's answer on a loopback port, the tokens in the
user's state folder, for nobody else to read."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import msgspec
from msgspec import Struct

from croze.mcp.failure import McpError
from croze.store.files import private_folder, storage_error

if TYPE_CHECKING:
    import httpx2
    from mcp.client.auth import AuthorizationCodeResult
    from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

    from croze.mcp.config import ServerSpec

PATIENCE = 300.0
"""Seconds that a person has to log in."""

_MOST_REQUEST = 16 << 10
_PAGE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
    b"croze has got the answer. You may close this page.\n"
)
_NOTHING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class _Kept(Struct, omit_defaults=True):
    """`expires` is a time in seconds since 1970; 0 where it isn't known."""

    url: str = ""
    token: dict[str, Any] | None = None
    client: dict[str, Any] | None = None
    expires: float = 0.0


class TokenFile:
    """The tokens for one server, as the SDK wants them kept. Tokens that were given for another address count as
    none."""

    def __init__(self, path: Path, url: str) -> None:
        self._path = path
        self._url = url
        self._kept = self._load()

    @property
    def expires(self) -> float | None:
        return self._kept.expires or None

    @property
    def filled(self) -> bool:
        return self._kept.token is not None

    async def get_tokens(self) -> "OAuthToken | None":
        from mcp.shared.auth import OAuthToken

        kept = self._kept.token
        return None if kept is None else OAuthToken.model_validate(kept)

    async def set_tokens(self, tokens: "OAuthToken") -> None:
        self._kept.token = tokens.model_dump(mode="json", exclude_none=True)
        self._kept.expires = time.time() + tokens.expires_in if tokens.expires_in else 0.0
        self._save()

    async def get_client_info(self) -> "OAuthClientInformationFull | None":
        from mcp.shared.auth import OAuthClientInformationFull

        kept = self._kept.client
        return None if kept is None else OAuthClientInformationFull.model_validate(kept)

    async def set_client_info(self, client_info: "OAuthClientInformationFull") -> None:
        self._kept.client = client_info.model_dump(mode="json", exclude_none=True)
        self._save()

    def forget(self) -> bool:
        """Remove the tokens; False where there were none."""
        self._kept = _Kept(url=self._url)
        try:
            self._path.unlink()
        except FileNotFoundError:
            return False
        return True

    def _load(self) -> _Kept:
        try:
            kept = msgspec.json.decode(self._path.read_bytes(), type=_Kept)
        except (OSError, msgspec.DecodeError):
            return _Kept(url=self._url)
        return kept if kept.url == self._url else _Kept(url=self._url)

    def _save(self) -> None:
        draft = self._path.with_suffix(f".{os.getpid()}")
        try:
            private_folder(self._path.parent)
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(self._kept))
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, self._path)
        except OSError as error:
            raise storage_error(error, self._path.parent) from error


def token_file(state: Path, spec: "ServerSpec") -> TokenFile:
    """Where a server's tokens are kept. `spec` has its variables filled in."""
    return TokenFile(state / "mcp-tokens" / f"{spec.key}.json", spec.url)


def stored_login(state: Path, spec: "ServerSpec") -> "httpx2.Auth | None":
    """What authorises requests by the tokens that are kept, and renews them; None where there are none."""
    tokens = token_file(state, spec)
    if not tokens.filled:
        return None
    provider = _provider(spec.url, tokens, "http://127.0.0.1/callback", None, None)
    provider.context.token_expiry_time = tokens.expires
    found: httpx2.Auth = provider
    return found


async def log_in(state: Path, spec: "ServerSpec", show: Callable[[str], None]) -> "Login":
    """Get ready to log in: `show` is given the address that the user has to open. `spec` has its variables filled
    in."""
    login = Login(show)
    await login.open()
    tokens = token_file(state, spec)
    tokens.forget()  # a registration is bound to its redirect address
    login.auth = _provider(spec.url, tokens, login.address, login.redirect, login.answer)
    return login


class Login:
    """A login under way: a listener on this machine for the browser's way back."""

    auth: "httpx2.Auth"

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._came: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None
        self.address = ""

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_MOST_REQUEST)
        port = self._server.sockets[0].getsockname()[1]
        self.address = f"http://127.0.0.1:{port}/callback"

    async def redirect(self, url: str) -> None:
        self._show(url)

    async def answer(self) -> "AuthorizationCodeResult":
        from mcp.client.auth import AuthorizationCodeResult

        try:
            async with asyncio.timeout(PATIENCE):
                target = await self._came
        except TimeoutError as error:
            raise McpError(
                f"Nobody logged in within {PATIENCE:g} s.", code="mcp_login", seconds=PATIENCE
            ) from error
        given = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
        if "code" not in given:
            reason = given.get("error_description") or given.get("error") or "no code came back"
            raise McpError(f"The login was refused: {reason[:300]}.", code="mcp_login")
        return AuthorizationCodeResult(
            code=given["code"], state=given.get("state"), iss=given.get("iss")
        )

    async def close(self) -> None:
        self._came.cancel()
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10):
                head = await reader.readuntil(b"\r\n\r\n")
                method, _, rest = head.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")
                target = rest.rpartition(" ")[0]
                wanted = method == "GET" and urlsplit(target).path == "/callback"
                writer.write(_PAGE if wanted else _NOTHING)
                await writer.drain()
                if wanted and not self._came.done():
                    self._came.set_result(target)
        except (
            TimeoutError,
            OSError,
            ValueError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
        ):
            pass  # not the browser, or one that went away: the login goes on waiting
        finally:
            writer.close()


def _provider(url: str, tokens: TokenFile, address: str, redirect: Any, answer: Any) -> Any:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata

    metadata = OAuthClientMetadata.model_validate(
        {
            "client_name": "croze",
            "redirect_uris": [address],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }
    )
    return OAuthClientProvider(
        server_url=url,
        client_metadata=metadata,
        storage=tokens,
        redirect_handler=redirect,
        callback_handler=answer,
    )
