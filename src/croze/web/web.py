"""What the tools reach the web by: fetching pages, searching. What is heavy is loaded when it is used."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from croze.web.fetch import Fetcher, Page
    from croze.web.search import Engine, Hit


class Web:
    """The web of one run.

    Without a `fetcher` given, public addresses are reached and no others; no setting or URL changes that.
    Without an `engine` given, searches go through the library of the extra `websearch`.
    """

    def __init__(self, *, fetcher: "Fetcher | None" = None, engine: "Engine | None" = None) -> None:
        self._fetcher = fetcher
        self._engine = engine

    async def fetch(self, url: str) -> "Page":
        """The page at a URL. Raises `WebError`."""
        if self._fetcher is None:
            from croze.web.address import PublicResolver
            from croze.web.fetch import Fetcher

            self._fetcher = Fetcher(resolver=PublicResolver())
        return await self._fetcher.fetch(url)

    async def search(self, query: str, *, limit: int, env: "Mapping[str, str]") -> "Sequence[Hit]":
        """At most `limit` pages that answer a query, best first. Raises `WebError`."""
        if self._engine is None:
            from croze.web.search import LibraryEngine

            self._engine = LibraryEngine()
        return await self._engine.search(query, limit=limit, env=env)
