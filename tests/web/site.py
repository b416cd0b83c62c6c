"""A site on the loopback interface that answers what a test says, byte by byte, and the resolver by which
alone it can be reached."""

import asyncio
import gzip as packer
import ipaddress
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from croze.web.address import Address

HOST = "site.test"
Answerer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Loopback:
    """Names → addresses, in the order in which they are asked for; the last one stays. `opened` are the
    addresses that may be reached: nothing in croze makes such a resolver."""

    names: dict[str, list[Sequence[str]]] = field(default_factory=dict)
    opened: frozenset[str] = frozenset({"127.0.0.1"})
    asked: list[str] = field(default_factory=list)

    async def addresses(self, host: str, port: int) -> Sequence[Address]:
        self.asked.append(host)
        answers = self.names.get(host)
        if answers is None:
            raise OSError("no such name")
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        return [ipaddress.ip_address(each) for each in found]

    def allows(self, address: Address) -> bool:
        return str(address) in self.opened


def resolver(*names: str) -> Loopback:
    return Loopback({name: [("127.0.0.1",)] for name in (HOST, *names)})


def answer(
    body: bytes | str = b"",
    *,
    status: str = "200 OK",
    headers: Mapping[str, str] | None = None,
    kind: str = "text/html; charset=utf-8",
) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    fields = {"content-type": kind, "content-length": str(len(data)), **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + data


def redirect(place: str) -> bytes:
    return answer(status="302 Found", headers={"location": place})


def packed(body: bytes, **options: str) -> bytes:
    data = packer.compress(body)
    return answer(data, headers={"content-encoding": "gzip"}, **options)


@dataclass
class Site:
    """`pages` maps targets to raw answers or to what writes them; `requests` keeps the heads of all
    requests."""

    port: int = 0
    pages: dict[str, bytes | Answerer] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    @property
    def targets(self) -> list[str]:
        return [request.split(" ")[1] for request in self.requests]

    def url(self, target: str = "/", host: str = HOST, scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{target}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            self.requests.append(head)
            missing = answer("no such page", status="404 Not Found")
            page = self.pages.get(head.split(" ")[1], missing)
            if callable(page):
                await page(writer)
            else:
                writer.write(page)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(tls: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
    site = Site()
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=tls)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()
