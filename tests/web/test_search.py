"""Searching: the library's engines against a server that stands for them, and what goes wrong."""

import asyncio
import os
import sys

import pytest

from croze.web.address import WebError
from croze.web.library import search
from croze.web.search import LibraryEngine, Query
from tests.web.site import answer, serving

RESULTS = """
<html><body><div class="results">
<div class="links_main body"><h2><a href="https://docs.test/wal">Write-ahead <b>log</b></a></h2>
<a href="https://docs.test/wal">How the sqlite log works.</a></div>
<div class="links_main body"><h2><a href="javascript:alert(1)">Bad</a></h2><a href="javascript:alert(1)">x</a></div>
</div></body></html>
"""


@pytest.fixture
def engines(monkeypatch):
    """Points the library's one engine that is asked here at a site."""
    duckduckgo = pytest.importorskip("ddgs.engines.duckduckgo")

    def point(url: str) -> None:
        monkeypatch.setattr(duckduckgo.Duckduckgo, "search_url", url)
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "DDGS_PROXY"):
            monkeypatch.delenv(name, raising=False)

    return point


def query(**options) -> Query:
    return Query(text="sqlite log", limit=5, backend="duckduckgo", **options)


async def test_the_engines_answer_becomes_hits(engines):
    async with serving() as site:
        site.pages["/html/"] = answer(RESULTS)
        engines(f"http://127.0.0.1:{site.port}/html/")
        found = await asyncio.to_thread(search, query())
    assert found.code == ""
    assert [(hit.title, hit.url) for hit in found.hits] == [
        ("Write-ahead log", "https://docs.test/wal")
    ]
    assert "How the sqlite log works." in found.hits[0].snippet


async def test_an_engine_without_results_gives_none(engines):
    async with serving() as site:
        site.pages["/html/"] = answer("<html><body>Nothing</body></html>")
        engines(f"http://127.0.0.1:{site.port}/html/")
        found = await asyncio.to_thread(search, query())
    assert (found.hits, found.code) == ((), "")


async def test_an_engine_that_can_not_be_reached_is_told(engines):
    async with serving() as site:
        port = site.port
    engines(f"http://127.0.0.1:{port}/html/")
    found = await asyncio.to_thread(search, query())
    assert found.code == "not_reached"
    assert found.hits == ()


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ddgs", None)
    found = search(query())
    assert found.code == "missing_extra"
    assert "croze[websearch]" in found.hint


async def test_a_search_that_hangs_is_given_up_and_its_program_ended():
    with pytest.raises(WebError) as caught:
        await LibraryEngine(seconds=0.01).search("x", limit=1, env=os.environ)
    assert caught.value.code == "too_slow"


async def test_a_search_without_a_network_says_so_from_its_own_program():
    """Everything but the engines themselves: a proxy where nobody listens keeps them from being reached."""
    pytest.importorskip("ddgs")
    async with serving() as site:
        port = site.port
    env = {
        **os.environ,
        "DDGS_PROXY": f"http://127.0.0.1:{port}",
        "ALL_PROXY": f"http://127.0.0.1:{port}",
    }
    env |= dict.fromkeys(
        ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), env["ALL_PROXY"]
    )
    with pytest.raises(WebError) as caught:
        await LibraryEngine(seconds=60).search("sqlite", limit=1, env=env)
    assert caught.value.code in ("not_reached", "too_slow")
    assert caught.value.hint
