"""MCP over streamable HTTP: the SDK's transport, with bounds on what a server may send back.

Imports the SDK, so it is loaded only where a server is reached.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from croze.llm.direct import ssl_context

MOST_ANSWER = 16 << 20
"""Bytes of one answer, or of one event of a stream."""

READ = 300.0
"""Seconds for which a stream may be silent; a call has its own limit."""


class HttpTransport:
    """One server at an address: entered it can be talked to. Proxies are those of the environment."""

    errors = ""
    how = ""

    def __init__(
        self, url: str, *, headers: Mapping[str, str], connect: float, auth: httpx2.Auth | None
    ) -> None:
        self._url, self._headers, self._connect, self._auth = url, headers, connect, auth
        self._stack = AsyncExitStack()
        self.refused = 0
        """The HTTP status of the last answer to a message, where it was an error."""

    async def __aenter__(self) -> Any:
        client = await self._stack.enter_async_context(
            httpx2.AsyncClient(
                headers=dict(self._headers),
                auth=self._auth,
                timeout=httpx2.Timeout(self._connect, read=READ),
                verify=ssl_context(),
                event_hooks={"response": [bounded, self._look]},
            )
        )
        transport = streamable_http_client(
            self._url, http_client=client, max_sse_event_size=MOST_ANSWER
        )
        return await self._stack.enter_async_context(transport)

    async def __aexit__(self, *failure: Any) -> bool | None:
        return await self._stack.__aexit__(*failure)

    async def _look(self, response: httpx2.Response) -> None:
        if response.request.method == "POST":
            self.refused = response.status_code if response.status_code >= 400 else 0


async def bounded(response: httpx2.Response) -> None:
    """A hook: an answer that is no stream of events may have `MOST_ANSWER` bytes."""
    kind = response.headers.get("content-type", "")
    if not kind.startswith("text/event-stream"):
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Limited(response.stream)


class _Limited(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = 0
        async for chunk in self._inner:
            total += len(chunk)
            if total > MOST_ANSWER:
                raise httpx2.ReadError(f"the answer has more than {MOST_ANSWER >> 20} MB")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
