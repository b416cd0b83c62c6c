"""Requests to a model's server: limits in time, refusals and broken connections as `ModelError`."""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Literal, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from croze import __version__
from croze.llm.faults import Place, error_of_status, malformed
from croze.llm.sse import Event, EventTooLong, SSEParser
from croze.llm.wire import address_of, is_loopback
from croze.types.errors import ModelError
from croze.types.stream import Chunk

if TYPE_CHECKING:
    import httpx2

MAX_ERROR_BODY = 64 * 1024
DRAIN_SECONDS = 0.05


class Timeouts(Struct, frozen=True):
    """Limits in seconds: to connect, from then to the first byte of the reply, between two bytes."""

    connect: float = 15.0
    first_byte: float = 600.0
    idle: float = 300.0


class Broken(Exception):
    """What a transport raises: `kind` says what broke, its text what was said of it."""

    def __init__(
        self, kind: Literal["connect", "connect_timeout", "tls", "url", "reset"], text: str
    ) -> None:
        super().__init__(text)
        self.kind = kind


class Answer(Protocol):
    """A server's answer whose body is still coming; header names are in lower case."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def blocks(self) -> AsyncGenerator[bytes, None]: ...

    async def aclose(self) -> None: ...


class Transport(Protocol):
    """Sends a request and gives the answer; both raise `Broken` only. Redirects are not followed."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer: ...

    async def aclose(self) -> None: ...


class Parser(Protocol):
    """Cuts a stream of bytes into events."""

    def feed(self, block: bytes) -> list[Event]: ...


class StreamDecoder(Protocol):
    """Turns the events of one reply into chunks. The finish comes last, from `close`."""

    @property
    def done(self) -> bool:
        """The provider said that nothing more comes."""
        ...

    @property
    def finished(self) -> bool:
        """The finish signal was seen."""
        ...

    def feed(self, event: Event) -> list[Chunk]: ...

    def close(self) -> list[Chunk]: ...


