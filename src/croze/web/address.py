"""Which addresses of the web may be reached: the URL as written, and every address that its host means.

Refused is what leads into this machine or its networks, however it is spelt: the host is read as the
system's resolver reads it, and each of its addresses must be public. Ranges:
https://www.iana.org/assignments/iana-ipv4-special-registry and …ipv6-special-registry.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Sequence
from typing import Protocol
from urllib.parse import quote, urlsplit

from msgspec import Struct

from croze.types.errors import CrozeError

MOST_URL = 8_000
MOST_ADDRESSES = 8
RESOLVE_SECONDS = 10.0

_HOST = re.compile(r"(?=.{1,253}\Z)(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*\Z")
_NUMBER = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)\Z")
_OWN_NAMES = (
    "localhost",
    "local",
    "internal",
    "intranet",
    "home",
    "lan",
    "corp",
    "private",
    "onion",
)
"""Last labels of names that belong to this machine or network (RFC 6761, 6762, 7686; ICANN SAC113)."""

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_CLOSED = tuple(
    map(
        ipaddress.ip_network,
        (
            "0.0.0.0/8",
            "100.64.0.0/10",  # carriers' own
            "192.0.0.0/24",
            "192.88.99.0/24",  # 6to4 relays
            "198.18.0.0/15",  # benchmarks
            "::/96",  # IPv4-compatible, the unspecified and the loopback address
            "64:ff9b:1::/48",  # local NAT64
            "100::/64",
            "2001::/23",  # Teredo and other protocols' own
            "2002::/16",  # 6to4
            "3fff::/20",
            "5f00::/16",
            "fec0::/10",
        ),
    )
)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class WebError(CrozeError):
    """A page that was not fetched. Codes: `bad_url`, `private_address`, `no_address`, `not_reached`,
    `tls`, `too_slow`, `too_large`, `redirect_elsewhere`, `too_many_redirects`, `robots`, `http_status`,
    `bad_answer`, `not_text`."""

    code = "bad_url"


class Url(Struct, frozen=True):
    """A URL of the web in parts; `host` is in ASCII and lower case, without the brackets of IPv6."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """Host, and port where it isn't the scheme's own: as the Host header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (
            host if self.port == (443 if self.scheme == "https" else 80) else f"{host}:{self.port}"
        )

    def __str__(self) -> str:
        return f"{self.origin}{self.target}"


class Resolver(Protocol):
    """Finds the addresses of a host. Being asked for a host is also where it is decided what may be
    reached: `allows` says whether an address is open."""

    async def addresses(self, host: str, port: int) -> Sequence[Address]:
        """Raises OSError where the host has none."""
        ...

    def allows(self, address: Address) -> bool: ...


class PublicResolver:
    """The system's resolver; open are public addresses only."""

    async def addresses(self, host: str, port: int) -> Sequence[Address]:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(ipaddress.ip_address(each[4][0]) for each in found))

    def allows(self, address: Address) -> bool:
        return is_public(address)


def parse_url(text: str) -> Url:
    """Read a URL as written by a model or a server. Raises `WebError`."""
    text = text.strip()
    if len(text) > MOST_URL:
        raise WebError("The URL is too long.")
    if any(ord(char) < 0x21 or ord(char) == 0x7F for char in text) or "\\" in text:
        raise WebError("The URL has blanks, control characters or backslashes in it.")
    try:
        parts = urlsplit(text)
        port = parts.port
        host = parts.hostname or ""
    except ValueError as error:
        raise WebError(f"This is no URL: {error}.") from error
    scheme = parts.scheme.lower()
    if scheme not in ("http", "https"):
        raise WebError(
            f"Only http and https are fetched, not {scheme or 'a URL without a scheme'}.",
            hint="Write it out, as in https://example.org/page.",
        )
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        raise WebError("URLs with a user name or a password aren't fetched.")
    if port == 0 or "%" in host:
        raise WebError("The URL's host or port is none.")
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = f"?{quote(parts.query, safe=_QUERY)}" if parts.query else ""
    default = 443 if scheme == "https" else 80
    return Url(scheme, _host(host), default if port is None else port, path + query)


_QUERY = "/?%:@!$&'()*+,;=~-._[]"


def _host(host: str) -> str:
    """The host in the one form in which it is checked, resolved and sent."""
    host = host.rstrip(".") if not host.endswith("..") else host
    if ":" in host:
        try:
            return str(ipaddress.IPv6Address(host))
        except ValueError as error:
            raise WebError(f"{host} is no address.") from error
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError as error:
            raise WebError("The URL's host is no valid name.") from error
    host = host.lower()
    if _NUMBER.match(host.rpartition(".")[2]):
        return str(ipv4(host))
    if not _HOST.match(host):
        raise WebError("The URL's host is no valid name.")
    if host.rpartition(".")[2] in _OWN_NAMES or "." not in host:
        raise WebError(
            f"{host} is a name of this machine or network, which is not reached from here.",
            hint="Use a command (curl), if the user allows it.",
            code="private_address",
        )
    return host


def ipv4(host: str) -> ipaddress.IPv4Address:
    """An IPv4 address in any of the spellings that systems accept (decimal, octal, hexadecimal, one to
    four parts). Raises `WebError`."""
    parts = host.split(".")
    values = []
    for part in parts:
        if not _NUMBER.match(part):
            raise WebError(f"{host} is no address.")
        base = 16 if part.startswith("0x") else 8 if part.startswith("0") and part != "0" else 10
        try:
            values.append(int(part.removeprefix("0x") or "0", base))
        except ValueError as error:
            raise WebError(f"{host} is no address.") from error
    last = 256 ** (5 - len(values)) if len(values) <= 4 else 0
    if any(value > 255 for value in values[:-1]) or values[-1] >= last:
        raise WebError(f"{host} is no address.")
    number = values[-1]
    for at, value in enumerate(values[:-1]):
        number += value << (24 - 8 * at)
    return ipaddress.IPv4Address(number)


def is_public(address: Address) -> bool:
    """Whether an address is one of the public internet, also the IPv4 one that an IPv6 one stands for."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return False
        inner = address.ipv4_mapped
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    if any(address in network for network in _CLOSED if network.version == address.version):
        return False
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address.is_unspecified
        or address.is_loopback or address.is_link_local or address.is_private
    )  # fmt: skip


async def checked(url: Url, resolver: Resolver) -> tuple[Address, ...]:
    """The addresses by which a URL may be reached. Where one of them is not open, none is used: a name
    that means both a public and a private one is meant to deceive. Raises `WebError`."""
    try:
        literal = ipaddress.ip_address(url.host)
    except ValueError:
        literal = None
    found: Sequence[Address]
    if literal is not None:
        found = [literal]
    else:
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                found = await resolver.addresses(url.host, url.port)
        except (TimeoutError, OSError, UnicodeError, ValueError) as error:
            raise WebError(
                f"The address of {url.host} could not be found.",
                hint="Check the name; there may also be no network.",
                code="no_address",
            ) from error
    for address in found:
        if not resolver.allows(address):
            what = f"{url.host} leads to {address}, which" if literal is None else str(address)
            raise WebError(
                f"{what} is no public address.",
                hint="Addresses of this machine and its networks are not fetched.",
                code="private_address",
            )
    if not found:
        raise WebError(f"{url.host} has no address.", code="no_address")
    return tuple(found[:MOST_ADDRESSES])
