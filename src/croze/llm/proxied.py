"""httpx2 as transport: through the proxies of the environment, or with a client that was given."""

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager

import httpx2

from croze.llm.http import Broken

KEEP_ALIVE_SECONDS = 120.0


class ProxiedTransport:
    """Sends with `client`, which the caller may give and which is closed with the transport."""

    def __init__(self, connect: float, client: httpx2.AsyncClient | None) -> None:
        self._timeout = httpx2.Timeout(None, connect=connect)
        limits = httpx2.Limits(keepalive_expiry=KEEP_ALIVE_SECONDS)
        self._client = client or httpx2.AsyncClient(limits=limits)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> "ProxiedAnswer":
        with _failures():
            request = self._client.build_request(
                "POST", url, content=body, headers=dict(headers), timeout=self._timeout
            )
            return ProxiedAnswer(await self._client.send(request, stream=True))

    async def aclose(self) -> None:
        await self._client.aclose()


class ProxiedAnswer:
    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.headers = dict(response.headers)

    async def blocks(self) -> AsyncGenerator[bytes, None]:
        with _failures():
            async for block in self._response.aiter_bytes():
                yield block

    async def aclose(self) -> None:
        await self._response.aclose()


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except httpx2.ConnectTimeout as error:
        raise Broken("connect_timeout", str(error)) from error
    except (httpx2.ConnectError, httpx2.ProxyError) as error:
        kind = "tls" if "certificate" in str(error).lower() else "connect"
        raise Broken("tls" if kind == "tls" else "connect", str(error)) from error
    except (httpx2.UnsupportedProtocol, httpx2.InvalidURL, httpx2.LocalProtocolError) as error:
        raise Broken("url", str(error)) from error
    except httpx2.TransportError as error:
        raise Broken("reset", str(error) or type(error).__name__) from error