class Http:
    """The connection to one server, opened with the first request and kept between requests.

    Without a proxy it is a direct one; through a proxy of the environment, or with a `client` given,
    it is httpx2's, whose import costs 0.2 s.
    """

    def __init__(
        self,
        *,
        place: Place,
        base_url: str,
        headers: Mapping[str, str],
        timeouts: Timeouts,
        client: "httpx2.AsyncClient | None" = None,
        start: str = "",
    ) -> None:
        self.place = place
        self.timeouts = timeouts
        self._base_url = base_url
        self._headers = {
            "user-agent": f"croze/{__version__}",
            "accept-encoding": "identity",
            "content-type": "application/json",
            **headers,
        }
        self._client = client
        self._start = start
        self._transport: Transport | None = None

    def _open(self) -> Transport:
        if self._transport is None:
            key = self.place.key
            if key and not (key.isascii() and key.isprintable()):
                raise ModelError(
                    f"the key of {self.place.provider} has characters that no key has",
                    hint="Set it again, without line ends and quotation marks.",
                    code="key",
                )
            if not is_web_address(self._base_url):
                raise ModelError(
                    f"{self.place.scrub(self._base_url)} is not a server's address"
                    if self._base_url
                    else f"{self.place.provider} has no base URL",
                    hint="Set base_url of the provider, such as http://127.0.0.1:8000/v1.",
                    code="url",
                )
            self._transport = self._make()
        return self._transport

    def _make(self) -> Transport:
        if self._client is not None or uses_proxy(self._base_url, os.environ):
            from croze.llm.proxied import ProxiedTransport

            return ProxiedTransport(self.timeouts.connect, self._client)
        from croze.llm.direct import DirectTransport

        return DirectTransport(self._base_url, self.timeouts.connect)

    @asynccontextmanager
    async def post(self, url: str, body: bytes) -> AsyncGenerator["Reply", None]:
        """Send a JSON body. Raises `ModelError` unless the answer's status is 2xx; leaving the block
        before the body's end closes the connection."""
        transport = self._open()
        limits = self.timeouts
        deadline = asyncio.get_running_loop().time() + limits.connect + limits.first_byte
        async with self.failures("first_byte_timeout"):
            async with asyncio.timeout_at(deadline):
                answer = await transport.post(url, self._headers, body)
        try:
            reply = Reply(answer, self, deadline)
            if not 200 <= answer.status < 300:
                raise await self._refusal(answer, reply, body)
            yield reply
        finally:
            await answer.aclose()

    async def _refusal(self, answer: Answer, reply: "Reply", sent: bytes) -> ModelError:
        received = bytearray()
        with suppress(ModelError):
            async with aclosing(reply.blocks()) as blocks:
                async for block in blocks:
                    received += block
                    if len(received) > MAX_ERROR_BODY:
                        break
        if 300 <= answer.status < 400:
            target = self.place.scrub(address_of(answer.headers.get("location", "")))
            return ModelError(
                f"{self.place.address} redirects to {target}; the key is not sent there",
                status=answer.status,
                hint="Set base_url to the final address.",
                code="redirect",
            )
        return error_of_status(
            self.place,
            answer.status,
            bytes(received),
            answer.headers,
            # Inside a JSON string the quotes would be escaped, so this matches the field only.
            sent_tools=b'"tools":[' in sent,
        )

    @asynccontextmanager
    async def failures(self, timeout_code: str) -> AsyncGenerator[None, None]:
        """What can happen to a connection, as `ModelError`."""
        try:
            yield
        except TimeoutError as error:
            first = timeout_code == "first_byte_timeout"
            limit = self.timeouts.first_byte if first else self.timeouts.idle
            what = "did not begin to answer" if first else "fell silent in mid-answer"
            raise ModelError(
                f"{self.place.provider} {what} for {limit:g} seconds",
                retryable=True,
                code=timeout_code,
            ) from error
        except Broken as error:
            raise self._broken(error) from error

    def _broken(self, error: Broken) -> ModelError:
        place, said = self.place, self.place.scrub(str(error))
        match error.kind:
            case "connect_timeout":
                text = f"no connection to {place.address} within {self.timeouts.connect:g} seconds"
                hint = "Check the network and the base URL."
            case "tls":
                text = f"no secure connection to {place.address}: {said}"
                hint = "Point SSL_CERT_FILE at the certificate authority's file."
            case "url":
                text = f"can't send a request to {place.address}: {said}"
                hint = "Check the base URL."
            case "reset":
                text = f"the connection to {place.provider} broke: {said}"
                hint = ""
            case "connect":
                text = f"can't reach {place.provider} at {place.address}: {said}"
                hint = "Check the network, the proxy settings and the base URL."
                if self._start and is_loopback(self._base_url):
                    hint = f"Start it: {self._start}"
        retryable = error.kind not in ("tls", "url")
        return ModelError(text, retryable=retryable, hint=hint, code=error.kind)

    async def aclose(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()


class Reply:
    """A successful answer whose body is still coming."""

    def __init__(self, answer: Answer, http: Http, deadline: float) -> None:
        self._answer = answer
        self._http = http
        self._deadline = deadline
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        self.is_json = kind == "application/json"
        self.is_page = kind == "text/html"

    async def blocks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes. Raises `ModelError` when it stalls or breaks."""
        idle = self._http.timeouts.idle
        limit = asyncio.timeout_at(self._deadline)
        code = "first_byte_timeout"
        async with aclosing(self._answer.blocks()) as blocks:
            while True:
                async with self._http.failures(code), limit:
                    block = await anext(blocks, None)
                if block is None:
                    return
                yield block
                limit, code = asyncio.timeout(idle), "idle_timeout"


def is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def uses_proxy(url: str, env: Mapping[str, str]) -> bool:
    """Whether the environment may name a proxy for `url`; what NO_PROXY says is left to httpx2."""
    if is_loopback(url):
        return False
    scheme = urlsplit(url).scheme
    names = (f"{scheme}_proxy", "all_proxy")
    return any(env.get(name) or env.get(name.upper()) for name in names)


async def stream_events(
    http: Http, url: str, body: bytes, decoder: StreamDecoder, parser: Parser | None = None
) -> AsyncGenerator[Chunk, None]:
    """Send a request and yield the chunks that `decoder` makes of its events, which `parser` (by
    default one of server-sent events) cuts out of the bytes."""
    try:
        async with http.post(url, body) as reply, aclosing(reply.blocks()) as blocks:
            if reply.is_page:
                raise ModelError(
                    f"{http.place.address} answered with a web page, not with a model's reply",
                    hint="Check the base URL; it usually ends in /v1.",
                    code="not_a_stream",
                )
            if reply.is_json and parser is None:
                whole = b"".join([block async for block in blocks])
                for chunk in decoder.feed(Event("", whole)):
                    yield chunk
            else:
                async with aclosing(_events(http, blocks, decoder, parser)) as chunks:
                    async for chunk in chunks:
                        yield chunk
    except ModelError:
        if not decoder.finished:
            raise
    for chunk in decoder.close():
        yield chunk


async def _events(
    http: Http,
    blocks: AsyncGenerator[bytes, None],
    decoder: StreamDecoder,
    parser: Parser | None,
) -> AsyncGenerator[Chunk, None]:
    parser = parser or SSEParser()
    async for block in blocks:
        try:
            events = parser.feed(block)
        except EventTooLong as error:
            raise malformed(http.place, str(error)) from error
        for event in events:
            for chunk in decoder.feed(event):
                yield chunk
        if decoder.done:
            # Read to the body's end, so the connection can serve the next request.
            with suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_SECONDS):
                    async for _ in blocks:
                        pass
            return
