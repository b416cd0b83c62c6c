"""Direct connections: h11 speaks HTTP/1.1 over asyncio's sockets.

Why not httpx2 here: with anyio and httpcore2 it takes 0.2 s of CPU to import, most of what `croze run`
has until its first request; h11, which httpcore2 itself is built on, takes 0.015 s.
"""

import asyncio
import ssl
import zlib
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import h11

from croze.llm.http import Broken

KEEP_ALIVE_SECONDS = 120.0
MAX_HEADERS = 128 * 1024
READ_BYTES = 64 * 1024
FALLBACK_SECONDS = 0.25
"""How long the first address family is tried before the other one too (RFC 8305)."""


class DirectTransport:
    """Connections to the server of `base_url`, kept open between requests and taken in turn."""

    def __init__(self, base_url: str, connect: float) -> None:
        parts = urlsplit(base_url)
        self._tls = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._tls else 80)
        self._connect = connect
        self._context: ssl.SSLContext | None = None
        self._idle: list[_Line] = []

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> "DirectAnswer":
        """Send a request. A kept connection that turns out to be closed is replaced once."""
        return await self._request("POST", url, headers, body)

    async def get(self, url: str) -> "DirectAnswer":
        return await self._request("GET", url, {}, b"")

    async def _request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> "DirectAnswer":
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        line = self._take()
        if line is not None:
            try:
                return await self._ask(line, method, target, headers, body)
            except _Stale:
                pass
        return await self._ask(await self._dial(), method, target, headers, body)

    async def aclose(self) -> None:
        for line in self._idle:
            line.writer.transport.abort()
        self._idle.clear()
        # The loop closes the sockets on its next turn.
        await asyncio.sleep(0)

    def keep(self, line: "_Line") -> None:
        """Take back a connection whose answer was read to its end."""
        line.since = asyncio.get_running_loop().time()
        self._idle.append(line)

    def _take(self) -> "_Line | None":
        now = asyncio.get_running_loop().time()
        while self._idle:
            line = self._idle.pop()
            fresh = now - line.since < KEEP_ALIVE_SECONDS
            if fresh and not line.reader.at_eof() and not line.writer.is_closing():
                return line
            line.writer.transport.abort()
        return None

    async def _dial(self) -> "_Line":
        if self._tls and self._context is None:
            self._context = ssl_context()
        try:
            async with asyncio.timeout(self._connect):
                reader, writer = await asyncio.open_connection(
                    self._host,
                    self._port,
                    ssl=self._context,
                    server_hostname=self._host if self._tls else None,
                    happy_eyeballs_delay=FALLBACK_SECONDS,
                )
        except TimeoutError as error:
            raise Broken("connect_timeout", "") from error
        except ssl.SSLCertVerificationError as error:
            raise Broken("tls", error.verify_message or str(error)) from error
        except ssl.SSLError as error:
            raise Broken("tls", str(error)) from error
        except (OSError, UnicodeError) as error:
            raise Broken("connect", _said(error)) from error
        return _Line(reader, writer)

    async def _ask(
        self, line: "_Line", method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> "DirectAnswer":
        try:
            with _failures():
                line.send(method, target, {"host": self._host_header(), **headers}, body)
                # A server may refuse a request before it has read all of it: its answer counts.
                with suppress(ConnectionError):
                    await line.writer.drain()
                event = await line.next_event()
                while isinstance(event, h11.InformationalResponse):
                    event = await line.next_event()
        except BaseException as error:
            stale = line.since and isinstance(error, Broken) and not line.heard
            line.writer.transport.abort()
            if stale:
                raise _Stale from error
            raise
        if not isinstance(event, h11.Response):
            line.writer.transport.abort()
            raise Broken("reset", "the server closed the connection without an answer")
        return DirectAnswer(self, line, event)

    def _host_header(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        usual = self._port == (443 if self._tls else 80)
        return host if usual else f"{host}:{self._port}"


class DirectAnswer:
    def __init__(self, transport: DirectTransport, line: "_Line", response: h11.Response) -> None:
        self._transport = transport
        self._line: _Line | None = line
        self.status: int = response.status_code
        self.headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in response.headers
        }

    async def blocks(self) -> AsyncGenerator[bytes, None]:
        """The body; read to its end the connection is kept for the next request."""
        line = self._line
        if line is None:
            return
        coding = self.headers.get("content-encoding", "identity")
        inflate = zlib.decompressobj(47) if coding in ("gzip", "deflate") else None
        if inflate is None and coding not in ("identity", ""):
            raise Broken("url", f"the answer is compressed by {coding}, which was not asked for")
        with _failures():
            while not isinstance(event := await line.next_event(), h11.EndOfMessage):
                if not isinstance(event, h11.Data):
                    raise Broken("reset", "the server closed the connection in mid-answer")
                data = bytes(event.data)
                yield data if inflate is None else inflate.decompress(data)
        self._line = None
        if line.reusable():
            self._transport.keep(line)
        else:
            line.writer.close()

    async def aclose(self) -> None:
        """Close the connection at once, unless the answer was read to its end."""
        line, self._line = self._line, None
        if line is not None:
            line.writer.transport.abort()


class _Stale(Exception):
    """A kept connection had been closed before the request reached the server."""


class _Line:
    """One connection. `since` is when it was kept (0 for a new one), `heard` whether the server
    has said anything to the present request."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.since = 0.0
        self.heard = False
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEADERS)

    def send(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        self.heard = False
        fields = [*headers.items(), ("content-length", str(len(body)))]
        request = h11.Request(method=method, target=target, headers=fields)
        head = self._http.send(request)
        rest = self._http.send_with_data_passthrough(h11.Data(data=body)) or []
        self._http.send(h11.EndOfMessage())
        self.writer.writelines([head or b"", *rest])

    async def next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            data = await self.reader.read(READ_BYTES)
            self.heard = self.heard or bool(data)
            self._http.receive_data(data)
        return event

    def reusable(self) -> bool:
        """Make ready for another request, if both sides can."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return not self.writer.is_closing()


def ssl_context() -> ssl.SSLContext:
    """The system's authorities (SSL_CERT_FILE and SSL_CERT_DIR are honoured), or where OpenSSL's own
    paths hold none, those that truststore finds."""
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if context.cert_store_stats()["x509_ca"] or paths.capath:
        return context
    import truststore

    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except h11.RemoteProtocolError as error:
        raise Broken("reset", str(error)) from error
    except h11.LocalProtocolError as error:
        raise Broken("url", str(error)) from error
    except zlib.error as error:
        raise Broken("reset", f"compressed data is damaged: {error}") from error
    except OSError as error:
        raise Broken("reset", _said(error)) from error


def _said(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text or type(error).__name__
