"""One request to one checked address: HTTP/1.1 by h11, every part of the answer within bounds.

The connection goes to the address that was checked, never to what a second look-up gives; TLS is
verified for the host of the URL all the same.
"""

import asyncio
import ssl
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import MappingProxyType

import h11
from msgspec import Struct

from croze import __version__
from croze.web.address import Address, Url, WebError

ROBOT = "croze"
MAX_HEADERS = 64 << 10
_READ = 64 << 10
_CLOSE_SECONDS = 1.0


class Answer(Struct, frozen=True):
    """A whole answer; the names of `headers` are in lower case."""

    status: int
    headers: MappingProxyType[str, str]
    body: bytes


async def ask(
    url: Url,
    addresses: Sequence[Address],
    *,
    connect: float,
    most: int,
    tls: Callable[[], ssl.SSLContext],
    accept: str,
) -> Answer:
    """GET a URL from the first of these addresses that answers: each is tried for `connect` seconds, the
    body may have `most` bytes unpacked. Raises `WebError`."""
    reader, writer = await _connect(url, addresses, connect, tls)
    try:
        return await _exchange(url, reader, writer, most, accept)
    except h11.RemoteProtocolError as error:
        raise WebError(
            f"{url.host} answers against the protocol: {error}", code="bad_answer"
        ) from error
    except h11.LocalProtocolError as error:
        raise WebError(f"The URL can't be sent: {error}") from error
    except (OSError, EOFError, asyncio.IncompleteReadError) as error:
        raise WebError(
            f"The connection to {url.host} broke: {_said(error)}", code="not_reached"
        ) from error
    finally:
        writer.transport.abort()
        with suppress(Exception):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await writer.wait_closed()


async def _connect(
    url: Url,
    addresses: Sequence[Address],
    connect: float,
    tls: Callable[[], ssl.SSLContext],
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    secure = url.scheme == "https"
    failure: Exception = OSError("no address")
    for address in addresses:
        try:
            async with asyncio.timeout(connect):
                return await asyncio.open_connection(
                    str(address),
                    url.port,
                    ssl=tls() if secure else None,
                    server_hostname=url.host if secure else None,
                    limit=_READ,
                )
        except ssl.SSLCertVerificationError as error:
            said = error.verify_message or str(error)
            raise WebError(
                f"The certificate of {url.host} doesn't hold: {said}.", code="tls"
            ) from error
        except (TimeoutError, OSError) as error:
            failure = error
    what = "no answer in time" if isinstance(failure, TimeoutError) else _said(failure)
    raise WebError(f"{url.authority} can't be reached: {what}.", code="not_reached") from failure


async def _exchange(
    url: Url,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    most: int,
    accept: str,
) -> Answer:
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEADERS)
    headers = [
        ("host", url.authority),
        ("user-agent", f"{ROBOT}/{__version__} (coding agent, asked by its user)"),
        ("accept", accept),
        ("accept-encoding", "gzip"),
        ("accept-language", "en, *;q=0.5"),
        ("connection", "close"),
    ]
    request = h11.Request(method="GET", target=url.target, headers=headers)
    writer.write((http.send(request) or b"") + (http.send(h11.EndOfMessage()) or b""))
    await writer.drain()
    event = await _next(http, reader)
    while isinstance(event, h11.InformationalResponse):
        event = await _next(http, reader)
    if not isinstance(event, h11.Response):
        raise WebError(f"{url.host} closed the connection without an answer.", code="bad_answer")
    found = MappingProxyType(
        {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
    )
    status = event.status_code
    if 300 <= status < 400:
        return Answer(status, found, b"")
    body = _Body(found.get("content-encoding", ""), most)
    while not isinstance(event := await _next(http, reader), h11.EndOfMessage):
        if not isinstance(event, h11.Data):
            raise WebError(f"{url.host} closed the connection in mid-answer.", code="bad_answer")
        body.feed(bytes(event.data))
    return Answer(status, found, body.finish())


async def _next(http: h11.Connection, reader: asyncio.StreamReader) -> object:
    while (event := http.next_event()) is h11.NEED_DATA:
        http.receive_data(await reader.read(_READ))
    return event


class _Body:
    """A body as it comes, unpacked no further than its limit."""

    def __init__(self, coding: str, most: int) -> None:
        self._most = most
        self._out = bytearray()
        self._received = 0
        coding = coding.strip().lower()
        if coding not in ("", "identity", "gzip", "x-gzip"):
            raise WebError(
                f"The answer is packed by {coding[:40]}, which was not asked for.",
                code="bad_answer",
            )
        self._inflate = zlib.decompressobj(31) if coding in ("gzip", "x-gzip") else None

    def feed(self, data: bytes) -> None:
        self._received += len(data)
        if self._inflate is None:
            self._out += data
        else:
            try:
                self._out += self._inflate.decompress(data, self._most + 1 - len(self._out))
            except zlib.error as error:
                raise WebError(
                    f"The packed answer is damaged: {error}.", code="bad_answer"
                ) from error
        if len(self._out) > self._most or self._received > self._most:
            raise WebError(
                f"The page is larger than {self._most:,} bytes.",
                hint="Fetch it with a command (curl), if the user allows it.",
                code="too_large",
            )

    def finish(self) -> bytes:
        if self._inflate is not None and not self._inflate.eof and self._received:
            raise WebError("The packed answer ends too early.", code="bad_answer")
        return bytes(self._out)


def _said(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text or type(error).__name__
