"""Fetching pages for the agent: guarded at each redirect, asked of robots.txt, within size and time."""

import asyncio
import re
import ssl
from collections import OrderedDict
from collections.abc import Callable
from email.message import Message
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin

from msgspec import Struct

from croze.documents.charset import decoded
from croze.web.address import Resolver, Url, WebError, checked, parse_url
from croze.web.robots import EVERYTHING, MOST_BYTES, NOTHING, Rules, parse

if TYPE_CHECKING:
    from croze.web.connection import Answer

MOST_SITES = 256
_PAGE = "text/html, application/xhtml+xml, text/markdown, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5"
_NAME = re.compile(r"[^\w.\- ]")


class Limits(Struct, frozen=True):
    """`seconds` are for a whole page with its redirects, `connect` for each address, `bytes` for the
    body, unpacked."""

    seconds: float = 30.0
    connect: float = 8.0
    bytes: int = 10 << 20
    redirects: int = 5


class Page(Struct, frozen=True):
    """What was fetched. `url` is where it was found, `media_type` and `charset` what the server says of
    it, in lower case; `name` is its file name, where it has one."""

    url: Url
    data: bytes
    media_type: str
    charset: str
    name: str


def system_tls() -> ssl.SSLContext:
    from croze.llm.direct import ssl_context

    return ssl_context()


class Fetcher:
    """Fetches for one run. What may be reached is the resolver's to say."""

    def __init__(
        self,
        *,
        resolver: Resolver,
        limits: Limits = Limits(),  # noqa: B008 (a frozen value)
        tls: Callable[[], ssl.SSLContext] = system_tls,
    ) -> None:
        self._resolver = resolver
        self._limits = limits
        self._make_tls = tls
        self._context: ssl.SSLContext | None = None
        self._robots: OrderedDict[str, Rules] = OrderedDict()

    async def fetch(self, text: str) -> Page:
        """The page at a URL. Redirects are followed on the same site only; where one leads elsewhere,
        the error names that place. Raises `WebError`."""
        url = parse_url(text)
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await self._page(url)
        except TimeoutError as error:
            raise WebError(
                f"{url.host} was not done after {self._limits.seconds:g} s.", code="too_slow"
            ) from error

    async def _page(self, url: Url) -> Page:
        start = url
        for _ in range(self._limits.redirects + 1):
            rules = await self._rules(url)
            if not rules.allows(url.target):
                raise WebError(
                    f"robots.txt of {url.host} asks robots not to fetch {url.target[:200]}.",
                    hint="Look for the same on another site, or ask the user to fetch it.",
                    code="robots",
                )
            answer = await self._ask(url, _PAGE)
            if answer.status not in (301, 302, 303, 307, 308):
                if answer.status != 200:
                    raise WebError(
                        f"{url.host} answers with status {answer.status}.",
                        hint=_HINTS.get(answer.status, ""),
                        code="http_status",
                        status=answer.status,
                    )
                return _page_of(url, answer)
            url = await self._redirected(start, url, answer.headers.get("location", ""))
        raise WebError(
            f"{start.host} redirects more than {self._limits.redirects} times.",
            code="too_many_redirects",
        )

    async def _ask(self, url: Url, accept: str, most: int = 0) -> "Answer":
        from croze.web.connection import ask

        addresses = await checked(url, self._resolver)
        limit = most or self._limits.bytes
        return await ask(
            url,
            addresses,
            connect=self._limits.connect,
            most=limit,
            tls=self._tls,
            accept=accept,
        )

    def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = self._make_tls()
        return self._context

    async def _redirected(self, start: Url, url: Url, location: str) -> Url:
        """Where an answer leads, if that is on the same site."""
        if not location:
            raise WebError(f"{url.host} redirects to nowhere.", code="bad_answer")
        try:
            place = urljoin(str(url), location)
        except ValueError as error:
            raise WebError(f"{url.host} redirects to what is no URL.", code="bad_answer") from error
        following = parse_url(place)
        await checked(following, self._resolver)
        if not _same_site(start, following) or (url.scheme, following.scheme) == ("https", "http"):
            raise WebError(
                f"{url.host} redirects to {following}.",
                hint="That is another site. Call the tool again with that URL, if it is what you want.",
                code="redirect_elsewhere",
                url=str(following),
            )
        return following

    async def _rules(self, url: Url) -> Rules:
        """What the site asks of robots; asked once a run. A site whose servers fail is left alone
        (RFC 9309, 2.3.1.4); one that has no such file may be fetched."""
        known = self._robots.get(url.origin)
        if known is None:
            known = await self._read_rules(url)
            self._robots[url.origin] = known
            while len(self._robots) > MOST_SITES:
                self._robots.popitem(last=False)
        return known

    async def _read_rules(self, url: Url) -> Rules:
        from croze.web.connection import ROBOT

        place = Url(url.scheme, url.host, url.port, "/robots.txt")
        for _ in range(self._limits.redirects + 1):
            try:
                answer = await self._ask(place, "text/plain, */*;q=0.1", most=MOST_BYTES)
            except WebError as error:
                if error.code == "too_large":
                    return NOTHING
                raise
            if answer.status == 200:
                return parse(decoded(answer.body), ROBOT)
            if answer.status >= 500 or answer.status == 429:
                raise WebError(
                    f"robots.txt of {url.host} can't be read (status {answer.status}), so its pages "
                    "are left alone.",
                    hint="Try again later.",
                    code="robots",
                )
            if not 300 <= answer.status < 400:
                return EVERYTHING
            try:
                place = await self._redirected(url, place, answer.headers.get("location", ""))
            except WebError as error:
                if error.code in ("redirect_elsewhere", "bad_answer"):
                    return EVERYTHING
                raise
        return EVERYTHING


_HINTS = {
    401: "The page wants a login.",
    403: "The server doesn't serve robots, or the page wants a login.",
    404: "There is no such page: look for it with web_search.",
    410: "The page is gone.",
    429: "The server wants fewer requests: wait, or use another source.",
}


def _same_site(one: Url, other: Url) -> bool:
    """Whether a redirect may lead from one to the other: the same host but for `www.`, at the usual
    ports or the very same one."""
    hosts = one.host.removeprefix("www."), other.host.removeprefix("www.")
    usual = one.port in (80, 443) and other.port in (80, 443)
    return hosts[0] == hosts[1] and (usual or one.port == other.port)


def _page_of(url: Url, answer: "Answer") -> Page:
    message = Message()
    message["content-type"] = answer.headers.get("content-type", "")[:1000]
    message["content-disposition"] = answer.headers.get("content-disposition", "")[:1000]
    media_type = message.get_content_type() if answer.headers.get("content-type") else ""
    charset = message.get_content_charset("") or ""
    name = message.get_filename() or unquote(url.target.partition("?")[0].rpartition("/")[2])
    return Page(
        url=url,
        data=answer.body,
        media_type=media_type,
        charset=str(charset),
        name=_NAME.sub("_", name)[:200],
    )
